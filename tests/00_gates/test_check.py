"""`make check` and the mutants: what they choose."""

import argparse
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check  # noqa: E402
import copies  # noqa: E402
import mutate  # noqa: E402
import planted  # noqa: E402
import run_tests  # noqa: E402
from mutate import Failure  # noqa: E402


def test_each_folder_has_tests_that_exist() -> None:
    places = check.read_list()
    rooms = [f"src/{path.name}" for path in (ROOT / "src").iterdir() if path.is_dir()]
    rooms += [f"{kind}/{path.name}" for kind in ("backends", "caches", "repoagents", "modules") for path in (ROOT / kind).iterdir()]
    assert [room for room in rooms if not check.tests_of([f"{room}/x.c"])] == []
    assert [test for tests in places.values() for test in tests if not (ROOT / test).exists()] == []
    assert [place for place in places if not (ROOT / place).exists()] == []
    chosen = {test for tests in places.values() for test in tests}
    assert [test for test in chosen if Path(test).parts[1] in check.LATER] == []
    assert [path.name for path in (ROOT / "tests" / "40_e2e").glob("test_*.py") if f"tests/40_e2e/{path.name}" not in chosen] == []


@pytest.mark.parametrize(
    ("names", "tests"),
    [
        (["CMakeLists.txt"], []),
        (["backends/identity_new/x.c"], ["tests/40_e2e/test_digits.py", "tests/40_e2e/test_instances.py"]),  # the longest line that fits
        (["tests/40_e2e/test_curl.py", "tests/harness/ports.py"], ["tests/40_e2e/test_curl.py", "tests/40_e2e/test_harness.py"]),
        (["tests/49_isolation/isolated.py", "tests/49_isolation/test_limits.py"], ["tests/49_isolation"]),
        (["tools/tidy.py", "tests/00_unit/test_arena.c"], ["tests/00_gates"]),
        (["tests/46_clients/test_clients.py", "tests/70_soak/work.py"], []),  # named, and left to `make test`
        (["src/http/openai/openai.c"], ["tests/40_e2e/test_openai.py", "tests/47_python/test_openai.py"]),
        (["tests/40_e2e/plugins/echo.c"], ["tests/40_e2e"]),
    ],
)
def test_a_change_chooses_tests(names: list[str], tests: list[str]) -> None:
    assert check.tests_of(names) == tests


