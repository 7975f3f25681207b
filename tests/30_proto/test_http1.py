"""HTTP/1.1 byte by byte: what a client may send, and what none should."""

import contextlib
import json
import struct

import pytest
from harness import rawhttp
from harness.servers import HOST, Server

PATH = "/v2/models/id_fp32/infer"
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[3],"data":[1,2,3]}]}'


def _open(server: Server) -> rawhttp.Connection:
    return rawhttp.Connection(HOST, server.http_port)


def _good(answer: rawhttp.Answer) -> None:
    assert answer.status == 200, answer.body
    assert answer.json()["outputs"][0]["data"] == [1, 2, 3]


def test_many_requests_on_one_connection(server: Server) -> None:
    with _open(server) as connection:
        for _ in range(50):
            _good(connection.ask("POST", PATH, BODY))
            assert connection.ask("GET", "/v2/health/live").status == 200


def test_pipelined_requests_are_answered_in_order(nereid: Server) -> None:
    """All are sent before the first answer is read. (The reference drops what it had not asked for yet.)"""
    requests = b""
    for number in range(20):
        body = json.dumps(
            {
                "id": str(number),
                "inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [number]}],
            }
        ).encode()
        requests += rawhttp.head("POST", "/v2/models/id_int32/infer", body=body) + body
    with _open(nereid) as connection:
        connection.send(requests)
        answers = [connection.answer().json() for _ in range(20)]
    assert [answer["id"] for answer in answers] == [str(number) for number in range(20)]
    assert [answer["outputs"][0]["data"] for answer in answers] == [[number] for number in range(20)]


def test_errors_do_not_break_the_pipeline(nereid: Server) -> None:
    bad = rawhttp.head("POST", PATH, body=b"{") + b"{"
    good = rawhttp.head("POST", PATH, body=BODY) + BODY
    with _open(nereid) as connection:
        connection.send(bad + good + rawhttp.head("GET", "/v2/nothing") + good)
        statuses = [connection.answer().status for _ in range(4)]
    assert statuses == [500, 200, 404, 200]


def test_split_at_every_byte(nereid: Server) -> None:
    """One request in two pieces, cut once at each place. (The reference gives 404 when the path is cut.)"""
    request = rawhttp.head("POST", PATH, body=BODY) + BODY
    with _open(nereid) as connection:
        for cut in range(1, len(request)):
            connection.send(request[:cut], request[cut:])
            _good(connection.answer())


def test_byte_by_byte(nereid: Server) -> None:
    request = rawhttp.head("POST", PATH, body=BODY) + BODY
    with _open(nereid) as connection:
        connection.send(*(request[at : at + 1] for at in range(len(request))))
        _good(connection.answer())


def test_binary_tensor_split_at_every_byte(nereid: Server) -> None:
    text = (
        b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[3],"parameters":{"binary_data_size":12}}]}'
    )
    body = text + struct.pack("<3f", 1, 2, 3)
    request = rawhttp.head("POST", PATH, {"Inference-Header-Content-Length": str(len(text))}, body) + body
    with _open(nereid) as connection:
        for cut in range(1, len(request)):
            connection.send(request[:cut], request[cut:])
            _good(connection.answer())


