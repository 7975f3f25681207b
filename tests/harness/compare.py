"""Asks two servers the same thing and tells where the answers differ.

An answer says what it means ("status", "body", "message", ...) and, under "wire", how it came: the reason beside the status, every
header in its order, the bytes of the body as far as they are JSON or a message, those that came behind the answer. compare() looks at the
former, tests/41_compare at both.
"""

import contextlib
import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from . import h2frames, rawgrpc, rawhttp, zstd
from .servers import Server

Answer = dict[str, Any]
Header = tuple[str, str]
Adjust = Callable[[Answer], None]


STATUS_NAMES = {str(code.value[0]): code.name for code in grpc.StatusCode}


def _header(name: str, value: str) -> Header:
    """Lengths follow what they are the lengths of, which is compared itself: that there is one counts."""
    return name, "as long as it is" if name.lower() in ("content-length", "inference-header-content-length") else value


def _unpacked(coding: str | None, body: bytes) -> bytes:
    unpack = {"gzip": gzip.decompress, "deflate": zlib.decompress, "zstd": zstd.decompress}.get(coding or "", bytes)
    return unpack(body)  # type: ignore[no-any-return, operator]


def _forms(text: bytes) -> Any:
    """The body as JSON where it is JSON: then the form of numbers and spaces does not count."""
    try:
        return json.loads(text, parse_constant=str)  # NaN equals itself
    except ValueError:
        return text


@dataclass(frozen=True)
class Http:
    """One HTTP request; adjust changes both answers in place before they are compared."""

    name: str
    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    adjust: Adjust | None = None

    def ask(self, server: Server) -> Answer:
        host, port = server.http.split(":")
        with rawhttp.Connection(host, int(port)) as connection:
            got = connection.ask(self.method, self.path, self.body, self.headers)
            behind = connection.rest()
        length = got.header("Inference-Header-Content-Length")
        body = _unpacked(got.header("Content-Encoding"), got.body)
        text = body if length is None else body[: int(length)]
        answer: Answer = {"status": got.status, "body": _forms(text)}
        if length is not None:
            answer["binary"] = body[int(length) :]
        if got.status < 400 and body:
            answer["Content-Type"] = got.header("Content-Type")
        answer["wire"] = {"reason": got.reason, "headers": [_header(*each) for each in got.headers], "text": text, "behind": behind}
        return answer


@dataclass(frozen=True)
class Grpc:
    """One gRPC call; reply is the message class of a good answer."""

    name: str
    method: str
    request: Message | bytes = b""
    reply: type[Message] | None = None
    service: str = rawgrpc.SERVICE
    adjust: Adjust | None = None
    headers: dict[str, str | None] = field(default_factory=dict)  # besides the usual ones, or in their place; None: left out
    packed: bool = False  # the message is compressed as grpc-encoding says

    def ask(self, server: Server) -> Answer:
        sent = self.request.SerializeToString() if isinstance(self.request, Message) else self.request
        usual: dict[str, str | None] = dict(h2frames.call_headers(f"/{self.service}/{self.method}"))
        usual |= {"grpc-accept-encoding": "identity, deflate, gzip"} | self.headers
        headers = [(name, value) for name, value in usual.items() if value is not None]
        if self.packed:
            sent = gzip.compress(sent) if self.headers["grpc-encoding"] == "gzip" else zlib.compress(sent)
        with h2frames.Connection(server.grpc) as connection:
            connection.send(
                h2frames.frame(h2frames.HEADERS, h2frames.END_HEADERS, 1, h2frames.header_block(headers)),
                *h2frames.frames_of(1, h2frames.message(sent, int(self.packed))),
            )
            got = connection.finish(1)
        if not got.blocks or "grpc-status" not in got.trailers:
            code = f"HTTP {got.headers[':status']}" if got.blocks else f"reset {got.reset}"
            return {"code": code, "wire": {"headers": got.lines}}
        code = STATUS_NAMES[got.trailers["grpc-status"]]
        answer: Answer = {"code": code, "details": unquote(got.trailers.get("grpc-message", ""))}
        messages = got.messages()
        if code == "OK":
            (body,) = messages
            answer["message"] = MessageToDict(self.reply.FromString(body), preserving_proto_field_name=True) if self.reply else body
        answer["wire"] = {"headers": got.lines, "messages": messages}
        return answer


Question = Http | Grpc


def differences(ours: Any, theirs: Any, at: str = "") -> list[str]:
    """One line a difference: where, what we say, what the reference says."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = []
        for key in sorted(ours.keys() | theirs.keys(), key=str):
            place = f"{at}.{key}" if at else str(key)
            if key not in theirs:
                found.append(f"{place}: only ours has it: {_short(ours[key])}")
            elif key not in ours:
                found.append(f"{place}: only the reference has it: {_short(theirs[key])}")
            else:
                found += differences(ours[key], theirs[key], place)
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            line
            for i, pair in enumerate(zip(ours, theirs, strict=True))
            for line in differences(*pair, f"{at}[{i}]")
        ]
    if type(ours) is type(theirs) and ours == theirs and (not isinstance(ours, float) or repr(ours) == repr(theirs)):  # -0.0 is not 0.0
        return []
    return [f"{at}:\n    ours      {_short(ours)}\n    reference {_short(theirs)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:600]}... ({len(text)} characters)"


def adjusted(answer: Answer, change: Adjust) -> None:
    """An answer that is not of the form that is adjusted stays: the difference shows as it is."""
    with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError):
        change(answer)


def compare(question: Question, ours: Server, reference: Server) -> list[str]:
    """What differs in what the answers mean."""
    both = [question.ask(server) for server in (ours, reference)]
    for each in both:
        del each["wire"]
        if question.adjust:
            adjusted(each, question.adjust)
    return differences(*both)
