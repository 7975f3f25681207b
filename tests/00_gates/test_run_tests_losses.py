"""What a stage of `make test` loses, leaves behind or cannot tell is a failure, and nothing holds up the end of the run."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness.procfs import has_ended

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import run_tests  # noqa: E402
from run_tests import Outcome, Part, Stage  # noqa: E402


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_tests, "LOGS", tmp_path)
    return tmp_path


# Sanitizers

REFUSES = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *thread(void *it) { return it; }
int main(int argc, char **argv)
{
    char *volatile lost = malloc(24);
    if (argv[1][0] != 'l')
        free(lost);
    lost = NULL;
    if (argv[1][0] == 'a')
        argc += ((volatile char *)malloc(8))[8];
    volatile int bits = argv[1][0] == 'u' ? 62 : 2;
    argc = argc << bits;
    pthread_t other;
    if (argv[1][0] == 't')
        pthread_create(&other, NULL, thread, NULL); // which nobody joins
    fputs("option --http-port: expected a number\\n", stderr);
    return 1;
}
"""


@pytest.mark.parametrize(("kinds", "reports"), [("address,undefined", "lau"), ("undefined", "u"), ("thread", "t")])
def test_a_report_ends_with_a_status_of_its_own(tmp_path: Path, kinds: str, reports: str) -> None:
    """Not with that of a command line that is refused."""
    source, program = tmp_path / "refuses.c", tmp_path / "refuses"
    source.write_text(REFUSES)
    subprocess.run(["gcc", "-w", f"-fsanitize={kinds}", "-fno-sanitize-recover=all", "-o", program, source, "-lpthread"], check=True)
    for what in ["none", *reports]:
        done = subprocess.run([program, what], env={**os.environ, **run_tests.SANITIZER_ENV}, capture_output=True, text=True, check=False)
        assert (done.returncode == 1) == (what == "none"), (what, done.returncode, done.stderr)


# C tests that were not built


@pytest.mark.parametrize(
    ("asked", "lost", "failed"),
    [
        (None, [], 0),
        (None, ["00_unit.test_url"], 1),
        (None, ["fuzz.http"], 1),
        (["fuzz.http", "fuzz.tls"], ["fuzz.http"], 1),
        (["fuzz.http", "fuzz.tls"], ["00_unit.test_url"], 0),
    ],
)
def test_c_tests_that_were_not_built(logs: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str] | None, lost: list[str], failed: int) -> None:
    told: list[str] = []

    def command(part: Part, argv: list[str], env: dict[str, str] | None = None, tests: bool = True) -> int:
        told.extend(argv)
        ran = "".join(f'<testcase name="{name}" status="run"/>' for name in run_tests.c_tests() if name not in lost)
        part.results().write_text(f"<testsuite>{ran}</testsuite>")
        return 0

    monkeypatch.setattr(Part, "command", command)
    outcome = run_tests.ctest("release", asked)(Part(Stage("c", "c", lambda part: Outcome()), 0, (1, 2)))
    assert outcome.failed == failed
    assert (" ".join(lost) in outcome.note) == bool(failed) or not lost
    assert ("^(fuzz.http|fuzz.tls)$" in told) == (asked is not None)


def test_who_starts_threads_is_asked_about_them() -> None:
    assert set(run_tests.with_threads()) < set(run_tests.c_tests()) and "00_unit.test_mutex" in run_tests.with_threads()


# Processes that are left behind

STAYS = "tail -f /dev/null"
LEAVES = """
import subprocess, sys
print(subprocess.Popen(["sh", "-c", 'exec <"{given}"; echo $$; exec {what} >/dev/null'], stdout=subprocess.PIPE, {more}).stdout.readline().decode())
"""


def left(part: Part) -> int:
    """Its number."""
    return int(part.log().read_text().split()[-1])


def leaving(what: str, more: str, then: str = "", tests: bool = True, given: str = "/dev/null") -> tuple[Stage, Outcome]:
    """given: its input, which it has open before its number is known."""

    def run(part: Part) -> Outcome:
        status = part.command([sys.executable, "-c", LEAVES.format(what=what, more=more, given=given) + then], tests=tests)
        return Outcome(1) if status == 0 else Outcome(0, 1, "ran out of its time")

    made = Stage("leaves", "leaves", run)
    return made, run_tests.run_stages([made], lanes=1)


