"""Headers that are wrong, bodies framed in ways that two peers could read differently, and bytes that do not belong into a text."""

import json
import struct
from typing import Any

import adjust as adjusts
from harness.compare import Grpc, Http, Question
from harness.rawgrpc import infer_request
from tritonclient.grpc import service_pb2 as pb

INFER = "/v2/models/id_fp32/infer"
TENSOR: dict[str, Any] = {"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [7]}
BODY = json.dumps({"inputs": [TENSOR]}).encode()
TWO = struct.pack("<2f", 1, 2)  # begins with a zero byte
CALL = infer_request("id_fp32", [("INPUT0", "FP32", [2], TWO)])
SIZED = {"name": "INPUT0", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
TEXT = json.dumps({"inputs": [SIZED]}).encode()


def _codings() -> list[Question]:
    asked: list[Question] = []
    for coding in ("br", "x", "gzip, br"):
        headers = {"Content-Encoding": coding}
        asked.append(Http(f"{coding}, infer", "POST", INFER, BODY, headers))
        for body in (b"{}", b""):
            named = f"{coding}, {len(body)} bytes,"
            asked.append(
                Http(f"{named} index", "POST", "/v2/repository/index", body, headers)
            )
            for action in ("load", "unload"):
                path = f"/v2/repository/models/nobody/{action}"
                asked.append(Http(f"{named} {action}", "POST", path, body, headers))
    return asked


def _lengths() -> list[Question]:
    """Inference-Header-Content-Length: the JSON alone, more than there is, what no number of 64 bits can be."""

    def ask(name: str, body: bytes, length: str) -> Question:
        return Http(name, "POST", INFER, body, {"Inference-Header-Content-Length": length})

    return [
        ask("all of a body of JSON", BODY, str(len(BODY))),
        ask("JSON and nothing behind it", TEXT, str(len(TEXT))),
        ask("JSON and tensor", TEXT + TWO, str(len(TEXT))),
        ask("the whole body", TEXT + TWO, str(len(TEXT + TWO))),
        ask("a part of the tensor", TEXT + TWO, str(len(TEXT) + 1)),
        ask("one too many", TEXT + TWO, str(len(TEXT + TWO) + 1)),
        ask("zeros in front", BODY, f"000{len(BODY)}"),
        ask("63 bits", BODY, str(2**63 - 1)),
        ask("64 bits", BODY, str(2**64 - 1)),
        ask("over 64 bits", BODY, "9" * 20),
        ask("a hundred digits", BODY, "5" * 100),
    ]


def _framing() -> list[Question]:
    chunked = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
    told = b"%x\r\n" % len(TEXT + TWO) + TEXT + TWO + b"\r\n0\r\nInference-Header-Content-Length: %d\r\n\r\n" % len(TEXT)
    codings = ("gzip, chunked", "foo, chunked", "identity, chunked", "chunked, chunked", "chunked, identity", "xchunked")
    asked: list[Question] = [
        Http(coding, "POST", INFER, chunked, {"Transfer-Encoding": coding}) for coding in codings
    ]
    asked += [
        Http("chunked", "POST", INFER, chunked, {"Transfer-Encoding": "chunked"}),
        Http("CHUNKED", "POST", INFER, chunked, {"Transfer-Encoding": "CHUNKED"}),
        Http("an empty coding and a length", "POST", INFER, BODY, {"Transfer-Encoding": "", "Content-Length": str(len(BODY))}),
        Http("identity and a length", "POST", INFER, BODY, {"Transfer-Encoding": "identity", "Content-Length": str(len(BODY))}),
        Http("a length in a trailer", "POST", INFER, told, {"Transfer-Encoding": "chunked"}),
        Http("a method that nobody knows", "FOO", INFER),
    ]
    return asked


def _bytes() -> list[Question]:
    """Zero bytes, as \\u0000, in what becomes a C string; control characters as they are."""

    def ask(name: str, body: bytes) -> Question:
        return Http(name, "POST", INFER, body, {"Content-Type": "application/json"})

    def asked(tensor: dict[str, Any] | None = None, **more: Any) -> bytes:
        return json.dumps({"inputs": [TENSOR | (tensor or {})], **more}).encode()

    marked = {
        "the id": asked(id="a@b"),
        "an input's name": asked({"name": "INPUT0@"}),
        "an output's name": asked(outputs=[{"name": "OUTPUT0@x"}]),
        "a parameter's name": asked(parameters={"a@b": 1}),
        "a parameter": asked(parameters={"a": "b@c"}),
        "a sequence id": asked(parameters={"sequence_id": "a@b"}),
        "a string of a tensor": asked({"datatype": "BYTES", "data": ["a@b"]}),
    }
    questions = [ask(f"a zero byte in {where}", body.replace(b"@", b"\\u0000")) for where, body in marked.items()]
    for value in (0x00, 0x01, 0x09, 0x0A, 0x0D, 0x1F, 0x7F, 0xFF):
        for where in ("the id", "a parameter", "a string of a tensor"):
            questions.append(ask(f"{value:02x} in {where}", marked[where].replace(b"@", bytes([value]))))
        if value:
            questions.append(ask(f"{value:02x} behind an escape", marked["the id"].replace(b"@", b'\\"\\\\' + bytes([value]))))
    questions += [
        ask("tabs and lines between", json.dumps({"inputs": [TENSOR], "id": "a"}, indent="\t").replace("\n", "\r\n").encode()),
        Http("a control character between", "POST", INFER, BODY.replace(b", ", b",\x01 ", 1), adjust=adjusts.parser_words),
        ask("a zero byte behind", BODY + b" \0x"),
        ask("spaces behind", BODY + b" \r\n\t "),
    ]
    return questions


def _accepted() -> list[Question]:
    """Answers that may be compressed; and what a client says of the connection and of the type that it wants."""
    codings = ("gzip", "deflate", "gzip, deflate", "deflate, gzip", "identity", "*", "br", "GZIP", "gzip;q=0", "gzip;q=0.5, deflate", "x, gzip", "zstd", "zstd, gzip", "gzip, zstd")
    codings += ("", "identity;q=0", "*;q=0")
    binary = json.dumps({"inputs": [TENSOR], "parameters": {"binary_data_output": True}}).encode()
    wrong = BODY.replace(b"INPUT0", b"X")
    asked: list[Question] = []
    for coding in codings:
        headers = {"Accept-Encoding": coding}
        asked += [
            Http(f"{coding!r}, JSON", "POST", INFER, BODY, headers),
            Http(f"{coding!r}, binary", "POST", INFER, binary, headers),
            Http(f"{coding!r}, an error", "POST", INFER, wrong, headers),
            Http(f"{coding!r}, a configuration", "GET", "/v2/models/id_fp32/config", headers=headers),
            Http(f"{coding!r}, nothing", "GET", "/v2/health/live", headers=headers),
        ]
    for name, value in (("Accept", "text/html"), ("Connection", "close"), ("Connection", "keep-alive"), ("Content-Type", "text/plain"), ("Origin", "x")):
        asked += [
            Http(f"{name} {value}", "POST", INFER, BODY, {name: value}),
            Http(f"{name} {value}, unknown route", "GET", "/v2/nothing", headers={name: value}),
            Http(f"{name} {value}, nothing", "GET", "/v2/health/live", headers={name: value}),
        ]
    return asked


def _grpc_headers() -> list[Question]:
    """What a call says beside its message."""

    def ask(name: str, packed: bool = False, **headers: str | None) -> Question:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return Grpc(name, "ModelInfer", CALL, pb.ModelInferResponse, headers=named, packed=packed)

    asked = [ask(f"grpc-timeout {value!r}", grpc_timeout=value) for value in ("1H", "100S", "99999999S", "100000000S", "1x", "x", "", "-1S", "1.5S")]
    types = ("application/grpc+proto", "application/grpc+json", "application/grpc;x=y", "application/grpcx", "application/json", "", None)
    asked += [ask(f"content-type {value!r}", content_type=value) for value in types]
    asked += [ask(f"te {value!r}", te=value) for value in ("trailers", "gzip", "", None)]
    asked += [ask(f"{coding} as it says", True, grpc_encoding=coding) for coding in ("gzip", "deflate")]
    asked += [ask(f"a plain message, {coding!r}", grpc_encoding=coding) for coding in ("gzip", "identity", "br", "")]
    asked += [
        ask("a compressed message of no coding", True, grpc_encoding="identity"),
        ask("a compressed message of an unknown coding", True, grpc_encoding="br"),
        ask("accepts nothing", grpc_accept_encoding=None),
        ask("metadata", mine="a value", other="1, 2"),
        ask("binary metadata", mine_bin="AAEC"),
        ask("binary metadata that is none", mine_bin="!!"),
        ask("no user-agent and an origin", origin="http://a"),
    ]
    return asked


def _repository() -> list[Question]:
    """Servers whose models nobody loads or unloads (mode none)."""
    bodies = {"nothing": b"", "an object": b"{}", "no JSON": b"{", "an array": b"[]", "parameters": b'{"parameters":{"a":1}}', "a text": b'{"parameters":"x"}'}
    asked: list[Question] = []
    for action in ("load", "unload"):
        for model in ("id_fp32", "nobody"):
            for what, body in bodies.items():
                changed = adjusts.parser_words if what == "no JSON" and action == "load" else None
                asked.append(Http(f"{action} of {model}, {what}", "POST", f"/v2/repository/models/{model}/{action}", body, adjust=changed))
    for model in ("id_fp32", "nobody", ""):
        asked += [
            Grpc(f"RepositoryModelLoad of {model!r}", "RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name=model), pb.RepositoryModelLoadResponse),
            Grpc(f"RepositoryModelUnload of {model!r}", "RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name=model), pb.RepositoryModelUnloadResponse),
        ]
    for body in (b'{"ready":1}', b'{"ready":"true"}', b'{"ready":null}', b'{"x":1}', b"[]", b"1", b'"x"'):
        asked.append(Http(f"index {body.decode()}", "POST", "/v2/repository/index", body))
    for name in ("repository", "a/b", ""):
        asked.append(Http(f"index of repository {name!r}", "POST", f"/v2/repository/{name}/index", b""))
        asked.append(Http(f"load from repository {name!r}", "POST", f"/v2/repository/{name}/models/id_fp32/load", b""))
    asked.append(Grpc("index of a repository", "RepositoryIndex", pb.RepositoryIndexRequest(repository_name="x"), pb.RepositoryIndexResponse))
    return asked


GROUPS: dict[str, list[Question]] = {
    "codings": _codings(),
    "header lengths": _lengths(),
    "framing": _framing(),
    "bytes": _bytes(),
    "accepted": _accepted(),
    "gRPC headers": _grpc_headers(),
    "repository": _repository(),
}
