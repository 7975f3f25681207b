"""Models that run in processes of their own, and looks at these processes."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from harness import paths, rawhttp
from harness.pause import pause
from harness.procfs import children, links, processes
from harness.repository import Repository
from harness.servers import HOST, Nereid

# What the first number of a request to the backend `crasher` means (plugins/crasher.c).
SEGFAULT, ABORT, EXIT, KILL, HANG, FAIL = -1, -2, -3, -4, -5, -6
ANSWER_AND_DIE, FORK_AND_DIE, AWAIT_CANCEL, GARBAGE, SAY, LATER = -7, -8, -9, -10, -11, -12
PARAMETERS, OUTPUT_ERROR, TELL_IDS, RELEASE_AND_DIE, HANG_WHEN_ENDED = -13, -14, -15, -16, -17
RESCHEDULE, REPEAT = -18, -100

# A sanitizer has tables of its own for what was once in use, and makes everything slower.
THREAD_SANITIZED = b"__tsan_init" in paths.nereid_binary().read_bytes()
SANITIZED = THREAD_SANITIZED or b"__asan_init" in paths.nereid_binary().read_bytes()
SLACK = (64 << 20) if SANITIZED else (2 << 20)

ISOLATED = {"ISOLATION": "process"}

# The sanitizer would catch what shall kill the process, and say so in the log; what was freed it keeps no longer than it must.
_QUIET = "handle_segv=0:handle_abort=0"
_LEAN = "quarantine_size_mb=4:thread_local_quarantine_size_kb=64:allocator_release_to_os_interval_ms=200"
QUIET_CRASHES = {
    "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:{_QUIET}:{_LEAN}",
    "TSAN_OPTIONS": f"{os.environ.get('TSAN_OPTIONS', '')}:{_QUIET}",
}


def parameters(values: dict[str, str]) -> str:
    return "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in values.items()
    )


def crasher(
    repository: Repository,
    name: str,
    values: dict[str, str] | None = None,
    extra: str = "",
    batch: int = 0,
    dims: str = "-1",
) -> Path:
    config = f'name: "{name}"\nbackend: "crasher"\nmax_batch_size: {batch}\n'
    for kind in ("input", "output"):
        config += f'{kind} [ {{ name: "{kind.upper()}0" data_type: TYPE_INT32 dims: [ {dims} ] }} ]\n'
    config += extra + parameters(ISOLATED if values is None else values)
    return with_library(repository.model(name, config))


def with_library(model: Path) -> Path:
    library = paths.need(paths.BUILD / "tests" / "backends" / "crasher" / "libtriton_crasher.so")
    (model / library.name).symlink_to(library)
    return model


def body(numbers: list[int], rows: bool = False, **more: object) -> bytes:
    shape = [1, len(numbers)] if rows else [len(numbers)]
    tensor = {"name": "INPUT0", "datatype": "INT32", "shape": shape, "data": numbers}
    return json.dumps({"inputs": [tensor], **more}).encode()


def ask(server: Nereid, model: str, numbers: list[int], timeout: float = 120, **more: object) -> rawhttp.Answer:
    return rawhttp.request(
        HOST, server.http_port, "POST", f"/v2/models/{model}/infer", body=body(numbers, **more), timeout=timeout
    )


def answers(server: Nereid, model: str) -> bool:
    answer = ask(server, model, [7, 8])
    return answer.status == 200 and answer.json()["outputs"][0]["data"] == [7, 8]


def ready(server: Nereid, model: str | None = None) -> bool:
    path = f"/v2/models/{model}/ready" if model else "/v2/health/ready"
    return rawhttp.request(HOST, server.http_port, "GET", path).status == 200


def until(what: Callable[[], bool], seconds: float = 120) -> float:
    """Asks again and again; returns how long it took."""
    begun = time.monotonic()
    while not what():
        assert time.monotonic() < begun + seconds, "it does not happen"
        pause(0.005)
    return time.monotonic() - begun


def process_of(server: Nereid, model: str) -> int:
    """The process that a model runs in."""
    for child in children(server.pid):
        try:
            if f"'{model}'".encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    raise AssertionError(f"no process of {model}")


def group_members(pgid: int) -> list[int]:
    """The processes of a group, but for those that ended and only wait to be reaped."""
    return [pid for pid, (state, _, group, *_) in processes() if int(group) == pgid and state != "Z"]


def shared_memory(pid: int) -> int:
    """How many pieces of memory that is shared with isolated models a process has mapped or open."""
    maps = Path(f"/proc/{pid}/maps").read_text().count("memfd:nereid-")
    return maps + sum("memfd:nereid-" in link for link in links(pid))


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
