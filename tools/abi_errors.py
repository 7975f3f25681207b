#!/usr/bin/env python3
"""The errors that the headers of the C ABI document, against the C tests that call each function with each of them.

    tools/abi_errors.py [--root FOLDER]

A function's comment in a header lists its error codes under "errors". INVALID_ARG is not listed there: every function returns it for an
invalid handle (see the rules at the top of tritonserver.h). For each function that the server exports, this tool checks that
  - a call in tests/10_inprocess or tests/00_unit that runs expects each documented code: it stands in a test that its program runs, in
    what the server calls of a plug-in, or in a function of the same file that one of these names;
  - each code that such a call expects, or that the function's body in src/abi names, is documented.
It prints what is missing; the exit status is then 1.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

import requirements

CODES = ("UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED")
CODE = re.compile(rf"\b({'|'.join(CODES)})\b")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# A function that returns an error, with its comment. Plug-ins export some of these, not the server.
DECLARATION = re.compile(
    r"(?P<comment>/\*(?:(?!\*/).)*\*/)?\s*TRITON[A-Z]+_(?:DECL|I)SPEC\s+(?:struct\s+)?TRITONSERVER_Error \*\s*(?P<name>TRITON[A-Z]+_\w+)\((?P<arguments>[^;]*)\);",
    re.DOTALL,
)
ERRORS = re.compile(r"^ \* errors\s+(.*?)(?=^ \* [a-z_]+\S*  |\Z)", re.DOTALL | re.MULTILINE)
LENDS = {"TRITONSERVER_InferenceResponseError"}  # it returns the error that a response holds, not an error of its own
HANDLE = re.compile(r"(const )?TRITON\w+ \*\w")  # matches if the first argument is a handle
EXPECTS = re.compile(r"\b(INVALID|HOST_FAILS|FAILS|HOST_OK|OK)\(\s*(TRITON[A-Z]+_\w+)\(")
DEFINITION = re.compile(r"^TRITONSERVER_Error \*\s*(TRITON[A-Z]+_\w+)\([^;]*?\)\n\{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
FUNCTION = re.compile(r"^(static )?\w[\w \n*]*?\b(\w+)\(([^;{}]*\)\n\{\n.*?^\})", re.DOTALL | re.MULTILINE)

Table = dict[str, set[str]]


def documented(header: str) -> Table:
    """The documented codes of each function that returns an error."""
    found: Table = {}
    for declaration in DECLARATION.finditer(header):
        comment = declaration["comment"] or ""
        errors = ERRORS.search(comment)
        codes = set(CODE.findall(errors[1])) if errors else set()
        if HANDLE.match(declaration["arguments"]):
            codes.add("INVALID_ARG")
        found[declaration["name"]] = codes
    return found


def vague(header: str) -> list[str]:
    """The functions whose comment describes an error without its code."""
    found = []
    for declaration in DECLARATION.finditer(header):
        errors = ERRORS.search(declaration["comment"] or "")
        if errors and not CODE.search(errors[1]) and not errors[1].startswith("none"):
            found.append(declaration["name"])
    return found


def after_call(text: str, at: int) -> tuple[str, str]:
    """The arguments of a call, and the text after the call; `at` is the position after its opening parenthesis."""
    depth, end = 1, at
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at : end - 1], text[end : end + 80]


def that_runs(source: str) -> str:
    """The functions of a file that run, without comments: the tests of a program, what a plug-in exports, and what these name."""
    text = COMMENT.sub("", source)
    functions = {name: (static, rest) for static, name, rest in FUNCTION.findall(text)}
    plugin = "main" not in functions and "UNIT_MAIN(" not in text
    waiting = [name for name, (static, _) in functions.items() if (plugin and not static) or requirements.registered(text, name)]
    running = set(waiting)
    while waiting:
        named = set(re.findall(r"\w+", functions[waiting.pop()][1])) & functions.keys() - running
        running |= named
        waiting += named
    return "\n".join(functions[name][1] for name in functions if name in running)


def expected(source: str) -> Table:
    """The codes that the calls of a test expect. A Delete function called with NULL counts as a test of INVALID_ARG."""
    found: Table = defaultdict(set)
    text = that_runs(source)
    for call in EXPECTS.finditer(text):
        macro, name = call.groups()
        arguments, behind = after_call(text, call.end())
        if macro == "INVALID":
            found[name].add("INVALID_ARG")
        elif macro in ("HOST_FAILS", "FAILS"):
            code = re.match(rf"\s*,\s*(?:TRITONSERVER_ERROR_)?({'|'.join(CODES)})\b", behind)
            found[name] |= {code[1]} if code else set()
        elif name.endswith("Delete") and arguments.strip() == "NULL":
            found[name].add("INVALID_ARG")
    return found


def named_in_source(source: str) -> Table:
    """The codes that the body of each function names, without INVALID_ARG."""
    return {name: set(re.findall(r"\bSTATUS_([A-Z_]+)\b", body)) - {"INVALID_ARG"} for name, body in DEFINITION.findall(source)}


def problems(headers: list[str], tests: list[str], sources: list[str]) -> list[str]:
    ours = {name for source in sources for name, _ in DEFINITION.findall(source)}
    promised: Table = {}
    for header in headers:
        promised |= {name: codes for name, codes in documented(header).items() if name in ours}
    tried: Table = defaultdict(set)
    for test in tests:
        for name, codes in expected(test).items():
            tried[name] |= codes
    found = [f"{name}: an error is documented without its code" for header in headers for name in vague(header) if name in ours]
    for name, codes in promised.items():
        found += [f"{name}: no test expects {code}" for code in sorted(codes - tried[name])]
        undocumented = tried[name] - codes - {"INVALID_ARG"} if name not in LENDS else set()
        found += [f"{name}: a test expects {code}, which is not documented" for code in sorted(undocumented)]
    for source in sources:
        for name, codes in named_in_source(source).items():
            found += [f"{name}: {code} is not documented" for code in sorted(codes - promised.get(name, codes))]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Documented errors of the C ABI against their tests.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    read = lambda *patterns: [path.read_text() for pattern in patterns for path in sorted(root.glob(pattern))]  # noqa: E731
    headers = read("include/triton/core/triton*.h")
    found = problems(headers, read("tests/10_inprocess/**/*.c", "tests/00_unit/*.c"), read("src/abi/*.c"))
    for line in found:
        print(line)
    print(f"abi_errors: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
