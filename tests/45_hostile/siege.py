"""A server under attack: an honest client measures before and during it, memory is looked at before and after."""

import contextlib
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import paths, processors, procfs
from harness.pause import pause
from harness.processors import on
from harness.servers import Server

FULL = os.environ.get("NEREID_HOSTILE_FULL") == "1"
ROUNDS = 1000 if FULL else 300
ADDRESS_SANITIZED = b"__asan_init" in paths.nereid_binary().read_bytes()
THREAD_SANITIZED = b"__tsan_init" in paths.nereid_binary().read_bytes()
SANITIZED = ADDRESS_SANITIZED or THREAD_SANITIZED
# In the long run the server has the processors but for the last one, and all clients have that one: they have machines of their own, and what
# they compute there is not what is measured. Who is honest shares it with the attacker, and what it waits for it is not counted; beside the
# server it would be counted faster than it is, since what the server does as soon as it was asked would be such a wait.
OURS, THEIRS = processors.apart() if FULL else processors.shared()
# What an honest client may have to wait for on a machine that does other things besides, in ms: a server that
# does the attacker's work first, or blocks a loop, is far beyond it.
PATIENCE_MS = 1500 if SANITIZED else 400
# So often they look whether they are answered soon, if they were not: a machine that stands still delays some of their requests, such a
# server delays them whenever they look.
LOOKS = 3
# In the long run: rounds a second of an honest client that does not wait for its answers before it asks again, how many of them without
# attack and as many with it, and in how many turns of both: what else the machine does falls into both.
RATE = 60
COMPARED = 960
TURNS = 8
RATIO = 2.0  # the p99 under attack may be so many times the quiet one, where an attack is allowed no more
# A window from which the hypervisor took more than this share of the processors' time has measured the hypervisor. Its turn is left out, both
# windows, whatever they say, and taken again; for so many seconds, then the machine is not fit to measure on.
STOLEN = 0.005
PATIENCE_S = 1800
IDLE_NS = 3_000_000  # a server that has no more to do takes less of a processor in a tenth of a second

# Memory may be a tenth more than it was, in the short run and some MiB. The thread sanitizer keeps what was freed.
KEPT = 2.0 if THREAD_SANITIZED else 1.1
SLACK = (64 << 20) if THREAD_SANITIZED else 0 if FULL else (8 << 20) if ADDRESS_SANITIZED else (2 << 20)
# What the address sanitizer notes about each eight bytes that ever belonged to its heap; it never gives back what it notes of small
# objects, since it would not see then that somebody uses them although they were freed.
SHADOW = (0x7FFF8000, 0x10007FFF8000)


Step = Callable[[], None]
Attack = Callable[[], contextlib.AbstractContextManager[Step]]


def nothing() -> None:
    pass


def steps(step: Step) -> Attack:
    """An attack that holds nothing from one of its steps to the next."""
    return lambda: contextlib.nullcontext(step)


def memory_bytes(pid: int) -> int:
    """What a server holds. Pages of its own file are left out: they come when they are used first, and go as the machine likes."""
    return procfs.rss_bytes_outside(pid, *SHADOW) if ADDRESS_SANITIZED else procfs.anonymous_bytes(pid, ("RssShmem",))


