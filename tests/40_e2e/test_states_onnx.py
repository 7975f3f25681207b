"""Implicit state of sequences with ONNX models, the same backend in both servers."""

import re
import subprocess
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from conftest import BOTH
from harness import arrays, paths, rawhttp
from harness.repository import Repository, config_type
from harness.servers import KINDS, Nereid, Server
from models import onnx_models

pytestmark = pytest.mark.onnx

TOGETHER = "direct { max_queue_delay_microseconds: 20000000 minimum_slot_utilization: 1 }"


def config(
    datatype: str, dims: str, output: str, state: tuple[str, str], batch: int = 0, strategy: str = "",
    initial: str | None = "zero_data: true", more: str = "", warm: str = "",
) -> str:
    type = config_type(datatype)
    begin = dims.replace("-1", "1")
    begin = f'initial_state {{ name: "begin" data_type: {type} dims: [ {begin} ] {initial} }}' if initial else ""
    return f"""
backend: "onnxruntime"
max_batch_size: {batch}
input {{ name: "x" data_type: {type} dims: [ {dims} ] }}
output {{ name: "{output}" data_type: {type} dims: [ {dims} ] }}
instance_group {{ count: 1 kind: KIND_CPU }}
sequence_batching {{
  max_sequence_idle_microseconds: 60000000
  {strategy}
  state {{ input_name: "{state[0]}" output_name: "{state[1]}" data_type: {type} dims: [ {dims} ] {begin} {more} }}
}}
{warm}
"""


SUM = ("total_in", "total")
KEPT = ("kept_in", "kept_out")
SUMMED = ("INT32", "INT64", "FP32", "FP64", "UINT32")
IN_PLACE = "use_same_buffer_for_input_output: true"


def write(models: Repository) -> None:
    def put(name: str, built: object, text: str) -> Path:
        folder = models.model(name, text)
        onnx_models.save(built, folder)  # type: ignore[arg-type]
        return folder

    for datatype in SUMMED:
        put(f"sum_{datatype}", onnx_models.sums(datatype, [2, 3]), config(datatype, "2, 3", "total", SUM))
    many = onnx_models.sums("FP32", ["n", 4])
    put("sum_batched", many, config("FP32", "4", "total", SUM, batch=4))
    put("sum_together", many, config("FP32", "4", "total", SUM, batch=2, strategy=TOGETHER))
    oldest = "oldest { max_candidate_sequences: 8 max_queue_delay_microseconds: 1000 }"
    put("sum_oldest", many, config("FP32", "4", "total", SUM, batch=4, strategy=oldest))
    put("sum_in_place", many, config("FP32", "4", "total", SUM, batch=4, more=IN_PLACE))
    folder = put("sum_from_file", many, config("FP32", "4", "total", SUM, batch=4, initial='data_file: "begin"'))
    (folder / "initial_state").mkdir()
    (folder / "initial_state" / "begin").write_bytes(np.array([1, 2, 3, 4], np.float32).tobytes())
    for datatype in arrays.NUMPY:
        put(f"keep_{datatype}", onnx_models.remembers(datatype, [6]), config(datatype, "6", "former", KEPT))
    strings = onnx_models.remembers("BYTES", ["n", 2])
    put("keep_strings_batched", strings, config("BYTES", "2", "former", KEPT, batch=2, strategy=TOGETHER))
    put("collect", onnx_models.collects(), config("FP32", "-1", "all", KEPT, batch=2))


@pytest.fixture(scope="module", params=BOTH)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    models = Repository(tmp_path_factory.mktemp("states") / "models")
    write(models)
    with KINDS[request.param](models.path) as server:
        yield server


def ask(server: Server, model: str, x: np.ndarray, datatype: str, id: int, start: bool, end: bool) -> np.ndarray:
    """The one output of the model."""
    tensor = grpcclient.InferInput("x", list(x.shape), datatype)
    tensor.set_data_from_numpy(x)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        result = client.infer(model, [tensor], sequence_id=id, sequence_start=start, sequence_end=end)
    name = result.get_response().outputs[0].name
    found: np.ndarray = result.as_numpy(name)
    return found


def whole(server: Server, model: str, steps: list[np.ndarray], datatype: str = "FP32", id: int = 1) -> list[np.ndarray]:
    last = len(steps) - 1
    return [ask(server, model, x, datatype, id, step == 0, step == last) for step, x in enumerate(steps)]


@pytest.mark.parametrize("datatype", SUMMED)
def test_sums(served: Server, datatype: str) -> None:
    """The state is an output of the configuration, too: the client gets it."""
    steps = [np.arange(6, dtype=arrays.NUMPY[datatype]).reshape(2, 3) + step for step in range(5)]
    for _ in range(2):
        for found, expected in zip(whole(served, f"sum_{datatype}", steps, datatype), np.cumsum(steps, 0), strict=True):
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("datatype", sorted(arrays.NUMPY))
def test_values_of_every_type_are_kept_as_they_are(served: Server, datatype: str) -> None:
    edges = arrays.edges(datatype)
    begun, kept = whole(served, f"keep_{datatype}", [edges, edges], datatype)
    assert begun.tolist() == ([b""] * 6 if datatype == "BYTES" else np.zeros(6, edges.dtype).tolist())
    assert kept.tobytes() == edges.tobytes() if datatype != "BYTES" else kept.tolist() == edges.tolist()


@pytest.mark.parametrize("model", ["sum_batched", "sum_oldest", "sum_in_place"])
def test_many_sequences_at_once(served: Server, model: str) -> None:
    """Batches of any of them, gaps in between."""

    def one(id: int) -> None:
        steps = [np.full((1, 4), id * (step + 1), np.float32) for step in range(10)]
        for found, expected in zip(whole(served, model, steps, id=id), np.cumsum(steps, 0), strict=True):
            assert np.array_equal(found, expected)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(1, 9)))


