"""Variables of the environment that hold requests and answers back, for tests of clients: both servers do the same."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc
from conftest import BOTH
from harness import h2frames as h2
from harness import metrics, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server
from tritonclient.grpc import service_pb2 as pb

ONE = "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
INPUT: dict[str, Any] = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [7.0]}


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def delayed(kind: str, folder: Path, extra: str = "", **variables: int) -> Iterator[Server]:
    made = Repository(folder / "models")
    made.identity("m", max_batch_size=4, extra=ONE + extra)
    server = KINDS[kind](made.path, {}, env={f"TRITONSERVER_{name}": str(value) for name, value in variables.items()}).start()
    try:
        yield server
        server.leave()
    finally:
        server.kill()


def ask(server: Server, sequence: int = 0) -> rawhttp.Answer:
    body: dict[str, Any] = {"inputs": [INPUT]}
    if sequence:
        body["parameters"] = {"sequence_id": sequence, "sequence_start": True, "sequence_end": True}
    return rawhttp.post(server.http, "/v2/models/m/infer", body)


def executions(server: Server) -> tuple[int, int]:
    found = server.statistics("m")
    return found["inference_count"], found["execution_count"]


def nothing_is_executed(server: Server, asked: list[Future[rawhttp.Answer]]) -> None:
    """Though all of it is in the queue."""
    server.process.wait_for(lambda: metrics.scrape(server.metrics)["nv_inference_pending_request_count"].value(model="m"), len(asked))
    assert executions(server) == (0, 0)
    assert not any(each.done() for each in asked)


def all_answered(asked: list[Future[rawhttp.Answer]]) -> None:
    assert [each.result(60).status for each in asked] == [200] * len(asked)


def test_a_batcher_waits_for_requests(kind: str, tmp_path: Path) -> None:
    with delayed(kind, tmp_path, "dynamic_batching { }\n", DELAY_SCHEDULER=3) as server, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, server) for _ in range(2)]
        nothing_is_executed(server, asked)
        all_answered([*asked, pool.submit(ask, server)])
        assert executions(server) == (3, 1), "all three wait, then form one batch"
        assert ask(server).status == 200, "once: from then on nothing waits"


def test_slots_wait_for_the_backlog(kind: str, tmp_path: Path) -> None:
    direct = "sequence_batching { direct { } }\n"
    variables = {"DELAY_SCHEDULER": 4, "BACKLOG_DELAY_SCHEDULER": 2}
    with delayed(kind, tmp_path, direct, **variables) as server, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, server, sequence) for sequence in range(1, 6)]
        nothing_is_executed(server, asked)
        all_answered([*asked, pool.submit(ask, server, 6)])
        assert executions(server)[0] == 6


def test_candidates_wait(tmp_path: Path) -> None:
    """The reference never lets them go."""
    oldest = "sequence_batching { oldest { max_candidate_sequences: 4 } }\n"
    with delayed("nereid", tmp_path, oldest, DELAY_SCHEDULER=3) as server, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, server, sequence) for sequence in (1, 2)]
        nothing_is_executed(server, asked)
        all_answered([*asked, pool.submit(ask, server, 3)])


def seconds(call: Callable[[], Any]) -> float:
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def tensor() -> grpc.InferInput:
    made = grpc.InferInput("INPUT0", [1, 1], "FP32")
    made.set_data_from_numpy(np.ones((1, 1), np.float32))
    return made


def stream(client: grpc.InferenceServerClient, requests: int) -> None:
    answers: list[Any] = []
    client.start_stream(lambda result, error: answers.append(error or result))
    for _ in range(requests):
        client.async_stream_infer("m", [tensor()])
    client.stop_stream()
    assert len(answers) == requests and not any(isinstance(each, Exception) for each in answers)


def test_calls_are_looked_at_late(kind: str, tmp_path: Path) -> None:
    with delayed(kind, tmp_path, DELAY_GRPC_PROCESS=1000) as server, grpc.InferenceServerClient(server.grpc) as client:
        assert seconds(lambda: client.infer("m", [tensor()])) >= 1
        with pytest.raises(grpc.InferenceServerException, match="Deadline Exceeded"):
            client.infer("m", [tensor()], client_timeout=0.3)
        assert seconds(lambda: client.infer("m", [tensor()])) >= 1


def test_answers_are_written_late(kind: str, tmp_path: Path) -> None:
    with delayed(kind, tmp_path, SERVER_DELAY_GRPC_RESPONSE_SEC=2) as server, grpc.InferenceServerClient(server.grpc) as client:
        assert seconds(client.is_server_live) >= 2
        assert seconds(lambda: pytest.raises(grpc.InferenceServerException, client.get_model_metadata, "none")) >= 2
        with pytest.raises(grpc.InferenceServerException, match="Deadline Exceeded"):
            client.is_server_ready(client_timeout=0.3)
        client.infer("m", [tensor()])


LOG_SETTINGS = f"/{rawgrpc.SERVICE}/LogSettings"


def log_settings(message: bytes, *more: bytes) -> list[bytes]:
    """The frames of a call: each message is a frame."""
    headers = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.header_block(h2.call_headers(LOG_SETTINGS)))
    messages = [message, *more]
    return [headers] + [h2.frame(h2.DATA, h2.END_STREAM if i == len(messages) - 1 else 0, 1, h2.message(each)) for i, each in enumerate(messages)]


@pytest.mark.parametrize("frames", [1, 2])
def test_what_is_refused_is_not_done(tmp_path: Path, frames: int) -> None:
    """The answer is late; what came with a call without a key, or before a message too many, is not looked at meanwhile. Settings are set at once."""
    made = Repository(tmp_path / "models")
    made.identity("m")
    keys = tmp_path / "keys"
    keys.write_text("- health\nalice all\n" if frames == 1 else "- all\n")
    wanted = pb.LogSettingsRequest()
    wanted.settings["log_verbose_level"].uint32_param = 3
    with Nereid(made.path, {"api-keys": str(keys)}, env={"TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC": "1"}) as server, h2.Connection(server.grpc) as connection:
        connection.send(*log_settings(*[wanted.SerializeToString()] * frames))
        assert connection.finish(1).trailers["grpc-status"] == ("16" if frames == 1 else "13")
        shown = rawhttp.request(HOST, server.http_port, "GET", "/v2/logging", None, {"x-api-key": "alice"})
        assert shown.json()["log_verbose_level"] == 0


def test_responses_are_seen_late(kind: str, tmp_path: Path) -> None:
    with delayed(kind, tmp_path, DELAY_GRPC_COMPLETE=600) as server, grpc.InferenceServerClient(server.grpc) as client:
        assert seconds(lambda: stream(client, 2)) >= 1.2


def test_responses_are_written_late(kind: str, tmp_path: Path) -> None:
    decoupled = "model_transaction_policy { decoupled: true }\n"
    with delayed(kind, tmp_path, decoupled, DELAY_GRPC_RESPONSE=600) as server, grpc.InferenceServerClient(server.grpc) as client:
        assert seconds(lambda: stream(client, 2)) >= 1.2


def test_no_network_thread_waits(tmp_path: Path) -> None:
    """What was asked later is answered first. Where this machine takes as long as the delay itself it is asked once more."""
    with delayed("nereid", tmp_path, SERVER_DELAY_GRPC_RESPONSE_SEC=5, DELAY_GRPC_PROCESS=5000) as server, ThreadPoolExecutor(16) as pool:
        client = grpc.InferenceServerClient(server.grpc)
        for _ in range(4):
            waiting = [pool.submit(client.is_server_live) for _ in range(4)] + [pool.submit(client.infer, "m", [tensor()]) for _ in range(4)]
            assert all(rawhttp.get(server.http, "/v2/health/live").status == 200 for _ in range(32))
            before = not any(each.done() for each in waiting)
            for each in waiting:
                each.result(60)
            if before:
                return
        raise AssertionError("health waits for calls that are held back")
