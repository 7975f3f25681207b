"""The process among others: its terminal, its descriptors, its limits."""

import os
import signal
from pathlib import Path

import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid


class Started(Nereid):
    """Started by a line of the shell, in which "$@" is its command."""

    def __init__(self, line: str, repository: Repository, options: dict[str, str | list[str]] | None = None):
        super().__init__(repository.path, options)
        self.line = line

    def program(self) -> list[str]:
        return ["sh", "-c", self.line, "sh", *super().program()]


@pytest.mark.parametrize("closed", ["1>&-", "0<&- 1>&- 2>&-"])
def test_closed_descriptors_lead_nowhere(repository: Repository, tmp_path: Path, closed: str) -> None:
    """They are no file's that the server opens: the log would go there."""
    access = tmp_path / "access"
    with Started(f'exec "$@" {closed}', repository, {"access-log": str(access)}) as server:
        for each in closed.split():
            assert os.readlink(f"/proc/{server.pid}/fd/{each[0]}") == "/dev/null"
    lines = access.read_text().splitlines()
    assert lines and all("route=" in line for line in lines), lines


def test_a_log_at_the_limit_of_file_sizes(repository: Repository, tmp_path: Path) -> None:
    """Its lines are lost; the server goes on."""
    log = tmp_path / "log"
    log.touch()
    os.truncate(log, 8 << 20)
    with Started('ulimit -f 8192 && exec "$@"', repository, {"log-file": str(log)}) as server:
        assert rawhttp.get(server.http, "/v2/models/one/ready").status == 200
    assert log.stat().st_size == 8 << 20


def test_the_server_stops_with_its_terminal(repository: Repository) -> None:
    screen, terminal = os.openpty()
    # These tests may run under nohup themselves.
    server = Started(f'exec env --default-signal=HUP setsid --ctty "$@" <{os.ttyname(terminal)}', repository).start()
    os.close(terminal)
    os.close(screen)
    server.process.ends(0)
    assert "signal 1 (Hangup) received, stopping" in server.process.log()
    server.kill()


@pytest.mark.parametrize("how", ["no terminal", "nohup"])
def test_a_hangup_without_anything_to_read_anew_is_told(repository: Repository, how: str) -> None:
    screen, terminal = os.openpty()
    lines = {"no terminal": 'exec setsid "$@"', "nohup": f'trap "" HUP; exec setsid --ctty "$@" <{os.ttyname(terminal)}'}
    with Started(lines[how], repository) as server:
        for end in (terminal, screen):
            os.close(end)
        os.kill(server.pid, signal.SIGHUP)
        server.process.wait_until(lambda: "signal 1 (Hangup) received: there is nothing to read anew" in server.process.log(), 60)
        assert rawhttp.get(server.http, "/v2/models/one/ready").status == 200
