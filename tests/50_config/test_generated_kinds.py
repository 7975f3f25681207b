"""Configurations made by chance of ONNX models, Python models and ensembles, served by both: the same configuration, metadata and index,
field by field; what one refuses the other refuses."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import generated_kinds
import pytest
from generated_kinds import Made
from harness import paths
from harness.compare import differences
from harness.servers import KINDS, WITH_NUMPY
from reading import Answers, read

FAMILIES = {"onnx": generated_kinds.onnx(), "python": generated_kinds.python(), "ensembles": generated_kinds.ensembles()}
LEAST_SERVED = {"onnx": 36, "python": 16, "ensembles": 30}
LEAST_REFUSED = {"onnx": 8, "python": 8, "ensembles": 10}
OPTIONS = {"exit-on-error": "false", "strict-readiness": "false"}

pytestmark = [pytest.mark.reference, pytest.mark.onnx]


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Of each server: all that were built, and the reference's python backend."""
    subprocess.run([paths.ROOT / "tools" / "python_backend.sh"], check=True)
    root = tmp_path_factory.mktemp("backends")

    def of(kind: str) -> Path:
        (root / kind).mkdir()
        for backend in paths.backends(reference=kind == "reference").iterdir():
            if backend.name != "python":
                (root / kind / backend.name).symlink_to(backend)
        (root / kind / "python").symlink_to(paths.ROOT / "build/python-backend" / {"nereid": "served"}.get(kind, kind) / "python")
        return root / kind

    return of


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, backends: Callable[[str], Path]) -> tuple[Answers, Answers]:
    made: dict[str, Made] = {name: each for family in FAMILIES.values() for name, each in family.items()}
    repository = generated_kinds.write(tmp_path_factory.mktemp("generated") / "models", made)
    generated_kinds.step_models(repository)
    found = []
    for kind in KINDS:
        folder = str(backends(kind))  # which what a Python model raised is told with
        with KINDS[kind](repository.path, OPTIONS | {"backend-directory": folder}, WITH_NUMPY, ready_within=300) as server:
            found.append(json.loads(json.dumps(read(server, made)).replace(folder, "BACKENDS")))
    return found[0], found[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_valid_ones(answers: tuple[Answers, Answers], family: str) -> None:
    ours, theirs = answers
    for each in ours.values():  # a field that the reference of this version does not know
        assert each["config"].get("ensemble_scheduling", {}).pop("max_inflight_requests", 0) == 0
    served = [name for name in FAMILIES[family] if "error" not in theirs[name]["config"]]
    assert len(served) >= LEAST_SERVED[family]
    wrong = [f"{name}: {line}" for name in served for line in differences(ours[name], theirs[name])]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("family", FAMILIES)
def test_broken_ones(answers: tuple[Answers, Answers], family: str) -> None:
    """RX-20: Neither serves them; ours tells the reason, and in the reference's words where that tells one."""
    ours, theirs = answers
    broken = [name for name in FAMILIES[family] if "error" in theirs[name]["config"]]
    assert len(broken) >= LEAST_REFUSED[family]
    wrong = []
    for name in broken:
        assert "error" in ours[name]["config"] and "error" in ours[name]["metadata"], name
        assert ours[name]["index"] and all(row["state"] == "UNAVAILABLE" and row["reason"] for row in ours[name]["index"]), name
        if any("reason" in row for row in theirs[name]["index"]):
            wrong += [f"{name}: {line}" for line in differences(ours[name]["index"], theirs[name]["index"])]
    assert not wrong, "\n".join(wrong)
