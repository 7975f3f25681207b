"""Connections of all front ends share the descriptors that the process may open: a reserve stays for the rest of the server, and a share
for each front end, however many connections the others have."""

import re
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from harness import procfs, rawhttp
from harness.h2frames import PREFACE, settings
from harness.repository import Repository
from harness.servers import HOST, Nereid

LIMIT = 400
RESERVE = 128
MORE = 330  # connections than there is room for
SLACK = 32  # descriptors that were opened between the start and the look: listeners, questions whether it is ready


class Narrow(Nereid):
    """May open few descriptors."""

    def program(self) -> list[str]:
        return ["/bin/sh", "-c", f'ulimit -n {LIMIT} && exec "$@"', "sh", *super().program(), "--loop-threads=2"]


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Narrow]:
    made = Repository(tmp_path / "models")
    made.identity("one")
    made.identity("two")
    with Narrow(made.path, {"model-control-mode": "explicit", "load-model": "one"}) as server:
        yield server


def _is_served(connection: socket.socket, question: bytes) -> bool:
    try:
        connection.sendall(question)
        answer = connection.recv(4096)
    except ConnectionError:
        return False
    return bool(answer) and not answer.startswith(b"HTTP/1.1 503")


@contextmanager
def _crowd(port: int, question: bytes) -> Iterator[int]:
    """Many idle connections; how many of them are served."""
    with ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection((HOST, port), timeout=60)) for _ in range(MORE)]
        yield sum([_is_served(each, question) for each in crowd])
        for each in crowd:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


HTTP = rawhttp.head("GET", "/v2/health/live")
GRPC = PREFACE + settings()


def _told(port: int) -> bytes:
    """What a connection is told that says nothing."""
    with socket.create_connection((HOST, port), timeout=60) as connection:
        return connection.recv(4096)


def _shared(narrow: Narrow) -> tuple[int, int]:
    """Open connections beyond the share of each front end, and how many there may be."""
    page = rawhttp.get(narrow.metrics, "/metrics").body.decode()
    taken, limit = (re.search(rf"^nereid_connections_shared{name} (\d+)$", page, re.MULTILINE) for name in ("", "_limit"))
    assert taken and limit, page
    return int(taken[1]), int(limit[1])


def test_a_crowd_at_one_door_leaves_the_others_open(narrow: Narrow) -> None:
    before = len(procfs.links(narrow.pid))
    room = LIMIT - RESERVE - before
    taken, limit = _shared(narrow)
    assert taken == 0 and 0 < limit < room
    with _crowd(narrow.http_port, HTTP) as http:
        assert 0 < http <= room
        assert _shared(narrow) == (limit, limit), "what alerts are made of says that connections are refused"
        assert _told(narrow.http_port).startswith(b"HTTP/1.1 503 ")
        with _crowd(narrow.grpc_port, GRPC) as grpc:
            assert grpc >= room // 8, "the share of gRPC"
            assert http + grpc <= room + SLACK, "the reserve"
            assert _told(narrow.http_port).startswith(b"HTTP/1.1 503 ")
            assert rawhttp.get(narrow.metrics, "/metrics").status == 200
            assert len(procfs.links(narrow.pid)) <= LIMIT - RESERVE + SLACK
    assert "Too many open files" not in narrow.process.log()
    assert f"open on port {narrow.http_port}, and this process may open {LIMIT} files: raise the limit (ulimit -n 65536, " in narrow.process.log()
    narrow.process.wait_until(narrow.ready, 60)


def test_models_load_while_a_crowd_is_there(narrow: Narrow) -> None:
    before = len(procfs.links(narrow.pid))
    with rawhttp.Connection(HOST, narrow.http_port) as operator:
        assert operator.ask("GET", "/v2/health/ready").status == 200
        with _crowd(narrow.grpc_port, GRPC) as grpc, _crowd(narrow.http_port, HTTP) as http:
            assert http >= (LIMIT - RESERVE - before) // 8 - 1, "the share of HTTP"
            assert grpc
            answer = operator.ask("POST", "/v2/repository/models/two/load", b"")
            assert answer.status == 200, answer.body
            assert operator.ask("GET", "/v2/models/two/ready").status == 200
    assert "Too many open files" not in narrow.process.log()
