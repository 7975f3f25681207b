#!/usr/bin/env python3
"""Runs all stages of the tests and counts. Called by tools/test.sh once everything is installed.

    tools/run_tests.py [STAGE...]     all stages, or those named

Each stage says when it begins and what it came to. The last line is `N passed, N failed`, over all
C tests (ctest) and Python tests (pytest). A stage that does not come to run its tests - it does not
build, crashes, runs out of time, or finds no test - counts as one failure. Logs: build/test-logs.
"""

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
JOBS = str(os.cpu_count() or 2)
SECONDS = 1800  # of a stage; the longest takes a third of it beside other work
PYTHON_RUNGS = ["tests/30_proto", "tests/40_e2e", "tests/41_compare", "tests/50_config", "tests/80_regressions"]

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
    name: str
    title: str
    run: Callable[["Stage"], Outcome]

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
                env={**os.environ, **(env or {})}, start_new_session=True,
            )
            try:
                return process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise


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


STAGES = [
    Stage("build", "build: release", build("release")),
    Stage("samples", "the sample repository", samples),
    Stage("gates", "gates: layers, symbols, tidy, format, and that they refuse", pytest(["tests/00_gates"])),
    Stage("c", "C tests: unit, simulation, fault, headers, fuzz corpora", ctest("release")),
    Stage("python", "Python tests: protocols, end to end, compared with the reference", pytest(PYTHON_RUNGS)),
    Stage("hostile", "hostile clients", pytest(["tests/45_hostile"])),
    Stage("python-models", "Triton's python backend in this server and the reference", pytest(["tests/47_python"])),
    Stage("isolation", "models in processes of their own that crash, hang, lie", pytest(["tests/49_isolation"])),
    Stage("caches", "response caches and repository agents, ours and the reference's", pytest(["tests/48_caches"])),
    Stage("clients-build", "build: gRPC clients of C++, Go, Java and Node, and Prometheus' linter", clients),
    Stage("clients", "these clients, and tritonclient's asyncio ones", pytest(["tests/46_clients"])),
    Stage("stores-build", "stores to read models from: S3, Google Cloud Storage, Azure", stores),
    Stage("stores", "repositories in these stores, with faults between", pytest(["tests/51_stores"])),
    Stage("build-dev", "build: address and undefined-behaviour sanitizers", build("dev")),
    Stage("c-dev", "C tests under these sanitizers", ctest("dev")),
    Stage("python-dev", "Python tests under these sanitizers", pytest(PYTHON_RUNGS, "dev", "not reference")),
    Stage("isolation-dev", "isolated models under these sanitizers, server and child", pytest(["tests/49_isolation"], "dev")),
    Stage("hostile-dev", "hostile clients under these sanitizers", pytest(["tests/45_hostile"], "dev")),
    Stage("caches-dev", "caches and agents under these sanitizers", pytest(["tests/48_caches"], "dev", "not reference")),
    Stage("stores-dev", "repositories in stores under these sanitizers", pytest(["tests/51_stores"], "dev")),
    Stage("build-tsan", "build: thread sanitizer", build("tsan")),
    Stage("c-tsan", "C tests under the thread sanitizer", ctest("tsan")),
    Stage(
        "python-tsan", "Python tests with identity under the thread sanitizer",
        pytest(PYTHON_RUNGS, "tsan", "not reference and not onnx"),
    ),
]


def choose(names: list[str]) -> list[Stage]:
    known = {stage.name: stage for stage in STAGES}
    for name in names:
        if name not in known:
            sys.exit(f"no stage {name!r}; the stages: {' '.join(known)}")
    return [known[name] for name in names] or STAGES


def tail(path: Path, lines: int = 40) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


def main() -> int:
    stages = choose(sys.argv[1:])
    LOGS.mkdir(parents=True, exist_ok=True)
    total = Outcome()
    for number, stage in enumerate(stages, 1):
        print(f"[{number}/{len(stages)}] {stage.title} ...", flush=True)
        for old in (stage.log(), stage.results()):
            old.unlink(missing_ok=True)
        begun = time.monotonic()
        outcome = stage.run(stage)
        total.passed += outcome.passed
        total.failed += outcome.failed
        if outcome.failed:
            print(tail(stage.log()))
        counted = f"{outcome.passed} passed, {outcome.failed} failed" if outcome.passed + outcome.failed else "done"
        words = [counted, *([outcome.note] if outcome.note else []), f"{time.monotonic() - begun:.0f} s"]
        print(f"[{number}/{len(stages)}] {stage.name}: {'; '.join(words)}  ({stage.log().relative_to(ROOT)})", flush=True)
    print(f"{total.passed} passed, {total.failed} failed")
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
