"""Operators of an author's own, out of a library in the model's directory, at work: model_operations in the configuration."""

import shutil
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
EXPLICIT: dict[str, str | list[str]] = {"model-control-mode": "explicit"}
CONFIGS = {"onnx": 'backend: "onnxruntime"\n', "tensorflow": 'platform: "tensorflow_graphdef"\n'}


def build(model: Path, source: str, *more: str) -> None:
    library = model / "ops" / "libtriple.so"
    library.parent.mkdir(exist_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", str(HERE / source), "-o", str(library), *more], check=True)


def build_tensorflow(model: Path, source: str = "tensorflow_operators.c") -> None:
    runtime = paths.need(paths.RELEASE / "backends" / "tensorflow" / "libtensorflow_framework.so.2")
    build(model, source, "-Wl,--no-as-needed", str(runtime), "-Wl,--allow-shlib-undefined")


def build_changed(model: Path, old: str, new: str, more: str = "") -> None:
    """TensorFlow's library, from a source that was changed."""
    changed = model / "changed.c"
    changed.write_text((HERE / "tensorflow_operators.c").read_text().replace(old, new) + more)
    build_tensorflow(model, str(changed))


def onnx_model() -> onnx.ModelProto:
    value = {name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in ("x", "y")}
    node = helper.make_node("TripleAndOne", ["x"], ["y"], domain="nereid.test")
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("nereid.test", 1)]
    return helper.make_model(helper.make_graph([node], "triple", [value["x"]], [value["y"]]), opset_imports=opsets, ir_version=8)


def write(made: Repository, name: str, kind: str, more: str, operation: str = "TripleAndOne") -> Path:
    model = made.model(name, CONFIGS[kind] + IO + more)
    if kind == "onnx":
        onnx_models.save(onnx_model(), model)
        return model
    graph = files.Graph()
    graph.add("y", operation, [graph.input("x", "FP32", [-1])])
    files.save_graph(graph, model)
    return model


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Repository(tmp_path_factory.mktemp("operators"))
    header = next((paths.ROOT / "build" / "deps" / "usr" / "include").rglob("onnxruntime_c_api.h"), None)
    build(write(made, "onnx", "onnx", LIBRARY), "onnx_operators.c", *([f"-I{header.parent}"] if header else []))
    build_tensorflow(write(made, "tensorflow", "tensorflow", LIBRARY))
    for kind in CONFIGS:
        write(made, f"{kind}_without", kind, "")
    with Nereid(made.path, EXPLICIT) as server:
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


def computes(server: Server, model: str, x: float = 2) -> bool:
    return ask(server, "grpc", model, {"x": np.array([x], np.float32)})["y"].tolist() == [3 * x + 1]


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    """A model with its library."""
    made = Repository(tmp_path / "models")
    build_tensorflow(write(made, "one", "tensorflow", LIBRARY))
    return made


def test_models_that_each_have_a_copy_of_one_library(made: Repository) -> None:
    """TensorFlow gets it once: twice, it has two of each operation and runs neither."""
    shutil.copytree(made.path / "one" / "ops", write(made, "copy", "tensorflow", LIBRARY) / "ops")
    with Nereid(made.path, EXPLICIT) as server:
        for _ in range(2):
            for model in ("one", "copy"):
                assert load(server, model) == (200, "")
            for model in ("one", "copy"):
                assert computes(server, model)
                assert unload(server, model) == 200


def test_a_library_with_an_operation_that_another_library_has(made: Repository) -> None:
    """It is refused before it does harm: the first one computes as before, and is loaded again. So is one that replaces it."""
    build_changed(write(made, "two", "tensorflow", LIBRARY), "* 3 + 1", "* 3 + 1000")
    first, second = (made.path / name / "ops" / "libtriple.so" for name in ("one", "two"))
    with Nereid(made.path, EXPLICIT) as server:
        assert load(server, "one") == (200, "")
        status, error = load(server, "two")
        assert status == 400
        says = f"'{second}' has the operation 'TripleAndOne', which '{first}' has given TensorFlow before"
        assert f"unable to load model 'two': {says}" in error
        assert "the server has to be started again" in error
        assert computes(server, "one")
        assert unload(server, "one") == 200
        kept = first.rename(made.path / "kept.so")
        shutil.copy(second, first)
        status, error = load(server, "one")
        assert status == 400
        assert f"unable to load model 'one': '{first}' has the operation 'TripleAndOne', which '{first}' has given" in error
        first.unlink()
        build_changed(made.path / "one", '"TripleAndOne"', '"FourfoldAndOne"')
        status, error = load(server, "one")
        assert status == 400
        assert f"unable to load model 'one': '{first}' had another content when it was loaded before" in error
        kept.rename(first)
        assert load(server, "one") == (200, "")
        assert computes(server, "one")


def test_a_library_with_a_function_named_as_an_operation_of_another(made: Repository) -> None:
    """It has no such operation, and both are loaded."""
    function = "void TripleAndOne(void);\nvoid TripleAndOne(void)\n{\n}\n"
    build_changed(write(made, "other", "tensorflow", LIBRARY, "FourfoldAndOne"), '"TripleAndOne"', '"FourfoldAndOne"', function)
    with Nereid(made.path, EXPLICIT) as server:
        for model in ("one", "other", "one"):
            assert load(server, model) == (200, "")
            assert computes(server, model)
