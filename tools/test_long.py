#!/usr/bin/env python3
"""`make test-long`: after the ordinary tests, runs tests of the same kinds for hours. It is called after everything is installed.

    tools/test_long.py [STAGE...]     all stages, or those named

NEREID_SIM_RUNS  number of seeds of each simulation (100000)
NEREID_SOAK_SECONDS  how long two servers handle ordinary load (7200)
NEREID_SOAK_PACE  how much of one processor the soak takes (0.33)
NEREID_MUTATE_MINUTES  how long tools/mutate.py runs for each of its folders (15); survivors are listed and are no failure
FUZZ_SECONDS  how long each fuzzer runs (1800)

The stages that measure waiting times run first, one at a time; the others then run in parallel, as in tools/run_tests.py. It ends by itself;
docs/internals/testing.md says after how long. The last line is `N passed, N failed`; a simulation, a fuzzer, a folder with mutants and all
bugs of tests/mutants.list count as one test each.
"""

import os
import re
import sys
from collections.abc import Callable

import run_tests
from run_tests import DEV, OURS, RELEASE, ROOT, SANITIZER_ENV, TSAN, Outcome, Part, Stage

NIGHT = 12 * 3600
MUTATED = ("model", "infer", "codec", "serve", "repo")


def setting(name: str, otherwise: str) -> str:
    return os.environ.get(name, otherwise)


def simulations(preset: str) -> Callable[[Part], Outcome]:
    """Runs the simulations without ctest, because ctest has a time limit for each test."""

    def run(part: Part) -> Outcome:
        runs = {"NEREID_SIM_RUNS": setting("NEREID_SIM_RUNS", "100000")}
        names = sorted(path.stem for path in (ROOT / "tests" / "10_sim").glob("test_*_sim.c"))
        if part.command(["tools/build.sh", preset, *(f"10_sim_{name}" for name in names)], tests=False) != 0:
            return Outcome(0, 1, "does not build")
        programs = [ROOT / "build" / preset / "tests" / "10_sim" / name for name in names]
        failed = [path.name for path in programs if part.command([str(path)], SANITIZER_ENV | runs) != 0]
        return Outcome(len(programs) - len(failed), len(failed) or not programs, " ".join(failed) or ("" if programs else run_tests.NO_TEST))

    return run


def bugs(tells: str, otherwise: str, *argv: str) -> Callable[[Part], Outcome]:
    """Runs tools/mutate.py, and prints the lines that match `tells`."""

    def run(part: Part) -> Outcome:
        status = part.command(["tools/mutate.py", *argv])
        print(*(line for line in part.log().read_text(errors="replace").splitlines() if re.search(tells, line)), sep="\n")
        return Outcome(1) if status == 0 else Outcome(0, 1, f"{otherwise}, or could not be run")

    return run


def mutants(folder: str) -> Callable[[Part], Outcome]:
    drawn = ("--minutes", setting("NEREID_MUTATE_MINUTES", "15"), "--count", "100000", "--seed", str(os.getpid()))
    return bugs(r"^survives: | mutants: ", "no test was asked", folder, *drawn)


planted_bugs = bugs(r"^SURVIVED|^DOES NOT BUILD| caught$", "no test notices a bug", "--planted")


def fuzz_build(part: Part) -> Outcome:
    done = all(part.command(argv, tests=False) == 0 for argv in (["tools/setup.sh", "fuzz"], ["tools/build.sh", "fuzz"]))
    return Outcome() if done else Outcome(0, 1, "does not build")


def fuzzer(name: str) -> Callable[[Part], Outcome]:
    def run(part: Part) -> Outcome:
        status = part.command(["tools/fuzz.sh", name], {"FUZZ_SECONDS": setting("FUZZ_SECONDS", "1800")})
        return Outcome(1) if status == 0 else Outcome(0, 1, "found something, or could not be run")

    return run


def of_folder(name: str, title: str, where: str, needs: tuple[str, ...], preset: str, marks: str = "", env: dict[str, str] | None = None) -> Stage:
    return Stage(name, title, run_tests.pytest(preset, marks, env), needs, (f"tests/{where}",), shared=False, seconds=NIGHT)


