"""A test in which the reference crashes is asked again, with all that it uses made anew: that crash is no finding about this server."""

import pytest
from _pytest import runner

from .process import Process

TURNS = 4


def _forget_what_is_over() -> None:
    Process.others[:] = [each for each in Process.others if each.in_use()]


def _reference_crashed() -> bool:
    """During this test, or before where tests share it."""
    return any(each.crashed() for each in Process.others)


def _shared_with_the_next_is_ended(item: pytest.Item) -> pytest.TestReport:
    ended = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(None), when="teardown")
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=ended)
    return report


def run(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """The protocol of one test, as pytest's own; what is reported is the last turn. Where a server of ours is blamed there is no other."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for turn in range(1, TURNS + 1):
        _forget_what_is_over()
        blamed = Process.blamed
        reports = runner.runtestprotocol(item, log=False, nextitem=nextitem)
        if not any(report.failed for report in reports) or not _reference_crashed() or Process.blamed > blamed or turn == TURNS:
            break
        reports.append(_shared_with_the_next_is_ended(item))
        if reports[-1].failed:
            break
        terminal = item.config.pluginmanager.get_plugin("terminalreporter")
        if terminal:
            terminal.write_line(f"{item.nodeid}: asked again, since the reference crashed")
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
