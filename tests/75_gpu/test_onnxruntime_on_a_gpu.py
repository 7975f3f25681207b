"""ONNX models on a GPU: what they answer is what ONNX Runtime answers by itself. Needs a GPU, and the package onnxruntime-gpu with the libraries of CUDA
that it is made for: tools/gpu_proof.py runs it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import figures
import gpu_networks as networks
import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from figures import CLIENTS, asker, images, measured, note
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server
from models import onnx_models
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.gpu

GPU = networks.GPU
PLAIN = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]


CHAIN = """name: "chain" platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "double" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "doubled" value: "between" } },
  { model_name: "double" model_version: -1 input_map { key: "x" value: "between" } output_map { key: "doubled" value: "y" } } ] }
"""
UNBATCHED = 'input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }\noutput { name: "doubled" data_type: TYPE_FP32 dims: [ -1 ] }\n'
LIMITED = 'optimization { execution_accelerators { gpu_execution_accelerator [ { name: "cuda" parameters { key: "gpu_mem_limit" value: "67108864" } } ] } }\n'
BY_WHAT_IS_ASKED = LIMITED.replace("gpu_mem_limit", "arena_extend_strategy").replace("67108864", "kSameAsRequested")
TENSORRT = 'optimization { execution_accelerators { gpu_execution_accelerator [ { name: "tensorrt" } ] } }\n'


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> figures.Copies:
    return figures.Copies(tmp_path_factory.mktemp("copies"))


@pytest.fixture(scope="module")
def options() -> dict[str, str]:
    return {"backend-config": f"onnxruntime,library={networks.library()}", "log-verbose": "0"}


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    return {}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, copies: figures.Copies, options: dict[str, str], files: dict[str, Path]) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("onnxruntime") / "models")
    files["digits"] = networks.add_digits(repository, "digits", GPU)
    networks.add_digits(repository, "auto", "")
    networks.add_digits(repository, "on_cpu", "instance_group [ { kind: KIND_CPU } ]")
    networks.add_digits(repository, "two", "dynamic_batching { } instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] } ]")
    networks.add_digits(repository, "both", "instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU } ]")
    files["encoder"] = networks.add(repository, "encoder", networks.encoder(), "max_batch_size: 32\ndynamic_batching { }\n")
    for datatype in PLAIN:
        networks.add(repository, f"identity_{datatype}", onnx_models.identity(datatype, ["n", 3]), "max_batch_size: 4\n")
    networks.add(repository, "double", networks.double(), UNBATCHED)
    networks.add(repository, "hungry", networks.hungry())
    networks.add(repository, "limited", networks.hungry(), LIMITED)
    networks.add(repository, "mixed", networks.mixed(), "max_batch_size: 4\ndynamic_batching { }\n")
    networks.add(repository, "scalar", onnx_models.scalar())
    networks.add(repository, "non_zero", onnx_models.non_zero())
    state = (
        'max_batch_size: 4\nsequence_batching { oldest { } state [ { input_name: "total_in" output_name: "total" data_type: TYPE_FP32 dims: [ 2 ] '
        'initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } ] }\n'
        'input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }\noutput { name: "total" data_type: TYPE_FP32 dims: [ 2 ] }\n'
    )
    networks.add(repository, "remembers", onnx_models.sums("FP32", ["n", 2]), state)
    repository.model("chain", CHAIN)
    with Nereid(repository.path, {"allow-client-shm": "true", **options}, env=copies.env) as server:
        yield server


@pytest.fixture(scope="module")
def oracle(server: Server, files: dict[str, Path]) -> dict[str, Any]:
    """ONNX Runtime itself on this GPU."""
    return {name: onnxruntime.InferenceSession(str(path), providers=["CUDAExecutionProvider", "CPUExecutionProvider"]) for name, path in files.items()}


def digits_names(session: Any) -> tuple[str, str]:
    return session.get_inputs()[0].name, session.get_outputs()[0].name


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize("model", ["digits", "auto", "two", "both", "on_cpu"])
def test_digits(server: Server, oracle: dict[str, Any], model: str, protocol: str) -> None:
    pictures, labels = images()
    x, y = digits_names(oracle["digits"])
    for start in range(0, 640, 64):
        given = pictures[start : start + 64]
        found = asker(CLIENTS[protocol], server, model, {x: given}, y)()
        networks.close(found, oracle["digits"].run([y], {x: given})[0])
        assert (found.argmax(axis=1) == labels[start : start + 64]).mean() > 0.9


def test_where_they_are(server: Server) -> None:
    """Without a kind, on the GPU."""
    kinds = {name: rawhttp.get(server.http, f"/v2/models/{name}/config").json()["instance_group"][0]["kind"] for name in ("auto", "digits", "on_cpu")}
    assert kinds == {"auto": "KIND_GPU", "digits": "KIND_GPU", "on_cpu": "KIND_CPU"}


@pytest.mark.parametrize("protocol", CLIENTS)
def test_encoder(server: Server, oracle: dict[str, Any], protocol: str) -> None:
    """Many at once, in batches that the server makes: each gets its own."""
    random = np.random.default_rng(1)
    asked = [random.integers(0, networks.WORDS, (1 + i % 4, 32)) for i in range(64)]

    def one(tokens: np.ndarray) -> None:
        networks.close(asker(CLIENTS[protocol], server, "encoder", {"tokens": tokens}, "embedding")(), oracle["encoder"].run(None, {"tokens": tokens})[0])

    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(one, asked):
            pass
    stats = rawhttp.get(server.http, "/v2/models/encoder/stats").json()["model_stats"][0]
    assert stats["execution_count"] < stats["inference_count"], "nothing was batched"


def test_two_instances(server: Server, oracle: dict[str, Any]) -> None:
    """On one GPU, each with its own stream: many requests at once get their own answers."""
    pictures, _ = images()
    x, y = digits_names(oracle["digits"])
    expected = oracle["digits"].run([y], {x: pictures[:512]})[0]

    def one(i: int) -> None:
        networks.close(asker(grpcclient, server, "two", {x: pictures[i : i + 1]}, y)(), expected[i : i + 1])

    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(one, range(512)):
            pass


@pytest.mark.parametrize("datatype", PLAIN)
def test_data_types(server: Server, datatype: str) -> None:
    data = np.array([[0, 1, 0], [1, 1, 0]], httpclient.triton_to_np_dtype(datatype))
    client = httpclient.InferenceServerClient(server.http)
    asked = httpclient.InferInput("x", [2, 3], datatype)
    asked.set_data_from_numpy(data)
    found = client.infer(f"identity_{datatype}", [asked]).as_numpy("y")
    assert found.dtype == data.dtype
    assert (found == data).all()


@pytest.mark.parametrize("protocol", CLIENTS)
def test_strings_beside_numbers(server: Server, protocol: str) -> None:
    def one(i: int) -> None:
        text = np.array([[f"text {i}".encode()], [b"\0\xff" * i]], np.object_)
        given = {"x": np.full((2, 2), i, np.float32), "text": text}
        assert (asker(CLIENTS[protocol], server, "mixed", given, "same")() == text).all()
        assert (asker(CLIENTS[protocol], server, "mixed", given, "doubled")() == 2 * i).all()

    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(one, range(32)):
            pass


@pytest.mark.parametrize("protocol", CLIENTS)
def test_shapes(server: Server, protocol: str) -> None:
    """Without elements, without dimensions, and one that only the contents decide."""
    module = CLIENTS[protocol]
    assert asker(module, server, "double", {"x": np.zeros(0, np.float32)}, "doubled")().shape == (0,)
    assert asker(module, server, "scalar", {"x": np.full(1, 21, np.float32)}, "y")().item() == 42
    client, asked = module.InferenceServerClient(server.http if module is httpclient else server.grpc), module.InferInput("x", [5], "INT32")
    asked.set_data_from_numpy(np.array([0, 7, 0, 0, 1], np.int32))
    assert client.infer("non_zero", [asked]).as_numpy("where").tolist() == [[1, 4]]


def test_state_of_a_sequence(server: Server) -> None:
    client, total = httpclient.InferenceServerClient(server.http), np.zeros((1, 2), np.float32)
    for i in range(1, 6):
        asked = httpclient.InferInput("x", [1, 2], "FP32")
        asked.set_data_from_numpy(np.array([[i, 2 * i]], np.float32))
        total += np.array([[i, 2 * i]], np.float32)
        found = client.infer("remembers", [asked], sequence_id=5, sequence_start=i == 1, sequence_end=i == 5)
        assert (found.as_numpy("total") == total).all()


@pytest.mark.parametrize("extends", ["to the next power of two", "by what is asked for"])
def test_memory_that_runs_out(tmp_path: Path, options: dict[str, str], oracle: dict[str, Any], extends: str) -> None:
    """The request that asked for too much is told so, and everything else goes on. Once it is unloaded, the model's memory is free."""
    repository = Repository(tmp_path / "models")
    networks.add_digits(repository, "digits", GPU)
    networks.add(repository, "hungry", networks.hungry(), BY_WHAT_IS_ASKED if extends == "by what is asked for" else "")
    pictures, _ = images()
    x, y = digits_names(oracle["digits"])
    with Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "digits", **options}) as server:
        before = figures.gpu_memory_used()
        assert rawhttp.post(server.http, "/v2/repository/models/hungry/load", {}).status == 200
        for _ in range(3):
            with pytest.raises(InferenceServerException, match=r"(?i)failed to allocate memory|available memory") as told:
                asker(grpcclient, server, "hungry", {"mib": np.array([1 << 21], np.int64)}, "sum")()
            assert asker(grpcclient, server, "hungry", {"mib": np.array([16], np.int64)}, "sum")().item() == 16
            networks.close(asker(httpclient, server, "digits", {x: pictures[:4]}, y)(), oracle["digits"].run([y], {x: pictures[:4]})[0])
        taken = figures.gpu_memory_used() - before
        assert rawhttp.post(server.http, "/v2/repository/models/hungry/unload", {}).status == 200
        server.process.wait_until(lambda: figures.gpu_memory_used() - before < 1 << 30, 60)
        left = figures.gpu_memory_used() - before
    note(f"memory that runs out: {str(told.value).splitlines()[-1][:200]}")
    note(f"an arena that extends {extends}: {taken >> 20} MiB after it, {left >> 20} once unloaded")
    assert extends != "by what is asked for" or taken < 1 << 30


