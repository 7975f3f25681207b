"""What a small request costs server and stub with a python model, beside the compiled backend and the reference: CPU time and rate,
printed, not judged (docs/internals/python.md). Every request has to be answered.

The servers are asked by turns, so that what else the machine does meets both."""

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import pytest
from conftest import ALL, make_server, ready_with
from harness import procfs
from harness.servers import Server

CONNECTIONS = 16
REQUESTS = 60  # of each connection in each turn
TURNS = 5
BODY = json.dumps({"inputs": [{"name": "IN_FP32", "datatype": "FP32", "shape": [1, 16], "data": list(range(16))}]})


@pytest.fixture(scope="module")
def servers(python_backends: dict[str, Path], repository: Path) -> Iterator[dict[str, Server]]:
    options = {"model-control-mode": "explicit", "load-model": "identity_numbers", "log-verbose": "0"}
    made = {kind: make_server(kind, python_backends, repository, options) for kind in ALL}
    for server in made.values():
        server.start()
    for server in made.values():
        ready_with(server, ["identity_numbers"])
    yield made
    for server in made.values():
        server.stop(seconds=150)


def ask(server: Server) -> None:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    for _ in range(REQUESTS):
        connection.request("POST", "/v2/models/identity_numbers/infer", BODY, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
    connection.close()


def used(server: Server) -> int:
    """CPU time of a server and its stubs, in ns."""
    return sum(procfs.cpu_ns(pid) for pid in (server.pid, *procfs.children(server.pid)))


def turn(server: Server) -> tuple[float, float]:
    """Microseconds of CPU time a request, requests a second."""
    cpu, begun = used(server), time.monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(ask, [server] * CONNECTIONS))
    count = CONNECTIONS * REQUESTS
    return (used(server) - cpu) / 1000 / count, count / (time.monotonic() - begun)


@pytest.mark.reference
def test_cost_of_small_requests(servers: dict[str, Server], capsys: pytest.CaptureFixture[str]) -> None:
    turns: dict[str, list[tuple[float, float]]] = {kind: [] for kind in servers}
    for server in servers.values():
        turn(server)
    for _ in range(TURNS):
        for kind, server in servers.items():
            turns[kind].append(turn(server))
    cpu = {kind: median(each[0] for each in of) for kind, of in turns.items()}
    rate = {kind: median(each[1] for each in of) for kind, of in turns.items()}
    with capsys.disabled():
        for kind in turns:
            print(f"\n  {kind:10} {cpu[kind]:7.1f} us of CPU time a request, {rate[kind]:7.0f} requests a second", end="")
        print(f"\n  CPU time: {cpu['nereid'] / cpu['reference']:.2f} of the reference's; rate: {rate['nereid'] / rate['reference']:.2f}")
