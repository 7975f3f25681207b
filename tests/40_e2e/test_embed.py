"""A host that opened the library for itself alone (ctypes, RTLD_LOCAL): plug-ins find the server's functions all the same."""

import os
import subprocess
import sys
from pathlib import Path

from harness import models, paths
from harness.repository import Repository

HOST = Path(__file__).with_name("embed_host.py")


def sanitizer(library: Path) -> dict[str, str]:
    """The runtime of the sanitizer that the library was built with has to come first in a program that has none."""
    needed = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    found = [name for name in ("libasan.so", "libtsan.so") if name in needed]
    if not found:
        return {}
    runtime = subprocess.run(["gcc", f"-print-file-name={found[0]}"], check=True, capture_output=True, text=True).stdout.strip()
    # Python keeps memory to its end.
    return {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}


def test_library_opened_locally(tmp_path: Path) -> None:
    library = paths.need(paths.BUILD / "lib" / "libtritonserver.so")
    repository = models.identity_repository(Repository(tmp_path / "models"))
    argv = [sys.executable, str(HOST), str(library), str(repository), str(paths.backends())]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=120, env={**os.environ, **sanitizer(library)}, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "answered [1.0, -2.5, 3.0]"
