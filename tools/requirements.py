#!/usr/bin/env python3
"""Shows which test proves which requirement: compares tools/requirements.list with the tests that claim its ids.

    tools/requirements.py [--root FOLDER] [--check]

Writes docs/internals/requirements.md. A test function claims ids at the beginning of its docstring (in C: of the comment directly above
it): each id by itself, no ranges, with a colon or a full stop at the end.

    MC-12, MC-13: what the test shows       the test proves both
    reads PB-79: ...                        the server reads and shows the setting; its effect is not tested
    refuses MR-29; RX-20: ...               the server does not serve MR-29 and refuses it clearly; the test proves RX-20

What proves an id only by one of its cases says so there: in the table that the function is parametrised by, a dictionary of its own module
or of one that it is imported from, as the value of the case or as the first argument of a call that is the value. The page then names
function[case].

    @pytest.mark.parametrize("name", REFUSED)    with    REFUSED = {"bad_batch": claims("MC-15", _identity(max_batch_size=-1))}

--check writes nothing; it prints what is wrong and exits with 1: an id without a test and without a reason in the list, an id with both, an
id elsewhere in the tests, a function or a case that claims more than 12 ids, or a page that is out of date.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

LIST = "tools/requirements.list"
PAGE = "docs/internals/requirements.md"
ID = r"(?:MR|RX|MC|SX|PB|X)-\d+"
NAMED = re.compile(rf"\b{ID}\b")
RANGE = re.compile(rf"\b{ID}\s*(?:to|\.\.|-)\s*(?:{ID}\b|\d)")
GAP = r"(?:\s|\n \*)+"  # a claim may continue on the next line of a comment
CLAUSE = rf"(?:(?:reads|refuses){GAP})?{ID}(?:,{GAP}{ID})*"
CLAUSES = rf"{CLAUSE}(?:;{GAP}{CLAUSE})*"
CLAIM = re.compile(rf"{CLAUSES}(?=[:.])")
C_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
C_FUNCTION = re.compile(r"\n(?:static )?(?:void|int|bool) (\w+)\(")
C_TEST = r"(?:UNIT\w*|cmocka_unit_test\w*)\(\s*{}\b"
SUFFIXES = {".c", ".h", ".py", ".go", ".java", ".cc", ".cpp", ".mjs", ".js", ".md"}
NO_TESTS = ("00_gates", "41_compare")  # the first are tests of this tool; the second cite ids in differences between the two servers
KINDS = {"": "tested", "reads": "read only", "refuses": "refused"}
MOST = 12  # ids that one function claims: a function that claims more shows by no name which of its lines proves which

INTRODUCTION = """\
# Requirements and their tests

Made by `tools/requirements.py` from `tools/requirements.list` and the tests; a gate fails on an id that no test proves and no reason
excuses. MR is the model repository, RX its protocol extension, MC the model configuration, SX the sequence extension, PB the
configuration's schema. X is what these contradict each other in and how that is decided here.

