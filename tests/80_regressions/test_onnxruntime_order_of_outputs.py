"""Outputs came in another order from the second request on where one of them has a shape that only its contents decide."""

from pathlib import Path

import onnx
import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import KINDS
from models import onnx_models
from onnx import helper

pytestmark = pytest.mark.onnx
NAMES = ["first", "where", "last"]


def _model() -> onnx.ModelProto:
    return onnx_models.model(
        [
            helper.make_node("Identity", ["x"], ["first"]),
            helper.make_node("NonZero", ["x"], ["where"]),
            helper.make_node("Add", ["x", "x"], ["last"]),
        ],
        [("x", "INT32", [3])],
        [("first", "INT32", [3]), ("where", "INT64", [1, "k"]), ("last", "INT32", [3])],
    )


@pytest.mark.parametrize("kind", ["nereid", pytest.param("reference", marks=pytest.mark.reference)])
@pytest.mark.parametrize("asked", [[], ["last", "where"], ["first", "last"]], ids=["all", "some", "known shapes"])
def test_the_same_order_each_time(tmp_path: Path, kind: str, asked: list[str]) -> None:
    repository = Repository(tmp_path / "models")
    onnx_models.save(_model(), repository.model("m", 'platform: "onnxruntime_onnx"\n'))
    body = {"inputs": [{"name": "x", "datatype": "INT32", "shape": [3], "data": [5, 0, 7]}]}
    if asked:
        body["outputs"] = [{"name": name} for name in asked]
    data = {"first": [5, 0, 7], "where": [0, 2], "last": [10, 0, 14]}
    wanted = [(name, data[name]) for name in NAMES if not asked or name in asked]
    with KINDS[kind](repository.path) as server:
        for _ in range(4):
            answer = rawhttp.post(server.http, "/v2/models/m/infer", body).json()
            assert [(o["name"], o["data"]) for o in answer["outputs"]] == wanted
