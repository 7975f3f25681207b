"""The package for Python in a bare Debian that has nothing but python3 and numpy: ten lines serve a function over HTTP and gRPC."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pip
import pytest
import tritonclient.grpc as grpcclient
from harness import paths, rawhttp
from harness.servers import Nereid
from machine import make, run

PAGE = paths.ROOT / "docs" / "user" / "python-package.md"
# In the directory of another system, with mounts that end with the process; it keeps its number.
INSIDE = ["unshare", "--mount", "bash", "-c", 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"']


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("bare") / "root"
    make(made, ["python3", "python3-numpy"])
    yield made
    shutil.rmtree(made)


def inside(root: Path, *argv: object) -> str:
    return run(*INSIDE, root, *argv)


@pytest.fixture(scope="module")
def installed(root: Path) -> Path:
    """The folder of the package, put there by pip, which such a Debian lacks: that of the tests, for this once."""
    run(paths.ROOT / "bindings" / "python" / "build_wheel.py", root / "srv", env={"NEREID_BUILD": str(paths.RELEASE)}, within=900)
    wheel = next((root / "srv").glob("nereid-*.whl"))
    shutil.copytree(Path(pip.__file__).parent, root / "srv" / "pip")
    inside(root, "env", "PYTHONPATH=/srv", "python3", "-m", "pip", "install", "--no-index", "--break-system-packages", f"/srv/{wheel.name}")
    shutil.rmtree(root / "srv" / "pip")
    found = inside(root, "python3", "-c", "import nereid; print(nereid.__path__[0])").strip()
    return root / found.lstrip("/")


class Bare(Nereid):
    """The program of the page, run in that system; the options of the tests are its arguments."""

    kind = "bare"

    def __init__(self, root: Path):
        super().__init__([])
        self.root = root

    def program(self) -> list[str]:
        return [*INSIDE, str(self.root), "/usr/bin/python3", "/srv/ten_lines.py"]


def is_elf(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF"


def test_no_library_is_missing(root: Path, installed: Path) -> None:
    """Of what the server opens; it leads to the libraries that were brought along."""
    brought = installed / "lib"
    opened = [path for path in sorted(installed.rglob("*")) if is_elf(path) and (path.parent != brought or "triton" in path.name)]
    assert len(opened) > 5
    told = "".join(inside(root, "sh", "-c", 'ldd "$0" 2>&1 || true', f"/{path.relative_to(root)}") for path in opened)
    assert "not found" not in told, re.findall(r".*not found.*", told)
    found = {os.path.normpath(each) for each in re.findall(r"=> (/\S+)", told)}
    assert {f"/{path.relative_to(root)}" for path in brought.iterdir() if is_elf(path) and "triton" not in path.name} <= found


def test_ten_lines_serve_a_function(root: Path, installed: Path) -> None:
    assert installed.is_dir()
    example = next(block for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL) if "nereid.serve" in block)
    assert len([line for line in example.splitlines() if line]) <= 10
    options = '**{each[2:].split("=")[0].replace("-", "_"): each.split("=")[1] for each in sys.argv[1:]}'
    (root / "srv" / "ten_lines.py").write_text("import sys\n" + example.replace("http_port=8000, grpc_port=8001", options))
    with Bare(root) as server:
        assert os.readlink(f"/proc/{server.pid}/root") == str(root)
        body = {"inputs": [{"name": name, "datatype": "FP32", "shape": [2], "data": [1, 2.5]} for name in ("a", "b")]}
        answer = rawhttp.post(server.http, "/v2/models/add/infer", json.dumps(body).encode())
        assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [2.0, 5.0], answer
        with grpcclient.InferenceServerClient(server.grpc) as client:
            inputs = [grpcclient.InferInput(name, [3], "FP32") for name in ("a", "b")]
            for each in inputs:
                each.set_data_from_numpy(np.array([1, 2, 3], np.float32))
            told = client.infer("add", inputs).as_numpy("sum")
        assert told is not None and told.tolist() == [2.0, 4.0, 6.0]
