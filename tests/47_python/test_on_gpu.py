"""Tensors of python models in the memory of a GPU, with a stand-in for CUDA's driver (tests/cuda), whose memory nobody can touch: they are
handed on where they lie, and copied when they are sent."""

import json
import queue
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
from conftest import environment
from harness import rawhttp, together
from harness.gpus import Gpus
from harness.repository import Repository
from harness.servers import Nereid, Server
from tritonclient import grpc as grpcclient
from tritonclient.utils import InferenceServerException

MANY = [float(i) for i in range(5000)]  # more than a record holds
FEW = [0.5, -1.0, 3e30]
SIZES = {"few": FEW, "many": MANY, "none": []}
CALLS = ["cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuCtxSynchronize", "cuMemcpyDtoH_v2"]
# What fails to be given back lives on.
BACK = ["cuCtxPopCurrent_v2", "cuDevicePrimaryCtxRelease_v2"]
CONFIG = """backend: "python"
input { name: "ASK" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "TOLD" data_type: TYPE_STRING dims: [ 1 ] }
"""
PAIR = "max_batch_size: 2\ndynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 600000000 }\n"


def repository(root: Path) -> Path:
    made = Repository(root)
    source = (catalog.SOURCES / "on_gpu.py").read_text()
    for name, more in {"on_gpu": "", "pair": PAIR, "decoupled": catalog.DECOUPLED}.items():
        folder = made.model(name, f'name: "{name}"\n{CONFIG}{more}instance_group [ {{ kind: KIND_CPU }} ]\n')
        (folder / "1" / "model.py").write_text(source)
    made.identity("identity", extra="instance_group [ { kind: KIND_CPU } ]")
    return made.path


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return Gpus(tmp_path_factory.mktemp("devices"), "8.0:64,7.5:64")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, devices: Gpus) -> Iterator[Server]:
    with Nereid(repository(tmp_path_factory.mktemp("on_gpu") / "models"), env=environment() | devices.env) as server:
        yield server
    devices.left_nothing(3)  # a process each model; the server itself had no need of a GPU


def body(asked: dict[str, Any], *outputs: str, shape: list[int] | None = None) -> bytes:
    tensor = {"name": "ASK", "datatype": "BYTES", "shape": shape or [1], "data": [json.dumps(asked)]}
    return json.dumps({"inputs": [tensor], "outputs": [{"name": each} for each in outputs or ["OUT"]]}).encode()


def infer(server: Server, model: str = "on_gpu", output: str = "OUT", **asked: Any) -> Any:
    """The elements of the output, or what is said of the error."""
    answer = rawhttp.post(server.http, f"/v2/models/{model}/infer", body(asked, output))
    told = answer.json()
    return told["outputs"][0]["data"] if answer.status == 200 else (answer.status, told["error"])


def as_float32(values: list[float]) -> list[float]:
    return list(struct.unpack(f"{len(values)}f", struct.pack(f"{len(values)}f", *values)))


@pytest.mark.parametrize("way", ["object", "capsule"])
@pytest.mark.parametrize("size", SIZES)
def test_outputs(server: Server, size: str, way: str) -> None:
    """What is on its way to the memory by a stream of the model's is waited for."""
    assert infer(server, values=SIZES[size], **{"as": way}) == pytest.approx(as_float32(SIZES[size]))


@pytest.mark.parametrize("size", ["few", "many"])
def test_memory_that_the_server_cannot_read(server: Server, size: str) -> None:
    """It is the host's, but mapped as a driver maps what it pins: the system refuses to read it for another process."""
    assert infer(server, values=SIZES[size], **{"as": "secret"}) == pytest.approx(as_float32(SIZES[size]))


@pytest.mark.parametrize("size", SIZES)
def test_requests_to_other_models(server: Server, size: str) -> None:
    assert infer(server, values=SIZES[size], ask="identity") == pytest.approx(as_float32(SIZES[size]))


def test_what_a_tensor_says(server: Server) -> None:
    """It is not on the CPU, is handed on in place, and numpy gets nothing of it."""
    told = json.loads(infer(server, values=FEW, tell=True, output="TOLD")[0])
    assert told == {
        "cpu": False, "device": [2, 0], "in place": [4, 4], "capsule": [2, 0, [3], 2, 32, 1, 0], "again": True, "array": False, "shape": [3],
        "as_numpy": "Tensor is stored in GPU and cannot be converted to NumPy.",
    }  # fmt: skip


