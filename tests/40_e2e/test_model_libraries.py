"""Libraries that a configuration names, or a load request brings: only what lies with the model is opened."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid
from models import onnx_models

pytestmark = pytest.mark.onnx

EXPLICIT: dict[str, str | list[str]] = {"model-control-mode": "explicit"}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """What the library writes when it is loaded."""
    return tmp_path / "loaded"


@pytest.fixture
def library(tmp_path: Path, marker: Path) -> Path:
    """Operators for ONNX Runtime: none, but who loads it can be seen."""
    source, built = tmp_path / "ops.c", tmp_path / "outside" / "libops.so"
    built.parent.mkdir()
    source.write_text(f"""#include <stdio.h>
__attribute__((constructor)) static void loaded(void) {{ fclose(fopen("{marker}", "w")); }}
void *RegisterCustomOps(void *options, const void *api) {{ return 0; }}
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    return built


def _config(file: str) -> str:
    return f'backend: "onnxruntime"\nmax_batch_size: 0\nmodel_operations {{ op_library_filename: "{file}" }}\n'


def _model(repository: Repository, file: str) -> Path:
    folder = repository.model("m", _config(file))
    onnx_models.save(onnx_models.add_sub(), folder)
    return folder


def _load(server: Nereid, parameters: dict[str, str] | None = None) -> tuple[int, str]:
    answer = rawhttp.post(server.http, "/v2/repository/models/m/load", json.dumps({"parameters": parameters or {}}).encode())
    return answer.status, "" if answer.status == 200 else answer.json()["error"]


@pytest.mark.parametrize("name", ["libops.so", "deep/er/libops.so", "1/libops.so", "{folder}/libops.so", "inside.so"])
def test_operators_beside_the_model(tmp_path: Path, library: Path, marker: Path, name: str) -> None:
    repository = Repository(tmp_path / "models")
    folder = _model(repository, name.format(folder=repository.path / "m"))
    for place in (folder, folder / "deep" / "er", folder / "1"):
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)
    (folder / "inside.so").symlink_to("deep/er/libops.so")
    with Nereid(repository.path, EXPLICIT) as server:
        assert _load(server) == (200, "")
        assert marker.exists()


@pytest.mark.parametrize("name", ["{library}", "../../outside/libops.so", "door.so", "beyond/libops.so", "missing.so", "1"])
def test_operators_from_elsewhere(tmp_path: Path, library: Path, marker: Path, name: str) -> None:
    """Absolute, climbing, by links that lead out; what is no file."""
    repository = Repository(tmp_path / "models")
    folder = _model(repository, name.format(library=library))
    (folder / "door.so").symlink_to(library)
    (folder / "beyond").symlink_to(library.parent)
    with Nereid(repository.path, EXPLICIT) as server:
        status, error = _load(server)
        assert status == 400 and "op_library_filename: expected a library in the model's directory" in error, error
        assert not marker.exists()
        # Nor does a configuration of the request's own lead there.
        (folder / "config.pbtxt").write_text('backend: "onnxruntime"\n')
        config = {"backend": "onnxruntime", "model_operations": {"op_library_filename": [str(library)]}}
        status, error = _load(server, {"config": json.dumps(config)})
        assert status == 400 and "op_library_filename" in error
        assert _load(server) == (200, "")
        assert not marker.exists()


@pytest.mark.parametrize("name", ["1/libops.so", "1/weights.bin"])
def test_libraries_in_a_load_request(tmp_path: Path, library: Path, marker: Path, name: str) -> None:
    """Refused, whatever they are called, unless an option allows them."""
    config = {"backend": "onnxruntime", "max_batch_size": 0, "model_operations": {"op_library_filename": [name]}}
    model = onnx_models.save(onnx_models.add_sub(), tmp_path / "m").read_bytes()
    parameters = {
        "config": json.dumps(config),
        "file:1/model.onnx": base64.b64encode(model).decode(),
        f"file:{name}": base64.b64encode(library.read_bytes()).decode(),
    }
    repository = Repository(tmp_path / "models")
    with Nereid(repository.path, EXPLICIT) as server:
        status, error = _load(server, parameters)
        assert status == 400 and f"file:{name}" in error and "--allow-library-upload" in error, error
        assert not marker.exists()
    with Nereid(repository.path, EXPLICIT | {"allow-library-upload": "true"}) as server:
        assert _load(server, parameters) == (200, "")
        assert marker.exists()


def test_a_backend_in_a_load_request(tmp_path: Path, library: Path, marker: Path) -> None:
    """The model's own backend, and a custom library."""
    content = base64.b64encode(library.read_bytes()).decode()
    with Nereid(Repository(tmp_path / "models").path, EXPLICIT) as server:
        for name, config in (("libtriton_mine.so", {"backend": "mine"}), ("libcustom.so", {"platform": "custom"})):
            status, error = _load(server, {"config": json.dumps(config), f"file:1/{name}": content})
            assert status == 400 and "shared library" in error, error
        assert not marker.exists()
