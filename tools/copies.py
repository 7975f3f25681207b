"""Copies of the tree, in which tools/mutate.py and tools/without.py change sources and build."""

import re
import shutil
import subprocess
from collections.abc import Set as AbstractSet
from pathlib import Path

OWN = {"mutate", "without", "test-logs", "dist"}  # what tools write into build/, besides a folder for each preset


def copy_sources(root: Path, tree: Path) -> frozenset[str]:
    """Copies each file that git knows or would add and that differs; returns their names."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, text=True, check=True)
    names = frozenset(name for name in listed.stdout.split("\0") if name and (root / name).is_file())
    for name in names:
        source, target = root / name, tree / name
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            target.touch()  # so that ninja builds it again: the copied time may be older than the last build
    return names


def share_build(root: Path, tree: Path, besides: AbstractSet[str] = frozenset()) -> None:
    """Links everything in build/ into the copy's, but for what is built of the sources. besides: presets that are linked too."""
    presets = set(re.findall(r'"name": "(\w+)"', (root / "CMakePresets.json").read_text()))
    (tree / "build").mkdir(parents=True, exist_ok=True)
    for path in (root / "build").iterdir():
        link = tree / "build" / path.name
        if link.is_symlink() or link.is_file():
            link.unlink()
        if path.name not in (OWN | presets) - besides:
            if link.is_dir():
                shutil.rmtree(link)  # what the copy made when it had to have its own
            link.symlink_to(path)
