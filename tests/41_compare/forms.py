"""How every answer of this server comes, whatever was asked: its headers in their order, and what they belong to.

Most answers are compared with the reference's in this already, which shows that these rules are right. They hold the others too."""

import json
from typing import Any

from harness.compare import STATUS_NAMES, Answer, Header

LENGTH = "as long as it is"
EVENTS = [("Content-Type", "text/event-stream; charset=utf-8"), ("Transfer-Encoding", "chunked")]
BINARY = [("Content-Type", "application/octet-stream"), ("Inference-Header-Content-Length", LENGTH)]
JSON = [("Content-Type", "application/json")]
CALL = [(":status", "200"), ("content-type", "application/grpc")]
REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Not Allowed",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}
CODES = {name: number for number, name in STATUS_NAMES.items()}
# What an answer may have besides, by the request's headers or for the refusal that it is.
BESIDES = [("Connection", "close"), ("Accept-Encoding", "gzip, deflate, zstd"), ("grpc-accept-encoding", "identity, deflate, gzip")]


def besides(answer: Answer) -> list[Header]:
    lines = answer["wire"]["headers"]
    if "code" in answer:
        lines = [each for block in lines for each in block]
    return [each for each in BESIDES if each in lines]


def _is_error(text: bytes) -> bool:
    try:
        told = json.loads(text)
    except ValueError:
        return False
    return isinstance(told, dict) and list(told) == ["error"] and isinstance(told["error"], str) and told["error"] != ""


def _http(answer: Answer, more: list[Header], method: str) -> list[str]:
    status, wire = answer["status"], answer["wire"]
    text = wire["text"]
    events = text.startswith(b"data: ") or (not text and EVENTS[0] in wire["headers"])
    coding = [each for each in wire["headers"] if each[0] == "Content-Encoding"]
    head = [*EVENTS, *more] if events else [*(BINARY if "binary" in answer else JSON), *coding, *more, ("Content-Length", LENGTH)]
    found = []
    if wire["headers"] != head:
        found.append(f"ours has the headers {wire['headers']}, its other answers of this form {head}")
    if wire["reason"] != REASONS[status]:
        found.append(f"the reason beside {status} is {wire['reason']}")
    if wire["behind"]:
        found.append(f"behind our answer came {wire['behind']!r}")
    first = text.removeprefix(b"data: ").split(b"\n")[0] if events else text
    if status >= 400 and method != "HEAD" and not _is_error(first):
        found.append(f"the body of our error is {text!r}")
    if method == "HEAD" and text:
        found.append(f"our answer to HEAD has a body: {text!r}")
    return found


def _grpc(answer: Answer, more: list[Header]) -> list[str]:
    code, wire = answer["code"], answer["wire"]
    if " " in code:  # "HTTP 415", "reset 2": no call has begun
        head: list[Any] = [[(":status", code.removeprefix("HTTP "))]] if code.startswith("HTTP ") else []
    elif code == "OK":
        head = [[*CALL, *more], [("grpc-status", "0")]]
    else:
        words = [each for block in wire["headers"] for each in block if each[0] == "grpc-message"]
        head = [[*CALL, *more, ("grpc-status", CODES[code]), *(words if answer["details"] else [])]]
    found = [] if wire["headers"] == head else [f"ours has the headers {wire['headers']}, its other answers of this form {head}"]
    if len(wire.get("messages", [])) != (code == "OK"):
        found.append(f"ours has {len(wire['messages'])} messages")
    return found


def problems(answer: Answer, more: list[Header], method: str) -> list[str]:
    """more: the headers that it has besides."""
    return _http(answer, more, method) if "status" in answer else _grpc(answer, more)
