#!/usr/bin/env python3
"""Plants one bug at a time in src/ and reports the bugs that no test notices.

    tools/mutate.py FOLDER [--count N] [--minutes M] [--seed S] [--file NAME.c] [--preset PRESET] [--near] [--python]
    tools/mutate.py --planted [NAME...] [--preset PRESET]

FOLDER is one of src/, as src/LAYERS names it. A mutant differs from the source in one comparison, logical operator, sign, constant,
condition or statement. It is built in a copy of the tree (build/mutate/tree) and asked by the C tests whose name is its file's, then by
those that include its header or another of its folder, then by those that embed the server, then by all other C tests; the first that
fails has caught it, and no more is built than is asked. With --near the last are left out. Mutants are drawn by chance from --seed,
--count at most and for --minutes at most; a mutant that does not build is drawn again. With --python those that survived are asked by the
Python tests of tools/check.list once the time is over. Survivors are printed, and written to build/mutate/FOLDER.txt; each is either a
test that is missing, or a place where both ways are right. The exit status is 0 however many survive, and 1 if no test was asked about any.

With --planted, it plants the bugs of tests/mutants.list one at a time and runs the tests that must notice each one. The exit status is 1 if
a test did not, or if a bug or a test does not build.

Either way the tests are first run on the tree as it is: what fails there catches nothing.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import check
import copies
import planted
from run_tests import SANITIZER_ENV, c_tests, end_when_told

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutate"
TREE = WORK / "tree"
JOBS = str(os.cpu_count() or 2)
# Limits for a processor that is there at once; patience() says what they are on a busy machine.
SECONDS = 900  # of one build, or of one run of Python tests
SECONDS_FOR_C = (30, 15)  # of a run of C tests: fixed part, and for each test; a mutant that never ends counts as caught by time-out
SECONDS_FOR_ALL = 4 * 3600  # of what is done once: the first build, all tests on the tree as it is
LIMITS = {"ASAN_OPTIONS": SANITIZER_ENV["ASAN_OPTIONS"] + ":hard_rss_limit_mb=4096"}  # a mutant may try to allocate all memory
SUSPECT = ("unused-function", "unused-variable", "unused-but-set-variable", "unused-parameter", "unused-value", "unused-but-set-parameter", "type-limits")
FOR_PYTHON = ("server", "frameworks", "50_config_text_tool")  # targets that Python tests need, and that src/ changes
LIBRARIES = {  # the build target of a folder, by what it lies in
    "src": "nereid_{}", "backends": "triton_{}", "caches": "tritoncache_{}", "repoagents": "tritonrepoagent_{}",
    "modules": "nereid_{}_module", "bindings": "nereid_package",
}  # fmt: skip
FAR = "another C test"
AT_ONCE = 6  # number of C tests that are built and run together
BUILD = "build"  # what "caught" a mutant that does not build
OURS = ("-m", "not reference")
PLUGINS = ("server",)  # libraries that C tests with an embedded server open while they run

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
ASSERTIONS = {"CHECK", "CHECK_MAGIC", "mutex_assert_held"}  # they check what can never happen, so removing one is no bug


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
    path: Path  # relative to the root
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
    """All mutants inside function bodies: (start, end, replacement)."""
    depth = 0
    opened: list[str] = []  # the word before each bracket that is open
    closed = ""  # the word before the bracket that was closed last
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
            if not set(inside) & (set(SWAPS) | {"!"}):  # else the operator inside gives the mutant
                yield tokens[i + 1].end, tokens[i + 1].end, "!("
                # mutants_of() adds the closing bracket
        elif token.kind == "word" and token.text not in KEYWORDS | ASSERTIONS and not opened and begins(before, closed):
            end = next((j for j in range(i, len(tokens)) if tokens[j].text in (";", "{")), i)
            statement = [each.text for each in tokens[i:end]]
            is_call = len(statement) > 2 and statement[1] == "("
            is_assignment = len(statement) > 2 and statement[1] in ("=", "->", ".", "[", "+=", "-=", "++", "--")
            if tokens[end].text == ";" and (is_call or is_assignment):
                yield token.start, tokens[end].start, ""


def begins(before: str, closed: str) -> bool:
    """True if a statement begins after the token `before`."""
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


@dataclass(frozen=True)
class Failure:
    said: str  # the end of the output
    in_time: bool = True


def prepare(preset: str) -> None:
    """Makes a copy of the tree, which shares with the original what that has downloaded and prepared, and builds it."""
    names = copies.copy_sources(ROOT, TREE)
    for folder in (path for path in TREE.iterdir() if path.is_dir() and path.name != "build"):
        for path in folder.rglob("*"):
            if path.is_file() and str(path.relative_to(TREE)) not in names:
                path.unlink()  # the original does not have the file any more
    # The reference's plug-ins are of build/release. Where that is what is changed, it is the copy's own.
    copies.share_build(ROOT, TREE, {"release"} - {preset})
    subprocess.run(["cmake", "--preset", preset], cwd=TREE, check=True, stdout=subprocess.DEVNULL)
    if (failure := build(preset, seconds=SECONDS_FOR_ALL)) is not None:
        sys.exit(f"{failure.said}\nmutate: the tree does not build as it is; see tools/build.sh")


def patience(seconds: float) -> float:
    """The limit on a machine where several wait for each processor."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 2))


