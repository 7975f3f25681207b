#!/usr/bin/env python3
"""Reports violations of the house style that a program can find.

    tools/tidy.py [--root FOLDER]

  - banned C functions; memory and threads of the system outside src/base and src/os
  - functions of more than 70 lines, files of more than 800 (a header of the ABI is as long as the ABI)
  - C lines of more than 100 columns, except in the tables of .def files, where each row is one line; declarations that their trailing
    comment breaks over two lines
  - a C file that does not include its own header first; headers that no file includes
  - two static functions with the same name in the server and its plug-ins: a backtrace shows only names
  - two Python functions or classes with the same name in one scope: the first is never called, such as a test whose name was copied
  - tests that sleep or are skipped, or are content with one of several statuses, unless a comment on the line gives the reason after
    `allowed: `
  - shell scripts that read "$0" after they have gone to another folder
  - paths of one machine, hosts of package registries
  - words that say that something is unfinished
Each finding is a line `file:line: what`; the exit status is 1 when there is one.
"""

import argparse
import ast
import re
import subprocess
import sys
from pathlib import Path

FUNCTION_LINES = 70
FILE_LINES = 800
COLUMNS = 100
CODE = {".c", ".h", ".def", ".cc", ".cpp", ".py", ".sh"}
C = {".c", ".h", ".def"}
SERVER = ("src", "include", "backends", "bindings", "caches", "repoagents")
TEXT = CODE | {".md", ".txt", ".cmake", ".json", ".apt", ".list", ".proto", ".map", ".lua", ".pbtxt", ""}
WALK_SKIPS = {".git", "build", "__pycache__", ".pytest_cache", ".cache"}

BANNED = re.compile(r"(?<![\w.>])(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|rand|srand|gets|tmpnam|alloca)\s*\(")
MEMORY = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|posix_memalign|aligned_alloc)\s*\(")
THREADS = re.compile(r"(?<!\w)(pthread_\w+|thrd_\w+|mtx_\w+)")
# The character classes keep these patterns from matching themselves.
SLEEP = re.compile(
    r"time\.slee[p]|asyncio\.slee[p]|\bu?slee[p]\s*\(|nanoslee[p]\s*\(|^\s*slee[p]\s|\bselec[t]\(\[\], \[\], \[\]|\bpol[l]\(NULL, 0|"
    r"\bEven[t]\(\)\.wait\([\d.]|"
    # What waits for a part of a second looks again and again. A descriptor may be waited for until a deadline: `max(0, until - now)`.
    r"\.(?:wai[t]|joi[n]|ended_withi[n])\((?:\w+=)?\d?\.\d|\bselec[t]\(.+, \[.*\], (?!\[|max\()[^)]"
)
# An assertion that is content with one of several outcomes of a request or a program.
ONE_OF_SEVERAL = re.compile(
    r"\bassert\b.*(?:statu[s]|cod[e])\)? (?:in [(\[{A-Z]|== [\w.\"-]+ or\b)"
)
LEFT_OUT = re.compile(
    r"\bski[p](?:if|Test|Unless)?\s*\(|mark\.ski[p]|\bxfai[l]|importorski[p]|\bSkipTes[t]\b|SKIP_(?:RETURN_COD[E]|REGULAR_EXPRESSIO[N])|"
    r"^[^#]*PROPERTIES[^#]*\bDISABLE[D]\b"
)
ALLOWED = re.compile(r"(?:#|/\*|//) allowed: \w+(?: [^\s*]+){2,}")
MACHINE = re.compile(r"(?<![\w.])/(?:wor[k]|far[m]|hom[e]|roo[t]|User[s])/")
REGISTRY = re.compile(r"\b(?:py[p]i\.org|python[h]osted|npm[j]s|(?:deb|ftp|security)\.deb[i]an\.org|repo1?\.mav[e]n|prox[y]\.golang)")
UNFINISHED = re.compile(r"\b(?:T[O]DO|FIXM[E]|X[X]X|HAC[K])\b|(?<![\"])\bnot imp[l]emented\b|\bplace[h]older\b", re.IGNORECASE)
# Relative to the folder that the script was started in, which it may have left.
OWN_NAME = re.compile(r"\$\{?0\b")
# The definition of a static function, in the formatter's layout.
STATIC = re.compile(r"^static [^;={}()]*?\b(?P<name>\w+)\((?:[^;{}()]|\([^()]*\))*\)\n\{", re.MULTILINE)
# A type alone on its line, or a function pointer broken at its parenthesis: the trailing comment must move above the declaration.
BROKEN = re.compile(
    r"^ +(?:(?:struct|enum|union|const|static|unsigned) )*\w+(?: \*?const)?(?: \*+)?\n +\*{0,2}\w+(?:\[\w*\])?;|^ +[\w *]+\(\*\w+\)\(\n[^;{]*; */\*",
    re.MULTILINE,
)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def files_of(root: Path) -> list[Path]:
    """The files that git tracks or would track; outside of a repository, all files."""
    if (root / ".git").exists():
        argv = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(argv, check=True, capture_output=True).stdout.decode().split("\0")
        paths = [root / name for name in names if name]
    else:
        paths = [path for path in root.rglob("*") if not WALK_SKIPS & set(path.relative_to(root).parts)]
    return sorted(path for path in paths if path.suffix in TEXT and path.is_file() and not path.is_symlink())


def without_comments(text: str) -> str:
    """C code with comments and literals replaced by blanks; line numbers stay the same."""
    def blank(match: re.Match[str]) -> str:
        kept = match[0] if match[0][0] not in "/\"'" else re.sub(r"[^\n]", " ", match[0])
        return kept
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.DOTALL)


