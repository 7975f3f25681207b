"""Requests that the model gives back to have them executed again (iterative sequences); as in the reference."""

from typing import Any

import numpy as np
import pytest
from asks import Asker
from conftest import Both


def number(value: int) -> np.ndarray:
    return np.array([[value]], np.int32)


def runs(answer: dict[str, Any]) -> list[int]:
    return np.frombuffer(answer["RUNS"][2], np.int32).tolist()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("count", [1, 2, 20])
@pytest.mark.parametrize("model", ["reschedule", "reschedule_oldest"])
def test_executed_again_and_again(both: Both, model: str, count: int, protocol: str) -> None:
    """The first execution carries the START flag, the others none."""
    answer = both.same(lambda asker: asker.infer(model, {"N": number(count)}, protocol=protocol))
    assert runs(answer) == [count, 1]


@pytest.mark.parametrize("model", ["reschedule", "reschedule_oldest"])
def test_more_requests_than_slots(both: Both, model: str) -> None:
    def ask(asker: Asker) -> list[Any]:
        return asker.at_once(lambda i: runs(asker.infer(model, {"N": number(1 + i % 7)})), 24)

    assert both.same(ask) == [[1 + i % 7, 1] for i in range(24)]


@pytest.mark.parametrize("count", [1, 5])
def test_a_response_in_each_execution(both: Both, count: int) -> None:
    came = both.same(lambda asker: asker.stream("reschedule_decoupled", {"N": number(count)}))
    assert [runs(each) for each in came] == [[i + 1, count] for i in range(count)]
    assert [each["final"] for each in came] == [False] * (count - 1) + [True]


def test_nothing_is_executed_again_behind_a_final_response(both: Both) -> None:
    """The model is told so in one line. The reference ends by it."""
    asker = both.askers["nereid"]
    process = asker.server.process
    before = process.log_path.stat().st_size
    came = asker.stream("reschedule_decoupled", {"N": number(-1)})
    assert [(runs(each), each["final"]) for each in came] == [([1, -1], True)]

    def told() -> list[str]:
        return [line for line in process.log(offset=before).splitlines() if "release" in line]

    process.wait_until(told, 30)
    (line,) = told()
    assert "'reschedule_decoupled_0' gives back a request whose final response it has sent" in line


def test_streams_of_many(both: Both) -> None:
    def ask(asker: Asker) -> list[Any]:
        return asker.at_once(lambda i: [runs(each) for each in asker.stream("reschedule_decoupled", {"N": number(1 + i)})], 10)

    assert both.same(ask) == [[[k + 1, i + 1] for k in range(i + 1)] for i in range(10)]


def test_sequences_of_the_client(both: Both) -> None:
    """An id of one's own needs the START flag; more than one row is no sequence."""
    one = {"N": number(2)}
    right = both.same(lambda asker: asker.infer("reschedule", one, sequence_id=9_000_000_001, sequence_start=True))
    assert runs(right) == [2, 1]
    named = both.same(lambda asker: asker.infer("reschedule", one, sequence_id="mine", sequence_start=True))
    assert runs(named) == [2, 1]
    for more in ({"sequence_id": 9_000_000_002}, {"sequence_id": "other"}):
        assert "message" in both.same(lambda asker, more=more: asker.infer("reschedule", one, **more))
    rows = {"N": np.array([[1], [1]], np.int32)}
    assert "message" in both.same(lambda asker: asker.infer("reschedule", rows))
