#!/usr/bin/env python3
"""Checks docs/internals/promises.md against the pages that make the promises and the tests that prove them.

    tools/promises.py [--root FOLDER]

Each row of its tables has a promise, its source (a page and a quotation from it, or the blueprint), the tests that prove it, and the bound,
written exactly as in a test: in the code of the function, its decorators included, or of a constant of its file that it names. The exit
status is 1, and a line says why, if a test does not exist, a page does not have the quotation, none of the row's tests has the bound, or a
line of README.md or docs/user has an amount with a unit and no row quotes it.

On every page of docs/internals the rows of a table whose last column is "shown by" name tests that exist.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

PAGE = "docs/internals/promises.md"
SOURCE = re.compile(r"`([\w./-]+\.md)` \"([^\"]+)\"")
TEST = re.compile(r"`(tests/[\w./-]+)::(\w+)`")
C_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
C_CONSTANT = re.compile(r"^#define (?P<name>\w+)(?:[^\\\n]|\\\n)*", re.MULTILINE)
CONSTANT = re.compile(r"[A-Z_]+ = ")
BOUND = re.compile(r"`([^`]+)`")
UNIT = r"(?:ms|us|ns|s|seconds?|minutes?|hours?|KiB|MiB|GiB|TiB|%|times|bytes)"
AMOUNT = re.compile(rf"\d[\d,.]* ?{UNIT}(?!\w)|\b(?:half a|within a|for a|than a|after a|lines a) (?:second|minute|hour)\b")
MADE = ("differences.md",)  # pages made from tables that have tests of their own


@dataclass
class Promise:
    words: str
    source: str
    tests: str
    bound: str


def promises(page: str) -> list[Promise]:
    """The rows of all tables that have the header of a table of promises."""
    found: list[Promise] = []
    inside = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else []
        if cells[:1] == ["promise"]:
            inside = True
        elif not cells:
            inside = False
        elif inside and not line.startswith("|--"):
            found.append(Promise(*(cells + [""] * 4)[:4]))
    return found


def without_comments(text: str) -> str:
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            lines[line - 1] = lines[line - 1][:column]
    return "\n".join(lines)


def python_code(text: str, name: str) -> str | None:
    """A function without its docstring, and the constants of its file that it and they name; or a constant. None if there is neither."""
    text = without_comments(text)
    tree, lines = ast.parse(text), text.split("\n")
    constants: dict[str, list[ast.stmt]] = defaultdict(list)
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []:
            if isinstance(target, ast.Name):
                constants[target.id].append(node)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    waiting: list[ast.stmt] = [*functions] or constants.pop(name, [])
    code = []
    while waiting:
        node = waiting.pop()
        begin = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", []))])
        said = node.body[0] if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) else None
        told = range(said.lineno, (said.end_lineno or 0) + 1) if said else ()
        code += [lines[number - 1] for number in range(begin, (node.end_lineno or 0) + 1) if number not in told]
        waiting += [each for part in ast.walk(node) if isinstance(part, ast.Name) for each in constants.pop(part.id, [])]
    return "\n".join(code) if code else None


def c_code(text: str, name: str) -> str | None:
    """A C test without comments, and the macros of its file that it names."""
    text = C_COMMENT.sub("", text)
    function = re.search(rf"^static void {name}\(.*?^\}}", text, re.MULTILINE | re.DOTALL)
    if not function:
        return None
    named = set(re.findall(r"\w+", function[0]))
    return "\n".join([function[0], *(each[0] for each in C_CONSTANT.finditer(text) if each["name"] in named)])


def code_of(root: Path, path: str, name: str) -> str | None:
    """The code of a test; None if the file or the test does not exist."""
    file = root / path
    if not file.is_file():
        return None
    return (python_code if file.suffix == ".py" else c_code)(file.read_text(), name)


def plain(text: str) -> str:
    return " ".join(text.split())


def holds(code: str, bound: str) -> bool:
    """A constant's whole value, or words that do not go on: neither more digits nor an operator."""
    if CONSTANT.match(bound):
        return any(plain(line) == plain(bound) for line in code.splitlines())
    return re.search(rf"(?<![\w.]){re.escape(plain(bound))}(?![\w.])(?! ?(?:[*/%+-]|<<|>>|if ))", plain(code)) is not None


def of_row(root: Path, row: Promise) -> list[str]:
    found = []
    if row.source not in ("the blueprint", "this page"):
        sources = SOURCE.findall(row.source)
        found += [] if sources else [f"{row.words}: no page and words stand in {row.source!r}"]
        for page, words in sources:
            file = root / page
            if not file.is_file() or plain(words) not in plain(file.read_text()):
                found.append(f"{row.words}: {page} does not say {words!r}")
    tests = TEST.findall(row.tests)
    texts = [code_of(root, *test) for test in tests]
    found += [f"{row.words}: there is no test {'::'.join(test)}" for test, text in zip(tests, texts, strict=True) if text is None]
    if not tests and not row.tests.startswith("not held"):
        found.append(f"{row.words}: no test, and not said that it is not held")
    for bound in BOUND.findall(row.bound):
        if tests and not any(text and holds(text, bound) for text in texts):
            found.append(f"{row.words}: none of its tests has the bound {bound!r}")
    if tests and not BOUND.search(row.bound):
        found.append(f"{row.words}: no bound")
    return found


def shown(root: Path) -> list[str]:
    """What is wrong with the tables that end in "shown by"."""
    found = []
    for page in sorted((root / "docs/internals").glob("*.md")):
        inside = False
        for line in page.read_text().splitlines():
            if not line.startswith("|"):
                inside = False
            elif line.endswith("| shown by |"):
                inside = True
            elif inside and not line.startswith("|--"):
                cells = line.strip("|").split(" | ")
                tests = TEST.findall(cells[-1])
                where = f"{page.relative_to(root)}: {cells[0].strip()}"
                found += [] if tests else [f"{where}: shown by no test"]
                found += [f"{where}: there is no test {'::'.join(test)}" for test in tests if code_of(root, *test) is None]
    return found


def amounts(root: Path) -> list[tuple[str, str]]:
    """(page, line) of each line on the pages for users that has an amount."""
    found = []
    for file in [root / "README.md", *sorted((root / "docs/user").glob("*.md"))]:
        if file.name in MADE or not file.is_file():
            continue
        text = re.sub(r"^```.*?^```$|^    [^\n]*$", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
        found += [(str(file.relative_to(root)), line) for line in text.splitlines() if AMOUNT.search(line)]
    return found


def problems(root: Path) -> list[str]:
    page = (root / PAGE).read_text()
    rows = promises(page)
    found = shown(root) + [line for row in rows for line in of_row(root, row)]
    quoted = SOURCE.findall(page)
    for file, line in amounts(root):
        if not any(at == file and (plain(words) in plain(line) or plain(line) in plain(words)) for at, words in quoted):
            found.append(f"{file}: no row quotes this line with an amount: {line.strip()[:100]}")
    if any("no row quotes" in line for line in found):
        found.append(f"{PAGE}: give it a row with its test, or a line under 'Amounts that promise nothing'")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Promises against the tests that hold them.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    found = problems(root)
    for line in found:
        print(line)
    print(f"promises: {len(promises((root / PAGE).read_text()))} promises, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
