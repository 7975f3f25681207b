"""How `make test` divides its work: every test runs once, whoever runs it, and nothing that fails passes for a success."""

import os
import re
import select
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import run_tests  # noqa: E402
import test_long  # noqa: E402
from run_tests import Outcome, Part, Schedule, Stage  # noqa: E402

CONFTEST = """
import pytest
from harness import sharing

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    return sharing.run(session)

@pytest.fixture(scope="session")
def server():
    yield
    assert False, "it did not stop well"
"""
FILES, EACH = 8, 3


def written(folder: Path) -> Path:
    folder.mkdir()
    (folder.parent / "taken").mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    for number in range(FILES):
        tests = "".join(f"def test_{each}(server): pass\n" for each in range(EACH))
        (folder / f"test_{number}.py").write_text(tests)
    return folder


def start(folder: Path, number: int) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "NEREID_TEST_TAKEN": str(folder.parent / "taken")}
    return subprocess.Popen([*argv, f"--junit-xml={folder}/{number}.xml"], env=env, stdout=subprocess.DEVNULL)


def cases(folder: Path, number: int) -> list[ElementTree.Element]:
    return list(ElementTree.parse(folder / f"{number}.xml").getroot().iter("testcase"))


def test_runs_share_files(tmp_path: Path) -> None:
    """Two at the same time. A fixture that both make fails at its end in each that made it, also where the last file was the other's."""
    folder = written(tmp_path / "tests")
    runs = [start(folder, number) for number in range(2)]
    statuses = [run.wait(120) for run in runs]
    found = [cases(folder, number) for number in range(2)]
    ran = Counter((case.get("classname"), case.get("name")) for each in found for case in each)
    assert len(ran) == FILES * EACH
    for status, each in zip(statuses, found, strict=True):
        errors = [case for case in each if case.find("error") is not None]
        assert (status, len(errors)) == ((1, 1) if each else (0, 0))


def test_who_comes_late_finds_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path / "tests")
    assert start(folder, 0).wait(120) == 1
    assert start(folder, 1).wait(120) == 0
    assert cases(folder, 1) == []


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_tests, "LOGS", tmp_path)
    return tmp_path


@pytest.fixture
def asked(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tests for a stage, which is to get a test_it.py."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    monkeypatch.setattr(run_tests, "PYTHON", sys.executable)
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text(CONFTEST.partition("@pytest.fixture")[0])
    return folder


def stage(name: str, *needs: str, run: object = None) -> Stage:
    return Stage(name, name, run or (lambda part: Outcome(1)), needs)  # type: ignore[arg-type]


def test_a_stage_waits_for_what_it_needs(logs: Path) -> None:
    order: list[str] = []

    def noted(part: Part) -> Outcome:
        order.append(part.stage.name)
        return Outcome(1)

    stages = [stage("tests", "build", run=noted), stage("build", run=noted), stage("alone", "elsewhere", run=noted)]
    assert run_tests.conclude(run_tests.run_stages(stages, lanes=2)) == 0
    assert order.index("build") < order.index("tests")
    assert len(order) == 3


def test_what_failed_is_needed_by_others(logs: Path) -> None:
    """They are not run on what an earlier build left, and each of them is a failure."""
    ran: list[str] = []

    def noted(part: Part) -> Outcome:
        ran.append(part.stage.name)
        return Outcome(0, 1, "does not build") if part.stage.name == "build" else Outcome(1)

    stages = [stage("build", run=noted), stage("tests", "build", run=noted), stage("more", "tests", run=noted), stage("alone", run=noted)]
    total = run_tests.run_stages(stages, lanes=2)
    assert sorted(ran) == ["alone", "build"]
    assert (total.passed, total.failed) == (1, 3)
    assert stages[2].total().note == "not run, since it needs tests"


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("second", "passed", "failed"),
    [("pass", 3, 0), ("import pytest; pytest.exit('over', 0)", 1, 1), ("import os; os._exit(0)", 0, 1)],
    ids=["all run", "pytest is told to end", "the process ends"],
)
def test_a_stage_that_ends_before_its_tests_fails(asked: Path, shared: bool, second: str, passed: int, failed: int) -> None:
    """With status 0, and no test that failed."""
    (asked / "test_it.py").write_text(f"def test_a(): pass\ndef test_b():\n    {second}\ndef test_c(): pass\n")
    made = Stage("some", "some", run_tests.pytest(), where=(str(asked),), shared=shared)
    total = run_tests.run_stages([made], lanes=1)
    assert (total.passed, total.failed) == (passed, failed)


