"""Messages that never end, announce what they do not send, or are made to be expensive to read."""

import contextlib
import gzip
import json
import random
import select
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator

import pytest

from crowd import Crowd
from harness import h2frames as h2
from harness import rawgrpc, rawhttp, zstd
from harness.servers import HOST
from siege import FULL, Attack, Siege, Step, steps

PATH = "/v2/models/id_fp32/infer"
CHUNKED = {"Transfer-Encoding": "chunked"}
COUNT = 64 if FULL else 16


def endless(siege: Siege, head: bytes, piece: bytes, reason: bytes) -> None:
    """Connections send pieces until the server ends them with a reason, and others take their place; honest clients ask meanwhile."""
    view = memoryview(piece)

    @contextlib.contextmanager
    def attack() -> Iterator[Step]:
        with Crowd(siege.server.http, COUNT) as crowd:
            crowd.send_all(head)

            def step() -> None:
                until = time.monotonic() + 0.02
                while time.monotonic() < until:
                    crowd.grow(COUNT, head)
                    crowd.stream(view)
                    crowd.pump()

            yield step

    siege.honest_meanwhile(attack)
    with Crowd(siege.server.http, 2) as crowd:
        crowd.send_all(head)
        deadline = time.monotonic() + 120
        while crowd.members:
            crowd.stream(view)
            crowd.pump()
            assert time.monotonic() < deadline, f"{len(crowd.members)} connections may send for ever"
        told = [text for text in crowd.heard.values() if text]  # who still sends may lose it
        assert told and all(reason in text for text in told), crowd.heard


def begun(address: str, firsts: list[bytes], borne: Callable[[Crowd], bool] = lambda crowd: True) -> Attack:
    """A connection for each of these beginnings, of which nothing more comes; at its end they must be `borne`."""

    @contextlib.contextmanager
    def attack() -> Iterator[Step]:
        with Crowd(address, len(firsts)) as crowd:
            for number, first in zip(list(crowd.members), firsts, strict=True):
                crowd.send(number, first)
            yield crowd.pump
            assert borne(crowd)

    return attack


@pytest.mark.promise
def test_endless_chunked_body(siege: Siege) -> None:
    endless(siege, rawhttp.head("POST", PATH, CHUNKED), b"40000\r\n" + b" " * 0x40000 + b"\r\n", b"exceeds the maximum allowed input size")


@pytest.mark.promise
def test_endless_small_chunks(siege: Siege) -> None:
    endless(siege, rawhttp.head("POST", PATH, CHUNKED), b"1\r\n \r\n" * 10000, b"65536 non-empty chunks")


@pytest.mark.promise
def test_endless_chunk_extension(siege: Siege) -> None:
    endless(siege, rawhttp.head("POST", PATH, CHUNKED) + b"1;", b"a" * 65536, b"over 2 MiB")


@pytest.mark.promise
def test_endless_trailers(siege: Siege) -> None:
    endless(siege, rawhttp.head("POST", PATH, CHUNKED) + b"1\r\n \r\n0\r\n", b"a: b\r\n" * 10000, b" 431 ")


def test_endless_head(siege: Siege) -> None:
    endless(siege, b"GET /v2 HTTP/1.1\r\n", b"a: b\r\n" * 10000, b" 431 ")


def test_endless_header(siege: Siege) -> None:
    endless(siege, b"GET /v2 HTTP/1.1\r\na: ", b"b" * 65536, b" 431 ")


def test_endless_path(siege: Siege) -> None:
    endless(siege, b"GET /v2", b"/a" * 30000, b" 414 ")


@pytest.mark.promise
def test_endless_body_that_nobody_wants(siege: Siege) -> None:
    endless(siege, rawhttp.head("POST", "/nothing", CHUNKED), b"1000\r\n" + b" " * 0x1000 + b"\r\n", b" 404 ")


@pytest.mark.promise
def test_four_gib_announced_over_http(siege: Siege) -> None:
    headers = {"Content-Length": str(4 << 30), "Inference-Header-Content-Length": "100"}
    head = rawhttp.head("POST", PATH, headers)
    siege.honest_meanwhile(begun(siege.server.http, [head + b"{"] * COUNT))


