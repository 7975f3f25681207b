#!/usr/bin/env python3
"""Runs all stages of the tests and counts. Called by tools/test.sh once everything is installed.

    tools/run_tests.py [STAGE...]     all stages, or those named

Stages run side by side in two lanes, each with ports of its own; one that measures how long others wait runs alone, after the rest.
NEREID_TEST_LANES sets how many lanes. Each stage says when it begins and what it came to. The last line is `N passed, N failed`, over
all C tests (ctest) and Python tests (pytest). A stage that does not come to run its tests - it does not build, crashes, runs out of
time, or finds no test - counts as one failure. Logs: build/test-logs.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
JOBS = str(os.cpu_count() or 2)
SECONDS = 1800  # of a stage; the longest takes a third of it beside other work
LANES = int(os.environ.get("NEREID_TEST_LANES", "2"))
PORTS = (12000, 32000)  # below the ephemeral ones; each lane has a part of them

SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1",
}


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    note: str = ""


@dataclass
class Stage:
    """needs: the stages before it. alone: it measures how long clients wait, so nothing else may run beside it."""

    name: str
    title: str
    run: Callable[["Stage"], Outcome]
    needs: tuple[str, ...] = ()
    alone: bool = False
    ports: tuple[int, int] = field(default=PORTS, init=False)
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def log(self) -> Path:
        return LOGS / f"{self.name}.log"

    def results(self) -> Path:
        return LOGS / f"{self.name}.xml"

    def command(self, argv: list[str], env: dict[str, str] | None = None) -> int | None:
        """Runs argv with its output in the stage's log; its status, or None past the stage's time."""
        with open(self.log(), "ab") as log:
            log.write(f"$ {' '.join(argv)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "NEREID_TEST_PORTS": "%d-%d" % self.ports, **(env or {})}, start_new_session=True,
            )
            self.process = process
            try:
                return process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                process.wait()
                return None
            finally:
                self.process = None

    def kill(self) -> None:
        """Ends what the stage runs, with all that it started."""
        if process := self.process:
            os.killpg(process.pid, signal.SIGKILL)


def count(results: Path) -> Outcome:
    """Counts a JUnit file, as ctest and pytest write it. A test that did not run is no success."""
    outcome = Outcome()
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        tags = {child.tag for child in case}
        if tags & {"failure", "error", "skipped"} or case.get("status") in ("fail", "notrun", "disabled"):
            outcome.failed += 1
        else:
            outcome.passed += 1
    return outcome


def judge(stage: Stage, status: int | None) -> Outcome:
    if status is None:
        note = f"ran out of its {SECONDS} s"
    elif not stage.results().exists():
        note = f"no results, exit status {status}"
    else:
        outcome = count(stage.results())
        if outcome.passed + outcome.failed == 0:
            note = "found no test"
        elif status != 0 and outcome.failed == 0:
            note = f"exit status {status} though no test failed"
        else:
            return outcome
        return Outcome(outcome.passed, outcome.failed + 1, note)
    return Outcome(0, 1, note)


def build(preset: str, *targets: str) -> Callable[[Stage], Outcome]:
    def run(stage: Stage) -> Outcome:
        status = stage.command(["tools/build.sh", preset, *targets])
        return Outcome() if status == 0 else Outcome(0, 1, "does not build" if status else "ran out of time")

    return run


def samples(stage: Stage) -> Outcome:
    return Outcome() if stage.command(["tools/samples.sh"]) == 0 else Outcome(0, 1, "could not be written")


def clients(stage: Stage) -> Outcome:
    return Outcome() if stage.command(["tools/setup_clients.sh"]) == 0 else Outcome(0, 1, "do not build")


def stores(stage: Stage) -> Outcome:
    return Outcome() if stage.command(["tools/setup_stores.sh"]) == 0 else Outcome(0, 1, "could not be installed")


def ctest(preset: str) -> Callable[[Stage], Outcome]:
    def run(stage: Stage) -> Outcome:
        argv = ["ctest", "--test-dir", f"build/{preset}", "-j", JOBS, "--output-on-failure", "--no-tests=error"]
        return judge(stage, stage.command([*argv, "--output-junit", str(stage.results())], SANITIZER_ENV))

    return run


def pytest(where: list[str], preset: str = "release", marks: str = "") -> Callable[[Stage], Outcome]:
    def run(stage: Stage) -> Outcome:
        folders = [folder for folder in where if any((ROOT / folder).glob("**/test_*.py"))]
        if not folders:
            return Outcome(0, 1, "found no test")
        argv = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *folders]
        argv += [f"--junit-xml={stage.results()}"] + (["-m", marks] if marks else [])
        env = {"NEREID_BUILD": f"build/{preset}", "PYTHONDONTWRITEBYTECODE": "1", **SANITIZER_ENV}
        return judge(stage, stage.command(argv, env))

    return run


def rungs(preset: str = "release", marks: str = "", *, needs: tuple[str, ...]) -> list[Stage]:
    """The Python tests that every build runs: a stage for each folder."""
    suffix, words = ("", "") if preset == "release" else (f"-{preset}", f", {preset}")
    titles = {
        "30_proto": "bytes of both protocols", "40_e2e": "end to end", "41_compare": "generated questions to this server and the reference",
        "50_config": "configurations", "80_regressions": "one test per bug",
    }
    return [
        Stage(f"{folder[3:]}{suffix}", f"{titles[folder]}{words}", pytest([f"tests/{folder}"], preset, marks), needs)
        for folder in titles if any((ROOT / "tests" / folder).glob("**/test_*.py"))
    ]


RELEASE, DEV, TSAN = ("build", "samples"), ("build-dev", "samples"), ("build-tsan", "samples")
STAGES = [
    Stage("build", "build: release", build("release")),
    Stage("samples", "the sample repository", samples, ("build",)),
    Stage("build-dev", "build: address and undefined-behaviour sanitizers", build("dev"), ("build",)),
    Stage("build-tsan", "build: thread sanitizer", build("tsan"), ("build-dev",)),
    Stage("gates", "gates: layers, symbols, tidy, format, and that they refuse", pytest(["tests/00_gates"]), RELEASE),
    Stage("c", "C tests: unit, simulation, fault, headers, fuzz corpora", ctest("release"), ("build",)),
    Stage("stores-build", "build: stores to read models from: S3, Google Cloud Storage, Azure", stores),
    Stage("clients-build", "build: gRPC clients of C++, Go, Java and Node, Prometheus' linter, KServe's client", clients, ("stores-build",)),
    *rungs("dev", "not reference", needs=DEV),
    *rungs(needs=RELEASE),
    *rungs("tsan", "not reference and not onnx", needs=TSAN),
    Stage("python-models", "Triton's python backend in this server and the reference", pytest(["tests/47_python"]), RELEASE),
    Stage("isolation", "models in processes of their own that crash, hang, lie", pytest(["tests/49_isolation"]), RELEASE),
    Stage("isolation-dev", "isolated models under these sanitizers, server and child", pytest(["tests/49_isolation"], "dev"), DEV),
    Stage("caches", "response caches and repository agents, ours and the reference's", pytest(["tests/48_caches"]), RELEASE),
    Stage("caches-dev", "caches and agents under these sanitizers", pytest(["tests/48_caches"], "dev", "not reference"), DEV),
    Stage("stores", "repositories in these stores, with faults between", pytest(["tests/51_stores"]), ("stores-build", *RELEASE)),
    Stage("stores-dev", "repositories in stores under these sanitizers", pytest(["tests/51_stores"], "dev"), ("stores-build", *DEV)),
    Stage("clients", "these clients, and tritonclient's asyncio ones", pytest(["tests/46_clients"]), ("clients-build", *RELEASE)),
    Stage("c-dev", "C tests under the address and undefined-behaviour sanitizers", ctest("dev"), DEV),
    Stage("c-tsan", "C tests under the thread sanitizer", ctest("tsan"), TSAN),
    Stage("hostile", "hostile clients", pytest(["tests/45_hostile"]), RELEASE, alone=True),
    Stage("hostile-dev", "hostile clients under these sanitizers", pytest(["tests/45_hostile"], "dev"), DEV, alone=True),
]


def choose(names: list[str]) -> list[Stage]:
    known = {stage.name: stage for stage in STAGES}
    for name in names:
        if name not in known:
            sys.exit(f"no stage {name!r}; the stages: {' '.join(known)}")
    return [known[name] for name in names] or STAGES


def tail(path: Path, lines: int = 40) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


class Schedule:
    """Hands stages to lanes: the first whose needs are met; those that run alone when no other is left or under way."""

    def __init__(self, stages: list[Stage]):
        self.waiting = list(stages)
        self.chosen = {stage.name for stage in stages}
        self.ended: set[str] = set()
        self.under_way = 0
        self.changed = threading.Condition()

    def _next(self) -> Stage | None:
        met = [stage for stage in self.waiting if all(need in self.ended for need in stage.needs if need in self.chosen)]
        beside = [stage for stage in met if not stage.alone]
        if beside:
            return beside[0]
        alone = [stage for stage in met if stage.alone]
        return alone[0] if alone and self.under_way == 0 and all(stage.alone for stage in self.waiting) else None

    def take(self) -> Stage | None:
        """The next stage, waited for; None when none is left."""
        with self.changed:
            while self.waiting:
                stage = self._next()
                if stage:
                    self.waiting.remove(stage)
                    self.under_way += 1
                    return stage
                self.changed.wait()
            return None

    def end(self, stage: Stage) -> None:
        with self.changed:
            self.ended.add(stage.name)
            self.under_way -= 1
            self.changed.notify_all()


@dataclass
class Run:
    stages: list[Stage]
    total: Outcome = field(default_factory=Outcome)
    begun: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def lane(self, schedule: Schedule, ports: tuple[int, int]) -> None:
        while stage := schedule.take():
            stage.ports = ports
            try:
                self.one(stage)
            finally:
                schedule.end(stage)

    def one(self, stage: Stage) -> None:
        with self.lock:
            self.begun += 1
            number = f"[{self.begun}/{len(self.stages)}]"
            print(f"{number} {stage.name}: {stage.title} ...", flush=True)
        for old in (stage.log(), stage.results()):
            old.unlink(missing_ok=True)
        begun = time.monotonic()
        try:
            outcome = stage.run(stage)
        except Exception as error:
            outcome = Outcome(0, 1, f"could not run: {error!r}")
        counted = f"{outcome.passed} passed, {outcome.failed} failed" if outcome.passed + outcome.failed else "done"
        words = [counted, *([outcome.note] if outcome.note else []), f"{time.monotonic() - begun:.0f} s"]
        with self.lock:
            self.total.passed += outcome.passed
            self.total.failed += outcome.failed
            if outcome.failed:
                print(tail(stage.log()))
            print(f"{number} {stage.name}: {'; '.join(words)}  ({stage.log().relative_to(ROOT)})", flush=True)


def lane_ports(lane: int) -> tuple[int, int]:
    each = (PORTS[1] - PORTS[0]) // LANES
    return PORTS[0] + lane * each, PORTS[0] + (lane + 1) * each


def run_stages(stages: list[Stage]) -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    run, schedule = Run(stages), Schedule(stages)
    lanes = [threading.Thread(target=run.lane, args=(schedule, lane_ports(lane)), daemon=True) for lane in range(LANES)]
    for lane in lanes:
        lane.start()
    try:
        for lane in lanes:
            lane.join()
    except BaseException:
        for stage in stages:
            stage.kill()
        raise
    print(f"{run.total.passed} passed, {run.total.failed} failed")
    return 0 if run.total.failed == 0 and run.total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(run_stages(choose(sys.argv[1:])))