"""


class Wrong(Exception):
    """The list cannot be read."""


@dataclass
class Section:
    title: str
    ids: list[str] = field(default_factory=list)


@dataclass
class Requirements:
    sections: list[Section] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)  # id -> what it asks for
    reasons: dict[str, str] = field(default_factory=dict)  # id -> why no test proves it


@dataclass
class Proofs:
    """Claims: kind -> id -> the functions that claim it, as file::function or file::function[case]."""

    claims: dict[str, dict[str, list[str]]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    problems: list[str] = field(default_factory=list)
    places: dict[Path, set[tuple[int, int]]] = field(default_factory=dict)  # where in each file claims stand: begin and end

    def add(self, claim: str, test: str, path: Path, span: tuple[int, int]) -> None:
        self.places.setdefault(path, set()).add(span)
        if (number := len(NAMED.findall(claim))) > MOST:
            self.problems.append(f"{test} claims {number} ids, at most {MOST} may be: put them on its cases, or divide it")
        for clause in claim.split(";"):
            kind = next((kind for kind in ("reads", "refuses") if kind in clause), "")
            for name in NAMED.findall(clause):
                self.claims[kind].setdefault(name, []).append(test)


def read_list(text: str) -> Requirements:
    found = Requirements()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if section := re.fullmatch(r"\[(.+)\]", line):
            found.sections.append(Section(section[1]))
        elif (wording := re.fullmatch(rf"({ID}) (\S.*)", line)) and found.sections and wording[1] not in found.words:
            found.sections[-1].ids.append(wording[1])
            found.words[wording[1]] = wording[2]
        elif (reason := re.fullmatch(rf"- ({ID}(?: {ID})*): (\S.*)", line)) and not found.reasons.keys() & set(reason[1].split()):
            found.reasons |= dict.fromkeys(reason[1].split(), reason[2])
        else:
            raise Wrong(f"{LIST}:{number}: cannot read {line!r}, or it stands there twice")
    if unknown := sorted(found.reasons.keys() - found.words.keys()):
        raise Wrong(f"{LIST}: {unknown[0]} has a reason and no wording")
    return found


class Module:
    """A module of tests: its text and tree, and what it imports from where."""

    def __init__(self, path: Path):
        self.path = path
        self.text = path.read_text()
        self.starts = [0]  # of each line
        for line in self.text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def position(self, line: int, column: int) -> int:
        """In the text, of what the tree counts in lines and bytes."""
        start = self.starts[line - 1]
        return start + len(self.text[start : self.starts[line]].encode()[:column].decode())

    def functions(self) -> Iterator[ast.FunctionDef]:
        """Those that pytest collects: here no test stands in a class."""
        if self.path.name.startswith("test_"):
            yield from (node for node in self.tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))

    def literals(self, name: str) -> Iterator[ast.Dict]:
        """The dictionaries that a name of the module gets, or gets more of."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and isinstance(node.value, ast.Dict):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    yield node.value

    def source_of(self, name: str, tests: Path) -> tuple["Module", str]:
        """The module that a name is imported from, and the name there; this one if it is not imported from a file of the tests."""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                there = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), None)
                files = [folder / f"{node.module.replace('.', '/')}.py" for folder in (self.path.parent, tests)]
                if there and (found := next((file for file in files if file.is_file()), None)):
                    return Module(found), there
        return self, name


def tables(function: ast.FunctionDef) -> Iterator[str]:
    """The names of what a test function is parametrised by."""
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith(".parametrize"):
            yield from (values.id for values in mark.args[1:2] if isinstance(values, ast.Name))


def cases(table: ast.Dict) -> Iterator[tuple[str, str, ast.Constant]]:
    """Each case with a claim: its name, the claim, and where that stands."""
    for key, value in zip(table.keys, table.values, strict=True):
        said = value.args[0] if isinstance(value, ast.Call) and value.args else value
        if isinstance(key, ast.Constant) and isinstance(said, ast.Constant) and re.fullmatch(CLAUSES, str(said.value)):
            yield str(key.value), str(said.value), said


def read_python(path: Path, shown: str, tests: Path, proofs: Proofs) -> None:
    module = Module(path)
    for function in module.functions() if NAMED.search(module.text) or ".parametrize" in module.text else ():
        if ast.get_docstring(function):
            begin = module.position(function.body[0].lineno, function.body[0].col_offset)
            if claim := CLAIM.match(module.text, begin + 3 if module.text.startswith('"""', begin) else len(module.text)):
                proofs.add(claim[0], f"{shown}::{function.name}", path, claim.span())
        for name in tables(function):
            source, there = module.source_of(name, tests)
            for table in source.literals(there):
                for case, ids, at in cases(table):
                    span = source.position(at.lineno, at.col_offset), source.position(at.end_lineno or 0, at.end_col_offset or 0)
                    proofs.add(ids, f"{shown}::{function.name}[{case}]", source.path, span)


def registered(text: str, function: str) -> bool:
    """Whether a C test program, given without its comments, runs a function as a test."""
    return re.search(C_TEST.format(function), text) is not None


def read_c(path: Path, shown: str, proofs: Proofs) -> None:
    text = path.read_text(errors="replace")
    code = C_COMMENT.sub("", text)
    for comment in C_COMMENT.finditer(text) if NAMED.search(text) else ():
        function = C_FUNCTION.match(text, comment.end())
        if function and registered(code, function[1]):
            claim = CLAIM.match(text, re.compile(r"[\s*]*").match(text, comment.start(1)).end())  # type: ignore[union-attr]
            if claim:
                proofs.add(claim[0], f"{shown}::{function[1]}", path, claim.span())


def read_strays(path: Path, shown: str, proofs: Proofs) -> None:
    """What names an id and claims nothing."""
    text = path.read_text(errors="replace")
    claimed = proofs.places.get(path, set())
    for match in RANGE.finditer(text):
        proofs.problems.append(f"{shown}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r} is a range: name each id")
    for match in NAMED.finditer(text):
        if not any(start <= match.start() < end for start, end in claimed):
            line = text.count("\n", 0, match.start()) + 1
            proofs.problems.append(f"{shown}:{line}: {match[0]} is named, but not where the docstring of a test function begins, nor by a case")


