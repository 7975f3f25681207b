"""ONNX Runtime with OpenVINO as an accelerator of the processor: optimization { execution_accelerators { cpu_execution_accelerator } }."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import paths
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from models import onnx_models

from clients import PROTOCOLS, ask, at_once, load, unload

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
ACCELERATED = """\
backend: "onnxruntime"
optimization { execution_accelerators { cpu_execution_accelerator: [ { name: "openvino" } ] } }
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("accelerated") / "models")
    onnx_models.save(onnx_models.dense(), made.model("plain", 'backend: "onnxruntime"\nmax_batch_size: 16\n'))
    for name in ("dense", "dense_too"):
        onnx_models.save(onnx_models.dense(), made.model(name, ACCELERATED + "max_batch_size: 16\n"))
    onnx_models.save(onnx_models.add_sub(), made.model("bare", ACCELERATED))
    for name, value in (
        ("one_thread", 'key: "num_of_threads" value: "1"'),
        ("bad_crowded", 'key: "num_of_threads" value: "1025"'),
        ("bad_unknown", 'key: "shade" value: "7"'),
    ):
        told = ACCELERATED.replace('"openvino"', f'"openvino" parameters {{ {value} }}')
        onnx_models.save(onnx_models.dense(), made.model(name, told + "max_batch_size: 16\n"))
    return made


@pytest.fixture(scope="module", params=BOTH)
def served(request: pytest.FixtureRequest, repository: Repository) -> Iterator[Server]:
    names = sorted(path.name for path in repository.path.iterdir() if not path.name.startswith("bad_"))
    with KINDS[request.param](repository.path, {"model-control-mode": "explicit", "load-model": names}) as server:
        yield server


@PROTOCOLS
def test_the_same_answers_as_without(served: Server, repository: Repository, protocol: str) -> None:
    """MR-52, PB-77, PB-78: OpenVINO computes the model, beside one that plain ONNX Runtime computes."""
    rows = np.random.default_rng(3).standard_normal((16, 16)).astype(np.float32)
    expected = onnx_models.answers(repository.path / "plain" / "1" / "model.onnx", {"x": rows})["logits"]

    def one(index: int) -> None:
        for model in ("dense", "plain", "dense_too"):
            found = ask(served, protocol, model, {"x": rows[: index + 1]})["logits"]
            np.testing.assert_allclose(found, expected[: index + 1], atol=1e-5)

    at_once(8, one)
    inputs = {name: np.full((1, 4), value, np.float32) for name, value in (("a", 5), ("b", 2))}
    assert ask(served, protocol, "bare", inputs)["difference"].tolist() == [[3, 3, 3, 3]]
    libraries = Path(f"/proc/{served.pid}/maps").read_text()
    assert "libonnxruntime_providers_openvino.so" in libraries and "libopenvino_intel_cpu_plugin.so" in libraries


def test_parameters_of_the_accelerator(served: Server, repository: Repository) -> None:
    """PB-66: they are handed to OpenVINO, which refuses one that it does not know."""
    rows = np.ones((1, 16), np.float32)
    expected = ask(served, "grpc", "plain", {"x": rows})["logits"]
    np.testing.assert_allclose(ask(served, "grpc", "one_thread", {"x": rows})["logits"], expected, atol=1e-5)
    status, error = load(served, "bad_unknown")
    assert status == 400
    assert "Execution Accelerator 'openvino' does not start with these parameters: " in error
    assert "Invalid provider_option key: shade" in error
    status, error = load(served, "bad_crowded")
    assert status == 400
    assert "Execution Accelerator 'openvino': num_of_threads: 1025 threads are asked for, at most 1024 are supported" in error


@pytest.mark.parametrize("key", ["cache_dir", "load_config", "context"])
def test_parameters_that_lead_elsewhere(repository: Repository, tmp_path: Path, key: str) -> None:
    """PB-66: who may load a model does not write files where it likes."""
    folder = tmp_path / "written"
    value = {"cache_dir": str(folder), "load_config": json.dumps({"CPU": {"CACHE_DIR": str(folder)}}), "context": "0x10"}[key]
    told = ACCELERATED.replace('"openvino"', f'"openvino" parameters {{ key: "{key}" value: {json.dumps(value)} }}')
    made = Repository(tmp_path / "models")
    onnx_models.save(onnx_models.dense(), made.model("elsewhere", told + "max_batch_size: 16\n"))
    with Nereid(made.path, {"model-control-mode": "explicit"}) as server:
        status, error = load(server, "elsewhere")
    assert status == 400 and f"the parameter '{key}' leads out of the model's directory" in error, error
    assert not folder.exists()


def test_models_without_it_do_not_load_it(repository: Repository) -> None:
    """MR-51: the plain provider is used where the configuration asks for nothing."""
    options: dict[str, str | list[str]] = {"model-control-mode": "explicit", "load-model": "plain"}
    with Nereid(repository.path, options) as server:
        ask(server, "http", "plain", {"x": np.ones((1, 16), np.float32)})
        assert "libopenvino" not in Path(f"/proc/{server.pid}/maps").read_text()
        assert load(server, "dense") == (200, "")
        assert "libopenvino" in Path(f"/proc/{server.pid}/maps").read_text()
        assert unload(server, "dense") == 200
        ask(server, "http", "plain", {"x": np.ones((1, 16), np.float32)})


def test_where_it_is_not_installed(repository: Repository, tmp_path: Path) -> None:
    """The error says what is missing, where, and how to get it."""
    shutil.copytree(paths.backends(), tmp_path / "backends", symlinks=True, ignore=shutil.ignore_patterns("openvino"))
    options: dict[str, str | list[str]] = {"model-control-mode": "explicit", "backend-directory": str(tmp_path / "backends")}
    with Nereid(repository.path, options) as server:
        status, error = load(server, "dense")
    assert status == 400
    assert (
        "Execution Accelerator 'openvino' is requested, but the ONNX Runtime that has it is not installed in "
        f"'{tmp_path}/backends/onnxruntime/openvino': install with BACKENDS=onnxruntime-openvino"
    ) in error
