"""Both servers are asked the same; every difference that a client could see, and that is none of the wanted ones, is a failure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import adjust
import corner_questions
import excuses
import generate_questions
import grpc_questions
import header_questions
import http_questions
import infer_questions
import kinds
import known
import pytest
import region_questions
import route_questions
import value_questions
from harness import rawhttp
from harness.compare import Answer, Question, adjusted, differences
from harness.servers import Nereid, Server

MODULES = (http_questions, grpc_questions, infer_questions, value_questions, route_questions, corner_questions, header_questions,
           region_questions, generate_questions)
GROUPS = {group: asked for module in MODULES for group, asked in module.GROUPS.items()}
QUESTIONS = {f"{group}: {question.name}": question for group, asked in GROUPS.items() for question in asked}


@dataclass
class Compared:
    """shown: the wanted differences that it shows. ours, theirs: what each answer comes to, apart from names and numbers."""

    found: list[str]
    shown: set[str]
    ours: str
    theirs: str


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(value[key]) for key in sorted(value)}
    return [_shape(value[0])] if isinstance(value, list) and value else type(value).__name__


def _outcome(question: Question, answer: Answer) -> str:
    text = re.sub(r"'[^']*'|\[[^]]*\]|\d+", "_", known.summary(answer)[3:])
    meaning = "" if text else str(_shape(answer.get("body", answer.get("message"))))
    return f"{type(question).__name__} {known.summary(answer)[:3]}{text} {meaning}{' binary' * ('binary' in answer)}"


def _known(name: str, expected: known.Known, ours: Answer, theirs: Answer) -> list[str]:
    contents = [{**answer, "wire": None} for answer in (ours, theirs)]
    if known.summary(ours) == known.summary(theirs) and not differences(*contents):
        return [f"{name}: the reference answers as we do, strike it from the known differences"]
    asked = ((expected.ours, ours, "ours"), (expected.theirs, theirs, "the reference"))
    return [f"{who}: {known.summary(got)}" for want, got, who in asked if not re.fullmatch(want, known.summary(got), re.DOTALL)]


def _head(wire: dict[str, Any]) -> dict[str, Any]:
    """What an adjusted answer is still compared in."""
    blocks = [[each for each in block if each[0] != "grpc-message"] if isinstance(block, list) else block for block in wire["headers"]]
    return {"reason": wire.get("reason"), "headers": blocks}


def _compare(name: str, ours: Answer, theirs: Answer) -> tuple[list[str], set[str]]:
    """What differs for no reason, and the wanted differences that the rest is of."""
    if expected := known.known(name):
        return _known(name, expected, ours, theirs), {expected.difference.name}
    change = QUESTIONS[name].adjust
    shown: set[str] = set()
    if change:
        before = differences(*({**each, "wire": None} for each in (ours, theirs)))
        shown |= {each.name for each in adjust.DIFFERENCES_OF[change]} if before else set()
        for each in (ours, theirs):
            adjusted(each, change)
            each["wire"] = _head(each["wire"])
    shown |= {each.name for each in excuses.excuse(ours, theirs)}
    return differences(ours, theirs), shown


@dataclass
class Comparison:
    nereid: Server
    reference: Server
    done: dict[str, Compared] = field(default_factory=dict)

    def of(self, name: str) -> Compared:
        if name not in self.done:
            question = QUESTIONS[name]
            ours, theirs = question.ask(self.nereid), question.ask(self.reference)
            outcomes = _outcome(question, ours), _outcome(question, theirs)
            self.done[name] = Compared(*_compare(name, ours, theirs), *outcomes)
        return self.done[name]


@pytest.fixture(scope="session")
def nereid(identity_repository: Path) -> Iterator[Server]:
    """The reference of 2.51 lets clients register shared memory always."""
    with Nereid(identity_repository, {"allow-client-shm": "true"}) as server:
        yield server


@pytest.fixture(scope="session")
def comparison(nereid: Server, reference: Server) -> Comparison:
    return Comparison(nereid, reference)


def test_names_are_used_once() -> None:
    assert len(QUESTIONS) == sum(len(asked) for asked in GROUPS.values()), "two questions of one name"
    assert len({each.name for each in known.SHOWN}) == len(known.SHOWN), "two differences of one name"
    assert {question.adjust for question in QUESTIONS.values() if question.adjust} <= adjust.DIFFERENCES_OF.keys()


def test_known_differences_are_asked() -> None:
    for each in known.KNOWN:
        assert any(known.known(name) is each for name in QUESTIONS), each.questions


@pytest.mark.reference
@pytest.mark.parametrize("name", QUESTIONS)
def test_same_answer(comparison: Comparison, name: str) -> None:
    found = comparison.of(name).found
    assert not found, f"{name}: {len(found)} difference(s)\n" + "\n".join(found)
    for server in (comparison.nereid, comparison.reference):
        assert server.process.running(), f"{server.kind} ended"


@pytest.mark.reference
def test_every_difference_is_shown(comparison: Comparison) -> None:
    """docs/user/differences.md tells of nothing that is not so (any more)."""
    shown = {each for name in QUESTIONS for each in comparison.of(name).shown}
    assert shown == {each.name for each in known.SHOWN if not each.tests}


@pytest.mark.reference
def test_there_are_many_questions_with_many_outcomes(comparison: Comparison, capsys: pytest.CaptureFixture[str]) -> None:
    """A thousand questions that are all refused in the same words would show little."""
    every = [comparison.of(name) for name in QUESTIONS]
    outcomes = {each.theirs for each in every}
    differing = sum(1 for each in every if each.shown)
    of = {each.kind.name for each in known.SHOWN}
    with capsys.disabled():
        print(f"\n  {len(every)} questions, {len(outcomes)} outcomes of the reference; {differing} of the questions show differences, of {len(of)} kinds")
    assert len(every) >= 2750
    assert len(outcomes) >= 180


def test_class_of_strings(nereid: Server) -> None:
    """Asked for the classes of strings the reference ends; ours refuses."""
    tensor = {"name": "INPUT0", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]}
    classes = {"name": "OUTPUT0", "parameters": {"classification": 1}}
    got = rawhttp.post(nereid.http, "/v2/models/id_bytes/infer", {"inputs": [tensor], "outputs": [classes]})
    assert got.status == 400
    assert got.json()["error"] == "class result not available for output due to unsupported type 'BYTES'"
    assert nereid.process.running()
