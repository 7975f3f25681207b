#!/usr/bin/env python3
"""Plants one bug at a time in a folder of src/ and tells which of them no test notices.

    tools/mutate.py FOLDER [--count N] [--minutes M] [--seed S] [--file NAME.c] [--preset PRESET] [--pytest PATH ...]

FOLDER is one of src/, as src/LAYERS names it. A mutant differs from the source in one comparison, logical operator, sign, constant,
condition or statement. It is built in a copy of the tree (build/mutate/tree) and asked by the C tests whose name is its file's, then by all
C tests, then by the Python tests of --pytest; the first that fails has caught it. Mutants are drawn by chance from --seed, --count at most
and for --minutes at most; a mutant that does not build is drawn again. Survivors are printed, and written to build/mutate/FOLDER.txt;
each is either a test that is missing, or a place where both ways are right. The exit status is 0 however many survive.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutate"
TREE = WORK / "tree"
JOBS = str(os.cpu_count() or 2)
SECONDS = 300  # of one run of tests; a mutant that never ends is caught

TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\s+)
      |(?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b)
      |(?P<word>[A-Za-z_]\w*)
      |(?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
    "true": "false", "false": "true",
}
OPERAND = re.compile(r"[\w)\]]$")
KEYWORDS = {"return", "if", "else", "for", "while", "do", "switch", "case", "default", "goto", "break", "continue", "static", "const", "struct", "sizeof"}
ASSERTIONS = {"CHECK"}  # what can never happen


@dataclass(frozen=True)
class Token:
    text: str
    kind: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Mutant:
    path: Path  # below the root
    start: int
    end: int
    old: str
    new: str
    line: int

    def __str__(self) -> str:
        old = " ".join(self.old.split())
        return f"{self.path}:{self.line}: {old if len(old) < 90 else old[:87] + '...'} -> {self.new or 'nothing'}"


def tokens_of(text: str) -> list[Token]:
    return [Token(m.group(), m.lastgroup or "", m.start()) for m in TOKEN.finditer(text) if m.lastgroup != "skip"]


def closing(tokens: list[Token], at: int) -> int:
    """The index of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].text, 0)
        if depth == 0:
            return i
    return len(tokens) - 1


def changes(tokens: list[Token]) -> Iterator[tuple[int, int, str]]:
    """(start, end, what stands there instead) of every mutant inside function bodies."""
    depth = 0
    opened: list[str] = []  # the words before the brackets that are open
    closed = ""  # that before the one that was closed last
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if token.text == "(":
            opened.append(before)
        elif token.text == ")":
            closed = opened.pop()
        if depth == 0:
            continue
        if token.text in SWAPS and (token.text not in "+-" or OPERAND.search(before) and before not in KEYWORDS):
            yield token.start, token.end, SWAPS[token.text]
        elif token.text == "!":
            yield token.start, token.end, ""
        elif token.kind == "number" and before != "[":
            yield token.start, token.end, {"0": "1", "1": "0"}.get(token.text, f"({token.text} + 1)")
        elif token.text in ("if", "while") and i + 1 < len(tokens):
            end = closing(tokens, i + 1)
            inside = [each.text for each in tokens[i + 2 : end]]
            if not set(inside) & (set(SWAPS) | {"!"}):  # else one of these is mutated
                yield tokens[i + 1].end, tokens[i + 1].end, "!("
                # its closing bracket is added by apply(), which sees the unbalanced one
        elif token.kind == "word" and token.text not in KEYWORDS | ASSERTIONS and not opened and begins(before, closed):
            end = next((j for j in range(i, len(tokens)) if tokens[j].text in (";", "{")), i)
            statement = [each.text for each in tokens[i:end]]
            is_call = len(statement) > 2 and statement[1] == "("
            is_assignment = len(statement) > 2 and statement[1] in ("=", "->", ".", "[", "+=", "-=", "++", "--")
            if tokens[end].text == ";" and (is_call or is_assignment):
                yield token.start, tokens[end].start, ""


def begins(before: str, closed: str) -> bool:
    """Whether a statement begins behind this token."""
    return before in ("{", "}", ";", "else") or before == ")" and closed in ("if", "for", "while")


