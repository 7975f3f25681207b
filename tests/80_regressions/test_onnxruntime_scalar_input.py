"""Rows of a batch that had other values for an input that is a scalar in the model were all computed with the first one's; later, requests
that came together with other values were refused."""

import json
import re
from pathlib import Path

import pytest
from harness import rawhttp, together
from harness.repository import Repository
from harness.servers import Nereid
from models import onnx_models
from onnx import helper

pytestmark = pytest.mark.onnx
CONFIG = """backend: "onnxruntime"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "s" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
MUL = onnx_models.model([helper.make_node("Mul", ["x", "s"], ["y"])], [("x", "FP32", ["n", 2]), ("s", "FP32", [])], [("y", "FP32", ["n", 2])])
EXPAND = onnx_models.model(
    [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Expand", ["s", "shape"], ["y"])],
    [("x", "FP32", ["n", 2]), ("s", "BYTES", [])], [("y", "BYTES", ["n", 2])],
)


def _ask(server: Nereid, scalars: list[float]) -> rawhttp.Answer:
    rows = len(scalars)
    inputs = [
        {"name": "x", "datatype": "FP32", "shape": [rows, 2], "data": [1, 2] * rows},
        {"name": "s", "datatype": "FP32", "shape": [rows, 1], "data": scalars},
    ]
    return rawhttp.post(server.http, "/v2/models/m/infer", {"inputs": inputs})


def test_a_batch_has_one_value(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    onnx_models.save(MUL, repository.model("m", CONFIG))
    with Nereid(repository.path) as server:
        assert _ask(server, [3]).json()["outputs"][0]["data"] == [3, 6]
        assert _ask(server, [5, 5, 5]).json()["outputs"][0]["data"] == [5, 10] * 3
        answer = _ask(server, [3, 5])
        assert answer.status == 400 and "input 's' is one value in the model" in answer.json()["error"]
        answer = _ask(server, [3, 3, 5])
        assert answer.status == 400, answer.body


@pytest.mark.parametrize("datatype", ["FP32", "BYTES"])
def test_requests_that_come_together_have_their_own(tmp_path: Path, datatype: str) -> None:
    """A batch waits until it has 8 rows; a request that disagrees with itself fails alone."""
    repository = Repository(tmp_path / "models")
    model = MUL if datatype == "FP32" else EXPAND
    text = CONFIG.replace("4", "8", 1) + "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 600000000 }\n"
    text = text if datatype == "FP32" else re.sub('("[sy]" data_type: TYPE_)FP32', r"\1STRING", text)
    onnx_models.save(model, repository.model("m", text))
    scalars = [["3"], ["5"], ["3"], ["7"], ["5", "5"], ["6", "9"]]
    bodies = []
    for each in scalars:
        values = [float(value) for value in each] if datatype == "FP32" else each
        x = {"name": "x", "datatype": "FP32", "shape": [len(each), 2], "data": [1, 1] * len(each)}
        s = {"name": "s", "datatype": datatype, "shape": [len(each), 1], "data": values}
        bodies.append(json.dumps({"inputs": [x, s]}).encode())
    with Nereid(repository.path) as server:
        answers = together.ask(server, "/v2/models/m/infer", bodies)
        assert answers[-1].status == 400 and "input 's' is one value in the model" in answers[-1].json()["error"]
        for answer, each in zip(answers[:-1], scalars, strict=False):
            expected = [[value] * 2 for value in each]
            assert answer.json()["outputs"][0]["data"] == [float(v) if datatype == "FP32" else v for row in expected for v in row]
        counted = server.statistics("m")
        assert counted["execution_count"] == 3
