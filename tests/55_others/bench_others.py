"""Networks that others made, as bare files without a configuration, in this server and in the reference with the same backend: requests a
second, the slowest hundredth of answers, and CPU time, for 4 and 16 clients over HTTP (wrk) and gRPC (h2load). Printed, not judged. By hand:

    build/venv/bin/python -m pytest -s tests/55_others/bench_others.py [-k NAME]

The servers are asked by turns, so that what else the machine does meets both; the medians of the turns' ratios count. Servers and clients
have all processors: where a network computes for milliseconds, what a client takes is little."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from harness import paths
from harness.loads import H2load, Turn, Wrk, as_grpc, as_http, compared, turn
from harness.repository import Repository
from harness.servers import Server, serving
from test_others import EXPLICIT, FILES, OTHERS, ask, same

pytestmark = pytest.mark.reference
NETWORKS = ["file_type", "objects", "text_places", "text", "text_turned"]
TURNS = int(os.environ.get("NEREID_BENCH_TURNS", "7"))
SECONDS = float(os.environ.get("NEREID_BENCH_SECONDS", "3"))  # of a turn


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    paths.need(FILES, "tools/setup.sh others")
    made = Repository(tmp_path_factory.mktemp("networks"))
    for name in NETWORKS:
        shutil.copy(FILES / OTHERS[name].file, made.model(name, None) / "1" / OTHERS[name].usual)
    with ExitStack() as stack:
        yield {kind: stack.enter_context(serving(kind, made.path, EXPLICIT | {"load-model": NETWORKS})) for kind in ("nereid", "reference")}


@pytest.mark.parametrize("clients", [4, 16])
@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("name", NETWORKS)
def test_beside_the_reference(
    servers: dict[str, Server], name: str, protocol: str, clients: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = OTHERS[name].inputs(np.random.default_rng(1))
    answers = [ask(server, protocol, name, inputs) for server in servers.values()]
    same(answers[0], answers[1], OTHERS[name].tolerance)
    wrk, h2load = Wrk(tmp_path, *as_http(inputs)), H2load(tmp_path, as_grpc(name, inputs))

    def asks(server: Server, rate: float) -> Turn:
        return turn(server, lambda: wrk.run(server, name, clients, SECONDS) if protocol == "http" else h2load.run(server, clients, 1, SECONDS, rate))

    rates = {kind: asks(server, clients).rate for kind, server in servers.items()}
    turns: dict[str, list[Turn]] = {kind: [] for kind in servers}
    for i in range(TURNS):
        for kind in sorted(servers, reverse=bool(i % 2)):
            turns[kind].append(asks(servers[kind], rates[kind]))

    told = [compared(what, unit, turns["nereid"], turns["reference"]) for what, unit in (("rate", "/s"), ("p99", "ms"), ("cpu", "ms"))]
    with capsys.disabled():
        print(f"\n{name:11} {protocol} {clients:2}   " + "   ".join(told), end="")
