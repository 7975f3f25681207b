"""Operators of an author's own, out of a library in the model's directory, at work: model_operations in the configuration."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from harness import paths
from harness.repository import Repository
from harness.servers import Nereid, Server
from models import onnx_models
from onnx import helper

import tensorflow_files as files
from clients import PROTOCOLS, ask, load, tensor, unload

HERE = Path(__file__).parent
LIBRARY = 'model_operations { op_library_filename: "ops/libtriple.so" }\n'
IO = tensor("input", "x", "FP32", [-1]) + tensor("output", "y", "FP32", [-1])
CONFIGS = {"onnx": 'backend: "onnxruntime"\n', "tensorflow": 'platform: "tensorflow_graphdef"\n'}


def build(model: Path, source: str, *more: str) -> None:
    library = model / "ops" / "libtriple.so"
    library.parent.mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", str(HERE / source), "-o", str(library), *more], check=True)


def onnx_model() -> onnx.ModelProto:
    value = {name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in ("x", "y")}
    node = helper.make_node("TripleAndOne", ["x"], ["y"], domain="nereid.test")
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("nereid.test", 1)]
    return helper.make_model(helper.make_graph([node], "triple", [value["x"]], [value["y"]]), opset_imports=opsets, ir_version=8)


def write(made: Repository, name: str, kind: str, more: str) -> Path:
    model = made.model(name, CONFIGS[kind] + IO + more)
    if kind == "onnx":
        onnx_models.save(onnx_model(), model)
        return model
    graph = files.Graph()
    graph.add("y", "TripleAndOne", [graph.input("x", "FP32", [-1])])
    files.save_graph(graph, model)
    return model


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Repository(tmp_path_factory.mktemp("operators"))
    header = next((paths.ROOT / "build" / "deps" / "usr" / "include").rglob("onnxruntime_c_api.h"), None)
    build(write(made, "onnx", "onnx", LIBRARY), "onnx_operators.c", *([f"-I{header.parent}"] if header else []))
    runtime = paths.need(paths.RELEASE / "backends" / "tensorflow" / "libtensorflow_framework.so.2")
    build(write(made, "tensorflow", "tensorflow", LIBRARY), "tensorflow_operators.c", "-Wl,--no-as-needed", str(runtime), "-Wl,--allow-shlib-undefined")
    for kind in CONFIGS:
        write(made, f"{kind}_without", kind, "")
    with Nereid(made.path, {"model-control-mode": "explicit"}) as server:
        yield server


@PROTOCOLS
@pytest.mark.parametrize("model", CONFIGS)
def test_the_library_s_operator_computes(served: Server, protocol: str, model: str) -> None:
    """Before it is loaded, nobody knows the operator; loaded again, it computes again."""
    if protocol == "http":
        status, error = load(served, f"{model}_without")
        assert status == 400 and "TripleAndOne" in error, error
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    for _ in range(2):
        assert load(served, model) == (200, "")
        np.testing.assert_allclose(ask(served, protocol, model, {"x": x})["y"], 3 * x + 1, rtol=1e-6)
        assert unload(served, model) == 200
