#!/usr/bin/env python3
"""Runs all stages of the tests and counts the results. tools/test.sh calls it after it has installed everything.

    tools/run_tests.py [STAGE...]     all stages, or those named

Stages run in parallel in lanes; each lane has its own range of ports. There are two lanes for each processor, because most tests wait more
than they compute; NEREID_TEST_LANES sets another number. A lane that finds no stage to begin helps with a stage of Python tests: each test
file runs in one of the lanes. Each stage prints when it begins, its result, how long it took and how much processor time it used. At the
end come the slowest tests and the load of the machine. The last line is `N passed, N failed`, over all C tests (ctest) and Python tests
(pytest). A stage that does not run all its tests (it does not build, crashes, exceeds its time limit, finds no test, or ends early) counts
as one failure. Each stage that needs it does not run, and counts as one failure too. So does each part of a stage whose tests leave
processes behind: these are ended, and named.
Logs: build/test-logs.
"""

import contextlib
import io
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
JOBS = str(os.cpu_count() or 2)
FAILED = 30  # lines on failures at the end
ERRORS = 3  # lines of a server's log for each of them
ERROR_IN_LOG = re.compile(r"^E\d{4} |UNAVAILABLE: |: error: |crashed: ")
SECONDS = 1800  # time limit of a stage without its own; the slowest stage needs a third of it on a busy machine
HANGS = 600  # seconds in one test
LANES = int(os.environ.get("NEREID_TEST_LANES", 0)) or min(2 * int(JOBS), 16)
FIRST_PORT, LAST_PORT = os.environ.get("NEREID_TEST_PORTS", "12000-32000").split("-")
PORTS = (int(FIRST_PORT), int(LAST_PORT))  # below the range of ephemeral ports; each lane gets a part of it
SLOWEST = 12  # number of tests in the list at the end
LEAVING = 30.0  # seconds that processes have for their end when the command that started them has ended
# The variable that tells whose a process is. Isolated models get variables of these names too (src/isolate/isolate_environment.c).
MARK = "LC_NEREID_PART"

SANITIZER_ENV = {
    # exitcode: a status that no test expects. Theirs is 1, as that of a command line that is refused; the thread sanitizer's is 66.
    # max_free_fill_size: overwrite freed memory. Else nothing notices when code without instrumentation (a framework) reads it.
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=0:exitcode=99"
    ":max_free_fill_size=65536",
    "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99",
    "TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1",
}

# pytest compiles each test file once, and not again in each process: of most stages, that is most of what they compute before a test begins.
BYTECODE = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / "build" / "pycache")}


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    note: str = ""


@dataclass
class Part:
    """The part of a stage that runs in one lane, with its own ports and logs."""

    stage: "Stage"
    number: int
    ports: tuple[int, int]
    cpu: float = 0.0  # processor time in seconds
    process: subprocess.Popen[bytes] | None = None
    stopped: bool = False  # from elsewhere, maybe before `process` is known
    left: list[str] = field(default_factory=list)  # the command lines of processes that its commands left behind

    def _path(self, suffix: str) -> Path:
        return LOGS / f"{self.stage.name}{f'.{self.number}' if self.number else ''}.{suffix}"

    def log(self) -> Path:
        return self._path("log")

    def results(self) -> Path:
        return self._path("xml")

    def mark(self) -> str:
        """Begins with that of the run which this one is a test of, if it is."""
        return f"{os.environ.get(MARK, '')}{os.getpid()}.{self.stage.name}.{self.number}/"

    def command(self, argv: list[str], env: dict[str, str] | None = None, tests: bool = True) -> int | None:
        """Runs argv with its output in the part's log. Returns the exit status; None after a timeout.

        tests  False: a build, which may leave what it starts (a package manager starts daemons)
        """
        with open(self.log(), "ab") as log:
            log.write(f"$ {' '.join(argv)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "NEREID_TEST_PORTS": "%d-%d" % self.ports, MARK: self.mark(), **(env or {})}, start_new_session=True,
            )
        self.process = process
        in_time = not self.stopped and ends_within(process.pid, self.stage.seconds)
        if not in_time:
            self.kill()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.process = None
        self.cpu += used.ru_utime + used.ru_stime
        if tests:
            self._end_what_is_left(process.pid)
        return process.returncode if in_time else None

    def _end_what_is_left(self, session: int) -> None:
        """Waits for the end of all that a command started. What does not end by itself is noted, and killed."""
        until = time.monotonic() + LEAVING
        while (found := processes_of(self.mark(), session)) and (wait := until - time.monotonic()) > 0:
            ends_within(found[0], wait)
        self.left += map(command_line, found)
        kill_all(found)

    def kill(self) -> None:
        """Kills the command that the part runs, with all that it started, in other sessions too. Nothing that it begins later lives on."""
        self.stopped = True
        process = self.process
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for _ in range(3):  # one that is just being made, or begins another program, shows no environment yet
            kill_all(processes_of(self.mark(), process.pid if process else -1))