@pytest.mark.parametrize(("how", "there"), [("to_dlpack", True), (None, True), (1, True), (1 << 80, True), (-1, False)])
def test_what_is_on_its_way_when_it_is_handed_on(server: Server, how: Any, there: bool) -> None:
    """It has arrived, unless who takes it wants nobody to wait."""
    assert json.loads(infer(server, values=FEW, take=how, output="TOLD")[0]) is there


@pytest.mark.parametrize("how", ["to_dlpack", 1])
def test_it_cannot_be_handed_on(server: Server, how: Any) -> None:
    told = infer(server, values=FEW, take=how, plan="cuCtxSynchronize:1=2", output="TOLD")
    assert told == ["tensor 'OUT' on GPU 0: cuCtxSynchronize failed: CUDA_ERROR_OUT_OF_MEMORY (2)"]


@pytest.mark.parametrize("way", ["object", "capsule"])
@pytest.mark.parametrize("device", [-1, -2])
def test_gpus_that_are_none(server: Server, device: int, way: str) -> None:
    """They are not taken for the host, whose memory the stub itself would read."""
    status, error = infer(server, values=FEW, device=device, **{"as": way})
    assert status == 500
    assert f"TritonModelException: a DLPack tensor is on a GPU of the number {device}, which is none\n\nAt:" in error


@pytest.mark.parametrize("strides", [[1, 1], [0, 1], [7, 7], None])
def test_no_elements(server: Server, strides: list[int] | None) -> None:
    """They lie in order, whatever the strides say: PyTorch's are 1, 1."""
    assert infer(server, values=[], shape=[3, 0], strides=strides) == []


def test_not_in_order(server: Server) -> None:
    status, error = infer(server, values=FEW, shape=[3, 1, 1], strides=[2, 1, 1])
    assert status == 500
    assert "DLPack tensor is not contiguous" in error


@pytest.mark.parametrize("size", ["few", "many"])
@pytest.mark.parametrize("call", CALLS)
def test_calls_that_fail(server: Server, call: str, size: str) -> None:
    """The response is an error that names the tensor, the GPU and the call; the next one is answered."""
    status, error = infer(server, values=SIZES[size], plan=f"{call}:1=2")
    assert (status, error) == (500, f"tensor 'OUT' on GPU 0: {call.removesuffix('_v2')} failed: CUDA_ERROR_OUT_OF_MEMORY (2)")
    assert infer(server, values=SIZES[size]) == pytest.approx(as_float32(SIZES[size]))


def test_results_that_have_no_name(server: Server) -> None:
    assert infer(server, values=FEW, plan="cuMemcpyDtoH_v2:1=9999") == (500, "tensor 'OUT' on GPU 0: cuMemcpyDtoH failed: 9999")


def test_a_request_to_another_model_fails(server: Server) -> None:
    """The model sees an exception."""
    status, error = infer(server, values=MANY, ask="identity", plan="cuMemcpyDtoH_v2:1=2")
    assert status == 500
    assert "TritonModelException: tensor 'INPUT0' on GPU 0: cuMemcpyDtoH failed: CUDA_ERROR_OUT_OF_MEMORY (2)\n\nAt:" in error
    assert infer(server, values=MANY, ask="identity") == pytest.approx(as_float32(MANY))


@pytest.mark.parametrize("size", ["few", "many"])
def test_the_other_request_of_a_batch(server: Server, size: str) -> None:
    """Two requests are executed together; one of them has a tensor on a GPU that is not there."""
    asked = [{"values": SIZES[size], "device": device} for device in (0, 9)]
    well, failed = together.ask(server, "/v2/models/pair/infer", [body(each, shape=[1, 1]) for each in asked])
    assert (failed.status, failed.json()["error"]) == (500, "tensor 'OUT' on GPU 9: cuDeviceGet failed: CUDA_ERROR_INVALID_DEVICE (101)")
    assert (well.status, well.json()["outputs"][0]["data"]) == (200, pytest.approx(as_float32(SIZES[size])))


