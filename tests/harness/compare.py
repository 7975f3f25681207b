"""Asks two servers the same thing and tells where the answers differ."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from . import rawgrpc, rawhttp
from .servers import Server

Answer = dict[str, Any]
Adjust = Callable[[Answer], None]


def _forms(text: bytes) -> Any:
    """The body as JSON where it is JSON: then the form of numbers and spaces does not count."""
    try:
        return json.loads(text)
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
        got = rawhttp.request(host, int(port), self.method, self.path, self.body, self.headers)
        answer: Answer = {"status": got.status}
        # The reference labels some of its JSON errors, and empty bodies, as text: not compared.
        if got.status < 400 and got.body:
            answer["Content-Type"] = got.header("Content-Type")
        length = got.header("Inference-Header-Content-Length")
        if length is not None:
            # The length itself follows the JSON's spaces: that there is one counts.
            answer["binary"] = got.body[int(length) :]
            answer["body"] = _forms(got.body[: int(length)])
        else:
            answer["body"] = _forms(got.body)
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

    def ask(self, server: Server) -> Answer:
        with rawgrpc.Channel(server.grpc) as channel:
            got = channel.call(self.method, self.request, self.service)
        answer: Answer = {"code": got.code, "details": got.details}
        if got.code == "OK":
            answer["message"] = (
                MessageToDict(self.reply.FromString(got.body), preserving_proto_field_name=True)
                if self.reply
                else got.body
            )
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
    if type(ours) is type(theirs) and ours == theirs:
        return []
    return [f"{at}:\n    ours      {_short(ours)}\n    reference {_short(theirs)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:600]}... ({len(text)} characters)"


def answer(question: Question, server: Server) -> Answer:
    got = question.ask(server)
    if question.adjust:
        # An answer that is not of the form that is adjusted stays: the difference shows as it is.
        with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError):
            question.adjust(got)
    return got


def compare(question: Question, ours: Server, reference: Server) -> list[str]:
    return differences(answer(question, ours), answer(question, reference))