def test_parameters_of_cuda(server: Server) -> None:
    """A limit of 64 MiB holds for this model, and for no other."""
    some = {"mib": np.array([128], np.int64)}
    with pytest.raises(InferenceServerException, match=r"(?i)available memory of \d+ is smaller"):
        asker(grpcclient, server, "limited", some, "sum")()
    assert asker(grpcclient, server, "limited", {"mib": np.array([8], np.int64)}, "sum")().item() == 8
    assert asker(grpcclient, server, "hungry", some, "sum")().item() == 128


def test_tensorrt(tmp_path: Path, options: dict[str, str]) -> None:
    """Where its library is: the same answers. Where it is not, a model that asks for it says so, and others load."""
    repository = Repository(tmp_path / "models")
    networks.add_digits(repository, "digits", GPU)
    networks.add_digits(repository, "faster", TENSORRT + GPU)
    with Nereid(repository.path, {"strict-readiness": "false", "exit-on-error": "false", **options}) as server:
        assert rawhttp.get(server.http, "/v2/models/digits/ready").status == 200
        index = rawhttp.post(server.http, "/v2/repository/index", {}).json()
        state = next(each for each in index if each["name"] == "faster")
        note(f"the accelerator tensorrt: {state['state']} {state.get('reason', '')[:300]}")
        if state["state"] == "READY":
            pictures, labels = images()
            names = rawhttp.get(server.http, "/v2/models/faster").json()
            found = asker(httpclient, server, "faster", {names["inputs"][0]["name"]: pictures[:64]}, names["outputs"][0]["name"])()
            assert (found.argmax(axis=1) == labels[:64]).mean() > 0.9
        else:
            assert "Execution Accelerator 'tensorrt'" in state["reason"]
            assert "libnv" in state["reason"] or "libonnxruntime_providers_tensorrt" in state["reason"]


