"""Both servers are asked the same; every difference that a client could see, and that is none of the wanted ones, is a failure."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import adjust
import corner_questions
import excuses
import forms
import generate_questions
import grpc_questions
import header_questions
import http_questions
import infer_questions
import known
import pytest
import region_questions
import route_questions
import value_questions
from harness import rawhttp
from harness.compare import Answer, Http, Question, adjusted, differences
from harness.servers import Nereid, Server

MODULES = (http_questions, grpc_questions, infer_questions, value_questions, route_questions, corner_questions, header_questions,
           region_questions, generate_questions)
GROUPS = {group: asked for module in MODULES for group, asked in module.GROUPS.items()}
QUESTIONS = {f"{group}: {question.name}": question for group, asked in GROUPS.items() for question in asked}
READ = {each.path for each in QUESTIONS.values() if isinstance(each, Http) and each.method == "GET"} | {*route_questions.VOLATILE}


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


def _head(wire: dict[str, Any]) -> dict[str, Any]:
    """What an answer is still compared in that says something else: not in its words."""
    blocks = [[each for each in block if each[0] != "grpc-message"] if isinstance(block, list) else block for block in wire["headers"]]
    return {"reason": wire.get("reason"), "headers": blocks, "behind": wire.get("behind")}


def _content(answer: Answer) -> Answer:
    return {key: value for key, value in answer.items() if key not in ("status", "code", "wire")}


def _known(expected: known.Known, ours: Answer, theirs: Answer) -> tuple[list[str], set[str]]:
    """Words and status are those that are expected; what ours has besides is the reference's, or that which is expected."""
    same = not differences(_content(ours), _content(theirs))
    lines = known.summary(ours), known.summary(theirs)
    if same and lines[0] == lines[1]:
        return ["the reference answers as we do, strike it from the known differences"], set()
    asked = ((expected.ours, lines[0], "ours"), (expected.theirs, lines[1], "the reference"))
    found = [f"{who}: {line}" for want, line, who in asked if not re.fullmatch(want, line, re.DOTALL)]
    served = re.match("200|OK", lines[0])
    if served and not same and not re.fullmatch(expected.body or "nothing", known.said(ours), re.DOTALL):
        found.append(f"ours has {known.said(ours)!r}, and not {expected.body}")
    if not served:
        found += [f"ours is an error and has written to {name}" for name in ours.get("written", [])]
        found += differences(ours.get("registered"), theirs.get("registered"), "registered")
    if ours.get("status", ours.get("code")) != theirs.get("status", theirs.get("code")):
        return found, set()
    shown = {each.name for each in excuses.excuse(ours, theirs)}
    for each in (ours, theirs):  # codings are in the summaries
        each["wire"]["headers"] = [header for header in each["wire"]["headers"] if header[0] != "Content-Encoding"]
    return found + differences(_head(ours["wire"]), _head(theirs["wire"]), "wire"), shown


def _form(question: Question, expected: known.Known | None, ours: Answer, theirs: Answer) -> list[str]:
    """Where both have the same status, what ours has besides the headers of its form is compared with the reference's."""
    alike = ours.get("status", ours.get("code")) == theirs.get("status", theirs.get("code"))
    more = forms.besides(ours) if alike or not expected else list(expected.besides)
    return forms.problems(ours, more, getattr(question, "method", ""))


def _compare(name: str, ours: Answer, theirs: Answer) -> tuple[list[str], set[str]]:
    """What differs for no reason, and the wanted differences that the rest is of."""
    expected, question = known.known(name), QUESTIONS[name]
    found = _form(question, expected, ours, theirs)
    if expected:
        wrong, shown = _known(expected, ours, theirs)
        return found + wrong, shown | {expected.difference.name}
    shown = set()
    if question.adjust:
        before = differences(*({**each, "wire": None} for each in (ours, theirs)))
        shown |= {each.name for each in adjust.DIFFERENCES_OF[question.adjust]} if before else set()
        for each in (ours, theirs):
            adjusted(each, question.adjust)
            each["wire"] = _head(each["wire"])
    shown |= {each.name for each in excuses.excuse(ours, theirs)}
    return found + differences(ours, theirs), shown


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


