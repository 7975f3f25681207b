"""Processes that die: who is answered what, who loses nothing, and what is left behind."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from harness import procfs, rawhttp
from harness.procfs import children
from harness.repository import Repository
from harness.servers import HOST, Nereid
from isolated import (
    ABORT, ANSWER_AND_DIE, EXIT, FORK_AND_DIE, GARBAGE, KILL, LATER, QUIET_CRASHES, RELEASE_AND_DIE, SANITIZED, SEGFAULT,
    SLACK, answers, ask, body, crasher, descriptors, group_members, process_of, ready, shared_memory, until,
)

CRASHES = 100
ANSWERED_WITHIN = 1  # second, of the request that was lost in a crash, less what one thread waited for a processor that others had
DEADLY = {SEGFAULT: "signal 11", ABORT: "signal 6", EXIT: "exit status 7", KILL: "signal 9", FORK_AND_DIE: "signal 9"}


class Watch:
    """The time since it was made, less that in which one thread, of the server or of this process, was ready and had no processor: the one
    that lacked it for the longest. What several threads lacked at a time adds up to more than the time that went by."""

    def __init__(self, server: Nereid):
        self.pids = (server.pid, os.getpid())
        self.waits, self.begun = [procfs.waits(pid) for pid in self.pids], time.monotonic()

    def seconds(self) -> float:
        took = time.monotonic() - self.begun
        return took - max(procfs.longest_wait_since(old, procfs.waits(pid)) for pid, old in zip(self.pids, self.waits, strict=True))


@dataclass
class Load:
    """Clients that ask one model again and again, each over a connection of its own."""

    server: Nereid
    model: str
    clients: int
    numbers: list[int]
    rows: bool = False  # as a batch of one
    statuses: Counter = field(default_factory=Counter)
    lost: list[float] = field(default_factory=list)  # seconds until each answer that is no good one
    wrong: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def run(self) -> None:
        sent = body(self.numbers, self.rows)
        with rawhttp.Connection(HOST, self.server.http_port) as connection:
            while not self.stop.is_set():
                watch = Watch(self.server)
                answer = connection.ask("POST", f"/v2/models/{self.model}/infer", sent)
                if answer.status != 200:
                    self.lost.append(watch.seconds())
                self.statuses[answer.status] += 1
                if answer.status == 200:
                    if answer.json()["outputs"][0]["data"] != self.numbers:
                        self.wrong.append(answer.body.decode())
                elif f"model '{self.model}'" not in answer.json()["error"]:
                    self.wrong.append(answer.body.decode())

    def __enter__(self) -> "Load":
        self.threads = [threading.Thread(target=self.run) for _ in range(self.clients)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def server(repository: Repository) -> Iterator[Nereid]:
    crasher(repository, "fragile", extra="instance_group { count: 4 kind: KIND_CPU }\n")
    crasher(repository, "large")
    crasher(repository, "batched", batch=8, extra="dynamic_batching { }\ninstance_group { count: 2 }\n")
    crasher(repository, "many", extra="model_transaction_policy { decoupled: true }\n")
    repository.identity("steady", "INT32")
    with Nereid(repository.path, env=QUIET_CRASHES) as server:
        yield server
        until(lambda: len(children(server.pid)) == 4)
        left = children(server.pid)
    until(lambda: not any(group_members(pid) for pid in left))


def test_a_hundred_crashes_under_load(server: Nereid) -> None:
    """Each request that is lost, the load's own too, is answered within a second, and nothing of the processes stays."""
    for model in ("fragile", "steady"):
        assert ask(server, model, [1]).status == 200
    until(lambda: ready(server))
    before = (descriptors(server.pid), shared_memory(server.pid), procfs.threads(server.pid))
    memory = procfs.memory(server.pid).pss
    first = process_of(server, "fragile")
    deadly = list(DEADLY)
    seen = {first}
    late: list[float] = []
    with Load(server, "steady", 3, [5, 6, 7]) as steady, Load(server, "fragile", 3, [1, 2, 3]) as fragile:
        for crash in range(CRASHES):
            until(lambda: answers(server, "fragile"))
            seen.add(process_of(server, "fragile"))
            watch = Watch(server)
            answer = ask(server, "fragile", [deadly[crash % len(deadly)]])
            late.append(watch.seconds())
            assert answer.status == 500, answer.body
            error = answer.json()["error"]
            assert "model 'fragile' version 1: its process" in error
            # Who waits is answered even when the end of the process takes its time.
            assert DEADLY[deadly[crash % len(deadly)]] in error or "crashed while it had the request" in error
            until(lambda crash=crash: fragile.statuses[200] > crash + 1)
        until(lambda: answers(server, "fragile"))

    assert len(seen) >= CRASHES
    assert set(steady.statuses) == {200} and not steady.wrong, "another model lost something"
    assert set(fragile.statuses) <= {200, 500, 503} and not fragile.wrong
    assert fragile.statuses[500], "the load lost nothing"
    assert max(late + fragile.lost) < ANSWERED_WITHIN, sorted(late + fragile.lost)[-10:]

    mine = process_of(server, "fragile")
    until(lambda: not any(group_members(pid) for pid in seen - {mine}))  # none is left behind
    until(lambda: len(children(server.pid)) == 4)
    until(lambda: (descriptors(server.pid), shared_memory(server.pid), procfs.threads(server.pid)) <= before)
    until(lambda: procfs.memory(server.pid).pss < memory + SLACK)


