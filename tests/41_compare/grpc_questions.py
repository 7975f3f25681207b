"""The questions over gRPC: what a client can see of the spine."""

import struct
from typing import Any

import adjust as adjusts
from harness.compare import Adjust, Grpc, Question
from harness.models import SPINE_MODELS
from harness.rawgrpc import infer_request
from tritonclient.grpc import service_pb2 as pb


def _grpc_control() -> list[Question]:
    config, metadata = pb.ModelConfigRequest, pb.ModelMetadataRequest
    asked: list[Question] = [
        Grpc("ServerLive", "ServerLive", b"", pb.ServerLiveResponse),
        Grpc("ServerReady", "ServerReady", b"", pb.ServerReadyResponse),
        Grpc(
            "ServerMetadata", "ServerMetadata", b"", pb.ServerMetadataResponse, adjust=adjusts.known_metadata
        ),
        Grpc("unknown method", "Nothing"),
        Grpc("unknown service", "ModelInfer", service="inference.Nothing"),
        Grpc("health of all", "Check", service="grpc.health.v1.Health"),
        Grpc("health of a service never heard of", "Check", b"\x0a\x01x", service="grpc.health.v1.Health"),
        Grpc("index", "RepositoryIndex", b"", pb.RepositoryIndexResponse),
        Grpc(
            "index of the ready",
            "RepositoryIndex",
            pb.RepositoryIndexRequest(ready=True),
            pb.RepositoryIndexResponse,
        ),
        Grpc(
            "statistics of a model never asked",
            "ModelStatistics",
            pb.ModelStatisticsRequest(name="id_quiet"),
            pb.ModelStatisticsResponse,
        ),
        Grpc("statistics of an unknown model", "ModelStatistics", pb.ModelStatisticsRequest(name="nobody")),
        Grpc(
            "statistics of an unknown version",
            "ModelStatistics",
            pb.ModelStatisticsRequest(name="id_fp32", version="7"),
        ),
    ]
    for model in SPINE_MODELS:
        asked.append(
            Grpc(f"ModelConfig of {model}", "ModelConfig", config(name=model), pb.ModelConfigResponse)
        )
        asked.append(
            Grpc(
                f"ModelMetadata of {model}",
                "ModelMetadata",
                metadata(name=model),
                pb.ModelMetadataResponse,
            )
        )
    for name, version in (("nobody", ""), ("id_fp32", "7"), ("id_fp32", "x"), ("id_fp32", "0"), ("", "")):
        label = f"{name or 'no name'} {version}".strip()
        asked.append(Grpc(f"ModelConfig of {label}", "ModelConfig", config(name=name, version=version)))
        asked.append(Grpc(f"ModelMetadata of {label}", "ModelMetadata", metadata(name=name, version=version)))
        asked.append(
            Grpc(
                f"ModelReady of {label}",
                "ModelReady",
                pb.ModelReadyRequest(name=name, version=version),
                pb.ModelReadyResponse,
            )
        )
    return asked


TWO = struct.pack("<2f", 1, 2)
Edit = Any


def _call(
    name: str,
    model: str,
    *inputs: tuple[str, str, list[int], bytes],
    edit: Edit = None,
    adjust: Adjust | None = None,
    **more: Any,
) -> Grpc:
    message = infer_request(model, list(inputs), **more)
    if edit:
        edit(message)
    return Grpc(name, "ModelInfer", message, pb.ModelInferResponse, adjust=adjust)


def _plain(
    name: str = "INPUT0", datatype: str = "FP32", shape: tuple[int, ...] = (2,), raw: bytes = TWO
) -> tuple[str, str, list[int], bytes]:
    return name, datatype, list(shape), raw


def _typed(message: pb.ModelInferRequest, keep_raw: bool = False) -> None:
    message.inputs[0].contents.fp32_contents.extend([1, 2])
    if not keep_raw:
        del message.raw_input_contents[:]


def _grpc_infer() -> list[Question]:
    return [
        _call("plain", "id_fp32", _plain()),
        _call("with an id", "id_fp32", _plain(), request_id="some id"),
        _call("version", "id_specific", _plain(), version="1"),
        _call("requested output", "id_fp32", _plain(), outputs=["OUTPUT0"]),
        _call("two inputs", "id_two", _plain(shape=(1, 2)), _plain("INPUT1", shape=(1, 2))),
        _call("typed contents", "id_fp32", _plain(), edit=_typed),
        _call("no elements", "id_fp32", _plain(shape=(0,), raw=b"")),
        _call(
            "parameters",
            "id_fp32",
            _plain(),
            edit=lambda m: m.parameters["a"].CopyFrom(pb.InferParameter(int64_param=1)),
        ),
        _call("unknown model", "nobody", _plain()),
        _call("no model", "", _plain()),
        _call("unknown version", "id_fp32", _plain(), version="7"),
        _call("version is no number", "id_fp32", _plain(), version="x"),
        _call("no inputs", "id_fp32"),
        _call("missing input", "id_two", _plain(shape=(1, 2))),
        _call("unknown input", "id_fp32", _plain("X")),
        _call("duplicate input", "id_fp32", _plain(), _plain()),
        _call("wrong datatype", "id_fp32", _plain(datatype="INT32")),
        _call("unknown datatype", "id_fp32", _plain(datatype="FP33")),
        _call("wrong rank", "id_fp32", _plain(shape=(1, 2))),
        _call("negative dimension", "id_fp32", _plain(shape=(-2,))),
        _call("wrong dimension", "id_cube", _plain(shape=(1, 2, 1))),
        _call("batch too large", "id_batch", _plain(shape=(9, 16), raw=b"\0" * 576)),
        _call(
            "batches differ",
            "id_two",
            _plain(shape=(1, 2)),
            _plain("INPUT1", shape=(2, 1)),
            adjust=adjusts.any_input_name,
        ),
        _call("too few bytes", "id_fp32", _plain(raw=TWO[:4])),
        _call("too many bytes", "id_fp32", _plain(raw=TWO + TWO)),
        _call("raw and typed", "id_fp32", _plain(), edit=lambda m: _typed(m, keep_raw=True)),
        _call(
            "raw for one of two",
            "id_two",
            _plain(shape=(1, 2)),
            _plain("INPUT1", shape=(1, 2)),
            edit=lambda m: m.raw_input_contents.pop(),
        ),
        _call("more raw than inputs", "id_fp32", _plain(), edit=lambda m: m.raw_input_contents.append(TWO)),
        _call("no data at all", "id_fp32", _plain(), edit=lambda m: m.raw_input_contents.pop()),
        _call("unknown output", "id_fp32", _plain(), outputs=["X"]),
        _call("duplicate output", "id_fp32", _plain(), outputs=["OUTPUT0", "OUTPUT0"]),
        _call("string cut", "id_bytes", _plain(datatype="BYTES", raw=b"\x09\0\0\0abcd")),
        _call("too few strings", "id_bytes", _plain(datatype="BYTES", raw=b"\x03\0\0\0abc")),
        _call(
            "typed BYTES",
            "id_bytes",
            _plain(datatype="BYTES", raw=b""),
            edit=lambda m: (
                m.inputs[0].contents.bytes_contents.extend([b"a", b""]),
                m.raw_input_contents.pop(),
            ),
        ),
    ]


GROUPS: dict[str, list[Question]] = {"grpc control": _grpc_control(), "grpc infer": _grpc_infer()}
