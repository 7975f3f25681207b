#!/usr/bin/env python3
"""Writes docs/user/differences.md, the differences between this server and Triton's, from the tables that the tests use.

    tools/differences.py [--root FOLDER] [--check]

The tables are in tests/41_compare: the kinds of difference in kinds.py; in known.py the differences that are tested with generated requests
to both servers; in held.py those that name the tests that prove them. --check writes nothing; it prints what is wrong and exits with 1: a
difference without a reason or a source, a source of no known form, a kind without a difference, too many kinds, a test that does not exist,
or a page that differs from its tables.
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

ID = re.compile(r"\b(?:MR|RX|MC|SX|PB|X)-\d+\b")
FUNCTION = re.compile(r"\bTRITON[A-Z]+_\w+")
# Besides these: ids of requirements, functions of the public headers, and the standards of kinds.py.
CITED = re.compile(
    r"\bRFC \d+"
    r"|\bCVE-\d{4}-\d{4,}|\bCWE-\d+"
    r"|\b\w+\.(?:cc|h|proto)\b"  # a file of the reference
    r"|[Dd]efect of the reference(?:'s \w+ backend)?: \w+ \w+"
)

INTRODUCTION = """\
# Differences from Triton

Made by `tools/differences.py` from the tables in `tests/41_compare`. "Triton" and "the reference" are the version that the tests ask, 2.51.
Each difference is of one of {count} kinds: a cause, and what says so. Each is held by a test: `41_compare/test_compare.py` asks both servers
over 3,100 generated questions and fails where they differ in anything else, down to the order of headers, and where a difference of this page
does not show any more. Ids such as RX-20 are those of [requirements](../internals/requirements.md). What Triton's command line has and this
server does not is in [command line](command-line.md).

| kind | differences |
|---|---|
"""


def tables(root: Path) -> tuple[Any, list[Any]]:
    """The module of the kinds, and the differences of both tables. They import only the standard library."""
    sys.path.insert(0, str(root / FOLDER))
    sys.dont_write_bytecode = True
    kinds, known, held = (importlib.import_module(name) for name in ("kinds", "known", "held"))
    return kinds, [*known.SHOWN, *held.HELD]


def has_test(root: Path, test: str) -> bool:
    path, _, name = test.partition("::")
    file = root / "tests" / path
    if not file.is_file():
        return False
    form = rf"^def {name}\(" if file.suffix == ".py" else rf"^static void {name}\("
    return re.search(form, file.read_text(), re.MULTILINE) is not None


def sources(root: Path, standards: tuple[str, ...], differences: list[Any]) -> list[str]:
    """What says that a difference is right can be looked up, or it is told what is wrong there."""
    ids = set(ID.findall((root / "tools/requirements.list").read_text()))
    functions = {name for header in (root / "include/triton/core").glob("*.h") for name in FUNCTION.findall(header.read_text())}
    found = []
    for each in differences:
        named = ID.findall(each.source), FUNCTION.findall(each.source)
        found += [f"{each.name}: there is no requirement {name}" for name in named[0] if name not in ids]
        found += [f"{each.name}: no header has {name}" for name in named[1] if name not in functions]
        cites = any(named) or CITED.search(each.source) or any(re.search(rf"\b{re.escape(one)}\b", each.source) for one in standards)
        if not cites and not each.kind.more:
            found.append(f"{each.name}: the source names no standard, requirement, weakness, file, or what is wrong there: {each.source}")
    return found


def problems(root: Path, kinds: Any, differences: list[Any]) -> list[str]:
    found = [f"{each.name}: two differences have this name" for i, each in enumerate(differences) if each.name in {e.name for e in differences[:i]}]
    for each in differences:
        found += [f"{each.name}: {what} is empty" for what in ("here", "there", "why", "source") if not getattr(each, what)]
        found += [f"{each.name}: there is no test {test}" for test in each.tests if not has_test(root, test)]
        if each.seen_by not in (kinds.CLIENT, kinds.OPERATOR, kinds.PLUGIN):
            found.append(f"{each.name}: nobody is {each.seen_by!r}")
    found += sources(root, kinds.STANDARDS, differences)
    for kind in kinds.KINDS:
        found += [f"{kind.name}: {what} is empty" for what in ("cause", "source") if not getattr(kind, what)]
        found += [] if any(each.kind is kind for each in differences) else [f"{kind.name}: no difference is of this kind"]
    if len(kinds.KINDS) > kinds.AT_MOST:
        found.append(f"{len(kinds.KINDS)} kinds of difference, at most {kinds.AT_MOST} are allowed")
    return found


def title(name: str) -> str:
    return name if name.startswith("gRPC") else name[0].upper() + name[1:]


def part(kind: Any, differences: list[Any]) -> str:
    text = f"\n## {title(kind.name)}\n\n{kind.cause}\nSource: {kind.source}\n"
    for each in sorted(differences, key=lambda one: one.name.lower()):
        tests = ", ".join(f"`{test}`" for test in each.tests) or f"`{FOLDER.removeprefix('tests/')}/{COMPARISON}`"
        rows = {"Here": each.here, "Triton": each.there, "Why": each.why, "Source": each.source, "Seen by": each.seen_by, "Held by": tests}
        text += f"\n### {title(each.name)}\n\n" + "".join(f"- **{what}:** {words}\n" for what, words in rows.items())
    return text


def page(kinds: Any, differences: list[Any]) -> str:
    of = {kind: [each for each in differences if each.kind is kind] for kind in kinds.KINDS}
    contents = "".join(f"| {title(kind.name)} | {len(some)} |\n" for kind, some in of.items())
    return INTRODUCTION.format(count=len(of)) + contents + "".join(part(kind, some) for kind, some in of.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    kinds, differences = tables(given.root)
    wrong, text, target = problems(given.root, kinds, differences), page(kinds, differences), given.root / PAGE
    if not given.check:
        target.write_text(text)
    elif not target.is_file() or target.read_text() != text:
        wrong.append(f"{PAGE} is not what its tables say: run tools/differences.py")
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
