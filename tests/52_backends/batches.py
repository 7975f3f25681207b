"""What every backend does with batches of a model that makes 8 numbers of 16, asked as clients ask and compared with its runtime."""

from collections.abc import Callable

import numpy as np
from harness import rawhttp
from harness.servers import Server

from clients import ask, at_once

Answers = Callable[[np.ndarray], np.ndarray]


def are_right_in_every_size(server: Server, protocol: str, model: str, output: str, answers: Answers) -> None:
    rows = np.random.default_rng(3).standard_normal((16, 16)).astype(np.float32)
    expected = answers(rows)
    for size in (1, 2, 16, 1, 5, 1):
        found = ask(server, protocol, model, {"x": rows[:size]})[output]
        np.testing.assert_allclose(found, expected[:size], atol=1e-5)


def need_an_optional_input(server: Server, backend: str, model: str, output: str, answers: Answers) -> None:
    """A configuration that calls it optional loads, with a warning; the runtime needs it all the same."""
    rows = np.ones((1, 16), np.float32)
    np.testing.assert_allclose(ask(server, "grpc", model, {"x": rows})[output], answers(rows), atol=1e-5)
    without = rawhttp.post(server.http, f"/v2/models/{model}/infer", b'{"inputs": []}')
    assert (without.status, without.json()["error"]) == (400, f"the request has no input 'x', which model '{model}' needs")
    assert f"input 'x' of model '{model}' is optional, but the backend '{backend}' needs every input" in server.process.log()


def give_each_request_its_rows(server: Server, model: str, output: str, answers: Answers, together: bool) -> None:
    """together: some of them were executed in one batch"""
    rows = np.random.default_rng(5).standard_normal((24, 16)).astype(np.float32)
    expected = answers(rows)

    def one_client(index: int) -> None:
        found = ask(server, "grpc", model, {"x": rows[index : index + 1]})[output]
        np.testing.assert_allclose(found, expected[index : index + 1], atol=1e-5)

    at_once(24, one_client)
    counted = server.statistics(model)
    if together:
        assert counted["execution_count"] < counted["inference_stats"]["success"]["count"]
