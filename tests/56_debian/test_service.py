"""The Debian package in a clean Debian whose systemd runs: installed, asked, upgraded under load, removed."""

import hashlib
import os
import re
from pathlib import Path

from harness.repository import Repository
from machine import Machine, run

SLOW = """
    parameters [ { key: "execute_delay_ms" value: { string_value: "1000" } } ]
    model_warmup [ { name: "first" batch_size: 1 inputs { key: "INPUT0" value: { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } } ]
"""

DENY = 'parameters { key: "ISOLATION_DENY" value: { string_value: "network, programs, files" } }\n'


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
    assert machine.post("/v2/models/alone/infer")[0] == 200, machine.journal()

    with machine.load() as asking:
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
