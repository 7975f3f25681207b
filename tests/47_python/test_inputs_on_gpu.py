"""Inputs of python models that lie on the GPU of their instance, with a stand-in for CUDA's driver (tests/cuda): with
FORCE_CPU_ONLY_INPUT_TENSORS "no" a model gets them there, in memory that it opens by a handle, and everything is given back."""

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import catalog
import pytest
from conftest import environment
from harness import cuda, rawhttp, together
from harness.cuda import Client
from harness.gpus import Gpus
from harness.regions import part
from harness.repository import Repository
from harness.servers import Nereid, Server

DATA = [float(i) for i in range(4000)]  # more than a record holds
BYTES = struct.pack("4000f", *DATA)
FEW = 16  # bytes of four of them, within a record
ON_GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]\n"
ON_CPU = "instance_group [ { kind: KIND_CPU } ]\n"
CONFIG = """backend: "python"
input [ { name: "ASK" data_type: TYPE_STRING dims: [ 1 ] }, { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "TOLD" data_type: TYPE_STRING dims: [ 1 ] } ]
"""
STEPS = """name: "steps" platform: "ensemble"
input [ { name: "ASK" data_type: TYPE_STRING dims: [ 1 ] }, { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "TOLD" data_type: TYPE_STRING dims: [ 1 ] } ]
ensemble_scheduling { step [
  { model_name: "identity" model_version: -1 input_map { key: "INPUT0" value: "X" } output_map { key: "OUTPUT0" value: "between" } },
  { model_name: "wants" model_version: -1 input_map [ { key: "ASK" value: "ASK" }, { key: "X" value: "between" } ]
    output_map [ { key: "OUT" value: "OUT" }, { key: "TOLD" value: "TOLD" } ] } ] }
"""
ALLOWED: dict[str, str | list[str]] = {"allow-client-shm": "true"}
THERE = {"cpu": False, "device": [2, 0]}
ON_HOST = {"cpu": True, "device": [1, 0]}


def force(value: str) -> str:
    return f'parameters {{ key: "FORCE_CPU_ONLY_INPUT_TENSORS" value {{ string_value: "{value}" }} }}\n'


# Which model gets an input that lies on GPU 0 there.
MODELS = {
    "wants": (ON_GPU + force("no"), THERE),
    "forced": (ON_GPU + force("yes"), ON_HOST),
    "usual": (ON_GPU, ON_HOST),
    "cpu": (ON_CPU + force("no"), ON_HOST),
}
PAIR = "max_batch_size: 2\ndynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 600000000 }\n"


def repository(root: Path, names: list[str]) -> Path:
    made = Repository(root)
    source = (catalog.SOURCES / "on_gpu.py").read_text()
    for name in names:
        folder = made.model(name, f'name: "{name}"\n{CONFIG}{MODELS[name][0]}')
        (folder / "1" / "model.py").write_text(source)
    made.identity("identity", extra=ON_GPU)
    made.model("steps", STEPS)
    return made.path


