"""The questions over HTTP: what a client can see of the spine."""

import json
import struct
from typing import Any

import adjust as adjusts
from harness.compare import Adjust, Http, Question
from harness.models import SPINE_MODELS

INFER = "/v2/models/{}/infer"


def _control() -> list[Question]:
    paths = [
        ("GET", "/v2/health/live"),
        ("GET", "/v2/health/ready"),
        ("POST", "/v2/health/live"),
        ("GET", "/v2/health/none"),
        ("GET", "/nothing"),
        ("GET", "/v2/nothing"),
        ("GET", "/v3"),
        ("GET", "/v2x"),
        ("DELETE", "/v2"),
        ("POST", "/v2"),
        ("GET", "/v2/models/id_fp32/versions/1"),
        ("GET", "/v2/models/id_fp32/versions/9"),
        ("GET", "/v2/models/id_fp32/versions/0"),
        ("GET", "/v2/models/id_fp32/versions/99999999999999999999"),
        ("GET", "/v2/models/id_fp32/versions/x"),
        ("GET", "/v2/models/nobody"),
        ("GET", "/v2/models/"),
        ("GET", "/v2/models"),
        ("GET", "/v2/models/id_fp32/ready"),
        ("GET", "/v2/models/nobody/ready"),
        ("GET", "/v2/models/id_fp32/versions/9/ready"),
        ("GET", "/v2/models/id_fp32/versions/1/ready"),
        ("GET", "/v2/models/id_fp32/nothing"),
        ("GET", "/v2/models/nobody/config"),
        ("GET", "/v2/models/id_fp32/versions/9/config"),
        ("POST", "/v2/models/id_fp32/config"),
        ("POST", "/v2/models/id_fp32/ready"),
        ("POST", "/v2/models/id_fp32"),
        ("GET", "/v2/models/nobody/stats"),
        ("GET", "/v2/models/id_fp32/versions/9/stats"),
        ("POST", "/v2/models/stats"),
        ("GET", "/v2/models/id_fp32/infer"),
        ("PUT", "/v2/models/id_fp32/infer"),
        ("GET", "/v2/repository/index"),
        ("GET", "/v2/models/id_newest/versions/1"),
        ("GET", "/v2/models/id_newest/versions/3/config"),
    ]
    asked: list[Question] = [Http(f"{method} {path}", method, path) for method, path in paths]
    asked.append(Http("GET /v2", "GET", "/v2", adjust=adjusts.known_metadata))
    for model in SPINE_MODELS:
        asked.append(Http(f"metadata of {model}", "GET", f"/v2/models/{model}"))
        asked.append(Http(f"config of {model}", "GET", f"/v2/models/{model}/config"))
    asked.append(Http("stats of one model never asked", "GET", "/v2/models/id_quiet/versions/1/stats"))
    for name, body in (
        ("empty", b""),
        ("{}", b"{}"),
        ("ready", b'{"ready":true}'),
        ("all", b'{"ready":false}'),
    ):
        asked.append(Http(f"index, {name}", "POST", "/v2/repository/index", body))
    asked.append(Http("index, not JSON", "POST", "/v2/repository/index", b"{", adjust=adjusts.parser_words))
    return asked


def _tensor(
    name: str = "INPUT0", datatype: str = "FP32", shape: Any = (2,), data: Any = (1, 2), **more: Any
) -> dict[str, Any]:
    tensor = {"name": name, "datatype": datatype, "shape": shape, "data": data, **more}
    return {key: value for key, value in tensor.items() if value is not None}


def _json(
    name: str, model: str, *inputs: Any, path: str | None = None, adjust: Adjust | None = None, **more: Any
) -> Http:
    body = json.dumps({"inputs": list(inputs), **more}).encode()
    return Http(name, "POST", path or INFER.format(model), body, {"Content-Type": "application/json"}, adjust)


