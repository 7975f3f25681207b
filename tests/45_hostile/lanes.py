"""What waits in the lanes of a server's loops: each lane is an epoll descriptor that another one watches, a slow one for one event at a
time."""

import re
import select
import time
from collections.abc import Callable
from pathlib import Path

from harness.pause import pause


def _watched(pid: int) -> dict[int, dict[int, int]]:
    """What each epoll descriptor of the process watches, and for which events."""
    found = {}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if entry.readlink().name != "anon_inode:[eventpoll]":
                continue
            text = Path(f"/proc/{pid}/fdinfo/{entry.name}").read_text()
        except FileNotFoundError:
            continue
        found[int(entry.name)] = {int(fd): int(events, 16) for fd, events in re.findall(r"^tfd:\s+(\d+) events:\s+([0-9a-f]+)", text, re.MULTILINE)}
    return found


def members(pid: int, slow: bool = True) -> set[int]:
    """Of slow lanes, or of busy ones."""
    watched = _watched(pid)
    inner = {fd for fds in watched.values() for fd, events in fds.items() if fd in watched and bool(events & select.EPOLLONESHOT) == slow}
    return {fd for lane in inner for fd in watched[lane]}


def wait_for(pid: int, wanted: Callable[[set[int]], bool], what: str, slow: bool = True) -> set[int]:
    """The members, once they are as wanted."""
    deadline = time.monotonic() + 60
    while not wanted(now := members(pid, slow)):
        assert time.monotonic() < deadline, f"{what}: {len(now)} in {'slow' if slow else 'busy'} lanes"
        pause(0.005)
    return now