def read_tests(root: Path) -> Proofs:
    proofs = Proofs()
    tests = root / "tests"
    files = {path: path.relative_to(tests) for path in sorted(tests.rglob("*")) if path.suffix in SUFFIXES and path.is_file()}
    files = {path: shown for path, shown in files.items() if shown.parts[0] not in NO_TESTS}
    for path, shown in files.items():
        if path.suffix == ".py":
            read_python(path, shown.as_posix(), tests, proofs)
        elif path.suffix == ".c":
            read_c(path, shown.as_posix(), proofs)
    for path, shown in files.items():
        read_strays(path, shown.as_posix(), proofs)
    return proofs


def kind_of(name: str, wanted: Requirements, proofs: Proofs) -> str:
    """The state of an id: tested, read only, refused or not served."""
    if name in wanted.reasons:
        return next((KINDS[kind] for kind in ("refuses", "reads") if name in proofs.claims[kind]), "not served")
    return "tested" if name in proofs.claims[""] else "nothing"


def gaps(wanted: Requirements, proofs: Proofs) -> Iterator[str]:
    tested, refused = proofs.claims[""], proofs.claims["refuses"]
    for name in wanted.words:
        if name in tested and name in wanted.reasons:
            yield f"{name}: {tested[name][0]} proves it, and {LIST} says why nothing can"
        if name in refused and name not in wanted.reasons:
            yield f"{name}: {refused[name][0]} refuses it, and {LIST} does not say why"
        if kind_of(name, wanted, proofs) == "nothing":
            yield f"{name}: no test proves it, and {LIST} does not say why: {wanted.words[name]}"
    for claims in proofs.claims.values():
        for name in sorted(claims.keys() - wanted.words.keys()):
            yield f"{name}: {claims[name][0]} names it, {LIST} does not have it"


def counts(wanted: Requirements, proofs: Proofs) -> list[str]:
    kinds = [*KINDS.values(), "not served"]
    lines = ["| | ids | " + " | ".join(kinds) + " |", "|---|---|" + "---|" * len(kinds)]
    every = {"requirements": [name for name in wanted.words if name[0] != "X"], "X": [name for name in wanted.words if name[0] == "X"]}
    for title, ids in every.items():
        here = [kind_of(name, wanted, proofs) for name in ids]
        lines.append(f"| {title} | {len(ids)} | " + " | ".join(str(here.count(kind)) for kind in kinds) + " |")
    return lines


def row(name: str, wanted: Requirements, proofs: Proofs) -> str:
    kind = kind_of(name, wanted, proofs)
    word = next((word for word, shown in KINDS.items() if shown == kind), None)
    tests = [] if word is None else proofs.claims[word].get(name, [])
    proved = ", ".join(f"`{test}`" for test in tests)
    return f"| {name} | {wanted.words[name]} | " + (proved if kind == "tested" else f"**{kind}** {proved}".strip()) + " |"


def page(wanted: Requirements, proofs: Proofs) -> str:
    lines = [INTRODUCTION + "\n".join(counts(wanted, proofs)), ""]
    lines += ["## Not tested, and why\n", "Refused: a test shows that it is refused clearly. Read only: a test shows that it is read and shown.\n"]
    lines += ["| why | refused | read only | not served |", "|---|---|---|---|"]
    for why in dict.fromkeys(wanted.reasons.values()):
        mine = [name for name in wanted.reasons if wanted.reasons[name] == why]
        columns = [", ".join(name for name in mine if kind_of(name, wanted, proofs) == kind) for kind in ("refused", "read only", "not served")]
        lines.append(f"| {why} | {' | '.join(columns)} |")
    for section in wanted.sections:
        lines += ["", f"## {section.title}\n", "| id | what | proved by |", "|---|---|---|"]
        lines += [row(name, wanted, proofs) for name in section.ids]
    return "\n".join(lines) + "\n"


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
    proofs = read_tests(arguments.root)
    text, target = page(wanted, proofs), arguments.root / PAGE
    if not arguments.check:
        target.write_text(text)
        return 0
    problems = proofs.problems + list(gaps(wanted, proofs))
    if not target.exists() or target.read_text() != text:
        problems.append(f"{PAGE} is not what it would be: run tools/requirements.py")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