def _good() -> list[Question]:
    floats = [0.1, -0.0, 1e-7, 3.4e38, 16777217, 1 / 3, 123456.789]
    doubles = [0.1, -0.0, 1e-300, 1e300, 2**53 + 1, 1 / 3, 5e-324]
    return [
        _json("plain", "id_fp32", _tensor()),
        _json("with an id", "id_fp32", _tensor(), id="some id"),
        _json("with parameters", "id_fp32", _tensor(), parameters={"a": 1, "b": "x", "c": True, "d": 1.5}),
        _json(
            "priority and timeout", "id_fp32", _tensor(), parameters={"priority": 0, "timeout": 10_000_000}
        ),
        _json(
            "requested output",
            "id_two",
            _tensor(shape=[1, 2]),
            _tensor("INPUT1", shape=[1, 2]),
            outputs=[{"name": "OUTPUT1"}],
        ),
        _json(
            "outputs in another order",
            "id_two",
            _tensor(shape=[1, 2]),
            _tensor("INPUT1", shape=[1, 2]),
            outputs=[{"name": "OUTPUT1"}, {"name": "OUTPUT0"}],
            adjust=adjusts.outputs_by_name,
        ),
        _json("inputs in another order", "id_two", _tensor("INPUT1", shape=[1, 2]), _tensor(shape=[1, 2])),
        _json("empty list of outputs", "id_fp32", _tensor(), outputs=[]),
        _json("nested data", "id_cube", _tensor(shape=[2, 3, 1], data=[[[1], [2], [3]], [[4], [5], [6]]])),
        _json("flat data", "id_cube", _tensor(shape=[2, 3, 1], data=[1, 2, 3, 4, 5, 6])),
        _json("no elements", "id_fp32", _tensor(shape=[0], data=[])),
        _json("floats", "id_fp32", _tensor(shape=[7], data=floats)),
        _json("doubles", "id_fp64", _tensor(datatype="FP64", shape=[7], data=doubles)),
        _json("integers", "id_int64", _tensor(datatype="INT64", shape=[3], data=[-(2**63), 0, 2**63 - 1])),
        _json("unsigned", "id_uint64", _tensor(datatype="UINT64", data=[0, 2**64 - 1])),
        _json("small", "id_int8", _tensor(datatype="INT8", data=[-128, 127])),
        _json("booleans", "id_bool", _tensor(datatype="BOOL", data=[True, False])),
        _json(
            "strings",
            "id_bytes",
            _tensor(datatype="BYTES", shape=[4], data=["", "a\nb", "\u00e9\u4e2d", '"\\/']),
        ),
        _json(
            "version in the path", "id_specific", _tensor(), path="/v2/models/id_specific/versions/1/infer"
        ),
        _json("latest version", "id_all", _tensor()),
        _json("whole batch", "id_batch", _tensor(shape=[8, 16], data=[1.0] * 128)),
        _json(
            "binary output",
            "id_fp32",
            _tensor(),
            outputs=[{"name": "OUTPUT0", "parameters": {"binary_data": True}}],
        ),
        _json("all outputs binary", "id_fp32", _tensor(), parameters={"binary_data_output": True}),
        _json(
            "one output excepted",
            "id_fp32",
            _tensor(),
            parameters={"binary_data_output": True},
            outputs=[{"name": "OUTPUT0", "parameters": {"binary_data": False}}],
        ),
        _json("unknown members", "id_fp32", _tensor(), something="else"),
        Http(
            "raw request",
            "POST",
            INFER.format("id_fp32"),
            struct.pack("<3f", 1, 2, 3),
            {"Inference-Header-Content-Length": "0"},
        ),
        _binary(
            "binary input",
            "id_fp32",
            _tensor(data=None, parameters={"binary_data_size": 8}),
            struct.pack("<2f", 1, 2),
        ),
        _binary(
            "binary both",
            "id_fp32",
            _tensor(data=None, parameters={"binary_data_size": 8}),
            struct.pack("<2f", 1, 2),
            parameters={"binary_data_output": True},
        ),
        _binary(
            "binary FP16",
            "id_fp16",
            _tensor(datatype="FP16", data=None, parameters={"binary_data_size": 4}),
            b"\0\x3c\0\x40",
            parameters={"binary_data_output": True},
        ),
        _binary(
            "binary strings to JSON",
            "id_bytes",
            _tensor(datatype="BYTES", data=None, parameters={"binary_data_size": 11}),
            b"\x03\0\0\0abc\0\0\0\0",
        ),
    ]


def _binary(
    name: str,
    model: str,
    tensor: dict[str, Any],
    data: bytes,
    length: str | None = None,
    adjust: Adjust | None = None,
    **more: Any,
) -> Http:
    text = json.dumps({"inputs": [tensor], **more}).encode()
    headers = {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": length or str(len(text)),
    }
    return Http(name, "POST", INFER.format(model), text + data, headers, adjust)


def _sized(size: int) -> dict[str, Any]:
    return _tensor(data=None, parameters={"binary_data_size": size})


