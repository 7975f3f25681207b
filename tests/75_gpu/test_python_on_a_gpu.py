"""Models in Python whose tensors lie on a GPU, by PyTorch and by CuPy. Needs a GPU, those two in the Python that runs this, and the backends python,
pytorch and identity: tools/gpu_proof.py runs it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import figures
import numpy as np
import pytest
import torch_models as models
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from figures import note
from harness import cuda
from harness.gpus import Gpus
from harness.repository import Repository
from harness.servers import WITH_NUMPY, Nereid, Server

pytestmark = pytest.mark.gpu

LIBRARIES = ["torch", "cupy"]
CLIENTS = {"HTTP": httpclient, "gRPC": grpcclient}
SIZES = [1, 100, 5000, 4 << 20]  # within a record and beyond
CONFIG = """backend: "python"
input [ { name: "ASK" data_type: TYPE_STRING dims: [ 1 ] }, { name: "X" data_type: TYPE_FP32 dims: [ -1 ] optional: true } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "TOLD" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]
"""
GPU_INPUTS = 'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }\n'
STEPS = """platform: "ensemble"
input [ { name: "ASK" data_type: TYPE_STRING dims: [ 1 ] }, { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "TOLD" data_type: TYPE_STRING dims: [ 1 ] } ]
ensemble_scheduling { step [
  { model_name: "double" model_version: -1 input_map { key: "x" value: "X" } output_map { key: "doubled__0" value: "between" } },
  { model_name: "LIBRARY" model_version: -1 input_map [ { key: "ASK" value: "ASK" }, { key: "X" value: "between" } ]
    output_map [ { key: "OUT" value: "OUT" }, { key: "TOLD" value: "TOLD" } ] } ] }
