#!/usr/bin/env python3
"""`make check`: runs the tests that a change is most likely to break, in a few minutes, under the address and undefined-behaviour sanitizers.

    tools/check.py [--base COMMIT] [--list]

The change is the difference to COMMIT. Without --base it is what is not committed; if everything is committed, it is the last commit. This
runs all C tests, the quick gates, the Python tests that tools/check.list names for the changed folders, and the Python tests that changed
(these also against the reference). What takes longer is named and left out. --list only prints the Python tests. The last line is `N passed, N failed`. `make test` runs everything.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import run_tests
from run_tests import ROOT, Outcome, Part, Stage

LIST = ROOT / "tools" / "check.list"
GATES = [
    ["tools/check_layers.py"], ["tools/tidy.py"], ["tools/format.sh", "--check"], ["tools/requirements.py", "--check"], ["tools/promises.py"],
    ["tools/differences.py", "--check"],
]
# Folders of tests/ whose tests need what takes long to fetch or to build, or are no matter of minutes.
LATER = ("41_compare", "46_clients", "54_deploy", "55_others", "56_debian", "57_examples", "60_cost", "70_soak", "71_ray", "75_gpu", "90_bench")
ALWAYS = "tests/00_gates/test_check.py"  # a bug of tests/mutants.list may quote a line that changed


def read_list(path: Path = LIST) -> dict[str, list[str]]:
    lines = (line.partition(":") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {place: tests.split() for place, _, tests in lines}


def git(*argv: str) -> list[str]:
    done = subprocess.run(["git", *argv], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        words = done.stderr.partition("\n")[0]
        if not (ROOT / ".git").exists():
            sys.exit("check: this tree is no clone, so nobody knows what changed; `make test` asks everything")
        sys.exit(f"check: git {' '.join(argv)}: {words}; BASE=COMMIT names a commit to compare with, one that this clone has")
    return done.stdout.splitlines()


def changed(base: str | None) -> list[str]:
    new = git("ls-files", "--others", "--exclude-standard")
    names = git("diff", "--no-renames", "--name-only", base or "HEAD") + new
    return names or git("diff", "--no-renames", "--name-only", "HEAD~1")


def of_test(path: Path) -> list[str]:
    """The tests to run for a changed file of a folder of tests/: the file itself if it is a test, else the tests of its folder."""
    if path.parts[1] in LATER:
        return []
    rung = Path(*path.parts[:2])
    if path.name.startswith("test_") and path.suffix == ".py":
        return [str(path)] if (ROOT / path).exists() else []
    return [str(rung)] if any((ROOT / rung).glob("**/test_*.py")) else []


def tests_of(names: list[str]) -> list[str]:
    places = read_list()
    found: list[str] = []
    for name in names:
        if fitting := [place for place in places if name == place or name.startswith(place + "/")]:
            found += places[max(fitting, key=len)]
        elif name.startswith("tests/"):
            found += of_test(Path(name))
    whole = {test for test in found if not test.endswith(".py")}
    return sorted(whole | {test for test in found if not any(test.startswith(folder + "/") for folder in whole)})


def changed_tests(rung: str, names: list[str]) -> bool:
    """Whether a test file of a folder of tests/ changed."""
    return any(name.startswith(f"tests/{rung}/") and Path(name).name.startswith("test_") and name.endswith(".py") for name in names)


def gates(part: Part) -> Outcome:
    refused = [argv[0] for argv in GATES if part.command(argv) != 0]
    return Outcome(len(GATES) - len(refused), len(refused), f"refused by {', '.join(refused)}" if refused else "")


def stages_for(tests: list[str], names: list[str]) -> list[Stage]:
    """One stage for each rung (a folder of tests/), because each rung has its own conftest. The reference takes part if a test file is in `names`."""
    needs = ("build", "build-dev")
    stages = [
        Stage("build-dev", "build: address and undefined-behaviour sanitizers", run_tests.build("dev")),
        Stage("build", "build: release", run_tests.build("release", "server")),
        Stage("samples", "the sample repository", run_tests.samples, ("build",)),
        Stage("quick-gates", "quick gates", gates),
    ]
    if any(test.startswith("tests/51_stores") for test in tests):
        stages.append(Stage("stores-build", "build: stores to read models from", run_tests.stores))
    if "tests/00_gates" not in tests:
        tests = [*tests, ALWAYS]
    for rung in sorted({Path(test).parts[1] for test in tests}):
        chosen = tuple(test for test in tests if Path(test).parts[1] == rung)
        run = run_tests.pytest("dev", "" if changed_tests(rung, names) else run_tests.OURS)
        stages.append(Stage(f"check-{rung[3:]}", " ".join(chosen), run, (*needs, "samples", "stores-build"), chosen))
    return [*stages, Stage("c-dev", "C tests under the sanitizers", run_tests.ctest("dev"), ("build-dev", "samples"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    run_tests.end_when_told()
    names = changed(options.base)
    tests = tests_of(names)
    print(f"{len(names)} changed files; besides the C tests: {' '.join(tests) or 'nothing'}", flush=True)
    if left_out := sorted({str(Path(*Path(name).parts[:2])) for name in names if name.startswith("tests/") and Path(name).parts[1] in LATER}):
        print(f"left to `make test` and `make test-long`: {' '.join(left_out)}", flush=True)
    return 0 if options.list else run_tests.conclude(run_tests.run_stages(stages_for(tests, names)))


if __name__ == "__main__":
    sys.exit(main())