@pytest.mark.parametrize("deed", [ANSWER_AND_DIE, RELEASE_AND_DIE])
def test_a_request_is_answered_once_however_it_ends(server: Nereid, deed: int) -> None:
    answer = ask(server, "fragile", [deed])
    assert answer.status == 500 and "model 'fragile'" in answer.json()["error"]
    until(lambda: answers(server, "fragile"))


def test_large_tensors_in_flight(server: Nereid) -> None:
    """Answers that lie in the memory of a process that is gone are whole."""
    numbers = list(range(60_000))
    with Load(server, "large", 2, numbers) as load:
        for _ in range(5):
            until(lambda: answers(server, "large"))
            assert ask(server, "large", [KILL]).status == 500
    assert not load.wrong
    until(lambda: answers(server, "large"))
    child = process_of(server, "large")
    until(lambda: "memfd" not in _resident(child))


def _resident(pid: int) -> str:
    """The shared memory that takes pages in a process."""
    rows, name = [], ""
    with open(f"/proc/{pid}/smaps") as smaps:
        for line in smaps:
            if "-" in line.split(" ")[0]:
                name = line
            elif line.startswith("Rss:") and int(line.split()[1]) > 64 and "memfd:nereid-" in name:
                rows.append(name)
    return "".join(rows)


def test_a_batch_is_lost_as_a_whole(server: Nereid) -> None:
    with Load(server, "batched", 6, [4, 5], rows=True) as load:
        for number in range(1000):
            if number >= 10 and load.statuses[200] and load.statuses[500]:
                break
            until(lambda: ready(server, "batched"))
            answer = rawhttp.request(
                HOST, server.http_port, "POST", "/v2/models/batched/infer", body=body([KILL, 1], rows=True)
            )
            assert "model 'batched' version 1" in answer.json()["error"]
            assert answer.status in (500, 503)  # allowed: the process may have ended by a batch of the others before it had this one
        until(lambda: ready(server, "batched"))
    assert set(load.statuses) == {200, 500} or set(load.statuses) == {200, 500, 503}
    assert not load.wrong
    assert max(load.lost) < ANSWERED_WITHIN, sorted(load.lost)[-10:]


def test_killed_from_outside_while_idle(server: Nereid) -> None:
    old = process_of(server, "fragile")
    os.kill(old, signal.SIGKILL)
    until(lambda: not group_members(old))
    until(lambda: answers(server, "fragile"))
    assert process_of(server, "fragile") != old


def test_late_answers_are_lost_with_the_process(server: Nereid) -> None:
    assert ask(server, "fragile", [LATER, 1]).status == 200
    assert ask(server, "fragile", [KILL]).status == 500
    until(lambda: answers(server, "fragile"))


def test_a_process_that_talks_garbage_is_ended(server: Nereid) -> None:
    old = process_of(server, "fragile")
    assert ask(server, "fragile", [GARBAGE]).status == 500
    # Who waits is answered even when the end of the process takes its time; the log tells all.
    until(lambda: f"{old} ended: signal 9 (Killed), after it broke the protocol" in server.process.log())
    until(lambda: answers(server, "fragile"))
    until(lambda: not group_members(old))


def test_the_log_tells_how_it_ended(server: Nereid) -> None:
    for deed, words in DEADLY.items():
        ask(server, "fragile", [deed])
        until(lambda words=words: f"ended: {words}" in server.process.log())
        until(lambda: answers(server, "fragile"))


def test_readiness_follows_the_process(repository: Repository) -> None:
    """It cannot be started again while its library is away."""
    library = crasher(repository, "fragile") / "libtriton_crasher.so"
    with Nereid(repository.path, env=QUIET_CRASHES) as server:
        assert ready(server) and ready(server, "fragile")
        library.rename(library.with_suffix(".away"))
        assert ask(server, "fragile", [KILL]).status == 500
        until(lambda: not ready(server) and not ready(server, "fragile"))
        library.with_suffix(".away").rename(library)
        until(lambda: ready(server) and ready(server, "fragile"))
        assert answers(server, "fragile")
