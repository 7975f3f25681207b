#!/usr/bin/env python3
"""Makes the wheel of the package out of a build tree.

    build_wheel.py FOLDER        the wheel in FOLDER; what is in it, and how large it is, on the output

pip calls build_wheel() when it installs this folder. The tree is build/release, or the one that NEREID_BUILD names; what is not built
there yet is built first. The wheel holds the server as `make install` puts it: library, executable, backends, modules; and every library
that those need and a bare Debian lacks. It needs nothing but numpy; the standard library makes it.
"""

import argparse
import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What every system with this C library has.
SYSTEM = re.compile(r"^(lib(c|m|dl|pthread|rt|resolv|gcc_s|stdc\+\+|asan|ubsan|tsan)\.so\.\d+|ld-linux.*)$")  # and sanitizers' runtimes
EPOCH = (1980, 1, 1, 0, 0, 0)
LEFT_OUT = ("include/", "share/", "bin/tritonserver")
PAGES = ("share/nereid/live/", "share/nereid/report/")  # for browsers


def run(*argv: object) -> str:
    return subprocess.run([str(each) for each in argv], check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def version() -> str:
    found = re.search(r"^project\(nereid VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert found, "CMakeLists.txt names no version"
    return found[1]


def built() -> Path:
    tree = ROOT / os.environ.get("NEREID_BUILD", "build/release")
    if not (tree / "package" / "_core.abi3.so").exists():
        subprocess.run([ROOT / "tools" / "build.sh", "release", "server", "nereid_package"], check=True, stdout=sys.stderr)
    return tree


def is_elf(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(library: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", run("readelf", "-d", library))


def bring_libraries(package: Path) -> list[Path]:
    """Copies into lib/ what the files of the package need and no bare system has; returns where each was taken from."""
    taken: list[Path] = []
    left = [path for path in sorted(package.rglob("*")) if path.is_file() and is_elf(path)]
    there = {path.name for path in left}
    while left:
        library = left.pop()
        missing = [name for name in needed(library) if not SYSTEM.match(name) and name not in there]
        where = dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", library), re.MULTILINE)) if missing else {}
        for name in missing:
            if name not in where:
                raise SystemExit(f"{library.name} needs {name}, which is not on this machine")
            source = Path(where[name]).resolve()
            copy = package / "lib" / name
            shutil.copyfile(source, copy)
            run("strip", "--strip-unneeded", copy)
            copy.chmod(0o755)
            there.add(name)
            taken.append(source)
            left.append(copy)
    return taken


def licences(stage: Path, taken: list[Path], target: Path) -> None:
    """Those of what is inside, and of Debian's libraries."""
    shutil.copytree(stage / "share" / "nereid", target, ignore=shutil.ignore_patterns("live", "report"))
    for source in taken:
        owner = re.match(r"^([^:]+)", run("dpkg", "-S", f"*/{source.name}"))
        copyright_file = Path("/usr/share/doc") / (owner[1] if owner else "") / "copyright"
        if copyright_file.is_file():
            shutil.copyfile(copyright_file, target / "licences" / copyright_file.parent.name)


def glibc(package: Path) -> int:
    """The oldest C library, 2.N, that has all that the files use."""
    files = [path for path in package.rglob("*") if path.is_file() and is_elf(path)]
    return max(int(each) for each in re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-V", "-W", *files)))


def stage(tree: Path, folder: Path) -> tuple[Path, str]:
    """The files as they will lie in site-packages; returns the folder of metadata and the wheel's tag."""
    installed = folder / "installed"
    run("cmake", "--install", tree, "--prefix", installed, "--strip")
    package = folder / "wheel" / "nereid"
    shutil.copytree(HERE / "nereid", package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sorted(installed.rglob("*")):
        name = str(path.relative_to(installed))
        if path.is_file() and (name.startswith(PAGES) or not name.startswith(LEFT_OUT)):
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, package / name)
    run("cmake", "--install", tree, "--prefix", package, "--strip", "--component", "package")
    information = folder / "wheel" / f"nereid-{version()}.dist-info"
    taken = bring_libraries(package)
    information.mkdir()
    licences(installed, taken, information / "licenses")
    tag = f"cp39-abi3-manylinux_2_{glibc(package)}_{os.uname().machine}"
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: nereid\nVersion: {version()}\nSummary: An inference server that takes Triton's place, in this process "
        "or as a program\nLicense: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: numpy>=1.23\n"
    )
    (information / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: nereid\nRoot-Is-Purelib: false\nTag: {tag}\n")
    (information / "entry_points.txt").write_text("[console_scripts]\nnereid = nereid.__main__:main\n")
    return information, tag


def pack(root: Path, information: Path, wheel: Path) -> None:
    record = io.StringIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in [path for path in sorted(root.rglob("*")) if path.is_file()]:
            name, content = str(path.relative_to(root)), path.read_bytes()
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.write(f"{name},sha256={digest},{len(content)}\n")
        name = f"{information.name}/RECORD"
        record.write(f"{name},,\n")
        archive.writestr(zipfile.ZipInfo(name, EPOCH), record.getvalue())


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """The hook that pip calls (PEP 517); returns the name of the wheel."""
    tree = built()
    with tempfile.TemporaryDirectory(prefix="nereid-wheel-") as scratch:
        information, tag = stage(tree, Path(scratch))
        wheel = Path(wheel_directory) / f"nereid-{version()}-{tag}.whl"
        wheel.parent.mkdir(parents=True, exist_ok=True)
        pack(information.parent, information, wheel)
    return wheel.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    name = build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as archive:
        for entry in archive.infolist():
            print(f"{entry.file_size:>10}  {entry.filename}")
    print(f"{folder / name}: {(folder / name).stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