def test_what_is_there_is_shared(server: Server, copies: figures.Copies) -> None:
    """One copy, from ONNX Runtime's memory to the client's, and none of the input."""
    figures.there_and_back(server, copies, "double", "doubled")


def test_steps_stay_on_the_gpu(server: Server, copies: figures.Copies) -> None:
    """Between two models of an ensemble nothing goes to the host: up, out of the first, out of the second, down."""
    data = np.arange(1024, dtype=np.float32)
    assert (asker(httpclient, server, "chain", {"x": data}, "y")() == data * 4).all()
    count, size, rate, cpu = measured(server, copies, lambda: asker(httpclient, server, "chain", {"x": data}, "y"))
    note(f"two steps: {count:.1f} copies, {size:.0f} bytes for a tensor of {data.nbytes}, {rate:.0f} requests/s, {cpu:.0f} us of a processor")
    assert (count, size) == (4, 4 * data.nbytes)


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize(("model", "threads"), [("digits", 1), ("digits", 8), ("two", 8), ("encoder", 1), ("encoder", 16)])
def test_figures(server: Server, oracle: dict[str, Any], model: str, threads: int, protocol: str) -> None:
    """What a request costs the server; every answer arrives."""
    session = oracle["encoder" if model == "encoder" else "digits"]
    x, y = digits_names(session)
    given = np.random.default_rng(3).integers(0, networks.WORDS, (1, 128)) if model == "encoder" else images()[0][:1]
    rate, cpu = figures.load(server, lambda: asker(CLIENTS[protocol], server, model, {x: given}, y), threads)
    note(f"{model}, {protocol}, {threads} at a time: {rate:.0f} requests/s, {cpu:.0f} us of a processor")
    assert rate > 0


