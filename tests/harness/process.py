"""One server process: started, waited for, stopped; its output kept."""

import ctypes
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from . import procfs

SANITIZER_REPORT = re.compile(
    r"ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|SUMMARY: \w+Sanitizer|: runtime error: "
)
REPORT_LINES = 80  # of a sanitizer's report are shown: two stacks and where what they meet at was made
_prctl = ctypes.CDLL(None).prctl  # not looked up after a fork: a thread that is not there any more may hold the loader's lock
_PR_SET_PDEATHSIG = 1


class ServerFailed(AssertionError):
    """The process did not start, ended too early, or left a bad mark. The message holds its log."""


class Reported(AssertionError):
    """A sanitizer has reported something. No failure that a test may expect."""


STUB = b"triton_python_backend_stub"  # the reference's Python backend starts one for each instance, and tells it its own number


def _end_stubs(server: int) -> None:
    """Those of a reference that has ended. They look for their server once a second, but if it crashed with their lock they wait for ever."""
    for pid, _ in procfs.processes():
        with suppress(OSError):  # it has just ended
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if argv[0].endswith(STUB) and str(server).encode() in argv:
                os.kill(pid, signal.SIGKILL)


def _end_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """Runs argv with its output in log_path. Ends only the process that it started.

    However it ends, a sanitizer's report in its log fails the test, and so does an end by a signal that this object did not send. So does
    an end by itself that no `ends` or `stop` of the test has waited for.
    judged  False: what is not tested here may end as it likes
    output  a descriptor that takes its output; by default log_path does
    mend  what makes whole lines of its log
    """

    others: ClassVar[list["Process"]] = []  # that are not judged
    blamed: ClassVar[int] = 0  # how often one that is judged did what it should not

    def __init__(
        self,
        name: str,
        argv: list[str],
        log_path: Path,
        env: dict[str, str] | None = None,
        judged: bool = True,
        output: int | None = None,
        mend: Callable[[str], str] = str,
    ):
        self.name = name
        self._mend = mend
        self._ours = judged
        if not judged:
            self.others.append(self)
        self.judged = judged
        self._expected: int | None = None  # the exit status that a test asked for
        self._sent: set[int] = set()  # the signals that should end it
        self.argv = argv
        self.log_path = log_path
        with open(log_path, "wb") as log:
            self._popen = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log if output is None else output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                preexec_fn=_end_with_parent,
            )
        self.started_at = time.monotonic()  # the program has just been executed
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)

    def log(self, offset: int = 0, last_lines: int | None = None) -> str:
        text = self._mend(self.log_path.read_bytes()[offset:].decode("utf-8", "replace"))
        return (
            text if last_lines is None else "\n".join(line[:300] for line in text.splitlines()[-last_lines:])
        )

    def running(self) -> bool:
        return self._popen.poll() is None

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._popen.poll()

    def in_use(self) -> bool:
        """Nobody has seen to its end yet."""
        return self._pidfd >= 0

    def crashed(self) -> bool:
        """It has ended by a signal that this object did not send."""
        status = self.exit_status
        return status is not None and status < 0 and -status not in self._sent

    def fail(self, what: str) -> ServerFailed:
        Process.blamed += self._ours
        return ServerFailed(f"{self.name}: {what}\n$ {' '.join(self.argv)}\n{self.log(last_lines=60)}")

    def ended_within(self, seconds: float) -> bool:
        """Waits for the end of the process, at most `seconds`."""
        if self._pidfd >= 0:
            poller = select.poll()
            poller.register(self._pidfd, select.POLLIN)
            poller.poll(max(0, round(seconds * 1000)))
        return not self.running()

    def wait_until(self, ready: Callable[[], bool], seconds: float, period: float = 0.01) -> float:
        """Asks `ready` again and again; returns the seconds since the start of the process."""
        deadline = time.monotonic() + seconds
        while True:
            # Looked at before the last question: what is waited for may be the last that the process does.
            ended, late = not self.running(), time.monotonic() > deadline
            try:
                if ready():
                    return time.monotonic() - self.started_at
            except OSError:
                if not ended:
                    raise
            if ended:
                self._judge()
                raise self.fail(f"ended with status {self._popen.returncode} before it was ready")
            if late:
                raise self.fail(f"not ready after {seconds} s")
            self.ended_within(period)

    def wait_for(self, read: Callable[[], object], expected: object, seconds: float = 60) -> None:
        """Reads again and again until it is as expected."""
        seen: list[object] = []

        def equal() -> bool:
            seen[:] = [read()]
            return seen == [expected]

        try:
            self.wait_until(equal, seconds)
        except ServerFailed as error:
            raise ServerFailed(f"expected {expected}, found {seen}: {error}") from error

    @contextmanager
    def halted(self) -> Iterator[None]:
        """The process does not run meanwhile: all that it is sent waits for it at once when it goes on."""
        self._popen.send_signal(signal.SIGSTOP)
        try:
            self.wait_until(self._is_halted, 30)
            yield
        finally:
            self._popen.send_signal(signal.SIGCONT)

    def _is_halted(self) -> bool:
        try:
            stats = [(task / "stat").read_text() for task in Path(f"/proc/{self.pid}/task").iterdir()]
        except (FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            return False
        return all(stat.rsplit(")", 1)[1].split()[0] == "T" for stat in stats)

    def stop(self, seconds: float = 60, status: int | None = 0) -> float:
        """SIGTERM, then waits; returns the seconds it took. `status` None accepts any exit status."""
        begun = time.monotonic()
        alone = not self.running() and not self._sent and self.judged
        self.terminate()
        if not self.ended_within(seconds):
            self.kill()
            raise self.fail(f"still running {seconds} s after SIGTERM")
        took = time.monotonic() - begun
        self._ended(status)
        if alone:
            raise self.fail(f"ended by itself, with status {self._popen.returncode}")
        return took

    def terminate(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Sends the signal, if it is there to take it."""
        if self.running():
            self._sent.add(number)
            self._popen.send_signal(number)

    def ends(self, status: int | None, seconds: float = 120) -> None:
        """Waits until it has ended by itself, with that exit status; None accepts any but a signal."""
        if not self.ended_within(seconds):
            self.kill()
            raise self.fail(f"still running after {seconds} s")
        self._ended(status)

    def _ended(self, status: int | None) -> None:
        self._close()
        self._expected = status
        self._judge()
        if status is not None and self._popen.returncode != status:
            raise self.fail(f"exit status {self._popen.returncode}, expected {status}")

    def _judge(self, alone: bool = False) -> None:
        """alone: nobody has asked for its end."""
        if not self.judged:
            return
        self.judged = False  # once: its log may be gone by the next time
        log = self.log()
        report = SANITIZER_REPORT.search(log)
        if report:
            lines = log[report.start() :].splitlines()[:REPORT_LINES]
            raise Reported(str(self.fail("\n".join([f"sanitizer report: {report.group(0)}", *lines]))))
        status = self._popen.returncode
        if self.crashed() and status != self._expected:
            raise self.fail(f"ended by signal {-status}")
        if alone and status >= 0:
            raise self.fail(f"ended by itself, with status {status}")

    def kill(self) -> None:
        alone = not self.running()
        if not alone:
            self._sent.add(signal.SIGKILL)
            self._popen.kill()
        self._popen.wait()
        self._close()
        self._judge(alone)

    def _close(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
            if not self._ours or self.crashed():
                _end_stubs(self.pid)
