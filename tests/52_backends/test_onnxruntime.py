"""The backend `onnxruntime`: which ONNX Runtime it runs on. What it does with models is in tests/40_e2e and tests/47_python."""

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

from clients import ask, load

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
