"""Backends that are there when asked for: the word BACKENDS, and what an installation contains."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import paths, rawhttp
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
        assert any((paths.ROOT / "tools" / "packages" / f"{name}.{kind}").is_file() for kind in ("lock", "maven"))


def test_an_unknown_backend_is_refused() -> None:
    done = asked("openvino,toaster")
    assert done.returncode != 0
    assert "BACKENDS names 'toaster'; there are: all openvino" in done.stderr


def install(prefix: Path, backends: str, destdir: str = "", umask: int = -1) -> None:
    environment = {**os.environ, "BACKENDS": backends, "DESTDIR": destdir}
    subprocess.run(["tools/install.sh", str(prefix)], cwd=paths.ROOT, env=environment, check=True, capture_output=True, umask=umask)


class Installed(Nereid):
    prefix: Path

    def program(self) -> list[str]:
        return [str(self.prefix / "bin" / "nereid")]


def test_an_installation_has_what_was_asked_for(tmp_path: Path) -> None:
    paths.need(RELEASE / "bin" / "nereid")
    install(tmp_path / "plain", "")
    assert sorted(path.name for path in (tmp_path / "plain" / "backends").iterdir()) == ["identity", "onnxruntime", "python"]


@pytest.mark.parametrize("prefix", ["", " ", "opt/nereid"])
def test_a_prefix_is_a_whole_path(tmp_path: Path, prefix: str) -> None:
    """CMake has places of its own for what is none: /usr/local."""
    environment = {**os.environ, "DESTDIR": str(tmp_path)}
    done = subprocess.run(["tools/install.sh", prefix], cwd=paths.ROOT, env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, list(tmp_path.iterdir())) == (1, []), done.stdout[-2000:]
    assert done.stderr == f"FAILED: PREFIX: expected a path that begins with /, found '{prefix}'\n"


def test_an_installation_is_for_every_user(tmp_path: Path) -> None:
    """Also where files of the one who installs are not."""
    paths.need(RELEASE / "bin" / "nereid")
    prefix = tmp_path / "opt" / "nereid"
    install(prefix, "", umask=0o077)
    made = [prefix.parent, prefix, *prefix.rglob("*")]
    wanted = {path: 0o755 if path.is_dir() or path.parent.name == "bin" else 0o444 for path in made if not path.is_symlink()}
    assert [path for path, mode in wanted.items() if path.stat().st_mode & mode != mode] == []
    assert [path for path in wanted if path.stat().st_mode & 0o022] == []


def test_a_staged_installation_serves_from_where_it_was_put(tmp_path: Path) -> None:
    """DESTDIR stages it, as packages are made; then it moves. Program, library, backends, caches and agents stay together."""
    paths.need(RELEASE / "bin" / "nereid")
    install(Path("/usr/local/nereid"), "", str(tmp_path / "stage"))
    Installed.prefix = (tmp_path / "stage" / "usr" / "local" / "nereid").rename(tmp_path / "moved")
    assert sorted(path.name for path in (tmp_path / "stage").rglob("*") if path.is_file()) == []
    log = tmp_path / "log"
    with Installed(paths.ROOT / "build" / "models", {"log-file": str(log), "cache-config": "local,size=65536"}) as server:
        found = ask(server, "grpc", "digits", {"image": np.zeros((1, 64), np.float32)})["logits"]
        for path in ("/", "/nereid/live.js", "/nereid/uPlot.js"):
            assert rawhttp.get(server.http, path).status == 200, path
    assert found.shape == (1, 10)
    told = log.read_text()
    for folder in ("backends", "caches"):
        assert str(Installed.prefix / folder) in told, told


@pytest.mark.parametrize(
    ("backend", "library", "output"),
    [("openvino", "openvino", "logits"), ("pytorch", "torch", "logits__0"), ("tensorflow", "tensorflow", "logits")],
)
def test_an_installed_backend_finds_its_runtime_beside_itself(tmp_path: Path, backend: str, library: str, output: str) -> None:
    """Wherever that is; and the server finds the backend beside its own library."""
    paths.need(RELEASE / "bin" / "nereid")
    install(tmp_path / "first", backend)
    Installed.prefix = (tmp_path / "first").rename(tmp_path / "elsewhere")
    with Installed(paths.ROOT / "build" / f"models-{backend}") as server:
        found = ask(server, "http", f"digits_{backend}", {"image": np.zeros((1, 64), np.float32)})[output]
        maps = Path(f"/proc/{server.pid}/maps").read_text()
    assert found.shape == (1, 10)
    libraries = {line.split()[-1] for line in maps.splitlines() if library in line and ".so" in line}
    assert libraries and all(each.startswith(str(Installed.prefix)) for each in libraries)
    assert list((Installed.prefix / "share" / "nereid" / "licences" / backend).iterdir())
