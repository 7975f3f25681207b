"""HTTP at its limits: bodies that grow, bodies that are too large, heads that are refused, descriptors that run out."""

import contextlib
import gzip
import json
import os
import resource
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import rawhttp
from harness.servers import HOST, Nereid, Server

PATH = "/v2/models/id_fp32/infer"
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[3],"data":[1,2,3]}]}'
MOST = 100_000


@pytest.fixture(scope="module")
def narrow(identity_repository: Path) -> Iterator[Server]:
    with Nereid(identity_repository, {"http-max-input-size": str(MOST)}) as server:
        yield server


def _open(server: Server) -> rawhttp.Connection:
    return rawhttp.Connection(HOST, server.http_port)


def _chunks(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts) + b"0\r\n\r\n"


def _binary(count: int) -> tuple[bytes, dict[str, str], bytes]:
    """The body, its headers and the tensor in it."""
    data = np.arange(count, dtype=np.float32).tobytes()
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [count], "parameters": {"binary_data_size": len(data)}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return text + data, {"Inference-Header-Content-Length": str(len(text))}, data


@pytest.mark.parametrize("size", [1000, 65537, 1 << 20, 5_000_000])
def test_a_chunked_body_grows(server: Server, size: int) -> None:
    """4 MB of a tensor whose size nobody announced."""
    body, headers, data = _binary(1_000_003)
    with _open(server) as connection:
        connection.send(rawhttp.head("POST", PATH, {**headers, "Transfer-Encoding": "chunked"}), _chunks(body, size))
        answer = connection.answer()
        assert answer.status == 200, answer.body[:200]
        assert answer.body.endswith(data)


def test_a_chunked_body_past_where_it_grows_fast(nereid: Server) -> None:
    body, headers, data = _binary(17_000_003)  # 68 MB
    with _open(nereid) as connection:
        connection.send(rawhttp.head("POST", PATH, {**headers, "Transfer-Encoding": "chunked"}), _chunks(body, 1 << 20))
        answer = connection.answer()
        assert answer.status == 200, answer.body[:200]
        assert answer.body.endswith(data)


def test_a_chunked_body_over_the_budget(identity_repository: Path) -> None:
    """What has come of it is charged, and given back when it is refused."""
    large, of_large, _ = _binary(10_000_003)
    small, of_small, data = _binary(2_000_003)
    with Nereid(identity_repository, {"memory-budget": str(32 << 20)}) as server:
        for _ in range(3):
            with _open(server) as connection:
                with contextlib.suppress(ConnectionError):  # the server may have closed by then
                    connection.send(rawhttp.head("POST", PATH, {**of_large, "Transfer-Encoding": "chunked"}))
                    connection.send(_chunks(large, 1 << 20))
                answer = connection.answer()
                assert answer.status == 503 and "no room for" in answer.json()["error"], answer.body[:200]
        with _open(server) as connection:
            connection.send(rawhttp.head("POST", PATH, {**of_small, "Transfer-Encoding": "chunked"}), _chunks(small, 1 << 20))
            answer = connection.answer()
            assert answer.status == 200 and answer.body.endswith(data), answer.body[:200]


def _refused(connection: rawhttp.Connection) -> str:
    answer = connection.answer()
    assert answer.status == 400
    return str(answer.json()["error"])


TOO_LARGE = "request body exceeds the maximum allowed input size of 100000 bytes. Use --http-max-input-size to increase the limit."


def test_a_chunked_body_over_the_limit(narrow: Server) -> None:
    """Refused as soon as it is over, while the client still sends; the connection is of no use any more."""
    begun = b'{"id":"' + b"x" * 1000
    with _open(narrow) as connection:
        connection.send(rawhttp.head("POST", "/v2/repository/index", {"Transfer-Encoding": "chunked"}))
        for _ in range(99):
            connection.send(f"{len(begun):x}\r\n".encode() + begun + b"\r\n")
        connection.send(b"8000\r\n" + b"x" * 0x8000)
        assert _refused(connection) == TOO_LARGE
        assert connection.closed()
    assert narrow.ready()


@pytest.mark.parametrize("path", [PATH, "/v2/repository/index", "/v2/repository/models/m/load"])
def test_an_announced_body_over_the_limit(narrow: Server, path: str) -> None:
    """Refused by its head: not a byte of it is waited for."""
    with _open(narrow) as connection:
        connection.send(rawhttp.head("POST", path, {"Content-Length": str(MOST + 1), "Expect": "100-continue"}))
        assert "--http-max-input-size" in _refused(connection)


def test_json_over_the_limit_behind_a_tensor_that_is_not(narrow: Server) -> None:
    """Tensors that follow the JSON may be as large as they like; the JSON may not."""
    body, headers, data = _binary(MOST)
    assert len(data) > MOST
    with _open(narrow) as connection:
        connection.send(rawhttp.head("POST", PATH, headers, body), body)
        answer = connection.answer()
        assert answer.status == 200 and answer.body.endswith(data)
    text = b" " * MOST + BODY
    with _open(narrow) as connection:
        connection.send(rawhttp.head("POST", PATH, {"Inference-Header-Content-Length": str(len(text))}, text) + text)
        assert "--http-max-input-size" in _refused(connection)


