"""The process among others: its descriptors."""

import os
from pathlib import Path

import pytest
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
