"""Models of TensorFlow on a GPU: what they answer is what TensorFlow answers there by itself. Needs a GPU, and in the folder of the backend the libraries of a
TensorFlow with CUDA: tools/gpu_proof.py runs it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import figures
import gpu_networks
import numpy as np
import pytest
import tensorflow_networks as networks
import tritonclient.grpc as grpcclient
from figures import CLIENTS, asker, images, note
from harness import arrays, paths, rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server
from sanitized import Sanitized
from tritonclient.utils import InferenceServerException

import tensorflow_files as files  # beside the tests of the backend on processors
import tensorflow_oracle
from clients import ask, load, parameters, tensor, unload

pytestmark = pytest.mark.gpu

GRAPH, SAVED = 'platform: "tensorflow_graphdef"\n', 'platform: "tensorflow_savedmodel"\n'
WORDS = 128  # of each text for the encoder
ON_GPU, ON_CPU, ANYWHERE = (f"instance_group [ {{ count: 1 kind: {kind} }} ]\n" for kind in ("KIND_GPU gpus: [ 0 ]", "KIND_CPU", "KIND_MODEL"))
DENSE = "max_batch_size: 16\n" + tensor("input", "x", "FP32", [16]) + tensor("output", "logits", "FP32", [8])
DIGITS = "max_batch_size: 64\n" + tensor("input", "image", "FP32", [64]) + tensor("output", "logits", "FP32", [10])
ENCODER = "max_batch_size: 32\ndynamic_batching { }\n" + tensor("input", "tokens", "INT32", [WORDS]) + tensor("output", "embedding", "FP32", [networks.WIDTH])
IMAGE = "max_batch_size: 32\n" + tensor("input", "image", "FP32", [12, 12, 3]) + tensor("output", "probabilities", "FP32", [5])
DOUBLE = tensor("input", "x", "FP32", [-1]) + tensor("output", "doubled", "FP32", [-1])
HUNGRY = tensor("input", "mib", "INT32", [1]) + tensor("output", "sum", "FP32", [1])
MIXED = (
    "max_batch_size: 4\n" + tensor("input", "x", "FP32", [2]) + tensor("input", "text", "STRING", [1])
    + tensor("output", "doubled", "FP32", [2]) + tensor("output", "upper", "STRING", [1])
)
PLAIN = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]
KINDS = {"digits": ON_GPU, "auto": "", "two": ON_GPU.replace("count: 1", "count: 2"), "on_cpu": ON_CPU, "anywhere": ANYWHERE}


def add_graph(repository: Repository, name: str, graph: networks.Graph, config: str, more: str = ON_GPU) -> None:
    files.save_graph(graph, repository.model(name, GRAPH + config + more))


def add_digits(repository: Repository, name: str, more: str) -> None:
    folder = repository.model(name, GRAPH + DIGITS + more)
    (folder / "1" / "model.graphdef").write_bytes(digits_file().read_bytes())


def digits_file() -> Path:
    return paths.need(paths.ROOT / "build" / "models-tensorflow" / "digits_tensorflow" / "1" / "model.graphdef", "tools/samples.sh")


@pytest.fixture(scope="module")
def encoder() -> networks.Graph:
    return networks.encoder(WORDS)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> figures.Copies:
    return figures.Copies(tmp_path_factory.mktemp("copies"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, copies: figures.Copies, encoder: networks.Graph) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("tensorflow") / "models")
    for name, group in KINDS.items():
        add_digits(repository, name, group)
    add_graph(repository, "encoder", encoder, ENCODER)
    add_graph(repository, "convolutions", files.convolutions(), IMAGE)
    add_graph(repository, "double", networks.double(), DOUBLE)
    add_graph(repository, "hungry", networks.hungry(), HUNGRY)
    add_graph(repository, "mixed", networks.mixed(), MIXED)
    for datatype in PLAIN:
        of = tensor("input", "x", datatype, [3]) + tensor("output", "y", datatype, [3])
        add_graph(repository, f"identity_{datatype}", files.same(datatype, [-1, 3]), "max_batch_size: 4\n" + of)
    files.save(files.dense_graph(), repository.model("dense", SAVED + ON_GPU), *files.DENSE)
    files.save_with_variable(repository.model("variable", SAVED + ON_GPU), 2.5)
    called = {"x": ("serving_x:0", "FP32", [-1])}, {"y": ("StatefulPartitionedCall:0", "FP32", [-1])}
    files.save(files.in_function(), repository.model("in_function", SAVED + "max_batch_size: 4\n" + ON_GPU), *called)
    files.reads_file(repository.model("reads", SAVED + ON_GPU), b"of the file", False)
    state = tensor("input", "x", "FP32", [1]) + tensor("output", "y", "FP32", [1]) + parameters({"TF_INIT_OPS_FILE": "init_ops.json"})
    add_graph(repository, "counter", files.counter(), state)
    (repository.path / "counter" / "init_ops.json").write_text('{"init_ops": ["init"]}')
    with Nereid(repository.path, {"allow-client-shm": "true"}, env=copies.env) as server:
        yield server


def answers(graph: networks.Graph, given: dict[str, np.ndarray], wanted: str) -> np.ndarray:
    (found,) = tensorflow_oracle.run(graph.definition(), given, [wanted])
    return found


def digits_answers(pictures: np.ndarray) -> np.ndarray:
    (found,) = tensorflow_oracle.run(digits_file().read_bytes(), {"image": pictures}, ["logits"])
    return found


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize("model", KINDS)
def test_digits(server: Server, model: str, protocol: str) -> None:
    pictures, labels = images()
    for start in range(0, 640, 64):
        given = pictures[start : start + 64]
        found = asker(CLIENTS[protocol], server, model, {"image": given}, "logits")()
        gpu_networks.close(found, digits_answers(given))
        assert (found.argmax(axis=1) == labels[start : start + 64]).mean() > 0.9


def test_where_they_are(server: Server, copies: figures.Copies) -> None:
    """Without a kind, on the GPU. What computes there is copied there and back; what computes on the CPU is not."""
    kinds = {name: rawhttp.get(server.http, f"/v2/models/{name}/config").json()["instance_group"][0]["kind"] for name in KINDS}
    assert kinds == {"digits": "KIND_GPU", "auto": "KIND_GPU", "two": "KIND_GPU", "on_cpu": "KIND_CPU", "anywhere": "KIND_MODEL"}
    pictures, _ = images()
    copied = {}
    for name in KINDS:
        send = asker(grpcclient, server, name, {"image": pictures[:64]}, "logits")
        send()
        before = copies.read()
        send()
        copied[name] = copies.read()[1] - before[1]
    note(f"bytes copied to a GPU and back for 64 images ({64 * 64 * 4} and {64 * 10 * 4} bytes): {copied}")
    assert copied["on_cpu"] == 0
    for name in ("digits", "auto", "two", "anywhere"):
        assert copied[name] >= 64 * 64 * 4 + 64 * 10 * 4


@pytest.mark.parametrize("protocol", CLIENTS)
def test_encoder(server: Server, encoder: networks.Graph, protocol: str) -> None:
    """Many at once, in batches that the server makes: each gets its own."""
    random = np.random.default_rng(1)
    asked = [random.integers(0, networks.WORDS, (1 + i % 4, WORDS)).astype(np.int32) for i in range(64)]

    def one(tokens: np.ndarray) -> np.ndarray:
        return asker(CLIENTS[protocol], server, "encoder", {"tokens": tokens}, "embedding")()

    with ThreadPoolExecutor(16) as pool:
        found = np.concatenate(list(pool.map(one, asked)))
    gpu_networks.close(found, answers(encoder, {"tokens": np.concatenate(asked)}, "embedding"))
    stats = rawhttp.get(server.http, "/v2/models/encoder/stats").json()["model_stats"][0]
    assert stats["execution_count"] < stats["inference_count"], "nothing was batched"


@pytest.mark.parametrize("protocol", CLIENTS)
def test_convolutions(server: Server, protocol: str) -> None:
    """cuDNN's part."""
    pictures = np.random.default_rng(3).random((8, 12, 12, 3), dtype=np.float32)
    found = asker(CLIENTS[protocol], server, "convolutions", {"image": pictures}, "probabilities")()
    gpu_networks.close(found, answers(files.convolutions(), {"image": pictures}, "probabilities"))


