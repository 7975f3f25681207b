"""Decoupled models over gRPC streams: many responses, none, errors in between, senders that outlive execute; as in the reference."""

from typing import Any

import numpy as np
import pytest
from asks import Asker, words
from conftest import Both


def repeat(asker: Asker, values: list[int], where: str) -> list[Any]:
    came = asker.stream("repeat", {"IN": np.array(values, np.int32), "WHERE": words(where)}, request_id="the id")
    return [(each["final"], int(np.frombuffer(each["OUT"][2], np.int32)[0]) if "OUT" in each else None) for each in came]


@pytest.mark.parametrize("where", ["execute", "execute joined", "thread", "thread joined"])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_repeat(both: Both, count: int, where: str) -> None:
    """joined: the last response carries the final flag itself, else it comes alone."""
    values = list(range(10, 10 + count))
    came = both.same(lambda asker: repeat(asker, values, where))
    assert [value for _, value in came if value is not None] == values
    assert [final for final, _ in came] == [False] * (len(came) - 1) + [True]
    assert len(came) == count + (0 if where.endswith("joined") and count else 1)


def test_streams_side_by_side(both: Both) -> None:
    def ask(asker: Asker) -> list[Any]:
        return asker.at_once(lambda i: repeat(asker, [i] * (i + 1), "thread"), 8)

    for i, came in enumerate(both.same(ask)):
        assert [value for _, value in came] == [i] * (i + 1) + [None]


@pytest.mark.parametrize("ask", ["errors", "error_at_the_end", "raises", "raises_after_final", "returns"])
def test_errors_between_responses(both: Both, ask: str) -> None:
    came = both.same(lambda asker: asker.stream("decoupled_faults", {"ASK": words(ask)}))
    assert came[0]["TOLD"][2] == [b"one"]


@pytest.mark.parametrize("ask", ["after_final", "final_twice", "wrong_flags", "nothing", "no_response"])
def test_rules_of_senders(both: Both, ask: str) -> None:
    """What the sender of a model says when the model breaks a rule."""
    both.same(lambda asker: asker.stream("decoupled_faults", {"ASK": words(ask)}))
    said = both.same(lambda asker: asker.stream("decoupled_faults", {"ASK": words("what_came")}))
    assert said[0]["TOLD"][2] != [b""]


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_decoupled_models_need_a_stream(both: Both, protocol: str) -> None:
    inputs = {"IN": np.array([1], np.int32), "WHERE": words("execute")}
    assert "message" in both.same(lambda asker: asker.infer("repeat", inputs, protocol=protocol))


@pytest.mark.parametrize("ask", ["return", "send", "thread", "two"])
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_senders_of_other_models(both: Both, ask: str, protocol: str) -> None:
    """A model that is not decoupled may answer through a sender too, once."""
    both.same(lambda asker: asker.told("sender_default", ask, protocol=protocol))


@pytest.mark.parametrize("stop", [-1, 2])
def test_responses_of_a_decoupled_model_handed_on(both: Both, stop: int) -> None:
    inputs = {"IN": np.arange(5, dtype=np.int32), "STOP": np.array([stop], np.int32)}
    came = both.same(lambda asker: asker.stream("bls_decoupled", inputs))
    assert len(came) == (6 if stop < 0 else 3)
    assert came[-1]["final"]
