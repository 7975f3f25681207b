"""Clients that close their side of the connection behind a request, as `nc -N` does, and read: they get their answer. Those that close all
of it are found out, and what they asked for is not executed."""

import http.client
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import witness
from harness import rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server
from witness import Board, backend, board

BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}'
# Nothing is executed before the first request of the queue has waited so long: the end of what the client sends comes before.
LATER = "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 300000 }"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    repository = Repository(tmp_path_factory.mktemp("half") / "models")
    repository.identity("later", max_batch_size=8, extra=LATER)
    made = [kind(repository.path) for kind in KINDS.values()]
    with made[0], made[1]:
        yield made


def _request(**headers: str) -> bytes:
    return rawhttp.head("POST", "/v2/models/later/infer", headers, BODY) + BODY


def _answer(connection: rawhttp.Connection) -> rawhttp.Answer:
    """Past the question whether the client is still there, which one hears that waits for a second."""
    while (answer := connection.answer()).status == 100:
        pass
    return answer


def _ask(server: Server, sent: bytes, answers: int) -> list[rawhttp.Answer]:
    with rawhttp.Connection(HOST, server.http_port) as connection:
        connection.send(sent)
        connection.socket.shutdown(socket.SHUT_WR)
        found = [_answer(connection) for _ in range(answers)]
        assert connection.closed()
        return found


@pytest.mark.reference
@pytest.mark.parametrize("headers", [{}, {"Connection": "close"}], ids=str)
def test_a_request_that_waits(servers: list[Server], headers: dict[str, str]) -> None:
    for server in servers:
        (answer,) = _ask(server, _request(**headers), 1)
        assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [1.0, 2.0], server.kind


@pytest.mark.parametrize("rest", [b"", b"GET /v2", _request()[:-1], rawhttp.head("POST", "/v2/models/later/infer", {"Content-Length": "99999"})])
def test_several_and_one_that_is_cut(servers: list[Server], rest: bytes) -> None:
    """What is not whole gets no answer, what was whole does. (The reference takes one request at a time.)"""
    for answer in _ask(servers[0], _request() * 5 + rest, 5):
        assert answer.status == 200


def test_the_metrics_page(servers: list[Server]) -> None:
    with rawhttp.Connection(HOST, servers[0].metrics_port) as connection:
        connection.send(rawhttp.head("GET", "/metrics"))
        connection.socket.shutdown(socket.SHUT_WR)
        assert _answer(connection).status == 200


def test_one_that_asked_nothing(servers: list[Server]) -> None:
    for sent in (b"", b"GET /v2/health/li", _request()[:-1]):
        with rawhttp.Connection(HOST, servers[0].http_port) as connection:
            connection.send(sent)
            connection.socket.shutdown(socket.SHUT_WR)
            assert connection.closed()


# Past this the system of a client that closed all of its connection would say so without having been asked.
UNASKED = 45
GATED = rawhttp.head("POST", "/v2/models/slow/infer", body=witness.BODY) + witness.BODY


@pytest.fixture
def gated(board: Board, backend: Path) -> Iterator[Server]:
    """A server whose only instance waits at the gate with one request."""
    board.model("slow", gated=True)
    server = Nereid(board.repository.path, {"backend-directory": str(backend)}).start()
    first = threading.Thread(target=lambda: witness.try_to_ask(server, "slow"))
    first.start()
    try:
        server.process.wait_until(lambda: board.executions() == 1, 60)
        yield server
    finally:
        board.open_gate()
        first.join(60)
        server.stop()
    assert not first.is_alive()


def _waiting(server: Server) -> int:
    page = rawhttp.get(server.metrics, "/metrics").body.decode()
    return int(float(next(line.split()[-1] for line in page.splitlines() if line.startswith('nv_inference_pending_request_count{model="slow"'))))


@pytest.mark.parametrize(("how", "behind"), [("closed", 0), ("closed", 63), ("closed", 64), ("closed", 500), ("reset", 0), ("reset", 500)])
def test_what_a_client_that_is_gone_asked_for_is_not_executed(gated: Server, board: Board, how: str, behind: int) -> None:
    """It leaves the queue while the model is busy, also where no more of what its client has sent behind it is read."""
    with rawhttp.Connection(HOST, gated.http_port) as client:
        client.send(GATED + behind * rawhttp.head("GET", "/v2/health/live"))
        gated.process.wait_until(lambda: _waiting(gated) == 1, 60)
        if how == "reset":
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gated.process.wait_until(lambda: _waiting(gated) == 0, UNASKED)
    assert board.executions() == 1


def test_one_that_reads_on_is_asked_first(gated: Server, board: Board) -> None:
    """By an interim answer, which clients of HTTP/1.1 pass over; the other one comes as ever."""
    with rawhttp.Connection(HOST, gated.http_port) as client:
        client.send(GATED)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer().status == 100
        board.open_gate()
        assert client.answer().status == 200 and client.closed()


def test_a_usual_client_does_not_notice(gated: Server, board: Board) -> None:
    client = http.client.HTTPConnection(HOST, gated.http_port, timeout=60)
    client.request("POST", "/v2/models/slow/infer", witness.BODY)
    client.sock.shutdown(socket.SHUT_WR)
    with rawhttp.Connection(HOST, gated.http_port) as other:  # which is asked later than that one
        gated.process.wait_until(lambda: _waiting(gated) == 1, 60)
        other.send(GATED)
        other.socket.shutdown(socket.SHUT_WR)
        assert other.answer().status == 100
        board.open_gate()
        assert client.getresponse().status == 200
    client.close()
