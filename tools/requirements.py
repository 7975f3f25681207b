#!/usr/bin/env python3
"""Which test proves which requirement: tools/requirements.list against the tests that name its ids.

    tools/requirements.py [--root FOLDER] [--check]

Writes docs/internals/requirements.md. A test names ids anywhere in its file: MC-08, or a range, PB-94 to PB-96 or PB-94..PB-96.
--check writes nothing and exits with 1, telling what is wrong: an id without a test that is not listed as not served, an id that the
list does not have, or a page that is not what it would be.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

LIST = "tools/requirements.list"
PAGE = "docs/internals/requirements.md"
GROUPS = "MR|RX|MC|PB|X"
NAMED = re.compile(rf"\b({GROUPS})-(\d+)(?:\s*(?:to|\.\.)\s*(?:({GROUPS})-)?(\d+)\b)?")
SUFFIXES = {".c", ".h", ".py", ".go", ".java", ".cc", ".cpp", ".mjs", ".js", ".md"}

TABLES = ("kinds.py", "held.py")  # of 41_compare: they cite ids and test nothing

INTRODUCTION = """\
# Requirements and their tests

Made by `tools/requirements.py` from `tools/requirements.list` and the tests, which name the ids that they prove; a gate fails on an
id without a test. MR is the model repository, RX its protocol extension, MC the model configuration, PB the configuration's schema,
X what these contradict each other in.

"""


class Wrong(Exception):
    """The list cannot be read."""


@dataclass
class Section:
    group: str
    ids: list[str]
    about: str


@dataclass
class Requirements:
    sections: list[Section] = field(default_factory=list)
    unserved: dict[str, str] = field(default_factory=dict)  # id -> why

    def ids(self) -> list[str]:
        return [name for section in self.sections for name in section.ids]


def spelled(group: str, number: int) -> str:
    return f"{group}-{number:02}"


def read_list(text: str) -> Requirements:
    found = Requirements()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if section := re.fullmatch(rf"({GROUPS}) (\d+)-(\d+) (\S.*)", line):
            group, first, last, about = section.groups()
            ids = [spelled(group, each) for each in range(int(first), int(last) + 1)]
            found.sections.append(Section(group, ids, about))
        elif unserved := re.fullmatch(r"- ([A-Z0-9 -]+): (\S.*)", line):
            found.unserved |= dict.fromkeys(unserved[1].split(), unserved[2])
        else:
            raise Wrong(f"{LIST}:{number}: cannot read {line!r}")
    known = found.ids()
    if len(set(known)) != len(known) or not set(found.unserved) <= set(known):
        raise Wrong(f"{LIST}: an id stands there twice, or is in no section")
    return found


def named_in(text: str) -> set[str]:
    names = set()
    for group, first, other, last in NAMED.findall(text):
        end = int(last) if last and other in ("", group) else int(first)
        names |= {spelled(group, number) for number in range(int(first), end + 1)}
    return names


def tests_of(root: Path) -> dict[str, list[str]]:
    """id -> the files that name it, relative to tests/."""
    tests: dict[str, list[str]] = {}
    for path in sorted((root / "tests").rglob("*")):
        if path.suffix not in SUFFIXES or not path.is_file() or "00_gates" in path.parts or path.name in TABLES:
            continue
        for name in named_in(path.read_text(errors="replace")):
            tests.setdefault(name, []).append(path.relative_to(root / "tests").as_posix())
    return tests


def gaps(wanted: Requirements, tests: dict[str, list[str]]) -> list[str]:
    known = set(wanted.ids())
    found = [f"{name}: no test names it, and {LIST} does not say why" for name in wanted.ids() if name not in tests and name not in wanted.unserved]
    return found + [f"{name}: {tests[name][0]} names it, {LIST} does not have it" for name in sorted(set(tests) - known)]


def page(wanted: Requirements, tests: dict[str, list[str]]) -> str:
    ids = wanted.ids()
    missing = [name for name in ids if name not in tests]
    lines = [INTRODUCTION + f"{len(ids)} requirements, {len(ids) - len(missing)} with a test.\n"]
    reasons: dict[str, list[str]] = {}
    for name in missing:
        reasons.setdefault(wanted.unserved.get(name, "no test yet"), []).append(name)
    if reasons:
        lines += ["## Not served\n", "| why | ids |", "|---|---|"]
        lines += [f"| {why} | {', '.join(names)} |" for why, names in reasons.items()] + [""]
    for section in wanted.sections:
        lines += [f"## {section.group}: {section.about}\n", "| id | tests |", "|---|---|"]
        for name in section.ids:
            where = ", ".join(f"`{path}`" for path in tests.get(name, [])) or "not served"
            lines.append(f"| {name} | {where} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    try:
        wanted = read_list((arguments.root / LIST).read_text())
    except Wrong as error:
        print(error, file=sys.stderr)
        return 1
    tests = tests_of(arguments.root)
    text, target = page(wanted, tests), arguments.root / PAGE
    if not arguments.check:
        target.write_text(text)
        return 0
    problems = gaps(wanted, tests)
    if not target.exists() or target.read_text() != text:
        problems.append(f"{PAGE} is not what it would be: run tools/requirements.py")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
