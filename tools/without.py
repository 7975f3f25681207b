#!/usr/bin/env python3
"""Shows that the server builds and works without a feature's room: removes the room from a copy of the tree, builds it and runs its C tests.

    tools/without.py [--keep] [--unbuilt] [ROOM...]       without names: each room that can be removed, one after the other

It removes src/ROOM, its line in src/LAYERS, its line in src/server/rooms.c with the include, and its tests: those that include one of its
headers, and those of NEEDS, which use the feature through a server. It changes nothing else. The copy is build/without/ROOM; it is removed
after a success, but not with --keep. With --unbuilt only the includes of the rest are checked. The exit status is 1 if the rest does not
build or a test fails.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import copies

ROOT = Path(__file__).resolve().parent.parent
PRESET = "dev"

# The rooms that can be removed, with the tests that need a room but include none of its headers: a program, or one function of it. The
# simulation of the shell has models that use several rooms.
NEEDS = {
    "sequences": [
        "10_sim/test_shell_sim",
        "10_inprocess/test_sequences",
        "00_unit/test_ensemble_run::many_that_wait_are_refused",
        "00_unit/test_ensemble_run::many_that_wait_are_refused_within",
        "00_unit/test_ensemble_run::nobody_is_answered_within",
        "00_unit/test_warmup::control_tensors_come_as_they_are",
        "00_unit/test_warmup::one_iteration_warms",
    ],
    "ensembles": ["10_sim/test_shell_sim", "10_inprocess/test_ensemble", "10_inprocess/test_gpus"],
    "cache": ["10_inprocess/test_cache", "10_inprocess/test_objects::test_cache_entries"],
    "limits": ["10_sim/test_shell_sim", "10_inprocess/test_limits"],
}


def run(*argv: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in argv], text=True, **more)  # type: ignore[call-overload, no-any-return]


def edit(path: Path, pattern: str, instead: str, least: int) -> None:
    text, count = re.subn(pattern, instead, path.read_text(), flags=re.MULTILINE)
    if count < least:
        raise SystemExit(f"without: {path}: expected {least} places like {pattern!r}, found {count}")
    path.write_text(text)


def take_sources(tree: Path, room: str) -> None:
    rooms = tree / "src" / "server" / "rooms.c"
    heads = re.findall(rf'^#include "{room}/(\w+)\.h"$', rooms.read_text(), re.MULTILINE)
    if len(heads) != 1:
        raise SystemExit(f"without: {rooms} includes {len(heads)} headers of {room}, expected one")
    edit(rooms, rf'^#include "{room}/.*\n|^ +&{heads[0]}_feature,.*\n', "", 2)
    edit(tree / "src" / "LAYERS", rf"^\d+ {room}:.*\n", "", 1)
    edit(tree / "src" / "LAYERS", rf"(?<= ){room}(?: |$)", "", 1)
    edit(tree / "src" / "LAYERS", r" +$", "", 0)
    shutil.rmtree(tree / "src" / room)


def take_function(path: Path, name: str) -> None:
    edit(path, rf"^static void {name}\(void \*\*state\)\n\{{\n(?:[^}}].*\n|\n)*\}}\n", "", 1)
    edit(path, rf"(?:UNIT|cmocka_unit_test)\({name}\),?", "", 1)
    path.write_text("".join(f'#pragma GCC diagnostic ignored "-Wunused-{what}"\n' for what in ("function", "variable", "const-variable")) + path.read_text())


def take_tests(tree: Path, room: str) -> list[str]:
    """Removes and returns tests: those of NEEDS, and those that include a header of the room or of a removed test."""
    gone = []
    functions = []
    for name in NEEDS[room]:
        program, _, function = name.partition("::")
        path = tree / "tests" / f"{program}.c"
        if function:
            take_function(path, function)
            functions.append(f"tests/{program}.c::{function}")
        else:
            path.unlink()
            gone.append(path)
    went = True
    headers = [f"{room}/"]
    while went:
        went = False
        for path in [*tree.glob("tests/**/*.[ch]"), *tree.glob("fuzz/**/*.[ch]")]:
            if any(f'#include "{head}' in path.read_text() for head in headers):
                path.unlink()
                gone.append(path)
                went = True
                if path.suffix == ".h":
                    path.with_suffix(".c").unlink(missing_ok=True)
                    headers.append(f"{path.relative_to(tree / path.relative_to(tree).parts[0])}")
    return sorted([*functions, *(str(path.relative_to(tree)) for path in gone if path.name.startswith(("test_", "fuzz_")))])


def prove(room: str, keep: bool, unbuilt: bool) -> bool:
    tree = ROOT / "build" / "without" / room
    shutil.rmtree(tree, ignore_errors=True)
    copies.copy_sources(ROOT, tree)
    copies.share_build(ROOT, tree)
    take_sources(tree, room)
    gone = take_tests(tree, room)
    print(f"without {room}: {len(gone)} tests went with it: {', '.join(gone)}", flush=True)
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree)}
    steps = [
        [sys.executable, tree / "tools" / "check_layers.py"],
        ["cmake", "--preset", PRESET, f"-DNEREID_DEPS={ROOT / 'build' / 'deps'}", f"-DNEREID_VENV={ROOT / 'build' / 'venv'}"],
        ["ninja", "-C", tree / "build" / PRESET],
        ["ctest", "--test-dir", tree / "build" / PRESET, "-j", str(os.cpu_count()), "--output-on-failure"],
    ]
    for step in steps[:1] if unbuilt else steps:
        done = run(*step, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            print(done.stdout[-6000:])
            print(f"without {room}: {step[0]} fails; the tree is {tree}")
            return False
    if not unbuilt:
        found = re.findall(r"^(\d+% tests passed.*)$", done.stdout, re.MULTILINE)
        print(f"without {room}: the rest builds; {found[0]}", flush=True)
    if not keep:
        shutil.rmtree(tree)
    return True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="leave the copies")
    parser.add_argument("--unbuilt", action="store_true", help="build and run nothing")
    parser.add_argument("rooms", nargs="*", choices=[*NEEDS, []], help=", ".join(NEEDS))
    arguments = parser.parse_args()
    return 0 if all([prove(room, arguments.keep, arguments.unbuilt) for room in arguments.rooms or NEEDS]) else 1


if __name__ == "__main__":
    sys.exit(main())
