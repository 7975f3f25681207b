"""The C ABI as a whole: every name of the reference library is there and nothing else, and a C test calls each of them."""

import re
import subprocess
from pathlib import Path

import pytest
from harness import paths

FAMILIES = ("TRITONSERVER_", "TRITONBACKEND_", "TRITONREPOAGENT_", "TRITONCACHE_")
PRIVATE = "nereid_private_v1"
TESTS = [paths.ROOT / "tests" / "10_inprocess", paths.ROOT / "tests" / "00_unit"]


def exported(library: Path) -> set[str]:
    result = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library], check=True, capture_output=True, text=True)
    return {line.split()[0].split("@")[0] for line in result.stdout.splitlines()}


def abi(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith(FAMILIES)}


@pytest.fixture(scope="module")
def reference() -> set[str]:
    libraries = list((paths.reference_root().parent.parent / "nvidia_pytriton.libs").glob("libtritonserver-*.so"))
    assert len(libraries) == 1
    return abi(exported(libraries[0]))


def test_the_reference_has_the_four_families(reference: set[str]) -> None:
    assert [sum(name.startswith(family) for name in reference) for family in FAMILIES] == [172, 91, 12, 8]


def test_names_are_those_of_the_reference(reference: set[str]) -> None:
    ours = exported(paths.need(paths.BUILD / "lib" / "libtritonserver.so"))
    ours = {name for name in ours if not name.startswith("_")}  # what a linker adds
    assert ours - reference == {PRIVATE}
    assert reference - ours == set()


def test_headers_declare_every_name(reference: set[str]) -> None:
    text = "".join(path.read_text() for path in (paths.ROOT / "include" / "triton" / "core").glob("triton*.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert reference - set(re.findall(r"\b(TRITON[A-Z]+_\w+)\s*\(", text)) == set()


def test_every_function_is_called_by_a_c_test(reference: set[str]) -> None:
    called: set[str] = set()
    for folder in TESTS:
        for path in folder.rglob("*.c"):
            code = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", "", path.read_text(), flags=re.DOTALL)
            # A call stands inside a statement; a definition begins a line.
            called |= set(re.findall(r"(?<!\*)(?<=[\s(])(TRITON[A-Z]+_\w+)\(", code))
    assert reference - called == set()
