#!/usr/bin/env python3
"""Reports includes that the layers do not allow.

    tools/check_layers.py [--root FOLDER]

src/LAYERS names for each folder of src/ the folders it may include. This checks that
  - src/LAYERS itself is sound: levels rise, edges go down, there is no cycle, each folder is named;
  - a file of src/<folder>/ includes only headers of its own folder and of the folders that it may
    include, with paths that begin at src/;
  - each edge is used: at least one file of the folder includes a header of the other folder;
  - a private header (x_priv.h) is included only from its own folder;
  - main.c includes only public headers and src/nereid_private.h, which otherwise only the top level
    includes;
  - a backend includes only public headers, its own headers and those of backends/common; the package for
    Python does so too, and src/nereid_private.h;
  - only os/ includes system headers for threads, polling, mapping and loading (net/, net/tls/,
    http/ and grpc/ may include the headers with the names of events and socket addresses).
Each finding is a line `file:line: what`; the exit status is 1 when there is one.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

LINE = re.compile(r"^(\d+) ([a-z0-9_/]+):((?: [a-z0-9_/]+)*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
SOURCES = {".c", ".h", ".def", ".cc", ".cpp"}
PUBLIC = ("triton/core/", "nereid/")  # folders of include/
# The functions that the library offers to the executable: the top level fills the table, main.c uses it.
PRIVATE_TABLE = "nereid_private.h"
PRIVATE_TABLE_SEEN_BY = {"abi", "run"}
GENERATED = "proto"
MADE_BY_CMAKE = {"base/log_components.h"}  # made from src/LAYERS
SAME_LEVEL = {("os", "base")}
SYSTEM_ONLY_OS = {
    "pthread.h", "threads.h", "dlfcn.h", "sys/epoll.h", "sys/eventfd.h", "sys/timerfd.h", "sys/inotify.h", "sys/mman.h",
    "poll.h", "sys/select.h", "sys/socket.h",
}
# These folders work with descriptors: they use the names of events and addresses; os/ makes the system calls.
NET = {"net", "net/tls", "http", "grpc", "bench"}
SYSTEM_NET_TOO = {"sys/epoll.h", "sys/socket.h", "poll.h"}


@dataclass
class Layers:
    level: dict[str, int] = field(default_factory=dict)
    allowed: dict[str, list[str]] = field(default_factory=dict)


class Report:
    def __init__(self, root: Path):
        self.root = root
        self.findings: list[str] = []

    def add(self, path: Path, line: int, what: str) -> None:
        self.findings.append(f"{path.relative_to(self.root)}:{line}: {what}")


def read_layers(path: Path, report: Report) -> Layers:
    layers = Layers()
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if not text.strip() or text.startswith("#"):
            continue
        match = LINE.match(text)
        if not match:
            report.add(path, number, f"expected `<level> <folder>: <folders>`, found {text!r}")
            continue
        level, folder, allowed = int(match[1]), match[2], match[3].split()
        if folder in layers.level:
            report.add(path, number, f"{folder} is named twice")
        if layers.level and level < max(layers.level.values()):
            report.add(path, number, f"{folder} on level {level} stands after a higher level")
        layers.level[folder] = level
        layers.allowed[folder] = allowed
    check_edges(path, layers, report)
    return layers


def check_edges(path: Path, layers: Layers, report: Report) -> None:
    for folder, allowed in layers.allowed.items():
        for other in allowed:
            if other not in layers.level:
                report.add(path, 1, f"{folder} may include {other}, which has no line")
            elif layers.level[other] >= layers.level[folder] and (folder, other) not in SAME_LEVEL:
                report.add(path, 1, f"the edge {folder} -> {other} does not go down")
    cycle = find_cycle(layers.allowed)
    if cycle:
        report.add(path, 1, f"cycle: {' -> '.join(cycle)}")


def find_cycle(edges: dict[str, list[str]]) -> list[str] | None:
    done: set[str] = set()

    def walk(folder: str, trail: list[str]) -> list[str] | None:
        if folder in trail:
            return [*trail[trail.index(folder):], folder]
        if folder in done:
            return None
        for other in edges.get(folder, []):
            found = walk(other, [*trail, folder])
            if found:
                return found
        done.add(folder)
        return None

    return next((cycle for folder in edges if (cycle := walk(folder, []))), None)


def includes_of(path: Path) -> list[tuple[int, bool, str]]:
    found = []
    for number, text in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(text)
        if match:
            found.append((number, match[1] == "<", match[2]))
    return found


def sources_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES and path.is_file())


def folder_of(name: str) -> str:
    """The folder of an included header: `server/options/options.h` is in server/options."""
    return name.rpartition("/")[0]


def check_layer_file(path: Path, folder: str, layers: Layers, report: Report, src: Path) -> set[str]:
    """Checks one file; returns the folders whose headers it includes."""
    may = {folder, *layers.allowed[folder]}
    used = set()
    for number, system, name in includes_of(path):
        first = folder_of(name)
        used.add(first)
        if system and first not in layers.level:
            if name in SYSTEM_ONLY_OS and folder.split("/")[0] != "os" and not (folder in NET and name in SYSTEM_NET_TOO):
                report.add(path, number, f"<{name}> is for src/os: use what os/ offers")
            continue
        if name.startswith(PUBLIC) or (folder in PRIVATE_TABLE_SEEN_BY and name == PRIVATE_TABLE):
            continue
        if first not in layers.level or "/" not in name:
            report.add(path, number, f'"{name}" is not written from src/ ("folder/file.h")')
        elif first not in may:
            report.add(path, number, f'{folder}/ may not include "{name}": src/LAYERS has no edge {folder} -> {first}')
        elif name.endswith("_priv.h") and first != folder:
            report.add(path, number, f'"{name}" is private to src/{first}')
        elif first != GENERATED and name not in MADE_BY_CMAKE and not (src / name).is_file():
            report.add(path, number, f'"{name}" does not exist')
    return used


def check_src(root: Path, layers: Layers, report: Report) -> None:
    src = root / "src"
    for folder in sorted(path for path in src.rglob("*") if path.is_dir()):
        files = [path for path in sources_in(folder) if path.parent == folder]
        name = folder.relative_to(src).as_posix()
        if files and name not in layers.level:
            report.add(files[0], 1, f"src/{name} has no line in src/LAYERS")
            continue
        used = {other for path in files for other in check_layer_file(path, name, layers, report, src)}
        for other in layers.allowed.get(name, []):
            if files and other not in used:
                report.add(src / "LAYERS", 1, f"nothing in {name} includes anything of {other}: the edge is not used")
    for path in sorted(src.glob("*.[ch]")):
        for number, system, name in includes_of(path):
            if not system and not name.startswith(PUBLIC) and name != PRIVATE_TABLE:
                report.add(path, number, f'"{name}": {path.name} sees public headers and nereid_private.h only')


def check_plugins(root: Path, kind: str, who: str, also: set[str], report: Report) -> None:
    """Checks each folder of backends/ or bindings/."""
    backends, folder = root / "backends", root / kind
    for path in sources_in(folder) if folder.is_dir() else []:
        own = folder / path.relative_to(folder).parts[0]
        for number, system, name in includes_of(path):
            if system or name.startswith(PUBLIC) or name in also:
                continue
            places = [path.parent / name, own / name, backends / name]
            real = [place.resolve() for place in places if place.is_file()]
            homes = (own.resolve(), (backends / "common").resolve())
            if not any(place.is_relative_to(home) for place in real for home in homes):
                report.add(path, number, f'{who} may not include "{name}": public headers, its own, backends/common')


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    report = Report(root)
    layers = read_layers(root / "src" / "LAYERS", report)
    check_src(root, layers, report)
    check_plugins(root, "backends", "a backend", set(), report)
    check_plugins(root, "bindings", "the package", {PRIVATE_TABLE}, report)
    for finding in report.findings:
        print(finding)
    print(f"layers: {len(layers.level)} folders, {len(report.findings)} findings")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
