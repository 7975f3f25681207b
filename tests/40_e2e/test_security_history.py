"""What has gone wrong in the reference before, and is shown nowhere else: docs/internals/security-history.md has the whole list."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from harness import rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server
from tritonclient.grpc import service_pb2 as pb

MOST = 4096  # outputs of a request
INT64_MAX = 2**63 - 1


def _tensor(shape: list[int], **more: Any) -> dict[str, Any]:
    return {"name": "INPUT0", "datatype": "FP32", "shape": shape} | more


def _infer(server: Server, model: str, body: dict[str, Any]) -> tuple[int, str]:
    answer = rawhttp.post(server.http, f"/v2/models/{model}/infer", body)
    return answer.status, answer.json().get("error", "")


def _plain() -> pb.ModelInferRequest:
    return rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], struct.pack("<f", 1))])


def test_no_client_names_a_file(tmp_path: Path) -> None:
    """CVE-2024-0087, -0100: not of the log, not of traces, for the server or a model, over either protocol."""
    named, trace, models = tmp_path / "named", tmp_path / "trace", Repository(tmp_path / "models")
    models.identity("one")
    traced = {"trace-config": [f"triton,file={trace}", "level=TIMESTAMPS", "rate=1"]}
    routes = {"/v2/logging": "log_file", "/v2/trace/setting": "trace_file", "/v2/models/one/trace/setting": "trace_file"}
    with Nereid(models.path, traced) as server, rawgrpc.Channel(server.grpc) as channel:
        told = {path: rawhttp.get(server.http, path).json() for path in routes}
        for path, key in routes.items():
            for value in (str(named), [str(named)]):
                answer = rawhttp.post(server.http, path, {key: value})
                assert answer.status == 501, (path, value, answer)
        log = pb.LogSettingsRequest()
        log.settings["log_file"].string_param = str(named)
        assert channel.call("LogSettings", log).code == "UNIMPLEMENTED"
        for model in ("", "one"):
            asked = pb.TraceSettingRequest(model_name=model)
            asked.settings["trace_file"].value.append(str(named))
            assert channel.call("TraceSetting", asked).code == "UNIMPLEMENTED"
        assert rawhttp.post(server.http, "/v2/models/one/infer", {"inputs": [_tensor([1], data=[1])]}).status == 200
        assert {path: rawhttp.get(server.http, path).json() for path in routes} == told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "trace"]


def test_outputs_that_a_request_names(nereid: Server) -> None:
    """CVE-2026-24146: each once, and no more than a model can have."""
    tensor = _tensor([1], data=[1])
    for names, said in (
        (["OUTPUT0"] * 2, "output 'OUTPUT0' already exists in request"),
        (["OUTPUT0"] * MOST, "output 'OUTPUT0' already exists in request"),
        ([f"OUTPUT{i}" for i in range(MOST)], "unexpected inference output 'OUTPUT1'"),
        ([f"OUTPUT{i}" for i in range(MOST + 1)], f"at most {MOST} outputs"),
    ):
        status, error = _infer(nereid, "id_fp32", {"inputs": [tensor], "outputs": [{"name": name} for name in names]})
        assert (status, said in error) == (400, True), (len(names), error)
    with rawgrpc.Channel(nereid.grpc) as channel:
        request = _plain()
        for _ in range(2):
            request.outputs.add(name="OUTPUT0")
        assert channel.call("ModelInfer", request).details.endswith("output 'OUTPUT0' already exists in request")


# Their elements, or the bytes of these, are more than 64 bits count: 0 and 4 are what is left of them.
WRAPS = [[2**62], [2**62 + 1], [INT64_MAX], [2**32, 3, 2**32], [2**31, 3, 2**33], [INT64_MAX, 3, 2]]


@pytest.mark.parametrize("shape", WRAPS)
def test_sizes_that_wrap_around(nereid: Server, shape: list[int]) -> None:
    """CVE-2026-24173: a shape is what it says, however its elements come."""
    model = "id_fp32" if len(shape) == 1 else "id_cube"
    raw = struct.pack("<f", 1)
    header = json.dumps({"inputs": [_tensor(shape, parameters={"binary_data_size": len(raw)})]}).encode()
    answers = [
        _infer(nereid, model, {"inputs": [_tensor(shape, data=[])]}),
        _infer(nereid, model, {"inputs": [_tensor(shape, data=[1])]}),
    ]
    lengths = {"Inference-Header-Content-Length": str(len(header))}
    answer = rawhttp.post(nereid.http, f"/v2/models/{model}/infer", header + raw, lengths)
    answers.append((answer.status, answer.json()["error"]))
    for status, error in answers:
        assert status == 400, error
        assert error
    with rawgrpc.Channel(nereid.grpc) as channel:
        for content in (b"", raw):
            request = rawgrpc.infer_request(model, [("INPUT0", "FP32", shape, content)])
            assert channel.call("ModelInfer", request).code == "INVALID_ARGUMENT"
    assert _infer(nereid, "id_fp32", {"inputs": [_tensor([1], data=[1])]})[0] == 200


def test_parameters_that_are_the_servers_own(nereid: Server) -> None:
    """Names that begin with triton_ are nobody's to send; of them gRPC knows one."""
    said = "reserved for Triton usage"
    body = {"inputs": [_tensor([1], data=[1])], "parameters": {"triton_enable_empty_final_response": True}}
    status, error = _infer(nereid, "id_fp32", body)
    assert status == 400 and said in error
    with rawgrpc.Channel(nereid.grpc) as channel:
        for name, code in (("triton_enable_empty_final_response", "OK"), ("triton_x", "INVALID_ARGUMENT")):
            request = _plain()
            request.parameters[name].bool_param = True
            assert channel.call("ModelInfer", request).code == code, name
