"""Clients that close their side of the connection behind a request, as `nc -N` does, and read: they get their answer."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Server

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


def _ask(server: Server, sent: bytes, answers: int) -> list[rawhttp.Answer]:
    with rawhttp.Connection(HOST, server.http_port) as connection:
        connection.send(sent)
        connection.socket.shutdown(socket.SHUT_WR)
        found = [connection.answer() for _ in range(answers)]
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
        assert connection.answer().status == 200


def test_one_that_asked_nothing(servers: list[Server]) -> None:
    for sent in (b"", b"GET /v2/health/li", _request()[:-1]):
        with rawhttp.Connection(HOST, servers[0].http_port) as connection:
            connection.send(sent)
            connection.socket.shutdown(socket.SHUT_WR)
            assert connection.closed()