def test_two_instances(server: Server) -> None:
    """On one GPU: many requests at once get their own answers."""
    pictures, _ = images()
    expected = digits_answers(pictures[:512])

    def one(i: int) -> None:
        gpu_networks.close(asker(grpcclient, server, "two", {"image": pictures[i : i + 1]}, "logits")(), expected[i : i + 1])

    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(one, range(512)):
            pass


@pytest.mark.parametrize("datatype", PLAIN)
def test_data_types(server: Server, datatype: str) -> None:
    data = np.array([[0, 1, 0], [1, 1, 0]], arrays.NUMPY[datatype])
    found = ask(server, "grpc", f"identity_{datatype}", {"x": data})["y"]
    assert found.dtype == data.dtype
    assert (found == data).all()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_texts_beside_numbers(server: Server, protocol: str) -> None:
    """What has no code for GPUs runs on the CPU."""

    def one(i: int) -> None:
        given = {"x": np.full((2, 2), i, np.float32), "text": np.array([[f"text {i}".encode()], [b"a" * i]], np.object_)}
        found = ask(server, protocol, "mixed", given)
        assert found["upper"].tolist() == [[f"TEXT {i}".encode()], [b"A" * i]]
        assert (found["doubled"] == 2 * i).all()

    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(one, range(32)):
            pass


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_saved_models(server: Server, protocol: str) -> None:
    """Variables, functions and files of a model."""
    rows = np.arange(32, dtype=np.float32).reshape(2, 16) / 32
    gpu_networks.close(ask(server, protocol, "dense", {"x": rows})["logits"], files.dense_answers(rows))
    x = np.array([[2], [4]], np.float32)
    assert ask(server, protocol, "variable", {"x": x})["y"].tolist() == [[5], [10]]
    assert ask(server, protocol, "in_function", {"x": x})["y"].tolist() == [[7], [13]]
    assert ask(server, protocol, "reads", {"x": x[0]})["words"].tolist() == [b"of the file"]


