"""Health, over HTTP, Triton's gRPC calls and grpc.health.v1."""

import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import rawgrpc, rawhttp
from harness.servers import Server

SERVING, NOT_FOUND = b"\x08\x01", "NOT_FOUND"


def test_http(server: Server) -> None:
    with httpclient.InferenceServerClient(server.http) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("id_fp32")
        assert client.is_model_ready("id_newest", "3")
        assert not client.is_model_ready("id_newest", "1")
        assert not client.is_model_ready("nobody")
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/id_fp32/ready"):
        answer = rawhttp.get(server.http, path)
        assert (answer.status, answer.body) == (200, b"")


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
