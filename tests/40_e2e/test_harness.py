"""The harness itself: what goes wrong in a server must not pass for a success."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness import again, compare, logs, metrics, paths, ports, procfs
from harness.process import Process, Reported, ServerFailed
from harness.servers import Server

pytestmark = pytest.mark.once


def _shell(tmp_path: Path, script: str) -> Process:
    return Process("sh", ["/bin/sh", "-c", script], tmp_path / "log")


def test_an_exit_status_is_noticed(tmp_path: Path) -> None:
    process = _shell(tmp_path, "exit 3")
    assert process.ended_within(30)
    with pytest.raises(ServerFailed, match="exit status 3"):
        process.stop()


REPORTS = pytest.mark.parametrize(
    "line",
    [
        "==1==ERROR: AddressSanitizer: heap-use-after-free",
        "==1==ERROR: LeakSanitizer: detected memory leaks",
        "WARNING: ThreadSanitizer: data race (pid=1)",
        "src/base/buf.c:1:2: runtime error: shift exponent 64 is too large",
    ],
)


@REPORTS
def test_a_sanitizer_report_is_noticed(tmp_path: Path, line: str) -> None:
    process = _shell(tmp_path, f"echo '{line}'")
    assert process.ended_within(30)
    with pytest.raises(Reported, match="sanitizer report"):
        process.stop()


@REPORTS
@pytest.mark.parametrize("then", ["", "; exec tail -f /dev/null"], ids=["that ended", "that runs"])
def test_one_of_a_process_that_is_only_killed_is_noticed(tmp_path: Path, line: str, then: str) -> None:
    process = _shell(tmp_path, f"echo '{line}'{then}")
    process.wait_until(lambda: line in process.log(), 30)
    with pytest.raises(Reported, match="sanitizer report"):
        process.kill()


@pytest.mark.parametrize("end", ["kill", "stop", "ends", "wait_until"])
def test_a_signal_is_noticed(tmp_path: Path, end: str) -> None:
    process = _shell(tmp_path, "kill -ABRT $$")
    assert process.ended_within(30)
    ends = {
        "kill": process.kill, "stop": lambda: process.stop(status=None), "ends": lambda: process.ends(None),
        "wait_until": lambda: process.wait_until(lambda: False, 30),
    }
    with pytest.raises(ServerFailed, match=f"ended by signal {signal.SIGABRT:d}"):
        ends[end]()


@pytest.mark.parametrize("end", ["kill", "stop"])
@pytest.mark.parametrize("status", [0, 3])
def test_an_end_that_nobody_asked_for_is_noticed(tmp_path: Path, status: int, end: str) -> None:
    process = _shell(tmp_path, f"exit {status}")
    assert process.ended_within(30)
    with pytest.raises(ServerFailed, match=f"ended by itself, with status {status}"):
        {"kill": process.kill, "stop": lambda: process.stop(status=None)}[end]()


def test_an_end_that_was_asked_for_before(tmp_path: Path) -> None:
    process = _shell(tmp_path, "trap 'exit 0' TERM; echo; while :; do read -t 1 _; done")
    process.wait_until(lambda: process.log() != "", 30)
    process.terminate()
    assert process.ended_within(30)
    process.stop()


def test_an_end_that_is_expected(tmp_path: Path) -> None:
    process = _shell(tmp_path, "exit 1")
    process.ends(1)
    process.kill()
    with pytest.raises(ServerFailed, match="exit status 1, expected 0"):
        process.ends(0)
    running = _shell(tmp_path, "exec tail -f /dev/null")
    running.kill()
    assert running.exit_status == -signal.SIGKILL


class Starting(Server):
    """A program that aborts the first time that it starts."""

    kind = "starting"
    words = "of others' code"

    def command(self) -> list[str]:
        again = Path(self.repositories[0]) / "again"
        return ["/bin/sh", "-c", f"test -e {again} && exec tail -f /dev/null; echo \"{self.words}\"; touch {again}; kill -ABRT $$"]

    def ready(self) -> bool:
        return self.process.running() and (Path(self.repositories[0]) / "again").exists() and self.words not in self.process.log()


def test_who_is_aborted_by_others_while_it_starts_is_started_again(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="ended by signal 6"):
        Starting(tmp_path).start()
    (tmp_path / "again").unlink()
    server = Starting(tmp_path)
    server.aborts_with = (Starting.words,)
    server.start().kill()


def test_an_early_end_is_noticed(tmp_path: Path) -> None:
    process = _shell(tmp_path, "echo no port for me; exit 1")
    with pytest.raises(ServerFailed, match="(?s)before it was ready.*no port for me"):
        process.wait_until(lambda: False, 30)
    process.kill()


def test_the_last_words_are_heard(tmp_path: Path) -> None:
    process = _shell(tmp_path, "echo goodbye")
    assert process.ended_within(30)
    process.wait_until(lambda: "goodbye" in process.log(), 30)
    process.ends(0)


def test_what_was_found_instead_is_told(tmp_path: Path) -> None:
    process = _shell(tmp_path, "exit 0")
    with pytest.raises(ServerFailed, match=r"expected 2, found \[1\]"):
        process.wait_for(lambda: 1, 2)
    process.kill()


def test_a_deaf_server_is_ended(tmp_path: Path) -> None:
    process = _shell(tmp_path, "trap '' TERM; echo deaf; exec sleep 60")
    process.wait_until(lambda: "deaf" in process.log(), 30)
    with pytest.raises(ServerFailed, match="still running"):
        process.stop(seconds=0.2)
    assert not process.running()


def test_ports_that_are_given_one_after_the_other_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where more were given than there are."""
    monkeypatch.setattr(ports, "LAST", ports.FIRST + 100)
    monkeypatch.setattr(ports, "_given", {})
    given = [ports.free_port() for _ in range(300)]
    assert all(len(set(given[i : i + 20])) == 20 for i in range(len(given) - 20))


