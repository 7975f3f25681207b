"""Every requirement has a test that names it, or a reason why nothing serves it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "requirements.py"


def run(*options: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *map(str, options)], capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A small tree of its own."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tests" / "40_e2e").mkdir(parents=True)
    (tmp_path / "docs" / "internals").mkdir(parents=True)
    listed = "# words\nMR 1-4 places\nX 1-2 slips\n- MR-03: nobody has it\n"
    (tmp_path / "tools" / "requirements.list").write_text(listed)
    test = tmp_path / "tests" / "40_e2e" / "test_one.py"
    test.write_text('"""MR-01 to MR-02, MR-04."""\n# X-01..X-02\n')
    assert run("--root", tmp_path).returncode == 0
    assert run("--root", tmp_path, "--check").returncode == 0
    return tmp_path


def test_every_requirement_has_a_test() -> None:
    found = run("--check")
    assert found.returncode == 0, found.stderr


def test_the_page_tells_which(copy: Path) -> None:
    page = (copy / "docs" / "internals" / "requirements.md").read_text()
    assert "| MR-02 | `40_e2e/test_one.py` |" in page
    assert "| nobody has it | MR-03 |" in page
    assert "6 requirements, 5 with a test." in page


@pytest.mark.parametrize(
    ("test", "listed", "words"),
    [
        ('"""MR-01, MR-04, X-01, X-02."""', "", "MR-02: no test names it"),
        ('"""MR-01 to MR-04, X-01 to X-03."""', "", "X-03: 40_e2e/test_one.py names it"),
        ("", "MR four\n", "requirements.list:5: cannot read 'MR four'"),
        ("", "- MR-09: unknown\n", "is in no section"),
        ("", "MR 4-5 again\n", "stands there twice"),
        ('"""MR-01 to MR-04, X-01, X-02."""', "", "requirements.md is not what it would be"),
    ],
)
def test_gaps_are_refused(copy: Path, test: str, listed: str, words: str) -> None:
    if test:
        (copy / "tests" / "40_e2e" / "test_one.py").write_text(test)
    with (copy / "tools" / "requirements.list").open("a") as file:
        file.write(listed)
    found = run("--root", copy, "--check")
    assert found.returncode == 1
    assert words in found.stderr


def test_what_stands_in_a_gate_proves_nothing(copy: Path) -> None:
    shutil.copytree(copy / "tests" / "40_e2e", copy / "tests" / "00_gates")
    (copy / "tests" / "40_e2e" / "test_one.py").write_text("")
    assert "MR-01: no test names it" in run("--root", copy, "--check").stderr
