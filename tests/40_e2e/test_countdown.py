"""The lines by which people follow a server that stops: once a second, what it waits for, in the same words in both servers."""

import re
import threading
from pathlib import Path

import pytest
import witness
from conftest import BOTH
from harness import rawgrpc, rawhttp
from harness.metrics import scrape
from harness.servers import HOST, KINDS, Server
from witness import Board, backend, board

pytestmark = pytest.mark.threadless

REQUESTS = 6
LONG = "120"  # seconds that the server has to stop
BUSY = r"Timeout (\d+): Found 1 model versions that have in-flight inferences\"?\n.*Model 'slow' \(version 1\) has \d in-flight inferences"
LIVE = r"Timeout (\d+): Found 1 live models and 0 in-flight non-inference requests\"?\n.*slow v1: UNLOADING"
CONNECTIONS = r"Timeout (\d+): Found 1 HTTP service connections"
CALLERS = r"Timeout (\d+): Found [1-9] gRPC service connections"  # the reference counts those of HTTP alone
OVER = r"Timeout \d+: Found 0 live models and 0 in-flight non-inference requests"


def asked(server: Server) -> float:
    """How many requests wait for the model."""
    return 1 + scrape(server.metrics)["nv_inference_pending_request_count"].value(model="slow")


def told(server: Server, line: str) -> list[int]:
    """Seconds that were left by each such line."""
    return [int(seconds) for seconds in re.findall(line, server.process.log())]


def wait_for(server: Server, line: str) -> None:
    """Until the line came in three different seconds, each with fewer left."""
    server.process.wait_until(lambda: len(set(told(server, line))) >= 3, 110)
    seconds = told(server, line)
    assert seconds == sorted(seconds, reverse=True) and seconds[0] <= int(LONG)


@pytest.mark.parametrize("kind", BOTH)
def test_what_is_waited_for_is_told_every_second(kind: str, board: Board, backend: Path) -> None:
    """The reference counts what waits in the queue, this server what is executed as well: there is some of both."""
    board.model("slow", gated=True, kept_in=True, batch=1, extra="dynamic_batching { }")
    options = {"backend-directory": str(backend), "log-verbose": "1", "exit-timeout-secs": LONG}
    server = KINDS[kind](board.repository.path, options).start()
    answered: list[str] = []

    def ask() -> None:
        with rawgrpc.Channel(server.grpc) as channel:
            answered.append(channel.call("ModelInfer", rawgrpc.infer_request("slow", [("INPUT0", "INT32", [1, 1], bytes(4))]), timeout=110).code)

    asking = [threading.Thread(target=ask) for _ in range(REQUESTS)]
    try:
        for each in asking:
            each.start()
        server.process.wait_until(lambda: board.executions() == 1 and asked(server) == REQUESTS, 60)
        server.process.terminate()
        wait_for(server, BUSY)
        if kind == "nereid":
            wait_for(server, CALLERS)
        board.open_gate()
        wait_for(server, LIVE)
        assert "All models are stopped, unloading models" in server.process.log()
        board.open_exit()
        server.process.wait_until(lambda: re.search(OVER, server.process.log()) is not None, 60)
        for each in asking:
            each.join(60)
            assert not each.is_alive()
        if kind == "nereid":
            assert answered == ["OK"] * REQUESTS
            server.process.ends(0)
            server.stop()
    finally:
        board.open_gate()
        board.open_exit()
        server.kill()


@pytest.mark.parametrize("kind", BOTH)
def test_connections_are_told_of_every_second(kind: str, board: Board, backend: Path) -> None:
    """One over HTTP, whose request is under way."""
    board.model("slow", gated=True)
    server = KINDS[kind](board.repository.path, {"backend-directory": str(backend), "exit-timeout-secs": LONG}).start()
    try:
        with rawhttp.Connection(HOST, server.http_port) as connection:
            connection.send(rawhttp.head("POST", "/v2/models/slow/infer", body=witness.BODY), witness.BODY)
            server.process.wait_until(lambda: board.executions() == 1, 60)
            server.process.terminate()
            wait_for(server, CONNECTIONS)
            board.open_gate()
            if kind == "nereid":
                assert connection.answer().status == 200
                server.process.ends(0)
                server.stop()
    finally:
        board.open_gate()
        server.kill()