def pair(server: Server, model: str, xs: list[np.ndarray], datatype: str, start: bool, end: bool) -> list[np.ndarray]:
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, server, model, x, datatype, id, start, end) for id, x in enumerate(xs, 1)]
        return [each.result() for each in asked]


def batches(server: Server, model: str) -> set[int]:
    stats = server.statistics(model)
    return {row["batch_size"] for row in stats["batch_stats"]}


def test_rows_of_a_batch(served: Server) -> None:
    xs = [np.full((1, 4), 1, np.float32), np.full((1, 4), 100, np.float32)]
    for step in range(4):
        found = pair(served, "sum_together", xs, "FP32", step == 0, step == 3)
        assert [each.tolist() for each in found] == [[[step + 1.0] * 4], [[100.0 * (step + 1)] * 4]]
    assert batches(served, "sum_together") == {2}


def test_rows_of_strings(served: Server) -> None:
    def words(*each: str) -> np.ndarray:
        return np.array([[word.encode() for word in each]], dtype=np.object_)

    first = [words("a", "bb"), words("ccc", "")]
    second = [words("later", "x"), words("y", "z")]
    assert [f.tolist() for f in pair(served, "keep_strings_batched", first, "BYTES", True, False)] == [[[b"", b""]]] * 2
    found = pair(served, "keep_strings_batched", second, "BYTES", False, True)
    assert [each.tolist() for each in found] == [each.tolist() for each in first]
    assert batches(served, "keep_strings_batched") == {2}


def test_begins_with_a_file(served: Server) -> None:
    steps = [np.ones((1, 4), np.float32)] * 2
    for _ in range(2):
        assert [found.tolist() for found in whole(served, "sum_from_file", steps)] == [[[2, 3, 4, 5]], [[3, 4, 5, 6]]]


def test_a_state_that_grows(served: Server) -> None:
    steps = [np.array([[step] * step], np.float32) for step in (1, 2, 3)]
    found = [each.tolist() for each in whole(served, "collect", steps)]
    assert found == [[[0, 1]], [[0, 1, 2, 2]], [[0, 1, 2, 2, 3, 3, 3]]]


def test_sequences_whose_states_differ_in_shape(tmp_path: Path) -> None:
    """They never share a batch, so that no request fails; in the reference some do."""
    models = Repository(tmp_path / "models")
    folder = models.model("collect", config("FP32", "-1", "all", KEPT, batch=4))
    onnx_models.save(onnx_models.collects(), folder)

    def one(id: int) -> None:
        x = np.full((1, 1), id, np.float32)
        for step, found in enumerate(whole(server, "collect", [x] * (id + 4), id=id), 1):
            assert found.tolist() == [[0] + [id] * step]

    with Nereid(models.path) as server, ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(1, 9)))


def test_warm_up_has_the_initial_state(tmp_path: Path) -> None:
    """What a sample does not bring is as a sequence begins; nothing of it is kept."""
    models = Repository(tmp_path / "models")
    sample = (
        'model_warmup { name: "one" batch_size: 2 inputs { key: "x" '
        "value { data_type: TYPE_FP32 dims: [ 4 ] random_data: true } } }"
    )
    folder = models.model("sum", config("FP32", "4", "total", SUM, batch=2, warm=sample, more=IN_PLACE))
    onnx_models.save(onnx_models.sums("FP32", ["n", 4]), folder)
    with Nereid(models.path) as server:
        found = whole(server, "sum", [np.ones((1, 4), np.float32)] * 2)
    assert [each.tolist() for each in found] == [[[1] * 4], [[2] * 4]]


def test_the_page(tmp_path: Path) -> None:
    """The model of docs/user/sequences.md, and the commands that ask it."""
    page = (paths.ROOT / "docs" / "user" / "sequences.md").read_text()
    blocks = [textwrap.dedent(block) for block in re.findall(r"(?:^ {4}.*\n)+", page, re.MULTILINE)]
    (text,) = (block for block in blocks if block.startswith('name: "total"'))
    (commands,) = (block for block in blocks if "models/total/infer" in block)
    models = Repository(tmp_path / "models")
    onnx_models.save(onnx_models.sums("FP32", ["n", 4]), models.model("total", text))
    with Nereid(models.path) as server:
        script = commands.replace("localhost:8000", server.http)
        printed = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True).stdout
    answers = re.findall(r'"data":\[([^\]]*)\]', printed)
    assert [[float(number) for number in each.split(",")] for each in answers] == [[1, 2, 3, 4], [2, 3, 4, 5]]


WRONG = {
    "input_name": (("nothing", "total"), "FP32", "unexpected inference input 'nothing', allowed inputs are: "),
    "output_name": (("total_in", "nothing"), "FP32", "unexpected inference output 'nothing', allowed outputs are: total"),
}


@pytest.mark.parametrize("case", WRONG)
def test_states_that_the_model_does_not_have(case: str, tmp_path: Path) -> None:
    names, datatype, message = WRONG[case]
    models = Repository(tmp_path / "models")
    folder = models.model("wrong", config(datatype, "4", "total", names, batch=2))
    onnx_models.save(onnx_models.sums("FP32", ["n", 4]), folder)
    with Nereid(models.path, {"model-control-mode": "explicit"}) as server:
        answer = rawhttp.post(server.http, "/v2/repository/models/wrong/load", {})
        assert answer.status == 400 and message in answer.json()["error"]