def test_announced_until_nothing_is_left(siege: Siege) -> None:
    """Bodies of every size, of which only the first byte comes: what others may use is not spent on them."""
    lengths = [(4 << 30) >> (index // 4) for index in range(48)]  # down to 2 MiB
    headers = [{"Content-Length": str(length), "Inference-Header-Content-Length": "100"} for length in lengths]
    firsts = [rawhttp.head("POST", PATH, each) + b"{" for each in headers]
    quiet: Callable[[Crowd], bool] = lambda crowd: crowd.is_borne() and not any(crowd.received.values())
    siege.honest_meanwhile(begun(siege.server.http, firsts, quiet))


def announced_over_grpc(length: int) -> bytes:
    block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelInfer"))
    message = b"\0" + struct.pack(">I", length) + b"\x0a"
    return h2.PREFACE + h2.settings() + h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block) + h2.frame(h2.DATA, 0, 1, message)


def test_announced_over_grpc_until_nothing_is_left(siege: Siege) -> None:
    firsts = [announced_over_grpc(((2 << 30) >> (index // 4)) - 1) for index in range(44)]
    siege.honest_meanwhile(begun(siege.server.grpc, firsts, Crowd.is_borne))


@pytest.mark.promise
def test_two_gib_announced_over_grpc(siege: Siege) -> None:
    """As much as a gRPC message may have, and what is more than that."""
    for length in (2**31 - 1, 2**32 - 1):
        siege.honest_meanwhile(begun(siege.server.grpc, [announced_over_grpc(length)] * COUNT))


def ask(siege: Siege, body: bytes, headers: dict[str, str] | None = None) -> rawhttp.Answer:
    host, port = siege.server.http.split(":")
    return rawhttp.request(host, int(port), "POST", PATH, body, headers, timeout=120)


def nested(depth: int, inner: str, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + inner + closing * depth


DEEP = {
    "data": '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":%s}]}' % nested(10_000, "1"),
    "parameters": '{"parameters":{"a":%s},"inputs":[]}' % nested(10_000, "1", '{"a":', "}"),
    "unclosed": nested(10_000, "", '{"a":[', ""),
    "root": nested(10_000, "1"),
}


REFUSED = {
    "data": (400, "nesting depth exceeds"), "parameters": (400, "parameter 'a' has invalid type"),
    "unclosed": (500, "unexpected end of data"), "root": (500, "'inputs'"),
}


@pytest.mark.promise
@pytest.mark.parametrize("form", DEEP)
def test_deep_json(siege: Siege, form: str) -> None:
    body = DEEP[form].encode()
    status, words = REFUSED[form]

    def step() -> None:
        answer = ask(siege, body)
        assert answer.status == status and words in answer.json()["error"]

    siege.honest_meanwhile(steps(step))


def test_wide_json(siege: Siege) -> None:
    """Close to the limit of a body, and all of it must be read to see that it is of no use. Some at a time: each takes long."""
    wide = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":['
    body = wide + b"1," * ((4 << 20) - 100) + b"1]}]}"
    seen: list[int] = []

    @contextlib.contextmanager
    def attack() -> Iterator[Step]:
        enough = len(seen) + 2

        def step() -> None:
            if len(seen) < enough:
                seen.append(ask(siege, body).status)

        yield step

    siege.honest_meanwhile(attack)
    assert seen and set(seen) <= {400, 500, 503}


def test_header_floods(siege: Siege) -> None:
    host, port = siege.server.http.split(":")
    many = {f"x-{i}": "a" for i in range(1000)}
    large = {"x": "a" * 100_000}

    def step() -> None:
        assert rawhttp.request(host, int(port), "GET", "/v2", headers=many).status == 431
        assert rawhttp.request(host, int(port), "GET", "/v2", headers=large).status == 431
        assert rawhttp.request(host, int(port), "GET", "/" + "a" * 20_000).status == 414

    siege.honest_meanwhile(steps(step))


def test_metadata_flood(siege: Siege) -> None:
    headers = h2.call_headers(f"/{rawgrpc.SERVICE}/ServerLive") + [(f"x-{i}", "a" * 100) for i in range(200)]
    block = h2.header_block(headers)

    def step() -> None:
        with h2.Connection(siege.server.grpc) as connection:
            connection.send(h2.frame(h2.PING, 0, 0, bytes(8)))
            while not (seen := connection.read()).kind == h2.PING or not seen.flags & h2.ACK:
                pass  # frames this large may come once the settings are known
            connection.send(
                h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block),
                h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(b"")),
            )
            assert connection.finish(1).trailers["grpc-status"] == "8"

    siege.honest_meanwhile(steps(step))


BOMB = 64 << 20


class Bombs:
    """Connections that send the same bytes again whenever they have their answer; `ended` says that they do."""

    COUNT = 8

    def __init__(self, opened: Callable[[], socket.socket], ended: Callable[[bytes], bool]):
        self.opened, self.ended = opened, ended
        self.answers: list[bytes] = []

    @contextlib.contextmanager
    def attack(self) -> Iterator[Step]:
        self.running = {member: b"" for member in (self.opened() for _ in range(self.COUNT))}
        try:
            yield self.step
        finally:
            for member in self.running:
                member.close()

    def step(self) -> None:
        for member in select.select(list(self.running), [], [], 0.02)[0]:  # allowed: ends with the first that hears something
            try:
                data = member.recv(1 << 16)
            except ConnectionError:  # it was closed before all that was sent had been read
                data = b""
            self.running[member] += data
            if data and not self.ended(self.running[member]):
                continue
            self.answers.append(self.running.pop(member))
            member.close()
            self.running[self.opened()] = b""

    def until_answered(self) -> None:
        deadline = time.monotonic() + 120
        with self.attack() as step:
            while not self.answers:
                step()
                assert time.monotonic() < deadline, "no bomb was answered"


def _sent(address: str, data: bytes) -> socket.socket:
    host, port = address.rsplit(":", 1)
    member = socket.create_connection((host, int(port)), timeout=60)
    member.sendall(data)
    return member


def _frames(data: bytes) -> list[tuple[int, bool]]:
    """Kinds of the frames that came, and whether they end their stream."""
    found, at = [], 0
    while at + 9 <= len(data):
        found.append((data[at + 3], bool(data[at + 4] & h2.END_STREAM)))
        at += 9 + int.from_bytes(data[at : at + 3], "big")
    return found


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_compressed_grpc_bombs(siege: Siege, coding: str) -> None:
    """Messages of 64 KiB that are a thousand times as large when they are inflated, and are nothing then."""
    pack: Callable[[bytes], bytes] = gzip.compress if coding == "gzip" else zlib.compress
    message = h2.message(pack(b"\xff" * BOMB), compressed=1)
    block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelInfer", grpc_encoding=coding))
    size = 16384
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    data = h2.PREFACE + h2.settings() + h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block)
    data += b"".join(h2.frame(h2.DATA, 0, 1, piece) for piece in pieces[:-1])
    data += h2.frame(h2.DATA, h2.END_STREAM, 1, pieces[-1])
    bombs = Bombs(lambda: _sent(siege.server.grpc, data), lambda got: (h2.HEADERS, True) in _frames(got))
    siege.honest_meanwhile(bombs.attack)
    bombs.until_answered()
    assert not any(kind == h2.DATA for answer in bombs.answers for kind, _ in _frames(answer)), "a bomb was served"
    siege.note("bombs", len(bombs.answers))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_compressed_http_bombs(siege: Siege, coding: str) -> None:
    """That of zstd is of 3 KiB, and wants the largest window."""
    pack: Callable[[bytes], bytes] = gzip.compress if coding == "gzip" else zlib.compress
    text = b" " * (BOMB + 1)
    body = zstd.windowed(zstd.compress(text, size=0), 23) if coding == "zstd" else pack(text)
    data = rawhttp.head("POST", PATH, {"Content-Encoding": coding}, body) + body
    bombs = Bombs(lambda: _sent(siege.server.http, data), lambda got: b"}" in got)
    siege.honest_meanwhile(bombs.attack)
    bombs.until_answered()
    assert all(b"Decompressed data size exceeds" in answer or b"no room" in answer for answer in bombs.answers)
    siege.note("bombs", len(bombs.answers))


def test_answers_that_must_be_compressed(siege: Siege) -> None:
    """Compressing costs twenty times as much as copying: it is done where nobody waits for it."""
    values = 500_000
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [values], "parameters": {"binary_data_size": 4 * values}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text)), "Accept-Encoding": "gzip"}
    body = text + random.Random(1).randbytes(4 * values)
    data = rawhttp.head("POST", PATH, headers | {"Connection": "close"}, body) + body
    asked = Bombs(lambda: _sent(siege.server.http, data), lambda got: False)
    siege.honest_meanwhile(asked.attack)
    asked.until_answered()
    assert all(b"Content-Encoding: gzip" in answer[:500] for answer in asked.answers)


def test_reset_in_the_middle(siege: Siege) -> None:
    """Clients that vanish without a word while their request is received or answered."""
    body = json.dumps(
        {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1000], "data": [1] * 1000}]}
    ).encode()
    text = rawhttp.head("POST", PATH, body=body) + body
    port = int(siege.server.http.split(":")[1])
    gone = struct.pack("ii", 1, 0)

    def step() -> None:
        for part in (text[:20], text[:-1], text, text + text[:100]):
            with socket.create_connection((HOST, port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, gone)
                client.sendall(part)

    siege.honest_meanwhile(steps(step))
