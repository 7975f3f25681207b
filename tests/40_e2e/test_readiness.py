"""What is live and ready when the start did not go well, in both servers."""

import socket
from pathlib import Path

import pytest
import tritonclient.grpc
from harness import rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Server
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.reference


@pytest.mark.parametrize("mode", ["none", "explicit"])
def test_a_repository_that_is_not_there(tmp_path: Path, mode: str) -> None:
    """With --exit-on-error=false both servers stay: their ports are open, they are not live, and nothing of models is answered."""
    made = Repository(tmp_path / "models")
    made.identity("model")
    asks = [
        ("GET", "/v2/health/live"), ("GET", "/v2/health/ready"), ("GET", "/v2"), ("GET", "/v2/models/model"),
        ("GET", "/v2/models/model/ready"), ("GET", "/v2/models/model/config"), ("GET", "/v2/models/model/stats"),
        ("GET", "/v2/models/stats"), ("POST", "/v2/repository/index"), ("POST", "/v2/repository/models/model/load"),
        ("POST", "/v2/repository/models/model/unload"), ("GET", "/v2/logging"),
    ]  # fmt: skip
    found = {}
    for kind in KINDS:
        options = {"exit-on-error": "false", "model-control-mode": mode}
        server = KINDS[kind]([made.path, tmp_path / "none"], options, wait_ready=False)
        server.start()
        try:

            def up(server: Server = server) -> bool:
                try:
                    for port in (server.grpc_port, server.metrics_port):
                        socket.create_connection((HOST, port), timeout=60).close()
                    return rawhttp.get(server.http, "/v2/health/live").status == 400
                except OSError:
                    return False

            server.process.wait_until(up, 120)
            if kind == "nereid":
                server.process.wait_until(lambda server=server: "nothing is served" in server.process.log(), 60)
            answers = [rawhttp.request(HOST, server.http_port, *ask, *([b"{}"] if ask[0] == "POST" else [])) for ask in asks]
            told = [(a.status, a.json() if a.status == 503 else None) for a in answers]
            with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
                assert not client.is_server_live() and not client.is_server_ready()
                with pytest.raises(InferenceServerException) as index:
                    client.get_model_repository_index()
            found[kind] = [*told, (index.value.status(), index.value.message())]
            assert "server is ready" not in server.process.log()
        finally:
            server.stop(status=0 if kind == "nereid" else None)
    assert found["nereid"] == found["reference"]


def test_strict_readiness_counts_what_could_be_looked_at(tmp_path: Path) -> None:
    """A model that has no configuration where one is asked for, or none that can be read, holds readiness up in neither server; one whose
    version fails does in both, unless --strict-readiness=false."""
    for kind in KINDS:
        made = Repository(tmp_path / kind)
        made.identity("model")
        made.model("bare", None)
        (made.identity("unreadable") / "config.pbtxt").write_text('name: "unreadable" backe')
        options = {"exit-on-error": "false", "strict-model-config": "true"}
        with KINDS[kind](made.path, options) as server:
            assert rawhttp.get(server.http, "/v2/health/ready").status == 200
        made.model("broken", 'name: "broken" backend: "nobody_has"')
        with KINDS[kind](made.path, {"exit-on-error": "false"}, wait_ready=False) as server:

            def live(server: Server = server) -> bool:
                try:
                    return rawhttp.get(server.http, "/v2/health/live").status == 200
                except OSError:
                    return False

            server.process.wait_until(live, 120)
            assert rawhttp.get(server.http, "/v2/health/ready").status == 400
        with KINDS[kind](made.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
            assert rawhttp.get(server.http, "/v2/health/ready").status == 200