@pytest.mark.parametrize("changed", ["tests/50_config/test_reference.py", "tests/48_caches/test_agents.py"])
def test_a_test_that_changed_is_asked_with_the_reference(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it may be marked so: left out, it would be no test. What a change elsewhere chooses does without. A whole folder may be chosen
    because of another file."""
    marks: dict[str, str] = {}
    rungs = iter(["00_gates", "30_proto", Path(changed).parts[1]])
    monkeypatch.setattr(run_tests, "pytest", lambda preset, words: marks.update({next(rungs): words}))
    chosen = changed if "50_config" in changed else "tests/48_caches"
    check.stages_for(["tests/30_proto", chosen], ["src/http/http_conn.c", changed, "caches/local/store.c"])
    assert marks == {"00_gates": run_tests.OURS, "30_proto": run_tests.OURS, Path(changed).parts[1]: ""}


def test_stages_have_names_of_their_own() -> None:
    stages = [stage.name for stage in check.stages_for(["tests/00_gates", "tests/51_stores", "tests/40_e2e"], [])]
    assert len(stages) == len(set(stages))


def test_a_file_that_moved_was_in_its_old_folder_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(check, "ROOT", tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example"]
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "x.c").write_text("int x;\n" * 50)
    for argv in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"], ["mv", "one", "two"]):
        subprocess.run([*git, *argv], cwd=tmp_path, check=True)
    assert check.changed(None) == ["one/x.c", "two/x.c"]


def test_a_base_that_git_does_not_know_is_said_so() -> None:
    with pytest.raises(SystemExit, match="nosuch.*BASE"):
        check.changed("nosuch")


SOURCE = """#include "x.h" /* a < b */
static const int limit = 3;
int x_take(struct x *x, int n)
{
    log_line("a == b");
    for (int i = 0; i < n; i++)
        x->sum += i;
    CHECK(n > 0);
    if (x->ready)
        return -n;
    return n && x->sum ? n + 2 : 1;
}
"""


def test_mutants_are_bugs_and_not_nonsense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    found = {(mutant.line, mutant.old, mutant.new) for mutant in mutate.mutants_of(Path("x.c"))}
    assert found == {
        (5, 'log_line("a == b")', ""),
        (6, "0", "1"),
        (6, "<", "<="),
        (7, "x->sum += i", ""),
        (8, ">", ">="),
        (8, "0", "1"),
        (9, "x->ready", "!(x->ready)"),
        (11, "&&", "||"),
        (11, "+", "-"),
        (11, "2", "(2 + 1)"),
        (11, "1", "0"),
    }


def test_each_planted_bug_can_be_planted() -> None:
    assert planted.problems(ROOT) == []
    assert len(planted.read(ROOT)) >= 27


LISTED = """# a comment

gone: somebody suffers
  in x.c
  -    CHECK(n > 0);
  by 00_unit.test_map

other: somebody else does
  in x.c
  -        return -n;
  -    return n && x->sum ? n + 2 : 1;
  +        return n;
  in y.c
  -int y;
  by tests/40_e2e/test_curl.py::test_x
"""


def test_bugs_that_cannot_be_planted_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    (tmp_path / "y.c").write_text("int x;\nint y;\n")
    (tmp_path / "tests" / "00_unit").mkdir(parents=True)
    (tmp_path / "tests" / "00_unit" / "test_map.c").touch()
    (tmp_path / planted.LIST).write_text(LISTED)
    gone, other = planted.read(tmp_path)
    assert gone.places[0].put_into(SOURCE) == SOURCE.replace("    CHECK(n > 0);\n", "")
    assert other.places[0].put_into(SOURCE).endswith("    if (x->ready)\n        return n;\n}\n")
    assert other.places[1].put_into("int x;\nint y;\n") == "int x;\n"
    assert planted.problems(tmp_path) == ["other: there is no test tests/40_e2e/test_curl.py::test_x"]
    (tmp_path / "x.c").write_text(SOURCE.replace("CHECK", "REQUIRE"))
    (tmp_path / "y.c").write_text("")
    told = planted.problems(tmp_path)
    assert "gone: expected its text in x.c once, found it 0 times" in told[0]
    assert "other: expected its text in y.c once, found it 0 times" in told[1]


BROKEN = Failure("No space left on device")
FAILS = Failure("1 - 00_unit.test_map (Failed)")
ENDLESS = Failure("did not end", in_time=False)
BUG = planted.Planted("gone", [planted.Place(Path("src/base/x.c"), ["    CHECK(n > 0);"])], ["00_unit.test_map"])
MUTANT = mutate.Mutant(Path("src/base/x.c"), 0, 0, "", "", 1)
Fake = Callable[[str, Failure | None, Failure | None], None]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """A tree with one source, in which builds and tests end as told: fake(what does not build, its failure, the failure of tests)."""
    (tmp_path / "src" / "base").mkdir(parents=True)
    (tmp_path / "src" / "base" / "x.c").write_text(SOURCE)
    (tmp_path / "tests" / "00_unit").mkdir(parents=True)
    (tmp_path / "tests" / "00_unit" / "test_map.c").write_text('#include "base/x.h"')
    (tmp_path / planted.LIST).write_text("gone: somebody suffers\n  in src/base/x.c\n  -    CHECK(n > 0);\n  by 00_unit.test_map\n")
    for name in ("ROOT", "TREE", "WORK"):
        monkeypatch.setattr(mutate, name, tmp_path)
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)  # where it finds C tests
    monkeypatch.setattr(mutate, "prepare", lambda preset: None)

    def set_up(target: str, unbuilt: Failure | None, asked: Failure | None) -> None:
        def is_changed() -> bool:
            return (tmp_path / "src" / "base" / "x.c").read_text() != SOURCE

        monkeypatch.setattr(mutate, "build", lambda preset, *targets: unbuilt if target in targets and is_changed() else None)
        for kind in ("ctest", "pytest"):
            monkeypatch.setattr(mutate, kind, lambda *argv, **options: asked if is_changed() else None)

    return set_up


@pytest.mark.parametrize(
    ("target", "unbuilt", "asked", "said"),
    [
        ("", None, FAILS, "caught: gone by 00_unit.test_map"),
        ("", None, ENDLESS, "caught: gone by time-out of 00_unit.test_map"),
        ("", None, None, "SURVIVED: gone, 00_unit.test_map"),
        ("nereid_base", BROKEN, FAILS, "DOES NOT BUILD: gone\nNo space left on device"),
        ("00_unit_test_map", BROKEN, FAILS, "DOES NOT BUILD: gone for 00_unit.test_map\nNo space left on device"),
    ],
)
def test_a_bug_is_caught_by_what_is_asked_alone(fake: Fake, target: str, unbuilt: Failure | None, asked: Failure | None, said: str) -> None:
    fake(target, unbuilt, asked)
    assert mutate.noticed(BUG, "dev") == said
    assert mutate.plant(argparse.Namespace(names=[], preset="dev")) == (0 if said.startswith("caught") else 1)
    with pytest.raises(SystemExit, match="no bug nosuch"):
        mutate.plant(argparse.Namespace(names=["gone", "nosuch"], preset="dev"))


def options_of(python: bool = False) -> argparse.Namespace:
    return argparse.Namespace(folder="base", file=None, count=3, minutes=1, seed=1, preset="dev", near=False, python=python)


@pytest.mark.parametrize(
    ("target", "unbuilt", "asked", "by"),
    [
        ("", None, FAILS, ["a test of its folder", "tests/50_config/test_x.py"]),
        ("", None, ENDLESS, ["time-out of a test of its folder", "time-out of tests/50_config/test_x.py"]),
        ("", None, None, [None, None]),
        ("nereid_base", BROKEN, FAILS, ["build", "tests/50_config/test_x.py"]),
        ("00_unit_test_map", BROKEN, FAILS, ["build", "tests/50_config/test_x.py"]),
        ("server", BROKEN, FAILS, ["a test of its folder", "build"]),
    ],
)
def test_a_mutant_is_caught_by_what_is_asked_alone(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, target: str, unbuilt: Failure | None, asked: Failure | None, by: list[str | None]
) -> None:
    monkeypatch.setattr(check, "tests_of", lambda names: ["tests/50_config/test_x.py"])
    fake(target, unbuilt, asked)
    assert [mutate.by_c_tests(MUTANT, "dev", False), mutate.by_python_tests(MUTANT, "dev")] == by
    assert mutate.mutate(options_of()) == (1 if by[0] == "build" else 0)


@pytest.mark.parametrize("kind", ["ctest", "pytest"])
def test_what_fails_on_the_tree_as_it_is_catches_nothing(fake: Fake, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    fake("", None, None)
    monkeypatch.setattr(mutate, kind, lambda *argv, **options: FAILS)
    with pytest.raises(SystemExit, match="without any bug"):
        mutate.mutate(options_of(python=True))


def test_a_copy_has_what_the_original_prepared_and_builds_for_itself(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "tree"
    for name in ("deps", "stores", "clients", "deploy", "models-pytorch", "release", "dev", "mutate", "test-logs"):
        (root / "build" / name).mkdir(parents=True)
    (root / "CMakePresets.json").write_text((ROOT / "CMakePresets.json").read_text())
    prepared = {"deps", "stores", "clients", "deploy", "models-pytorch"}
    for besides in ({"release"}, set(), {"release"}):
        copies.share_build(root, tree, besides)
        links = {path.name for path in (tree / "build").iterdir() if path.is_symlink()}
        assert links == prepared | besides
        if not besides:
            (tree / "build" / "release").mkdir()  # as with --preset release
    assert not list((root / "build" / "release").iterdir())


def test_a_limit_waits_for_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate.os, "cpu_count", lambda: 2)
    for load, limit in ((0.5, 45), (2, 45), (26, 585)):
        monkeypatch.setattr(mutate.os, "getloadavg", lambda load=load: (load, 0, 0))
        assert mutate.patience(45) == limit


def test_each_folder_has_a_build_target() -> None:
    """Those of runtimes that may be missing are left out."""
    kinds = ("src", "caches", "repoagents", "modules", "bindings", "backends/common", "backends/identity", "backends/python")
    files = [path.relative_to(ROOT) for kind in kinds for path in (ROOT / kind).rglob("*.c")]
    known = set(re.findall(r"^build (\w+): phony", (ROOT / "build" / "release" / "build.ninja").read_text(), re.MULTILINE))
    places = [place.path for bug in planted.read(ROOT) for place in bug.places]
    assert {mutate.library_of(path) for path in files} - known == set()
    assert all(mutate.library_of(path) for path in places)

