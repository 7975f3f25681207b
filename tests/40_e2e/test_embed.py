"""A host that opened the library for itself alone (ctypes, RTLD_LOCAL): plug-ins find the server's functions all the same."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import models, paths, sanitizer
from harness.repository import Repository

HOST = Path(__file__).with_name("embed_host.py")
DIGITS_MS = 50
TRIES = 20


def host(repository: Path, model: str) -> list[str]:
    """The last lines of the program: what it was answered, and when."""
    library = paths.need(paths.BUILD / "lib" / "libtritonserver.so")
    argv = [sys.executable, str(HOST), str(library), str(repository), str(paths.backends()), model]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=120, env={**os.environ, **sanitizer.runtime()}, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()[-2:]


def test_library_opened_locally(tmp_path: Path) -> None:
    repository = models.identity_repository(Repository(tmp_path / "models"))
    assert host(repository, "id_fp32")[0] == "answered [1.0, -2.5, 3.0]"


@pytest.mark.onnx
def test_digits_within_fifty_milliseconds(tmp_path: Path) -> None:
    """From the call that makes the server to the first answer, in a new process: the runtime is made ready and the model loaded. All
    that it computes takes less, and so does all of the time but that in which it waited for a processor that others had. The best of
    several processes counts: others also slow down what is computed."""
    repository = tmp_path / "models"
    shutil.copytree(paths.need(paths.SAMPLE_MODELS / "digits"), repository / "digits")
    best = float("inf")
    for _ in range(TRIES):
        answered, after = host(repository, "digits")
        assert answered == "answered 7"
        took, computing, waiting = (float(each) for each in re.findall(r"[\d.]+", after))
        best = min(best, max(took - waiting, computing))
        if best < DIGITS_MS or paths.BUILD.name != "release":  # sanitizers cost what they cost
            return
    assert best < DIGITS_MS
