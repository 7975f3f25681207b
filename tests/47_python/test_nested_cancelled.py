"""Models that ask themselves (BLS) until no instance is left: what they wait for ends with the client that it is for."""

import json
from collections.abc import Iterator
from pathlib import Path

import catalog
import pytest
from asks import Asker, words
from conftest import make_server, ready_with
from harness import rawhttp
from harness.repository import Repository
from harness.servers import HOST, Server

INSTANCES = 2
DEEPER = "/".join(["asks_itself"] * INSTANCES + ["state/end"])  # each instance waits for another one


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, python_backends: dict[str, Path]) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("nested") / "models")
    instances = f"instance_group [ {{ count: {INSTANCES} kind: KIND_CPU }} ]\n"
    for name, source, more in (("asks_itself", "bls_plain", instances), ("state", "state", "")):
        config = (catalog.config_of("state") or "").replace('name: "state"\n', "")
        folder = repository.model(name, config + more)
        (folder / "1" / "model.py").write_text((catalog.SOURCES / f"{source}.py").read_text())
    served = make_server("nereid", python_backends, repository.path, {"model-control-mode": "explicit", "load-model": "*"})
    served.start()
    ready_with(served, ["asks_itself", "state"])
    yield served
    served.stop(seconds=150)


@pytest.mark.parametrize("client", ["grpc", "http"])
def test_requests_to_itself_end_with_the_client(server: Server, client: str) -> None:
    asker = Asker(server)

    def waits() -> bool:
        return asker.metric("nv_inference_pending_request_count", "asks_itself") == 1

    if client == "grpc":
        call = asker.start("asks_itself", {"ASK": words(DEEPER)})
        asker.until(waits)
        call.cancel()
    else:
        body = {"inputs": [{"name": "ASK", "datatype": "BYTES", "shape": [1], "data": [DEEPER]}]}
        with rawhttp.Connection(HOST, server.http_port) as connection:
            connection.send(rawhttp.head("POST", "/v2/models/asks_itself/infer", body=json.dumps(body).encode()), json.dumps(body).encode())
            asker.until(waits)
    assert str(asker.told("asks_itself", "state/end")).startswith("state(")
    asker.close()
