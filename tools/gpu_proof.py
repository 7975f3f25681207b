#!/usr/bin/env python3
"""Repeats on a machine with an NVIDIA GPU what is known of this server there, and writes what it saw.

    tools/gpu_proof.py [--report FILE] [--only PART...]

Uses the release build (NEREID_BUILD names another), whose backend `pytorch` was built for a PyTorch with CUDA (cmake -DNEREID_PYTORCH=FOLDER), and a
Python that has that PyTorch, onnxruntime-gpu and what tests/requirements.txt lists: build/venv, or the one that runs this. The libraries of CUDA that
onnxruntime-gpu is made for have to be found (LD_LIBRARY_PATH), and so have those of the TensorFlow with CUDA whose libraries were put into the folder of
the backend `tensorflow`. Parts:

    found      which GPUs the server finds, and the machine's driver
    driver     the tests that elsewhere run with a stand-in for CUDA's driver, with the driver of the machine (those that make its calls
               fail, or need several GPUs, stay with the stand-in)
    pytorch    models of PyTorch on the GPU, against PyTorch itself, with figures
    onnxruntime  models of ONNX Runtime on the GPU, against ONNX Runtime itself, with figures
    tensorflow  models of TensorFlow on the GPU, against TensorFlow itself, with figures
    machine    which GPUs are used, what is refused, models in processes of their own, Python models
    sanitizer  a server under compute-sanitizer

The report (build/gpu-proof.md) has what each part printed. The exit status is 0 if the server finds a GPU and every test passes.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = (ROOT / os.environ.get("NEREID_BUILD", "build/release")).resolve()
VENV = ROOT / "build" / "venv" / "bin" / "python"
TESTS = {
    "driver": ["-m", "gpu", "tests/40_e2e/test_gpus.py", "tests/40_e2e/test_cuda_shared_memory.py", "tests/40_e2e/test_gpu_metrics.py"],
    "pytorch": ["tests/75_gpu/test_pytorch_on_a_gpu.py"],
    "onnxruntime": ["tests/75_gpu/test_onnxruntime_on_a_gpu.py"],
    "tensorflow": ["tests/75_gpu/test_tensorflow_on_a_gpu.py"],
    "machine": ["tests/75_gpu/test_machine.py", "tests/75_gpu/test_python_on_a_gpu.py"],
    "sanitizer": ["tests/75_gpu/test_sanitizer.py"],
}


def python() -> str:
    """The environment of the tests if it has PyTorch, else the Python that runs this."""
    has = VENV.exists() and subprocess.run([str(VENV), "-c", "import torch"], capture_output=True, check=False).returncode == 0
    return str(VENV) if has else sys.executable


def found() -> tuple[bool, list[str]]:
    nereid = BUILD / "bin" / "nereid"
    if not nereid.exists():
        sys.exit(f"gpu_proof: {nereid} is missing: run tools/build.sh release first")
    told = subprocess.run([str(nereid), "doctor", f"--backend-directory={BUILD / 'backends'}"], capture_output=True, text=True, check=False).stdout
    lines = [line for line in told.splitlines() if line.startswith(("nereid", "GPUs", "   "))]
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        lines.append(subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip())
    except FileNotFoundError:
        lines.append("nvidia-smi is not there")
    usable = re.search(r"^GPUs +\d+, [1-9]\d* of them used", told, re.MULTILINE)
    return bool(usable), lines if usable else [*lines, "the server finds no GPU that it can use"]


def tested(part: str, figures: Path) -> tuple[bool, list[str]]:
    files = [each for each in TESTS[part] if not each.startswith("tests/") or (ROOT / each).exists()]
    env = os.environ | {"NEREID_REAL_CUDA": "1", "NEREID_GPU_FIGURES": str(figures)}
    began = time.monotonic()
    ran = subprocess.run(
        [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *files], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    print(ran.stdout[-6000:], ran.stderr[-1000:], flush=True)
    lines = [ran.stdout.strip().splitlines()[-1], *(line for line in ran.stdout.splitlines() if line.startswith("FAILED"))]
    ran_some = " passed" in lines[0]  # not all were skipped
    return ran.returncode == 0 and ran_some, [f"{lines[0]} ({time.monotonic() - began:.0f} s)", *lines[1:]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "gpu-proof.md")
    parser.add_argument("--only", nargs="+", choices=["found", *TESTS], default=["found", *TESTS])
    asked = parser.parse_args()
    figures, good = asked.report.with_suffix(".figures"), True
    asked.report.write_text("# A server on a machine with a GPU\n")
    for part in asked.only:
        figures.unlink(missing_ok=True)
        print(f"== {part}", flush=True)
        passed, lines = found() if part == "found" else tested(part, figures)
        lines += figures.read_text().splitlines() if figures.exists() else []
        good = good and passed
        with open(asked.report, "a") as report:
            report.write(f"\n## {part}: {'passed' if passed else 'FAILED'}\n\n" + "".join(f"- {line.strip()}\n" for line in lines))
        print("\n".join(lines), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
