"""What python models cost server and stubs together, beside the reference with its own backend: CPU time a request, and that of a start.
Printed with the rates, which are not judged. Every request has to be answered.

The servers are asked by turns, and the least of each counts: other work on the machine only adds, so there are further turns until the
ratio shows."""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from asks import Asker, words
from conftest import make_server, ready_with
from harness import paths, procfs
from harness.servers import Server

pytestmark = pytest.mark.reference
SMALL = 2 / 5  # of the reference's
NESTED = 1 / 2
STREAMS = 1 / 2
START = 1 / 2
TURNS = 10
NUMBERS = np.arange(16, dtype=np.float32).reshape(1, 16)
BODY = json.dumps({"inputs": [{"name": "IN_FP32", "datatype": "FP32", "shape": [1, 16], "data": list(range(16))}]})
FIFTY = {"IN": np.arange(50, dtype=np.int32), "WHERE": words("execute")}
MODELS = ["identity_numbers", "echo", "bls_plain", "repeat"]


@pytest.fixture(scope="module")
def servers(python_backends: dict[str, Path], repository: Path) -> Iterator[dict[str, Server]]:
    options = {"model-control-mode": "explicit", "load-model": MODELS, "log-verbose": "0"}
    made = {kind: make_server(kind, python_backends, repository, options) for kind in ("nereid", "reference")}
    for server in made.values():
        server.start()
    for server in made.values():
        ready_with(server, MODELS)
    yield made
    for server in made.values():
        server.stop(seconds=150)


def ask_http(server: Server, count: int) -> None:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    for _ in range(count):
        connection.request("POST", "/v2/models/identity_numbers/infer", BODY, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
    connection.close()


def asked_by(ask: Callable[[Asker], object], answer: object) -> Callable[[Server, int], None]:
    """A connection that asks over gRPC, and is answered so."""

    def work(server: Server, count: int) -> None:
        asker = Asker(server)
        for _ in range(count):
            told = ask(asker)
            assert told == answer, told
        asker.close()

    return work


ask_grpc = asked_by(lambda asker: asker.infer("identity_numbers", {"IN_FP32": NUMBERS})["OUT_FP32"][2], NUMBERS.tobytes())


@dataclass(frozen=True)
class Way:
    name: str
    ask: Callable[[Server, int], None]
    connections: int
    requests: int  # of each connection in each turn
    bound: float


WAYS = [
    Way("small-http", ask_http, 16, 60, SMALL),
    Way("one-http", ask_http, 1, 600, SMALL),
    Way("small-grpc", ask_grpc, 16, 40, SMALL),
    Way("one-grpc", ask_grpc, 1, 400, SMALL),
    Way("nested", asked_by(lambda asker: asker.told("bls_plain", "echo/x"), "echo(x)"), 4, 60, NESTED),
    Way("stream", asked_by(lambda asker: sum("OUT" in each for each in asker.stream("repeat", FIFTY)), 50), 4, 5, STREAMS),
]  # fmt: skip


def used(server: Server) -> int:
    """CPU time of a server and its stubs, in ns."""
    return sum(procfs.cpu_ns(pid) for pid in (server.pid, *procfs.children(server.pid)))


def turn(way: Way, server: Server) -> tuple[float, float]:
    """Microseconds of CPU time a request, requests a second."""
    cpu, begun = used(server), time.monotonic()
    with ThreadPoolExecutor(way.connections) as pool:
        list(pool.map(lambda _: way.ask(server, way.requests), range(way.connections)))
    count = way.connections * way.requests
    return (used(server) - cpu) / 1000 / count, count / (time.monotonic() - begun)


def judged(
    servers: dict[str, Server], measure: Callable[[Server], tuple[float, float]], bound: float
) -> tuple[dict[str, float], dict[str, float]]:
    """The least of the first number that is measured, and the most of the second, once the first's ratio is within the bound."""
    turns: dict[str, list[tuple[float, float]]] = {kind: [] for kind in servers}
    least: dict[str, float] = {}
    for _ in range(TURNS):
        for kind, server in servers.items():
            turns[kind].append(measure(server))
        least = {kind: min(each[0] for each in of) for kind, of in turns.items()}
        if least["nereid"] <= bound * least["reference"] or paths.BUILD.name != "release":  # sanitizers cost what they cost
            break
    else:
        raise AssertionError(f"{turns}: no ratio of {bound}")
    return least, {kind: max(each[1] for each in of) for kind, of in turns.items()}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_cost_of_requests(servers: dict[str, Server], way: Way, capsys: pytest.CaptureFixture[str]) -> None:
    for server in servers.values():
        turn(way, server)
    cpu, rate = judged(servers, lambda server: turn(way, server), way.bound)
    with capsys.disabled():
        print(
            f"\n  {way.name}: {cpu['nereid']:.1f} us of CPU time a request, {rate['nereid']:.0f} requests a second; "
            f"reference {cpu['reference']:.1f} us, {rate['reference']:.0f}: {cpu['nereid'] / cpu['reference']:.2f} of its CPU time",
            end="",
        )


def start(server: Server) -> tuple[float, float]:
    """Milliseconds of CPU time for the start of a model with nothing to do; starts a second, by the clock."""
    asker = Asker(server)
    stubs = len(procfs.children(server.pid))
    before, begun = used(server) + procfs.cpu_of_ended_ns(server.pid), time.monotonic()
    assert asker.load("empty")[0] == 200
    took, cpu = time.monotonic() - begun, used(server) + procfs.cpu_of_ended_ns(server.pid) - before
    assert asker.unload("empty")[0] == 200
    asker.until(lambda: len(procfs.children(server.pid)) == stubs)
    asker.close()
    return cpu / 1e6, 1 / took


def test_cost_of_a_start(servers: dict[str, Server], capsys: pytest.CaptureFixture[str]) -> None:
    cpu, rate = judged(servers, start, START)
    with capsys.disabled():
        print(
            f"\n  start: {cpu['nereid']:.0f} ms of CPU time, {1000 / rate['nereid']:.0f} ms; "
            f"reference {cpu['reference']:.0f}, {1000 / rate['reference']:.0f}: {cpu['nereid'] / cpu['reference']:.2f} of its CPU time",
            end="",
        )