FULL = {"NEREID_HOSTILE_FULL": "1"}
SOAK = {"NEREID_SOAK_SECONDS": setting("NEREID_SOAK_SECONDS", "7200")}
BUILDS = [stage for stage in run_tests.STAGES if stage.name == "samples" or stage.name.split("-")[0] == "build" or stage.name.endswith("-build")]
ALONE = [
    of_folder("hostile-full", "crowds of hostile clients", "45_hostile", RELEASE, "release", env=FULL),
    of_folder("hostile-full-dev", "the same under the address and undefined-behaviour sanitizers", "45_hostile", DEV, "dev", env=FULL),
]
BESIDE = [
    of_folder("soak", "two hours of ordinary work", "70_soak", RELEASE, "release", env=SOAK),
    of_folder("soak-dev", "the same under these sanitizers", "70_soak", DEV, "dev", env=SOAK),
    # Not in tools/run_tests.py: the address sanitizer itself sometimes fails when OpenVINO's threads end with the process.
    Stage("build-frameworks", "build: backends that are there when asked for, with these sanitizers", run_tests.build("dev", "frameworks"), DEV),
    of_folder("backends-dev", "backends that are there when asked for, under these sanitizers", "52_backends", ("build-frameworks", *DEV), "dev", OURS),
    Stage("others-build", "build: models that others made, fetched", run_tests.script("could not be fetched", "tools/setup.sh", "others")),
    Stage("examples-build", "build: the networks of examples, fetched", run_tests.script("could not be fetched", "tools/setup.sh", "example-search", "example-ocr")),
    Stage("debian-build", "install: what makes a clean Debian in a directory", run_tests.script("could not be installed", "tools/setup.sh", "debian")),
    of_folder("debian", "the Debian package in a clean Debian: installed, upgraded under load, removed; the package for Python in a bare one", "56_debian", ("debian-build", *RELEASE), "release"),
    of_folder("others", "models that others made, beside their runtimes", "55_others", ("others-build", *RELEASE), "release"),
    of_folder("examples-long", "examples with large networks, in a browser", "57_examples", ("examples-build", *RELEASE), "release"),
    Stage("sims", "simulations with many seeds", simulations("release"), RELEASE, seconds=NIGHT),
    Stage("sims-dev", "the same under these sanitizers", simulations("dev"), DEV, seconds=NIGHT),
    of_folder("python-models-dev", "Triton's python backend in this server under these sanitizers", "47_python", DEV, "dev", OURS),
    of_folder("clients-dev", "clients of other languages under these sanitizers", "46_clients", ("clients-build", *DEV), "dev", OURS),
    of_folder("threadless", "end to end under the thread sanitizer, what make test leaves out", "40_e2e", TSAN, "tsan", "(once or threadless) and not reference and not onnx"),
    of_folder("isolation-tsan", "isolated models under the thread sanitizer", "49_isolation", TSAN, "tsan", "not onnx"),
    of_folder("caches-tsan", "caches and agents under the thread sanitizer", "48_caches", TSAN, "tsan", "not reference and not onnx"),
    *(  # all use one copy of the tree, so they run one at a time
        Stage(f"mutants-{folder}", f"bugs planted in src/{folder}", mutants(folder), (*DEV, *(f"mutants-{old}" for old in MUTATED[:at])), seconds=NIGHT)
        for at, folder in enumerate(MUTATED)
    ),
    Stage("mutants-planted", "bugs that somebody thought of", planted_bugs, ("stores-build", *RELEASE, *DEV, *(f"mutants-{old}" for old in MUTATED)), seconds=NIGHT),
    Stage("install-ray", "Ray Serve in an environment of its own", run_tests.script("could not be installed", "tools/setup_ray.sh")),
    of_folder("ray", "the package for Python in a Ray cluster", "71_ray", ("install-ray", *RELEASE), "release"),
    Stage("build-fuzz", "build: the fuzzers", fuzz_build),
    *(
        Stage(f"fuzz-{name}", f"fuzzing {name}", fuzzer(name), ("build-fuzz",), seconds=NIGHT)
        for name in sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "fuzz").glob("fuzz_*.c"))
    ),
]


def main(names: list[str]) -> int:
    if run_tests.asks_for_help(names):
        print(run_tests.usage(__doc__, [*ALONE, *BESIDE], "is made first"))
        return 0
    run_tests.end_when_told()
    chosen = run_tests.choose([*ALONE, *BESIDE], names)
    chosen += [stage for stage in BESIDE if stage not in chosen and any(stage.name in each.needs for each in chosen)]
    needed = {need for stage in chosen for need in stage.needs}
    totals = [run_tests.run_stages([stage for stage in BUILDS if stage.name in needed or not names])]
    if totals[0].failed:
        print("nothing else is run: what it needs could not be made")
        return run_tests.conclude(*totals)
    alone, beside = ([stage for stage in chosen if stage in stages] for stages in (ALONE, BESIDE))
    if alone:
        totals.append(run_tests.run_stages(alone, lanes=1))
    if beside:
        totals.append(run_tests.run_stages(beside))
    return run_tests.conclude(*totals)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
