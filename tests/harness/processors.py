"""Which processors processes run on."""

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def on(processors: set[int]) -> Iterator[None]:
    """What is started meanwhile runs there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def shared() -> tuple[set[int], set[int]]:
    """Those of servers and those of their clients: all, for both."""
    there = os.sched_getaffinity(0)
    return there, set(there)


def apart() -> tuple[set[int], set[int]]:
    """Those of servers, and the last one for their clients, as if these had a machine of their own. Shared where there is only one."""
    there = sorted(os.sched_getaffinity(0))
    return (set(there[:-1]), set(there[-1:])) if len(there) > 1 else shared()
