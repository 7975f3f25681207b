"""A log that nobody reads: requests are answered, the server ends when it is told to, and how many lines were lost is told."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import rawhttp
from harness.process import Process
from harness.repository import Repository
from harness.servers import HOST, Nereid

PIPE_MOST = 1 << 20
NAME = "a" * 900
REQUEST = rawhttp.head("POST", f"/v2/models/{NAME}/infer", body=b"{}") + b"{}"
MANY = 2 * PIPE_MOST // len(NAME)


class _Piped(Process):
    """A process whose output goes into a pipe that nobody reads until read() is called."""

    def __init__(self, name: str, argv: list[str], log_path: Path, env: dict[str, str] | None = None):
        self.pipe, to = os.pipe()
        super().__init__(name, argv, log_path, env, output=to)
        os.close(to)
        os.set_blocking(self.pipe, False)

    def read(self) -> str:
        """What is there now is kept as the log."""
        with open(self.log_path, "ab") as log, contextlib.suppress(BlockingIOError):
            while more := os.read(self.pipe, 1 << 20):
                log.write(more)
        return self.log()


class _Server(Nereid):
    def _launch(self) -> None:
        self._process = _Piped(self.kind, self.command(), Path(self._scratch.name) / "log", self.env)


@contextlib.contextmanager
def _serving(repository: Repository, options: dict[str, str | list[str]]) -> Iterator[tuple[_Server, _Piped]]:
    server = _Server(repository.path, options).start()
    process = server.process
    assert isinstance(process, _Piped)
    try:
        yield server, process
    finally:
        server.kill()
        os.close(process.pipe)


def _ask(server: Nereid, times: int = MANY) -> None:
    with rawhttp.Connection(HOST, server.http_port) as connection:
        for _ in range(times):
            connection.send(REQUEST)
            assert connection.answer().status == 404


def _lost(log: str) -> list[str]:
    return re.findall(r'^W\d{4} .*\] "(\d+) lines were lost since nobody read them"$', log, re.MULTILINE)


def test_requests_are_answered_and_lost_lines_told(repository: Repository) -> None:
    with _serving(repository, {"access-log": "-"}) as (server, process):
        _ask(server)
        server.process.wait_until(lambda: bool(_lost(process.read())), 60)  # without a further request
        _ask(server, 3)
        server.process.terminate()
        process.ends(0)
        log = process.read()
        lines = [line for line in log.splitlines() if "route=infer" in line]
        pattern = rf'\S+Z peer=\S+ protocol=http method=POST route=infer model="{NAME}" status=404 in=2 out=\d+ us=\d+ id=""'
        assert lines and all(re.fullmatch(pattern, line) for line in lines)
        assert len(lines) + sum(map(int, _lost(log))) >= MANY + 3
        assert "stopping" in log


@pytest.mark.parametrize("log_format", ["default", "json"])
def test_it_ends_when_told(repository: Repository, log_format: str) -> None:
    """Nothing is read at all: the end comes by itself, not by the time-out, with a good status."""
    options: dict[str, str | list[str]] = {"access-log": "-", "log-verbose": "9", "log-format": log_format, "exit-timeout-secs": "600"}
    with _serving(repository, options) as (server, process):
        _ask(server)
        server.process.terminate()
        process.ends(0)
