#!/usr/bin/env python3
"""Writes docs/user/differences.md, the differences between this server and Triton's, from the tables that the tests use.

    tools/differences.py [--root FOLDER] [--check]

The tables are tests/41_compare/kinds.py, whose differences are tested with generated requests to both servers, and held.py in the same
folder, where each difference names the tests that prove it. --check writes nothing; it prints what is wrong and exits with 1: a difference
without a reason or a source, a test that does not exist, or a page that differs from its tables.
"""

import argparse
import importlib
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = "tests/41_compare"
PAGE = "docs/user/differences.md"
COMPARISON = "test_compare.py"

INTRODUCTION = """\
# Differences from Triton

Made by `tools/differences.py` from `tests/41_compare/kinds.py` and `held.py`. "Triton" and "the reference" are the version that the tests
ask, 2.51. Each difference is held by a test: `41_compare/test_compare.py` asks both servers over 2,000 generated questions and fails where
they differ in anything else, down to the order of headers, and where a difference of this page does not show any more. Ids such as
RX-20 are those of [requirements](../internals/requirements.md). What Triton's command line has and this server does not is in
[command line](command-line.md).
"""
TITLES = {
    "client": "What clients see",
    "operator": "What operators see",
    "plug-in": "What backends, agents and caches see",
}


def tables(root: Path) -> list[Any]:
    """The differences of both tables. The tables import only the standard library."""
    sys.path.insert(0, str(root / FOLDER))
    sys.dont_write_bytecode = True
    kinds, held = importlib.import_module("kinds"), importlib.import_module("held")
    return [*kinds.KINDS, *held.HELD]


def has_test(root: Path, test: str) -> bool:
    path, _, name = test.partition("::")
    file = root / "tests" / path
    if not file.is_file():
        return False
    form = rf"^def {name}\(" if file.suffix == ".py" else rf"^static void {name}\("
    return re.search(form, file.read_text(), re.MULTILINE) is not None


def problems(root: Path, differences: list[Any]) -> list[str]:
    found = [f"{each.name}: two differences have this name" for i, each in enumerate(differences) if each.name in {e.name for e in differences[:i]}]
    for each in differences:
        found += [f"{each.name}: {what} is empty" for what in ("here", "there", "why", "source") if not getattr(each, what)]
        found += [f"{each.name}: there is no test {test}" for test in each.tests if not has_test(root, test)]
        if each.seen_by not in TITLES:
            found.append(f"{each.name}: nobody is {each.seen_by!r}")
    return found


def page(differences: list[Any]) -> str:
    text = INTRODUCTION
    for who, title in TITLES.items():
        text += f"\n## {title}\n"
        for each in sorted((one for one in differences if one.seen_by == who), key=lambda one: one.name.lower()):
            tests = ", ".join(f"`{test}`" for test in each.tests) or f"`{FOLDER.removeprefix('tests/')}/{COMPARISON}`"
            rows = {"Here": each.here, "Triton": each.there, "Why": each.why, "Source": each.source, "Held by": tests}
            text += f"\n### {each.name[0].upper()}{each.name[1:]}\n\n" + "".join(f"- **{what}:** {words}\n" for what, words in rows.items())
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    differences = tables(given.root)
    wrong, text, target = problems(given.root, differences), page(differences), given.root / PAGE
    if not given.check:
        target.write_text(text)
    elif not target.is_file() or target.read_text() != text:
        wrong.append(f"{PAGE} is not what its tables say: run tools/differences.py")
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