def _chunks(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunked_body(server: Server, size: int) -> None:
    with _open(server) as connection:
        for _ in range(2):
            connection.send(
                rawhttp.head("POST", PATH, {"Transfer-Encoding": "chunked"}) + _chunks(BODY, size)
            )
            _good(connection.answer())


def test_chunk_extension_and_trailer(nereid: Server) -> None:
    body = f"{len(BODY):X};name=value\r\n".encode() + BODY + b"\r\n0\r\nX-Sum: 1\r\n\r\n"
    with _open(nereid) as connection:
        connection.send(rawhttp.head("POST", PATH, {"Transfer-Encoding": "chunked"}) + body)
        _good(connection.answer())
        _good(connection.ask("POST", PATH, BODY))


def test_expect_100_continue(server: Server) -> None:
    """The body is sent only after the server said that it wants it."""
    with _open(server) as connection:
        connection.send(rawhttp.head("POST", PATH, {"Expect": "100-continue"}, BODY))
        assert connection.answer().status == 100
        connection.send(BODY)
        _good(connection.answer())


@pytest.mark.parametrize("expected", ["100-Continue", "200-ok", "the unexpected"])
def test_whatever_is_expected(server: Server, expected: str) -> None:
    """What else than 100-continue could be expected, no client knows: it is told to go on."""
    with _open(server) as connection:
        connection.send(rawhttp.head("POST", PATH, {"Expect": expected}, BODY))
        assert connection.answer().status == 100
        connection.send(BODY)
        _good(connection.answer())


def test_a_body_that_is_left_out(nereid: Server) -> None:
    """Answered before it was asked for, the body may come or not: nothing behind the answer is read as a request."""
    for path, status in (("/v2/health/live", 405), ("/v2/nothing", 404), ("/v2", 405)):
        with _open(nereid) as connection:
            connection.send(rawhttp.head("POST", path, {"Expect": "100-continue", "Content-Length": "5"}))
            answer = connection.answer()
            assert answer.status == status
            assert answer.header("Connection") == "close"
            assert connection.closed()


def test_connection_close(server: Server) -> None:
    with _open(server) as connection:
        _good(connection.ask("POST", PATH, BODY, {"Connection": "close"}))
        assert connection.closed()


def test_http_1_0_closes(server: Server) -> None:
    with _open(server) as connection:
        connection.send(b"GET /v2/health/live HTTP/1.0\r\n\r\n")
        assert connection.answer().status == 200
        assert connection.closed()


def test_http_1_0_keep_alive(nereid: Server) -> None:
    with _open(nereid) as connection:
        for _ in range(2):
            connection.send(b"GET /v2/health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert connection.answer().status == 200


def test_head_has_no_body(nereid: Server) -> None:
    """Whatever its status, the answer to HEAD is a head alone: the next one follows at once."""
    with _open(nereid) as connection:
        connection.ask("HEAD", "/v2/health/live")
        assert connection.ask("GET", "/v2/health/live").status == 200


def test_header_names_in_any_case(server: Server) -> None:
    request = f"POST {PATH} HTTP/1.1\r\nhOsT: x\r\ncOnTeNt-LeNgTh: {len(BODY)}\r\n\r\n".encode()
    with _open(server) as connection:
        connection.send(request + BODY)
        _good(connection.answer())


def test_query_and_escapes(server: Server) -> None:
    with _open(server) as connection:
        assert connection.ask("GET", "/v2/health/live?x=1").status == 200


REFUSED = {
    "length and chunked": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "length with junk": b"Content-Length: 5x\r\n\r\nabcde",
    "negative length": b"Content-Length: -5\r\n\r\nabcde",
    "length over 64 bits": b"Content-Length: 99999999999999999999999\r\n\r\n",
    "unknown transfer encoding": b"Transfer-Encoding: chunky\r\n\r\n0\r\n\r\n",
    "chunk size no number": b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "chunk longer than its size": b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    "no colon": b"Content-Length 5\r\n\r\nabcde",
    "space before the colon": b"Content-Length : 5\r\n\r\nabcde",
    "NUL in a header": b"X: a\0b\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused(nereid: Server, name: str) -> None:
    """The answer says so, and is the last: nothing behind it is read as a request."""
    with _open(nereid) as connection:
        connection.send(
            f"POST {PATH} HTTP/1.1\r\nHost: x\r\n".encode()
            + REFUSED[name]
            + rawhttp.head("GET", "/v2/health/live")
        )
        assert connection.answer().status == (501 if name == "unknown transfer encoding" else 400)
        assert connection.closed()
    assert rawhttp.get(nereid.http, "/v2/health/live").status == 200


@pytest.mark.parametrize(
    "junk",
    [
        b"\0\1\2\3\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
    ],
)
def test_what_is_not_http(nereid: Server, junk: bytes) -> None:
    with _open(nereid) as connection:
        connection.send(junk)
        assert connection.answer().status == 400
        assert connection.closed()
    assert rawhttp.get(nereid.http, "/v2/health/live").status == 200


def test_a_head_without_end_is_refused(nereid: Server) -> None:
    """Everything has a limit: after 4 MiB of head, with more to come, only the limit can answer."""
    with _open(nereid) as connection:
        with contextlib.suppress(ConnectionError):  # it is closed soon after the answer
            connection.send(b"GET /v2 HTTP/1.1\r\n")
            for _ in range(64):
                connection.send(b"X-Filler: " + b"x" * 65536 + b"\r\n")
        with contextlib.suppress(ConnectionError):  # who goes on sending may lose it
            assert connection.answer().status == 431
        assert connection.closed()
    assert rawhttp.get(nereid.http, "/v2/health/live").status == 200


def test_a_client_that_leaves_in_the_middle(server: Server) -> None:
    """Half a head, half a body, a whole request without waiting for the answer: the server lives on."""
    request = rawhttp.head("POST", PATH, body=BODY) + BODY
    for part in (request[:20], request[:-10], request):
        for _ in range(20):
            with _open(server) as connection:
                connection.send(part)
    _good(rawhttp.post(server.http, PATH, BODY))
    assert server.process.running()
