#!/usr/bin/env python3
"""Says what an installed tree contains, as a bill of materials in CycloneDX 1.6 (JSON, to the standard output).

    tools/sbom.py TREE VERSION [PACKAGE...]

TREE  the directory that tools/install.sh made: bin, lib, backends, ...
PACKAGE  Debian packages that it needs or that lie beside it, each NAME=VERSION
Licences are those of THIRD_PARTY; versions are what tools/packages pins, or what was built with.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "tools" / "packages"
SPDX = {"curl licence": "curl"}  # names in THIRD_PARTY that are none of SPDX


def licences() -> dict[str, str]:
    """The first table of THIRD_PARTY: name and licence."""
    table = (ROOT / "THIRD_PARTY").read_text().split("Used for building")[0]
    rows = re.findall(r"^(\S(?:.*?\S)?) {2,}(\S(?:.*?\S)?) {2,}\S", table, re.MULTILINE)
    return {name: SPDX.get(licence, licence) for name, licence in rows if name != "name"}


def pinned(file: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}(?:==| )([^\s\\]+)", (PACKAGES / file).read_text(), re.MULTILINE)
    if not found:
        sys.exit(f"sbom: {PACKAGES / file} has no line for {name}")
    return found[1]


def built_with(library: str) -> str:
    found = sorted((ROOT / "build" / "deps" / "usr" / "lib").glob("*/pkgconfig"))
    path = ":".join([*map(str, found), os.environ.get("PKG_CONFIG_PATH", "")])
    done = subprocess.run(["pkg-config", "--modversion", library], env={**os.environ, "PKG_CONFIG_PATH": path}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"sbom: pkg-config knows no {library}: {done.stderr.strip()}")
    return done.stdout.strip()


def component(name: str, version: str, purl: str, licence: str, files: list[Path]) -> dict[str, Any]:
    digests = sorted({hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
    known = re.fullmatch(r"[A-Za-z0-9.+-]+", licence) is not None
    told: dict[str, Any] = {
        "type": "library", "name": name, "version": version, "bom-ref": purl, "purl": purl,
        "licenses": [{"license": {"id": licence} if known else {"name": licence}}],
    }
    if digests:
        told["hashes"] = [{"alg": "SHA-256", "content": each} for each in digests]
    return told


def contained(tree: Path) -> list[dict[str, Any]]:
    """What others made and the tree has in it."""
    licence = licences()

    def files(pattern: str) -> list[Path]:
        return [path for path in tree.glob(pattern) if path.is_file()]

    made = []
    if found := files("**/libyyjson.so*"):
        version = built_with("yyjson")
        made.append(component("yyjson", version, f"pkg:github/ibireme/yyjson@{version}", licence["yyjson"], found))
    version = built_with("libllhttp")  # inside libtritonserver.so
    made.append(component("llhttp", version, f"pkg:npm/llhttp@{version}", licence["llhttp"], []))
    if found := files("share/nereid/report/uPlot*"):
        version = pinned("run.npm", "uplot")
        made.append(component("uplot", version, f"pkg:npm/uplot@{version}", licence["uPlot"], found))
    if found := files("backends/onnxruntime/libonnxruntime.so*"):
        version = pinned("run.lock", "onnxruntime")
        made.append(component("onnxruntime", version, f"pkg:pypi/onnxruntime@{version}", licence["ONNX Runtime"], found))
    for backend, name in (("openvino", "OpenVINO"), ("pytorch", "PyTorch"), ("tensorflow", "TensorFlow")):
        if found := [file for file in files(f"backends/{backend}/*.so*") if "libtriton_" not in file.name and "yyjson" not in file.name]:
            purl = runtime(backend)
            made.append(component(backend, purl.split("@")[1].split("?")[0], purl, licence[name], found))
    return made


def runtime(backend: str) -> str:
    """The package that the runtime of a backend came in."""
    archive, lock = PACKAGES / f"{backend}.maven", PACKAGES / f"{backend}.lock"
    if archive.exists() and (found := re.search(r"^([^:#\s]+):([^:]+):([^:]+):jar:([^\s]+)", archive.read_text(), re.MULTILINE)):
        return f"pkg:maven/{found[1]}/{found[2]}@{found[3]}?classifier={found[4]}"
    return f"pkg:pypi/{backend}@{pinned(lock.name, backend)}"


def system(package: str) -> dict[str, Any]:
    name, version = package.split("=", 1)
    return component(name, version, f"pkg:deb/debian/{name}@{version}", f"see /usr/share/doc/{name}/copyright", [])


def bill(tree: Path, version: str, packages: list[str]) -> dict[str, Any]:
    ours = f"pkg:generic/nereid@{version}"
    components = [*contained(tree), *map(system, packages)]
    told = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {
            **component("nereid", version, ours, "Apache-2.0", [tree / "bin" / "nereid", tree / "lib" / "libtritonserver.so"]), "type": "application",
        }},
        "components": components,
        "dependencies": [{"ref": ours, "dependsOn": [each["bom-ref"] for each in components]}],
    }  # fmt: skip
    return {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(told, sort_keys=True))}", **told}


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print(json.dumps(bill(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]), indent=1))


if __name__ == "__main__":
    main()