def processes_of(mark: str, session: int) -> list[int]:
    """The processes that run with this mark in their environment, or in this session."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, _, _, its_session = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:4]
            marked = f"\0{MARK}={mark}".encode() in b"\0" + (entry / "environ").read_bytes()
        except OSError:  # it has just ended, or is another user's
            continue
        if (marked or int(its_session) == session) and state not in "ZX":
            found.append(int(entry.name))
    return found


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()[:120]
    return f"process {pid}"


def ends_within(pid: int, seconds: float) -> bool:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        return bool(poller.poll(seconds * 1000))
    finally:
        os.close(fd)


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        ends_within(pid, LEAVING)


@dataclass
class Stage:
    """needs: stages that must succeed first. where: folders or files of its Python tests. shared: several lanes may share its test files."""

    name: str
    title: str
    run: Callable[[Part], Outcome]
    needs: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    shared: bool = True
    seconds: float = SECONDS
    parts: list[Part] = field(default_factory=list, init=False)
    under_way: int = field(default=0, init=False)
    begun: float = field(default=0.0, init=False)
    outcomes: list[Outcome] = field(default_factory=list, init=False)

    def claims(self) -> Path:
        """A folder with one entry for each test file that a lane has taken; the entry has the name of the test file."""
        return LOGS / f"{self.name}.taken"

    def collected(self) -> int:
        """The number of tests that pytest found (written by tests/harness/sharing.py)."""
        told = LOGS / f"{self.name}.collected"
        return int(told.read_text()) if told.exists() else 0

    def left(self) -> int:
        """The number of test files that no lane has taken yet."""
        if not self.shared or not self.where:
            return 0
        files = sum(1 if each.endswith(".py") else len(list((ROOT / each).glob("**/test_*.py"))) for each in self.where)
        return files - len(list(self.claims().iterdir()))

    def total(self) -> Outcome:
        """The result of all parts. One part may find no test left, because the other lanes took them; if all parts found none, that is a failure."""
        passed, failed = (sum(getattr(each, what) for each in self.outcomes) for what in ("passed", "failed"))
        notes = {each.note for each in self.outcomes if each.note}
        if notes == {NO_TEST} and passed + failed == 0:
            return Outcome(0, 1, NO_TEST)
        if failed == 0 and passed < self.collected():
            return Outcome(passed, 1, f"ended after {passed} of {self.collected()} tests")
        return Outcome(passed, failed, "; ".join(sorted(notes - {NO_TEST})))


NO_TEST = "found no test"


def cases(results: Path) -> list[ElementTree.Element] | None:
    """What a JUnit file of ctest or pytest holds. None if there is no such file, or not all of it."""
    try:
        return list(ElementTree.parse(results).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None


def has_failed(case: ElementTree.Element) -> bool:
    tags = {child.tag for child in case}
    ended = bool(case.get("name"))  # pytest writes the name when the test has ended
    return not ended or bool(tags & {"failure", "error", "skipped"}) or case.get("status") in ("fail", "notrun", "disabled")


def count(found: list[ElementTree.Element]) -> Outcome:
    """Counts results. A test that did not run counts as failed."""
    outcome = Outcome()
    for case in found:
        if has_failed(case):
            outcome.failed += 1
        else:
            outcome.passed += 1
    return outcome


def judge(part: Part, status: int | None) -> Outcome:
    if status is None:
        note = f"ran out of its {part.stage.seconds:.0f} s"
    elif (found := cases(part.results())) is None:
        note = f"no results, or not all of them, exit status {status}"
    else:
        outcome = count(found)
        if outcome.passed + outcome.failed == 0 and status in (0, 5):  # 5: exit status of pytest if it found no test
            return Outcome(0, 0, NO_TEST)
        if status != 0 and outcome.failed == 0:
            note = f"exit status {status} though no test failed"
        else:
            return outcome
        return Outcome(outcome.passed, outcome.failed + 1, note)
    return Outcome(0, 1, note)


def build(preset: str, *targets: str) -> Callable[[Part], Outcome]:
    def run(part: Part) -> Outcome:
        status = part.command(["tools/build.sh", preset, *targets], tests=False)
        return Outcome() if status == 0 else Outcome(0, 1, "does not build" if status else "ran out of time")

    return run


def script(otherwise: str, *argv: str) -> Callable[[Part], Outcome]:
    """Runs one of tools/, which is no test. otherwise: what the stage says when that fails"""

    def run(part: Part) -> Outcome:
        return Outcome() if part.command([*argv], tests=False) == 0 else Outcome(0, 1, otherwise)

    return run


samples = script("could not be written", "tools/samples.sh")
clients = script("do not build", "tools/setup_clients.sh")
stores = script("could not be installed", "tools/setup_stores.sh")
deploy = script("could not be installed", "tools/setup_deploy.sh")


RUNGS = ("00_unit", "10_sim", "20_fault", "10_inprocess")


def c_tests() -> dict[str, Path]:
    """The source of each C test, and of each fuzzer whose corpus is replayed, by name; the slowest tests come last."""
    replays = {f"fuzz.{path.stem.removeprefix('fuzz_')}": path for path in sorted((ROOT / "fuzz").glob("fuzz_*.c"))}
    return replays | {f"{rung}.{path.stem}": path for rung in RUNGS for path in sorted((ROOT / "tests" / rung).glob("test_*.c"))}


def with_threads() -> list[str]:
    """The C tests that the thread sanitizer is asked about."""
    listed = [line for line in (ROOT / "tests" / "threads.list").read_text().splitlines() if line and not line.startswith("#")]
    return [name for name in [*listed, *EMBEDDING] if name not in ("00_unit.test_heap", "10_inprocess.test_digits")]


def ctest(preset: str, asked: list[str] | None = None) -> Callable[[Part], Outcome]:
    """All tests that were built, or those asked for. Without cmocka, say, CMake leaves tests out, and then ctest knows nothing of them."""

    def run(part: Part) -> Outcome:
        argv = ["ctest", "--test-dir", f"build/{preset}", "-j", JOBS, "--output-on-failure", "--no-tests=error"]
        argv += ["--output-junit", str(part.results())] + (["-R", f"^({'|'.join(asked)})$"] if asked else [])
        outcome = judge(part, part.command(argv, SANITIZER_ENV))
        ran = {case.get("name") for case in cases(part.results()) or []}
        missing = [name for name in asked or c_tests() if name not in ran]
        if missing and not outcome.failed:
            return Outcome(outcome.passed, 1, f"{len(missing)} tests were not built: {' '.join(missing[:5])}")
        return outcome

    return run


def pytest(preset: str = "release", marks: str = "", env: dict[str, str] | None = None) -> Callable[[Part], Outcome]:
    def run(part: Part) -> Outcome:
        argv = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *part.stage.where]
        argv += ["-o", f"faulthandler_timeout={HANGS}"]  # the log then shows where: a stage that is ended leaves no results
        argv += [f"--junit-xml={part.results()}"] + (["-m", marks] if marks else [])
        more = {"NEREID_BUILD": f"build/{preset}", **BYTECODE, **SANITIZER_ENV, **(env or {})}
        more["NEREID_TEST_TAKEN"] = str(part.stage.claims())
        return judge(part, part.command(argv, more))

    return run


def python(name: str, title: str, where: str, needs: tuple[str, ...], preset: str = "release", marks: str = "") -> Stage:
    """A stage with the Python tests of one folder of tests/."""
    return Stage(name, title, pytest(preset, marks), needs, (f"tests/{where}",))


def rungs(preset: str = "release", marks: str = "", *, needs: tuple[str, ...]) -> list[Stage]:
    """The Python tests that run with every build preset: one stage for each folder."""
    suffix, words = ("", "") if preset == "release" else (f"-{preset}", f", {preset}")
    titles = {
        "40_e2e": "end to end", "30_proto": "bytes of both protocols", "41_compare": "generated questions to this server and the reference",
        "50_config": "configurations", "80_regressions": "one test per bug",
    }
    return [python(f"{where[3:]}{suffix}", f"{title}{words}", where, needs, preset, marks) for where, title in titles.items()]


RELEASE, DEV, TSAN = ("build", "samples"), ("build-dev", "samples"), ("build-tsan", "samples")
OURS = "not reference"
EMBEDDING = [name for name in c_tests() if name.startswith("10_inprocess.")]
# What is not the same under sanitizers: programs that embed the library as it is installed, and resident memory.
NOT_DEV = [*EMBEDDING, "00_unit.test_heap", "00_unit.test_pool"]
EXAMPLES = ("run", "digits", "speech")  # the others' networks are downloaded for tools/test_long.py alone
# Stages begin in this order: first those that other stages need and those that take long.
STAGES = [
    Stage("build", "build: release", build("release")),
    Stage("stores-build", "build: stores to read models from: S3, Google Cloud Storage, Azure", stores),
    Stage("samples", "the sample repository", samples, ("build",)),
    Stage("build-dev", "build: address and undefined-behaviour sanitizers", build("dev"), ("build",)),
    Stage("floors", "build: the bare floors", build("release", "bench_floor_http", "bench_floor_grpc"), ("build",)),
    Stage("clients-build", "build: gRPC clients of C++, Go, Java and Node, Prometheus' linter, KServe's client", clients, ("stores-build",)),
    Stage("deploy-build", "build: helm, kubeconform and schemas", deploy, ("stores-build",)),
    *rungs(needs=RELEASE),
    Stage("build-tsan", "build: thread sanitizer", build("tsan"), ("build-dev",)),
    python("hostile", "hostile clients", "45_hostile", RELEASE),
    python("caches", "response caches and repository agents, ours and the reference's", "48_caches", RELEASE),
    *rungs("dev", f"{OURS} and not once", needs=DEV),
    python("hostile-dev", "hostile clients under these sanitizers", "45_hostile", DEV, "dev"),
    *rungs("tsan", "not reference and not onnx and not once and not threadless", needs=TSAN),
    python("stores", "repositories in these stores, with faults between", "51_stores", ("stores-build", *RELEASE)),
    python("stores-dev", "repositories in stores under these sanitizers", "51_stores", ("stores-build", *DEV), "dev"),
    Stage("python-models", "Triton's python backend in this server and the reference", pytest(), RELEASE, ("tests/47_python",), shared=False),
    python("package", "the package for Python: a wheel installed, servers in the process, functions as models", "53_package", RELEASE),
    python("package-dev", "the package under these sanitizers", "53_package", DEV, "dev", OURS),
    python("isolation", "models in processes of their own that crash, hang, lie", "49_isolation", RELEASE),
    python("isolation-dev", "isolated models under these sanitizers, server and child", "49_isolation", DEV, "dev"),
    python("backends", "backends that are there when asked for", "52_backends", RELEASE),
    Stage("examples", "examples that start with one command", pytest(), ("floors", *RELEASE), tuple(f"tests/57_examples/test_{each}.py" for each in EXAMPLES)),
    python("caches-dev", "caches and agents under these sanitizers", "48_caches", DEV, "dev", OURS),
    python("clients", "these clients, and tritonclient's asyncio ones", "46_clients", ("clients-build", *RELEASE)),
    python("deploy", "chart, alerts, dashboard, Debian package and image, as their tools read them", "54_deploy", ("deploy-build", "clients-build", *RELEASE)),
    python("gates", "gates: layers, symbols, tidy, format, and that they refuse", "00_gates", RELEASE),
    python("cost", "what a small request costs beside the bare floor", "60_cost", ("floors", *RELEASE)),
    Stage("c-dev", "C tests under the address and undefined-behaviour sanitizers: unit, simulation, fault, headers, fuzz corpora", ctest("dev"), DEV),
    Stage("c-tsan", "C tests with threads under the thread sanitizer", ctest("tsan", with_threads()), TSAN),
    Stage("c", "C tests: programs that embed the server, memory", ctest("release", NOT_DEV), RELEASE),  # one of the tests reads the digits model
]


def usage(doc: str | None, known: list[Stage], needs: str = "has to be named too, or to have run before") -> str:
    """The text of --help: each stage, with a description and the stages that it needs."""

    def told(stage: Stage) -> str:
        return f"  {stage.name:<18} {stage.title}" + (f" (needs {', '.join(stage.needs)})" if stage.needs else "")

    heading = f"stages, in the order in which they begin; what a stage needs {needs}:"
    return "\n".join([(doc or "").strip(), "", heading, *map(told, known)])


def choose(known: list[Stage], names: list[str]) -> list[Stage]:
    by_name = {stage.name: stage for stage in known}
    for name in names:
        if name not in by_name:
            sys.exit(f"no stage {name!r}; the stages: {' '.join(by_name)}")
    return [by_name[name] for name in names] or known


def tail(path: Path, lines: int = 40) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


class Schedule:
    """Gives work to lanes: the first stage that can begin, else a further part of a running stage that has test files left."""

    def __init__(self, stages: list[Stage]):
        self.stages = stages
        self.chosen = {stage.name for stage in stages}
        self.ended: set[str] = set()
        self.failed: set[str] = set()
        self.stopped = False  # nothing more begins
        self.changed = threading.Condition()

    def _next(self) -> Stage | None:
        for stage in self.stages:
            if not stage.parts and all(need in self.ended for need in stage.needs if need in self.chosen):
                return stage
        # When one part has ended, no further part is started: the running parts do the rest. Files without a selected test are never taken.
        helped = [stage for stage in self.stages if stage.under_way and not stage.outcomes and not self.lacks(stage) and stage.left() > 1]
        return max(helped, key=lambda stage: stage.left() / (stage.under_way + 1), default=None)

    def lacks(self, stage: Stage) -> list[str]:
        """The failed stages among those that the stage needs."""
        return [need for need in stage.needs if need in self.failed]

    def take(self, ports: tuple[int, int]) -> Part | None:
        """Waits for the next part; None if nothing is left to begin."""
        with self.changed:
            while not self.stopped:
                if stage := self._next():
                    part = Part(stage, len(stage.parts), ports)
                    if not stage.parts:
                        self._begin(stage)
                    stage.parts.append(part)
                    stage.under_way += 1
                    self.changed.notify_all()  # lanes that wait can now help with this stage
                    return part
                if all(stage.parts for stage in self.stages):
                    return None
                self.changed.wait()
            return None

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.changed.notify_all()

    @staticmethod
    def _begin(stage: Stage) -> None:
        stage.begun = time.monotonic()
        for old in LOGS.glob(f"{stage.name}.*"):
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink()
        stage.claims().mkdir()

    def end(self, part: Part, outcome: Outcome) -> bool:
        """Records the result of a part; returns True if its stage has now ended."""
        with self.changed:
            part.stage.outcomes.append(outcome)
            part.stage.under_way -= 1
            over = part.stage.under_way == 0
            self.changed.notify_all()
            if over:
                self.ended.add(part.stage.name)
                self.failed.add(part.stage.name)  # also if it cannot be counted
                if not part.stage.total().failed:
                    self.failed.remove(part.stage.name)
            return over


@dataclass
class Run:
    stages: list[Stage]
    total: Outcome = field(default_factory=Outcome)
    begun: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: dict[str, str] = field(default_factory=dict)

    def lane(self, schedule: Schedule, ports: tuple[int, int]) -> None:
        """An error of its own is one failure. The other lanes go on without it."""
        try:
            while part := schedule.take(ports):
                self._run(schedule, part)
        except BaseException:
            with self.lock:
                self.total.failed += 1
            traceback.print_exc()

    def _run(self, schedule: Schedule, part: Part) -> None:
        try:
            if part.number == 0:
                self._say_begin(part.stage)
            lacking = schedule.lacks(part.stage)
            outcome = Outcome(0, 1, f"not run, since it needs {' and '.join(lacking)}") if lacking else part.stage.run(part)
            if part.left:
                left = f"left behind: {', '.join(sorted(set(part.left)))}"
                outcome = Outcome(outcome.passed, outcome.failed + 1, f"{outcome.note}; {left}" if outcome.note else left)
        except BaseException as error:
            outcome = Outcome(0, 1, f"could not run: {error!r}")
        over = schedule.end(part, outcome)  # before anything is printed, which may fail: others wait for this
        if outcome.failed:
            with self.lock:
                print(tail(part.log()))
        if over:
            self._say_end(part.stage)

    def _say_begin(self, stage: Stage) -> None:
        with self.lock:
            self.begun += 1
            self.numbers[stage.name] = f"[{self.begun}/{len(self.stages)}]"
            print(f"{self.numbers[stage.name]} {stage.name}: {stage.title} ...", flush=True)

    def _say_end(self, stage: Stage) -> None:
        outcome = stage.total()
        counted = f"{outcome.passed} passed, {outcome.failed} failed" if outcome.passed + outcome.failed else "done"
        took = f"{time.monotonic() - stage.begun:.0f} s, {sum(part.cpu for part in stage.parts):.0f} s of a processor"
        words = [counted, *([outcome.note] if outcome.note else []), took]
        with self.lock:
            self.total.passed += outcome.passed
            self.total.failed += outcome.failed
            print(f"{self.numbers[stage.name]} {stage.name}: {'; '.join(words)}  ({os.path.relpath(stage.parts[0].log(), ROOT)})", flush=True)


def lane_ports(lane: int, lanes: int) -> tuple[int, int]:
    each = (PORTS[1] - PORTS[0]) // lanes
    return PORTS[0] + lane * each, PORTS[0] + (lane + 1) * each


def all_cases(stages: list[Stage]) -> Iterator[tuple[str, ElementTree.Element]]:
    """Each test with its name for people."""
    for stage in stages:
        for part in stage.parts:
            for case in cases(part.results()) or []:
                where = (case.get("classname") or "").rpartition(".")[2]
                yield f"{stage.name}: {where}::{case.get('name')}", case


def slowest(stages: list[Stage]) -> list[str]:
    found = [(float(case.get("time") or 0), name) for name, case in all_cases(stages)]
    return [f"{seconds:7.1f} s  {name[:120]}" for seconds, name in sorted(found, reverse=True)[:SLOWEST]]


def failures(stages: list[Stage]) -> list[str]:
    """What the tests that failed say: the first line, and what a server's log says of errors. Who says the same, as all tests of a server that
    did not start, is told once."""
    said: dict[str, list[str]] = {}
    for name, case in all_cases(stages):
        if has_failed(case):
            words = next((child.get("message") or "" for child in case if child.tag in ("failure", "error", "skipped")), "")
            said.setdefault(words.strip(), []).append(name[:120])
    found = []
    for words, names in said.items():
        first, *more = words.splitlines() or [""]
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        found.append(f"  {names[0]}{others}: {first[:120]}")
        found += [f"    {line.strip()[:240]}" for line in more if ERROR_IN_LOG.search(line)][:ERRORS]
    return found[:FAILED] + [f"  and {len(found) - FAILED} more"] * (len(found) > FAILED)


def machine() -> tuple[float, float]:
    """Processor time since boot in seconds, summed over all processors: (idle, total)."""
    fields = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (fields[3] + fields[4]) / tick, sum(fields) / tick


def run_stages(stages: list[Stage], lanes: int = LANES) -> Outcome:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # what tests wrote into their logs is printed, whatever the encoding is
    LOGS.mkdir(parents=True, exist_ok=True)
    run, schedule = Run(stages), Schedule(stages)
    begun, before = time.monotonic(), machine()
    threads = [threading.Thread(target=run.lane, args=(schedule, lane_ports(lane, lanes)), daemon=True) for lane in range(lanes)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(1)  # Python may miss a signal that comes just before it waits without a limit
    except BaseException:
        schedule.stop()
        for stage in stages:
            for part in stage.parts:
                part.kill()
        raise
    for stage in stages:
        if stage.name not in schedule.ended:
            run.total.failed += 1
            print(f"{stage.name}: did not come to its end")
    print("the slowest tests:", *slowest(stages), sep="\n")
    lost = failures(stages)
    if lost:
        print("the tests that failed:", *lost, sep="\n")
    used = sum(part.cpu for stage in stages for part in stage.parts)
    idle, together = (now - old for now, old in zip(machine(), before, strict=True))
    print(f"{time.monotonic() - begun:.0f} s in {lanes} lanes, {used:.0f} s of a processor, {100 * idle / (together or 1):.0f} % of {JOBS} idle")
    return run.total


def conclude(*totals: Outcome) -> int:
    """Prints the last line; returns the exit status."""
    passed, failed = sum(each.passed for each in totals), sum(each.failed for each in totals)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


def end_when_told() -> None:
    """Lets SIGTERM end what runs, too, as SIGINT does."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def asks_for_help(argv: list[str]) -> bool:
    return bool({"-h", "--help"} & set(argv))


if __name__ == "__main__":
    if asks_for_help(sys.argv):
        sys.exit(print(usage(__doc__, STAGES)))
    end_when_told()
    sys.exit(conclude(run_stages(choose(STAGES, sys.argv[1:]))))
