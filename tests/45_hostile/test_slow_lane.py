"""Connections that take more turns than they give work are served behind the others, and come back once they send a request."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator

import pytest

import lanes
from harness import h2frames as h2
from harness import http2, procfs, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server

PATH = "/v2/models/id_fp32/infer"
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[7]}]}'
REQUEST = rawhttp.head("POST", PATH, body=BODY) + BODY
CALL = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelInfer"))
COUNT = 20


@pytest.fixture
def server(identity_repository: Repository) -> Iterator[Server]:
    with Nereid(identity_repository, {"log-info": "false"}) as it:
        yield it


def is_served(connection: rawhttp.Connection, rest: bytes) -> None:
    connection.send(rest)
    got = connection.answer()
    assert got.status == 200 and got.json()["outputs"][0]["data"] == [7]


def http(server: Server) -> rawhttp.Connection:
    return rawhttp.Connection("127.0.0.1", server.http_port)


def is_read(server: Server, port: int) -> None:
    """Waits until the server has read all that it was sent: what follows is a turn of its own."""
    server.process.wait_until(lambda: procfs.unread(port) == 0, 60, period=0.001)


def in_line(sockets: list[socket.socket], text: bytes, server: Server, count: int) -> int:
    """Sends a byte after the other of `text` on each until so many of them are in a slow lane; how many bytes that took."""
    sent = 0
    while len(lanes.members(server.pid)) < count:
        assert sent < len(text), "none is moved to the slow lane"
        for each in sockets:
            each.sendall(text[sent : sent + 1])
        is_read(server, server.http_port)
        sent += 1
    return sent


@pytest.mark.parametrize("begun", [b"", rawhttp.head("POST", PATH, body=BODY)], ids=["head", "body"])
def test_http_bytes_one_by_one(server: Server, begun: bytes) -> None:
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(http(server)) for _ in range(COUNT)]
        for each in slow:
            each.send(begun)
        left = (REQUEST[len(begun) :])[:-1]
        sent = in_line([each.socket for each in slow], left, server, COUNT)
        is_served(stack.enter_context(http(server)), REQUEST)
        for each in slow:
            is_served(each, left[sent:] + REQUEST[-1:])
        lanes.wait_for(server.pid, lambda now: not now, "all have sent a request")
        for each in slow:
            is_served(each, REQUEST)


def test_new_connections(server: Server) -> None:
    """They are served behind those that have been served before, until they have been served themselves."""
    with contextlib.ExitStack() as stack:
        over_http = [stack.enter_context(http(server)) for _ in range(COUNT)]
        over_grpc = [stack.enter_context(h2.Connection(server.grpc)) for _ in range(COUNT)]
        lanes.wait_for(server.pid, lambda now: len(now) == 2 * COUNT, "all begin there", slow=False)
        for each in over_http:
            is_served(each, REQUEST)
        for each in over_grpc:
            call(each, 1)
        lanes.wait_for(server.pid, lambda now: not now, "all were served", slow=False)


CHUNK = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
CHUNKED = rawhttp.head("POST", PATH, {"Transfer-Encoding": "chunked"})
LAST_CHUNK = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


def test_bodies_whose_end_nobody_knows(server: Server) -> None:
    """Where chunks come from many at once they are received behind everything else, until their message is complete."""
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(http(server)) for _ in range(4 * (os.cpu_count() or 1) + 1)]
        for each in many:
            each.send(CHUNKED)
        sent = 0
        while not lanes.members(server.pid):
            assert sent < 64, "none is moved to the slow lane"
            for each in many:
                each.send(CHUNK)
                is_read(server, server.http_port)
            sent += 1
        many[0].send(CHUNK * 600)  # longer than any piece that the body grows by
        for each in many:
            is_served(each, LAST_CHUNK)
        lanes.wait_for(server.pid, lambda now: not now, "all have sent a request")
        for each in many:
            is_served(each, REQUEST)


def test_one_upload_in_chunks_beside_dormant_ones(server: Server) -> None:
    """It is not taken for one of many because others stopped in the middle of theirs."""
    with contextlib.ExitStack() as stack:
        for dormant in [stack.enter_context(http(server)) for _ in range(COUNT)]:
            dormant.send(CHUNKED + CHUNK)
        is_read(server, server.http_port)
        uploading = stack.enter_context(http(server))
        uploading.send(CHUNKED)
        for _ in range(30):
            uploading.send(CHUNK)
            is_read(server, server.http_port)
        assert not lanes.members(server.pid)
        is_served(uploading, LAST_CHUNK)


def test_who_says_that_it_closes_is_no_stranger(server: Server) -> None:
    """Not even with a body, if it is a short one, that its route has no use for."""
    text = rawhttp.head("GET", "/v2/health/live", {"Connection": "close"}, b"{}") + b"{}"
    for _ in range(100):
        with http(server) as client:
            client.send(text)
            assert client.answer().status == 200
    assert not lanes.members(server.pid)


def message() -> bytes:
    return h2.message(rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], bytes(4))]).SerializeToString())


def call(connection: h2.Connection, stream: int) -> None:
    connection.send(
        h2.frame(h2.HEADERS, h2.END_HEADERS, stream, CALL) + h2.frame(h2.DATA, h2.END_STREAM, stream, message())
    )
    assert connection.finish(stream).trailers["grpc-status"] == "0"


def ask(connection: h2.Connection, stream: int) -> None:
    """The same of HTTP."""
    body = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[1]}]}'
    connection.send(http2.request(stream, "POST", "/v2/models/id_fp32/infer", body))
    assert connection.finish(stream).headers[":status"] == "200"


# What asks on each port that speaks HTTP/2, and what opens a stream there whose body is to come.
ASKING = {"grpc": call, "http": ask}
OPENING = {"grpc": CALL, "http": h2.header_block(http2.fields("POST", "/v2/models/id_fp32/infer"))}


TRIFLES: dict[str, Callable[[int, bytes], bytes]] = {
    "unknown frames": lambda _, __: h2.frame(0x42, 0, 0, b"12345678"),
    "resets": lambda i, block: h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * i + 5, block)
    + h2.frame(h2.RST_STREAM, 0, 2 * i + 5, bytes(4)),
    "empty data": lambda _, __: h2.frame(h2.DATA, 0, 3),
    "a byte of a message": lambda _, __: h2.frame(h2.DATA, 0, 3, b"\0"),
    "small windows": lambda _, __: h2.frame(h2.WINDOW_UPDATE, 0, 0, bytes([0, 0, 0, 1])),
}


@pytest.mark.parametrize("port", ASKING)
@pytest.mark.parametrize("kind", TRIFLES)
def test_frames_for_nothing(server: Server, kind: str, port: str) -> None:
    """None of it is an error, nor so much that a limit is reached."""
    number = getattr(server, f"{port}_port")
    with h2.Connection(getattr(server, port)) as flooding:
        ASKING[port](flooding, 1)
        flooding.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 3, OPENING[port]))
        assert not lanes.members(server.pid)
        sent = 0
        while not lanes.members(server.pid):
            assert sent < 500, "it is not moved to the slow lane"
            flooding.send(TRIFLES[kind](sent, OPENING[port]))
            is_read(server, number)
            sent += 1
        ASKING[port](flooding, 2001)
        lanes.wait_for(server.pid, lambda now: not now, "it has sent a request")
        ASKING[port](flooding, 2003)


def test_messages_in_pieces_are_work(server: Server) -> None:
    """A large message in frames of some size is no trifle, however long it takes."""
    values = 40_000
    body = h2.message(
        rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [values], bytes(4 * values))]).SerializeToString()
    )
    with h2.Connection(server.grpc) as uploading:
        call(uploading, 1)
        uploading.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 3, CALL))
        pieces = [body[at : at + 1000] for at in range(0, len(body), 1000)]
        for piece in pieces[:-1]:
            uploading.send(h2.frame(h2.DATA, 0, 3, piece))
        assert not lanes.members(server.pid)
        uploading.send(h2.frame(h2.DATA, h2.END_STREAM, 3, pieces[-1]))
        assert uploading.finish(3).trailers["grpc-status"] == "0"


@pytest.mark.parametrize("all_at_once", [False, True], ids=["window after call", "calls, then windows"])
def test_interleaved_messages_are_work(server: Server, all_at_once: bool) -> None:
    """Many calls on one connection, each with a window of its own: what opens them is made up for by what they bring."""
    calls, values = 150, 10_000
    body = h2.message(rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [values], bytes(4 * values))]).SerializeToString())
    streams = range(3, 3 + 2 * calls, 2)
    with h2.Connection(server.grpc, initial={h2.INITIAL_WINDOW_SIZE: 1 << 20}) as uploading:
        call(uploading, 1)
        opened = [h2.frame(h2.HEADERS, h2.END_HEADERS, stream, CALL) for stream in streams]
        windows = [h2.frame(h2.WINDOW_UPDATE, 0, stream, bytes([0, 1, 0, 0])) for stream in streams]
        if all_at_once:
            uploading.send(b"".join(opened) + b"".join(windows))
        else:
            uploading.send(b"".join(each for pair in zip(opened, windows, strict=True) for each in pair))
            is_read(server, server.grpc_port)
            assert not lanes.members(server.pid)
        for at in range(0, len(body), 16384):
            piece = body[at : at + 16384]
            flags = h2.END_STREAM if at + 16384 >= len(body) else 0
            for stream in streams:
                uploading.send(h2.frame(h2.DATA, flags, stream, piece))
            if not flags:
                is_read(server, server.grpc_port)
                assert not lanes.members(server.pid)
        for stream in streams:
            assert uploading.finish(stream).trailers["grpc-status"] == "0"


def test_pings_end_with_one_too_many(server: Server) -> None:
    """What is behind the ping that was one too many is not looked at: no answer comes to it."""
    ping = h2.frame(h2.PING, 0, 0, bytes(8))
    with h2.Connection(server.grpc) as flooding:
        flooding.send(ping * 100)
        with contextlib.suppress(ConnectionError):
            flooding.finish_by_connection()
        answered = sum(frame.kind == h2.PING and bool(frame.flags & h2.ACK) for frame in flooding.frames)
        assert answered <= 4


STRANGERS = {"nothing": b"", "a body that nobody wants": rawhttp.head("POST", "/nothing", {"Transfer-Encoding": "chunked"})}


@pytest.mark.parametrize("sent", STRANGERS)
def test_strangers(server: Server, sent: str) -> None:
    """Where many came and went without a request, new ones are accepted behind everything else; not after some good ones."""

    def come_and_go() -> None:
        with contextlib.ExitStack() as stack:
            for stranger in [stack.enter_context(http(server)) for _ in range(COUNT)]:
                if STRANGERS[sent]:
                    stranger.send(STRANGERS[sent])
                    assert stranger.answer().status == 404

    for _ in range(100):
        come_and_go()
        is_read(server, server.http_port)  # and each is accepted
        if lanes.members(server.pid):
            break
    else:
        raise AssertionError("accepting goes on as before")
    for _ in range(10):
        with contextlib.ExitStack() as stack:  # at the same time, so that each loop has some of them
            for client in [stack.enter_context(http(server)) for _ in range(COUNT)]:
                is_served(client, REQUEST)
    lanes.wait_for(server.pid, lambda now: not now, "good clients came")
