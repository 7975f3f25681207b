#!/usr/bin/env python3
"""Repeats on a machine with an NVIDIA GPU what the tests show with a stand-in for CUDA's driver.

    tools/gpu_proof.py

Uses the release build and the environment of the tests (tools/setup.sh test, tools/build.sh release). It tells which GPUs the server
finds, and runs the Python tests that are marked `gpu` against the driver of the machine. Tests that make calls of the driver fail, or that
need GPUs which may not be there, stay with the stand-in. The exit status is 0 if the server finds a GPU and every test passes.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("NEREID_BUILD", "build/release")


def main() -> int:
    nereid, python = BUILD / "bin" / "nereid", ROOT / "build" / "venv" / "bin" / "python"
    for needed in (nereid, python):
        if not needed.exists():
            print(f"gpu_proof: {needed} is missing: run tools/setup.sh test and tools/build.sh release first", file=sys.stderr)
            return 2
    told = subprocess.run(
        [str(nereid), "doctor", f"--backend-directory={BUILD / 'backends'}"], capture_output=True, text=True, check=False
    ).stdout
    print("\n".join(line for line in told.splitlines() if line.startswith(("nereid", "GPUs", "   "))))
    if "GPUs         none" in told or "GPUs" not in told:
        print("gpu_proof: the server finds no GPU here", file=sys.stderr)
        return 1
    tests = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-m", "gpu", "tests/40_e2e"], cwd=ROOT, env=os.environ | {"NEREID_REAL_CUDA": "1"}, check=False
    )
    return tests.returncode


if __name__ == "__main__":
    sys.exit(main())
