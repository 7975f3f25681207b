"""The limits of docs/user/request-limits.md to the byte: what is at a limit is taken, one more is not."""

import json

import pytest
from harness import h2frames as h2
from harness import rawgrpc, rawhttp
from harness.servers import HOST, Server

PATH = "/v2/models/id_fp32/infer"
TENSOR = {"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}
CHUNKED = {"Transfer-Encoding": "chunked"}
KIB, MIB = 1 << 10, 1 << 20


def _http(server: Server, *parts: bytes) -> int:
    with rawhttp.Connection(HOST, server.http_port) as connection:
        connection.send(*parts)
        return connection.answer().status


def _head(path: str = "/v2", count: int = 1, size: int = 0) -> bytes:
    """So many headers, the last of them as long as it takes for so many bytes in all."""
    first = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n" + "A: b\r\n" * (count - 2) + ("Z: " if count > 1 else "")
    rest = "\r\n\r\n" if count > 1 else "\r\n"
    return (first + "z" * (size - len(first) - len(rest)) + rest).encode()


def _infer(more: dict[str, object]) -> bytes:
    body = json.dumps({"inputs": [TENSOR]} | more).encode()
    return rawhttp.head("POST", PATH, body=body) + body


def _chunks(count: int) -> bytes:
    body = json.dumps({"inputs": [TENSOR]}).encode()
    body += b" " * (count - len(body))
    return rawhttp.head("POST", PATH, CHUNKED) + b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n"


def _extension(size: int) -> bytes:
    """A body in chunks whose lines between the contents have so many bytes."""
    body = json.dumps({"inputs": [TENSOR]}).encode()
    line = b"%x;" % len(body)
    last = b"0\r\n\r\n"
    return rawhttp.head("POST", PATH, CHUNKED) + line + b"x" * (size - len(line) - 2) + b"\r\n" + body + b"\r\n" + last


@pytest.mark.parametrize(
    ("most", "taken", "over", "status"),
    [
        (_head("/" + "x" * (16 * KIB - 1)), 404, _head("/" + "x" * (16 * KIB)), 414),
        (_head(count=256), 200, _head(count=257), 431),
        (_head(count=2, size=64 * KIB), 200, _head(count=2, size=64 * KIB + 1), 431),
        (_chunks(65_536), 200, _chunks(65_537), 400),
        (_infer({"id": "i" * 16 * KIB}), 200, _infer({"id": "i" * (16 * KIB + 1)}), 400),
        (_infer({"parameters": {"sequence_id": "s" * 128}}), 200, _infer({"parameters": {"sequence_id": "s" * 129}}), 501),
    ],
    ids=["path", "headers", "head", "chunks", "id", "sequence id"],
)
def test_of_http(nereid: Server, most: bytes, taken: int, over: bytes, status: int) -> None:
    assert _http(nereid, most) == taken
    assert _http(nereid, over) == status


def test_of_lines_between_chunks(nereid: Server) -> None:
    assert _http(nereid, _extension(2 * MIB - KIB)) == 200
    assert _http(nereid, _extension(2 * MIB + 1)) == 431


def _call(server: Server, metadata: int) -> str:
    """A call with so many bytes of metadata beside what every call has."""
    headers = h2.call_headers(f"/{rawgrpc.SERVICE}/ServerLive") + [("x", "y" * metadata)]
    with h2.Connection(server.grpc) as connection:
        block = h2.header_block(headers)
        frames = [block[at : at + 16384] for at in range(0, len(block), 16384)]
        try:
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS if len(frames) == 1 else 0, 1, frames[0]))
            for at, frame in enumerate(frames[1:], 2):
                connection.send(h2.frame(h2.CONTINUATION, h2.END_HEADERS if at == len(frames) else 0, 1, frame))
            connection.send(h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")))
            call = connection.finish(1)
        except ConnectionError:
            return "closed"
        return call.trailers.get("grpc-status", "") if call.blocks else f"reset {call.reset}"


def test_of_grpc_metadata(nereid: Server) -> None:
    assert _call(nereid, 16 * KIB - 512) == "0"
    assert _call(nereid, 16 * KIB + 1) == "8"
    assert _call(nereid, 64 * KIB + 1) == "closed"


def test_of_grpc_calls_at_once(nereid: Server) -> None:
    with h2.Connection(nereid.grpc) as connection:
        settings = connection.read()
    values = {int.from_bytes(settings.payload[at : at + 2], "big"): int.from_bytes(settings.payload[at + 2 : at + 6], "big") for at in range(0, len(settings.payload), 6)}
    assert values[3] == 1024


def test_of_grpc_calls_over_the_limit(nereid: Server) -> None:
    """RFC 9113, 5.1.2: a call too many is refused alone; the others are served."""
    head = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ServerLive"))
    streams = [1 + 2 * i for i in range(1026)]
    with h2.Connection(nereid.grpc) as connection:
        connection.read()
        connection.send(*(h2.frame(h2.HEADERS, h2.END_HEADERS, each, head) for each in streams))
        assert [connection.finish(each).reset for each in streams[1024:]] == [7, 7]  # REFUSED_STREAM
        connection.send(*(frame for each in streams[:1024] for frame in h2.frames_of(each, h2.message(b""))))
        assert {connection.finish(each).trailers["grpc-status"] for each in streams[:1024]} == {"0"}
