"""Models of PyTorch on a GPU: what they answer is what PyTorch answers there by itself. Needs a GPU, and a PyTorch with CUDA that the backend was built
for: tools/gpu_proof.py runs it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import figures
import numpy as np
import pytest
import torch_models as models
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from figures import CLIENTS, asker, images, measured, note
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.gpu

AUTO = ""
ON_CPU = "instance_group [ { kind: KIND_CPU } ]"


def fp32(**dims: str) -> str:
    return "".join(models.tensors(way, **{name: f"FP32 {said}"}) for (name, said), way in zip(dims.items(), ("input", "output"), strict=True))


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> figures.Copies:
    return figures.Copies(tmp_path_factory.mktemp("copies"))


@pytest.fixture(scope="module")
def oracle() -> dict[str, Any]:
    return {}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, copies: figures.Copies, oracle: dict[str, Any]) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("pytorch") / "models")
    oracle["digits"] = models.add_digits(repository, "digits")
    models.add_digits(repository, "auto", AUTO)
    models.add_digits(repository, "on_cpu", ON_CPU)
    models.add_digits(repository, "two", "instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] } ]")
    models.add_digits(
        repository, "shared", "instance_group [ { count: 2 kind: KIND_GPU } ]",
        'parameters { key: "ENABLE_WEIGHT_SHARING" value { string_value: "true" } }\n',
    )
    oracle["encoder"] = models.add_encoder(repository)
    models.add(repository, "double", models.Double(), fp32(x="[ -1 ]", doubled__0="[ -1 ]"))
    models.add(repository, "hungry", models.Hungry(), "max_batch_size: 4\n" + fp32(mib="[ 1 ]", mib__0="[ 1 ]"))
    both = models.tensors("input", x="FP32 [ -1 ]") + models.tensors("output", near__0="FP32 [ -1 ]", far__1="FP32 [ -1 ]")
    models.add(repository, "elsewhere", models.Elsewhere(), both)
    state = (
        'sequence_batching { oldest { } state [ { input_name: "so_far" output_name: "next__1" data_type: TYPE_FP32 dims: [ 1 ] '
        'initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } ] }\n'
    )
    models.add(repository, "remembers", models.Remembers(), "max_batch_size: 4\n" + state + fp32(x="[ 1 ]", sum__0="[ 1 ]"))
    repository.model("chain", CHAIN)
    with Nereid(repository.path, {"allow-client-shm": "true", "log-verbose": "0"}, env=copies.env) as server:
        yield server


CHAIN = """name: "chain" platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "double" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "doubled__0" value: "between" } },
  { model_name: "double" model_version: -1 input_map { key: "x" value: "between" } output_map { key: "doubled__0" value: "y" } } ] }
