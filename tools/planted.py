"""Reads tests/mutants.list: bugs written by hand. Each entry says how to plant the bug, and which tests must notice it.

    NAME: the damage for an operator or a client
      in FILE
      -TEXT     the lines to replace; FILE must contain them exactly once
      +TEXT     the lines with the bug; without any, the lines are removed
      in FILE   another place of the same bug; any number of places
      -TEXT
      +TEXT
      by TEST   a C test ("00_unit.test_x") or a Python test ("tests/40_e2e/test_x.py::test_y"); any number of tests
"""

from dataclasses import dataclass, field
from pathlib import Path

LIST = Path("tests") / "mutants.list"


@dataclass
class Place:
    path: Path  # relative to the root
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def put_into(self, text: str) -> str:
        return text.replace(lines_of(self.old), lines_of(self.new))


@dataclass
class Planted:
    name: str
    places: list[Place] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)


def lines_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def read(root: Path) -> list[Planted]:
    found: list[Planted] = []
    for line in (root / LIST).read_text().splitlines():
        word = line.strip().partition(" ")
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            found.append(Planted(line.partition(":")[0]))
        elif line.startswith("  -"):
            found[-1].places[-1].old.append(line[3:])
        elif line.startswith("  +"):
            found[-1].places[-1].new.append(line[3:])
        elif word[0] == "in":
            found[-1].places.append(Place(Path(word[2])))
        elif word[0] == "by":
            found[-1].tests.append(word[2])
        else:
            raise ValueError(f"{LIST}: {found[-1].name}: {line!r} is none of 'in', '-', '+' and 'by'")
    return found


def is_there(root: Path, test: str) -> bool:
    """True if the tree has a test of that name."""
    if not test.startswith("tests/"):
        return (root / "tests" / test.replace(".", "/", 1)).with_suffix(".c").is_file()
    path, _, function = test.partition("::")
    return (root / path).is_file() and (not function or f"def {function.partition('[')[0]}(" in (root / path).read_text())


def problems(root: Path) -> list[str]:
    """Mistakes of the list: reasons why a bug cannot be planted, or why no test can notice it."""
    all_of_them = read(root)
    names = [planted.name for planted in all_of_them]
    found = [f"{name} is in the list more than once" for name in set(names) if names.count(name) > 1]
    for planted in all_of_them:
        for place in planted.places:
            times = (root / place.path).read_text().count(lines_of(place.old)) if (root / place.path).is_file() else 0
            if not place.old or times != 1:
                found.append(f"{planted.name}: expected its text in {place.path} once, found it {times} times: the code has changed, so has the bug")
        if not planted.places:
            found.append(f"{planted.name}: nothing says where it is planted")
        if not planted.tests:
            found.append(f"{planted.name}: no test is named that notices it")
        found += [f"{planted.name}: there is no test {test}" for test in planted.tests if not is_there(root, test)]
    return found
