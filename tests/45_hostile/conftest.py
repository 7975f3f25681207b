"""A server that may have many descriptors open, and a siege of it per test."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.processors import on
from harness.servers import Nereid, Server
from siege import FULL, OURS, THEIRS, Siege, besiege, descriptors

DESCRIPTORS = 20000
# Nothing here switches a check off. What was freed is watched up to 4 MiB instead of 256, so that it goes back to the system while the
# test looks. Of the calls that led to an allocation three are kept instead of thirty: each way that has not been seen touches a page of the
# sanitizer's table, and an attack takes other ways than its victims.
ASAN = "quarantine_size_mb=4:thread_local_quarantine_size_kb=64:allocator_release_to_os_interval_ms=0:malloc_context_size=3"


@pytest.fixture(scope="module")
def besieged(identity_repository: Path) -> Iterator[Server]:
    descriptors(DESCRIPTORS)
    options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), ASAN]))
    with contextlib.ExitStack() as stack:
        with on(OURS):
            server = stack.enter_context(Nereid(identity_repository, {"log-info": "false"}, env={"ASAN_OPTIONS": options}))
        stack.enter_context(on(THEIRS))
        yield server


@pytest.fixture
def siege(besieged: Server, record_property: Callable[[str, object], None]) -> Iterator[Siege]:
    with besiege(besieged, record_property) as it:
        yield it


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was measured, a line an attack."""
    if not FULL:
        return
    terminalreporter.section("quiet -> attacked: p99 of others in ms")
    terminalreporter.write_line("turns that the hypervisor spoilt; seconds that threads of server+client were ready and waited for a processor")
    terminalreporter.write_line("memory of the server in KiB before, under attack, after")
    for reports in terminalreporter.stats.values():
        for report in reports:
            noted = dict(getattr(report, "user_properties", ()))
            if getattr(report, "when", "") != "teardown" or "memory_kib_after" not in noted:
                continue
            name = report.nodeid.split("::")[-1].removeprefix("test_")
            latency = "; ".join(f"{kind} {noted.get(f'{kind}_paced_p99_ms')}" for kind in ("http", "grpc"))
            before, end, after = (noted[f"memory_kib_{when}"] for when in ("before", "under_attack", "after"))
            rss = f"{noted['rss_kib_before']} -> {noted['rss_kib_after']}"
            spoilt = f"{noted.get('turns_left_out')} left out, waited {noted.get('waited_s')}"
            line = f"{name:45} {latency}; {spoilt}; {before}, {end}, {after} ({after / before:.3f} times; rss {rss})"
            terminalreporter.write_line(line)