"""


def close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize("model", ["digits", "auto", "two", "shared", "on_cpu"])
def test_digits(server: Server, oracle: dict[str, Any], model: str, protocol: str) -> None:
    pictures, labels = images()
    for start in range(0, 640, 64):
        given = pictures[start : start + 64]
        found = asker(CLIENTS[protocol], server, model, {"image": given}, "logits__0")()
        close(found, models.answer(oracle["digits"], given))
        assert (found.argmax(axis=1) == labels[start : start + 64]).mean() > 0.9


def test_where_they_are(server: Server) -> None:
    """Without a kind, on the GPU."""
    kinds = {name: rawhttp.get(server.http, f"/v2/models/{name}/config").json()["instance_group"][0]["kind"] for name in ("auto", "digits", "on_cpu")}
    assert kinds == {"auto": "KIND_GPU", "digits": "KIND_GPU", "on_cpu": "KIND_CPU"}


@pytest.mark.parametrize("protocol", CLIENTS)
def test_encoder(server: Server, oracle: dict[str, Any], protocol: str) -> None:
    """Many at once, in batches that the server makes: each gets its own."""
    random = np.random.default_rng(1)
    asked = [random.integers(0, models.WORDS, (1 + i % 4, 32)) for i in range(64)]

    def one(tokens: np.ndarray) -> None:
        close(asker(CLIENTS[protocol], server, "encoder", {"tokens": tokens}, "embedding__0")(), models.answer(oracle["encoder"], tokens))

    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(one, asked):
            pass
    stats = rawhttp.get(server.http, "/v2/models/encoder/stats").json()["model_stats"][0]
    assert stats["execution_count"] < stats["inference_count"], "nothing was batched"


def test_two_instances(server: Server, oracle: dict[str, Any]) -> None:
    """On one GPU, each with its own stream: many requests at once get what PyTorch says."""
    pictures, _ = images()
    expected = models.answer(oracle["digits"], pictures[:512])

    def one(i: int) -> None:
        found = asker(grpcclient, server, "two" if i % 2 else "shared", {"image": pictures[i : i + 1]}, "logits__0")()
        close(found, expected[i : i + 1])

    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(one, range(512)):
            pass


@pytest.mark.parametrize("protocol", CLIENTS)
def test_no_elements(server: Server, protocol: str) -> None:
    assert asker(CLIENTS[protocol], server, "double", {"x": np.zeros(0, np.float32)}, "doubled__0")().shape == (0,)


def test_results_on_the_host(server: Server) -> None:
    given = np.arange(5, dtype=np.float32)
    for wanted, more in (("near__0", 1), ("far__1", 2)):
        assert (asker(httpclient, server, "elsewhere", {"x": given}, wanted)() == given + more).all()


def test_state_of_a_sequence(server: Server) -> None:
    total = 0.0
    for i in range(1, 6):
        total += i
        found = asker(
            httpclient, server, "remembers", {"x": np.full((1, 1), i, np.float32)}, "sum__0", sequence_id=5, sequence_start=i == 1, sequence_end=i == 5
        )()
        assert found.item() == total


def test_memory_that_runs_out(server: Server, oracle: dict[str, Any]) -> None:
    """The request that asked for too much is told so, and everything else goes on."""
    pictures, _ = images()
    some = np.full((1, 1), 64, np.float32)
    for _ in range(3):
        with pytest.raises(InferenceServerException, match="out of memory") as told:
            asker(grpcclient, server, "hungry", {"mib": np.full((1, 1), 1 << 21, np.float32)}, "mib__0")()
        assert asker(grpcclient, server, "hungry", {"mib": some}, "mib__0")().item() == 64
        close(asker(httpclient, server, "digits", {"image": pictures[:4]}, "logits__0")(), models.answer(oracle["digits"], pictures[:4]))
    note(f"memory that runs out: {str(told.value).splitlines()[-1][:200]}")


def test_what_is_there_is_shared(server: Server, copies: figures.Copies) -> None:
    """One copy, from PyTorch's memory to the client's, and none of the input."""
    figures.there_and_back(server, copies, "double", "doubled__0")


def test_steps_stay_on_the_gpu(server: Server, copies: figures.Copies) -> None:
    """Between two models of an ensemble nothing goes to the host: up, out of the first, out of the second, down."""
    data = np.arange(1024, dtype=np.float32)
    assert (asker(httpclient, server, "chain", {"x": data}, "y")() == data * 4).all()
    count, size, rate, cpu = measured(server, copies, lambda: asker(httpclient, server, "chain", {"x": data}, "y"))
    note(f"two steps: {count:.1f} copies, {size:.0f} bytes for a tensor of {data.nbytes}, {rate:.0f} requests/s, {cpu:.0f} us of a processor")
    assert (count, size) == (4, 4 * data.nbytes)


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize(("model", "name", "threads"), [("digits", "image", 1), ("digits", "image", 8), ("two", "image", 8), ("encoder", "tokens", 1), ("encoder", "tokens", 16)])
def test_figures(server: Server, model: str, name: str, threads: int, protocol: str) -> None:
    """What a request costs the server; every answer arrives."""
    given = images()[0][:1] if name == "image" else np.random.default_rng(3).integers(0, models.WORDS, (1, 128))
    output = "logits__0" if name == "image" else "embedding__0"
    rate, cpu = figures.load(server, lambda: asker(CLIENTS[protocol], server, model, {name: given}, output), threads)
    note(f"{model}, {protocol}, {threads} at a time: {rate:.0f} requests/s, {cpu:.0f} us of a processor")
    assert rate > 0


@pytest.mark.parametrize(("model", "rows"), [("digits", 1), ("encoder", 1), ("encoder", 16)])
def test_figures_of_pytorch_alone(oracle: dict[str, Any], server: Server, model: str, rows: int) -> None:
    """The floor: the same network, called from Python without a server, up to its result on the host."""
    data = images()[0][:rows] if model == "digits" else np.random.default_rng(3).integers(0, models.WORDS, (rows, 128))
    module = models.torch.jit.script(oracle[model])
    for _ in range(5):
        models.answer(module, data)
    began, used = time.monotonic(), time.process_time()
    for _ in range(300):
        models.answer(module, data)
    took, cpu = (time.monotonic() - began) / 300, (time.process_time() - used) / 300
    note(f"{model} in PyTorch alone, {rows} rows: {1 / took:.0f} calls/s, {cpu * 1e6:.0f} us of a processor")


def test_loads_and_unloads(tmp_path: Path) -> None:
    """What a model had of the GPU comes back: ten times a model that is loaded, asked and unloaded."""
    repository = Repository(tmp_path / "models")
    models.add_encoder(repository)
    tokens = np.ones((1, 16), np.int64)
    used = []
    with Nereid(repository.path, {"model-control-mode": "explicit", "metrics-interval-ms": "50"}) as server:
        for _ in range(10):
            assert rawhttp.post(server.http, "/v2/repository/models/encoder/load", {}).status == 200
            asker(httpclient, server, "encoder", {"tokens": tokens}, "embedding__0")()
            assert rawhttp.post(server.http, "/v2/repository/models/encoder/unload", {}).status == 200
            server.process.wait_until(lambda: rawhttp.get(server.http, "/v2/models/encoder/ready").status != 200, 60)
            used.append(figures.gpu_memory_used())
    note(f"loads and unloads: MiB of the GPU in use after each: {[round(each / 1048576) for each in used]}")
    assert used[-1] <= used[1] + (16 << 20)
