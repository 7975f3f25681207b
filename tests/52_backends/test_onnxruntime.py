"""The backend `onnxruntime`: which ONNX Runtime it runs on, which parameters it refuses, and that nothing stays of a model. What it
does with models is in tests/40_e2e and tests/47_python."""

import re
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from harness import paths
from harness.repository import Repository
from harness.servers import Nereid
from models import onnx_models
from onnx import helper
from tritonclient.utils import InferenceServerException

from clients import ask, load, loads_and_unloads, parameters, tensor

EXPLICIT: dict[str, str | list[str]] = {"model-control-mode": "explicit"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("onnxruntime") / "models")
    onnx_models.save(onnx_models.dense(), made.model("dense", 'backend: "onnxruntime"\nmax_batch_size: 16\n'))
    return made


def other_library() -> Path:
    """An ONNX Runtime that is not the one in the backend's folder."""
    (found,) = paths.need(paths.ROOT / "build" / "deps" / "onnxruntime-openvino").glob("onnxruntime/capi/libonnxruntime.so.1.*.*")
    return found


def without_library(folder: Path) -> Path:
    """The backends, without the ONNX Runtime that lies beside its own."""
    return Path(shutil.copytree(paths.backends(), folder, symlinks=True, ignore=shutil.ignore_patterns("libonnxruntime.so.1", "openvino")))


def answers_from(server: Nereid, repository: Repository, version: str, library: Path) -> None:
    rows = np.random.default_rng(3).standard_normal((16, 16)).astype(np.float32)
    expected = onnx_models.answers(repository.path / "dense" / "1" / "model.onnx", {"x": rows})["logits"]
    assert load(server, "dense") == (200, "")
    np.testing.assert_allclose(ask(server, "grpc", "dense", {"x": rows})["logits"], expected, atol=1e-5)
    assert re.findall(r"ONNX Runtime (\S+) is loaded", server.process.log()) == [version]
    maps = Path(f"/proc/{server.pid}/maps").read_text()
    assert {line.split()[-1] for line in maps.splitlines() if "libonnxruntime.so" in line} == {str(library.resolve())}


def test_the_one_beside_the_backend(repository: Repository) -> None:
    """It is newer than the header that the backend was built on."""
    with Nereid(repository.path, EXPLICIT) as server:
        answers_from(server, repository, onnxruntime.__version__, paths.backends() / "onnxruntime" / "libonnxruntime.so.1")


def test_the_one_that_the_command_line_names(repository: Repository) -> None:
    library = other_library()
    options = EXPLICIT | {"backend-config": f"onnxruntime,library={library}"}
    with Nereid(repository.path, options) as server:
        answers_from(server, repository, library.name.removeprefix("libonnxruntime.so."), library)


def test_the_one_that_the_system_has(repository: Repository, tmp_path: Path) -> None:
    """Under the name that distributions give it, where none lies beside the backend."""
    library = other_library()
    header = (paths.need(paths.ROOT / "build" / "deps") / "usr" / "include").rglob("onnxruntime_c_api.h")
    found = [re.search(r"#define ORT_API_VERSION (\d+)", path.read_text()) for path in [*header, *Path("/usr/include").rglob("onnxruntime_c_api.h")]]
    assert found and found[0]
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / f"libonnxruntime.so.1.{found[0][1]}").symlink_to(library)
    options = EXPLICIT | {"backend-directory": str(without_library(tmp_path / "backends"))}
    with Nereid(repository.path, options, env={"LD_LIBRARY_PATH": str(tmp_path / "system")}) as server:
        answers_from(server, repository, library.name.removeprefix("libonnxruntime.so."), library)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("enable-global-threadpool=maybe", "failed to convert 'maybe' to boolean"),
        ("default-max-batch-size=two", "failed to convert 'two' to integral number"),
        ("intra_op_thread_count=2000", "2000 threads are asked for, at most 1024 are supported"),
        ("inter_op_thread_count=some", "failed to convert 'some' to integral number"),
    ],
)
def test_a_setting_of_the_command_line_that_is_wrong_is_named(repository: Repository, setting: str, says: str) -> None:
    with Nereid(repository.path, EXPLICIT | {"backend-config": f"onnxruntime,{setting}"}) as server:
        status, error = load(server, "dense")
    assert status == 400
    assert f"backend 'onnxruntime', setting '{setting.split('=')[0]}': {says}" in error