def test_what_failed_is_named_at_the_end(asked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who sees only the end of the output sees which, and what they say."""
    monkeypatch.setattr(run_tests, "FAILED", 2)
    bad = "".join(f"def test_bad_{i}(): assert not 'said {i}'\n" for i in range(3))
    (asked / "test_it.py").write_text(f"def test_good(): pass\n{bad}")
    run_tests.run_stages([Stage("some", "some", run_tests.pytest(), where=(str(asked),))], lanes=1)
    said = capsys.readouterr().out.partition("the tests that failed:\n")[2].splitlines()
    assert said[0].startswith("  some: test_it::test_bad_0: AssertionError: assert not 'said 0'")
    assert said[2:3] == ["  and 1 more"] and "test_good" not in "".join(said)


def test_a_server_that_does_not_start_is_told_once(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what its log says of it."""
    text = "it ended\nI1201 13:16:10 1 a.c:1] \"fine\"\n| mine | 1 | UNAVAILABLE: no such file |\nE1201 13:16:10 1 a.c:2] \"failed\""
    served = f"@pytest.fixture(scope='module')\ndef served():\n    raise AssertionError({text!r})\n"
    (asked / "test_it.py").write_text(f"import pytest\n{served}def test_a(served): pass\ndef test_b(served): pass\n")
    run_tests.run_stages([Stage("some", "some", run_tests.pytest(), where=(str(asked),))], lanes=1)
    said = capsys.readouterr().out.partition("the tests that failed:\n")[2].splitlines()
    assert said[0].startswith("  some: test_it::test_a and 1 more: failed on setup with") and "it ended" in said[0]
    assert said[1:3] == ["    | mine | 1 | UNAVAILABLE: no such file |", '    E1201 13:16:10 1 a.c:2] "failed""']


def test_help_tells_of_stages() -> None:
    for tool, stages in (("run_tests", run_tests.STAGES), ("test_long", [*test_long.ALONE, *test_long.BESIDE])):
        ran = subprocess.run([sys.executable, ROOT / "tools" / f"{tool}.py", "--help"], capture_output=True, text=True, timeout=60, check=True)
        for each in stages:
            (row,) = [line for line in ran.stdout.splitlines() if line.startswith(f"  {each.name} ")]
            assert each.title in row and all(need in row for need in each.needs)


def test_lanes_help_where_files_are_left(logs: Path, tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"test_{number}.py").touch()
    both = threading.Barrier(2)

    def run(part: Part) -> Outcome:
        for number in range(2):
            (part.stage.claims() / f"{part.number}{number}").touch()
        both.wait(60)  # neither ends without the other
        return Outcome(2)

    shared = Stage("shared", "shared", run, where=(str(tmp_path),))
    total = run_tests.run_stages([shared], lanes=2)
    assert (total.passed, total.failed, len(shared.parts)) == (4, 0, 2)
    assert shared.parts[0].log() != shared.parts[1].log()


NOTHING = Outcome(0, 0, run_tests.NO_TEST)


def test_no_lane_helps_where_another_found_nothing_left(logs: Path, tmp_path: Path) -> None:
    """Nobody takes a file whose tests are all left out, or one beside another that cannot be imported: helping would never end."""
    for number in range(4):
        (tmp_path / f"test_{number}.py").touch()
    schedule = Schedule([Stage("shared", "shared", lambda part: NOTHING, where=(str(tmp_path),))])
    first, second = schedule.take((1, 2)), schedule.take((1, 2))
    assert first and second
    assert not schedule.end(second, NOTHING)
    assert schedule.take((1, 2)) is None
    assert schedule.end(first, Outcome(1))


@pytest.mark.parametrize(
    ("outcomes", "counted"),
    [
        ([Outcome()], (0, 0)),  # a build
        ([NOTHING], (0, 1)),
        ([NOTHING, NOTHING], (0, 1)),
        ([Outcome(3), NOTHING], (3, 0)),
        ([Outcome(3), Outcome(0, 1, "ran out of its time")], (3, 1)),
        ([Outcome(3, 1), Outcome(2)], (5, 1)),
    ],
)
def test_parts_add_up(outcomes: list[Outcome], counted: tuple[int, int]) -> None:
    made = stage("some")
    made.outcomes = outcomes
    total = made.total()
    assert (total.passed, total.failed) == counted


def test_a_part_that_ends_badly_fails(logs: Path) -> None:
    """Without results, and with an exit status that no test explains."""
    part = Part(stage("some"), 0, (1, 2))
    assert run_tests.judge(part, 1).failed == 1
    part.results().write_text('<testsuite><testcase name="a"/></testsuite>')
    assert (run_tests.judge(part, 0).passed, run_tests.judge(part, 0).failed) == (1, 0)
    assert run_tests.judge(part, 1).failed == 1
    assert run_tests.judge(part, None).failed == 1
    part.results().write_text("<testsuite/>")
    assert run_tests.judge(part, 0).note == run_tests.NO_TEST
    assert run_tests.judge(part, 2).failed == 1


IN_A_SESSION = """
import sys
sys.path.insert(0, {tools!r})
import mutate
mutate.TREE = {folder!r}
mutate.end_when_told()
mutate.attempt([sys.executable, "-c", "import os, signal; os.write(os.open('pipe', os.O_WRONLY), b'.'); signal.pause()"])
"""


def test_a_stage_that_is_killed_leaves_no_mutant_running(logs: Path, tmp_path: Path) -> None:
    """What asks a mutant has a session of its own, and so has the stage."""
    os.mkfifo(tmp_path / "pipe")
    part = Part(stage("mutants"), 0, (1, 2))
    script = IN_A_SESSION.format(tools=str(ROOT / "tools"), folder=str(tmp_path))
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    runs = threading.Thread(target=part.command, args=([sys.executable, "-c", script],), daemon=True)
    runs.start()
    assert select.select([pipe], [], [], 60)[0], "it did not begin"  # allowed: the limit of a wait for what comes
    assert os.read(pipe, 1) == b"."
    part.kill()
    assert select.select([pipe], [], [], 60)[0], "it still runs"  # allowed: the limit of a wait for its end
    assert os.read(pipe, 1) == b""
    os.close(pipe)
    runs.join(60)


def test_every_stage_is_reached() -> None:
    names = [each.name for each in run_tests.STAGES]
    assert len(names) == len(set(names))
    assert all(need in names for each in run_tests.STAGES for need in each.needs)
    assert Schedule(run_tests.STAGES).chosen == set(names)


def test_every_stage_of_the_long_run_is_reached() -> None:
    stages = [*test_long.BUILDS, *test_long.ALONE, *test_long.BESIDE]
    names = [each.name for each in stages]
    assert len(names) == len(set(names))
    assert all(need in names for each in stages for need in each.needs)
    assert [folder for each in stages for folder in each.where if not (ROOT / folder).is_dir()] == []


def test_the_page_of_the_long_run_says_what_it_is() -> None:
    """Each stage has a row and each row a stage, settings are what they are when nobody sets them, and so is the number of fuzzers."""
    page = (ROOT / "docs" / "internals" / "testing.md").read_text().partition("## The long run")[2]
    rows = [row for line in page.splitlines() if line.startswith("| `") for row in re.findall(r"`([^`]+)`", line.split("|")[1])]
    shapes = [re.compile(re.sub("FOLDER|NAME", r"(?!planted)\\w+", row)) for row in rows]
    stages = [each.name for each in [*test_long.ALONE, *test_long.BESIDE] if not re.match(r"(build|install)-|.*-build$", each.name)]
    assert [name for name in stages if not any(shape.fullmatch(name) for shape in shapes)] == []
    assert [row for row, shape in zip(rows, shapes, strict=True) if not any(map(shape.fullmatch, stages))] == []
    settings = re.findall(r'setting\("(\w+)", "(\w+)"\)', Path(test_long.__file__).read_text())
    assert len(settings) >= 4
    for name, value in settings:
        (told,) = [line for line in (test_long.__doc__ or "").splitlines() if line.startswith(f"{name}  ")]
        assert f"({value})" in told
        assert any(name in row and re.search(rf"\b{value}\b", row.replace(",", "")) for row in page.splitlines() if row.startswith("| "))
    assert re.findall(r"(\d+) fuzzers", page) == [str(len(list((ROOT / "fuzz").glob("fuzz_*.c"))))]
