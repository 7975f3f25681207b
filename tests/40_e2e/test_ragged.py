"""Requests of different shapes share a batch: ragged inputs, inputs computed from the batch, outputs divided by an input's shape."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import metrics, rawhttp, together
from harness.repository import Repository, config_type
from harness.servers import KINDS, Nereid, Server
from models import onnx_models
from onnx import helper

pytestmark = pytest.mark.onnx

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
DELAY = "dynamic_batching { max_queue_delay_microseconds: 30000000 preferred_batch_size: [ 4 ] }\n"


def ragged_model(datatype: str) -> Any:
    """Doubles x, and shows what it was told about the batch, a row a request."""
    node = helper.make_node
    nodes = [
        node("Add", ["x", "x"], ["y"]),
        node("Unsqueeze", ["count", "one"], ["y_count"]),
        node("Unsqueeze", ["sum", "one"], ["y_sum"]),
        node("Slice", ["from_zero", "zero", "minus"], ["before"]),
        node("Unsqueeze", ["before", "one"], ["y_before"]),
        node("Shape", ["longest"], ["length"]),
        node("Shape", ["count"], ["requests"]),
        node("Expand", ["length", "requests"], ["lengths"]),
        node("Unsqueeze", ["lengths", "one"], ["y_longest"]),
        node("Identity", ["shape"], ["y_shape"]),
        node("Shape", ["shape"], ["table"]),
        node("Reshape", ["flat", "table"], ["y_flat"]),
    ]
    constants = {"zero": np.array([0]), "one": np.array([1]), "minus": np.array([-1])}
    inputs = [("x", "FP32", ["t"]), ("count", datatype, ["n"]), ("sum", datatype, ["n"]), ("from_zero", datatype, ["m"])]
    inputs += [("longest", datatype, ["k"]), ("shape", datatype, ["r", "d"]), ("flat", datatype, ["f"])]
    rows = [("y_count", datatype, ["n", 1]), ("y_sum", datatype, ["n", 1]), ("y_before", datatype, ["n", 1])]
    rows += [("y_longest", "INT64", ["n", 1]), ("y_shape", datatype, ["n", "e"]), ("y_flat", datatype, ["n", "g"])]
    return onnx_models.model(nodes, inputs, [("y", "FP32", ["t"]), *rows], constants)


def ragged_config(datatype: str) -> str:
    kinds = {
        "count": "BATCH_ELEMENT_COUNT", "sum": "BATCH_ACCUMULATED_ELEMENT_COUNT",
        "from_zero": "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "longest": "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
        "shape": "BATCH_ITEM_SHAPE", "flat": "BATCH_ITEM_SHAPE_FLATTEN",
    }  # fmt: skip
    text = 'platform: "onnxruntime_onnx"\nmax_batch_size: 16\ninstance_group { count: 1 kind: KIND_CPU }\n' + DELAY
    text += 'input { name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] allow_ragged_batch: true }\n'
    for name, kind in kinds.items():
        text += f'batch_input {{ kind: {kind} target_name: "{name}" data_type: TYPE_{datatype} source_input: "x" }}\n'
    text += 'output { name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] }\n'
    text += 'batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }\n'
    for name, dims in (("y_count", 1), ("y_sum", 1), ("y_before", 1), ("y_shape", -1), ("y_flat", -1)):
        text += f'output {{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ] }}\n'
    return text + 'output { name: "y_longest" data_type: TYPE_INT64 dims: [ 1 ] }\n'


def ask(server: Server, model: str, x: np.ndarray) -> dict[str, np.ndarray]:
    with httpclient.InferenceServerClient(server.http) as client:
        tensor = httpclient.InferInput("x", list(x.shape), "FP32")
        tensor.set_data_from_numpy(x)
        got = client.infer(model, [tensor])
        return {output["name"]: got.as_numpy(output["name"]) for output in got.get_response()["outputs"]}


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("datatype", ["INT32", "FP32"])
def test_all_kinds(name: str, datatype: str, tmp_path: Path) -> None:
    """MC-110, PB-39, PB-94; reads PB-40: one execution for four requests of different shapes, each gets its own part."""
    repository = Repository(tmp_path / "models")
    onnx_models.save(ragged_model(datatype), repository.model("ragged", ragged_config(datatype)))
    shapes = [(2, 3), (1, 5), (4, 1), (3, 3)]
    data = [np.arange(a * b, dtype=np.float32).reshape(1, a, b) + 100 * a for a, b in shapes]
    with KINDS[name](repository.path) as server:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda x: ask(server, "ragged", x), data))
        for x, got in zip(data, answers, strict=True):
            np.testing.assert_array_equal(got["y"], x + x)
            assert got["y"].shape == x.shape
            assert got["y_count"].item() == x.size
            assert got["y_sum"].item() - got["y_before"].item() == x.size
            assert got["y_longest"].item() == 9
            assert got["y_shape"].tolist() == got["y_flat"].tolist() == [list(x.shape[1:])]
        assert sorted(got["y_before"].item() for got in answers)[0] == 0
        assert max(got["y_sum"].item() for got in answers) == sum(x.size for x in data)
        stats = server.statistics("ragged")
        assert (stats["inference_count"], stats["execution_count"]) == (4, 1)


@pytest.mark.parametrize("name", BOTH)
def test_without_leave_shapes_are_kept_apart(name: str, tmp_path: Path) -> None:
    """PB-38: requests of different shapes do not share a batch unless the input may be ragged."""
    repository = Repository(tmp_path / "models")
    delay = "dynamic_batching { max_queue_delay_microseconds: 3600000000 preferred_batch_size: [ 2 ] }\n"
    repository.identity("apart", dims=(-1,), max_batch_size=4, extra="instance_group { count: 1 kind: KIND_CPU }\n" + delay)
    with KINDS[name](repository.path) as server, ThreadPoolExecutor(3) as pool:
        def one(length: int) -> None:
            with httpclient.InferenceServerClient(server.http) as client:
                tensor = httpclient.InferInput("INPUT0", [1, length], "FP32")
                tensor.set_data_from_numpy(np.ones((1, length), np.float32))
                assert client.infer("apart", [tensor]).as_numpy("OUTPUT0").shape == (1, length)

        def waiting() -> float:
            return metrics.scrape(server.metrics)["nv_inference_pending_request_count"].value(model="apart")

        first = pool.submit(one, 2)
        server.process.wait_for(waiting, 1)
        second = pool.submit(one, 3)
        first.result(60)  # alone, since the second does not fit it; which waits for one like itself
        server.process.wait_for(waiting, 1)
        assert not second.done()
        pool.submit(one, 3).result(60)
        second.result(60)
        stats = server.statistics("apart")
        assert (stats["inference_count"], stats["execution_count"]) == (3, 2)


def reason(server: Server, model: str) -> str:
    rows = rawhttp.post(server.http, "/v2/repository/index", b"").json()
    return next(row.get("reason", "") for row in rows if row["name"] == model)


def test_what_does_not_fit_the_model_is_refused(tmp_path: Path) -> None:
    """A ragged input is one row for the model; computed inputs have the model's names and types."""
    repository = Repository(tmp_path / "models")
    good = ragged_config("INT32")
    for name, text in {
        "type": good.replace("data_type: TYPE_INT32 source_input", "data_type: TYPE_FP32 source_input", 1),
        "target": good.replace('target_name: "count"', 'target_name: "nothing"'),
        "missing": good.replace(good[good.index("batch_input") : good.index("batch_input", good.index("batch_input") + 1)], ""),
    }.items():
        onnx_models.save(ragged_model("INT32"), repository.model(name, text))
    two = 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\ninput { name: "a" data_type: TYPE_FP32 dims: 4 allow_ragged_batch: true }\ninput { name: "b" data_type: TYPE_FP32 dims: 4 }\n'
    two += 'output { name: "sum" data_type: TYPE_FP32 dims: 4 }\noutput { name: "difference" data_type: TYPE_FP32 dims: 4 }\n'
    onnx_models.save(onnx_models.add_sub(), repository.model("rank", two))
    deep = good.replace('"y" data_type: TYPE_FP32 dims: [ -1, -1 ]', f'"y" data_type: TYPE_FP32 dims: {[1] * 32}')
    onnx_models.save(ragged_model("INT32"), repository.model("deep", deep))
    with Nereid(repository.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        assert "expects datatype TYPE_FP32 for batch input 'count', model provides TYPE_INT32" in reason(server, "type")
        assert "'nothing', which is no input of the model" in reason(server, "target")
        assert "configuration expects 6 inputs, model provides 7" in reason(server, "missing")
        assert "with shape [-1] for ragged input 'a'" in reason(server, "rank")
        assert "tensor 'y': at most 32 dimensions are supported" in reason(server, "deep")


def test_a_shape_that_no_batch_input_can_tell_of(tmp_path: Path) -> None:
    """An empty tensor may have any other dimension: as many rows as there are cannot be written down."""
    repository = Repository(tmp_path / "models")
    flattened = onnx_models.model(
        [helper.make_node("Identity", ["flat"], ["y"]), helper.make_node("Identity", ["x"], ["z"])],
        [("x", "FP32", list("abcdefghi")), ("flat", "INT32", ["k"])], [("y", "INT32", ["k"]), ("z", "FP32", list("abcdefghi"))],
    )
    text = f'platform: "onnxruntime_onnx"\ninput {{ name: "x" data_type: TYPE_FP32 dims: {[-1] * 9} }}\n'
    text += 'output { name: "y" data_type: TYPE_INT32 dims: [ -1 ] }\n'
    text += 'batch_input { kind: BATCH_ITEM_SHAPE_FLATTEN target_name: "flat" data_type: TYPE_INT32 source_input: "x" }\n'
    onnx_models.save(flattened, repository.model("flat", text))
    with Nereid(repository.path) as server:
        request = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1 << 60, *[0] * 8], "data": []}]}
        answer = rawhttp.post(server.http, "/v2/models/flat/infer", json.dumps(request).encode())
        assert answer.status == 400
        assert "the shape of input 'x' is too large" in answer.json()["error"]
        assert ask(server, "flat", np.empty((2, *[0] * 8), np.float32))["y"].tolist() == [0] * 16


