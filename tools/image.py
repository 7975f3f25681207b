#!/usr/bin/env python3
"""Makes a container image of the build tree build/release without a daemon: a directory in the layout of the Open Container Initiative.

    tools/image.py [FOLDER]     (build/dist/image); BACKENDS names the backends that come along, as for make install

There is no distribution in it, no shell and no package manager: the libraries of this machine that the server needs, found by the loader, the
certificates of authorities, /etc/passwd, and what `make install` makes, in /opt/nereid. Three layers, those that change least first. The same
files give the same image, byte for byte.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "opt/nereid"
USER = 65532
ON_DEMAND = ("libzstd.so.1", "libpcre2-8.so.0", "libyaml-0.so.2")  # opened when they are needed
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
FILES = {
    "etc/passwd": f"root:x:0:0:root:/:/nologin\nnereid:x:{USER}:{USER}:nereid:/:/nologin\n",
    "etc/group": f"root:x:0:\nnereid:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
LINKS = {"lib": "usr/lib", "lib64": "usr/lib64", "bin": "usr/bin"}
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def run(*argv: object, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(each) for each in argv], capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, **(env or {})})
    if done.returncode:
        sys.exit(f"image: FAILED: {' '.join(map(str, argv))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def libraries(tree: Path) -> dict[str, Path]:
    """What the loader finds outside of the tree for the files of it: the path in the image, and the file."""
    found: dict[str, Path] = {}
    programs = [path for path in tree.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    cache = run("/sbin/ldconfig", "-p")
    for name in ON_DEMAND:
        if at := re.search(rf"^\s*{re.escape(name)} .*=> (\S+)", cache, re.MULTILINE):
            programs.append(Path(at[1]))
            found[at[1]] = Path(at[1])
    for program in programs:
        for line in run("env", f"LD_LIBRARY_PATH={tree / 'lib'}", "ldd", program).splitlines():
            at = re.search(r"(?:=> )?(/\S+) \(0x", line)
            if at and not Path(at[1]).is_relative_to(tree) and not Path(at[1]).is_relative_to(ROOT):
                found[at[1]] = Path(at[1])
            elif "not found" in line:
                sys.exit(f"image: FAILED: {program} needs {line.split()[0]}, which is not here")
    return {"usr" + path if path.startswith("/lib") else path.lstrip("/"): file for path, file in found.items()}


def packages_of(files: list[Path]) -> set[str]:
    """The Debian packages that files came with."""
    names = {file: {path for each in (file, file.resolve()) for path in (str(each), str(each).removeprefix("/usr"), f"/usr{each}")} for file in files}
    asked = sorted(path for paths in names.values() for path in paths)
    told = subprocess.run(["dpkg-query", "-S", *asked], capture_output=True, text=True, check=False).stdout
    owners = {path: package.split(":")[0] for package, path in re.findall(r"^(\S+): (/\S+)$", told, re.MULTILINE)}
    for file, paths in names.items():
        if not paths & owners.keys():
            sys.exit(f"image: FAILED: {file} belongs to no package, so nobody knows its licence")
    return {owners[path] for paths in names.values() for path in paths if path in owners}


class Layer:
    """One layer, written in order of the names."""

    def __init__(self, title: str):
        self.title = title
        self.entries: dict[str, tuple[tarfile.TarInfo, bytes]] = {}

    def add(self, name: str, content: bytes = b"", mode: int = 0o644, kind: bytes = tarfile.REGTYPE, target: str = "") -> None:
        for parent in reversed(Path(name).parents[:-1]):
            if str(parent) not in self.entries and str(parent) not in LINKS:
                self.directory(str(parent))
        entry = tarfile.TarInfo(name)
        entry.mode, entry.type, entry.linkname, entry.size = mode, kind, target, len(content)
        self.entries[name] = (entry, content)

    def directory(self, name: str, mode: int = 0o755) -> None:
        entry = tarfile.TarInfo(name)
        entry.mode, entry.type = mode, tarfile.DIRTYPE
        self.entries[name] = (entry, b"")

    def file(self, name: str, path: Path) -> None:
        if path.is_symlink() and not path.is_absolute():
            self.add(name, kind=tarfile.SYMTYPE, mode=0o777, target=str(path.readlink()))
        else:
            self.add(name, path.read_bytes(), 0o755 if path.stat().st_mode & 0o100 else 0o644)

    def link(self, name: str, target: str) -> None:
        self.add(name, kind=tarfile.SYMTYPE, mode=0o777, target=target)

    def size(self) -> int:
        return sum(len(content) for _, content in self.entries.values())

    def tar(self) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name in sorted(self.entries):
                entry, content = self.entries[name]
                archive.addfile(entry, io.BytesIO(content))
        return out.getvalue()


class Layout:
    """The directory of an image: blobs by their digests, and an index."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def put(self, kind: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(content)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    def put_json(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        return self.put(kind, json.dumps(content, indent=1, sort_keys=True).encode())

    def image(self, layers: list[Layer], version: str) -> None:
        architecture = ARCHITECTURES.get(os.uname().machine, os.uname().machine)
        tars = [layer.tar() for layer in layers]
        created = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        config = {
            "architecture": architecture, "os": "linux", "created": created,
            "config": {
                "User": f"{USER}:{USER}", "Entrypoint": [f"/{PREFIX}/bin/nereid"], "Cmd": ["--model-repository=/models"], "WorkingDir": "/",
                "Env": [f"PATH=/{PREFIX}/bin"], "ExposedPorts": {"8000/tcp": {}, "8001/tcp": {}, "8002/tcp": {}}, "StopSignal": "SIGTERM",
                "Labels": {"org.opencontainers.image.title": "nereid", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"},
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in tars]},
            "history": [{"created": created, "created_by": layer.title} for layer in layers],
        }  # fmt: skip
        manifest = {
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.put_json("application/vnd.oci.image.config.v1+json", config),
            "layers": [self.put(LAYER, gzip.compress(each, 6, mtime=0)) for each in tars],
        }  # fmt: skip
        told = self.put_json(manifest["mediaType"], manifest)
        told |= {"platform": {"architecture": architecture, "os": "linux"}, "annotations": {"org.opencontainers.image.ref.name": version}}
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [told]}
        (self.folder / "index.json").write_text(json.dumps(index, indent=1, sort_keys=True))


