"""The container image: read and unpacked by umoci, run as its configuration says, without root and on a read-only file system."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from harness import paths, procfs, rawhttp
from harness.process import Process
from harness.repository import Repository
from harness.servers import Nereid
from test_debian import validate

UMOCI = paths.ROOT / "build" / "deps" / "test" / "usr" / "bin" / "umoci"
MOST = 100e6  # bytes
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'
# A root of its own: what the image has, not to be written; with a /tmp, the devices and processes that any runtime gives.
CONTAINER = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount --bind "$2" "$1/models"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
mount -t tmpfs tmpfs "$1/dev"
touch "$1/dev/null" "$1/dev/urandom"
mount --bind /dev/null "$1/dev/null"
mount --bind /dev/urandom "$1/dev/urandom"
mount -o remount,bind,ro "$1"
user=$3
root=$1
shift 3
if touch "$root/written" 2>/dev/null; then exit 77; fi
exec chroot ${user:+--userspec=$user} "$root" "$@"
"""


def run(*argv: object) -> str:
    done = subprocess.run([str(each) for each in argv], capture_output=True, text=True, check=False, timeout=300, env={**os.environ, "BACKENDS": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    paths.need(paths.RELEASE / "bin" / "nereid")
    folder = tmp_path_factory.mktemp("image") / "nereid"
    run(paths.ROOT / "tools" / "image.py", folder)
    return folder


@pytest.fixture(scope="session")
def tag(image: Path) -> str:
    (found,) = run(paths.need(UMOCI, "tools/setup.sh test"), "ls", "--layout", image).split()
    return found


@pytest.fixture(scope="session")
def bundle(image: Path, tag: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle") / "nereid"
    rootless = [] if os.geteuid() == 0 else ["--rootless"]
    run(UMOCI, "unpack", *rootless, "--image", f"{image}:{tag}", folder)
    return folder


@pytest.fixture(scope="session")
def config(bundle: Path) -> dict[str, Any]:
    """What a runtime is told: its own form of the image's configuration."""
    told: dict[str, Any] = json.loads((bundle / "config.json").read_text())
    return told


def test_its_version_and_size(image: Path, tag: str, bundle: Path) -> None:
    assert tag == run(paths.nereid_binary(), "--version").split()[1]
    assert "CREATED BY" in run(UMOCI, "stat", "--image", f"{image}:{tag}")
    unpacked = sum(path.stat().st_size for path in (bundle / "rootfs").rglob("*") if path.is_file() and not path.is_symlink())
    packed = sum(path.stat().st_size for path in (image / "blobs" / "sha256").iterdir())
    assert packed < unpacked < MOST


def test_what_is_in_it(bundle: Path) -> None:
    """No shell, no programs but ours, nothing that another user than root may write but /tmp, and licences of all."""
    root = bundle / "rootfs"
    programs = {str(path.relative_to(root)) for path in root.rglob("*") if path.parent.name in ("bin", "sbin") and not path.is_dir()}
    assert programs == {"opt/nereid/bin/nereid", "opt/nereid/bin/tritonserver"}
    assert {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o022} == {"tmp"}
    assert [path for path in root.rglob("*") if path.stat().st_mode & 0o6000] == []
    bill = json.loads((root / "opt/nereid/share/nereid/sbom.cdx.json").read_text())
    validate(bill)
    debian = {each["name"] for each in bill["components"] if each["purl"].startswith("pkg:deb/")}
    assert {"libc6", "libssl3", "libstdc++6"} <= {each.replace("t64", "") for each in debian}
    assert debian == {path.parent.name for path in root.glob("usr/share/doc/*/copyright")}


def test_its_configuration(config: dict[str, Any]) -> None:
    process = config["process"]
    assert process["args"] == ["/opt/nereid/bin/nereid", "--model-repository=/models"]
    assert process["user"]["uid"] == process["user"]["gid"] != 0


def test_it_serves_without_root_on_a_root_that_is_not_written(bundle: Path, config: dict[str, Any], open_folder: Path) -> None:
    made = Repository(open_folder / "models")
    made.identity("one")
    digits = paths.need(paths.SAMPLE_MODELS / "digits")
    (made.path / "digits").mkdir()
    for path in digits.rglob("*"):
        target = made.path / "digits" / path.relative_to(digits)
        if path.is_dir():
            target.mkdir()
        else:
            target.write_bytes(path.read_bytes())
    script = open_folder / "container.sh"
    script.write_text(CONTAINER)
    user = config["process"]["user"]
    as_root = os.geteuid() == 0
    enter = ["unshare", *([] if as_root else ["--map-root-user"]), "--mount", "--pid", "--fork", "--kill-child=SIGTERM", "bash", str(script)]
    whole = [*enter, str(bundle / "rootfs"), str(made.path), f"{user['uid']}:{user['gid']}" if as_root else "", *config["process"]["args"]]

    class Contained(Nereid):
        judged = False  # how unshare ends is not ours

        def program(self) -> list[str]:
            return whole

        def _launch(self) -> None:
            log = Path(self._scratch.name) / "log"
            self._process = Process(self.kind, self.command(), log, judged=False)

        def leave(self) -> None:
            for child in procfs.children(self.pid):  # the end of its parent does not reach a process that has become another user
                os.kill(child, signal.SIGKILL)
            self.kill()

    with Contained([]) as server:
        (first,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        status = Path(f"/proc/{first}/status").read_text()
        assert not as_root or f"Uid:\t{user['uid']}\t" in status, status
        answer = rawhttp.post(server.http, "/v2/models/one/infer", BODY)
        assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [1, 2]
        with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
            image = tritonclient.grpc.InferInput("image", [1, 64], "FP32")
            image.set_data_from_numpy(np.zeros((1, 64), np.float32))
            assert client.infer("digits", [image]).as_numpy("logits").shape == (1, 10)
