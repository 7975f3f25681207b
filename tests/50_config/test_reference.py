"""Configurations of identity models, asked of the reference too: what it fills in, what it refuses, and with which words."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from config_cases import ACCEPTED, CASES, OURS_ACCEPTS, OURS_REFUSES, REFUSED
from config_tools import Answer, ask
from harness.repository import Repository
from harness.servers import Reference

# The reference fills these in while it loads the parts of an ensemble; or it is too old to know the field.
ONLY_THEIRS = {("ensemble", ".model_transaction_policy")}
ONLY_OURS = {("ensemble", ".ensemble_scheduling.max_inflight_requests"), ("policy_empty", ".version_policy.latest")}
# The reference leaves these 64-bit integers as strings.
STRINGS_THERE = {("optimized", f".optimization.cuda.graph_spec[0].input.i.dim[{i}]") for i in (0, 1)}
# Refused by both, in words of our own: ours say where in the text, or the reference finds it only while running.
OTHER_WORDS = {
    "bad_text": "expected a field of ModelConfig, found 'max_batch'",
    "bad_two_schedulers": "expected only one of 'dynamic_batching' and 'sequence_batching', found both",
    "bad_group_gpu_id": "specifies invalid or unsupported gpu id 0",
    "bad_warm_input": "warmup setting expects input 'INPUT0' to have input_data_type set",
    "bad_warm_dims": "warmup setting expects all variable-size dimensions are specified for input 'INPUT0'",
}

pytestmark = pytest.mark.reference


@pytest.fixture(scope="module")
def ours() -> dict[str, Answer]:
    answers = ask([("m", f"{name}\n\n{text}".encode()) for name, text in CASES.items()])
    return dict(zip(CASES, answers, strict=True))


class Theirs:
    """The reference's answers: the configuration of each model that it serves, and its log."""

    def __init__(self, folder: Path, strict: bool):
        repository = Repository(folder / "models")
        for name, text in CASES.items():
            repository.model(name, text)
        options = {"exit-on-error": "false", "strict-readiness": "false", "strict-model-config": str(strict).lower()}
        self.configs: dict[str, dict[str, object]] = {}
        with Reference(repository.path, options) as server:
            for name in CASES:
                try:
                    with urllib.request.urlopen(f"http://{server.http}/v2/models/{name}/config", timeout=120) as reply:
                        self.configs[name] = json.load(reply)
                except urllib.error.HTTPError as error:
                    error.close()
            self.log = server.process.log()


@pytest.fixture(scope="module")
def completing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    yield Theirs(tmp_path_factory.mktemp("completing"), strict=False)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    yield Theirs(tmp_path_factory.mktemp("strict"), strict=True)


def _differences(name: str, ours: object, theirs: object, excused: set[tuple[str, str]], path: str = "") -> Iterator[str]:
    """excused: takes the wanted differences that are there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            here = f"{path}.{key}"
            if (name, here) in (ONLY_OURS if key in ours else ONLY_THEIRS) and (key in ours) != (key in theirs):
                excused.add((name, here))
                continue
            if key in ours and key in theirs:
                yield from _differences(name, ours[key], theirs[key], excused, here)
            else:
                yield f"{name}{here}: only {'ours' if key in ours else 'theirs'}"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(name, a, b, excused, f"{path}[{index}]")
    elif (name, path) in STRINGS_THERE:
        excused.add((name, path))
        if str(ours) != theirs:
            yield f"{name}{path}: ours {ours!r}, theirs {theirs!r}"
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield f"{name}{path}: ours {ours!r}, theirs {theirs!r}"


@pytest.mark.parametrize("name", ACCEPTED)
def test_same_configuration(ours: dict[str, Answer], completing: Theirs, name: str) -> None:
    """Both accept it, and show it with the same values for what it leaves out."""
    assert ours[name].accepted, ours[name].error
    assert name in completing.configs
    excused = set[tuple[str, str]]()
    assert list(_differences(name, json.loads(ours[name].data), completing.configs[name], excused)) == []
    wanted = {each for each in ONLY_OURS | ONLY_THEIRS | STRINGS_THERE if each[0] == name}
    assert excused == wanted, "what differs no more is no difference"


def _said(error: str, *logs: Theirs) -> bool:
    return any(re.search(rf"(?m){re.escape(error)}(?!\w)", each.log) for each in logs)


@pytest.mark.parametrize("name", REFUSED)
def test_same_words(ours: dict[str, Answer], completing: Theirs, strict: Theirs, name: str) -> None:
    """Neither accepts it, for the same reason. The reference checks inputs and outputs itself only when no backend may complete them: it
    is asked with and without."""
    error = ours[name].error
    assert name not in completing.configs
    if name in OTHER_WORDS:
        assert OTHER_WORDS[name] in error
        assert not _said(error, completing, strict), "the reference says the same"
    else:
        assert _said(error, completing, strict), error


@pytest.mark.parametrize("name", OURS_ACCEPTS)
def test_accepted_by_ours_alone(ours: dict[str, Answer], completing: Theirs, name: str) -> None:
    assert ours[name].accepted, ours[name].error
    assert name not in completing.configs


@pytest.mark.parametrize("name", OURS_REFUSES)
def test_accepted_by_the_reference_alone(ours: dict[str, Answer], completing: Theirs, name: str) -> None:
    assert not ours[name].accepted
    assert name in completing.configs


def test_every_difference_is_of_a_case() -> None:
    """What is excused is excused to a configuration that is asked about."""
    assert {name for name, _ in ONLY_OURS | ONLY_THEIRS | STRINGS_THERE} <= set(ACCEPTED)
    assert set(OTHER_WORDS) <= set(REFUSED)
