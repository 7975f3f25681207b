"""Several runs of pytest share the files of a folder: each takes the next that no other has.

NEREID_TEST_TAKEN names a folder in which whoever takes a file of tests makes a file. Without it a run has all tests for itself. Beside the
folder each run writes how many tests there are together, by which tools/run_tests.py sees that one has ended early.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


class Share:
    def __init__(self, root: Path, taken: Path):
        self.root, self.taken = root, taken
        self.mine: dict[Path, bool] = {}

    def _take(self, path: Path) -> bool:
        mark = self.taken / str(path.relative_to(self.root)).replace("/", "~")
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def of(self, items: list[pytest.Item]) -> Iterator[pytest.Item]:
        """Asks for a file once its first test is next: what comes later may go to others until then."""
        for item in items:
            if item.path not in self.mine:
                self.mine[item.path] = self._take(item.path)
            if self.mine[item.path]:
                yield item


def run(session: pytest.Session) -> bool | None:
    """The loop over the tests, as pytest's own; None where it shall be that one."""
    taken = os.environ.get("NEREID_TEST_TAKEN")
    if not taken or session.testsfailed or session.config.option.collectonly:
        return None
    Path(taken).with_suffix(".collected").write_text(str(len(session.items)))
    items = Share(session.config.rootpath, Path(taken)).of(session.items)
    item = next(items, None)
    while item:
        after = next(items, None)  # fixtures that both need are kept
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = after
    return True
