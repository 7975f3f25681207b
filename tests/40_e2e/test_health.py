"""Health, over HTTP, Triton's gRPC calls and grpc.health.v1."""

import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import rawgrpc, rawhttp
from harness.servers import Server

SERVING = b"\x08\x01"


def test_http(server: Server) -> None:
    with httpclient.InferenceServerClient(server.http) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("id_fp32")
        assert client.is_model_ready("id_newest", "3")
        assert not client.is_model_ready("id_newest", "1")
        assert not client.is_model_ready("nobody")


BODIES: dict[str, dict[str, object]] = {
    "/v2/health/live": {"live": True},
    "/v2/health/ready": {"ready": True},
    "/v2/models/id_fp32/ready": {"name": "id_fp32", "ready": True},
    "/v2/models/id_newest/versions/3/ready": {"name": "id_newest", "ready": True},
}


def test_http_says_it_as_the_open_inference_protocol_does(nereid: Server) -> None:
    """The reference's answers have no body."""
    for path, body in BODIES.items():
        answer = rawhttp.get(nereid.http, path)
        assert (answer.status, answer.header("Content-Type"), answer.json()) == (200, "application/json", body)
    for path in ("nobody/ready", "id_newest/versions/1/ready", "nobody/versions/3/ready"):
        answer = rawhttp.get(nereid.http, f"/v2/models/{path}")
        assert (answer.status, answer.json()) == (400, {"error": "Model version not ready"})


def test_grpc(server: Server) -> None:
    with grpcclient.InferenceServerClient(server.grpc) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("id_fp32")
        assert client.is_model_ready("id_newest", "3")
        assert not client.is_model_ready("id_newest", "1")
        assert not client.is_model_ready("nobody")


def test_grpc_health_service(server: Server) -> None:
    with rawgrpc.Channel(server.grpc) as channel:
        whole = channel.call("Check", service=rawgrpc.HEALTH)
        assert (whole.code, whole.body) == ("OK", SERVING)