def base_layer(needed: dict[str, Path]) -> tuple[Layer, list[str]]:
    """Libraries of the system with their licences; and their packages, as NAME=VERSION."""
    layer = Layer("libraries of Debian, certificates of authorities")
    for name, target in LINKS.items():
        layer.link(name, target)
    for name, text in FILES.items():
        layer.add(name, text.encode())
    layer.directory("tmp", 0o1777)
    for name in ("usr/bin", "usr/lib64", "models", "proc", "sys", "dev", "run"):
        layer.directory(name)
    for name, file in needed.items():
        layer.add(name, file.read_bytes(), 0o755)
    layer.add(str(AUTHORITIES).lstrip("/"), AUTHORITIES.read_bytes())
    packages = packages_of(list(needed.values())) | {"ca-certificates"}
    for name in packages:
        layer.add(f"usr/share/doc/{name}/copyright", Path(f"/usr/share/doc/{name}/copyright").read_bytes())
    return layer, sorted(f"{name}={run('dpkg-query', '-W', '-f', '${Version} ', name).split()[0]}" for name in packages)


def tree_layers(tree: Path, bill: str) -> list[Layer]:
    """The runtimes of backends, which change seldom; then the server."""
    runtimes, server = Layer("runtimes of backends"), Layer("Nereid")
    for path in sorted(tree.rglob("*")):
        inside = path.relative_to(tree)
        if path.is_dir() and not path.is_symlink() or inside.parts[0] == "include":
            continue
        large = inside.parts[0] == "backends" and path.stat().st_size > 2**20
        layer = runtimes if large else server
        if path.is_symlink():
            layer.link(f"{PREFIX}/{inside}", str(path.readlink()))
        else:
            layer.file(f"{PREFIX}/{inside}", path)
    server.add(f"{PREFIX}/share/nereid/sbom.cdx.json", bill.encode())
    return [runtimes, server]


def main() -> None:
    if len(sys.argv) > 2 or "--help" in sys.argv:
        sys.exit(__doc__)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "dist" / "image").resolve()
    found = re.search(r"^project\(nereid VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert found
    version = found[1]
    with tempfile.TemporaryDirectory() as scratch:
        run("tools/install.sh", f"/{PREFIX}", env={"DESTDIR": scratch})
        tree = Path(scratch) / PREFIX
        base, packages = base_layer(libraries(tree))
        layers = [base, *tree_layers(tree, run(sys.executable, "tools/sbom.py", tree, version, *packages))]
    shutil.rmtree(folder, ignore_errors=True)
    layout = Layout(folder)
    layout.image(layers, version)
    packed = sum(path.stat().st_size for path in (folder / "blobs" / "sha256").iterdir())
    for layer in layers:
        print(f"image: {layer.size() / 1e6:6.1f} MB  {layer.title}")
    print(f"image: {folder}:{version}, {sum(layer.size() for layer in layers) / 1e6:.0f} MB, packed {packed / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