@pytest.mark.parametrize(
    ("request_line", "headers", "status", "reason"),
    [
        ("GET /" + "x" * 20000 + " HTTP/1.1", "", 414, "URI Too Long"),
        ("FOO /v2 HTTP/1.1", "", 405, "Not Allowed"),
        ("GET /v2 HTTP/1.1", "X: y\r\n" * 300, 431, "Request Header Fields Too Large"),
        ("POST /v2 HTTP/1.1", "Transfer-Encoding: gzip\r\n", 501, "Not Implemented"),
        ("POST /v2 HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n", 501, "Not Implemented"),
        ("POST /v2 HTTP/1.0", "Transfer-Encoding: chunked\r\n", 400, "Bad Request"),
        ("GET /v2 HTTP/2.0", "", 505, "HTTP Version Not Supported"),
    ],
)
def test_heads_that_are_refused(nereid: Server, request_line: str, headers: str, status: int, reason: str) -> None:
    with _open(nereid) as connection:
        connection.send(f"{request_line}\r\nHost: a\r\n{headers}\r\n".encode())
        answer = connection.answer()
        assert (answer.status, answer.reason) == (status, reason)
        assert answer.json()["error"]
        assert connection.closed()


def test_blanks_around_the_values_of_headers(nereid: Server) -> None:
    """They are none of the values. (The reference keeps those at the end: it does not know 'gzip '.)"""
    packed = gzip.compress(BODY)
    for blank in ("  ", "\t", " \t "):
        headers = f"Host: a\r\nContent-Encoding:{blank}gzip{blank}\r\nContent-Length: {len(packed)} \r\n"
        with _open(nereid) as connection:
            connection.send(f"POST {PATH} HTTP/1.1\r\n{headers}\r\n".encode() + packed)
            answer = connection.answer()
            assert answer.status == 200, answer.body
            assert answer.json()["outputs"][0]["data"] == [1, 2, 3]


def test_a_raw_body_of_many_bytes(server: Server) -> None:
    """No JSON at all: the body is the tensor."""
    data = struct.pack("<f", 1.5) * 700_001
    with _open(server) as connection:
        answer = connection.ask("POST", PATH, data, {"Inference-Header-Content-Length": "0"})
        assert answer.status == 200, answer.body[:200]
        assert answer.body.endswith(data)


def test_an_error_that_quotes_much_is_cut(nereid: Server) -> None:
    """Messages quote what the client sent; who asks often and reads nothing must not make the server keep it all."""
    tensor = {"name": "\u00e9" * (1 << 20), "datatype": "FP32", "shape": [1], "data": [1]}
    with _open(nereid) as connection:
        answer = connection.ask("POST", PATH, json.dumps({"inputs": [tensor]}).encode())
        assert answer.status == 400
        error = answer.json()["error"]
        assert error.startswith("unexpected inference input '\u00e9\u00e9")
        assert len(error.encode()) <= 32768


@pytest.mark.parametrize(
    ("more", "status"), [({"id": "x" * 20_000}, 400), ({"parameters": {"sequence_id": "x" * 200}}, 501)]
)
def test_texts_that_are_too_long(nereid: Server, more: dict[str, object], status: int) -> None:
    answer = rawhttp.post(nereid.http, PATH, json.loads(BODY) | more)
    assert answer.status == status
    assert len(answer.body) < 1000


@pytest.mark.parametrize("opening", [b"[", b'{"a":['])
def test_json_that_only_begins(nereid: Server, opening: bytes) -> None:
    """Needs more memory to be parsed than any text of its length that ends. (The reference ends itself.)"""
    with _open(nereid) as connection:
        answer = connection.ask("POST", PATH, opening * (1_000_000 // len(opening)))
        if opening == b"[":
            assert (answer.status, answer.json()["error"]) == (400, "JSON nesting depth exceeds maximum allowed limit (100)")
        else:
            assert answer.status == 500 and answer.json()["error"].startswith("failed to parse the request JSON buffer: unexpected end of data")
        assert connection.ask("POST", PATH, BODY).status == 200


def test_descriptors_run_out(identity_repository: Path) -> None:
    """Connections that cannot be accepted wait; nobody spins meanwhile, and they are served once there is room again."""
    with Nereid(identity_repository) as server:
        used = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used + 4, hard))
        begun = time.monotonic()
        waiting = [_open(server) for _ in range(12)]
        for connection in waiting:
            connection.send(rawhttp.head("GET", "/v2/health/live"))
        accepting = f"accepting a connection on port {server.http_port}: Too many open files: raise the limit (ulimit -n "
        server.process.wait_until(lambda: accepting in server.process.log(), 60)
        served = 0
        while waiting:  # each that was served makes room for another
            connection = waiting.pop(0)
            served += connection.answer().status == 200
            connection.close()
        assert served == 12
        warned = server.process.log().count("Too many open files")
        looks = 10 * (time.monotonic() - begun) + 10  # of each loop: ten times a second
        assert warned < looks * (os.cpu_count() or 1), "the listener spins"
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert server.ready()