class Tidy:
    def __init__(self, root: Path):
        self.root = root
        self.findings: list[str] = []

    def add(self, path: Path, line: int, what: str) -> None:
        self.findings.append(f"{path.relative_to(self.root)}:{line}: {what}")

    def search(self, path: Path, text: str, pattern: re.Pattern[str], what: str) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            for match in pattern.finditer(line):
                self.add(path, number, what.format(match[0].strip(" (")))

    def search_unless_allowed(self, path: Path, text: str, pattern: re.Pattern[str], what: str) -> None:
        """Lines with a comment that gives the reason (`allowed: `) are no findings."""
        kept = "\n".join("" if ALLOWED.search(line) else line for line in text.splitlines())
        self.search(path, kept, pattern, f"{what}, or say why it must be: `allowed: ` and the reason, in a comment of the line")

    def c_words(self, path: Path, text: str) -> None:
        parts = path.relative_to(self.root).parts
        code = without_comments(text)
        self.search(path, code, BANNED, "{} is banned: it has no limit, no error or a state of its own")
        if parts[0] == "src" and parts[1] not in ("base", "os"):
            self.search(path, code, MEMORY, "{} outside base/ and os/: use base/mem.h, an arena or a slab")
            self.search(path, code, THREADS, "{} outside base/ and os/: use os/thread.h and os/mutex.h")

    def function_lengths(self, path: Path, text: str) -> None:
        lines = text.splitlines()
        begun = 0
        for number, line in enumerate(lines, 1):
            if line == "{" and number > 1 and not lines[number - 2].rstrip().endswith((";", "=")):
                begun = number
            elif line == "}" and begun:
                if number - begun - 1 > FUNCTION_LINES:
                    self.add(path, begun, f"function of {number - begun - 1} lines; {FUNCTION_LINES} are the most")
                begun = 0

    def columns(self, path: Path, text: str) -> None:
        if path.suffix == ".def" or path.relative_to(self.root).parts[0] not in SERVER:
            return
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS:
                self.add(path, number, f"{len(line)} columns; {COLUMNS} are the most")
        for match in BROKEN.finditer(text):
            self.add(path, text.count("\n", 0, match.start()) + 1, "a declaration in two lines: its comment stands above it")

    def own_header_first(self, path: Path, text: str) -> None:
        if path.suffix != ".c" or not path.with_suffix(".h").is_file():
            return
        includes = re.findall(r'^\s*#\s*include\s*[<"]([^">]+)[">]', text, re.MULTILINE)
        if includes and Path(includes[0]).name != path.with_suffix(".h").name:
            self.add(path, 1, f"its own header {path.with_suffix('.h').name} comes first")

    def names_given_twice(self, path: Path, text: str) -> None:
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            self.add(path, error.lineno or 1, f"no Python: {error.msg}")
            return
        for scope in [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef)]:
            first: dict[str, int] = {}
            for each in scope.body:
                # No finding: a function whose decorator uses the first (a property's setter), and `_`, which its decorator uses at once.
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not any(
                    isinstance(by, ast.Attribute) and isinstance(by.value, ast.Name) and by.value.id == each.name for by in each.decorator_list
                ):
                    if each.name in first and each.name != "_":
                        self.add(path, each.lineno, f"a second {each.name}: the one of line {first[each.name]} is never called, or run as a test")
                    first[each.name] = each.lineno

    def file(self, path: Path, text: str) -> None:
        parts = path.relative_to(self.root).parts
        self.search(path, text, MACHINE, "path of one machine: {}")
        self.search(path, text, REGISTRY, "host of a package registry: {}")
        if parts[0] in ("tests", "cmake") or path.name == "CMakeLists.txt":
            self.search_unless_allowed(path, text, LEFT_OUT, "a test that is left out and counts as passed: {}; make it run, or do not list it")
        if path.suffix not in CODE:
            return
        lines = text.count("\n")
        if lines > FILE_LINES and parts[0] != "include":
            self.add(path, 1, f"{lines} lines; {FILE_LINES} are the most")
        self.search(path, text, UNFINISHED, "unfinished by its own words: {}")
        if path.suffix == ".py":
            self.names_given_twice(path, text)
        if path.suffix == ".sh":
            self.own_name(path, text)
        if path.suffix in C:
            self.c_words(path, text)
            self.function_lengths(path, text)
            self.columns(path, text)
            self.own_header_first(path, text)
        if parts[0] == "tests":
            self.search_unless_allowed(path, text, SLEEP, "a test that sleeps: {}; wait for what should happen, pass the time in")
            self.search_unless_allowed(path, text, ONE_OF_SEVERAL, "content with one of several: {}; say which it is, or count them")

    def own_name(self, path: Path, text: str) -> None:
        gone = False
        for number, line in enumerate(text.splitlines(), 1):
            if gone and OWN_NAME.search(line) and not line.lstrip().startswith("#"):
                self.add(path, number, "$0 after cd is relative to another folder: name the file from the root")
            gone = gone or line.startswith("cd ")

    def dead_headers(self, texts: dict[Path, str]) -> None:
        included = {Path(name).name for path, text in texts.items() if path.suffix in C for name in INCLUDE.findall(text)}
        for path in texts:
            parts = path.relative_to(self.root).parts
            if parts[0] in ("src", "backends", "caches", "repoagents") and path.suffix in (".h", ".def") and path.name not in included:
                self.add(path, 1, "nobody includes it")

    def shared_names(self, texts: dict[Path, str]) -> None:
        first: dict[str, Path] = {}
        for path, text in texts.items():
            if path.suffix != ".c" or path.relative_to(self.root).parts[0] not in SERVER:
                continue
            for match in STATIC.finditer(without_comments(text)):
                other = first.setdefault(match["name"], path)
                if other != path:
                    line = text.count("\n", 0, match.start("name")) + 1
                    where = other.relative_to(self.root)
                    self.add(path, line, f"{match['name']} is a function of {where} too: say of what, as {path.stem}_{match['name']} does")

    def run(self) -> int:
        texts = {path: path.read_text(errors="replace") for path in files_of(self.root)}
        for path, text in texts.items():
            self.file(path, text)
        self.dead_headers(texts)
        self.shared_names(texts)
        for finding in self.findings:
            print(finding)
        print(f"tidy: {len(texts)} files, {len(self.findings)} findings")
        return 1 if self.findings else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    return Tidy(parser.parse_args().root.resolve()).run()


if __name__ == "__main__":
    sys.exit(main())
