"""Programs of other people's, such as Python, that load the library under test."""

import functools
import subprocess

from . import paths


def told(*argv: object) -> str:
    return subprocess.run([str(each) for each in argv], check=True, capture_output=True, text=True).stdout


@functools.cache
def runtime() -> dict[str, str]:
    """Their environment: the runtime of the sanitizer that the library was built with has to come first in a program that has none."""
    needed = told("readelf", "-d", paths.need(paths.BUILD / "lib" / "libtritonserver.so"))
    found = [name for name in ("libasan.so", "libtsan.so") if name in needed]
    if not found:
        return {}
    # Python keeps memory to its end. The status is that of tools/run_tests.py, which no test expects.
    return {"LD_PRELOAD": told("gcc", f"-print-file-name={found[0]}").strip(), "ASAN_OPTIONS": "detect_leaks=0:exitcode=99"}
