"""The budget and the network threads follow the limits of the control groups around the server: groups of the test's own, where this
machine lets some be made, else those that are there."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from harness import procfs, rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid

MEMORY = 1 << 30
ROOT = Path("/sys/fs/cgroup")
# Of each version: where groups lie, and what makes one of 1 GiB or of one core.
LIMITS = {
    "v2": [(ROOT, {"memory.max": str(MEMORY), "cpu.max": "100000 100000"})],
    "v1": [
        (ROOT / "memory", {"memory.limit_in_bytes": str(MEMORY)}),
        (ROOT / "cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}),
    ],
}


@pytest.fixture
def groups() -> Iterator[list[Path]]:
    """Groups without limits of their own in groups that have some; none where they cannot be made."""
    made: list[Path] = []
    version = "v2" if (ROOT / "cgroup.controllers").exists() else "v1"
    try:
        for place, limits in LIMITS[version]:
            outer = place / f"nereid-test-{os.getpid()}"
            for folder in (outer, outer / "inner"):
                folder.mkdir()
                made.append(folder)
            for name, value in limits.items():
                (outer / name).write_text(value)
        found = [folder for folder in made if folder.name == "inner"]
    except OSError:
        found = []
    try:
        yield found
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


class Grouped(Nereid):
    """Starts in these groups."""

    groups: tuple[Path, ...] = ()

    def program(self) -> list[str]:
        enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in self.groups)
        return ["/bin/sh", "-c", f'{enter} exec "$0" "$@"', *super().program()]


def _loops(server: Nereid) -> int:
    return sum(name.startswith("loop") for name in procfs.names_of_threads(server.pid))


def _budget(server: Nereid) -> int:
    page = rawhttp.request(HOST, server.metrics_port, "GET", "/metrics").body.decode()
    return int(float(next(line.split()[1] for line in page.splitlines() if line.startswith("nereid_budget_limit_bytes"))))


def _memory_around() -> int:
    """What the machine has, or the smallest limit of the groups that this process is in."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        mount, name = (ROOT / "memory", "memory.limit_in_bytes") if controllers == "memory" else (ROOT, "memory.max")
        inner = mount / group.lstrip("/")
        for folder in [inner, *inner.parents]:
            with suppress(OSError, ValueError):  # not shown in a container; "max"
                found.append(int((folder / name).read_text()))
    return min(found)


def test_limits_of_the_groups_around(tmp_path: Path, groups: list[Path]) -> None:
    Grouped.groups = tuple(groups)
    with Grouped(Repository(tmp_path / "models").path) as server:
        if groups:
            assert (_budget(server), _loops(server)) == (MEMORY // 2, 1)
        else:
            assert _budget(server) == _memory_around() // 2
