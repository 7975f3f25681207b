#!/usr/bin/env python3
"""The errors that the headers of the C ABI document, against the C tests that call each function with each of them.

    tools/abi_errors.py [--root FOLDER]

A header says of a function, under "errors", which codes it gives besides INVALID_ARG, which every function gives for a handle that is
none (the rules at the top of tritonserver.h). For each function that the server exports and each of its codes there has to be a call in
tests/10_inprocess, or tests/00_unit, that expects it; and a code that such a call expects, or that the function's own lines in src/abi
name, has to be documented. Exits with 1, telling what is missing.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

CODES = ("UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED")
CODE = re.compile(rf"\b({'|'.join(CODES)})\b")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# A function that returns an error, with the comment before it; some of these are for plug-ins to export.
DECLARATION = re.compile(
    r"(?P<comment>/\*(?:(?!\*/).)*\*/)?\s*TRITON[A-Z]+_(?:DECL|I)SPEC\s+(?:struct\s+)?TRITONSERVER_Error \*\s*(?P<name>TRITON[A-Z]+_\w+)\((?P<arguments>[^;]*)\);",
    re.DOTALL,
)
ERRORS = re.compile(r"^ \* errors\s+(.*?)(?=^ \* [a-z_]+\S*  |\Z)", re.DOTALL | re.MULTILINE)
LENDS = {"TRITONSERVER_InferenceResponseError"}  # gives the error of what it was asked about
HANDLE = re.compile(r"(const )?TRITON\w+ \*\w")  # as the first argument
EXPECTS = re.compile(r"\b(INVALID|HOST_FAILS|FAILS|HOST_OK|OK)\(\s*(TRITON[A-Z]+_\w+)\(")
DEFINITION = re.compile(r"^TRITONSERVER_Error \*\s*(TRITON[A-Z]+_\w+)\([^;]*?\)\n\{\n(.*?)^\}", re.DOTALL | re.MULTILINE)

Table = dict[str, set[str]]


def documented(header: str) -> Table:
    """The codes of each function that returns an error."""
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
    """Functions that document an error without its code."""
    found = []
    for declaration in DECLARATION.finditer(header):
        errors = ERRORS.search(declaration["comment"] or "")
        if errors and not CODE.search(errors[1]) and not errors[1].startswith("none"):
            found.append(declaration["name"])
    return found


def after_call(text: str, at: int) -> tuple[str, str]:
    """The arguments of the call whose parenthesis has just been opened, and what stands behind it."""
    depth, end = 1, at
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at : end - 1], text[end : end + 80]


def expected(source: str) -> Table:
    """The codes that a test's calls expect. NULL to a function that deletes is a call of its own kind, and counts as INVALID_ARG."""
    found: Table = defaultdict(set)
    text = COMMENT.sub("", source)
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
    """The codes other than INVALID_ARG that the functions' own lines name."""
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
