"""A server that may have many descriptors open, and a siege of it per test."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.servers import Nereid, Server
from siege import OURS, THEIRS, Siege, besiege, descriptors, on

DESCRIPTORS = 20000
# What was freed goes back to the system soon, so that memory can be watched under the sanitizer too.
ASAN = "quarantine_size_mb=4:thread_local_quarantine_size_kb=64:allocator_release_to_os_interval_ms=0"


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