class Asked:
    """A server, and memory of its GPU that a client has registered."""

    def __init__(self, server: Server, client: Client):
        self.server = server
        self.memory = client.memory(len(BYTES) + 64, bytes(64) + BYTES)
        assert cuda.register(server, "in", self.memory).status == 200

    def infer(self, how: str, model: str = "wants", size: int = len(BYTES), at: int = 0, x: dict[str, Any] | None = None, **asked: Any) -> Any:
        """The output and what was told of the input; or the status, and what is said of the error."""
        words = {"name": "ASK", "datatype": "BYTES", "shape": [1], "data": [json.dumps({"input": how} | asked)]}
        given = {"name": "X", "datatype": "FP32", "shape": [size // 4]} | (x or {"parameters": part("in", size, 64 + 4 * at)})
        answer = rawhttp.post(self.server.http, f"/v2/models/{model}/infer", json.dumps({"inputs": [words, given]}).encode())
        if answer.status != 200:
            return answer.status, answer.json()["error"]
        outputs = {each["name"]: each["data"] for each in answer.json()["outputs"]}
        told = json.loads(outputs["TOLD"][0])
        assert told.pop("shape") == [size // 4]
        return outputs["OUT"], told


@contextmanager
def serve(folder: Path, devices: Gpus, names: list[str], **options: str) -> Iterator[Asked]:
    with Nereid(repository(folder / "models", names), ALLOWED | options, env=environment() | devices.env) as server, Client(devices) as client:
        yield Asked(server, client)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("inputs")
    devices = Gpus(folder, "8.0:64,7.5:64")
    with serve(folder, devices, list(MODELS)) as asked:
        yield asked
    devices.left_nothing(1 + len(MODELS))


@pytest.mark.parametrize("size", [FEW, len(BYTES)])
@pytest.mark.parametrize("model", MODELS)
def test_where_inputs_are(asked: Asked, model: str, size: int) -> None:
    """On the GPU where the instance is there and the model wants that; what it hands back is what was sent, once and again."""
    for _ in range(3):
        assert asked.infer("echo", model, size) == (DATA[: size // 4], MODELS[model][1])


def test_inputs_on_the_host_stay_there(asked: Asked) -> None:
    assert asked.infer("echo", size=FEW, x={"data": DATA[:4]}) == (DATA[:4], ON_HOST)


def test_a_step_of_an_ensemble(asked: Asked) -> None:
    """It gets what the step before has left, where that left it."""
    assert asked.infer("echo", "steps") == (DATA, THERE)


def test_numpy_is_refused(asked: Asked) -> None:
    status, error = asked.infer("numpy")
    assert status == 500
    assert "Tensor is stored in GPU and cannot be converted to NumPy." in error


def test_inputs_that_are_kept(asked: Asked) -> None:
    """Those of later requests have memory of their own."""
    for i in range(3):
        assert asked.infer("hold", size=FEW, at=i) == (DATA[i : i + 4], THERE)
    assert asked.infer("drop", size=FEW, at=9) == (DATA[9:13], THERE | {"held": [0, 1, 2]})


@pytest.mark.parametrize("call", ["cuIpcOpenMemHandle_v2", "cuCtxSynchronize", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2"])
def test_it_cannot_be_opened(asked: Asked, call: str) -> None:
    """The model sees an exception, and may try again."""
    out, told = asked.infer("open", plan=f"{call}:1=2")
    assert told.pop("error") == f"tensor 'X' on GPU 0: {call.removesuffix('_v2')} failed: CUDA_ERROR_OUT_OF_MEMORY (2)"
    assert (out, told) == (DATA, THERE)


@pytest.mark.parametrize(("call", "number"), [("cuMemGetAddressRange_v2", 2), ("cuIpcGetMemHandle", 1)])
def test_it_cannot_be_lent(tmp_path: Path, call: str, number: int) -> None:
    """In the server, which asks for the range of a region too: that request fails, the next one does not."""
    devices = Gpus(tmp_path, fail=f"{call}:{number}=2")
    with serve(tmp_path, devices, ["wants"]) as asked:
        assert asked.infer("echo") == (500, f"input 'X' on GPU 0: {call.removesuffix('_v2')} failed: CUDA_ERROR_OUT_OF_MEMORY (2)")
        assert asked.infer("echo") == (DATA, THERE)
    devices.left_nothing(2)


def test_no_memory_for_it(tmp_path: Path) -> None:
    """The pool of the GPU is empty."""
    devices = Gpus(tmp_path)
    with serve(tmp_path, devices, ["wants"], **{"cuda-memory-pool-byte-size": "0:0"}) as asked:
        status, error = asked.infer("echo")
        assert status == 503, error
        assert asked.infer("echo", size=FEW, x={"data": DATA[:4]}) == (DATA[:4], ON_HOST)
    devices.left_nothing(2)


def pair(server: Server, *given: dict[str, Any]) -> list[tuple[int, Any]]:
    """The answers to requests of one batch: an output, or what is said of the error."""
    bodies = []
    for tensor in given:
        words = {"name": "ASK", "datatype": "BYTES", "shape": [1, 1], "data": [json.dumps({"input": "echo"})]}
        x = {"name": "X", "datatype": "FP32", "shape": [1, FEW // 4]} | tensor
        bodies.append(json.dumps({"inputs": [words, x], "outputs": [{"name": "OUT"}]}).encode())
    answers = together.ask(server, "/v2/models/pair/infer", bodies)
    return [(each.status, each.json()["outputs"][0]["data"] if each.status == 200 else each.json()["error"]) for each in answers]


def test_no_memory_for_one_of_a_batch(tmp_path: Path) -> None:
    """Only that one fails, and nothing of it is left: what the other model gets is its own."""
    devices = Gpus(tmp_path)
    made = Repository(tmp_path / "models")
    folder = made.model("pair", f'name: "pair"\n{CONFIG}{PAIR}{ON_GPU}{force("no")}')
    (folder / "1" / "model.py").write_text((catalog.SOURCES / "on_gpu.py").read_text())
    options = ALLOWED | {"cuda-memory-pool-byte-size": "0:0"}
    with Nereid(made.path, options, env=environment() | devices.env) as server, Client(devices) as client:
        memory = client.memory(len(BYTES), BYTES)
        assert cuda.register(server, "in", memory).status == 200
        there, here = {"parameters": part("in", FEW)}, {"data": [[7, 8, 9, 10]]}
        for asked in ([there, here], [here, there]):
            answers = pair(server, *asked)
            status, error = answers.pop(asked.index(there))
            assert status == 503, error
            assert answers == [(200, [7, 8, 9, 10])]
        assert [status for status, _ in pair(server, there, there)] == [503, 503]
        assert pair(server, here, here) == [(200, [7, 8, 9, 10])] * 2
        assert server.statistics("pair")["inference_stats"]["fail"]["count"] == 4
    devices.left_nothing(2)


def test_memory_is_given_back(tmp_path: Path) -> None:
    """What was lent, again and again, also to processes that died with it: a pool that has room for four is enough."""
    devices = Gpus(tmp_path)
    with serve(tmp_path, devices, ["wants"], **{"cuda-memory-pool-byte-size": "0:65536"}) as asked:
        for _ in range(12):
            assert asked.infer("echo") == (DATA, THERE)
        for _ in range(6):
            status, error = asked.infer("die")
            assert status == 500
            assert error.endswith("It has ended.")
        assert asked.infer("echo") == (DATA, THERE)
    devices.left_nothing(2)  # who has died told nothing