def attempt(argv: list[str], env: dict[str, str] | None = None, seconds: float = SECONDS) -> Failure | None:
    """Runs a command in a session of its own, which ends with it: a mutant may kill its group. None if it succeeded."""
    limit = patience(seconds)
    with subprocess.Popen(
        argv, cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env={**os.environ, **SANITIZER_ENV, **LIMITS, **(env or {})}, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=limit)
        except BaseException as error:  # also where this tool is to end
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return Failure(f"{' '.join(argv)[:200]} did not end within {limit:.0f} s", in_time=False)
    return None if process.returncode == 0 else Failure(said[-2000:], in_time="(Timeout)" not in said)  # ctest's word for one test


def build(preset: str, *targets: str, seconds: float = SECONDS) -> Failure | None:
    return attempt(["ninja", "--quiet", "-C", f"build/{preset}", "-j", JOBS, *targets], seconds=seconds)


def ctest(preset: str, names: list[str], seconds: float | None = None) -> Failure | None:
    only = "|".join(re.escape(name) for name in names)
    argv = ["ctest", "--test-dir", f"build/{preset}", "-j", "1", "--stop-on-failure", "--no-tests=error"]
    limit = seconds or SECONDS_FOR_C[0] + len(names) * SECONDS_FOR_C[1]
    return attempt([*argv, "-R", f"^({only})$"], seconds=limit) if names else None


def pytest(preset: str, paths: list[str], *options: str, seconds: float = SECONDS) -> Failure | None:
    argv = ["build/venv/bin/python", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options, *paths]
    return attempt(argv, {"NEREID_BUILD": f"build/{preset}", "PYTHONDONTWRITEBYTECODE": "1"}, seconds) if paths else None


def whole_text(path: Path) -> str:
    """The source of a C test, with the files of the folders next to it that it includes: headers that those include count as its own."""
    text = path.read_text()
    beside = {path.parent / name for name in re.findall(r'^#include "(\w+)/', text, re.MULTILINE)}
    return text + "".join(helper.read_text() for folder in beside if folder.is_dir() for helper in sorted(folder.glob("*.[ch]")))


def circles(path: Path, near: bool) -> Iterator[tuple[str, list[str]]]:
    """The C tests in groups, each test once: first the test of the file; last, but not with near, those of other folders."""
    tests = {name: path.read_text() if name.startswith("fuzz.") else whole_text(path) for name, path in c_tests().items()}
    folder = path.parent.relative_to("src")
    kinds: list[tuple[str, Callable[[str, str], bool]]] = [
        ("the test of its file", lambda name, text: re.search(rf"\.(test_)?{path.stem}$", name) is not None),
        ("a test of its folder", lambda name, text: f'"{folder}/{path.stem}.h"' in text),
        ("a test of its folder", lambda name, text: f'"{folder}/' in text),
        ("a test that embeds the server", lambda name, text: name.startswith("10_inprocess.")),
        (FAR, lambda name, text: True),
    ]
    for title, belongs in kinds[:-1] if near else kinds:
        names = [name for name, text in tests.items() if belongs(name, text)]
        for name in names:
            tests.pop(name)
        yield title, names


