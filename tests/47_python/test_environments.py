"""Environments that cannot be unpacked leave nothing behind; nor does the server, of those that can."""

import os
import shutil
from pathlib import Path

import environments
from asks import Asker
from conftest import make_server
from harness.repository import Repository

ENVIRONMENT = "parameters { key: 'EXECUTION_ENV_PATH' value { string_value: '$$TRITON_MODEL_DIRECTORY/env.tar.gz' } }"
MODEL = f"backend: 'python' input {{ name: 'ASK' data_type: TYPE_STRING dims: [ 1 ] }} output {{ name: 'TOLD' data_type: TYPE_STRING dims: [ 1 ] }} {ENVIRONMENT}"


def unpacked(mark: str) -> list[Path]:
    """The folders of environments that have a file of this name."""
    return [each.parent for each in Path("/tmp").glob(f"python_env_*/*/{mark}")]


def test_what_is_left_of_environments(python_backends: dict[str, Path], tmp_path: Path) -> None:
    made = Repository(tmp_path / "models")
    mark = f"mark_{os.getpid()}"
    whole = environments.archive(tmp_path / "whole.tar.gz", "whole", tmp_path / "scratch", {mark: os.urandom(1 << 20)})
    for name in ("whole", "broken"):
        folder = made.model(name, MODEL)
        shutil.copy(Path(__file__).parent / "models" / "environment.py", folder / "1" / "model.py")
        archive = folder / "env.tar.gz"
        shutil.copy(whole, archive)
        if name == "broken":
            os.truncate(archive, archive.stat().st_size - 1000)
    server = make_server("nereid", python_backends, made.path, {"model-control-mode": "explicit"})
    server.start()
    server.wait_until_ready(60, 0.05)
    asker = Asker(server)
    for _ in range(2):
        status, told = asker.load("broken")
        assert status == 400 and "cannot unpack the Python environment" in told["error"]
        assert unpacked(mark) == []
    assert asker.load("whole")[0] == 200
    places = unpacked(mark)
    assert len(places) == 1
    asker.close()
    server.stop(seconds=150)
    assert not places[0].parent.exists()
