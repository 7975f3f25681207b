"""The reference's log, read as records.

Several writers share its two streams, each with a lock of its own. What goes to the standard error is one write, its line feed another;
what goes to the standard output passes through a buffer, so that it may come in parts. So a record may begin in the middle of a line,
and one of the standard error may lie between two parts of another, even of its header.
"""

import re
from itertools import pairwise

_PLACE = r"\d+ [^\s:\]]+:\d+\] "  # the thread, the file, the line
_CLOCK = r"\d\d:\d\d:\d\d"


def _header(levels: str) -> str:
    return rf"(?:[{levels}]\d{{4}} {_CLOCK}\.\d{{6}} |\d{{4}}-\d\d-\d\dT{_CLOCK}Z [{levels}] ){_PLACE}"


_HEADER = re.compile(_header("IWEF"))
_IN_ONE_WRITE = re.compile(_header("WEF") + r'"(?:[^"\\]|\\.)*"\n?')


def records(log: str) -> list[str]:
    """In the order in which they begin, each without the line feeds after it; what is not of the log itself belongs to the record before it."""
    rest, end = "", 0
    found: list[tuple[int, bool, str]] = []  # where it begins in what is left, whether it is of that, its text
    for whole in _IN_ONE_WRITE.finditer(log):
        rest += log[end : whole.start()]
        found.append((len(rest), False, whole[0]))
        end = whole.end()
    rest += log[end:]
    starts = [0, *(header.start() for header in _HEADER.finditer(rest)), len(rest)]
    found += [(start, True, rest[start:after]) for start, after in pairwise(starts)]
    texts = [text.rstrip("\n") for *_, text in sorted(found, key=lambda each: each[:2])]
    return [text for text in texts if text]


def mended(log: str) -> str:
    """The same log where each record begins a line, and an empty line follows a table. What is not yet whole at its end has no line feed."""
    lines = "\n".join(f"{each}\n" if each.endswith("-+") else each for each in records(log))
    return f"{lines}\n" if log.endswith("\n") else lines