def _bad_json() -> list[Question]:
    def raw(name: str, body: bytes, adjust: Adjust | None = None) -> Http:
        return Http(name, "POST", INFER.format("id_fp32"), body, {"Content-Type": "application/json"}, adjust)

    return [
        raw("not JSON", b"{", adjusts.parser_words),
        raw("an array", b"[]"),
        raw("a string", b'"x"'),
        raw("no inputs", b"{}"),
        raw("inputs is no array", b'{"inputs":1}'),
        raw("inputs is empty", b'{"inputs":[]}'),
        raw("an input is no object", b'{"inputs":[1]}'),
        raw("junk behind", b'{"inputs":[]} x', adjusts.parser_words),
        _json("unknown model", "nobody", _tensor()),
        _json("unknown version", "id_fp32", _tensor(), path="/v2/models/id_fp32/versions/7/infer"),
        _json("version 0", "id_fp32", _tensor(), path="/v2/models/id_fp32/versions/0/infer"),
        _json("version not loaded", "id_newest", _tensor(), path="/v2/models/id_newest/versions/1/infer"),
        _json("missing input", "id_two", _tensor(shape=[1, 2])),
        _json("unknown input", "id_fp32", _tensor("X")),
        _json("one input too many", "id_fp32", _tensor(), _tensor("X"), adjust=adjusts.any_input_order),
        _json("duplicate input", "id_fp32", _tensor(), _tensor()),
        _json("no name", "id_fp32", _tensor(name=None)),
        _json("no datatype", "id_fp32", _tensor(datatype=None)),
        _json("no shape", "id_fp32", _tensor(shape=None)),
        _json("no data", "id_fp32", _tensor(data=None)),
        _json("unknown datatype", "id_fp32", _tensor(datatype="FP33")),
        _json("wrong datatype", "id_fp32", _tensor(datatype="INT32")),
        _json("datatype is no string", "id_fp32", _tensor(datatype=5)),
        _json("name is no string", "id_fp32", _tensor(name=5)),
        _json("shape is no array", "id_fp32", _tensor(shape=2)),
        _json("shape of strings", "id_fp32", _tensor(shape=["2"])),
        _json("negative dimension", "id_fp32", _tensor(shape=[-2])),
        _json("wrong rank", "id_fp32", _tensor(shape=[1, 2])),
        _json("wrong dimension", "id_cube", _tensor(shape=[1, 2, 1])),
        _json("batch too large", "id_batch", _tensor(shape=[9, 16], data=[0] * 144)),
        _json("batch of none", "id_batch", _tensor(shape=[0, 16], data=[])),
        _json("no batch dimension", "id_batch", _tensor(shape=[16], data=[0] * 16)),
        _json(
            "batches differ",
            "id_two",
            _tensor(shape=[1, 2]),
            _tensor("INPUT1", shape=[2, 1]),
            adjust=adjusts.any_input_name,
        ),
        _json("too few values", "id_fp32", _tensor(data=[1])),
        _json("too many values", "id_fp32", _tensor(data=[1, 2, 3])),
        _json("data is no array", "id_fp32", _tensor(data=1)),
        _json("string for a float", "id_fp32", _tensor(data=["1", "2"])),
        _json("boolean for a float", "id_fp32", _tensor(data=[True, False])),
        _json("number for a string", "id_bytes", _tensor(datatype="BYTES", data=[1, 2])),
        _json("FP16 in JSON", "id_fp16", _tensor(datatype="FP16")),
        _json("BF16 in JSON", "id_bf16", _tensor(datatype="BF16")),
        _json("unknown output", "id_fp32", _tensor(), outputs=[{"name": "X"}]),
        _json("duplicate output", "id_fp32", _tensor(), outputs=[{"name": "OUTPUT0"}] * 2),
        _json("output without a name", "id_fp32", _tensor(), outputs=[{}]),
        _json("outputs is no array", "id_fp32", _tensor(), outputs=1),
        _json("reserved parameter", "id_fp32", _tensor(), parameters={"triton_x": 1}),
    ]


def _bad_binary() -> list[Question]:
    two = struct.pack("<2f", 1, 2)
    return [
        _binary("binary too short for the shape", "id_fp32", _sized(4), two[:4]),
        _binary("binary too long for the shape", "id_fp32", _sized(12), two + two[:4]),
        _binary("binary cut short", "id_fp32", _sized(8), two[:6]),
        _binary("binary left over", "id_fp32", _sized(8), two + b"x"),
        _binary("header longer than the body", "id_fp32", _sized(8), two, length="100000"),
        _binary("header length negative", "id_fp32", _sized(8), two, length="-1"),
        _binary("header length no number", "id_fp32", _sized(8), two, length="abc"),
        _binary("header cuts the JSON", "id_fp32", _sized(8), two, length="10", adjust=adjusts.parser_words),
        _binary("data and binary", "id_fp32", _tensor(parameters={"binary_data_size": 8}), two),
        _binary(
            "size is no number", "id_fp32", _tensor(data=None, parameters={"binary_data_size": "8"}), two
        ),
        _binary("neither data nor size", "id_fp32", _tensor(data=None), two),
        _binary(
            "FP16 to JSON",
            "id_fp16",
            _tensor(datatype="FP16", data=None, parameters={"binary_data_size": 4}),
            b"\0\x3c\0\x40",
        ),
        _binary(
            "strings cut",
            "id_bytes",
            _tensor(datatype="BYTES", data=None, parameters={"binary_data_size": 9}),
            b"\x03\0\0\0abc\0\0",
        ),
        _binary(
            "string longer than its data",
            "id_bytes",
            _tensor(datatype="BYTES", data=None, parameters={"binary_data_size": 8}),
            b"\x09\0\0\0abcd",
        ),
        _binary(
            "too few strings",
            "id_bytes",
            _tensor(datatype="BYTES", data=None, parameters={"binary_data_size": 7}),
            b"\x03\0\0\0abc",
        ),
        _binary(
            "too many strings",
            "id_bytes",
            _tensor(datatype="BYTES", shape=[1], data=None, parameters={"binary_data_size": 8}),
            b"\0" * 8,
        ),
    ]


GROUPS: dict[str, list[Question]] = {
    "control": _control(),
    "good": _good(),
    "bad json": _bad_json(),
    "bad binary": _bad_binary(),
}