def test_a_variable_keeps_its_value(server: Server) -> None:
    found = [float(ask(server, "grpc", "counter", {"x": np.ones(1, np.float32)})["y"][0]) for _ in range(5)]
    assert found == [101, 102, 103, 104, 105]


@pytest.mark.parametrize("protocol", CLIENTS)
def test_no_elements(server: Server, protocol: str) -> None:
    assert asker(CLIENTS[protocol], server, "double", {"x": np.zeros(0, np.float32)}, "doubled")().shape == (0,)


def test_memory_that_runs_out(server: Server) -> None:
    """The request that asked for too much is told so, and everything else goes on."""
    pictures, _ = images()
    for _ in range(3):
        with pytest.raises(InferenceServerException, match="(?i)OOM|out of memory") as told:
            ask(server, "grpc", "hungry", {"mib": np.array([1 << 21], np.int32)})
        assert ask(server, "grpc", "hungry", {"mib": np.array([16], np.int32)})["sum"].item() == 16
        gpu_networks.close(ask(server, "http", "digits", {"image": pictures[:4]})["logits"], digits_answers(pictures[:4]))
    note(f"memory that runs out: {str(told.value)[:400]}")


def test_what_is_there_is_shared(server: Server, copies: figures.Copies) -> None:
    """A client's memory of the GPU, in and out: the tensors come and go by way of the host."""
    figures.there_and_back(server, copies, "double", "doubled", by_the_host=True)


@pytest.mark.parametrize("kind", ["GPU", "CPU"])
def test_only_where_there_is_code_for_it(tmp_path: Path, kind: str) -> None:
    """allow-soft-placement=false: a model whose operations have code for GPUs is there whole, and others' requests are refused. So is another GPU
    than there is."""
    repository = Repository(tmp_path / "models")
    group = ON_GPU if kind == "GPU" else ON_CPU
    add_digits(repository, "digits", group)
    add_graph(repository, "mixed", networks.mixed(), MIXED, group)
    add_graph(repository, "ninth", files.dense_graph(), DENSE, ON_GPU.replace("[ 0 ]", "[ 9 ]"))
    pictures, _ = images()
    given = {"x": np.ones((1, 2), np.float32), "text": np.array([[b"a"]], np.object_)}
    with Nereid(repository.path, {"model-control-mode": "explicit", "backend-config": "tensorflow,allow-soft-placement=false"}) as server:
        for model in ("digits", "mixed"):
            assert load(server, model) == (200, "")
        gpu_networks.close(ask(server, "grpc", "digits", {"image": pictures[:4]})["logits"], digits_answers(pictures[:4]))
        if kind == "CPU":
            assert ask(server, "grpc", "mixed", given)["upper"].tolist() == [[b"A"]]
        else:
            with pytest.raises(InferenceServerException, match="GPU") as told:
                ask(server, "grpc", "mixed", given)
            note(f"texts on a GPU, where nothing may go elsewhere: {str(told.value)[:300]}")
        status, error = load(server, "ninth")
        assert status == 400 and "GPU 9" in error


