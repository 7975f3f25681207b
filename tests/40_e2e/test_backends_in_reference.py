"""The identity and ONNX Runtime backends, the very same files in both servers (architecture: "the same .so runs
in both servers"): every datatype, shapes, batches, and answers compared with ONNX Runtime in Python."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import arrays, rawgrpc, rawhttp
from harness.arrays import TYPES
from harness.repository import Repository
from harness.servers import KINDS, Server
from models import onnx_models
from tritonclient.grpc import service_pb2 as pb

pytestmark = pytest.mark.onnx

ONNX = 'backend: "onnxruntime"\n'
DYNAMIC = "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 300000 }\n"
EIGHTS = DYNAMIC.replace("300000", "30000000")  # for what comes in eights
SEQUENCE = """\
    backend: "onnxruntime"
    max_batch_size: 2
    input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
    output { name: "total" data_type: TYPE_FP32 dims: [ 1 ] }
    sequence_batching {
      max_sequence_idle_microseconds: 60000000
      control_input { name: "start" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
      state { input_name: "total_in" output_name: "total_out" data_type: TYPE_FP32 dims: [ 1 ] }
    }
    """
SETTINGS = {
    -1: {"execution_mode": "1", "inter_op_thread_count": "2", "enable_mem_arena": "false"},
    1: {"intra_op_thread_count": "2", "memory.enable_memory_arena_shrinkage": "cpu:0", "enable_mem_pattern": "0"},
    2: {"session.intra_op.allow_spinning": "0", "enable_mem_arena": "1", "enable_mem_pattern": "on"},
}


def tensor(kind: str, name: str, datatype: str, dims: list[int], more: str = "") -> str:
    """An entry of a configuration; kind is "input" or "output"."""
    return f'{kind} {{ name: "{name}" data_type: TYPE_{datatype} dims: {dims} {more} }}\n'


def parameters(values: dict[str, str]) -> str:
    return "".join(f'parameters {{ key: "{k}" value {{ string_value: "{v}" }} }}\n' for k, v in values.items())


def write_identity(repository: Repository) -> None:
    backend = 'backend: "identity"\n'
    repository.identity("copy_two", dims=(-1,), max_batch_size=8, tensors=2)
    repository.identity("copy_cube", "INT16", dims=(-1, 2, -1))
    repository.identity("copy_batch", dims=(4,), max_batch_size=8, extra=EIGHTS)
    repository.identity("copy_strings", "BYTES", dims=(-1,), max_batch_size=8, extra=EIGHTS)
    delays = parameters({"execute_delay_ms": "30", "execute_delay_us": "5000"})
    repository.identity("copy_slow", dims=(-1,), extra=delays)
    repository.model(
        "copy_by_place",
        backend + tensor("input", "left", "INT8", [2]) + tensor("input", "right", "FP64", [1])
        + tensor("output", "first", "INT8", [2]) + tensor("output", "second", "FP64", [1]),
    )
    repository.model(
        "copy_by_both",
        backend + tensor("input", "A", "INT8", [1]) + tensor("input", "INPUT7", "INT8", [1])
        + tensor("output", "OUTPUT7", "INT8", [1]) + tensor("output", "B", "INT8", [1]),
    )
    repository.model(
        "copy_optional",
        backend + "max_batch_size: 4\n" + tensor("input", "INPUT0", "INT32", [-1])
        + tensor("input", "INPUT1", "FP32", [3], "optional: true")
        + tensor("input", "INPUT2", "STRING", [2], "optional: true")
        + tensor("output", "OUTPUT0", "INT32", [-1]) + tensor("output", "OUTPUT1", "FP32", [3])
        + tensor("output", "OUTPUT2", "STRING", [2]),
    )
    one = tensor("input", "INPUT0", "FP32", [1])
    repository.model("bad_pair", backend + one + tensor("output", "OUTPUT0", "INT32", [1]))
    repository.model("bad_pairs", backend + one + tensor("output", "OUTPUT0", "FP32", [1]) + tensor("output", "OUTPUT1", "FP32", [1]))
    repository.model("bad_delay", backend + one + tensor("output", "OUTPUT0", "FP32", [1]) + parameters({"execute_delay_ms": "5m"}))


def write_onnx(repository: Repository) -> None:
    def put(name: str, built: Any, config: str | None = None) -> None:
        onnx_models.save(built, repository.model(name, config))

    for datatype in onnx_models.ELEMENT:
        put(f"type_{datatype.lower()}", onnx_models.identity(datatype, ["n", "m"]))
    put("add_sub", onnx_models.add_sub())
    put("dense", onnx_models.dense(), ONNX + "max_batch_size: 16\n" + DYNAMIC)
    put("dense_many", onnx_models.dense(), ONNX + "max_batch_size: 16\ninstance_group { count: 3 kind: KIND_CPU }\n")
    put("non_zero", onnx_models.non_zero())
    put("scalar", onnx_models.scalar())
    put("one_per_row", onnx_models.one_per_row())
    put("fixed", onnx_models.add_sub(batch=2, width=3))
    put("strings", onnx_models.identity("BYTES", ["n", "m"]), ONNX + "max_batch_size: 8\n")
    put("strings_together", onnx_models.identity("BYTES", ["n", "m"]), ONNX + "max_batch_size: 8\n" + EIGHTS)
    put("gather", onnx_models.gather(), ONNX + "max_batch_size: 4\n")
    put("breaks_its_promise", onnx_models.breaks_its_promise())
    put("keeps_one_row", onnx_models.keeps_one_row(), ONNX + "max_batch_size: 4\n")
    optional = tensor("input", "x", "FP32", [2]) + tensor("input", "offset", "FP32", [2], "optional: true")
    put("with_default", onnx_models.with_default(), ONNX + optional + tensor("output", "y", "FP32", [2]))
    for level, settings in SETTINGS.items():
        graph = f"optimization {{ graph {{ level: {level} }} }}\n"
        put(f"level{level}", onnx_models.dense(), ONNX + "max_batch_size: 8\n" + graph + parameters(settings))


def write_onnx_layouts(repository: Repository) -> None:
    """One file under another name, and directories with external data."""
    dense = onnx_models.dense()
    onnx_models.save_with_external_data(dense, repository.model("external", None))
    renamed = repository.model("renamed", ONNX + 'default_model_filename: "other.dir"\n')
    onnx_models.save_with_external_data(onnx_models.dense(), renamed, "other.dir")
    file_name = repository.model("file_name", ONNX + 'default_model_filename: "net.onnx"\n')
    onnx_models.save(onnx_models.dense(), file_name, file="net.onnx")


def accelerator(name: str) -> str:
    return f'{ONNX}optimization {{ execution_accelerators {{ cpu_execution_accelerator {{ name: "{name}" }} }} }}'


# What does not load: the model, its configuration, what the error says.
BAD = {
    "bad_operator": (onnx_models.unknown_operator, None, "NoSuchOperator"),
    "bad_datatype": (
        onnx_models.scalar, ONNX + tensor("input", "x", "INT32", [1]) + tensor("output", "y", "FP32", [1]),
        "configuration expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32",
    ),
    "bad_name": (
        onnx_models.scalar, ONNX + tensor("input", "z", "FP32", [1]) + tensor("output", "y", "FP32", [1]),
        "unexpected inference input 'z', allowed inputs are: x",
    ),
    "bad_output": (
        onnx_models.scalar, ONNX + tensor("input", "x", "FP32", [1]) + tensor("output", "q", "FP32", [1]),
        "unexpected inference output 'q', allowed outputs are: y",
    ),
    "bad_count": (
        onnx_models.add_sub, ONNX + tensor("input", "a", "FP32", [-1, 4]) + tensor("output", "sum", "FP32", [-1, 4]),
        "configuration expects 1 inputs, model provides 2",
    ),
    "bad_dims": (
        onnx_models.dense, ONNX + tensor("input", "x", "FP32", [-1, 17]) + tensor("output", "logits", "FP32", [-1, 8]),
        "the model expects 2 dimensions (shape [-1,16]) but the model configuration specifies 2 dimensions "
        "(shape [-1,17])",
    ),
    "bad_batch": (
        lambda: onnx_models.add_sub(batch=2, width=3), ONNX + "max_batch_size: 4\n",
        "model does not support batching while non-zero max_batch_size is specified",
    ),
    "bad_accelerator": (onnx_models.dense, accelerator("warp"), "unknown Execution Accelerator 'warp' is requested"),
    "bad_parameter": (
        onnx_models.dense, ONNX + parameters({"intra_op_thread_count": "many"}),
        "failed to convert 'many' to integral number",
    ),
    "bad_threads": (
        onnx_models.dense, ONNX + parameters({"inter_op_thread_count": "1025"}),
        "1025 threads are asked for, at most 1024 are supported",
    ),
    "bad_file": (onnx_models.dense, ONNX + 'default_model_filename: "absent.onnx"', "absent.onnx"),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("backends") / "models")
    write_identity(made)
    write_onnx(made)
    write_onnx_layouts(made)
    for name, (build, config, _text) in BAD.items():
        onnx_models.save(build(), made.model(name, config))
    return made


@pytest.fixture(scope="module", params=["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def served(request: pytest.FixtureRequest, repository: Repository) -> Iterator[Server]:
    names = sorted(path.name for path in repository.path.iterdir() if not path.name.startswith("bad_"))
    options = {"model-control-mode": "explicit", "load-model": names}
    with KINDS[request.param](repository.path, options) as server:
        yield server


@pytest.fixture(scope="module", params=["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def sequences(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Repository(tmp_path_factory.mktemp("sequences") / "models")
    onnx_models.save(onnx_models.accumulator(), made.model("accumulator", SEQUENCE))
    with KINDS[request.param](made.path) as server:
        yield server


def ask(
    server: Server, protocol: str, model: str, inputs: dict[str, np.ndarray], datatypes: dict[str, str] | None = None,
    outputs: list[str] | None = None, **more: Any,
) -> dict[str, np.ndarray]:
    library = httpclient if protocol == "http" else grpcclient
    sent = []
    for name, array in inputs.items():
        datatype = (datatypes or {}).get(name) or next(k for k, v in arrays.NUMPY.items() if v == array.dtype.type)
        sent.append(library.InferInput(name, list(array.shape), datatype))
        sent[-1].set_data_from_numpy(array)
    wanted = [library.InferRequestedOutput(name) for name in outputs] if outputs else None
    address = server.http if protocol == "http" else server.grpc
    with library.InferenceServerClient(address) as client:
        result = client.infer(model, sent, outputs=wanted, **more)
    response = result.get_response()
    names = [o["name"] for o in response["outputs"]] if protocol == "http" else [o.name for o in response.outputs]
    return {name: result.as_numpy(name) for name in names}


def at_once(count: int, work: Any) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


PROTOCOLS = pytest.mark.parametrize("protocol", ["http", "grpc"])


# identity


@PROTOCOLS
def test_identity_copies_each_input_to_its_output(served: Server, protocol: str) -> None:
    inputs = {"INPUT1": np.array([[1, 2, 3], [4, 5, 6]], np.float32), "INPUT0": np.array([[7], [8]], np.float32)}
    found = ask(served, protocol, "copy_two", inputs)
    np.testing.assert_array_equal(found["OUTPUT0"], inputs["INPUT0"])
    np.testing.assert_array_equal(found["OUTPUT1"], inputs["INPUT1"])


@PROTOCOLS
def test_identity_gives_only_what_is_asked_for(served: Server, protocol: str) -> None:
    inputs = {"INPUT0": np.array([[1]], np.float32), "INPUT1": np.array([[2]], np.float32)}
    assert list(ask(served, protocol, "copy_two", inputs, outputs=["OUTPUT1"])) == ["OUTPUT1"]


@PROTOCOLS
@pytest.mark.parametrize("shape", [(0, 2, 3), (3, 2, 0), (1, 2, 1), (5, 2, 7)])
def test_identity_keeps_shapes_empty_ones_too(served: Server, protocol: str, shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    found = ask(served, protocol, "copy_cube", {"INPUT0": data})["OUTPUT0"]
    assert found.shape == shape
    np.testing.assert_array_equal(found, data)


@PROTOCOLS
def test_identity_copies_16_mib(served: Server, protocol: str) -> None:
    """Over HTTP the reference hands such a body to the backend in many pieces."""
    data = np.random.default_rng(1).standard_normal((1, 1 << 22)).astype(np.float32)
    found = ask(served, protocol, "copy_two", {"INPUT0": data, "INPUT1": data[:, :5]})
    np.testing.assert_array_equal(found["OUTPUT0"], data)
    np.testing.assert_array_equal(found["OUTPUT1"], data[:, :5])


def test_identity_pairs_by_place_where_names_say_nothing(served: Server) -> None:
    inputs = {"right": np.array([2.5]), "left": np.array([1, -1], np.int8)}
    found = ask(served, "grpc", "copy_by_place", inputs)
    np.testing.assert_array_equal(found["first"], inputs["left"])
    np.testing.assert_array_equal(found["second"], inputs["right"])


def test_identity_pairs_by_place_what_is_left_of_the_names(served: Server) -> None:
    found = ask(served, "grpc", "copy_by_both", {"A": np.array([1], np.int8), "INPUT7": np.array([7], np.int8)})
    assert {name: data.tolist() for name, data in found.items()} == {"OUTPUT7": [7], "B": [1]}


def test_identity_answers_a_missing_optional_input_with_zeros(served: Server) -> None:
    found = ask(served, "grpc", "copy_optional", {"INPUT0": np.array([[1, 2], [3, 4]], np.int32)})
    np.testing.assert_array_equal(found["OUTPUT0"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(found["OUTPUT1"], np.zeros((2, 3), np.float32))
    assert found["OUTPUT2"].tolist() == [[b"", b""], [b"", b""]]


def test_identity_batches_and_counts(served: Server) -> None:
    def one(index: int) -> None:
        data = np.full((1, 4), index, np.float32)
        np.testing.assert_array_equal(ask(served, "grpc", "copy_batch", {"INPUT0": data})["OUTPUT0"], data)

    at_once(16, one)
    found = served.statistics("copy_batch")
    assert found["inference_count"] == 16
    assert found["execution_count"] < 16
    assert found["inference_stats"]["success"]["count"] == 16
    assert sum(each["batch_size"] * each["compute_infer"]["count"] for each in found["batch_stats"]) == 16
    assert max(each["batch_size"] for each in found["batch_stats"]) > 1


def test_identity_batches_strings_of_every_length(served: Server) -> None:
    def one(index: int) -> None:
        data = np.array([[b"\0" * index, b"", b"x\0y"]], np.object_)
        assert ask(served, "grpc", "copy_strings", {"INPUT0": data})["OUTPUT0"].tolist() == data.tolist()

    at_once(8, one)
    assert served.statistics("copy_strings")["execution_count"] == 1


def test_identity_waits_as_told(served: Server) -> None:
    ask(served, "http", "copy_slow", {"INPUT0": np.array([1], np.float32)})
    found = served.statistics("copy_slow")["inference_stats"]
    assert found["compute_infer"]["count"] == found["success"]["count"] == 1
    assert found["compute_infer"]["ns"] >= 35_000_000


BAD_IDENTITY = {
    "bad_pair": "expected input and output datatype to match, got TYPE_FP32 and TYPE_INT32",
    "bad_pairs": "model configuration must have equal input/output pairs, it has 1 inputs for 2 outputs",
    "bad_delay": "parameter 'execute_delay_ms': failed to convert '5m' to integral number",
}


@pytest.mark.parametrize("model", BAD_IDENTITY)
def test_identity_refuses(served: Server, model: str) -> None:
    answer = rawhttp.post(served.http, f"/v2/repository/models/{model}/load", b"{}")
    assert answer.status == 400
    assert BAD_IDENTITY[model] in answer.json()["error"]


# ONNX Runtime: datatypes


@PROTOCOLS
@pytest.mark.parametrize("datatype", TYPES)
def test_onnx_datatype(served: Server, protocol: str, datatype: str) -> None:
    data = arrays.edges(datatype).reshape(2, 3)
    found = ask(served, protocol, f"type_{datatype.lower()}", {"x": data})["y"]
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data)


def test_onnx_bf16(served: Server) -> None:
    """X-17."""
    raw = bytes(range(12))
    request = rawgrpc.infer_request("type_bf16", [("x", "BF16", [2, 3], raw)])
    with rawgrpc.Channel(served.grpc) as channel:
        message = channel.call("ModelInfer", request).parse(pb.ModelInferResponse)
    assert (message.outputs[0].datatype, list(message.outputs[0].shape)) == ("BF16", [2, 3])
    assert message.raw_output_contents[0] == raw


@PROTOCOLS
def test_onnx_strings_keep_their_nul(served: Server, protocol: str) -> None:
    data = np.array([[b"a\0b", b"\0"], [b"", b"end\0\0"]], np.object_)
    assert ask(served, protocol, "strings", {"x": data})["y"].tolist() == data.tolist()


def test_onnx_strings_in_batches(served: Server) -> None:
    """Eight rows of six requests."""

    def one(index: int) -> None:
        data = np.array([[f"{index}\0{row}".encode() * index, b""] for row in range(2 if index in (2, 4) else 1)], np.object_)
        assert ask(served, "grpc", "strings_together", {"x": data})["y"].tolist() == data.tolist()

    at_once(6, one)
    counted = served.statistics("strings_together")
    assert (counted["inference_count"], counted["execution_count"]) == (8, 1)


# ONNX Runtime: shapes and batches


@PROTOCOLS
def test_onnx_several_inputs_and_outputs(served: Server, repository: Repository, protocol: str) -> None:
    """MC-22, PB-30, PB-42, PB-43, PB-171."""
    inputs = {"b": np.array([[1, 2, 3, 4]], np.float32), "a": np.array([[10, 20, 30, 40]], np.float32)}
    expected = onnx_models.answers(repository.path / "add_sub/1/model.onnx", inputs)
    found = ask(served, protocol, "add_sub", inputs)
    assert set(found) == {"sum", "difference"}
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert list(ask(served, protocol, "add_sub", inputs, outputs=["difference"])) == ["difference"]


@PROTOCOLS
@pytest.mark.parametrize(
    "model", ["dense", "dense_many", "external", "renamed", "file_name", "level-1", "level1", "level2"]
)
def test_onnx_answers_as_in_python(served: Server, repository: Repository, protocol: str, model: str) -> None:
    """MR-32, MR-35, MR-49, MR-57, MR-58, MR-59, PB-179; reads PB-58: Files, directories with
    external data, settings: the same numbers."""
    data = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    expected = onnx_models.answers(repository.path / "dense/1/model.onnx", {"x": data})
    found = ask(served, protocol, model, {"x": data})
    np.testing.assert_allclose(found["logits"], expected["logits"], atol=1e-5)


@pytest.mark.parametrize("model", ["dense", "dense_many"])
def test_onnx_gives_each_request_its_rows(served: Server, repository: Repository, model: str) -> None:
    rows = np.random.default_rng(5).standard_normal((24, 3, 16)).astype(np.float32)
    expected = onnx_models.answers(repository.path / "dense/1/model.onnx", {"x": rows.reshape(-1, 16)})["logits"]

    def one(index: int) -> None:
        mine = rows[index, : 1 + index % 3]
        found = ask(served, "grpc", model, {"x": mine})["logits"]
        np.testing.assert_allclose(found, expected.reshape(24, 3, 8)[index, : 1 + index % 3], atol=1e-5)

    at_once(24, one)
    counted = served.statistics(model)
    if model == "dense":
        assert counted["execution_count"] < counted["inference_stats"]["success"]["count"]


@PROTOCOLS
@pytest.mark.parametrize("values", [[0, 1, 0, 2, 3], [0, 0], [4]])
def test_onnx_shape_that_the_contents_decide(served: Server, protocol: str, values: list[int]) -> None:
    found = ask(served, protocol, "non_zero", {"x": np.array(values, np.int32)})["where"]
    expected = np.flatnonzero(values).reshape(1, -1)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@PROTOCOLS
def test_onnx_empty_tensor(served: Server, protocol: str) -> None:
    found = ask(served, protocol, "type_fp32", {"x": np.zeros((2, 0), np.float32)})["y"]
    assert found.shape == (2, 0)


@PROTOCOLS
def test_onnx_scalar(served: Server, protocol: str) -> None:
    found = ask(served, protocol, "scalar", {"x": np.array([21], np.float32)})["y"]
    assert found.tolist() == [42]


@PROTOCOLS
def test_onnx_batch_as_only_dimension(served: Server, protocol: str) -> None:
    """MC-32, MC-33, MC-63, MC-64, MC-65, MC-66, MC-67, PB-24, PB-34, PB-44."""
    found = ask(served, protocol, "one_per_row", {"x": np.array([[1], [2], [3]], np.float32)})["y"]
    assert found.tolist() == [[2], [4], [6]]


@PROTOCOLS
def test_onnx_16_mib(served: Server, protocol: str) -> None:
    data = np.random.default_rng(2).standard_normal((1, 1 << 22)).astype(np.float32)
    np.testing.assert_array_equal(ask(served, protocol, "type_fp32", {"x": data})["y"], data)


@PROTOCOLS
def test_onnx_optional_input(served: Server, protocol: str) -> None:
    x, offset = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    assert ask(served, protocol, "with_default", {"x": x})["y"].tolist() == [6, 7]
    assert ask(served, protocol, "with_default", {"x": x, "offset": offset})["y"].tolist() == [11, 22]


def test_onnx_output_that_is_not_as_declared(served: Server) -> None:
    """Runs that keep the declared shape make the backend rely on it; then come runs that do not."""
    for shape in ([4], [4], [2, 3], [6], [4]):
        x = np.arange(np.prod(shape), dtype=np.float32)
        found = ask(served, "http", "breaks_its_promise", {"x": x, "shape": np.array(shape, np.int64)})["y"]
        assert found.tolist() == x.reshape(shape).tolist()


def test_onnx_output_without_its_rows(served: Server) -> None:
    data = {"x": np.array([[1, 2], [3, 4]], np.float32)}
    with pytest.raises(grpcclient.InferenceServerException, match="expected batch size of 2 in model output, got 1"):
        ask(served, "grpc", "keeps_one_row", data)
    assert ask(served, "grpc", "keeps_one_row", {"x": data["x"][:1]})["y"].tolist() == [[1, 2]]


def test_onnx_error_while_running(served: Server) -> None:
    for _ in range(2):
        with pytest.raises(grpcclient.InferenceServerException, match="onnx runtime error .*out of data bounds"):
            ask(served, "grpc", "gather", {"index": np.array([[7]], np.int64)})
        assert ask(served, "grpc", "gather", {"index": np.array([[3], [1]], np.int64)})["y"].tolist() == [[30], [10]]
    counted = served.statistics("gather")["inference_stats"]
    assert (counted["fail"]["count"], counted["success"]["count"]) == (2, 2)


def test_onnx_keeps_the_state_of_sequences(sequences: Server) -> None:
    def one(index: int) -> None:
        total = 0.0
        for step in range(1, 5):
            total += index * step
            found = ask(
                sequences, "grpc", "accumulator", {"x": np.array([[index * step]], np.float32)},
                sequence_id=index + 1, sequence_start=step == 1, sequence_end=step == 4,
            )
            assert found["total"].tolist() == [[total]]

    at_once(2, one)


# ONNX Runtime: what the configuration becomes, and what does not load


def tensors(config: dict[str, Any], key: str) -> list[tuple[str, str, list[int], Any]]:
    return [
        (t["name"], t["data_type"], [int(d) for d in t["dims"]], t.get("reshape")) for t in config[key]
    ]


@pytest.mark.parametrize(
    ("model", "max_batch_size", "inputs", "outputs"),
    [
        ("add_sub", 4, [("a", "TYPE_FP32", [4], None), ("b", "TYPE_FP32", [4], None)],
         [("sum", "TYPE_FP32", [4], None), ("difference", "TYPE_FP32", [4], None)]),
        ("fixed", 0, [("a", "TYPE_FP32", [2, 3], None), ("b", "TYPE_FP32", [2, 3], None)],
         [("sum", "TYPE_FP32", [2, 3], None), ("difference", "TYPE_FP32", [2, 3], None)]),
        ("non_zero", 0, [("x", "TYPE_INT32", [-1], None)], [("where", "TYPE_INT64", [1, -1], None)]),
        ("scalar", 0, [("x", "TYPE_FP32", [1], None)], [("y", "TYPE_FP32", [1], None)]),
        ("one_per_row", 4, [("x", "TYPE_FP32", [1], {"shape": []})], [("y", "TYPE_FP32", [1], {"shape": []})]),
        ("type_bytes", 4, [("x", "TYPE_STRING", [-1], None)], [("y", "TYPE_STRING", [-1], None)]),
        ("type_bf16", 4, [("x", "TYPE_BF16", [-1], None)], [("y", "TYPE_BF16", [-1], None)]),
        ("dense", 16, [("x", "TYPE_FP32", [16], None)], [("logits", "TYPE_FP32", [8], None)]),
    ],
)
def test_onnx_configuration_is_filled_in(
    served: Server, model: str, max_batch_size: int, inputs: list[Any], outputs: list[Any]
) -> None:
    """MC-36, MC-39, MC-40: required settings from the file, batching only with variable first dimensions."""
    with httpclient.InferenceServerClient(served.http) as client:
        config = client.get_model_config(model)
    assert config["name"] == model
    assert config["backend"] == "onnxruntime"
    assert config["max_batch_size"] == max_batch_size
    assert tensors(config, "input") == inputs
    assert tensors(config, "output") == outputs
    assert ("dynamic_batching" in config) == (max_batch_size > 1)


def test_onnx_default_max_batch_size_is_a_setting(repository: Repository, served: Server) -> None:
    options = {"model-control-mode": "explicit", "load-model": "add_sub",
               "backend-config": ["onnxruntime,default-max-batch-size=7", "onnxruntime,enable-global-threadpool=1",
                                  "onnxruntime,intra_op_thread_count=2"]}
    with type(served)(repository.path, options) as server:
        with httpclient.InferenceServerClient(server.http) as client:
            assert client.get_model_config("add_sub")["max_batch_size"] == 7
        inputs = {name: np.ones((7, 4), np.float32) for name in "ab"}
        assert ask(server, "grpc", "add_sub", inputs)["sum"].tolist() == [[2] * 4] * 7


@pytest.mark.parametrize("name", BAD)
def test_onnx_refuses_and_says_why(served: Server, name: str) -> None:
    """MR-50, MC-12, MC-14, MC-17, MC-21, PB-62, PB-65: names, datatypes and shapes are checked against the file when the model loads."""
    answer = rawhttp.post(served.http, f"/v2/repository/models/{name}/load", b"{}")
    assert answer.status == 400
    assert BAD[name][2] in answer.json()["error"]
