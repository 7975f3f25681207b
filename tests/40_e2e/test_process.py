"""The process among others: its descriptors, its limits."""

import os
from pathlib import Path

import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "models")
    made.identity("one")
    return made


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
