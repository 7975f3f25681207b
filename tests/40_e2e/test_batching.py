"""Dynamic batching as a client sees it: 64 requests at a time, few executions."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import BOTH
from harness import h2frames as h2
from harness import rawgrpc, rawhttp, together
from harness.repository import Repository
from harness.servers import KINDS, Server, serving

CONCURRENCY = 64
ROUNDS = 30


def _executed(server: Server, model: str) -> tuple[int, int]:
    stats = server.statistics(model)
    return stats["inference_count"], stats["execution_count"]


def _mean_batch(server: Server, model: str, requests: list[bytes], rounds: int) -> float:
    before = _executed(server, model)
    answers = together.ask(server, f"/v2/models/{model}/infer", requests, rounds)
    after = _executed(server, model)
    assert {answer.status for answer in answers} == {200}
    assert after[0] - before[0] == len(requests) * rounds
    return (after[0] - before[0]) / (after[1] - before[1])


IMAGE = [float(number % 17) for number in range(64)]


@pytest.mark.onnx
def test_mean_batch_of_the_digits(sample_server: Server) -> None:
    request = json.dumps(
        {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 64], "data": IMAGE}]}
    ).encode()
    assert _mean_batch(sample_server, "digits", [request] * CONCURRENCY, ROUNDS) > 4


@pytest.mark.onnx
def test_mean_batch_of_the_digits_over_grpc(sample_server: Server) -> None:
    """64 streams of one connection in one write, again and again."""
    raw = np.array(IMAGE, dtype="<f4").tobytes()
    body = h2.message(rawgrpc.infer_request("digits", [("image", "FP32", [1, 64], raw)]).SerializeToString())
    block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelInfer"))
    before = _executed(sample_server, "digits")
    with h2.Connection(sample_server.grpc) as connection:
        for turn in range(ROUNDS):
            streams = range(2 * CONCURRENCY * turn + 1, 2 * CONCURRENCY * (turn + 1), 2)
            calls = (
                h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block)
                + h2.frame(h2.DATA, h2.END_STREAM, stream, body)
                for stream in streams
            )
            connection.send(b"".join(calls))
            assert {connection.finish(stream).trailers["grpc-status"] for stream in streams} == {"0"}
    after = _executed(sample_server, "digits")
    assert after[0] - before[0] == CONCURRENCY * ROUNDS
    assert (after[0] - before[0]) / (after[1] - before[1]) > 4


@pytest.fixture(scope="module", params=["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def batching_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    repository = Repository(tmp_path_factory.mktemp("batching") / "models")
    slow = 'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'
    repository.identity(
        "preferred",
        dims=(2,),
        max_batch_size=8,
        extra=f"{slow}dynamic_batching {{ preferred_batch_size: [ 4, 8 ] }}",
    )
    repository.identity("plain", dims=(2,), max_batch_size=8, extra=slow)
    with KINDS[request.param](repository.path) as server:
        yield server


def _numbered(count: int) -> list[bytes]:
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 2]}
    return [
        json.dumps({"inputs": [{**tensor, "data": [number, -number]}]}).encode() for number in range(count)
    ]


def test_each_gets_its_own_answer(batching_server: Server) -> None:
    """PB-93: Requests that were batched together are answered apart."""
    answers = together.ask(batching_server, "/v2/models/preferred/infer", _numbered(64))
    got = np.array([answer.json()["outputs"][0]["data"] for answer in answers])
    np.testing.assert_array_equal(got[:, 0], np.arange(64))
    np.testing.assert_array_equal(got[:, 1], -np.arange(64))


def test_no_batch_is_larger_than_the_limit(batching_server: Server) -> None:
    """MC-11, MC-13, MC-96, MC-99, MC-102, MC-104, PB-175: while the instance is busy requests wait and go in batches of at most 8."""
    assert _mean_batch(batching_server, "preferred", _numbered(64), 1) > 3
    stats = batching_server.statistics("preferred")
    assert max(row["batch_size"] for row in stats["batch_stats"]) == 8


def test_default_scheduler_never_batches(batching_server: Server) -> None:
    """MC-94, MC-99, PB-174: without a batcher each request is executed on its own."""
    assert _mean_batch(batching_server, "plain", _numbered(8), 1) == 1


STRATEGY = 'parameters {{ key: "TRITON_BATCH_STRATEGY_PATH" value {{ string_value: "{}" }} }}\n'


@pytest.mark.parametrize("kind", BOTH)
def test_a_custom_strategy_is_never_passed_over(tmp_path: Path, kind: str) -> None:
    """Of libraries that cannot be loaded both servers say which; a strategy itself: test_batch_strategy.py."""
    made = Repository(tmp_path / "models")
    models = tmp_path / "models"
    there, missing = models / "named" / "strategy.so", models / "missing" / "none.so"
    made.identity("sequences", max_batch_size=4, extra="sequence_batching { }\n" + STRATEGY.format(there))
    made.identity("missing", max_batch_size=4, extra="dynamic_batching { }\n" + STRATEGY.format(missing))
    made.identity("named", max_batch_size=4, extra="dynamic_batching { }\n" + STRATEGY.format(there))
    made.identity("found", max_batch_size=4, extra="dynamic_batching { }\n")
    made.identity("beside", max_batch_size=4)
    for library in (there, models / "found" / "1" / "batchstrategy.so", models / "beside" / "batchstrategy.so"):
        library.write_bytes(b"")
    expected = {
        "sequences": "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher",
        "missing": f"Batching library path not found: {missing}",
        "named": "strategy.so",
        "found": "1/batchstrategy.so",
        "beside": "beside/batchstrategy.so",
    }
    with serving(kind, made.path, {"model-control-mode": "explicit"}) as server:
        for model, why in expected.items():
            answer = rawhttp.post(server.http, f"/v2/repository/models/{model}/load", {})
            assert answer.status != 200 and why in answer.json()["error"], answer.body
