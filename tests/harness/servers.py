"""The two servers under the same roof: Nereid (ours) and Reference (Triton 2.51)."""

import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from . import logs, paths, ports, procfs, rawhttp
from .process import Process, ServerFailed

HOST = "127.0.0.1"
FLAG = "(no value)"
# The environment of a server whose models in Python run on the Python that runs the tests: it has NumPy.
WITH_NUMPY = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

# The environment of a server that ends although somebody hangs, or is cut: it joins no thread any more, and those that have ended by then are no leak.
ENDED_AT_ONCE = {"TSAN_OPTIONS": f"{os.environ.get('TSAN_OPTIONS', '')}:report_thread_leaks=0"}


def listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=30).close()
    except ConnectionRefusedError:
        return False
    return True


class Server:
    """A context manager: starts on free ports, is ready inside, is ended on leaving: ours is stopped and checked.

    repository  a directory, the path of one in a store, or several
    options  further command-line options, without the leading dashes: {"log-verbose": "1"};
             a list as value repeats the option, FLAG is an option that takes none
    """

    kind: ClassVar[str]
    judged: ClassVar[bool] = True  # how it ends is looked at
    mend: ClassVar[Callable[[str], str]] = str  # its log is read as it is
    STARTS: ClassVar[int] = 10
    # The last words of others' code in it, which aborts now and then while it starts. Nothing was asked of it by then: it is started again, a few times.
    aborts_with: tuple[str, ...] = ()

    def __init__(
        self,
        repository: Path | str | list[Path] | list[Path | str],
        options: dict[str, str | list[str]] | None = None,
        env: dict[str, str] | None = None,
        ready_within: float = 180,
        wait_ready: bool = True,
    ):
        self.repositories = repository if isinstance(repository, list) else [repository]
        self.options = options or {}
        self.env = env
        self.ready_within = ready_within
        self.wait_ready = wait_ready
        self.http_port, self.grpc_port, self.metrics_port = (ports.free_port() for _ in range(3))
        self.ready_after = 0.0
        self._scratch = tempfile.TemporaryDirectory(prefix=f"{self.kind}-")
        self._process: Process | None = None
        self._ready_words: str | None = None

    @property
    def http(self) -> str:
        return f"{HOST}:{self.http_port}"

    @property
    def grpc(self) -> str:
        return f"{HOST}:{self.grpc_port}"

    @property
    def metrics(self) -> str:
        return f"{HOST}:{self.metrics_port}"

    @property
    def process(self) -> Process:
        assert self._process is not None, "not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def program(self) -> list[str]:
        raise NotImplementedError

    def command(self) -> list[str]:
        argv = self.program()
        argv += [f"--model-repository={path}" for path in self.repositories]
        argv += [f"--http-port={self.http_port}", f"--grpc-port={self.grpc_port}"]
        argv += [f"--metrics-port={self.metrics_port}", f"--http-address={HOST}"]
        argv += [f"--grpc-address={HOST}", f"--metrics-address={HOST}"]
        for name, value in self.options.items():
            argv += [f"--{name}" if each == FLAG else f"--{name}={each}" for each in (value if isinstance(value, list) else [value])]
        return argv

    def ready_when_it_says(self, words: str) -> Self:
        """Not asked whether it is ready: its ports are closed, or want a key. Its log says so."""
        self._ready_words = words
        return self

    def ready(self) -> bool:
        if self._ready_words is not None:
            return self._ready_words in self.process.log()
        try:
            if rawhttp.request(HOST, self.http_port, "GET", "/v2/health/ready").status != 200:
                return False
            for port in (self.grpc_port, self.metrics_port):
                socket.create_connection((HOST, port), timeout=60).close()
        except OSError:
            return False
        return True

    def start(self, period: float = 0.01) -> Self:
        self._launch()
        if self.wait_ready:
            try:
                self.wait_until_ready(self.ready_within, period)
            except BaseException:
                self.kill()
                raise
        return self

    def _launch(self) -> None:
        log = Path(self._scratch.name) / "log"
        self._process = Process(self.kind, self.command(), log, self.env, self.judged, mend=type(self).mend)

    def wait_until_ready(self, seconds: float, period: float = 0.01) -> None:
        for left in reversed(range(self.STARTS)):
            try:
                self.ready_after = self.process.wait_until(self.ready, seconds, period)
                return
            except ServerFailed:
                if not left or not self._aborted():
                    raise
                self.process.kill()
                self._launch()

    def _aborted(self) -> bool:
        log = self.process.log()
        return self.process.exit_status == -signal.SIGABRT and any(words in log for words in self.aborts_with)

    def rest(self) -> None:
        """Before a model is unloaded that may just have been loaded: until the server bears that."""

    def settle(self) -> None:
        """Until what it does behind its answers is done, such as to count them: a backend tells what a request took when it has answered it."""
        with contextlib.suppress(ServerFailed):  # it is busy otherwise
            self.process.wait_until(lambda: procfs.all_sleep(self.pid), 10)

    def statistics(self, model: str) -> dict[str, Any]:
        """Of the model's first version, with all that was answered."""
        self.settle()
        row: dict[str, Any] = rawhttp.get(self.http, f"/v2/models/{model}/stats").json()["model_stats"][0]
        return row

    def stop(self, **expected: float | int | None) -> float:
        try:
            return self.process.stop(**expected)  # type: ignore[arg-type]
        finally:
            self._scratch.cleanup()

    def kill(self) -> None:
        try:
            if self._process is not None:
                self._process.kill()
        finally:
            self._scratch.cleanup()

    def leave(self) -> None:
        """Its end where nothing more is asked of it."""
        self.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.leave()
        else:
            self.kill()


class Nereid(Server):
    kind = "nereid"

    def program(self) -> list[str]:
        return [str(paths.nereid_binary()), f"--backend-directory={paths.backends()}"]


class Reference(Server):
    kind = "reference"
    judged = False
    mend = staticmethod(logs.mended)
    aborts_with: tuple[str, ...] = ("epoll_wait error: Bad file descriptor",)  # of its gRPC library, whose poller waits on what is closed already

    def rest(self) -> None:
        """It crashes where the thread that loaded the model has answered and is not through yet: with one busy processor every time."""
        self.settle()

    def leave(self) -> None:
        """It takes seconds to stop, and how it does is not what is asked here."""
        self.kill()

    def stop(self, seconds: float = 60, status: int | None = None) -> float:
        """Where no status is expected it may end as it likes, or hang and be ended: its answers are compared, not how it stops."""
        try:
            return super().stop(seconds=seconds, status=status)
        except ServerFailed:
            if status is not None:
                raise
            return seconds

    def program(self) -> list[str]:
        binary = paths.need(paths.reference_root() / "bin" / "tritonserver")
        return [str(binary), f"--backend-directory={paths.backends(reference=True)}"]


KINDS: dict[str, type[Server]] = {"nereid": Nereid, "reference": Reference}


@contextlib.contextmanager
def serving(kind: str, repository: Path | list[Path], options: dict[str, str | list[str]]) -> Iterator[Server]:
    """A server of that kind."""
    with KINDS[kind](repository, options) as server:
        yield server
