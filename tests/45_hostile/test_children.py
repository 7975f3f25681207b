"""Processes of isolated models that mean harm to their server: what they say is held within the budget, and others do not feel it."""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import ASAN
from harness import paths, procfs, rawhttp
from harness.processors import on
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server
from siege import ADDRESS_SANITIZED, OURS, THEIRS, Allowed, Siege, besiege, memory_bytes

BUDGET = 64 << 20
# What the plugin does: tests/49_isolation/plugins/hostile.c.
STRINGS, PARK, ANNOUNCE = -1, -2, -3
CONFIG = """
backend: "hostile"
max_batch_size: 0
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]
parameters { key: "ISOLATION" value { string_value: "process" } }
parameters { key: "ISOLATION_EXECUTE_TIMEOUT_SECS" value { string_value: "60" } }
"""


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("children") / "models")
    repository.identity("id_fp32")
    library = paths.need(paths.BUILD / "tests" / "backends" / "hostile" / "libtriton_hostile.so")
    for name in ("strings", "park", "announce"):
        model = repository.model(name, CONFIG)
        (model / library.name).symlink_to(library)
    options = {"log-info": "false", "memory-budget": str(BUDGET)}
    env = {"ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), ASAN]))}
    with contextlib.ExitStack() as stack:
        with on(OURS):
            server = stack.enter_context(Nereid(repository.path, options, env=env))
        stack.enter_context(on(THEIRS))
        yield server


@pytest.fixture
def siege(besieged: Server, record_property: Callable[[str, object], None]) -> Iterator[Siege]:
    with besiege(besieged, record_property, allowed=Allowed(3.0)) as it:
        yield it


def text(deed: int) -> bytes:
    return json.dumps({"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [deed]}]}).encode()


def ask(server: Server, model: str, deed: int) -> rawhttp.Answer:
    return rawhttp.request(HOST, server.http_port, "POST", f"/v2/models/{model}/infer", body=text(deed), timeout=240)


def bound(siege: Siege) -> int:
    """What the server may take more than before: the budget and a fifth, and what a sanitizer keeps of what was freed."""
    return siege.memory + BUDGET * 6 // 5 + ((32 << 20) if ADDRESS_SANITIZED else 0)


def banish(pid: int) -> None:
    """Processes of models are the attackers here: they run where attackers do."""
    for child in procfs.children(pid):
        for task in Path(f"/proc/{child}/task").iterdir():
            os.sched_setaffinity(int(task.name), THEIRS)


@contextlib.contextmanager
def asking(siege: Siege, model: str, deed: int) -> Iterator[Callable[[], None]]:
    """Asks for the deed again and again, one request at a time, without waiting for the answer."""
    path = f"/v2/models/{model}/infer"
    sent = rawhttp.head("POST", path, body=text(deed)) + text(deed)
    connection = socket.create_connection((HOST, siege.server.http_port), timeout=240)

    def step() -> None:
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            if connection.recv(1 << 20):
                connection.setblocking(True)
                connection.sendall(sent)

    banish(siege.server.pid)
    connection.sendall(sent)
    yield step
    connection.close()


def test_records_that_wait_for_ever(siege: Siege) -> None:
    """The process sends 1,500 MiB about its request out of order."""
    siege.honest_meanwhile(lambda: asking(siege, "park", PARK), look=siege.look)
    answer = ask(siege.server, "park", 0)
    assert answer.status == 200
    assert siege.peak <= bound(siege), f"{siege.peak >> 20} MiB, {siege.memory >> 20} before"


def test_what_a_process_makes_the_server_hold(siege: Siege) -> None:
    """The first request of a process is the one that the plugin knows the number of: it is refused, and no other is."""
    server = siege.server
    os.kill(next(pid for pid in procfs.children(server.pid) if b"'park'" in Path(f"/proc/{pid}/cmdline").read_bytes()), 9)
    found: list[rawhttp.Answer] = []

    def until_it_had_it() -> None:
        while not found or found[-1].status == 500 or b"is not ready" in found[-1].body:
            found.append(ask(server, "park", PARK))

    thread = threading.Thread(target=until_it_had_it)
    thread.start()
    while thread.is_alive():
        siege.look()
        thread.join(0.02)  # allowed: ends when the thread does, and memory is looked at meanwhile
    assert siege.peak <= bound(siege), f"{siege.peak >> 20} MiB, {siege.memory >> 20} before"
    assert found[-1].status == 503 and "out of order" in found[-1].json()["error"], found[-1].body
    assert ask(server, "park", 0).status == 200


def test_long_messages_that_are_announced(siege: Siege) -> None:
    """Each socket of the process begins a message of 60 MiB and does not go on."""
    siege.honest_meanwhile(lambda: asking(siege, "announce", ANNOUNCE), look=siege.look)
    assert siege.peak <= bound(siege), f"{siege.peak >> 20} MiB, {siege.memory >> 20} before"
    assert memory_bytes(siege.server.pid) <= bound(siege)


def test_lengths_that_change_after_they_were_checked(siege: Siege) -> None:
    """The answer is right, or refused, and both happen; the server lives."""
    right = refused = 0
    deadline = time.monotonic() + 120  # by far the most are right
    while right + refused < 200 or (not (right and refused) and time.monotonic() < deadline):
        answer = ask(siege.server, "strings", STRINGS)
        if answer.status == 200:
            (string,) = answer.json()["outputs"][0]["data"]
            assert set(string) == {"x"}
            right += 1
        else:
            assert "does not match size of output" in answer.json()["error"]
            refused += 1
    assert right and refused, (right, refused)
    assert ask(siege.server, "strings", 0).status == 200  # and its thread ends
