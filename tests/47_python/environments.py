"""Python environments as an archiver of environments leaves them, small: an activate script and an interpreter's own place.

A stub finds its Python's place by the python3 that is first in PATH; its other packages are those of the Python that runs the tests."""

import sys
import sysconfig
import tarfile
from pathlib import Path

ACTIVATE = """\
_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$_here:$PATH"
"""


def folder(place: Path, words: str) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = place / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (packages / "only_there.py").write_text(f"WORDS = {words!r}\n")
    (packages / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (place / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    (place / "bin").mkdir()
    (place / "bin" / "activate").write_text(ACTIVATE)
    (place / "bin" / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    return place


def archive(path: Path, words: str, scratch: Path, more: dict[str, bytes] | None = None) -> Path:
    """more: files that come first in the archive."""
    made = folder(scratch / "env", words)
    for name, data in (more or {}).items():
        (made / name).write_bytes(data)
    with tarfile.open(path, "w:gz") as tar:
        for each in sorted(made.iterdir(), key=lambda each: (each.name not in (more or {}), each.name)):
            tar.add(each, each.name)
    return path