@pytest.mark.parametrize("each", known.KNOWN, ids=lambda each: each.questions[:60])
def test_a_known_answer_is_one_answer(each: known.Known) -> None:
    """A pattern that takes two answers would not notice that one became the other. Each protocol has a status of its own."""
    for pattern in (each.ours, each.theirs):
        for status in (r"[2-5]\d\d", r"(?:[A-Z_]{2,}|reset \d)"):
            found = set(re.findall(rf"(?:^|[(|])({status})\b", pattern))
            assert len(found) <= 1 or each.chance, f"{pattern}: {found}"
        assert re.match(r"\(?[2-5]\d\d|\(?[A-Z_]{2,}|reset", pattern), pattern


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
    outcomes, ours = {each.theirs for each in every}, {each.ours for each in every}
    differing = sum(1 for each in every if each.shown)
    of = {each.kind.name for each in known.SHOWN}
    with capsys.disabled():
        print(f"\n  {len(every)} questions, {len(outcomes)} outcomes of the reference, {len(ours)} of ours")
        print(f"  {differing} of the questions show differences, of {len(of)} kinds")
    assert len(every) >= 3100
    assert len(outcomes) >= 285
    assert len(ours) >= 315


SPOILED: dict[str, tuple[str, Callable[[Answer], Any]]] = {
    "another type": ("framing: xchunked", lambda answer: answer["wire"]["headers"].__setitem__(0, ("Content-Type", "text/plain"))),
    "another order": ("framing: xchunked", lambda answer: answer["wire"]["headers"].reverse()),
    "no length": ("values: 1e400 as FP32", lambda answer: answer["wire"]["headers"].pop()),
    "a header more": ("values: 1e400 as FP32", lambda answer: answer["wire"]["headers"].append(("X", "y"))),
    "it closes": ("bad json: version 0", lambda answer: answer["wire"]["headers"].insert(1, ("Connection", "close"))),
    "another reason": ("values: 1e400 as FP32", lambda answer: answer["wire"].update(reason="Fine")),
    "an error in other words": ("framing: xchunked", lambda answer: answer["wire"].update(text=b"wrong")),
    "more behind": ("values: 1e400 as FP32", lambda answer: answer["wire"].update(behind=b"x")),
    "a body of HEAD": ("routes: HEAD /v2/health/live", lambda answer: answer["wire"].update(text=b"{}")),
    "metadata more": ("gRPC headers: te None", lambda answer: answer["wire"]["headers"][0].append(("x", "y"))),
    "another status in the trailers": ("grpc infer: duplicate output", lambda answer: answer.update(code="INTERNAL")),
    "no message": ("gRPC headers: te None", lambda answer: answer["wire"]["messages"].clear()),
    "a header of a call that is none": ("gRPC headers: content-type None", lambda answer: answer["wire"]["headers"][0].append(("x", "y"))),
}


@pytest.mark.parametrize("what", SPOILED)
def test_an_answer_of_another_form_is_noticed(nereid: Server, what: str) -> None:
    """Where the reference's status is another one, so that its answer says nothing of the form of ours."""
    name, spoil = SPOILED[what]
    question, expected = QUESTIONS[name], known.known(name)
    answer, theirs = question.ask(nereid), {"status": 0, "code": ""}
    assert not _form(question, expected, answer, theirs)
    spoil(answer)
    assert _form(question, expected, answer, theirs)


@pytest.mark.parametrize("path", sorted(READ))
def test_head_is_the_head_of_get(nereid: Server, path: str) -> None:
    """Down to the length of a body that GET has and HEAD has not."""
    host, port = nereid.http.split(":")
    answers = {}
    for method in ("GET", "HEAD"):
        with rawhttp.Connection(host, int(port)) as connection:
            answers[method] = connection.ask(method, path)
            assert connection.rest() == b""
    got, head = answers["GET"], answers["HEAD"]
    assert int(got.header("Content-Length") or "none") == len(got.body)
    assert head.body == b""
    if got.status != 405:
        assert (head.status, head.reason, head.headers) == (got.status, got.reason, got.headers)


def test_class_of_strings(nereid: Server) -> None:
    """Asked for the classes of strings the reference ends; ours refuses."""
    tensor = {"name": "INPUT0", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]}
    classes = {"name": "OUTPUT0", "parameters": {"classification": 1}}
    got = rawhttp.post(nereid.http, "/v2/models/id_bytes/infer", {"inputs": [tensor], "outputs": [classes]})
    assert got.status == 400
    assert got.json()["error"] == "class result not available for output due to unsupported type 'BYTES'"
    assert nereid.process.running()