@pytest.mark.parametrize(("node", "found"), [(helper.make_node("Concat", ["x", "x"], ["y"], axis=0), 10), (helper.make_node("Slice", ["x", "zero", "two"], ["y"]), 2)])
@pytest.mark.parametrize("datatype", ["FP32", "BYTES"])
def test_a_divided_output_that_does_not_add_up(tmp_path: Path, datatype: str, node: Any, found: int) -> None:
    """Whose elements are too many or too few nobody knows: no request of the batch gets another's."""
    repository = Repository(tmp_path / "models")
    of = config_type(datatype)
    text = 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n' + DELAY.replace("[ 4 ]", "[ 2 ]")
    text += f'input {{ name: "x" data_type: {of} dims: [ -1 ] allow_ragged_batch: true }}\noutput {{ name: "y" data_type: {of} dims: [ -1 ] }}\n'
    text += 'batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }\n'
    constants = {"zero": np.array([0]), "two": np.array([2])}
    onnx_models.save(onnx_models.model([node], [("x", datatype, ["n"])], [("y", datatype, ["m"])], constants), repository.model("x", text))
    value = "a" if datatype == "BYTES" else 1
    bodies = [json.dumps({"inputs": [{"name": "x", "datatype": datatype, "shape": [1, n], "data": [value] * n}]}).encode() for n in (2, 3)]
    with Nereid(repository.path) as server:
        said = together.ask(server, "/v2/models/x/infer", bodies)
    assert [each.status for each in said] == [500] * 2, said[0].body
    expected = f"output 'y' has {found} elements, the shapes of input 'x' ask for 5"
    assert [each.json()["error"] for each in said] == [expected] * 2