def test_a_model_that_is_wrong_is_told_what(tmp_path: Path) -> None:
    """A parameter is named, and a batch dimension that nobody wrote is told as such."""
    bad = {
        **{
            f"bad_{key}": (parameters({key: value}), f"model 'bad_{key}', parameter '{key}': {says}")
            for key, value, says in (
                ("intra_op_thread_count", "two", "failed to convert 'two' to integral number"),
                ("inter_op_thread_count", "2000", "2000 threads are asked for"),
                ("execution_mode", "fast", "failed to convert 'fast' to integral number"),
                ("enable_mem_arena", "maybe", "failed to convert 'maybe' to boolean"),
                ("enable_mem_pattern", "maybe", "failed to convert 'maybe' to boolean"),
            )
        },
        "filled_in": (tensor("input", "x", "FP32", [-1, 16]), "max_batch_size was not given and has been filled in"),
        "given": ("max_batch_size: 4\n" + tensor("input", "x", "FP32", [-1, 16]), "an initial batch dimension because max_batch_size > 0"),
    }
    made = Repository(tmp_path / "models")
    for name, (text, _says) in bad.items():
        onnx_models.save(onnx_models.dense(), made.model(name, 'backend: "onnxruntime"\n' + text))
    with Nereid(made.path, EXPLICIT) as server:
        for name, (_text, says) in bad.items():
            status, error = load(server, name)
            assert status == 400
            assert says in error
            assert ("leave the batch dimension out of dims" in error) == (name == "filled_in")


def test_a_batch_output_that_the_model_does_not_have(tmp_path: Path) -> None:
    made = Repository(tmp_path / "models")
    ragged = "batch_output { target_name: 'logit' kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: 'x' }\n"
    onnx_models.save(onnx_models.dense(), made.model("dense", 'backend: "onnxruntime"\nmax_batch_size: 4\n' + ragged))
    with Nereid(made.path, EXPLICIT) as server:
        status, error = load(server, "dense")
    assert status == 400
    assert "batch_output names 'logit', which is no output of the model" in error


def test_one_value_for_a_whole_batch(tmp_path: Path) -> None:
    """It cannot be divided among requests. The log says so at once; who asks for the other output is answered, who asks for it never is."""
    made = Repository(tmp_path / "models")
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("ReduceSum", ["x"], ["all"], keepdims=0)]
    built = onnx_models.model(nodes, [("x", "FP32", ["n", 2])], [("y", "FP32", ["n", 2]), ("all", "FP32", [])])
    config = tensor("input", "x", "FP32", [2]) + tensor("output", "y", "FP32", [2]) + tensor("output", "all", "FP32", [1])
    onnx_models.save(built, made.model("sums", 'backend: "onnxruntime"\nmax_batch_size: 4\n' + config))
    x = np.ones((1, 2), np.float32)
    with Nereid(made.path, EXPLICIT) as server:
        assert load(server, "sums") == (200, "")
        assert "output 'all' of the file is one value without rows" in server.process.log()
        for _ in range(3):
            np.testing.assert_array_equal(ask(server, "http", "sums", {"x": x}, ["y"])["y"], x + x)
            with pytest.raises(InferenceServerException, match="failed to split the output tensor 'all' in responses"):
                ask(server, "http", "sums", {"x": x}, ["all"])


def test_none_at_all(repository: Repository, tmp_path: Path) -> None:
    """The error names where it was looked for; one that was named is not replaced by another."""
    for options, said in (
        ({"backend-directory": str(without_library(tmp_path / "backends"))}, f"{tmp_path}/backends/onnxruntime/libonnxruntime.so.1"),
        ({"backend-config": f"onnxruntime,library={tmp_path}/none.so"}, f"{tmp_path}/none.so"),
    ):
        with Nereid(repository.path, EXPLICIT | options) as server:
            status, error = load(server, "dense")
        assert status == 400
        assert "ONNX Runtime cannot be loaded: " in error and said in error, error


@pytest.mark.parametrize("key", ["session.collect_node_memory_stats_to_file", "session.node_partition_config_file"])
def test_parameters_that_lead_elsewhere(tmp_path: Path, key: str) -> None:
    """Who may load a model does not overwrite files of the server."""
    (tmp_path / "kept").write_text("kept")
    made = Repository(tmp_path / "models")
    config = 'backend: "onnxruntime"\nmax_batch_size: 16\n' + parameters({key: str(tmp_path / "kept")})
    onnx_models.save(onnx_models.dense(), made.model("elsewhere", config))
    with Nereid(made.path, EXPLICIT) as server:
        status, error = load(server, "elsewhere")
    assert (tmp_path / "kept").read_text() == "kept"
    assert status == 400 and f"the parameter '{key}' leads out of the model's directory" in error, error


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "the name of the model's output 'logi\\xff\\xfe' is not UTF-8: give it another"),
        ('output { name: "logits" data_type: TYPE_FP32 dims: [8] }\n', "allowed outputs are: logi\\xff\\xfe"),
    ],
)
def test_a_name_that_is_not_utf8(tmp_path: Path, output: str, said: str) -> None:
    """The error says so, and is JSON."""
    made = Repository(tmp_path / "models")
    file = onnx_models.save(onnx_models.dense(), made.model("named", 'backend: "onnxruntime"\nmax_batch_size: 16\n' + output))
    file.write_bytes(file.read_bytes().replace(b"logits", b"logi\xff\xfe"))
    with Nereid(made.path, EXPLICIT) as server:
        status, error = load(server, "named")
    assert status == 400 and said in error, error


def test_loading_and_unloading_leaves_nothing(repository: Repository) -> None:
    loads_and_unloads(repository.path, "dense", {"x": np.ones((2, 16), np.float32)})
