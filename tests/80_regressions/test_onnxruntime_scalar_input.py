"""Rows of a batch that had other values for an input that is a scalar in the model were all computed with the first one's."""

from pathlib import Path

import pytest
from harness import rawhttp
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


def _ask(server: Nereid, scalars: list[float]) -> rawhttp.Answer:
    rows = len(scalars)
    inputs = [
        {"name": "x", "datatype": "FP32", "shape": [rows, 2], "data": [1, 2] * rows},
        {"name": "s", "datatype": "FP32", "shape": [rows, 1], "data": scalars},
    ]
    return rawhttp.post(server.http, "/v2/models/m/infer", {"inputs": inputs})


def test_a_batch_has_one_value(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    made = onnx_models.model([helper.make_node("Mul", ["x", "s"], ["y"])], [("x", "FP32", ["n", 2]), ("s", "FP32", [])], [("y", "FP32", ["n", 2])])
    onnx_models.save(made, repository.model("m", CONFIG))
    with Nereid(repository.path) as server:
        assert _ask(server, [3]).json()["outputs"][0]["data"] == [3, 6]
        assert _ask(server, [5, 5, 5]).json()["outputs"][0]["data"] == [5, 10] * 3
        answer = _ask(server, [3, 5])
        assert answer.status == 400 and "input 's' is a scalar in the model" in answer.json()["error"]
        answer = _ask(server, [3, 3, 5])
        assert answer.status == 400, answer.body
