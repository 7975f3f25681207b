"""Models that hold a resource of the rate limiter while they ask others (BLS). The reference can hang there: whoever is asked waits behind
whoever waits for the resource, though it needs nothing."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import catalog
import pytest
from conftest import make_server, ready_with
from harness import rawhttp
from harness.repository import Repository
from harness.servers import HOST, Server

LIMITED = 'instance_group [ { count: 1 kind: KIND_CPU rate_limiter { resources [ { name: "r" global: true count: 1 } ] } } ]\n'
OUTER = ("outer_one", "outer_two")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, python_backends: dict[str, Path]) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("limited") / "models")
    source = (catalog.SOURCES / "bls.py").read_text()
    config = (catalog.config_of("bls") or "").replace('name: "bls"\n', "")
    for name in OUTER:
        folder = repository.model(name, config + LIMITED)
        (folder / "1" / "model.py").write_text(source)
    repository.identity("inner")
    served = make_server("nereid", python_backends, repository.path, {"rate-limit": "execution_count", "model-control-mode": "explicit", "load-model": "*"})
    served.start()
    ready_with(served, list(OUTER))
    yield served
    served.stop(seconds=150, status=None)


def test_who_is_asked_does_not_wait_for_who_waits(server: Server) -> None:
    call: dict[str, Any] = {"model": "inner", "inputs": [["INPUT0", "float32", [1.5]]], "outputs": ["OUTPUT0"]}
    body = json.dumps({"inputs": [{"name": "ASK", "datatype": "BYTES", "shape": [1], "data": [json.dumps(call)]}]}).encode()

    def ask(name: str) -> Any:
        with rawhttp.Connection(HOST, server.http_port, timeout=120) as connection:
            got = connection.ask("POST", f"/v2/models/{name}/infer", body)
        assert got.status == 200, got.body
        return json.loads(got.json()["outputs"][0]["data"][0])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, OUTER * 20)) == [{"OUTPUT0": [1.5]}] * 40
