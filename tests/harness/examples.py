"""One of examples/, started by the command that its page names, and ended as a user ends it."""

import contextlib
import os
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from . import paths, ports, procfs
from .pause import pause
from .process import Process

PATIENCE = 300.0  # until it is ready: it looks whether all is built, and waits for who builds meanwhile


class Example:
    """A context manager: inside, it has been started; on leaving, all of it is gone.

    folder  for what it prints
    """

    def __init__(self, folder: Path, name: str, args: str = ""):
        self.http_port, self.grpc_port, self.metrics_port, self.page_port = (ports.free_port() for _ in range(4))
        self.url = f"http://localhost:{self.page_port}/{name}/?server={self.http_port}"
        given = {"EXAMPLE": name, "ARGS": args, "HTTP_PORT": self.http_port, "GRPC_PORT": self.grpc_port}
        given |= {"METRICS_PORT": self.metrics_port, "PAGE_PORT": self.page_port}
        # A session of its own, as that of a terminal: what it starts can be found, and Ctrl-C reaches all of it.
        self.argv = ["setsid", "make", "--no-print-directory", "-C", str(paths.ROOT), "example", *(f"{key}={value}" for key, value in given.items())]
        self.log_path = folder / f"{name}.log"
        self.name = name

    def __enter__(self) -> Self:
        self.process = Process(f"example {self.name}", self.argv, self.log_path)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for pid in self.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()

    def left(self) -> list[int]:
        """Processes of its session; not those that have ended and that nobody has looked after yet."""
        return [pid for pid, (state, _parent, _group, session, *_) in procfs.processes() if int(session) == self.process.pid and state != "Z"]

    def says(self, words: str) -> str:
        """Waits until it has printed these words; returns all that it has printed."""
        self.process.wait_until(lambda: words in self.process.log(), PATIENCE)
        return self.process.log()

    def ctrl_c(self) -> None:
        """As in a terminal: to all processes in the foreground. It ends, and leaves nothing behind."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.ends(-signal.SIGINT)  # make dies of it
        until = time.monotonic() + PATIENCE  # what was killed may take a moment
        while left := self.left():
            assert time.monotonic() < until, f"still there: {left}"
            pause(0.02)
