"""Over two hundred configurations made by chance, served by both: the same configuration, metadata and index, field by field."""

from pathlib import Path

import pytest
from generated import configurations
from harness.compare import differences
from harness.repository import Repository
from harness.servers import KINDS
from reading import Answers, read

CASES = configurations()

pytestmark = pytest.mark.reference


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answers, Answers]:
    repository = Repository(tmp_path_factory.mktemp("generated") / "models")
    for name, text in CASES.items():
        repository.model(name, text, versions=(1, 3) if "versions: [ 1, 3 ]" in text else (1,))
    options = {"exit-on-error": "false", "strict-readiness": "false"}
    found = []
    for kind in ("nereid", "reference"):
        with KINDS[kind](repository.path, options, ready_within=200) as server:
            found.append(read(server, CASES))
    return found[0], found[1]


def test_valid_ones(answers: tuple[Answers, Answers]) -> None:
    """RX-17, RX-18, RX-19."""
    ours, theirs = answers
    served = [name for name in CASES if "error" not in theirs[name]["config"]]
    assert len(served) > 170
    wrong = [f"{name}: {line}" for name in served for line in differences(ours[name], theirs[name])]
    assert not wrong, "\n".join(wrong)


def test_broken_ones(answers: tuple[Answers, Answers]) -> None:
    """RX-20: Neither serves them. Where the reference forgets a model whose configuration it cannot read, ours tells the reason."""
    ours, theirs = answers
    broken = [name for name in CASES if "error" in theirs[name]["config"]]
    assert len(broken) > 35
    for name in broken:
        assert "error" in ours[name]["config"] and "error" in ours[name]["metadata"], name
        assert all(row["state"] == "UNAVAILABLE" and row["reason"] for row in ours[name]["index"]), name
        assert ours[name]["index"], name
        if any("reason" in row for row in theirs[name]["index"]):
            wrong = differences(ours[name]["index"], theirs[name]["index"])
            assert not [line for line in wrong if "warmup setting" not in line], f"{name}: {wrong}"
