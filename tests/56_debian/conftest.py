"""A clean Debian that runs, with three versions of the package lying in /srv."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import paths
from machine import Machine, make, run


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


@pytest.fixture
def installed(machine: Machine) -> Iterator[Machine]:
    """The machine with the package, and without any trace of it afterwards."""
    machine.run("dpkg", "-i", "/srv/0.1.0")
    yield machine
    machine.ask("dpkg", "--purge", "nereid")
    machine.run("systemctl", "reset-failed")
    run("rm", "-rf", *(machine.root / each for each in ("var/lib/nereid", "etc/nereid", "run/systemd/system/nereid.service.d", "etc/systemd/system/nereid.service.d")))