def test_a_fraction_of_the_memory(tmp_path: Path) -> None:
    """Taken at once, for all models; without it memory grows as it is needed."""
    repository, used = Repository(tmp_path / "models"), {}
    add_digits(repository, "digits", ON_GPU)
    for said in ("", "0.25"):
        options = {"backend-config": f"tensorflow,gpu-memory-fraction={said}"} if said else {}
        before = figures.gpu_memory_used()
        with Nereid(repository.path, options) as server:
            ask(server, "grpc", "digits", {"image": images()[0][:4]})
            used[said] = figures.gpu_memory_used() - before
    note(f"memory of the GPU with a small model: {used[''] >> 20} MiB, and with gpu-memory-fraction=0.25 {used['0.25'] >> 20} MiB")
    assert used[""] < 4 << 30 < used["0.25"]


def test_loads_and_unloads(tmp_path: Path, encoder: networks.Graph) -> None:
    """What a model had of the GPU comes back: ten times a model that is loaded, asked and unloaded."""
    repository = Repository(tmp_path / "models")
    add_graph(repository, "encoder", encoder, ENCODER)
    tokens, used = np.ones((1, WORDS), np.int32), []
    with Nereid(repository.path, {"model-control-mode": "explicit"}) as server:
        for _ in range(10):
            assert load(server, "encoder") == (200, "")
            ask(server, "grpc", "encoder", {"tokens": tokens})
            assert unload(server, "encoder") == 200
            server.process.wait_until(lambda: rawhttp.get(server.http, "/v2/models/encoder/ready").status != 200, 60)
            used.append(figures.gpu_memory_used())
    note(f"loads and unloads: MiB of the GPU in use after each: {[round(each / 1048576) for each in used]}")
    assert min(used[5:]) <= max(used[:5]), "each load keeps something"


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize(("model", "threads"), [("digits", 1), ("digits", 8), ("two", 8), ("on_cpu", 1), ("encoder", 1), ("encoder", 16)])
def test_figures(server: Server, model: str, threads: int, protocol: str) -> None:
    """What a request costs the server; every answer arrives."""
    x, y = ("tokens", "embedding") if model == "encoder" else ("image", "logits")
    given = np.ones((1, WORDS), np.int32) if model == "encoder" else images()[0][:1]
    rate, cpu = figures.load(server, lambda: asker(CLIENTS[protocol], server, model, {x: given}, y), threads)
    note(f"{model}, {protocol}, {threads} at a time: {rate:.0f} requests/s, {cpu:.0f} us of a processor")
    assert rate > 0


@pytest.mark.parametrize(("model", "rows"), [("digits", 1), ("encoder", 1), ("encoder", 16)])
def test_figures_of_tensorflow_alone(encoder: networks.Graph, model: str, rows: int) -> None:
    """The floor: the same network, in TensorFlow called in a loop, from tensors on the host to results there."""
    if model == "encoder":
        told = tensorflow_oracle.run(encoder.definition(), {"tokens": np.ones((rows, WORDS), np.int32)}, ["embedding"], times=300)
    else:
        told = tensorflow_oracle.run(digits_file().read_bytes(), {"image": images()[0][:rows]}, ["logits"], times=300)
    took, cpu = told[0]
    note(f"{model} in TensorFlow alone, {rows} rows: {1 / took:.0f} calls/s, {cpu * 1e6:.0f} us of a processor")


def test_under_the_sanitizer(tmp_path: Path, encoder: networks.Graph) -> None:
    """Nothing on the GPU is read or written where it should not be, and no call of CUDA fails."""
    repository = Repository(tmp_path / "models")
    add_digits(repository, "digits", ON_GPU)
    add_graph(repository, "encoder", encoder, ENCODER)
    add_graph(repository, "mixed", networks.mixed(), MIXED)
    pictures, _ = images()
    with Sanitized(repository.path, ready_within=300) as server:
        gpu_networks.close(ask(server, "grpc", "digits", {"image": pictures[:4]})["logits"], digits_answers(pictures[:4]))
        tokens = np.ones((2, WORDS), np.int32)
        gpu_networks.close(ask(server, "grpc", "encoder", {"tokens": tokens})["embedding"], answers(encoder, {"tokens": tokens}, "embedding"))
        given = {"x": np.ones((1, 2), np.float32), "text": np.array([[b"a"]], np.object_)}
        assert ask(server, "grpc", "mixed", given)["upper"].tolist() == [[b"A"]]
