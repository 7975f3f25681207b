"""The Debian package in a clean Debian whose systemd runs: installed, asked, upgraded under load, removed."""

import contextlib
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import paths
from harness.repository import Repository
from machine import Machine, make, run

HERE = Path(__file__).resolve().parent
SLOW = """
    parameters [ { key: "execute_delay_ms" value: { string_value: "1000" } } ]
    model_warmup [ { name: "first" batch_size: 1 inputs { key: "INPUT0" value: { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } } ]
"""

DENY = 'parameters { key: "ISOLATION_DENY" value: { string_value: "network, programs, files" } }\n'


def package(folder: Path, version: str) -> Path:
    paths.need(paths.RELEASE / "bin" / "nereid")
    run(paths.ROOT / "tools" / "deb.sh", folder, env={"DEB_VERSION": version, "DEB_COMPRESS": "gzip"}, within=600)
    return next(folder.glob(f"nereid_{version}_*.deb"))


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("packages")
    made = [package(folder, version) for version in ("0.1.0", "0.1.1", "0.1.2")]
    again = package(tmp_path_factory.mktemp("again"), "0.1.2")
    assert again.read_bytes() == made[2].read_bytes(), "the same sources give the same package"
    return made


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory, packages: list[Path]) -> Iterator[Machine]:
    root = tmp_path_factory.mktemp("debian") / "root"
    needs = run("dpkg-deb", "-f", packages[0], "Depends")
    make(root, ["systemd", "systemd-sysv", *(re.split(r"[ (]", each.strip())[0] for each in needs.split(","))])
    for each in packages:
        (root / "srv" / each.name.split("_")[1]).write_bytes(each.read_bytes())
    with Machine(root) as started:
        yield started


def tree(root: Path) -> dict[str, str]:
    """All files but those that change in any Debian that runs and installs something."""
    lively = ("var/log", "var/cache", "var/lib/dpkg", "var/lib/apt", "var/lib/systemd", "run", "tmp", "var/tmp", "proc", "sys", "dev", "etc/.pwd.lock", "etc/machine-id")
    found = {}
    for folder, names, files in os.walk(root):
        inside = Path(folder).relative_to(root)
        names[:] = [name for name in names if str(inside / name) not in lively]
        for name in (*names, *files):
            path = Path(folder) / name
            if str(inside / name) in lively or name.endswith("-") or name == ".updated":
                continue
            found[str(inside / name)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else path.readlink().as_posix() if path.is_symlink() else ""
    return found


@contextlib.contextmanager
def load(machine: Machine) -> Iterator["subprocess.Popen[str]"]:
    """Clients that ask while the block runs; then each has been answered, and nothing was lost."""
    asking = machine.neighbour(HERE / "ask_until_told.py", 8000, 8001)
    assert asking.stdout and asking.stdin
    assert asking.stdout.readline() == ".\n"
    try:
        yield asking
    finally:
        asking.stdin.close()
        told = asking.stdout.read().splitlines()[-1]
        asking.wait(60)
    result = json.loads(told)
    assert result["lost"] == [[], [], [], []], machine.journal()
    print("answered", result["answered"])


def test_its_life(machine: Machine) -> None:
    root = machine.root
    before = tree(root)
    machine.run("dpkg", "-i", "/srv/0.1.0")
    assert machine.run("systemctl", "is-active", "nereid").strip() == "active"
    assert machine.run("systemctl", "is-enabled", "nereid").strip() == "enabled"
    process = machine.run("systemctl", "show", "-P", "MainPID", "nereid").strip()
    status = machine.run("cat", f"/proc/{process}/status")
    assert "NoNewPrivs:\t1" in status and "Uid:\t0" not in status and "CapEff:\t0000000000000000" in status and "Seccomp:\t2" in status, status
    # Models, among them one in a process of its own, and one that takes its time to load.
    repository = Repository(root / "var" / "lib" / "nereid" / "models")
    repository.identity("one")
    repository.identity("alone", extra='parameters { key: "ISOLATION" value { string_value: "process" } }\n' + DENY)
    repository.identity("slow", extra=SLOW)
    machine.run("nereid-handover")
    assert machine.run("systemctl", "is-active", "nereid").strip() == "active", machine.journal()
    assert machine.ask("systemctl", "is-active", "nereid-next").stdout.strip() == "inactive"
    script = "import sys; sys.path.insert(0, sys.argv[1]); from harness import askers, rawhttp\n"
    script += "answer = rawhttp.post('127.0.0.1:8000', '/v2/models/alone/infer', askers.BODY); print(answer.status)"
    asking = machine.neighbour("-c", script, HERE.parent)
    assert asking.communicate()[0] == "200\n", machine.journal()

    with load(machine) as asking:
        assert asking.stdout
        for version in ("0.1.1", "0.1.2"):
            machine.run("dpkg", "-i", f"/srv/{version}")
            assert asking.stdout.readline() == ".\n"
            assert machine.run("systemctl", "is-active", "nereid").strip() == "active"
        assert machine.run("dpkg-query", "-W", "-f", "${Version}", "nereid") == "0.1.2"
        assert machine.run("systemctl", "show", "-P", "MainPID", "nereid").strip() != process
        # A configuration with which it does not start: the old one goes on.
        conf = root / "etc" / "nereid" / "nereid.conf"
        right = conf.read_text()
        conf.write_text(right + "no-such-option = 1\n")
        refused = machine.ask("nereid-handover")
        assert refused.returncode == 1 and "the old one goes on" in refused.stderr, refused
        assert asking.stdout.readline() == ".\n"
        conf.write_text(right)
        machine.run("nereid-handover")
        assert asking.stdout.readline() == ".\n"

    security = machine.ask("systemd-analyze", "security", "--no-pager", "--threshold=20", "nereid").stdout
    assert re.search(r"Overall exposure level for nereid.service: [01]\.\d", security), security
    print(security.splitlines()[-1])

    machine.run("dpkg", "-r", "nereid")
    assert conf.exists() and machine.ask("systemctl", "is-active", "nereid").stdout.strip() in ("inactive", "unknown")
    for model in ("one", "alone", "slow"):
        run("rm", "-r", repository.path / model)
    machine.run("dpkg", "--purge", "nereid")
    after = tree(root)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == set()
    assert "nereid" not in machine.run("systemctl", "list-unit-files", "--no-pager")