def mutants_of(path: Path) -> list[Mutant]:
    text = (ROOT / path).read_text()
    tokens = tokens_of(text)
    found = []
    for start, end, new in changes(tokens):
        if new == "!(":
            opened = next(i for i, token in enumerate(tokens) if token.end == start)
            end = tokens[closing(tokens, opened)].start
            new = f"!({text[start:end]})"
        found.append(Mutant(path, start, end, text[start:end], new, text.count("\n", 0, start) + 1))
    return found


def prepare(preset: str) -> None:
    """A copy of the tree that shares what was downloaded."""
    TREE.mkdir(parents=True, exist_ok=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, TREE / name
        if source.is_file() and (not target.is_file() or target.read_bytes() != source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    (TREE / "build").mkdir(exist_ok=True)
    for shared in ("deps", "venv", ".setup", ".apt", "models", "models-examples"):
        if (ROOT / "build" / shared).exists() and not (TREE / "build" / shared).exists():
            (TREE / "build" / shared).symlink_to(ROOT / "build" / shared)
    # A mutant may leave something unused, which is no reason not to ask the tests about it.
    subprocess.run(["cmake", "--preset", preset, "-DNEREID_WERROR=OFF"], cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    if build(preset) is not None:
        sys.exit("mutate: the tree does not build as it is; see tools/build.sh")


def attempt(argv: list[str], env: dict[str, str] | None = None) -> str | None:
    """None: it succeeded. Else the end of what it printed."""
    try:
        done = subprocess.run(
            argv, cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
            text=True, errors="replace", env={**os.environ, **(env or {})}, check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {SECONDS} s"
    return None if done.returncode == 0 else done.stdout[-2000:]


def build(preset: str) -> str | None:
    return attempt(["ninja", "--quiet", "-C", f"build/{preset}", "-j", JOBS])


def ctest(preset: str, only: str) -> str | None:
    argv = ["ctest", "--test-dir", f"build/{preset}", "-j", JOBS, "--stop-on-failure", "--no-tests=ignore", "--timeout", str(SECONDS)]
    return attempt([*argv, "-R", only])


def pytest(preset: str, paths: list[str]) -> str | None:
    if not paths:
        return None
    argv = ["build/venv/bin/python", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not reference", *paths]
    return attempt(argv, {"NEREID_BUILD": f"build/{preset}", "PYTHONDONTWRITEBYTECODE": "1"})


def caught_by(mutant: Mutant, preset: str, paths: list[str]) -> str | None:
    """Which tests noticed it; "build" where it does not build; None where it survives."""
    source = TREE / mutant.path
    original = source.read_text()
    source.write_text(original[: mutant.start] + mutant.new + original[mutant.end :])
    try:
        if build(preset) is not None:
            return "build"
        if ctest(preset, rf"test_{mutant.path.stem}$") is not None:
            return "the test of its file"
        if ctest(preset, ".") is not None:
            return "another C test"
        if pytest(preset, paths) is not None:
            return "a Python test"
        return None
    finally:
        source.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", help="only this file of the folder")
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--pytest", nargs="*", default=[])
    options = parser.parse_args()
    sources = sorted((ROOT / "src" / options.folder).glob(options.file or "*.c"))
    if not sources:
        sys.exit(f"mutate: src/{options.folder} has no such C file")
    mutants = [mutant for path in sources for mutant in mutants_of(path.relative_to(ROOT))]
    random.Random(options.seed).shuffle(mutants)
    print(f"{len(mutants)} mutants in {len(sources)} files; at most {options.count} of them, {options.minutes:g} minutes", flush=True)
    prepare(options.preset)
    deadline = time.monotonic() + 60 * options.minutes
    outcomes: dict[str, int] = {}
    survivors: list[Mutant] = []
    for mutant in mutants:
        asked = sum(outcomes.values())
        if asked == options.count or time.monotonic() > deadline:
            break
        by = caught_by(mutant, options.preset, options.pytest)
        if by == "build":
            continue
        outcomes[by or "nothing"] = outcomes.get(by or "nothing", 0) + 1
        if by is None:
            survivors.append(mutant)
        print(f"[{asked + 1}] {mutant}: {'caught by ' + by if by else 'SURVIVES'}", flush=True)
    (WORK / f"{options.folder}.txt").write_text("".join(f"{mutant}\n" for mutant in sorted(survivors, key=str)))
    print(f"{sum(outcomes.values())} mutants: " + ", ".join(f"{number} by {by}" for by, number in sorted(outcomes.items())))
    for mutant in survivors:
        print(f"survives: {mutant}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
