"""Both servers are asked the same; every difference that a client could see, and that is of no wanted kind, is a failure."""

import re

import adjust
import corner_questions
import grpc_questions
import header_questions
import http_questions
import infer_questions
import kinds
import pytest
import route_questions
import value_questions
from harness import rawhttp
from harness.compare import answer, differences
from harness.servers import Server

MODULES = (http_questions, grpc_questions, infer_questions, value_questions, route_questions, corner_questions, header_questions)
GROUPS = {group: asked for module in MODULES for group, asked in module.GROUPS.items()}
QUESTIONS = {f"{group}: {question.name}": question for group, asked in GROUPS.items() for question in asked}


def test_there_are_many_questions_and_few_kinds_of_difference() -> None:
    assert len(QUESTIONS) == sum(len(asked) for asked in GROUPS.values()), "two questions of one name"
    assert len(QUESTIONS) >= 1300
    assert len(kinds.KINDS) <= 11
    used = {each.kind for each in kinds.KNOWN} | set(adjust.KIND_OF.values())
    assert used == set(kinds.KINDS)


def test_every_adjusted_comparison_is_of_a_kind() -> None:
    assert {question.adjust for question in QUESTIONS.values() if question.adjust} <= adjust.KIND_OF.keys()


def test_known_differences_are_asked() -> None:
    for each in kinds.KNOWN:
        assert any(kinds.known(name) is each for name in QUESTIONS), each.questions


@pytest.mark.reference
@pytest.mark.parametrize("name", QUESTIONS)
def test_same_answer(nereid: Server, reference: Server, name: str) -> None:
    known = kinds.known(name)
    ours, theirs = answer(QUESTIONS[name], nereid), answer(QUESTIONS[name], reference)
    found = differences(ours, theirs)
    if known:
        assert found, f"{name}: the reference answers as we do, strike it from the known differences"
        assert re.fullmatch(known.ours, kinds.summary(ours), re.DOTALL), kinds.summary(ours)
    else:
        assert not found, f"{name}: {len(found)} difference(s)\n" + "\n".join(found)
    for server in (nereid, reference):
        assert server.process.running(), f"{server.kind} ended"


def test_class_of_strings(nereid: Server) -> None:
    """Asked for the classes of strings the reference ends; ours refuses."""
    tensor = {"name": "INPUT0", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]}
    classes = {"name": "OUTPUT0", "parameters": {"classification": 1}}
    got = rawhttp.post(nereid.http, "/v2/models/id_bytes/infer", {"inputs": [tensor], "outputs": [classes]})
    assert got.status == 400
    assert got.json()["error"] == "class result not available for output due to unsupported type 'BYTES'"
    assert nereid.process.running()