def target_of(test: str) -> str:
    return test.replace(".", "_", 1)


@contextmanager
def put(path: Path, change: Callable[[str], str]) -> Iterator[None]:
    """Changes one file of the copied tree for a while. Warnings about unused names are off, since the change may cause some."""
    source = TREE / path
    original = source.read_text()
    source.write_text("".join(f'#pragma GCC diagnostic ignored "-W{name}"\n' for name in SUSPECT) + change(original))
    try:
        yield
    finally:
        source.write_text(original)


def put_in(mutant: Mutant) -> AbstractContextManager[None]:
    return put(mutant.path, lambda text: text[: mutant.start] + mutant.new + text[mutant.end :])


def by_c_tests(mutant: Mutant, preset: str, near: bool) -> str | None:
    """The group of tests that caught the mutant; BUILD if it does not build; None if it survived."""
    with put_in(mutant):
        if build(preset, library_of(mutant.path)) is not None:
            return BUILD
        for title, names in circles(mutant.path, near):
            for first in range(0, len(names), AT_ONCE):
                some = names[first : first + AT_ONCE]
                plugins = PLUGINS if any(name.startswith("10_inprocess.") for name in some) else ()
                if build(preset, *map(target_of, some), *plugins) is not None:
                    return BUILD
                if (failure := ctest(preset, some)) is not None:
                    return how(failure) + title
    return None


def how(failure: Failure) -> str:
    return "" if failure.in_time else "time-out of "


def result(by: str | None) -> str:
    return "SURVIVES" if by is None else "DOES NOT BUILD" if by == BUILD else f"caught by {by}"


def rungs_of(path: Path) -> list[list[str]]:
    """The Python tests of a file of src/, by their folder, since each has its own conftest."""
    rungs: dict[str, list[str]] = {}
    for test in check.tests_of([str(path)]):
        rungs.setdefault(test.split("/")[1], []).append(test)
    return list(rungs.values())


def by_python_tests(mutant: Mutant, preset: str) -> str | None:
    """The Python tests that caught the mutant; BUILD if it does not build; None if it survived."""
    with put_in(mutant):
        if build(preset, *FOR_PYTHON) is not None:
            return BUILD
        for paths in rungs_of(mutant.path):
            if (failure := pytest(preset, paths, *OURS)) is not None:
                return how(failure) + " ".join(paths)
    return None


def must_pass(failure: Failure | None, tests: str) -> None:
    """Ends the tool if tests fail on the tree as it is."""
    if failure is not None:
        sys.exit(f"{failure.said}\nmutate: without any bug there is a failure of {tests}")


def draw(options: argparse.Namespace) -> list[Mutant]:
    sources = sorted((ROOT / "src" / options.folder).glob(options.file or "*.c"))
    if not sources:
        sys.exit(f"mutate: src/{options.folder} has no such C file")
    mutants = [mutant for path in sources for mutant in mutants_of(path.relative_to(ROOT))]
    random.Random(options.seed).shuffle(mutants)
    print(f"{len(mutants)} mutants in {len(sources)} files; at most {options.count} of them, {options.minutes:g} minutes", flush=True)
    return mutants


def write(survivors: list[Mutant], folder: str) -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / f"{folder.replace('/', '-')}.txt").write_text("".join(f"{mutant}\n" for mutant in sorted(survivors, key=str)))


def left_by_python_tests(survivors: list[Mutant], preset: str) -> list[Mutant]:
    must_pass(build(preset, *FOR_PYTHON), "the build")
    for paths in sorted({tuple(paths) for mutant in survivors for paths in rungs_of(mutant.path)}):
        must_pass(pytest(preset, [*paths], *OURS, seconds=SECONDS_FOR_ALL), " ".join(paths))
    left = []
    for mutant in survivors:
        by = by_python_tests(mutant, preset)
        if by in (None, BUILD):
            left.append(mutant)
        print(f"{mutant}: {result(by)}", flush=True)
    return left


