"""Every requirement has a test function that claims it, or a reason why none does."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "requirements.py"

LISTED = """\
# words
[MR: places]
MR-01 here
MR-02 there
MR-03 nowhere
MR-04 hinted at
MR-05 turned away
MR-06 in a case
MR-07 in another file
[X: slips]
X-01 a slip
X-02 more of them
- MR-03: nobody has it
- MR-04 MR-05: too large
"""
PYTHON = '''\
"""A file."""


def test_one() -> None:
    """MR-01; reads MR-04; refuses
    MR-05: shown."""


def test_two() -> None:
    """No claim."""
'''
CASES = """\
from table import MORE as OTHERS

CASES = {"first": claims("MR-06", 1), "second": 2}
CASES |= {"third": claims("X-02; reads MR-04", 3)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("other", OTHERS)
def test_each(name: str, other: str) -> None:
    pass
"""
TABLE = """\
MORE: dict[str, str] = {"bool": "MR-07"}
"""
C = """\
/* A file. */
#include "support/unit.h"

/* MR-02,
 * X-01. */
static void two(void **state)
{
    (void)state;
}

UNIT_MAIN(UNIT(two))
"""


def run(*options: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *map(str, options)], capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A small tree of its own."""
    for folder in ("tools", "tests/40_e2e", "docs/internals"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tools" / "requirements.list").write_text(LISTED)
    (tmp_path / "tests" / "40_e2e" / "test_one.py").write_text(PYTHON)
    (tmp_path / "tests" / "40_e2e" / "test_two.c").write_text(C)
    (tmp_path / "tests" / "40_e2e" / "test_cases.py").write_text(CASES)
    (tmp_path / "tests" / "40_e2e" / "table.py").write_text(TABLE)
    assert run("--root", tmp_path).returncode == 0
    found = run("--root", tmp_path, "--check")
    assert found.returncode == 0, found.stderr
    return tmp_path


def test_every_requirement_has_a_test() -> None:
    found = run("--check")
    assert found.returncode == 0, found.stderr


def test_the_page_tells_which(copy: Path) -> None:
    page = (copy / "docs" / "internals" / "requirements.md").read_text()
    for line in (
        "| requirements | 7 | 4 | 1 | 1 | 1 |",
        "| X | 2 | 2 | 0 | 0 | 0 |",
        "| MR-01 | here | `40_e2e/test_one.py::test_one` |",
        "| MR-02 | there | `40_e2e/test_two.c::two` |",
        "| MR-03 | nowhere | **not served** |",
        "| MR-04 | hinted at | **read only** `40_e2e/test_cases.py::test_each[third]`, `40_e2e/test_one.py::test_one` |",
        "| MR-05 | turned away | **refused** `40_e2e/test_one.py::test_one` |",
        "| MR-06 | in a case | `40_e2e/test_cases.py::test_each[first]` |",
        "| MR-07 | in another file | `40_e2e/test_cases.py::test_each[bool]` |",
        "| X-02 | more of them | `40_e2e/test_cases.py::test_each[third]` |",
        "| nobody has it |  |  | MR-03 |",
        "| too large | MR-05 | MR-04 |  |",
    ):
        assert line in page.splitlines()


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("tests/40_e2e/test_two.c", "/* MR-02,\n * X-01. */", "/* X-01. */", "MR-02: no test proves it"),
        ("tests/40_e2e/test_one.py", "MR-01; reads", "reads MR-01,", "MR-01: no test proves it"),
        ("tests/40_e2e/test_one.py", "MR-01;", "MR-01, MR-03;", "MR-03: 40_e2e/test_one.py::test_one proves it, and"),
        ("tests/40_e2e/test_one.py", "refuses\n", "refuses MR-01,\n", "MR-01: 40_e2e/test_one.py::test_one refuses it, and"),
        ("tests/40_e2e/test_one.py", "MR-01;", "MR-01, X-03;", "X-03: 40_e2e/test_one.py::test_one names it"),
        ("tests/40_e2e/test_one.py", "MR-01; reads", "MR-01 to MR-02; reads", "test_one.py:5: 'MR-01 to MR-02' is a range"),
        ("tests/40_e2e/test_two.c", "MR-02,", "MR-02..MR-03,", "test_two.c:4: 'MR-02..MR-03' is a range"),
        ("tests/40_e2e/test_one.py", "A file.", "A file of MR-01.", "test_one.py:1: MR-01 is named, but not where"),
        ("tests/40_e2e/test_one.py", "shown.", "shown, as MR-02 is.", "test_one.py:6: MR-02 is named, but not where"),
        ("tests/40_e2e/test_one.py", "MR-01; reads", "MR-01 and more; reads", "test_one.py:5: MR-01 is named, but not where"),
        ("tests/40_e2e/test_one.py", "test_one()", "help_one()", "test_one.py:5: MR-01 is named, but not where"),
        ("tests/40_e2e/test_one.py", "def test_one", "class Cases:\n  def test_one", "test_one.py:6: MR-01 is named, but not where"),
        (
            "tests/40_e2e/test_one.py", '"""No claim."""', "'No claim.'\n\n\ndef other() -> None:\n    \"\"\"MR-06.\"\"\"",
            "test_one.py:14: MR-06 is named, but not where",
        ),
        ("tests/40_e2e/test_two.c", "UNIT(two)", "UNIT(other)", "test_two.c:4: MR-02 is named, but not where"),
        ("tests/40_e2e/test_two.c", "X-01. */\n", "X-01. */\n\n", "test_two.c:4: MR-02 is named, but not where"),
        ("tests/40_e2e/test_two.c", "UNIT(two)", "/* UNIT(two) */", "test_two.c:4: MR-02 is named, but not where"),
        ("tests/40_e2e/test_cases.py", '"first": claims("MR-06", 1), ', "", "MR-06: no test proves it"),
        ("tests/40_e2e/test_cases.py", '"name", CASES', '"name", list(CASES)[:1]', "test_cases.py:3: MR-06 is named, but not where"),
        ("tests/40_e2e/test_cases.py", 'claims("MR-06", 1)', 'claims("MR-06 and so on", 1)', "MR-06: no test proves it"),
        ("tests/40_e2e/test_cases.py", 'claims("MR-06", 1)', 'claims(1, "MR-06")', "MR-06: no test proves it"),
        ("tests/40_e2e/test_cases.py", "def test_each", "def each", "MR-06: no test proves it"),
        ("tests/40_e2e/test_cases.py", "from table", "from other", "table.py:1: MR-07 is named, but not where"),
        ("tests/40_e2e/table.py", "MR-07", "MR-08", "MR-08: 40_e2e/test_cases.py::test_each[bool] names it"),
        (
            "tests/40_e2e/test_one.py", "MR-01;", ", ".join(["MR-01"] * 11) + ";",
            "40_e2e/test_one.py::test_one claims 13 ids, at most 12 may be",
        ),
        (
            "tests/40_e2e/test_cases.py", '"X-02;', '"' + ", ".join(["X-02"] * 12) + ";",
            "40_e2e/test_cases.py::test_each[third] claims 13 ids, at most 12 may be",
        ),
        ("tools/requirements.list", "MR-02 there", "MR four", "requirements.list:4: cannot read 'MR four'"),
        ("tools/requirements.list", "- MR-03:", "- MR-09:", "MR-09 has a reason and no wording"),
        ("tools/requirements.list", "MR-02 there", "MR-01 there", "requirements.list:4: cannot read 'MR-01 there', or it stands there twice"),
        ("tools/requirements.list", "- MR-04 MR-05:", "- MR-03 MR-04 MR-05:", "or it stands there twice"),
        ("tools/requirements.list", "there", "somewhere", "requirements.md is not what it would be"),
    ],
)
def test_gaps_are_refused(copy: Path, file: str, old: str, new: str, words: str) -> None:
    text = (copy / file).read_text()
    assert old in text
    (copy / file).write_text(text.replace(old, new))
    found = run("--root", copy, "--check")
    assert found.returncode == 1
    assert words in found.stderr


def test_as_many_as_may_be(copy: Path) -> None:
    file = copy / "tests" / "40_e2e" / "test_one.py"
    file.write_text(file.read_text().replace("MR-01;", ", ".join(["MR-01"] * 10) + ";"))
    assert "claims" not in run("--root", copy, "--check").stderr


def test_what_stands_in_a_gate_proves_nothing(copy: Path) -> None:
    shutil.copytree(copy / "tests" / "40_e2e", copy / "tests" / "00_gates")
    (copy / "tests" / "40_e2e" / "test_one.py").write_text("")
    assert "MR-01: no test proves it" in run("--root", copy, "--check").stderr


def test_the_files_of_the_comparison_may_cite(copy: Path) -> None:
    (copy / "tests" / "41_compare").mkdir()
    (copy / "tests" / "41_compare" / "kinds.py").write_text('WHY = "MR-01: as it is said there"\n')
    assert run("--root", copy, "--check").returncode == 0
