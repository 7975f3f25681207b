"""One inference request apart from its form, and the four forms in which both protocols can carry it."""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.compare import Grpc, Http, Question
from tritonclient.grpc import service_pb2 as pb

# Per datatype: the format of an element in struct's words, two values, and the field of InferTensorContents.
NUMBERS: dict[str, tuple[str, tuple[Any, Any], str]] = {
    "BOOL": ("?", (True, False), "bool_contents"),
    "UINT8": ("B", (0, 255), "uint_contents"),
    "UINT16": ("H", (1, 65535), "uint_contents"),
    "UINT32": ("I", (1, 2**32 - 1), "uint_contents"),
    "UINT64": ("Q", (1, 2**64 - 1), "uint64_contents"),
    "INT8": ("b", (-128, 127), "int_contents"),
    "INT16": ("h", (-(2**15), 2**15 - 1), "int_contents"),
    "INT32": ("i", (-(2**31), 2**31 - 1), "int_contents"),
    "INT64": ("q", (-(2**63), 2**63 - 1), "int64_contents"),
    "FP32": ("f", (0.5, -2.25), "fp32_contents"),
    "FP64": ("d", (0.1, -1e300), "fp64_contents"),
}
DATATYPES = (*NUMBERS, "FP16", "BYTES")


def values_of(datatype: str) -> list[Any]:
    return ["one", "two \u00e9"] if datatype == "BYTES" else list(NUMBERS[datatype][1])


def content_of(datatype: str) -> bytes:
    if datatype == "FP16":
        return b"\0\x3c\0\xc0"
    if datatype == "BYTES":
        texts = [str(each).encode() for each in values_of(datatype)]
        return b"".join(struct.pack("<I", len(each)) + each for each in texts)
    return b"".join(struct.pack("<" + NUMBERS[datatype][0], value) for value in values_of(datatype))


@dataclass
class Tensor:
    """An input of two elements; values for the forms that write them out, content for those that pack them."""

    datatype: str
    name: str = "INPUT0"
    shape: list[int] = field(default_factory=lambda: [2])
    label: str = ""  # the datatype that the request names, where it is another
    values: list[Any] = field(default_factory=list)
    content: bytes = b""

    def __post_init__(self) -> None:
        self.values = [1.0, -2.0] if self.datatype == "FP16" else values_of(self.datatype)
        self.content = content_of(self.datatype)
        self.label = self.datatype


@dataclass
class Ask:
    model: str
    inputs: list[Tensor]
    version: str = ""
    id: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)


def plain(datatype: str) -> Ask:
    return Ask(f"id_{datatype.lower()}", [Tensor(datatype)])


def pair() -> Ask:
    """A model of two inputs with batches of up to eight rows."""
    inputs = [Tensor("FP32", shape=[1, 2]), Tensor("FP32", "INPUT1", [1, 2])]
    return Ask("id_two", inputs)


def rows(count: int) -> Ask:
    """A model of up to eight rows with 16 values each, all zero."""
    tensor = Tensor("FP32", shape=[count, 16])
    tensor.values, tensor.content = [0.0] * (16 * count), bytes(64 * count)
    return Ask("id_batch", [tensor])


def _path(ask: Ask) -> str:
    return f"/v2/models/{ask.model}" + (f"/versions/{ask.version}" if ask.version else "") + "/infer"


def _members(ask: Ask, inputs: list[dict[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {"inputs": inputs}
    for name in ("id", "outputs", "parameters"):
        if getattr(ask, name):
            members[name] = getattr(ask, name)
    return members


def _head(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.label, "shape": tensor.shape}


def as_json(name: str, ask: Ask) -> Question:
    inputs = [_head(tensor) | {"data": tensor.values} for tensor in ask.inputs]
    body = json.dumps(_members(ask, inputs)).encode()
    return Http(name, "POST", _path(ask), body, {"Content-Type": "application/json"})


def as_binary(name: str, ask: Ask) -> Question:
    inputs = [
        _head(tensor) | {"parameters": {"binary_data_size": len(tensor.content)}} for tensor in ask.inputs
    ]
    members = _members(ask, inputs)
    members["parameters"] = {"binary_data_output": True} | members.get("parameters", {})
    text = json.dumps(members).encode()
    headers = {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": str(len(text)),
    }
    return Http(name, "POST", _path(ask), text + b"".join(t.content for t in ask.inputs), headers)


def parameter(value: Any) -> pb.InferParameter:
    if isinstance(value, bool):
        return pb.InferParameter(bool_param=value)
    if isinstance(value, int):
        return pb.InferParameter(int64_param=value)
    if isinstance(value, float):
        return pb.InferParameter(double_param=value)
    return pb.InferParameter(string_param=value) if isinstance(value, str) else pb.InferParameter()


def _message(ask: Ask) -> pb.ModelInferRequest:
    message = pb.ModelInferRequest(model_name=ask.model, model_version=ask.version, id=ask.id)
    for tensor in ask.inputs:
        message.inputs.add(name=tensor.name, datatype=tensor.label, shape=tensor.shape)
    for output in ask.outputs:
        added = message.outputs.add(name=output.get("name", ""))
        for name, value in output.get("parameters", {}).items():
            added.parameters[name].CopyFrom(parameter(value))
    for name, value in ask.parameters.items():
        message.parameters[name].CopyFrom(parameter(value))
    return message


def as_raw(name: str, ask: Ask) -> Question:
    message = _message(ask)
    message.raw_input_contents.extend(tensor.content for tensor in ask.inputs)
    return Grpc(name, "ModelInfer", message, pb.ModelInferResponse)


def as_typed(name: str, ask: Ask) -> Question:
    message = _message(ask)
    for sent, tensor in zip(message.inputs, ask.inputs, strict=True):
        if tensor.datatype == "BYTES":
            sent.contents.bytes_contents.extend(str(value).encode() for value in tensor.values)
        elif tensor.datatype in NUMBERS:
            getattr(sent.contents, NUMBERS[tensor.datatype][2]).extend(tensor.values)
    return Grpc(name, "ModelInfer", message, pb.ModelInferResponse)


Render = Callable[[str, Ask], Question]
FORMS: dict[str, Render] = {"JSON": as_json, "binary": as_binary, "gRPC raw": as_raw, "gRPC typed": as_typed}