def mutate(options: argparse.Namespace) -> int:
    mutants = draw(options)
    prepare(options.preset)
    groups = (group for path in {mutant.path for mutant in mutants} for group in circles(path, options.near))
    must_pass(ctest(options.preset, sorted({name for _, names in groups for name in names}), SECONDS_FOR_ALL), "C tests")
    deadline = time.monotonic() + 60 * options.minutes
    outcomes: dict[str, int] = {}
    unbuilt = 0
    survivors: list[Mutant] = []
    for mutant in mutants:
        asked = sum(outcomes.values())
        if asked == options.count or time.monotonic() > deadline:
            break
        by = by_c_tests(mutant, options.preset, options.near)
        if by == BUILD:
            unbuilt += 1
            continue
        outcomes[by or "nothing"] = outcomes.get(by or "nothing", 0) + 1
        if by is None:
            survivors.append(mutant)
        print(f"[{asked + 1}] {mutant}: {result(by)}", flush=True)
    counted = [f"{number} by {by}" for by, number in sorted(outcomes.items())] + [f"{unbuilt} more do not build"]
    print(f"{sum(outcomes.values())} mutants: " + ", ".join(counted), flush=True)
    write(survivors, options.folder)
    if options.python:
        survivors = left_by_python_tests(survivors, options.preset)
        write(survivors, options.folder)
    for mutant in survivors:
        print(f"survives: {mutant}")
    return 0 if outcomes else 1


def build_for(preset: str, test: str) -> Failure | None:
    """Builds what a test of tests/mutants.list needs."""
    return build(preset, *FOR_PYTHON) if test.startswith("tests/") else build(preset, target_of(test), *PLUGINS)


def ask(preset: str, test: str) -> Failure | None:
    """Runs a test of tests/mutants.list in the copied tree."""
    return pytest(preset, [test]) if test.startswith("tests/") else ctest(preset, [test])


def library_of(path: Path) -> str:
    """The build target of a file; for one that several targets share all that the server loads."""
    kind, *rooms = path.parts[:-1]
    if not rooms or rooms[0] == "common":
        return "server"
    return LIBRARIES[kind].format("_".join(rooms if kind == "src" else rooms[:1]))


def noticed(bug: planted.Planted, preset: str) -> str:
    """Plants a bug, and reports whether each of its tests notices it."""
    by = []
    with ExitStack() as planted_so_far:
        for place in bug.places:
            planted_so_far.enter_context(put(place.path, place.put_into))
        if (failure := build(preset, *dict.fromkeys(library_of(place.path) for place in bug.places))) is not None:
            return f"DOES NOT BUILD: {bug.name}\n{failure.said}"
        for test in bug.tests:
            if (failure := build_for(preset, test)) is not None:
                return f"DOES NOT BUILD: {bug.name} for {test}\n{failure.said}"
            if (failure := ask(preset, test)) is None:
                return f"SURVIVED: {bug.name}, {test}"
            by.append(how(failure) + test)
    return f"caught: {bug.name} by {', '.join(by)}"


def plant(options: argparse.Namespace) -> int:
    if wrong := planted.problems(ROOT):
        sys.exit("\n".join(f"mutate: {line}" for line in wrong))
    known = {bug.name: bug for bug in planted.read(ROOT)}
    if unknown := [name for name in options.names if name not in known]:
        sys.exit(f"mutate: {planted.LIST} has no bug {', '.join(unknown)}")
    bugs = [known[name] for name in options.names or known]
    prepare(options.preset)
    for test in dict.fromkeys(test for bug in bugs for test in bug.tests):
        must_pass(build_for(options.preset, test) or ask(options.preset, test), test)
    results = []
    for bug in bugs:
        results.append(noticed(bug, options.preset))
        print(results[-1], flush=True)
    caught = sum(line.startswith("caught") for line in results)
    print(f"{caught} of {len(bugs)} caught")
    return 0 if caught == len(bugs) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", help="only this file of the folder")
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--near", action="store_true", help="ask only the C tests that include a header of the folder, or embed the server")
    parser.add_argument("--python", action="store_true", help="ask the Python tests about those that survived")
    parser.add_argument("--planted", dest="names", nargs="*", metavar="NAME", help="the bugs of tests/mutants.list; no name: all")
    options = parser.parse_args()
    end_when_told()
    if options.names is not None:
        return plant(options)
    if not options.folder:
        parser.error("expected a folder of src/, or --planted")
    return mutate(options)


if __name__ == "__main__":
    sys.exit(main())