def stream(server: Server, **asked: Any) -> list[Any]:
    """What the responses of the decoupled model are: elements, an error, or None for the end without either."""
    told: queue.Queue[Any] = queue.Queue()

    def came(result: Any, error: Any) -> None:
        out = None if error else result.as_numpy("OUT")
        told.put(error or (result.get_response().parameters["triton_final_response"].bool_param, None if out is None else out.tolist()))

    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(came)
        tensor = grpcclient.InferInput("ASK", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([json.dumps(asked)], dtype=object))
        output = grpcclient.InferRequestedOutput("OUT")
        client.async_stream_infer("decoupled", [tensor], outputs=[output], enable_empty_final_response=True)
        try:
            all_of_it = [told.get(timeout=60)]
            while not isinstance(all_of_it[-1], InferenceServerException) and not all_of_it[-1][0]:
                all_of_it.append(told.get(timeout=60))
        finally:
            client.stop_stream(cancel_requests=True)
    return [each if isinstance(each, InferenceServerException) else each[1] for each in all_of_it]


@pytest.mark.parametrize("then", ["tell", "leave"])
def test_a_last_response_that_cannot_be_sent(server: Server, then: str) -> None:
    """There is no memory for it. The model sees that, whatever its tensor does when it ends, and another response may be the last; if
    none comes, the request ends with the sender."""
    told = stream(server, values=FEW, shape=[1 << 40], alone=then)
    if then == "leave":
        assert len(told) == 1 and isinstance(told[0], InferenceServerException)
    else:
        assert [each.message() for each in told] == ["TritonModelException: no shared memory for 4398046511104 bytes"]
    assert stream(server, values=FEW, alone=then) == [as_float32(FEW)]


@pytest.mark.parametrize("size", ["few", "many"])
def test_a_response_of_two_senders(tmp_path: Path, size: str) -> None:
    """The second has no need of the tensor that is being copied for the first."""
    devices = Gpus(tmp_path)
    gate = devices.gate("cuMemcpyDtoH_v2")
    with Nereid(repository(tmp_path / "models"), env=environment() | devices.env) as server, ThreadPoolExecutor(1) as pool:
        asked = body({"values": SIZES[size], "share": "first"}, "OUT", "TOLD")
        first = pool.submit(rawhttp.post, server.http, "/v2/models/on_gpu/infer", asked)
        with gate.open("w"):  # which waits until the copy has begun
            assert infer(server, share="second", output="TOLD") == ["a text"]
        out, told = first.result().json()["outputs"]
    assert (out["data"], told["data"]) == (pytest.approx(as_float32(SIZES[size])), ["a text"])
    devices.left_nothing(3)


@pytest.mark.parametrize("fails", [False, True])
def test_responses_of_a_sender(server: Server, fails: bool) -> None:
    """The first of two is an error, or none is."""
    asked = {"values": MANY} | ({"plan": "cuCtxSynchronize:1=2"} if fails else {})
    told: list[Any] = []
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: told.append(error or result.as_numpy("OUT").tolist()))
        tensor = grpcclient.InferInput("ASK", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([json.dumps(asked)], dtype=object))
        client.async_stream_infer("decoupled", [tensor], outputs=[grpcclient.InferRequestedOutput("OUT")])
        client.stop_stream()
    assert told[1] == [2.5]
    if fails:
        assert isinstance(told[0], InferenceServerException)
        assert "tensor 'OUT' on GPU 0: cuCtxSynchronize failed: CUDA_ERROR_OUT_OF_MEMORY (2)" in told[0].message()
    else:
        assert told[0] == MANY


@pytest.mark.parametrize("call", BACK)
def test_what_cannot_be_given_back(tmp_path: Path, call: str) -> None:
    devices = Gpus(tmp_path)
    with Nereid(repository(tmp_path / "models"), env=environment() | devices.env) as server:
        assert infer(server, values=FEW, plan=f"{call}:1=2") == (
            500, f"tensor 'OUT' on GPU 0: {call.removesuffix('_v2')} failed: CUDA_ERROR_OUT_OF_MEMORY (2)"
        )  # fmt: skip
        assert infer(server, values=FEW) == pytest.approx(as_float32(FEW))
    assert not any(report["live"]["memory"] or report["wrong"] for report in devices.reports())


def test_a_driver_that_does_not_begin(tmp_path: Path) -> None:
    """The model's own call of cuInit is the first of the process."""
    devices = Gpus(tmp_path, fail="cuInit:2+=999")
    with Nereid(repository(tmp_path / "models"), env=environment() | devices.env) as server:
        status, error = infer(server, values=FEW)
        assert status == 500
        assert error.startswith("tensor 'OUT' on GPU 0: CUDA's driver cannot be used: ")
    devices.left_nothing(3)
