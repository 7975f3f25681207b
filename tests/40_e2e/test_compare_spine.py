"""Both servers are asked the same; every difference that a client could see is a failure."""

import pytest
import spine_grpc
import spine_http
from harness.compare import answer, compare, differences
from harness.servers import Server
from spine_known import KNOWN

GROUPS = {**spine_http.GROUPS, **spine_grpc.GROUPS}
QUESTIONS = {f"{group}: {question.name}": question for group, asked in GROUPS.items() for question in asked}

pytestmark = pytest.mark.reference


def test_known_differences_are_asked() -> None:
    assert KNOWN.keys() <= QUESTIONS.keys()


@pytest.mark.parametrize("name", QUESTIONS)
def test_same_answer(nereid: Server, reference: Server, name: str) -> None:
    found = compare(QUESTIONS[name], nereid, reference)
    if name in KNOWN:
        assert found, f"{name}: the reference answers as we do, strike it from the known differences"
        found = differences(answer(QUESTIONS[name], nereid), KNOWN[name].ours)
    assert not found, f"{name}: {len(found)} difference(s)\n" + "\n".join(found)
    for server in (nereid, reference):
        assert server.process.running(), f"{server.kind} ended"
