"""Health, over HTTP, Triton's gRPC calls and grpc.health.v1."""

import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import rawgrpc, rawhttp
from harness.servers import Server
from tritonclient.utils import InferenceServerException

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
        assert not _ready(client, "id_newest", "1")
        assert not _ready(client, "nobody")


def _ready(client: grpcclient.InferenceServerClient, model: str, version: str = "") -> bool:
    """What is not there: the older reference says no, today's says NOT_FOUND."""
    try:
        return client.is_model_ready(model, version)
    except InferenceServerException as error:
        assert error.status() == "StatusCode.NOT_FOUND"
        return False


def test_grpc_health_service(server: Server) -> None:
    with rawgrpc.Channel(server.grpc) as channel:
        whole = channel.call("Check", service=rawgrpc.HEALTH)
        assert (whole.code, whole.body) == ("OK", SERVING)