@pytest.mark.parametrize(("model", "rows"), [("digits", 1), ("encoder", 1), ("encoder", 16)])
def test_figures_of_onnxruntime_alone(oracle: dict[str, Any], model: str, rows: int) -> None:
    """The floor: the same network, called from Python without a server, up to its result on the host."""
    session = oracle[model]
    x, y = digits_names(session)
    given = images()[0][:rows] if model == "digits" else np.random.default_rng(3).integers(0, networks.WORDS, (rows, 128))
    for _ in range(5):
        session.run([y], {x: given})
    began, used = time.monotonic(), time.process_time()
    for _ in range(300):
        session.run([y], {x: given})
    took, cpu = (time.monotonic() - began) / 300, (time.process_time() - used) / 300
    note(f"{model} in ONNX Runtime alone, {rows} rows: {1 / took:.0f} calls/s, {cpu * 1e6:.0f} us of a processor")


def test_loads_and_unloads(tmp_path: Path, options: dict[str, str]) -> None:
    """What a model had of the GPU comes back: ten times a model that is loaded, asked and unloaded."""
    repository = Repository(tmp_path / "models")
    networks.add(repository, "encoder", networks.encoder(), "max_batch_size: 32\n")
    tokens, used = np.ones((1, 16), np.int64), []
    with Nereid(repository.path, {"model-control-mode": "explicit", **options}) as server:
        for _ in range(10):
            assert rawhttp.post(server.http, "/v2/repository/models/encoder/load", {}).status == 200
            asker(httpclient, server, "encoder", {"tokens": tokens}, "embedding")()
            assert rawhttp.post(server.http, "/v2/repository/models/encoder/unload", {}).status == 200
            server.process.wait_until(lambda: rawhttp.get(server.http, "/v2/models/encoder/ready").status != 200, 60)
            used.append(figures.gpu_memory_used())
    note(f"loads and unloads: MiB of the GPU in use after each: {[round(each / 1048576) for each in used]}")
    assert min(used[5:]) <= max(used[:5]), "each load keeps something"
