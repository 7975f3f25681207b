"""The Debian package: what is in it, what it needs, its service as systemd's own tools read it. tests/56_debian installs it."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing
from harness import paths
from harness.repository import Repository
from harness.servers import Nereid

SOURCES = paths.ROOT / "deploy" / "debian"
SCHEMAS = paths.ROOT / "build" / "deploy" / "cyclonedx" / "cyclonedx" / "schema" / "_res"


def run(*argv: object, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(each) for each in argv], capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    paths.need(paths.RELEASE / "bin" / "nereid")
    folder = tmp_path_factory.mktemp("package")
    run(paths.ROOT / "tools" / "deb.sh", folder, env={"DEB_COMPRESS": "gzip", "BACKENDS": ""})
    (made,) = folder.iterdir()  # what it worked with is gone
    return made


@pytest.fixture(scope="session")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    run("dpkg-deb", "-R", package, folder)
    return folder


@pytest.fixture(scope="session")
def bill(unpacked: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((unpacked / "usr/share/doc/nereid/sbom.cdx.json").read_text())
    return told


def field(package: Path, name: str) -> str:
    return run("dpkg-deb", "-f", package, name).strip()


def test_its_fields(package: Path, unpacked: Path) -> None:
    version = run(paths.nereid_binary(), "--version").split()[1]
    assert package.name == f"nereid_{version}_{run('dpkg', '--print-architecture').strip()}.deb" and field(package, "Version") == version
    needed = re.findall(r"[a-z][a-z0-9.+-]+(?= \(|,|$)", field(package, "Depends"))
    for each in ("libc6", "libstdc++6", "libnghttp2-14", "libprotobuf-c1", "libssl3", "libcurl4", "libexpat1", "zlib1g", "passwd"):
        assert each in needed or f"{each}t64" in needed, needed
    assert "libyyjson0" not in needed, "it comes along"
    assert (unpacked / "DEBIAN/conffiles").read_text() == "/etc/nereid/nereid.conf\n"
    listed = dict(reversed(line.split("  ")) for line in (unpacked / "DEBIAN/md5sums").read_text().splitlines())
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts}
    assert listed.keys() == files
    owners = {line.split()[1] for line in run("dpkg-deb", "-c", package).splitlines()}
    assert owners == {"root/root"}
    assert [path for path in unpacked.rglob("*") if path.is_file() and path.stat().st_mode & 0o022] == []


def validate(told: dict[str, Any]) -> None:
    names = ("bom-1.6.SNAPSHOT.schema.json", "spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json")
    schemas = [json.loads(paths.need(SCHEMAS / name, "tools/setup_deploy.sh").read_text()) for name in names]
    known = referencing.Registry().with_resources([
        (place + name, referencing.Resource.from_contents(each))
        for place in ("", "http://cyclonedx.org/schema/")
        for name, each in zip(names, schemas, strict=True)
    ])
    jsonschema.Draft7Validator(schemas[0], registry=known).validate(told)


def test_its_bill_of_materials(bill: dict[str, Any], package: Path, unpacked: Path) -> None:
    validate(bill)
    with pytest.raises(jsonschema.ValidationError):
        validate({**bill, "components": [{**bill["components"][0], "licenses": [{"license": {"id": "no licence"}}]}]})
    named = {each["name"]: each for each in bill["components"]}
    assert {"onnxruntime", "yyjson", "llhttp", "uplot"} <= named.keys()
    assert named["onnxruntime"]["purl"] == "pkg:pypi/onnxruntime@" + re.findall(r"^onnxruntime==(\S+)", (paths.ROOT / "tools/packages/run.lock").read_text(), re.MULTILINE)[0]
    library = unpacked / "usr/lib/nereid/backends/onnxruntime/libonnxruntime.so.1"
    assert named["onnxruntime"]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(library.read_bytes()).hexdigest()}]
    for each in re.findall(r"([a-z][a-z0-9.+-]+) \(", field(package, "Depends")):
        assert named[each]["purl"].startswith(f"pkg:deb/debian/{each}@")


def test_licences_of_all_that_it_contains(bill: dict[str, Any], unpacked: Path) -> None:
    """Each library that is no package of Debian's has its text there, and each file that is not ours belongs to one of them."""
    texts = [path.name for path in (unpacked / "usr/lib/nereid/share/nereid/licences").iterdir()]
    contained = [each["name"] for each in bill["components"] if "pkg:deb/" not in each["purl"]]
    for name in contained:
        assert any(name in text for text in texts), (name, texts)
    ours = re.compile(r"libtriton\w*\.so|libnereid_\w+\.so|nereid_python_stub\.abi3\.so")
    for path in (unpacked / "usr/lib/nereid").rglob("*.so*"):
        assert ours.fullmatch(path.name) or any(path.name.startswith(f"lib{name}.so") for name in contained), path
    assert "Apache License" in (unpacked / "usr/share/doc/nereid/copyright").read_text()


def test_its_services_as_systemd_reads_them(unpacked: Path) -> None:
    units = unpacked / "usr/lib/systemd/system"
    for name in ("nereid.service", "nereid-next.service"):
        # It wants to see the programs where they will be.
        text = (units / name).read_text().replace("ExecStart=/usr/bin/nereid", f"ExecStart={paths.nereid_binary()}")
        (unpacked / name).write_text(text.replace("=+/usr/sbin/", f"=+{unpacked}/usr/sbin/"))
        got = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unpacked / name)], capture_output=True, text=True, check=False, timeout=60)
        assert got.returncode == 0 and str(unpacked) not in got.stderr, got.stderr
        told = run("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unpacked / name)
        assert re.search(r"Overall exposure level for .*: [01]\.\d", told), told
    first, second = ((units / name).read_text() for name in ("nereid.service", "nereid-next.service"))
    assert "--allow-metrics=false" in second and "[Install]" in first and "[Install]" not in second
    assert re.findall("^ExecStartPost=.*systemctl --no-block (.*)$", first, re.MULTILINE) == ["stop nereid-next.service"]
    assert re.findall(r"^ExecStart(?:Pre|Post)=\+/usr/sbin/nereid-handover (.*)$", second, re.MULTILINE) == ["second-starts", "second-serves"]


@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm", "nereid-handover"])
def test_its_scripts_are_ones(name: str) -> None:
    run("sh", "-n", SOURCES / name)


def test_its_program_serves_with_its_configuration(unpacked: Path, tmp_path: Path) -> None:
    """From the directory where it was unpacked, with the options of its service; places and ports are the test's."""
    made = Repository(tmp_path / "models")
    made.identity("one")
    conf = tmp_path / "nereid.conf"
    conf.write_text((unpacked / "etc/nereid/nereid.conf").read_text().replace("/var/lib/nereid/models", str(made.path)))
    start = re.findall(r"^ExecStart=/usr/bin/nereid (.*)$", (unpacked / "usr/lib/systemd/system/nereid.service").read_text(), re.MULTILINE)[0]
    (config, *options, models) = start.split()
    assert config == "--config=/etc/nereid/nereid.conf" and models == "$NEREID_MODELS"

    class Packaged(Nereid):
        def program(self) -> list[str]:
            return [str(unpacked / "usr/bin/nereid"), f"--config={conf}", *options]

    with Packaged([]) as server:
        assert str(unpacked / "usr/lib/nereid/backends") in server.process.log()
