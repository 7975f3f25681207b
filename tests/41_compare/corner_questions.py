"""Corners of both front doors: bodies without JSON over HTTP, and the parameters and fields of gRPC that only a hand-made client sends."""

import struct
from collections.abc import Callable

import adjust
from harness.compare import Grpc, Http, Question
from harness.rawgrpc import infer_request
from tritonclient.grpc import service_pb2 as pb

TWO = struct.pack("<2f", 1, 2)
Edit = Callable[[pb.ModelInferRequest], object]


def _raw() -> list[Question]:
    """The whole body is the one input of the model; its shape is what the configuration leaves open."""

    def ask(name: str, model: str, body: bytes, header: str = "0", more: str = "") -> Question:
        headers = {"Inference-Header-Content-Length": header}
        return Http(name, "POST", f"/v2/models/{model}{more}/infer", body, headers)

    return [
        ask("two floats", "id_fp32", TWO),
        ask("no bytes", "id_fp32", b""),
        ask("half a float", "id_fp32", TWO[:6]),
        ask("a version", "id_fp32", TWO, more="/versions/1"),
        ask("a string", "id_bytes", b"hello"),
        ask("several dimensions left open", "id_cube", TWO),
        ask("a model of batches", "id_batch", b"\0" * 64),
        ask("two rows", "id_batch", b"\0" * 128),
        ask("a model of two inputs", "id_two", TWO),
        ask("a fixed shape", "id_int_batch", struct.pack("<4i", 1, 2, 3, 4)),
        ask("a fixed shape, too few", "id_int_batch", struct.pack("<2i", 1, 2)),
        ask("an unknown model", "nobody", TWO),
        ask("a header that is text", "id_fp32", TWO, "no"),
        ask("a header below zero", "id_fp32", TWO, "-1"),
        ask("a header over the body", "id_fp32", TWO, "9"),
        ask("an empty header", "id_fp32", TWO, ""),
        ask("a header with spaces", "id_fp32", TWO, " 0 "),
    ]


def _call(name: str, edit: Edit) -> Question:
    message = infer_request("id_fp32", [("INPUT0", "FP32", [2], TWO)])
    edit(message)
    return Grpc(name, "ModelInfer", message, pb.ModelInferResponse)


def _parameters() -> list[Question]:
    def set_one(name: str, **value: object) -> Edit:
        def edit(m: pb.ModelInferRequest) -> None:
            for choice, given in value.items():
                setattr(m.parameters[name], choice, given)
            if not value:
                m.parameters[name].SetInParent()

        return edit

    values: dict[str, dict[str, object]] = {
        "text": {"string_param": "x"},
        "a number": {"int64_param": 10_000_000},  # as a time-out ten seconds
        "a number below zero": {"int64_param": -7},
        "an unsigned number": {"uint64_param": 2**63},
        "a fraction": {"double_param": 0.5},
        "a boolean": {"bool_param": True},
        "nothing": {},
    }
    names = ["sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "mine"]
    names += ["triton_enable_empty_final_response", "triton_mine"]
    return [_call(f"{name} is {what}", set_one(name, **value)) for name in names for what, value in values.items()]


def _shared_memory() -> list[Question]:
    def region(**members: object) -> Edit:
        def edit(m: pb.ModelInferRequest) -> None:
            del m.raw_input_contents[:]
            for name, value in members.items():
                choice = {str: "string_param", int: "int64_param", bool: "bool_param"}[type(value)]
                setattr(m.inputs[0].parameters[f"shared_memory_{name}"], choice, value)

        return edit

    return [
        _call("a region that is not there", region(region="r", byte_size=8)),
        _call("a region without a size", region(region="r")),
        _call("a region that is a number", region(region=1, byte_size=8)),
        _call("a size that is text", region(region="r", byte_size="8")),
        _call("an offset beside it", region(region="r", byte_size=8, offset=4)),
    ]


def _contents() -> list[Question]:
    def contents(**fields: list[object]) -> Edit:
        def edit(m: pb.ModelInferRequest) -> None:
            del m.raw_input_contents[:]
            for name, values in fields.items():
                getattr(m.inputs[0].contents, name).extend(values)

        return edit

    return [
        _call("numbers of another type", contents(int_contents=[1, 2])),
        _call("booleans for numbers", contents(bool_contents=[True, False])),
        _call("texts for numbers", contents(bytes_contents=[b"1", b"2"])),
        _call("numbers of two types", contents(fp32_contents=[1.0, 2.0], int64_contents=[1])),
        _call("too few numbers", contents(fp32_contents=[1.0])),
        _call("too many numbers", contents(fp32_contents=[1.0, 2.0, 3.0])),
        _call("empty contents", lambda m: (m.raw_input_contents.pop(), m.inputs[0].contents.SetInParent())),
    ]


def _statistics() -> list[Question]:
    """Of a model that was asked, by the questions before if by nobody else."""
    ask = pb.ModelStatisticsRequest(name="id_fp32")
    return [
        Grpc("before", "ModelInfer", infer_request("id_fp32", [("INPUT0", "FP32", [2], TWO)]), pb.ModelInferResponse),
        Http("over HTTP", "GET", "/v2/models/id_fp32/stats", adjust=adjust.volatile_statistics),
        Grpc("over gRPC", "ModelStatistics", ask, pb.ModelStatisticsResponse, adjust=adjust.volatile_statistics),
    ]


GROUPS: dict[str, list[Question]] = {
    "raw body": _raw(), "grpc parameters": _parameters(), "grpc shared memory": _shared_memory(), "grpc contents": _contents(),
    "statistics": _statistics(),
}
