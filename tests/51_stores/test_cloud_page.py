"""The page on repositories in the cloud names every variable of the environment that is read, and no other."""

import re

from harness import paths

NAME = re.compile(r"\b(?:AWS|AZURE|GCE|GOOGLE|IDENTITY|NEREID|SSL|STORAGE|TRITON|XDG)_[A-Z0-9_]+[A-Z0-9]\b")
NOT_VARIABLES = {"NEREID_CLOUD"}


def test_variables() -> None:
    sources = "".join(path.read_text() for path in (paths.ROOT / "src" / "cloud").rglob("*.c"))
    read = {name for text in re.findall(r'"([A-Z0-9_]+)"', sources) for name in NAME.findall(text)}
    page = (paths.ROOT / "docs" / "user" / "cloud-repositories.md").read_text()
    assert set(NAME.findall(page)) - NOT_VARIABLES == read