"""
THERE = {"cpu": False, "device": [2, 0], "as_numpy": "Tensor is stored in GPU and cannot be converted to NumPy."}
NESTED = {"double": ("x", "doubled__0", 2), "copy": ("INPUT0", "OUTPUT0", 1)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("python") / "models")
    source = Path(__file__).with_name("python_model.py").read_text()
    for library in LIBRARIES:
        parameter = f'parameters {{ key: "LIBRARY" value {{ string_value: "{library}" }} }}\n'
        folder = repository.model(library, f'name: "{library}"\n{CONFIG}{parameter}{GPU_INPUTS}')
        (folder / "1" / "model.py").write_text(source)
        repository.model(f"{library}_steps", f'name: "{library}_steps"\n{STEPS.replace("LIBRARY", library)}')
    models.add(repository, "double", models.Double(), models.tensors("input", x="FP32 [ -1 ]") + models.tensors("output", doubled__0="FP32 [ -1 ]"))
    repository.identity("copy", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    # Room for what models keep of the inputs that they were lent.
    with Nereid(repository.path, {"allow-client-shm": "true", "cuda-memory-pool-byte-size": "0:268435456"}, env=WITH_NUMPY) as server:
        yield server


def ask(server: Server, library: str, do: str, x: np.ndarray | None = None, protocol: str = "gRPC", **more: Any) -> tuple[np.ndarray, Any]:
    module = CLIENTS[protocol]
    asked = module.InferInput("ASK", [1], "BYTES")
    asked.set_data_from_numpy(np.array([json.dumps({"do": do} | more)], dtype=object))
    inputs = [asked]
    if x is not None:
        inputs.append(module.InferInput("X", list(x.shape), "FP32"))
        inputs[-1].set_data_from_numpy(x)
    with module.InferenceServerClient(server.grpc if module is grpcclient else server.http) as client:
        result = client.infer(library, inputs)
    return result.as_numpy("OUT"), json.loads(result.as_numpy("TOLD")[0])


def counted(size: int) -> np.ndarray:
    return np.arange(size, dtype=np.float32)


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_outputs(server: Server, library: str, size: int, protocol: str) -> None:
    """They are computed when execute returns by a stream that nobody has waited for."""
    found, _ = ask(server, library, "late", size=size, protocol=protocol)
    assert (found == counted(size)).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_tensor_says(server: Server, library: str) -> None:
    """Where it is; the library that takes it again has it in the same place; numpy and what is not contiguous are refused."""
    found, told = ask(server, library, "says")
    assert told == {
        "cpu": False, "device": [2, 0], "shape": [16], "moved": [0, 0],
        "as_numpy": "Tensor is stored in GPU and cannot be converted to NumPy.",
        "columns": "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported.",
    }  # fmt: skip
    assert (found == counted(16)).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_it_is_changed_where_it_lies(server: Server, library: str) -> None:
    found, _ = ask(server, library, "changed", size=5000)
    assert (found == counted(5000) + 1).all()


@pytest.mark.parametrize("size", [5, 5000])
@pytest.mark.parametrize("library", LIBRARIES)
def test_inputs_that_are_put_there(server: Server, library: str, size: int) -> None:
    found, told = ask(server, library, "doubled", counted(size))
    assert told == {"cpu": True}
    assert (found == counted(size) * 2).all()


@pytest.mark.parametrize("model", NESTED)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_requests_to_models_on_the_gpu(server: Server, library: str, size: int, model: str) -> None:
    """To PyTorch and to identity, which run there."""
    given, wanted, factor = NESTED[model]
    found, _ = ask(server, library, "nested", size=size, model=model, input=given, output=wanted)
    assert (found == counted(size) * factor).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_inputs_that_lie_there(server: Server, library: str, size: int) -> None:
    """In memory of the GPU that a client shares: the model gets a copy there, which stays as long as it keeps it."""
    data = counted(size + 3)
    with cuda.Client(Gpus(Path("/nonexistent"))) as client:
        memory = client.memory(data.nbytes, data.tobytes())
        assert cuda.register(server, "given", memory).status == 200
        with grpcclient.InferenceServerClient(server.grpc) as asks:
            for do, at, factor in (("given", 0, 2), ("back", 1, 1), ("back", 2, 1), ("given", 3, 2)):
                asked, x = grpcclient.InferInput("ASK", [1], "BYTES"), grpcclient.InferInput("X", [size], "FP32")
                asked.set_data_from_numpy(np.array([json.dumps({"do": do})], dtype=object))
                x.set_shared_memory("given", size * 4, at * 4)
                result = asks.infer(library, [asked, x])
                assert (result.as_numpy("OUT") == data[at : at + size] * factor).all()
                assert json.loads(result.as_numpy("TOLD")[0]) == (THERE if do == "given" else {})
        assert cuda.unregister(server).status == 200


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_inputs_that_a_step_left_there(server: Server, library: str, size: int) -> None:
    """PyTorch's output is Python's input."""
    found, told = ask(server, f"{library}_steps", "given", counted(size))
    assert told == THERE
    assert (found == counted(size) * 4).all()


@pytest.mark.parametrize("do", ["pinned", "pinned_array"])
@pytest.mark.parametrize("size", [100, 5000, 4 << 20])
def test_pinned_memory(server: Server, do: str, size: int) -> None:
    """It is the host's, and CUDA's driver gave it: the server reads it all the same."""
    found, _ = ask(server, "torch", do, size=size)
    assert (found == counted(size)).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_memory_is_given_back(server: Server, library: str) -> None:
    """After many large outputs the library has as much of the GPU in use as after a few."""

    def used_after(count: int) -> int:
        for _ in range(count):
            ask(server, library, "changed", size=4 << 20)
        ask(server, library, "used")  # the last response is released once the model is asked again
        return int(ask(server, library, "used")[1]["used"])

    assert used_after(3) == used_after(12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_figures(server: Server, library: str) -> None:
    """What an output of 16 MiB from the GPU costs the server; it arrives."""
    x = counted(4 << 20)

    def make() -> Any:
        return lambda: ask(server, library, "doubled", x)

    rate, cpu = figures.load(server, make, 1, 1)
    note(f"python, {library}, 16 MiB to the GPU and back, gRPC: {rate:.0f} requests/s, {cpu:.0f} us of a processor of the server")
    assert rate > 0
