"""Each promise with an amount names the test that holds it, and the bound in that test."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "promises.py"
HEAD = "| promise | stands in | held by | bound |\n|---|---|---|---|\n"
ROW = "| it ends soon | `docs/user/a.md` \"within 3 seconds\" | `tests/test_one.py::test_it` `tests/test_two.c::it_works` | `took < 3` |\n"


def run(root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("docs/user", "docs/internals", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "README.md").write_text("A server.\n\n    wait 5 minutes\n")
    (tmp_path / "docs/user/a.md").write_text("# A\n\nIt ends within 3\nseconds.\nIt ends within 3 seconds.\n")
    (tmp_path / "tests/test_one.py").write_text("def test_it() -> None:\n    assert took < 3\n")
    (tmp_path / "tests/test_two.c").write_text("static void it_works(void **state)\n{\n    work();\n}\n")
    (tmp_path / "docs/internals/promises.md").write_text(HEAD + ROW)
    assert run(tmp_path).returncode == 0, run(tmp_path).stdout
    return tmp_path


def test_every_promise_is_held() -> None:
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("::test_it", "::test_other", "it ends soon: there is no test tests/test_one.py::test_other"),
        ("::it_works", "::it", "there is no test tests/test_two.c::it"),
        ("took < 3", "took < 2", "none of its tests has the bound 'took < 2'"),
        ("`took < 3`", "soon", "it ends soon: no bound"),
        ("within 3 seconds", "within 2 seconds", "docs/user/a.md does not say 'within 2 seconds'"),
        (ROW, "", "docs/user/a.md: no row quotes this line with an amount: It ends within 3 seconds."),
        ("`tests/test_one.py::test_it` `tests/test_two.c::it_works`", "", "no test, and not said that it is not held"),
    ],
)
def test_what_is_missing_is_told(tree: Path, old: str, new: str, words: str) -> None:
    page = tree / "docs/internals/promises.md"
    page.write_text((HEAD + ROW).replace(old, new, 1))
    done = run(tree)
    assert done.returncode == 1
    assert words in done.stdout


@pytest.mark.parametrize("looser", ["took < 30", "took < 3.5", "took < 3 * 50", "took < 3 + SLACK", "took < 3 << 2", "overtook < 3"])
def test_a_looser_bound_is_told(tree: Path, looser: str) -> None:
    test = tree / "tests/test_one.py"
    test.write_text(test.read_text().replace("took < 3", looser))
    assert "none of its tests has the bound 'took < 3'" in run(tree).stdout


@pytest.mark.parametrize("looser", ["LIMIT = 30", "LIMIT = 3 * 50", "LIMIT = 3 if QUICK else 50", "THE_LIMIT = 3"])
def test_a_looser_constant_is_told(tree: Path, looser: str) -> None:
    page, test = tree / "docs/internals/promises.md", tree / "tests/test_one.py"
    page.write_text((HEAD + ROW).replace("took < 3", "LIMIT = 3"))
    code = "LIMIT = 3\n\n\ndef test_it() -> None:\n    assert took < LIMIT\n"
    test.write_text(code)
    assert run(tree).returncode == 0, run(tree).stdout
    test.write_text(code.replace("LIMIT = 3", looser))
    assert "none of its tests has the bound 'LIMIT = 3'" in run(tree).stdout


PYTHON_HELD = """\
LIMIT = 3
BOUND = LIMIT
WAYS = [BOUND]


@mark("soon", 4)
def test_it() -> None:
    '''As told: took < 5.'''
    assert took < LIMIT  # took < 6
    assert kept in WAYS


def test_other() -> None:
    assert took < 7
"""
C_HELD = """\
#define LIMIT \\
    3
#define OTHER 4

/* took < 5 */
static void it_works(void **state)
{
    assert_true(took < LIMIT /* took < 6 */);
}

static void other(void **state)
{
    assert_true(took < 7);
}
"""


@pytest.mark.parametrize("bound", ["took < LIMIT", "LIMIT = 3", "BOUND = LIMIT", 'mark("soon", 4)', "#define LIMIT \\ 3", "assert_true(took < LIMIT"])
def test_a_bound_stands_in_the_test(tree: Path, bound: str) -> None:
    """Or in a constant that it names, by another one too."""
    (tree / "tests/test_one.py").write_text(PYTHON_HELD)
    (tree / "tests/test_two.c").write_text(C_HELD)
    (tree / "docs/internals/promises.md").write_text(HEAD + ROW.replace("took < 3", bound))
    done = run(tree)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("bound", ["took < 5", "took < 6", "took < 7", "OTHER 4"])
def test_a_bound_elsewhere_is_none(tree: Path, bound: str) -> None:
    """In a comment, in a docstring, in another test, in a constant that it does not name."""
    test_a_bound_stands_in_the_test(tree, "took < LIMIT")
    (tree / "docs/internals/promises.md").write_text(HEAD + ROW.replace("took < 3", bound))
    done = run(tree)
    assert done.returncode == 1
    assert f"none of its tests has the bound '{bound}'" in done.stdout


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        ("`tests/test_one.py::test_it` `tests/test_two.c::it_works`", ""),
        ("`tests/test_one.py::test_other`", "docs/internals/b.md: holes: there is no test tests/test_one.py::test_other"),
        ("somebody looked", "docs/internals/b.md: holes: shown by no test"),
    ],
)
def test_what_is_shown_is_shown_by_tests(tree: Path, tests: str, words: str) -> None:
    (tree / "docs/internals/b.md").write_text(f"| class | why | shown by |\n|---|---|---|\n| holes | none | {tests} |\n")
    done = run(tree)
    assert done.returncode == (1 if words else 0), done.stdout
    assert words in done.stdout


def test_what_is_said_not_to_be_held_needs_no_test(tree: Path) -> None:
    page = tree / "docs/internals/promises.md"
    page.write_text(HEAD + ROW.replace("`tests/test_one.py::test_it` `tests/test_two.c::it_works` | `took < 3`", "not held: 4 seconds were measured | "))
    assert run(tree).returncode == 0
