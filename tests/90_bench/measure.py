"""Measures a row: the subjects in turn, several times; what other work disturbed is repeated."""

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import check
import load
import subjects
from harness import procfs, recite
from harness.ensembles import Ensemble, Step
from harness.processors import on
from harness.repository import Repository
from harness.servers import Reference
from rows import ENSEMBLE, MODEL, RECITE, ROWS, Row
from subjects import FLOOR, INLINE, REFERENCE, THREADS, Subject

OTHER_LIMIT = 0.05  # share of all processors that other work may take during a run
SPREAD_LIMIT = 0.15  # (most - least) / median of the CPU time per request
IDLE_SECONDS = 2.0

Say = Callable[[str], None]


@dataclass
class Result:
    """A subject's figures in one row: medians of the good runs."""

    wanted: int = 2  # clean runs
    runs: list[load.Run] = field(default_factory=list)
    memory_start: int = 0
    memory_after: int = 0
    memory_after_pss: int = 0

    @property
    def clean(self) -> list[load.Run]:
        return [run for run in self.runs if run.other_share <= OTHER_LIMIT]

    @property
    def disturbed(self) -> bool:
        return len(self.clean) < self.wanted or self.spread() > SPREAD_LIMIT

    def spread(self) -> float:
        costs = [run.cpu_us for run in self.clean]
        return (max(costs) - min(costs)) / statistics.median(costs) if costs else 1.0

    def best(self) -> list[load.Run]:
        """The clean runs; when there are none, the least disturbed one."""
        return self.clean or sorted(self.runs, key=lambda run: run.other_share)[:1]

    def median(self, figure: str) -> float:
        return statistics.median(getattr(run, figure) for run in self.best())

    def figures(self) -> dict[str, float | bool]:
        found: dict[str, float | bool] = {
            name: self.median(name) for name in ("rate", "p50_us", "p99_us", "cpu_us", "threads")
        }
        found["rss_start"] = self.memory_start
        found["rss_peak"] = max(run.rss_peak for run in self.runs)
        found["rss_after"] = self.memory_after
        found["pss_after"] = self.memory_after_pss
        found["other_share"] = self.median("other_share")
        found["disturbed"] = self.disturbed
        return found


def repository(folder: Path, models: int = 1) -> Path:
    made = Repository(folder)
    made.identity(MODEL)
    for index in range(1, models):
        made.identity(f"{MODEL}_{index}")
    return made.path


def ensemble(path: Path) -> None:
    names = ["INPUT0", "first", "second", "OUTPUT0"]
    steps = [Step(MODEL, {"INPUT0": names[i]}, {"OUTPUT0": names[i + 1]}) for i in range(3)]
    made = Ensemble(ENSEMBLE, steps, ("INPUT0",), ("OUTPUT0",))
    Repository(path).model(ENSEMBLE, made.config())


def decoupled(path: Path) -> None:
    recite.model(Repository(path), RECITE, ("INPUT0", "FP32", (-1,)), index=False)


def _idle_memory(started: list[Subject], results: dict[str, Result]) -> None:
    """What stays two seconds after the last request; a server that ends meanwhile is a failure."""
    idle_since = time.monotonic()
    for subject in started:
        if subject.process.ended_within(idle_since + IDLE_SECONDS - time.monotonic()):
            raise subject.process.fail("ended while it was idle")
        memory = procfs.memory(subject.pid)
        results[subject.name].memory_after = memory.rss
        results[subject.name].memory_after_pss = memory.pss


def row(
    asked: Row,
    names: list[str],
    places: tuple[set[int], set[int]],
    repeats: int,
    extra: int,
    seconds: float,
    say: Say,
) -> dict[str, Result]:
    """places: the processors of the subjects, and those of their clients"""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        scratch = Path(folder)
        generator = load.generator(asked, scratch)
        path = repository(scratch / "models")
        if asked.model == ENSEMBLE:
            ensemble(path)
        if asked.model == RECITE:
            decoupled(path)
            names = [name for name in names if name != FLOOR]
        results = {name: Result(wanted=min(2, repeats)) for name in names}
        with on(places[0]):
            started = subjects.start(names, path, asked)
        try:
            first = next(each for each in ROWS if each.protocol == asked.protocol and each.binary)
            for subject in started:
                check.answer_size(subject, first)
                results[subject.name].memory_start = procfs.memory(subject.pid).rss
            sizes = {subject.name: check.answer_size(subject, asked) for subject in started}
            for turn in range(repeats + extra):
                wanted = [s for s in started if turn < repeats or results[s.name].disturbed]
                for subject in wanted:
                    with on(places[1]):
                        results[subject.name].runs.append(generator.run(subject, sizes[subject.name], seconds))
                if wanted and turn >= repeats:
                    say(f"  {asked.name}: repeated {', '.join(s.name for s in wanted)} (disturbed)")
            for subject in started:
                check.answer_size(subject, asked)
            _idle_memory(started, results)
            for subject in started:
                subject.stop()
        except BaseException:
            for subject in started:
                subject.kill()
            raise
    return results


@dataclass
class Start:
    """Medians of starting and stopping a server that has nothing to do."""

    ready_ms: float
    exit_ms: float
    rss: int
    pss: int
    threads: int


def start(name: str, models: int, repeats: int) -> Start:
    taken: list[Start] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = repository(Path(folder) / "models", models)
        for _ in range(repeats):
            server = Reference(path) if name == REFERENCE else subjects.nereid(path, name)
            server.start(period=0.001)
            memory = procfs.memory(server.pid)
            threads = procfs.threads(server.pid)
            ready = server.ready_after
            taken.append(Start(ready * 1e3, server.stop() * 1e3, memory.rss, memory.pss, threads))
    middle = {
        key: statistics.median(getattr(each, key) for each in taken)
        for key in ("ready_ms", "exit_ms", "rss", "pss", "threads")
    }
    return Start(**middle)  # type: ignore[arg-type]


SUBJECTS = [FLOOR, INLINE, THREADS, REFERENCE]