@pytest.mark.parametrize("more", ["start_new_session=True", "env={{}}"], ids=["of another session", "without our environment"])
def test_a_process_that_is_left_behind(logs: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    """It fails the part that began it, by name, and ends."""
    monkeypatch.setattr(run_tests, "LEAVING", 0.1)
    made, total = leaving(STAYS, more.format())
    assert (total.passed, total.failed) == (1, 1)
    assert made.total().note.startswith("left behind: ") and STAYS in made.total().note
    assert has_ended(left(made.parts[0]))


def test_a_process_that_ends_a_moment_later(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here when its end is waited for."""
    goes_on, ends_within = logs / "goes on", run_tests.ends_within
    os.mkfifo(goes_on)
    holds = [os.open(goes_on, os.O_RDWR)]

    def then_it_ends(pid: int, seconds: float) -> bool:
        if seconds < run_tests.SECONDS and holds:
            os.close(holds.pop())
        return ends_within(pid, seconds)

    monkeypatch.setattr(run_tests, "ends_within", then_it_ends)
    made, total = leaving("cat", "start_new_session=True", given=str(goes_on))
    assert (total.passed, total.failed, made.total().note) == (1, 0, "")
    assert has_ended(left(made.parts[0]))


def test_what_a_stage_leaves_that_runs_out_of_its_time(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ends_within = logs / "begun", run_tests.ends_within
    os.mkfifo(begun)

    def in_time(pid: int, seconds: float) -> bool:
        """The time of the stage is over when it has left what it leaves."""
        return ends_within(pid, seconds) if seconds < run_tests.SECONDS else bool(begun.read_text())

    monkeypatch.setattr(run_tests, "ends_within", in_time)
    then = f"sys.stdout.flush(); open({str(begun)!r}, 'w').close(); import signal; signal.pause()"
    made, total = leaving(STAYS, "start_new_session=True", then)
    assert (total.passed, total.failed) == (0, 1)
    assert has_ended(left(made.parts[0]))


def test_a_build_may_leave_what_it_began(logs: Path) -> None:
    made, total = leaving(STAYS, "start_new_session=True", tests=False)
    pid = left(made.parts[0])
    runs = not has_ended(pid)
    os.kill(pid, signal.SIGKILL)
    assert (total.passed, total.failed, runs) == (1, 0, True)


# Results that are cut, lanes that die

RUN = """
import sys
sys.path.insert(0, {tools!r})
import run_tests
from pathlib import Path
from run_tests import *
run_tests.LOGS = Path({logs!r})
def good(part): return Outcome(1)
{planted}
stages = [Stage("d", "d", good), Stage("a", "a", bad), Stage("b", "b", good, ("a",)), Stage("c", "c", good, ("a",))]
sys.exit(conclude(run_stages(stages, lanes=2)))
"""
CUT = """
def bad(part):
    part.results().write_text('<testsuite><testcase name="a"/><testcase na')
    return judge(part, 0)
"""
ODD = """
def bad(part):
    part.log().write_text("caf\\u00e9")
    return Outcome(0, 1, "\\u2192")
"""
EXITS = """
def bad(part): sys.exit(3)
"""
DIES = """
def bad(part): return Outcome(1)
def say(self, stage): raise ValueError("cannot say")
Run.{name} = say
"""
SPOILT = """
def bad(part): return Outcome(0, 1)
def spoilt(path): raise ValueError("cannot be read")
run_tests.tail = spoilt
"""
UNCOUNTED = """
def bad(part):
    (run_tests.LOGS / "a.collected").write_text("")
    return Outcome(1)
"""


@pytest.mark.parametrize(
    ("planted", "said", "last"),
    [
        (CUT, "not all of them", "1 passed, 3 failed"),
        (ODD, "caf?", "1 passed, 3 failed"),
        (EXITS, "SystemExit(3)", "1 passed, 3 failed"),
        (DIES.format(name="_say_begin"), "Traceback", "0 passed, 6 failed"),
        (DIES.format(name="_say_end"), "cannot say", "0 passed, 4 failed"),
        (SPOILT, "cannot be read", "1 passed, 3 failed"),
        (UNCOUNTED, "ValueError", "1 passed, 3 failed"),
    ],
    ids=["cut results", "odd words", "a stage that exits", "a lane dies as it begins", "as it ends", "as it tells", "no count"],
)
def test_a_run_ends_with_its_last_line(tmp_path: Path, planted: str, said: str, last: str) -> None:
    program = RUN.format(tools=str(ROOT / "tools"), logs=str(tmp_path), planted=planted)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.splitlines()[-1], done.returncode) == (last, 1), done.stdout + done.stderr
    assert said in done.stdout + done.stderr


STOPPED = """
import sys
sys.path.insert(0, {tools!r})
import run_tests
from pathlib import Path
from run_tests import *
run_tests.LOGS = Path({logs!r})
def long(part):
    part.command(["sh", "-c", f"setsid sleep 1000 & echo {{part.stage.name}} >> {logs}/begun; sleep 1000"])
    return Outcome(1)
def later(part):
    Path({logs!r}, "later").touch()
    return Outcome(1)
end_when_told()
run_stages([Stage("a", "a", long), Stage("b", "b", long), Stage("c", "c", later), Stage("d", "d", later)], lanes=2)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """Also what has a session of its own ends, and no stage begins any more."""
    mark = f"{os.environ.get(run_tests.MARK, '')}{tmp_path}/"
    os.mkfifo(tmp_path / "begun")
    begun = os.open(tmp_path / "begun", os.O_RDWR)
    program = STOPPED.format(tools=str(ROOT / "tools"), logs=str(tmp_path))
    env = {**os.environ, run_tests.MARK: mark}
    said = b""
    with subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as run:
        while said.count(b"\n") < 2:
            assert select.select([begun], [], [], 60)[0], "they did not begin"  # allowed: the limit of a wait for what comes
            said += os.read(begun, 100)
        run.send_signal(number)
        run.communicate(timeout=60)
    os.close(begun)
    assert run.returncode in (-number, 128 + number)  # allowed: what Python makes of an exit and of an interrupt
    assert [run_tests.command_line(pid) for pid in run_tests.processes_of(mark, -1)] == []
    assert not (tmp_path / "later").exists()
