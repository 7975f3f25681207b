#!/usr/bin/env python3
"""Reports symbols without the prefix of their file, and exports that are not intended.

    tools/check_symbols.py [--root FOLDER] [--build FOLDER]

It checks in a build tree (build/release) that
  - libtritonserver.so exports the four families of the C ABI and exactly one private symbol, and its threads' variables take no
    more than the dynamic loader keeps for libraries that are loaded late;
  - each global symbol of src/<folder>/x.c begins with `x_`, except the public functions in *_abi.c;
  - each backend, cache and repository agent exports only its ABI and the optional symbols of nereid_backend.h or nereid_cache.h,
    and has no NEEDED entry for libtritonserver, so that the same file runs in the reference.
Each finding is one line; the exit status is 1 if there is one.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

FAMILIES = re.compile(r"^(TRITONSERVER|TRITONBACKEND|TRITONCACHE|TRITONREPOAGENT)_[A-Za-z0-9_]+$")
PRIVATE = "nereid_private_v1"
# For each kind of plug-in: its folder, the functions that it must export, and the header with the functions that it may export.
PLUGINS = {
    "backends/*/libtriton_*.so": ("TRITONBACKEND", Path("include/triton/core/nereid_backend.h")),
    "caches/*/libtritoncache_*.so": ("TRITONCACHE", Path("include/triton/core/nereid_cache.h")),
    "repoagents/*/libtritonrepoagent_*.so": ("TRITONREPOAGENT", None),
}
# Bytes of thread-local variables: glibc.rtld.optional_static_tls, unless somebody changes it.
THREAD_BYTES = 512
# Symbols that the compiler adds: for sanitizers, coverage, unwinding.
COMPILER = re.compile(r"^(__|_init$|_fini$|_edata$|_end$|DW\.ref\.)")

# Libraries of the build tree that are no layer: generated code, and code that tests and fuzzers share.
NOT_LAYERS = ("libnereid_proto", "libnereid_test_support", "libnereid_fuzz_support")


def tool(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def exported(library: Path) -> list[str]:
    """Names of the defined dynamic symbols."""
    lines = tool("nm", "-D", "--defined-only", "--format=posix", str(library)).splitlines()
    return [line.split()[0].split("@")[0] for line in lines if line.split()[1] != "A"]


def check_library(library: Path) -> list[str]:
    if not library.is_file():
        return [f"{library}: not built"]
    names = exported(library)
    findings = [f"{library.name} exports {name}: no name of the C ABI" for name in names
                if not FAMILIES.match(name) and name != PRIVATE]
    if names.count(PRIVATE) != 1:
        findings.append(f"{library.name} has to export exactly one {PRIVATE}")
    for size in re.findall(r"^ +TLS +(?:\S+ +){4}0x([0-9a-f]+)", tool("readelf", "-lW", str(library)), re.MULTILINE):
        if int(size, 16) > THREAD_BYTES:
            findings.append(f"{library.name} has {int(size, 16)} bytes of thread-local variables, more than {THREAD_BYTES}: dlopen may refuse it")
    return findings


def check_stems(archive: Path) -> list[str]:
    """The global symbols of each object file in a layer's library."""
    findings = []
    member = stem = ""
    for line in tool("nm", "-g", "--defined-only", "--format=posix", str(archive)).splitlines():
        header = re.match(r"^.*\[(.+?)\]:$", line)
        if header:
            member = header[1]
            stem = re.sub(r"\.c\.o$", "", member)
            continue
        words = line.split()
        if len(words) < 2 or COMPILER.match(words[0]):
            continue
        name = words[0]
        public = stem.endswith("_abi") and (FAMILIES.match(name) or name == PRIVATE)
        if not public and not name.startswith(stem + "_") and name != stem:
            findings.append(f"{archive.stem.removeprefix('libnereid_')}/{stem}.c: global {name} does not begin with {stem}_")
    return findings


def optional_symbols(root: Path, family: str, header: Path | None) -> set[str]:
    text = (root / header).read_text() if header and (root / header).is_file() else ""
    return set(re.findall(rf"^(?:extern\s+)?{family}_ISPEC\b[^;]*?\b(nereid_\w+_v\d+)", text, re.MULTILINE))


def check_plugin(library: Path, family: str, header: Path | None, optional: set[str]) -> list[str]:
    allowed = f"{family}_ ABI" + (f" nor in {header.name}" if header else "")
    findings = [f"{library.name} exports {name}: neither {allowed}" for name in exported(library)
                if not re.match(rf"^{family}_[A-Za-z0-9_]+$", name) and name not in optional]
    for needed in re.findall(r"\(NEEDED\).*\[(.+?)\]", tool("readelf", "-d", str(library))):
        if needed.startswith("libtritonserver"):
            findings.append(f"{library.name} has a NEEDED entry for {needed}: it could not run in the reference")
    return findings


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--build", type=Path)
    arguments = parser.parse_args()
    build = arguments.build or arguments.root / "build" / "release"

    findings = check_library(build / "lib" / "libtritonserver.so")
    archives = [path for path in sorted(build.glob("libnereid_*.a")) if path.stem not in NOT_LAYERS]
    if not archives:
        findings.append(f"{build}: no layer is built")
    for archive in archives:
        findings += check_stems(archive)
    plugins = 0
    for pattern, (family, header) in PLUGINS.items():
        optional = optional_symbols(arguments.root, family, header)
        for library in sorted(build.glob(pattern)):
            findings += check_plugin(library, family, header, optional)
            plugins += 1
    for finding in findings:
        print(finding)
    print(f"symbols: {len(archives)} layers, {plugins} plug-ins, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