def test_differences_are_found() -> None:
    ours = {"a": [1, {"b": True}], "c": 1, "same": "x"}
    theirs = {"a": [1, {"b": 1}], "d": 1, "same": "x"}
    places = [line.split(":")[0] for line in compare.differences(ours, theirs)]
    assert places == ["a[1].b", "c", "d"]


@pytest.mark.parametrize(
    "text",
    [
        "a 1\n",
        "# HELP a x\n# TYPE a counter\na{b=c} 1\n",
        "# HELP a x\n# TYPE a counter\na 1",
        "# HELP a x\n# TYPE a odd\n",
    ],
)
def test_wrong_metrics_do_not_parse(text: str) -> None:
    with pytest.raises(AssertionError):
        metrics.parse(text)


AT = "1123 11:59:54.548641 28663 "
INFO, VERBOSE, ERROR = f'I{AT}a.cc:1] "it \\"serves\\""', f'I{AT}infer_handler.cc:723] "step FINISH"', f'E{AT}model.py:17] "error words"'
TABLE = f"I{AT}server.cc:604] \n+---+\n| A |\n+---+\n"
LATER = '2026-11-23T11:59:54Z W 7 b.cc:2] "of the other format"'


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (f"{INFO}\n{ERROR}\n", [INFO, ERROR]),
        (f"{VERBOSE}{ERROR}\n\n{INFO}\n", [VERBOSE, ERROR, INFO]),
        (f"{INFO}{VERBOSE}\n\n{LATER}{ERROR}\n\n", [INFO, VERBOSE, LATER, ERROR]),
        (f"{INFO[:50]}{ERROR}\n{INFO[50:]}\n{VERBOSE}\n", [INFO, ERROR, VERBOSE]),
        (f"{VERBOSE}\n{INFO[:9]}{ERROR}{INFO[9:]}\n\n", [VERBOSE, INFO, ERROR]),
        (f"{TABLE}{ERROR}\n\n{INFO}\n", [TABLE.rstrip("\n"), ERROR, INFO]),
        (f"of another\n{INFO}\nterminate called\n", ["of another", f"{INFO}\nterminate called"]),
        ("", []),
    ],
    ids=["whole", "no line feed between", "none anywhere", "a message in two parts", "a header in two parts", "a table", "of others", "nothing"],
)
def test_the_references_log_is_read_by_records(log: str, expected: list[str]) -> None:
    assert logs.records(log) == expected


def test_its_lines_are_mended(tmp_path: Path) -> None:
    """What is not written to its end yet is none; a table has its empty line; ours is read as it is."""
    assert logs.mended(f"{INFO}{ERROR}\n\n{TABLE}{VERBOSE}\n\n") == f"{INFO}\n{ERROR}\n{TABLE}\n{VERBOSE}\n"
    assert logs.mended(f"{INFO}\n{ERROR[:20]}") == f"{INFO}\n{ERROR[:20]}"
    written = tmp_path / "written"
    written.write_text(f"{INFO}{ERROR}\n")
    for mend, lines in ((str, 1), (logs.mended, 2)):
        process = Process("cat", ["/bin/cat", str(written)], tmp_path / "log", mend=mend)
        process.ends(0)
        assert len(process.log().splitlines()) == lines