def descriptors(count: int) -> None:
    """Lets this process, and the servers that it starts from now on, open so many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))  # only root may
    elif soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


@dataclass
class Latency:
    http_p99: float
    grpc_p99: float

    @staticmethod
    def of(report: dict[str, list[float]]) -> "Latency":
        return Latency(*(sorted(report[kind])[len(report[kind]) * 99 // 100] for kind in ("http", "grpc")))


@dataclass
class Window:
    """What honest clients waited for their answers, in ms, and what they and the server lacked meanwhile, in seconds."""

    took: dict[str, list[float]]
    seconds: float
    stolen: float  # the hypervisor gave it to others
    server_waited: float  # its threads were ready and had no processor
    client_waited: float


@dataclass
class Side:
    """The windows with attack, or those without."""

    windows: list[Window]

    def latency(self) -> Latency:
        return Latency.of({kind: [ms for window in self.windows for ms in window.took[kind]] for kind in ("http", "grpc")})

    def waited(self) -> str:
        return "+".join(f"{sum(getattr(each, who) for each in self.windows):.2f}" for who in ("server_waited", "client_waited"))


@dataclass
class Allowed:
    """What an attack may do to others and leave behind."""

    ratio: float = RATIO
    kept: int = 0  # bytes


class Siege:
    def __init__(self, server: Server, note: Callable[[str, object], None], short: bool, allowed: Allowed):
        self.server = server
        self.note = note
        self.allowed = allowed
        script = Path(__file__).with_name("honest_client.py")
        with on(THEIRS):
            self._honest = subprocess.Popen(
                [sys.executable, str(script), server.http, server.grpc, *["short"] * short],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        self._measure(ROUNDS, nothing)  # warm
        self.sockets = procfs.sockets(server.pid)
        self.quiet = self._measure(ROUNDS, nothing)
        self.memory = self.peak = self._settled() if FULL else memory_bytes(server.pid)
        self.resident = procfs.rss_bytes(server.pid)

    def close(self) -> None:
        assert self._honest.stdin and self._honest.stdout
        self._honest.stdin.close()
        status = self._honest.wait(60)
        self._honest.stdout.close()
        assert status == 0, f"the honest client ended with status {status}"

    def look(self) -> None:
        self.peak = max(self.peak, memory_bytes(self.server.pid))

    def _settled(self) -> int:
        """The memory of the server once it has not become less for five seconds: what it keeps warm is gone then."""
        least, since = memory_bytes(self.server.pid), time.monotonic()
        while time.monotonic() < since + 5:
            pause(0.2)
            now = memory_bytes(self.server.pid)
            if now < least:
                least, since = now, time.monotonic()
        return least

    def _measure(self, rounds: int, step: Step) -> Latency:
        return Latency.of(self._report(f"measure {rounds}", step))

    def _report(self, order: str, step: Step) -> dict[str, list[float]]:
        """The honest client asks; meanwhile `step` is called again and again, and must return soon."""
        assert self._honest.stdin and self._honest.stdout
        self._honest.stdin.write(f"{order}\n".encode())
        self._honest.stdin.flush()
        deadline = time.monotonic() + 240
        poller = select.poll()
        poller.register(self._honest.stdout, select.POLLIN)
        while not poller.poll(5):
            step()
            assert time.monotonic() < deadline, "the honest client has no answers after four minutes"
        report: dict[str, list[float]] = json.loads(self._honest.stdout.readline())
        assert not report["wrong"], report["wrong"][:5]
        return report

    def _window(self, rounds: int, step: Step) -> Window:
        pids = (self.server.pid, self._honest.pid)
        begun, machine = time.monotonic(), procfs.machine_time()
        before = [procfs.waits(pid) for pid in pids]
        took = self._report(f"pace {rounds} {RATE}", step)
        self.look()
        waited = [procfs.waited_since(old, procfs.waits(pid)) for pid, old in zip(pids, before, strict=True)]
        return Window(took, time.monotonic() - begun, (procfs.machine_time() - machine).steal, *waited)

    def _alone(self) -> None:
        """Waits until the server has closed all that the attack had opened, and has no more to do."""
        deadline = time.monotonic() + 60
        used, busy = procfs.cpu_ns(self.server.pid), True
        while (now := procfs.sockets(self.server.pid)) > self.sockets or busy:
            assert time.monotonic() < deadline, f"a minute after the attack: busy {busy}, {now} sockets, {self.sockets} before"
            pause(0.1)
            before, used = used, procfs.cpu_ns(self.server.pid)
            busy = used - before > IDLE_NS

    def _turn(self, attack: Attack, rounds: int) -> tuple[Window, Window]:
        """Without the attack, and with it."""
        self._alone()
        quiet = self._window(rounds, nothing)
        with attack() as step:
            return quiet, self._window(rounds, step)

    def _compare(self, attack: Attack, turns: int) -> None:
        fit: list[tuple[Window, Window]] = []
        left_out: list[float] = []
        begun = time.monotonic()
        while len(fit) < turns:
            turn = self._turn(attack, COMPARED // turns)
            stolen = max(window.stolen / window.seconds for window in turn) / (os.cpu_count() or 1)
            if stolen <= STOLEN:
                fit.append(turn)
                continue
            left_out.append(stolen)
            assert time.monotonic() < begun + PATIENCE_S, f"the hypervisor takes shares of {left_out} of turns: nothing can be measured"
        quiet, attacked = (Side([turn[side] for turn in fit]) for side in (0, 1))
        self.note("turns_left_out", len(left_out))
        self.note("waited_s", f"{quiet.waited()} -> {attacked.waited()}")
        self._within_ratio(quiet.latency(), attacked.latency())

    def _within_ratio(self, quiet: Latency, attacked: Latency) -> None:
        late = []
        for kind in ("http", "grpc"):
            base, now = getattr(quiet, f"{kind}_p99"), getattr(attacked, f"{kind}_p99")
            self.note(f"{kind}_paced_p99_ms", f"{base:.2f} -> {now:.2f}, {now / base:.2f} times")
            if now > self.allowed.ratio * base:
                late.append(f"{kind}: p99 {base:.1f} -> {now:.1f} ms")
        assert not late, late

    def _late(self, under: Latency) -> list[str]:
        late = []
        for kind in ("http", "grpc"):
            quiet, attacked = (getattr(latency, f"{kind}_p99") for latency in (self.quiet, under))
            self.note(f"{kind}_p99_ms_quiet", round(quiet, 2))
            self.note(f"{kind}_p99_ms_under_attack", round(attacked, 2))
            if attacked >= max(PATIENCE_MS, 20 * quiet):
                late.append(f"{kind}: p99 {quiet:.1f} -> {attacked:.1f} ms")
        return late

    def answered_soon(self, step: Step) -> None:
        """Honest clients are answered rightly, and soon, while the attack goes on by its steps."""
        looks = 1
        while (late := self._late(self._measure(ROUNDS, step))) and looks < LOOKS:
            looks += 1
        assert not late, late
        self.look()

    def honest_meanwhile(self, attack: Attack, turns: int = TURNS, look: Step = nothing) -> None:
        """Honest clients are answered rightly and soon under the attack; in the long run as soon as without it, in so many turns of both.
        look: what is watched besides. Not while latencies are compared: to read how large a process is holds it up."""
        with attack() as step:

            def step_and_look() -> None:
                step()
                look()

            step_and_look()
            self.answered_soon(step_and_look)
        if FULL:
            self._compare(attack, turns)

    def recovered(self, seconds: float = 120) -> None:
        """The attack is over: the server lives, answers, and gives the memory back."""
        self._measure(20, nothing)
        bound = max(self.memory * KEPT, self.memory + max(SLACK, self.allowed.kept))
        begun = time.monotonic()
        now = memory_bytes(self.server.pid)
        while now > bound and time.monotonic() < begun + seconds:
            pause(0.2)
            now = memory_bytes(self.server.pid)
        self.note("memory_kib_before", self.memory >> 10)
        self.note("memory_kib_under_attack", self.peak >> 10)
        self.note("memory_kib_after", now >> 10)
        self.note("rss_kib_before", self.resident >> 10)
        self.note("rss_kib_after", procfs.rss_bytes(self.server.pid) >> 10)
        assert now <= bound, f"memory {self.memory >> 10} KiB before, {now >> 10} KiB after"


ALLOWED = Allowed()


@contextlib.contextmanager
def besiege(server: Server, note: Callable[[str, object], None], short: bool = False, allowed: Allowed = ALLOWED) -> Iterator[Siege]:
    """short: the honest client asks for nothing that is long, as where others have spent the budget"""
    siege = Siege(server, note, short, allowed)
    try:
        yield siege
        siege.recovered()
    finally:
        siege.close()
