"""Clients that stall when the server stops: they are cut off in time, and the end is an orderly one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import h2frames as h2
from harness import http2, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server

INFER = f"/{rawgrpc.SERVICE}/ModelInfer"
SECONDS = 20  # the last of them are cut off five seconds before it is over
MINUTES = 600  # nobody waits for that: who stalls is given up before
SHORT = 40  # than the minute that half a frame has where the server does not stop
COUNT = 4 << 20  # elements: 16 MiB, more than the sockets between take


@pytest.fixture
def stopping(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    repository = Repository(tmp_path / "models")
    repository.identity("fast")
    server = Nereid(repository.path, {"exit-timeout-secs": str(getattr(request, "param", SECONDS))}).start()
    try:
        yield server
    finally:
        server.kill()


def _binary() -> tuple[bytes, dict[str, str]]:
    tensor = b'{"name":"INPUT0","datatype":"FP32","shape":[%d],"parameters":{"binary_data_size":%d}}' % (COUNT, 4 * COUNT)
    text = b'{"inputs":[' + tensor + b'],"parameters":{"binary_data_output":true}}'
    return text + bytes(4 * COUNT), {"Inference-Header-Content-Length": str(len(text))}


def _http_client_that_takes_nothing(server: Server) -> rawhttp.Connection:
    body, headers = _binary()
    connection = rawhttp.Connection(HOST, server.http_port)
    connection.send(rawhttp.head("POST", "/v2/models/fast/infer", headers, body), body)
    assert connection.socket.recv(1) == b"H"  # the answer has begun
    return connection


def _http_client_in_the_middle_of(server: Server, *parts: bytes) -> rawhttp.Connection:
    connection = rawhttp.Connection(HOST, server.http_port)
    connection.send(*parts)
    return connection


def test_http_clients(stopping: Server) -> None:
    """One takes nothing of its answer, others are in the middle of a body and of a head. The end comes with status 0, so before
    --exit-timeout-secs is over."""
    held = [
        _http_client_that_takes_nothing(stopping),
        _http_client_in_the_middle_of(stopping, rawhttp.head("POST", "/v2/models/fast/infer", {"Content-Length": "1000"}), b"{"),
        _http_client_in_the_middle_of(stopping, b"GET /v2/health/li"),
    ]
    assert rawhttp.get(stopping.http, "/v2/health/live").status == 200
    stopping.stop()
    for connection in held:
        connection.close()


def _grpc_client_whose_window_is_shut(server: Server) -> h2.Connection:
    raw = np.zeros(COUNT, dtype="<f4").tobytes()
    body = h2.message(rawgrpc.infer_request("fast", [("INPUT0", "FP32", [COUNT], raw)]).SerializeToString())
    connection = h2.Connection(server.grpc, initial={h2.INITIAL_WINDOW_SIZE: 100})
    connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.header_block(h2.call_headers(INFER))))
    for at in range(0, len(body), 16384):
        last = at + 16384 >= len(body)
        connection.send(h2.frame(h2.DATA, h2.END_STREAM if last else 0, 1, body[at : at + 16384]))
    while not connection.calls or not connection.calls[1].data:
        connection.read()
    return connection


HEADERS = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.header_block(h2.call_headers(INFER)))
REQUEST = h2.message(rawgrpc.infer_request("fast", [("INPUT0", "FP32", [2], bytes(8))]).SerializeToString())


def _grpc_client_that_sent(server: Server, *parts: bytes) -> h2.Connection:
    connection = h2.Connection(server.grpc)
    connection.send(*parts, h2.frame(h2.PING, 0, 0, b"received"))
    while not any(each.kind == h2.PING and each.flags & h2.ACK for each in connection.frames):
        connection.read()
    return connection


def _grpc_client_without_its_message(server: Server) -> h2.Connection:
    return _grpc_client_that_sent(server, HEADERS, h2.frame(h2.DATA, 0, 1, b"\0\0\0\1\0half"))


def _grpc_client_with_headers_only(server: Server) -> h2.Connection:
    return _grpc_client_that_sent(server, HEADERS)


def _grpc_client_without_an_end(server: Server) -> h2.Connection:
    return _grpc_client_that_sent(server, HEADERS, h2.frame(h2.DATA, 0, 1, REQUEST))


class Halted(http2.Connection):
    """In the middle of a frame: it also answers no PING, which would become part of that."""

    def _reply(self, data: bytes) -> None:
        pass


def _grpc_client_with_half_a_frame(server: Server) -> h2.Connection:
    connection = Halted(server.grpc, timeout=SHORT)
    connection.settle()
    connection.send(HEADERS[:40])
    return connection


def test_grpc_clients(stopping: Server) -> None:
    """One has shut its window, one never sends its message; each on a connection of its own."""
    held = [_grpc_client_whose_window_is_shut(stopping), _grpc_client_without_its_message(stopping)]
    stopping.stop()
    for connection in held:
        connection.close()


def _http2_client_with_half_a_frame(server: Server) -> h2.Connection:
    connection = Halted(server.http, timeout=SHORT)
    connection.settle()
    connection.send(http2.head(1, http2.fields("GET", "/v2/health/live"))[:40])
    return connection


def _http2_client_without_its_body(server: Server) -> h2.Connection:
    connection = http2.Connection(server.http)
    head = http2.head(1, http2.fields("POST", "/v2/models/fast/infer", {"content-length": "100"}))
    connection.send(head, h2.frame(h2.DATA, 0, 1, b"{"))
    return connection


@pytest.mark.parametrize("stopping", [MINUTES], indirect=True)
@pytest.mark.parametrize(
    "stalled, status",
    [
        (_http2_client_with_half_a_frame, None),
        (_http2_client_without_its_body, None),
        (_grpc_client_with_half_a_frame, None),
        (_grpc_client_with_headers_only, "14"),
        (_grpc_client_without_its_message, "14"),
        (_grpc_client_without_an_end, "14"),
        (_grpc_client_whose_window_is_shut, None),
    ],
)
def test_a_client_that_stalls(stopping: Server, stalled: Callable[[Server], h2.Connection], status: str | None) -> None:
    """It has five seconds, not the ten minutes that there are for requests under way. Whoever can be told why is told."""
    with stalled(stopping) as connection:
        stopping.process.terminate()
        connection.finish_by_connection()
        stopping.process.ends(0)
        call = connection.calls.get(1, h2.Call())
        if status:
            assert (call.trailers["grpc-status"], call.trailers["grpc-message"]) == (status, "the server is stopping")
