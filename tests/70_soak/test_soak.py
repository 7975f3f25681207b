"""Long ordinary work: clients that ask all the time over every protocol, models that come and go, processes that are killed, people who make
mistakes; of a server without TLS and one with. Every answer is right, and in the end each takes what it took after ten minutes, or after the
first quarter of a run of less than half an hour: memory, threads, descriptors. All of it is drawn in soak.html in the build tree.

NEREID_SOAK_SECONDS  how long (60)
NEREID_SOAK_PACE     how much of a processor the servers and their clients take together, at most (0.33)
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import work
from harness import paths, ports, procfs, tls
from harness.pause import pause
from harness.servers import Nereid
from work import Doors, Work

SECONDS = float(os.environ.get("NEREID_SOAK_SECONDS", "60"))
PACE = float(os.environ.get("NEREID_SOAK_PACE", "0.33"))
CLIENTS = Path(__file__).resolve().parents[1] / "40_e2e" / "echo_clients.py"
GAP = "1"  # seconds between two questions of one of its clients
MEASURED = paths.BUILD.name == "release"  # sanitizers keep what was freed
SETTLED = 600.0 if SECONDS >= 1800 else SECONDS / 4  # then the server has what it needs
WINDOW = SECONDS / 10  # seconds that are compared
GROWTH = 1.02
SETTLING = 1.1  # in a run that has no ten minutes to settle: 1.05 was measured from the first minute to the tenth, of which the last five were level
# What is measured behind each round: its title, its unit, and of a process.
MEASURES: dict[str, tuple[str, int, Callable[[int], int]]] = {
    "memory": ("Memory, MiB", 1 << 20, procfs.rss_bytes),
    "anonymous": ("Memory that is no file, MiB", 1 << 20, procfs.anonymous_bytes),
    "threads": ("Threads", 1, procfs.threads),
    "descriptors": ("Descriptors", 1, lambda pid: len(procfs.links(pid))),
}
LEAST = 20  # rounds, however slow the machine is
DRAWN = 300  # points of a line


@dataclass
class Soaked:
    """A server, its work and what was measured behind each round of it."""

    name: str
    work: Work
    seconds: list[float] = field(default_factory=list)
    taken: dict[str, list[float]] = field(default_factory=lambda: {what: [] for what in MEASURES})
    latencies: dict[str, list[float]] = field(default_factory=dict)

    def round(self, pace: "Pace") -> None:
        for kind, took in self.work.round().items():
            self.latencies.setdefault(kind, []).append(took)
        pid = self.work.server.pid
        self.seconds.append(pace.seconds())
        for what, (_, _, measure) in MEASURES.items():
            self.taken[what].append(measure(pid))

    def between(self, what: str, begin: float, end: float) -> list[float]:
        return [value for at, value in zip(self.seconds, self.taken[what], strict=True) if begin <= at <= end]

    def before_and_after(self, what: str) -> tuple[float, float]:
        last = self.seconds[-1]
        return median(self.between(what, SETTLED, SETTLED + WINDOW) or self.taken[what]), median(self.between(what, last - WINDOW, last))


@contextmanager
def served(folder: Path, store: tuple[work.OddStore, str], authority: tls.Authority | None) -> Iterator[Soaked]:
    name = "with TLS" if authority else "plain"
    folder.mkdir()
    repository = work.models(folder / "models")
    options = work.OPTIONS | {"model-control-mode": "explicit", "load-model": work.LOADED, "openai-port": str(ports.free_port())}
    pair = authority.sign() if authority else None
    kind = tls.Secure if authority else Nereid
    with kind([repository.path, store[1]], options | (tls.options(pair) if pair else {}), work.environment(folder)) as server:
        made = Work(folder, repository, store[0], Doors(server, authority), pair)
        yield Soaked(name, made)
        made.close()


class Pace:
    """Of what works here: this process, its openssl, and other processes with those that they had."""

    def __init__(self, pids: list[int]):
        self.pids, self.begun = pids, time.monotonic()
        self.before = self._cpu()

    def _cpu(self) -> float:
        own = os.times()
        others = sum(procfs.cpu_ns(pid) + procfs.cpu_of_ended_ns(pid) for pid in self.pids)
        return own.user + own.system + own.children_user + own.children_system + others / 1e9

    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def keep(self) -> None:
        """Lets time pass until all of it together was as little work as it may be."""
        while (left := (self._cpu() - self.before) / PACE - self.seconds()) > 0:
            pause(left)


def drawn(soaked: list[Soaked]) -> str:
    """A page with lines of medians; the servers' rounds alternate, so one's times are the other's."""
    rounds = min(len(each.seconds) for each in soaked)
    parts = [range(at, min(at + max(rounds // DRAWN, 1), rounds)) for at in range(0, rounds, max(rounds // DRAWN, 1))]

    def line(values: list[float], scale: float = 1) -> list[float]:
        return [round(median(values[at] for at in part) / scale, 3) for part in parts]

    plots = [
        {"title": title, "series": [(each.name, line(each.taken[what], scale)) for each in soaked]}
        for what, (title, scale, _) in MEASURES.items()
    ]
    plots += [{"title": f"Milliseconds of work, {each.name}", "series": [(kind, line(values)) for kind, values in each.latencies.items()]} for each in soaked]
    words = f"{rounds} rounds of each server in {soaked[0].seconds[-1] / 60:.1f} minutes. " + " ".join(
        f"{each.name}: memory from {before / 2**20:.2f} to {after / 2**20:.2f} MiB ({100 * (after / before - 1):+.2f} %)."
        for each in soaked
        for before, after in [each.before_and_after("memory")]
    )
    told = {"words": words, "minutes": line(soaked[0].seconds, 60), "plots": plots}
    page = Path(__file__).with_name("report.html").read_text()
    library = paths.need(paths.ROOT / "build" / "deps" / "npm" / "uplot" / "dist", "tools/setup.sh run")
    for mark, text in (("/*uplot.css*/", (library / "uPlot.min.css").read_text()), ("/*uplot.js*/", (library / "uPlot.iife.min.js").read_text())):
        page = page.replace(mark, text)
    print(words)
    return page.replace("/*data*/", json.dumps(told))


@contextmanager
def clients_of(server: Nereid) -> Iterator[int]:
    """Many that ask all the time, in a process of their own; none of them had a wrong answer."""
    argv = [sys.executable, str(CLIENTS), server.http, server.grpc, "echo", GAP]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as clients:
        assert clients.stdin and clients.stdout
        assert clients.stdout.readline() == b"\n"
        yield clients.pid
        clients.stdin.close()
        assert json.loads(clients.stdout.read()) == []


def test_soak(tmp_path: Path) -> None:
    with ExitStack() as stack:
        store = stack.enter_context(work.slow_store())
        authority = tls.Authority(tmp_path / "authority")
        soaked = [stack.enter_context(served(tmp_path / name, store, each)) for name, each in (("plain", None), ("secure", authority))]
        clients = stack.enter_context(clients_of(soaked[0].work.server))
        pace = Pace([each.work.server.pid for each in soaked] + [clients])
        try:
            while pace.seconds() < SECONDS or soaked[0].work.rounds < LEAST:
                for each in soaked:
                    each.round(pace)
                    pace.keep()
        finally:
            if all(each.seconds for each in soaked):
                (paths.BUILD / "soak.html").write_text(drawn(soaked))
    for each in soaked:
        for what in ("threads", "descriptors"):
            before, after = each.before_and_after(what)
            assert after <= before + 1, (each.name, what, before, after)
        before, after = each.before_and_after("memory")
        assert not MEASURED or after <= before * (GROWTH if SETTLED == 600 else SETTLING), (each.name, "memory", before, after)