CONFTEST = """
import pytest
from pathlib import Path
from harness import again
from harness.process import Process

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    return again.run(item, nextitem)

def run(name, judged, crashes):
    '''It crashes so many times.'''
    times = Path(name + "_times")
    turn = len(times.read_text()) if times.exists() else 0
    times.write_text("x" * (turn + 1))
    ends = "echo up; kill -SEGV $$" if turn < crashes else "echo up; exec tail -f /dev/null"
    process = Process(name, ["/bin/sh", "-c", ends], Path(name + "_log"), judged=judged)
    process.wait_until(lambda: "up" in process.log(), 60)
    if turn < crashes:
        assert process.ended_within(60)
    return process
"""
TESTS = """
import pytest
from conftest import run

@pytest.fixture(scope="session")
def shared():
    process = run("shared", False, {shared})
    yield process
    process.kill()

@pytest.fixture
def ours():
    process = run("ours", True, {ours})
    yield process
    process.kill()

def test_before(): pass
def test_it(shared, ours):
    assert shared.running(){also}
def test_next(shared): assert shared.running()
"""


@pytest.mark.parametrize(
    ("crashes", "also", "status", "turns"),
    [
        ({"shared": 0, "ours": 0}, "", 0, 1),
        ({"shared": 2, "ours": 0}, "", 0, 3),
        ({"shared": 100, "ours": 0}, "", 1, 2 * again.TURNS - 1),  # the next test begins with what is left of this one
        ({"shared": 0, "ours": 0}, " and False", 1, 1),
        ({"shared": 1, "ours": 0}, " and False", 1, 2),
        ({"shared": 1, "ours": 1}, "", 1, 2),  # by the next test
    ],
    ids=["nothing", "twice", "always", "a finding", "a finding behind a crash", "both crash"],
)
def test_who_asked_a_reference_that_crashed_asks_again(tmp_path: Path, crashes: dict[str, int], also: str, status: int, turns: int) -> None:
    """And nobody else; a crash of ours stays one."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS.format(also=also, **crashes))
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "test_it.py"]
    env = {**os.environ, "PYTHONPATH": str(paths.ROOT / "tests")}
    ran = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == status, ran.stdout
    assert len((tmp_path / "shared_times").read_text()) == turns, ran.stdout
    assert ran.stdout.count("asked again") == turns - 1
    if crashes["ours"]:
        assert "ours: ended by signal 11" in ran.stdout


# A server that starts two processes like those of the reference's Python backend, one for itself, and crashes.
WITH_STUBS = """
for server in $$ 1; do
    (exec -a /backends/triton_python_backend_stub tail -f /dev/null $server >/dev/null 2>&1) &
    until grep -qa '^/backends/' /proc/$!/cmdline; do :; done
    echo $!
done
kill -SEGV $$
"""


def test_a_reference_that_crashed_leaves_no_stub(tmp_path: Path) -> None:
    process = Process("reference", ["bash", "-c", WITH_STUBS], tmp_path / "log", judged=False)
    assert process.ended_within(30) and process.crashed()
    own, other = (os.pidfd_open(int(line)) for line in process.log().split()[:2])
    process.kill()
    assert select.select([own], [], [], 30)[0], "it is ended"  # allowed: ends as soon as that process
    assert not select.select([other], [], [], 0)[0], "that of another server is not"  # allowed: it only looks
    signal.pidfd_send_signal(other, signal.SIGKILL)
    os.close(own)
    os.close(other)


def test_a_mapping_that_grows_counts_once() -> None:
    """As the kernel tells of it: once as it was, and, when it is asked for the next one, once as it is."""
    told = """\
61f000000000-61f001000000 rw-p 00000000 00:00 0
Size:              16384 kB
Rss:               16000 kB
61f000000000-61f001400000 rw-p 00000000 00:00 0
Size:              20480 kB
Rss:               20000 kB
7f0000000000-7f0000001000 r--p 00000000 00:00 0    /usr/lib/libc.so.6
Rss:                   4 kB
"""
    assert procfs.rss_of_mappings(told) == {0x61F000000000: 20000 << 10, 0x7F0000000000: 4 << 10}
