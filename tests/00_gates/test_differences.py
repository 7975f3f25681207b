"""Every difference from the reference has a reason, a source and a test that is there."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "differences.py"
ONE = "Difference(kinds.ABI, 'a name', 'this', 'that', 'why', 'RFC 1', CLIENT, {tests})"


def run(*options: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *map(str, options)], capture_output=True, text=True, check=False)


def write(root: Path, *differences: str) -> None:
    """Every kind has a difference."""
    others = "*(Difference(kind, kind.name, 'this', 'that', 'why', 'RFC 1') for kind in kinds.KINDS)"
    text = f"import kinds\nfrom kinds import CLIENT, Difference\nHELD = ({', '.join(differences)}, {others})\n"
    (root / "tests/41_compare/held.py").write_text(text)


def write_kinds(root: Path, text: str, by: str) -> None:
    path = root / "tests/41_compare/kinds.py"
    before = path.read_text()
    assert text in before
    path.write_text(before.replace(text, by))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A small tree of its own, with the kinds of this one."""
    (tmp_path / "docs/user").mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/requirements.list", tmp_path / "tools")
    shutil.copytree(ROOT / "include/triton/core", tmp_path / "include/triton/core")
    (tmp_path / "tests/41_compare").mkdir(parents=True)
    (tmp_path / "tests/test_one.py").write_text("def test_it() -> None:\n    pass\n")
    (tmp_path / "tests/test_two.c").write_text("static void it_works(void **state)\n")
    for name in ("kinds.py", "known.py", "test_compare.py"):
        shutil.copy(ROOT / "tests/41_compare" / name, tmp_path / "tests/41_compare")
    write(tmp_path, ONE.format(tests="('test_one.py::test_it', 'test_two.c::it_works')"))
    assert run("--root", tmp_path).returncode == 0
    assert run("--root", tmp_path, "--check").returncode == 0
    return tmp_path


def test_every_difference_is_held() -> None:
    found = run("--check")
    assert found.returncode == 0, found.stderr


def test_the_page_tells_them(copy: Path) -> None:
    page = (copy / "docs/user/differences.md").read_text()
    assert "### A name\n\n- **Here:** this\n- **Triton:** that\n- **Why:** why\n- **Source:** RFC 1\n- **Seen by:** clients\n" in page
    assert "- **Held by:** `test_one.py::test_it`, `test_two.c::it_works`\n" in page


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (ONE.format(tests="('test_one.py::test_other',)"), "a name: there is no test test_one.py::test_other"),
        (ONE.format(tests="('test_two.c::it',)"), "a name: there is no test test_two.c::it"),
        (ONE.format(tests="('test_three.py::test_it',)"), "a name: there is no test test_three.py::test_it"),
        (ONE.replace("'RFC 1'", "''").format(tests="()"), "a name: source is empty"),
        (ONE.replace("CLIENT", "'tester'").format(tests="()"), "a name: nobody is 'tester'"),
        (ONE.replace("'a name'", "'HEAD'").format(tests="()"), "HEAD: two differences have this name"),
        (ONE.replace("'this'", "'other'").format(tests="('test_one.py::test_it',)"), "differences.md is not what its tables say"),
    ],
)
def test_gaps_are_refused(copy: Path, difference: str, words: str) -> None:
    write(copy, difference)
    found = run("--root", copy, "--check")
    assert found.returncode == 1
    assert words in found.stderr


SOURCES = {
    "RFC 9110, 8.3.": True,
    "MR-01: models are served.": True,
    "MR-999: no such requirement.": False,
    "CVE-2025-23319.": True,
    "CVE of last year.": False,
    "CWE-22, path traversal.": True,
    "Today, http_server.cc: other words.": True,
    "TRITONBACKEND_InputBuffer: the server chooses.": True,
    "TRITONBACKEND_Nothing: the server chooses.": False,
    "gRPC over HTTP/2: a place.": True,
    "A defect of the reference: it forgets the end.": True,
    "A defect of the reference.": False,
    "The reference is wrong.": False,
    "This server.": False,
    "Another standard.": False,
}


@pytest.mark.parametrize("source", SOURCES)
def test_sources_have_a_form(copy: Path, source: str) -> None:
    """Where the server offers more than the reference a source may say what it likes."""
    write(copy, ONE.replace("RFC 1", source).format(tests="('test_one.py::test_it',)"))
    found = run("--root", copy)
    assert ("a name: " in found.stderr) == (not SOURCES[source]), found.stderr
    if source == "This server.":
        write(copy, ONE.replace("RFC 1", source).replace("kinds.ABI", "kinds.MORE").format(tests="('test_one.py::test_it',)"))
        assert run("--root", copy).returncode == 0


def test_more_kinds_than_a_page_may_have(copy: Path) -> None:
    write_kinds(copy, "KINDS = tuple", "".join(f"MORE_{i} = Kind('kind {i}', 'a cause', 'RFC 1')\n" for i in range(16)) + "KINDS = tuple")
    found = run("--root", copy, "--check")
    assert found.returncode == 1
    assert "kinds of difference, at most 15 are allowed" in found.stderr


@pytest.mark.parametrize("of", ["('a kind', '', 'RFC 1')", "('a kind', 'a cause', '')"])
def test_kinds_without_cause_or_source(copy: Path, of: str) -> None:
    write_kinds(copy, "KINDS = tuple", f"ANOTHER = Kind{of}\nKINDS = tuple")
    found = run("--root", copy, "--check")
    assert found.returncode == 1
    assert f"a kind: {'cause' if of.count('a cause') == 0 else 'source'} is empty" in found.stderr


def test_kinds_of_nothing(copy: Path) -> None:
    path = copy / "tests/41_compare/held.py"
    path.write_text(path.read_text().replace("for kind in kinds.KINDS", "for kind in kinds.KINDS if kind is not kinds.WAITS"))
    found = run("--root", copy, "--check")
    assert found.returncode == 1
    assert "what waits without end: no difference is of this kind" in found.stderr
