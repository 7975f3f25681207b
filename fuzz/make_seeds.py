#!/usr/bin/env python3
"""Writes the seeds under fuzz/corpus: small inputs that reach into every corner of a target's format.

    build/venv/bin/python fuzz/make_seeds.py

What a fuzzer found later (fuzz/corpus/<target>/found-*) is left as it is.
"""

import gzip
import struct
import sys
import zlib
from pathlib import Path

from tritonclient.grpc import service_pb2 as pb

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("tools", "tests")]
from harness import zstd  # noqa: E402
from sample_caffe2 import net, operator  # noqa: E402

CORPUS = Path(__file__).resolve().parent / "corpus"
POST = "POST /v2/models/{model}/infer HTTP/1.1\r\nHost: a\r\n"


def write(target: str, seeds: dict[str, bytes]) -> None:
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data)


def post(body: bytes, model: str = "m", *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"{POST.format(model=model)}Content-Length: {len(body)}\r\n{lines}\r\n".encode() + body


def get(path: str, version: str = "1.1") -> bytes:
    return f"GET {path} HTTP/{version}\r\nHost: a\r\n\r\n".encode()


def chunked(*chunks: bytes) -> bytes:
    return b"".join(f"{len(c):x}\r\n".encode() + c + b"\r\n" for c in chunks) + b"0\r\n\r\n"


def control(what: str, body: bytes) -> bytes:
    return f"POST /v2/repository/models/m/{what} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


FP32_JSON = b'{"id":"1","inputs":[{"name":"INPUT0","shape":[2],"datatype":"FP32","data":[1,2.5e1]}]}'
BATCH_JSON = (
    b'{"inputs":[{"name":"INPUT0","shape":[2,4],"datatype":"INT32","data":[[1,2,3,4],[-5,6,7,8]]}],'
    b'"outputs":[{"name":"OUTPUT0","parameters":{"classification":2}}]}'
)
STRING_JSON = b'{"inputs":[{"name":"INPUT0","shape":[2],"datatype":"BYTES","data":["a","\\u00e9\\n"]}]}'
TWO_JSON = (
    b'{"inputs":[{"name":"INPUT0","shape":[2,2],"datatype":"BOOL","data":[true,false,1,0]},'
    b'{"name":"INPUT1","shape":[2],"datatype":"FP64","data":[NaN,-1e308]}],'
    b'"outputs":[{"name":"OUTPUT1"},{"name":"OUTPUT0","parameters":{"binary_data":true}}],'
    b'"parameters":{"timeout":1,"priority":2,"mine":"x"}}'
)
BINARY_JSON = (
    b'{"inputs":[{"name":"INPUT0","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}],'
    b'"parameters":{"binary_data_output":true}}'
)
BINARY_HEADER = f"Inference-Header-Content-Length: {len(BINARY_JSON)}"
BINARY = BINARY_JSON + struct.pack("<2f", 1, 2)


def preflight(origin: str) -> bytes:
    return f"OPTIONS /v2 HTTP/1.1\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\nContent-Length: 1\r\n\r\nx".encode()


def http() -> dict[str, bytes]:
    seeds = {
        "health": b"\0" + get("/v2/health/live") + get("/v2/health/ready") + get("/v2", "1.0"),
        "metadata": b"\0" + get("/v2/models/m") + get("/v2/models/b/versions/1/config") + get("/v2/models/x"),
        "statistics": b"\0" + get("/v2/models/stats") + get("/v2/models/m/stats") + get("/v2/models/m/ready"),
        "json": b"\0" + post(FP32_JSON) + post(BATCH_JSON, "b"),
        "strings": b"\7" + post(STRING_JSON, "s"),
        "two": b"\0" + post(TWO_JSON, "t"),
        "binary": b"\0" + post(BINARY, "m", BINARY_HEADER),
        "raw": b"\0" + post(b"\0\0\0\0", "m", "Inference-Header-Content-Length: 0"),
        "pieces": b"\3" + post(BINARY, "m", BINARY_HEADER, "Expect: 100-continue"),
        "chunked": b"\0" + POST.format(model="m").encode() + b"Transfer-Encoding: chunked\r\n\r\n"
        + chunked(FP32_JSON[:20], FP32_JSON[20:]) + get("/v2/health/live"),
        "gzip": b"\0" + post(gzip.compress(FP32_JSON, mtime=0), "m", "Content-Encoding: gzip"),
        "deflate": b"\0" + post(zlib.compress(FP32_JSON), "m", "Content-Encoding: deflate"),
        "zstd": b"\0" + post(zstd.compress(FP32_JSON), "m", "Content-Encoding: zstd", "Accept-Encoding: zstd"),
        "accept": b"\0" + post(FP32_JSON, "m", "Accept-Encoding: deflate;q=0.5, gzip"),
        "index": b"\0POST /v2/repository/index HTTP/1.1\r\nContent-Length: 14\r\n\r\n" + b'{"ready":true}',
        "load": b"\0POST /v2/repository/models/m/load HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        "load-files": b"\0" + control("load", b'{"parameters":{"config":"{\\"name\\":\\"m\\"}","file:1/a":"YWJj","file:../x":"="}}')
        + control("unload", b'{"parameters":{"unload_dependents":true}}'),
        "blanks": b"\5" + post(gzip.compress(FP32_JSON, mtime=0), "m", "Content-Encoding:\tgzip \t", "Accept-Encoding: gzip;q=1 , *;q=0 "),
        "settings": b"\0" + post(b'{"log_verbose_level":1}', "m").replace(b"/v2/models/m/infer", b"/v2/logging") + get("/v2/trace/setting"),
        "openapi": b"\0" + get("/v2/openapi.json") + get("/v2/openapi.json/"),
        "head": b"\0HEAD /v2/models/m HTTP/1.1\r\nConnection: close\r\n\r\n",
        "wrong": b"\0DELETE /v2/models/m HTTP/1.1\r\n\r\nPUT /v3 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        "codings": b"\0POST /v2/models/m/infer HTTP/1.1\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "proxy": b"\3" + get("http://a?x") + get("HTTPS://b/v2?c") + get("http://a/v2"),
        "old": b"\3POST /v2/models/m/infer HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "trailers": b"\0\r\n\r\nPOST /v2/models/m/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(FP32_JSON) + FP32_JSON
        + b"\r\n0\r\nInference-Header-Content-Length: 1\r\nContent-Encoding: gzip\r\n\r\n" + get("/v2"),
        "expects": b"\0" + post(FP32_JSON, "m", "Expect: 200-ok") + b"FOO /v2 HTTP/1.1\r\n\r\n",
        "controls": b"\0" + post(FP32_JSON.replace(b"INPUT0", b"IN\1PUT0")) + post(FP32_JSON.replace(b"INPUT0", b"INPUT0\\u0000x"))
        + post(FP32_JSON + b" \0x") + post(b"[" * 300),
        "origin": b"\x80" + preflight("https://a.example") + post(FP32_JSON, "m", "Origin: https://a.example") + preflight("null"),
        "origins": b"\x87" + get("/v2/health/live").replace(b"\r\n\r\n", b"\r\nOrigin: http://localhost:3000\r\norigin: x\r\n\r\n")
        + post(FP32_JSON, "m", "Origin:", "Accept-Encoding: gzip"),
        "smuggled": b"\0POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    }
    return seeds


def clouds() -> dict[str, bytes]:
    """Of the first byte: 0 SageMaker, 1 Vertex AI, 2 Vertex AI before its model is chosen, 3 the list of SageMaker's models."""

    def to(path: str, body: bytes = b"", *headers: str, method: str = "POST") -> bytes:
        return f"{method} {path} HTTP/1.1\r\n{''.join(f'{header}{chr(13)}{chr(10)}' for header in headers)}Content-Length: {len(body)}\r\n\r\n".encode() + body

    size = f"json-header-size={len(BINARY_JSON)}"
    sagemaker, vertex = (f"Content-Type: application/vnd.{name}-triton.binary+json;{size}" for name in ("sagemaker", "vertex-ai"))
    models = to("/models", b'{"model_name":"a","url":"/opt/ml/models/a/model"}', "X-Amzn-SageMaker-Target-Model: a.tar.gz")
    redirects = ["v2/models/m", "/v2/health/live", "v2/models/m/infer", "metrics", "v2/repository/models/m/load", "v2/systemsharedmemory/status", "../x"]
    return {
        "sagemaker": b"\0" + to("/ping", method="GET") + to("/invocations", FP32_JSON) + to("/invocations?x", BINARY, sagemaker),
        "sagemaker-pieces": b"\x0c" + to("/invocations", BINARY, sagemaker, "Content-Encoding: gzip", f"Inference-Header-Content-Length: {len(BINARY)}"),
        "models": b"\0" + models + to("/models", method="GET") + to("/models/a", method="GET") + to("/models/a/invoke", FP32_JSON) + to("/models/a", method="DELETE"),
        "models-wrong": b"\0" + to("/models/") + to("/models//", method="GET") + to("/models/a/b/invoke", b"{}") + to("/modelsx") + to("/models/a/invoke", method="PUT"),
        "vertex": b"\1" + to("/health", method="GET") + to("/predict", STRING_JSON) + to("/predict", BINARY, vertex),
        "vertex-redirects": b"\1" + b"".join(to("/predict", FP32_JSON, f"X-Vertex-Ai-Triton-Redirect: {each}") for each in redirects),
        "vertex-wrong": b"\1" + to("/predict", method="GET") + to("/predict", BINARY, vertex.replace("size=", "size=x")) + to("/other"),
        "vertex-early": b"\2" + to("/health", method="GET") + to("/predict", STRING_JSON) + to("/predict", b"", "X-Vertex-Ai-Triton-Redirect: v2"),
        "list": b"\3" + b"\0a\0" + b"\3\0" + b"\2a\0" + b"\0a\0" + b"\4b\0" + b"\4c\0" + b"\5a\0" + b"\1a\0" + b"\x10d\0" + b'\0e"\n\xff\0' + b"\3\0" + b"\x08f\0",
    }


def zstd_body() -> dict[str, bytes]:
    """Of the first byte: 1 compressed by the target, 2 in a chunk, 4 the answer may be compressed, from 8 on the model."""
    packed = zstd.compress(FP32_JSON)
    return {
        "same": b"\1\0" + FP32_JSON,
        "same-chunk": b"\x0f\0" + BATCH_JSON,
        "same-pieces": b"\x11\7" + STRING_JSON,
        "same-not": b"\1\0" + b"[" * 200,
        "whole": b"\0\0" + packed,
        "pieces": b"\4\5" + packed,
        "chunk": b"\2\0" + packed,
        "frames": b"\0\0" + zstd.skippable(b"x") + zstd.compress(FP32_JSON[:30], size=0, sum=1) + zstd.compress(FP32_JSON[30:]),
        "window": b"\0\0" + zstd.windowed(zstd.compress(FP32_JSON, size=0), 23),
        "window-too-large": b"\0\0" + zstd.windowed(zstd.compress(FP32_JSON, size=0), 31),
        "cut": b"\0\0" + packed[:-3],
        "more": b"\0\0" + packed + b"{}",
        "size": b"\0\0" + zstd.compress(bytes(100000)),
    }


def generate() -> dict[str, bytes]:
    """Of the first byte: 1 a stream, 2 to 8 the model, 16 HTTP/1.0, 32 twice, 64 gone; the second is the size of the pieces."""
    said = b'{"id":"1","INPUT0":"a \\"word\\"\\n\\u00e9","count":%d,"fail_at":%d}'
    return {
        "one": b"\0\0" + said % (1, -1),
        "many": b"\1\0" + said % (5, -1),
        "none": b"\1\0" + said % (0, -1),
        "fails": b"\1\7" + said % (3, 1),
        "fails-first": b"\1\0" + said % (2, 0),
        "too-many": b"\0\0" + said % (3, -1),
        "old": b"\x11\0" + said % (3, -1),
        "twice": b"\x21\0" + said % (2, -1),
        "gone": b"\x41\0" + said % (9, -1),
        "nested": b'\1\3{"INPUT0":["a","b"],"INPUT1":-1.5e3,"parameters":{"count":2,"INPUT0":"c","text":"x","yes":true,"half":0.5}}',
        "identity": b'\3\0{"INPUT0":["a",""],"other":{}}',
        "b64": b'\3\0{"INPUT0":[{"b64":"/w=="},"b"]}',
        "numbers": b'\4\0{"INPUT0":[1,2.5,-3e38],"id":"n"}',
        "batch": b'\7\0{"INPUT0":[1,2,3,4],"priority":1,"timeout":2}',
        "two": b'\x08\0{"INPUT0":[true,false,true,false],"INPUT1":[1.5,-2]}',
        "nobody": b'\x0e\0{"INPUT0":1}',
        "wrong": b'\1\0{"INPUT0":[[1,"a"],null],"parameters":[],"id":7,"triton_x":1,"INPUT0":"again"}',
    }


def openai() -> dict[str, bytes]:
    """Of the first byte: 1 and 2 the route, 16 HTTP/1.0, 32 twice, 64 gone; the second is the size of the pieces."""
    talk = b'[{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b\\n"}]},{"role":"x","content":null}]'
    return {
        "completion": b'\0\0{"model":"d","prompt":"once"}',
        "stream": b'\0\0{"model":"d","prompt":["a","\\u00e9"],"n":3,"stream":true,"stream_options":{"include_usage":true}}',
        "none": b'\0\0{"model":"d","prompt":"a","n":0,"stream":true}',
        "chat": b'\1\3{"model":"d","messages":%s,"stream":true}' % talk,
        "old": b'\x11\0{"model":"d","messages":%s,"n":2,"stream":true}' % talk,
        "twice": b'\x21\0{"model":"d","messages":%s,"n":2,"max_tokens":7}' % talk,
        "gone": b'\x41\0{"model":"d","messages":%s,"n":9,"stream":true}' % talk,
        "request": b'\1\0{"model":"s","messages":%s,"temperature":0.5,"stop":["a",1e20],"tools":[{"a":{}}]}' % talk,
        "embedding": b'\2\0{"model":"d","input":"a","n":1.5}',
        "base64": b'\2\0{"model":"d","input":["a"],"n":1,"encoding_format":"base64"}',
        "nobody": b'\0\0{"model":"x","prompt":"a"}',
        "wrong": b'\0\0{"model":"d","prompt":[["a"],null],"stream":1,"n":[[]],"stream_options":[]}',
        "bytes": b'\0\0{"model":"d","prompt":"a\xff"}',
        "models": b"\3\0",
    }


def region(action: str, body: bytes = b"", name: str = "r", kind: str = "system") -> bytes:
    place = f"/region/{name}" if name else ""
    return f"POST /v2/{kind}sharedmemory{place}/{action} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def regions() -> dict[str, bytes]:
    """Of the first byte: 1 allowed, 2 cut short halfway."""
    key = b'{"key":"/nereid-fuzz","byte_size":8192}'
    infer = (
        b'{"inputs":[{"name":"INPUT0","shape":[1024],"datatype":"FP32","parameters":{"shared_memory_region":"r","shared_memory_byte_size":4096}}],'
        b'"outputs":[{"name":"OUTPUT0","parameters":{"shared_memory_region":"r","shared_memory_byte_size":4096,"shared_memory_offset":4096}}]}'
    )
    strings = (
        b'{"inputs":[{"name":"INPUT0","shape":[4],"datatype":"BYTES","parameters":{"shared_memory_region":"r","shared_memory_byte_size":16}}],'
        b'"outputs":[{"name":"OUTPUT0","parameters":{"shared_memory_region":"r","shared_memory_byte_size":16,"shared_memory_offset":64}}]}'
    )
    handle = b'{"raw_handle":{"b64":"' + b"A" * 86 + b'=="},"device_id":0,"byte_size":64}'
    return {
        "both": b"\1" + region("register", key) + post(infer) + get("/v2/systemsharedmemory/status") + region("unregister"),
        "off": b"\0" + region("register", key) + post(infer) + get("/v2/systemsharedmemory/status") + region("unregister", name=""),
        "strings": b"\1" + region("register", key) + post(strings, "s") + region("unregister", name=""),
        "cut": b"\3" + region("register", key) + get("/v2") * 8 + post(infer) + post(strings, "s") + region("register", key),
        "pieces": b"\x21" + region("register", key) + post(infer),
        "twice": b"\1" + region("register", key) + region("register", key) + region("register", key, "q") + get("/v2/systemsharedmemory/region/q/status"),
        "later": b"\1" + region("register", b'{"key":"nereid-fuzz","byte_size":4096,"offset":4096}') + post(infer) + post(infer.replace(b"4096", b"64", 1)),
        "keys": b"\1" + b"".join(region("register", b'{"key":"%s","byte_size":1}' % each) for each in (b"", b"/", b"/..", b"a/b", b"/triton_python_backend_shm_region_1")),
        "numbers": b"\1" + b"".join(region("register", b'{"key":"/nereid-fuzz","byte_size":%s,"offset":%s}' % each) for each in (
            (b"18446744073709551615", b"1"), (b"0", b"0"), (b"-1", b"0"), (b"1.5", b"0"), (b'"1"', b"null"), (b"8193", b"0"))),
        "parts": b"\1" + region("register", key) + b"".join(post(infer.replace(b":4096", b":" + each)) for each in (b"8193", b"18446744073709551615", b"0", b"-1", b'"x"')),
        "device": b"\1" + region("register", handle, kind="cuda") + region("register", b"{}", kind="cuda") + get("/v2/cudasharedmemory/status")
        + region("unregister", kind="cuda") + get("/v2/cudasharedmemory/region/r/status"),
        "wrong": b"\1" + region("register") + region("register", b"[]") + region("register", key, "") + region("unregister", b"x", "nobody"),
    }


def http1() -> dict[str, bytes]:
    seeds = {f"http-{name}": b"\5" + data[1:] for name, data in http().items() if len(data) < 400}
    seeds["trailers"] = (
        b"\1POST /a?b HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n"
        b"5;name=\"v\"\r\nhello\r\n00\r\nA: b\r\n\r\nGET * HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    )
    post = b"POST /infer HTTP/1.1\r\nContent-Length: 2\r\n\r\n"
    seeds["heads-again"] = b"\x3f" + post + b"ab" + post + b"cd" + post.replace(b" 2\r", b" 3\r") + b"efg" + post + b"hi"
    return seeds


def json_tensor() -> dict[str, bytes]:
    texts = [b"[true,[false,1,0]]", b"[0,255,[7]]", b"[65535,1]", b"[4294967295]", b"[18446744073709551615,0]",
             b"[-128,127]", b"[-32768,32767]", b"[-2147483648]", b"[-9223372036854775808,9223372036854775807]",
             b"[1.5,-1e38,NaN,Infinity]", b"[1e308,-0.0,1e-320,3]", b'["","a","\\u00e9\\ud83d\\ude00",["x"]]']  # fmt: skip
    seeds = {f"type-{index:02}": bytes([index]) + text for index, text in enumerate(texts)}
    seeds["type-12"] = b"\x0c[65504,-0.1,[1e-8,NaN]]"
    seeds["type-13"] = b"\x0d[3e38,-0.1,[1e-40,Infinity]]"
    seeds["type-14"] = b'\x0e["",{"b64":"/wA="},[{"b64":"_w"}],"a"]'
    seeds["base64-bad"] = b'\x0b[{"b64":"QQ==QQ=="}]'
    seeds["deep"] = b"\3" + b"[" * 101 + b"1" + b"]" * 101
    seeds["tensor-base64"] = b"\x0e" + struct.pack("<I1sI2s", 1, b"\xff", 2, b"bc")
    seeds["tensor"] = b"\x0b" + struct.pack("<I1sI2s", 1, b"a", 2, b"bc")
    return seeds


def infer_request(model: str = "m", **more: object) -> pb.ModelInferRequest:
    request = pb.ModelInferRequest(model_name=model, id="1", **more)
    tensor = request.inputs.add(name="INPUT0", datatype="FP32", shape=[2])
    tensor.parameters["p"].string_param = "x"
    request.raw_input_contents.append(struct.pack("<2f", 1, 2))
    return request


def infer_pb() -> dict[str, bytes]:
    typed = pb.ModelInferRequest(model_name="t", model_version="1")
    kinds = {"bool": True, "int": -1, "int64": -(2**63), "uint": 7, "uint64": 2**64 - 1, "fp32": 1.5, "fp64": 2.5}
    for kind, value in kinds.items():
        tensor = typed.inputs.add(name=kind, shape=[1, -1], datatype="FP32")
        getattr(tensor.contents, f"{kind}_contents").extend([value, value])
    typed.inputs.add(name="b").contents.bytes_contents.extend([b"", b"abc"])
    typed.outputs.add(name="OUTPUT0").parameters["classification"].int64_param = 2
    for name, value in {"bool_param": True, "double_param": 0.5, "uint64_param": 3}.items():
        setattr(typed.parameters[name], name, value)
    raw = infer_request()
    raw.raw_input_contents.append(b"")
    return {
        "raw": raw.SerializeToString(deterministic=True),
        "typed": typed.SerializeToString(deterministic=True),
        "merged": typed.SerializeToString(deterministic=True) + raw.SerializeToString(deterministic=True),
        "groups": b"\x0b\x08\x01\x0c" + raw.SerializeToString(deterministic=True),
    }


def message(body: bytes, compressed: int = 0) -> bytes:
    return bytes([compressed]) + len(body).to_bytes(4, "big") + body


def grpc_inbox() -> dict[str, bytes]:
    infer = infer_request().SerializeToString(deterministic=True)
    return {
        "two": b"\x00" + message(b"") + message(b"abc", 1),
        "tensors": b"\x41" + message(infer) + message(infer),
        "kept": b"\x1a" + message(infer),
        "announced": b"\x12" + b"\0\xff\xff\xff\xff" + b"abc",
        "cut": b"\x12" + message(infer)[:40],
        "flags": b"\x02\x07\0\0\0\0",
    }


CALL, MESSAGE, DATA, TRAILERS, RESET, FRAME, WINDOW, TURN = range(8)
END, COMPRESSED = 0x01, 0x80


def call(stream: int, path: int, variant: int = 0) -> bytes:
    return bytes([CALL, stream, path, variant])


def data(stream: int, body: bytes, flags: int = END, step: int = MESSAGE) -> bytes:
    return bytes([step, stream, flags]) + struct.pack(">H", len(body)) + body


def reflection() -> list[bytes]:
    """One request of each kind: a file, a symbol, an extension and all of a type, the services; and names of nothing."""
    files = [b"proto/grpc_service.proto", b"nothing.proto"]
    symbols = [b"inference.GRPCInferenceService.ModelInfer", b"inference.ModelInferRequest.InferInputTensor", b"inference", b"."]
    return [
        *(b"\x1a" + bytes([len(name)]) + name for name in files),
        *(b"\x22" + bytes([len(name)]) + name for name in symbols),
        b"\x2a\x05\x0a\x01x\x10\x07",
        b"\x32\x01x",
        b"\x3a\x00",
    ]


RAW = b"\xffPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"


def recited(count: int, fail_at: int = -1, empty: bool = False) -> bytes:
    """A request of the decoupled model."""
    asked = pb.ModelInferRequest(model_name="d", id=str(count))
    asked.inputs.add(name="INPUT0", datatype="BYTES", shape=[1]).contents.bytes_contents.append(b"said")
    asked.parameters["count"].int64_param = count
    asked.parameters["fail_at"].int64_param = fail_at
    if empty:
        asked.parameters["triton_enable_empty_final_response"].bool_param = True
    return asked.SerializeToString(deterministic=True)


def grpc() -> dict[str, bytes]:
    infer = infer_request().SerializeToString(deterministic=True)
    batch = pb.ModelInferRequest(model_name="b")
    batch.inputs.add(name="INPUT0", datatype="INT32", shape=[1, 4]).contents.int_contents.extend([1, 2, 3, 4])
    batch.outputs.add(name="OUTPUT0").parameters["classification"].int64_param = 3
    batched = batch.SerializeToString(deterministic=True)
    named = pb.ModelMetadataRequest(name="m", version="1").SerializeToString()
    half = len(infer) // 2
    split = message(infer)
    bomb = b"\x83\x86\x84\x40\1x\x7f\xbd\x1e" + b"a" * 4028 + b"\xbe" * 30  # the last bytes: the header before them, each
    seeds = {
        "unary": b"\0" + call(1, 0) + data(1, infer) + call(3, 0) + data(3, batched),
        "later": b"\0" + call(1, 0) + data(1, infer, 0) + bytes([TURN, TRAILERS, 1]),
        "parts": b"\5" + call(1, 0) + data(1, split[:half], 0, DATA) + bytes([TURN])
        + data(1, split[half:], END, DATA),
        "streamed": b"\0" + call(1, 1) + data(1, infer, 0) + data(1, batched, 0) + bytes([TURN, WINDOW, 1, 0, 1])
        + data(1, infer),
        "streamed-errors": b"\0" + call(1, 1, 0x10) + data(1, b"\x0a\x01x", 0) + data(1, infer),
        "recited": b"\0" + call(1, 1) + data(1, recited(5), 0) + data(1, recited(0), 0) + data(1, recited(3, 1, True)),
        "recited-reset": b"\0" + call(1, 1) + data(1, recited(9), 0) + data(1, recited(9), 0) + bytes([RESET, 1]) + call(3, 0) + data(3, recited(1)),
        "recited-error": b"\0" + call(1, 1, 0x10) + data(1, recited(4, 2), 0) + bytes([TURN]) + data(1, recited(2, 0)),
        "gzip": b"\0" + call(1, 0, 0x01) + data(1, gzip.compress(infer, mtime=0), END | COMPRESSED),
        "deflate": b"\0" + call(1, 0, 0x02) + data(1, zlib.compress(infer), END | COMPRESSED),
        "times": b"\0" + call(1, 0, 0x04) + data(1, infer) + call(3, 0, 0x08) + data(3, infer) + call(5, 0, 0x80),
        "reset": b"\0" + call(1, 1) + data(1, infer, 0) + bytes([TURN, RESET, 1]) + call(3, 0) + bytes([RESET, 3]),
        "http": b"\0" + call(1, 0x80) + call(3, 0x40) + data(3, infer) + call(5, 0, 0x40),
        "health": b"\0" + call(1, 16) + data(1, b"") + call(3, 17) + data(3, b"\x0a\x01m"),
        "reflection": b"\0" + call(1, 18) + b"".join(data(1, ask, 0) for ask in reflection()) + data(1, b"")
        + call(3, 19) + data(3, b"\x3a\x00"),
        "gzip-parts": b"\7" + call(1, 1, 0x21) + data(1, gzip.compress(infer, mtime=0), COMPRESSED)
        + data(1, gzip.compress(batched, mtime=0)[:-3], COMPRESSED) + bytes([TURN, TRAILERS, 1]),
        "coding": b"\0" + call(1, 0, 0x40) + data(1, infer, END | COMPRESSED) + call(3, 0) + data(3, infer, END | COMPRESSED),
        "frames": b"\0" + bytes([FRAME, 6, 0, 0, 0, 8]) + b"12345678" + bytes([FRAME, 4, 0, 0, 0, 6])
        + struct.pack(">HI", 4, 100) + bytes([FRAME, 1, 0, 1, 0, 2]) + b"\x83\x86" + bytes([FRAME, 9, 4, 1, 0, 1, 0x84]),
        "raw": RAW,
        "trifles": b"\0" + bytes([FRAME, 0x42, 0, 0, 0, 0]) * 1001,
        "long-block": RAW + b"\1\0\1\1\0\0\0\0\1\x82",
        "bomb": RAW + len(bomb).to_bytes(3, "big") + b"\1\4\0\0\0\1" + bomb,
    }  # fmt: skip
    for path in range(2, 16):
        seeds[f"method-{path:02}"] = b"\0" + call(1, path) + data(1, named if path in (4, 6, 7, 8) else b"")
    return seeds


def http2() -> dict[str, bytes]:
    """As grpc(): paths and the bits of variants are in fuzz_http2.c."""
    infer = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'
    text = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]}'
    recite = b'{"INPUT0":"said","parameters":{"count":5}}'
    none, get, sized = 0x80, 0x40, 0x10
    seeds = {
        "infer": b"\0" + call(1, 0) + data(1, infer, END, DATA) + call(3, 0, 0x04) + data(3, infer, END, DATA),
        "binary": b"\0" + call(1, 0, 0x01) + data(1, text + bytes(8), END, DATA),
        "parts": b"\5" + call(1, 0) + data(1, infer[:30], 0, DATA) + bytes([TURN]) + data(1, infer[30:], END, DATA),
        "sized": b"\0" + call(1, 0, sized) + data(1, infer[:40], END, DATA) + call(3, 0, sized) + data(3, infer, END, DATA),
        "huge": b"\0" + call(1, 0, 0x20) + data(1, infer, 0, DATA) + call(3, 0, 0x08) + data(3, infer, END, DATA),
        "gzip": b"\0" + call(1, 0, 0x02) + data(1, gzip.compress(infer, mtime=0), END, DATA) + call(3, 0, 0x02) + data(3, infer, END, DATA),
        "stream": b"\0" + call(1, 2) + data(1, recite, END, DATA) + call(3, 0) + data(3, infer, END, DATA) + bytes([TURN, RESET, 1]),
        "later": b"\0" + call(1, 0) + data(1, infer, 0, DATA) + bytes([TURN, TRAILERS, 1]),
        "reset": b"\0" + call(1, 0) + data(1, infer, 0, DATA) + bytes([RESET, 1]) + call(3, 2) + data(3, recite, END, DATA) + bytes([RESET, 3]),
        "windows": b"\0" + bytes([FRAME, 4, 0, 0, 0, 6]) + struct.pack(">HI", 4, 3) + call(1, none | 5, get) + bytes([TURN, WINDOW, 1, 0, 1, TURN, WINDOW, 1, 0, 2]),
        "frames": b"\0" + bytes([FRAME, 6, 0, 0, 0, 8]) + b"12345678" + bytes([FRAME, 1, 0, 1, 0, 2]) + b"\x82\x87" + bytes([FRAME, 9, 4, 1, 0, 1, 0x84]),
        "raw": RAW,
        "trifles": b"\0" + bytes([FRAME, 0x42, 0, 0, 0, 0]) * 1001,
        "no-preface": b"\xffPRI * HTTP/2.0\r\n\r\nSX\r\n\r\n",
        "http1": b"\xffPOST /v2 HTTP/1.1\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    }  # fmt: skip
    for path in range(5, 18):
        seeds[f"path-{path:02}"] = b"\0" + call(1, none | path, get) + call(3, path) + data(3, b"{}", END, DATA)
    return seeds


CONFIG = b"""name: "m" backend: "identity" max_batch_size: 8
input [ { name: "a" data_type: TYPE_FP32 dims: [ -1, 3 ] reshape { shape: [ -1 ] } } ]
output [ { name: "b" data_type: TYPE_STRING dims: 1 label_filename: "l.txt" } ]
"""
ENSEMBLE = b"""name: "m" platform: "ensemble"
input { name: "x" data_type: TYPE_INT8 dims: [ 1 ] } output { name: "y" data_type: TYPE_INT8 dims: [ 1 ] }
ensemble_scheduling { step { model_name: "n" model_version: -1
  input_map { key: "a" value: "x" } output_map { key: "b" value: "y" } } }
"""


def pb_text() -> dict[str, bytes]:
    return {
        "plain": CONFIG,
        "batching": CONFIG + b"dynamic_batching { preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 100 "
        b"default_queue_policy { timeout_action: REJECT max_queue_size: 3 } priority_levels: 2 "
        b"priority_queue_policy { key: 1 value { allow_timeout_override: true } } }",
        "sequence": CONFIG + b"sequence_batching { oldest { max_candidate_sequences: 4 } "
        b"control_input { name: 'S' control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } "
        b"state { input_name: 'i' output_name: 'o' data_type: TYPE_FP32 dims: [ 1 ] } }",
        "ensemble": ENSEMBLE,
        "groups": CONFIG + b"instance_group [ { count: 2 kind: KIND_CPU }, { kind: KIND_GPU gpus: [ 0 ] rate_limiter "
        b"{ resources { name: 'r' count: 1 } priority: 2 } } ] version_policy: { latest { num_versions: 2 } }",
        "warmup": CONFIG + b"model_warmup { name: 'w' batch_size: 1 inputs { key: 'a' value { data_type: TYPE_FP32 "
        b"dims: [ 3 ] zero_data: true } } } parameters { key: 'k' value { string_value: \"\\x41\\101\\n\" 'b' } }",
        "forms": b"name: 'a' \"b\" # c\nmax_batch_size: 0x10, ; version_policy < all < > > "
        b"optimization { priority: PRIORITY_MAX input_pinned_memory { enable: 1 } }",
    }


def config_json() -> dict[str, bytes]:
    return {
        "plain": b'{"name":"m","max_batch_size":"8","maxBatchSize":8,"input":[{"name":"a","data_type":"TYPE_FP32",'
        b'"dims":["-1",3]}],"parameters":{"k":{"string_value":"\\u00e9"}}}',
        "oneof": b'{"sequence_batching":{"direct":{},"max_sequence_idle_microseconds":"1"},"dynamic_batching":null}',
        "floats": b'{"model_metrics":{"metric_control":[{"metric_identifier":{"family":"f"},'
        b'"histogram_options":{"buckets":[1,2.5,1e3,"NaN"]}}]}}',
    }


def store_names() -> dict[str, bytes]:
    item = b"<Contents><Key>%s</Key><Size>5</Size><ETag>&quot;5d41402abc4b2a76b9719d911017c592%s&quot;</ETag></Contents>"
    blob = b"<Blob><Name>%s</Name><Properties><Content-Length>5</Content-Length><Etag>0x1</Etag><Content-MD5>XUFAKrxLKna5cZ2REBfFkg==</Content-MD5></Properties></Blob>"
    names = [b"p/m/config.pbtxt", b"p/m/1/x", b"p/m/../../x", b"p/.git/x", b"p/", b"p/m/1/"]
    return {
        "s3": b"\0<ListBucketResult>" + b"".join(item % (n, t) for n, t in zip(names, [b"", b"-3"] * 3, strict=True)) + b"</ListBucketResult>",
        "s3-page": b"\0<ListBucketResult><EncodingType>url</EncodingType>" + item % (b"p/m/%2e%2e/a+b", b"")
        + b"<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
        "s3-other": b"\0<ListBucketResult>" + item % (b"other", b"") + b"</ListBucketResult>",
        "entity": b'\0<!DOCTYPE a [<!ENTITY x "y">]><ListBucketResult>&x;</ListBucketResult>',
        "azure": b"\1\xef\xbb\xbf<EnumerationResults><Blobs>" + b"".join(blob % n for n in names) + b"</Blobs><NextMarker>n</NextMarker></EnumerationResults>",
        "profile": b"\2# c\n[default]\nkey = a = b\n  key = nested\n[ profile\tx ]\r\n;",
        "host": b"\2http://[::1]:9000//bucket//a/b/",
        "port": b"\2host:65536/b",
        "gcs": b'\3{"nextPageToken":"n","items":[' + b",".join(
            b'{"name":"%s","size":"5","generation":"7","md5Hash":"XUFAKrxLKna5cZ2REBfFkg==","crc32c":"mnG7TA=="}' % name for name in names
        ) + b"]}",
        "gcs-other": b'\3{"items":[{"name":"other","size":"5","generation":"7"},{"name":"p/a","size":"-1","generation":""}]}',
        "token": b'\4{"access_token":"t","expires_in":"3599","token_type":"Bearer"}',
        "token-none": b'\4{"access_token":"","expires_in":1e9}',
    }


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("<QQ", kind, len(body)) + body


def wire_text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text + b"\0"


def response(request: int, place: int, flags: int, error: bytes = b"") -> bytes:
    """Two parameters and three outputs: without a buffer, in the message, in shared memory."""
    body = struct.pack("<QQQ", request, place, flags)
    body += struct.pack("<Q", 7) + wire_text(error) if error else struct.pack("<Q", 0)
    body += struct.pack("<Q", 2) + wire_text(b"p") + struct.pack("<QQ", 0, 5) + b"value" + wire_text(b"q") + struct.pack("<QQ", 3, 42)
    body += struct.pack("<Q", 3)
    for where in (b"\0" * 8, struct.pack("<QQ", 1, 8) + b"eight by", struct.pack("<QQQQ", 2, 1, 4096, 8192)):
        body += wire_text(b"O") + struct.pack("<QQQ", 11, 1, 2) + where
    return record(RESPONSE, body)


DONE, ATTRIBUTES, CONFIG_RECORD, USAGE, BATCH, RESPONSE, FLAGS, RELEASE, AGAIN, GONE, STATISTICS, RESPONSE_STATISTICS = range(1, 13)


def story(request: int) -> bytes:
    """What a good process says about one request."""

    def plain(kind: int, place: int, *numbers: int) -> bytes:
        return record(kind, struct.pack(f"<{2 + len(numbers)}Q", request, place, *numbers))

    return (
        record(BATCH, struct.pack("<5Q", 1, 1, 2, 3, 4)) + response(request, 0, 0) + plain(STATISTICS, 1, 1, 1, 2, 3, 4)
        + response(request, 2, 1) + plain(RESPONSE_STATISTICS, 3, 0, 1, 2, 3, 4) + plain(RELEASE, 4) + plain(GONE, 5)
    )  # fmt: skip


def isolate() -> dict[str, bytes]:
    def packets(frame: bytes, size: int) -> bytes:
        parts = [frame[at : at + size] for at in range(0, len(frame), size)]
        lefts = [len(frame) - at for at in range(0, len(frame), size)]
        return b"".join(bytes([len(p) + 8]) + struct.pack("<Q", left) + p for p, left in zip(parts, lefts, strict=True))

    numbers = struct.pack
    loaded = (
        record(ATTRIBUTES, numbers("<7Q", 1, 1, 1, 2, 1, 1, 0)) + record(CONFIG_RECORD, numbers("<Q", 2) + b"{}")
        + record(USAGE, numbers("<4Q", 1, 0, 0, 4096))
    )  # fmt: skip
    released = record(FLAGS, numbers("<3Q", 0, 0, 1)) + record(AGAIN, numbers("<2Q", 0, 1))
    return {
        "stories": b"\0" + story(0) + story(1) + story(2),
        "failed": b"\0" + response(2, 0, 1, b"not today") + record(RELEASE, numbers("<2Q", 2, 1)),
        "order": b"\0" + record(GONE, numbers("<2Q", 1, 2)) + record(RELEASE, numbers("<2Q", 1, 1)) + response(1, 0, 1),
        "again": b"\0" + released,
        "loaded": b"\1" + loaded + record(DONE, numbers("<QQ", 0, 2**64 - 1)),
        "refused": b"\1" + record(DONE, numbers("<Q", 4) + wire_text(b"no")),
        "packets": b"\2" + packets(story(0), 200) + packets(response(1, 0, 1), 40),
        "packet": b"\2" + packets(record(FLAGS, numbers("<3Q", 2, 0, 1)), 240),
    }


def tls() -> dict[str, bytes]:
    """A first byte that is odd: a whole handshake, then the rest in records, then raw."""
    hello = bytes.fromhex("16030100800100007c0303") + bytes(32) + bytes.fromhex("0000061301c02bc02f0100004d")
    return {
        "records": b"\x01\x10" + b"GET /v2 HTTP/1.1\r\n\r\n" * 40,
        "bytes": b"\x01\x00" + b"a few bytes",
        "large": b"\x01\xff" + bytes(range(256)) * 20,
        "nothing": b"\x01\x10",
        "hello": b"\x00\x04" + hello + bytes(79),
        "halves": b"\x00\x00" + hello,
        "alert": b"\x00\x10" + bytes.fromhex("15030300020228"),
        "data": b"\x00\x10" + bytes.fromhex("1703030010") + bytes(16),
        "too-long": b"\x00\x10" + bytes.fromhex("160301ffff") + bytes(200),
        "plain": b"\x00\x10GET / HTTP/1.1\r\n\r\n",
    }


def netdef() -> dict[str, bytes]:
    """Networks that compute y of x."""
    def one(kind: str, **arguments: object) -> bytes:
        return operator(kind, ["x"], ["y"], **arguments)  # type: ignore[arg-type]

    shape = operator("GivenTensorInt64Fill", [], ["s"], shape=[2], values=[0, -1])
    networks = {
        "pool": [one("MaxPool", kernel=3, stride=2, pad=1, order="NHWC", legacy_pad=3)],
        "layers": [
            operator("GivenTensorFill", [], ["w"], shape=[1, 4], values=[1.0, 2.0, 3.0, 4.0]), operator("ConstantFill", [], ["b"], shape=[1], value=0.5),
            operator("Conv", ["x", "w"], ["h"], kernels=[1, 1], strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0], group=2),
            operator("AveragePool", ["h"], ["h"], global_pooling=1), operator("FC", ["h", "w", "b"], ["y"], axis=1),
        ],
        "shapes": [
            shape, operator("Reshape", ["x", "s"], ["h", "old"]), operator("Split", ["h"], ["a", "b"], axis=1, split=[1, 3]),
            operator("Concat", ["a", "b"], ["c", "parts"], axis=1, add_axis=0), operator("Transpose", ["c"], ["c"], axes=[1, 0]),
            operator("Slice", ["c"], ["c"], starts=[0, 1], ends=[-1, -2]), operator("ExpandDims", ["c"], ["c"], dims=[0]),
            operator("Squeeze", ["c"], ["c"], dims=[0]), operator("Gather", ["c", "s"], ["y"], axis=0),
        ],
        "numbers": [
            operator("Add", ["x", "x"], ["h"], broadcast=1, axis=0), operator("Clip", ["h"], ["h"], min=0.0), one("Softmax", axis=-1),
            operator("SpatialBN", ["x", "x", "x", "x", "x"], ["h"], is_test=1, epsilon=0.1), operator("Cast", ["h"], ["y"], to="int32"),
            operator("LRN", ["x"], ["y"], size=3, alpha=0.1, beta=0.7), operator("ResizeNearest", ["x"], ["y"], width_scale=2.0),
        ],
        "unknown": [one("RoIAlign")],
    }
    return {name: net(name, operators, ["x"], ["y"]) for name, operators in networks.items()}


def main() -> None:
    write("isolate", isolate())
    write("store_names", store_names())
    write("http", http())
    write("http1", http1())
    write("json_tensor", json_tensor())
    write("infer_pb", infer_pb())
    write("grpc_inbox", grpc_inbox())
    write("grpc", grpc())
    write("http2", http2())
    write("pb_text", pb_text())
    write("config", {name: b"\2" + text for name, text in pb_text().items()})
    write("config_json", config_json())
    texts = [b"1S", b"99999999H", b"1n", b"application/grpc+proto", b"application/grpc;a", b"a%\n\xc3\xa9\xf0", b"gzip"]
    write("grpc_text", {f"text-{index}": text for index, text in enumerate(texts)})
    plain = b"The same words, the same words, the same words. " * 4
    write("expand", {
        "gzip": b"\1\x14" + gzip.compress(plain, mtime=0),
        "deflate": b"\0\x14" + zlib.compress(plain),
        "limit": b"\0\4" + zlib.compress(bytes(100000), 9),
        "stored": b"\0\x14" + zlib.compress(plain[:20], 0),
        "zstd": b"\x10\x14" + zstd.compress(plain, size=0, sum=1) + zstd.skippable(b"x") + zstd.compress(plain),
        "zstd-window": b"\x1c\x14" + zstd.windowed(zstd.compress(plain, size=0), 20),
        "zstd-limit": b"\x10\4" + zstd.compress(bytes(100000)),
    })  # fmt: skip
    write("netdef", netdef())
    write("regions", regions())
    write("generate", generate())
    write("clouds", clouds())
    write("zstd_body", zstd_body())
    write("openai", openai())
    write("labels", {"lines": b"a\nb b\r\n\nlast", "ended": b"one\ntwo\n", "return": b"a\rb\r\n\r", "nul": b"a\0b\n"})
    write("tls", tls())
    setting = pb.TraceSettingRequest(model_name="m")
    for key, values in {"trace_rate": ["7"], "trace_level": ["TIMESTAMPS", "TENSORS"], "trace_count": [], "log_frequency": ["x"]}.items():
        setting.settings[key].value.extend(values)
    write(
        "trace_settings",
        {
            "json": b'\0{"trace_level":["TIMESTAMPS","TENSORS"],"trace_rate":"7","trace_count":null,"log_frequency":"-2"}',
            "off": b'\0{"trace_level":["OFF"],"trace_count":"2147483648"}',
            "file": b'\0{"trace_file":"x","nothing":1}',
            "message": b"\1" + setting.SerializeToString(deterministic=True),
            "context": b"\2" + b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "later": b"\2" + b"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        },
    )
    write("base64", {"padded": b"YQ==", "bare": b"YWI", "lines": b"YWJj\r\nZGVm\n", "signs": b"+/8=", "wrong": b"YQ=a"})
    write("options", {
        "equals": b"--model-repository=/m\n--http-port=0\n--log-verbose=1\n--exit-on-error=false",
        "words": b"--model-repository\n/m\n--backend-config\nonnxruntime,threads=2\n--backend-config=a=b",
        "wrong": b"--http-port=65536\n", "unknown": b"--nothing=1", "flag": b"--disable-auto-complete-config\n-h",
        "format": b"--log-format=ISO8601\n--reuse-grpc-port=1",
        "file": b"\0# options\nhttp-port = 0\nmodel-repository=/m\n\nlog-verbose : 1\nnothing\n",
    })  # fmt: skip


if __name__ == "__main__":
    main()
