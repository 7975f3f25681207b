"""Requests about whose end two peers could disagree: refused, and what hides in them is never answered."""

import json
import struct

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
OLD = b"POST /v2/models/id_fp32/infer HTTP/1.0\r\nConnection: keep-alive\r\n"
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
    "gzip-and-chunked": with_headers(b"Transfer-Encoding: gzip, chunked"),
    "unknown-and-chunked": with_headers(b"Transfer-Encoding: foo, chunked"),
    "identity-and-chunked": with_headers(b"Transfer-Encoding: identity, chunked"),
    "identity-then-chunked": with_headers(b"Transfer-Encoding: identity", CHUNKED),
    "chunked-then-identity": with_headers(CHUNKED, b"Transfer-Encoding: identity"),
    "nothing-then-chunked": with_headers(b"Transfer-Encoding:", CHUNKED),
    "chunked-and-nothing": with_headers(b"Transfer-Encoding: chunked,"),
    "chunked-with-a-parameter": with_headers(b"Transfer-Encoding: chunked;q=1"),
    "empty-coding-and-length": with_headers(b"Transfer-Encoding:", LENGTH),
    "length-and-empty-coding": with_headers(LENGTH, b"Transfer-Encoding: "),
    "chunked-in-http-1.0": OLD + CHUNKED + b"\r\n\r\n" + BODY,
    "coding-in-http-1.0": OLD + b"Transfer-Encoding: identity\r\n" + LENGTH + b"\r\n\r\n" + BODY,
    "coding-in-a-trailer": POST + CHUNKED + b"\r\n\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n" + HIDDEN,
    "length-in-a-trailer": POST + CHUNKED + b"\r\n\r\n0\r\nContent-Length: 5\r\n\r\n" + HIDDEN,
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


def refusal(server: Server, form: str) -> rawhttp.Answer:
    """The only answer to a form, whatever follows in it."""
    host, port = server.http.split(":")
    with rawhttp.Connection(host, int(port)) as connection:
        connection.send(FORMS[form])
        answer = connection.answer()
        assert connection.closed(), "what follows is answered"
    return answer


CODINGS = {
    "gzip-and-chunked": 501,
    "unknown-and-chunked": 501,
    "identity-and-chunked": 501,
    "identity-then-chunked": 501,
    "chunked-then-identity": 501,
    "chunked-twice": 501,
    "chunked-not-last": 501,
    "chunked-in-disguise": 501,
    "chunked-in-http-1.0": 400,
    "coding-in-http-1.0": 400,
    "empty-coding-and-length": 400,
    "length-and-empty-coding": 400,
}
OTHERS = {"nothing-then-chunked": 501, "chunked-and-nothing": 501, "chunked-with-a-parameter": 501, "identity": 501, "http-2": 505}


@pytest.mark.parametrize("form", FORMS)
def test_refused(besieged: Server, form: str) -> None:
    answer = refusal(besieged, form)
    assert answer.status == {**OTHERS, **CODINGS}.get(form, 400), form
    assert b"smuggled" not in answer.body


@pytest.mark.parametrize("form", CODINGS)
def test_why_a_coding_is_refused(besieged: Server, form: str) -> None:
    """What RFC 9112 (6.1) says of codings that a server does not have, and of those that HTTP/1.0 does not have."""
    answer = refusal(besieged, form)
    assert answer.status == CODINGS[form], answer.body
    assert answer.header("Connection") == "close"


def test_a_trailer_is_no_header(besieged: Server) -> None:
    """The body was judged by the head: what a trailer says of it afterwards is dropped, and the connection goes on."""
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}}
    text = json.dumps({"inputs": [tensor]}).encode()
    body = text + struct.pack("<f", 7)
    chunk = b"%x\r\n" % len(body) + body + b"\r\n0\r\n"
    told = b"Inference-Header-Content-Length: %d\r\n" % len(text)
    host, port = besieged.http.split(":")
    with rawhttp.Connection(host, int(port)) as connection:
        connection.send(POST + CHUNKED + b"\r\n\r\n" + chunk + told + b"\r\n")
        refused = connection.answer()
        assert refused.status == 400 and "unexpected size for input" in refused.json()["error"], "a trailer is obeyed"
        other = b"Inference-Header-Content-Length: 3\r\nContent-Encoding: gzip\r\n"
        connection.send(POST + CHUNKED + b"\r\n" + told + b"\r\n" + chunk + other + b"\r\n")
        answer = connection.answer()
        assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [7], answer.body


def test_one_meaning_is_served(besieged: Server) -> None:
    """The honest form of the same: a chunked body, then another request."""
    host, port = besieged.http.split(":")
    with rawhttp.Connection(host, int(port)) as connection:
        connection.send(POST + CHUNKED + b"\r\n\r\n" + BODY)
        assert b"smuggled" not in connection.answer().body
        assert b"smuggled" in connection.answer().body
