"""Backends that are there when asked for: the word BACKENDS, and what an installation contains."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import paths
from harness.servers import Nereid

from clients import ask

RELEASE = paths.ROOT / "build" / "release"


def asked(backends: str, also: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-ec", f". tools/backends.sh; asked_backends {also}"], cwd=paths.ROOT, env={**os.environ, "BACKENDS": backends},
        capture_output=True, text=True, check=False,
    )


@pytest.mark.parametrize(
    ("backends", "also", "expected"),
    [("", "", []), ("openvino", "", ["openvino"]), ("openvino,python", "python", ["openvino", "python"]),
     ("openvino openvino", "", ["openvino"])],
)
def test_backends_are_asked_for_by_name(backends: str, also: str, expected: list[str]) -> None:
    done = asked(backends, also)
    assert (done.returncode, done.stdout.split()) == (0, expected)


def test_all_means_the_list() -> None:
    listed = (paths.ROOT / "tools" / "packages" / "backends.list").read_text().splitlines()
    names = sorted(line for line in listed if line and not line.startswith("#"))
    assert asked("all").stdout.split() == names
    for name in names:
        assert (paths.ROOT / "tools" / "packages" / f"{name}.lock").is_file()


def test_an_unknown_backend_is_refused() -> None:
    done = asked("openvino,toaster")
    assert done.returncode != 0
    assert "BACKENDS names 'toaster'; there are: all openvino" in done.stderr


def install(prefix: Path, backends: str) -> None:
    subprocess.run(
        ["tools/install.sh", str(prefix)], cwd=paths.ROOT, env={**os.environ, "BACKENDS": backends}, check=True, capture_output=True
    )


class Installed(Nereid):
    prefix: Path

    def program(self) -> list[str]:
        return [str(self.prefix / "bin" / "nereid"), f"--backend-directory={self.prefix / 'backends'}"]


def test_an_installation_has_what_was_asked_for(tmp_path: Path) -> None:
    """The installed backend finds its runtime beside itself, wherever that is."""
    paths.need(RELEASE / "bin" / "nereid")
    install(tmp_path / "plain", "")
    assert sorted(path.name for path in (tmp_path / "plain" / "backends").iterdir()) == ["identity", "onnxruntime"]
    install(tmp_path / "first", "openvino")
    Installed.prefix = (tmp_path / "first").rename(tmp_path / "elsewhere")
    with Installed(paths.ROOT / "build" / "models-openvino") as server:
        assert ask(server, "http", "digits_openvino", {"image": np.zeros((1, 64), np.float32)})["logits"].shape == (1, 10)
        maps = Path(f"/proc/{server.pid}/maps").read_text()
    libraries = {line.split()[-1] for line in maps.splitlines() if "openvino" in line and ".so" in line}
    assert libraries and all(library.startswith(str(Installed.prefix)) for library in libraries)
