"""Requests about whose end two peers could disagree: refused, and what hides in them is never answered."""

import pytest

from harness import rawhttp
from harness.servers import Server

HIDDEN = b"GET /v2/models/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b"0\r\n\r\n" + HIDDEN
POST = b"POST /v2/models/id_fp32/infer HTTP/1.1\r\nHost: localhost\r\n"


def with_headers(*headers: bytes) -> bytes:
    return POST + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + BODY


LENGTH = b"Content-Length: 5"
CHUNKED = b"Transfer-Encoding: chunked"
FORMS = {
    "length-then-chunked": with_headers(LENGTH, CHUNKED),
    "chunked-then-length": with_headers(CHUNKED, LENGTH),
    "two-lengths": with_headers(LENGTH, b"Content-Length: 6"),
    "same-length-twice": with_headers(LENGTH, LENGTH),
    "length-list": with_headers(b"Content-Length: 5, 5"),
    "length-plus": with_headers(b"Content-Length: +5"),
    "length-minus": with_headers(b"Content-Length: -5"),
    "length-hex": with_headers(b"Content-Length: 0x5"),
    "length-empty": with_headers(b"Content-Length:"),
    "length-spaces": with_headers(b"Content-Length: 5 5"),
    "length-over-64-bits": with_headers(b"Content-Length: 18446744073709551621"),
    "chunked-twice": with_headers(CHUNKED, CHUNKED),
    "chunked-not-last": with_headers(b"Transfer-Encoding: chunked, gzip"),
    "chunked-in-disguise": with_headers(b"Transfer-Encoding: xchunked"),
    "chunked-tab": with_headers(b"Transfer-Encoding:\x0bchunked"),
    "identity": with_headers(b"Transfer-Encoding: identity", LENGTH),
    "space-before-colon": with_headers(b"Content-Length : 5"),
    "space-before-name": with_headers(b"X: y", b" Content-Length: 5"),
    "folded": with_headers(b"Transfer-Encoding:", b" chunked"),
    "null-in-name": with_headers(b"Content-Length\0: 5"),
    "null-in-value": with_headers(b"Content-Length: 5\0"),
    "return-in-value": with_headers(b"X: a\rTransfer-Encoding: chunked"),
    "no-colon": with_headers(b"Content-Length 5"),
    "empty-name": with_headers(b": x", LENGTH),
    "bare-line-feeds": (POST + LENGTH + b"\r\n\r\n").replace(b"\r\n", b"\n") + BODY,
    "chunk-size-negative": POST + CHUNKED + b"\r\n\r\n-1\r\n" + HIDDEN,
    "chunk-size-prefixed": POST + CHUNKED + b"\r\n\r\n0x0\r\n\r\n" + HIDDEN,
    "chunk-size-over-64-bits": POST + CHUNKED + b"\r\n\r\n10000000000000000\r\n" + HIDDEN,
    "chunk-size-spaces": POST + CHUNKED + b"\r\n\r\n1 0\r\n" + HIDDEN,
    "chunk-without-end": POST + CHUNKED + b"\r\n\r\n1\r\nab\r\n0\r\n\r\n" + HIDDEN,
    "chunk-bare-line-feed": POST + CHUNKED + b"\r\n\r\n1\n \n0\n\n" + HIDDEN,
    "http-0.9": b"GET /v2\r\n" + HIDDEN,
    "http-2": b"GET /v2 HTTP/2.0\r\n\r\n" + HIDDEN,
    "version-in-disguise": b"GET /v2 HTTP/1.1x\r\n\r\n" + HIDDEN,
    "method-in-disguise": b"GE T /v2 HTTP/1.1\r\n\r\n" + HIDDEN,
}


@pytest.mark.parametrize("form", FORMS)
def test_refused(besieged: Server, form: str) -> None:
    host, port = besieged.http.split(":")
    with rawhttp.Connection(host, int(port)) as connection:
        connection.send(FORMS[form])
        answer = connection.answer()
        assert 400 <= answer.status < 600, form
        assert b"smuggled" not in answer.body
        assert connection.closed(), "what follows is answered"


def test_one_meaning_is_served(besieged: Server) -> None:
    """The honest form of the same: a chunked body, then another request."""
    host, port = besieged.http.split(":")
    with rawhttp.Connection(host, int(port)) as connection:
        connection.send(POST + CHUNKED + b"\r\n\r\n" + BODY)
        assert b"smuggled" not in connection.answer().body
        assert b"smuggled" in connection.answer().body
