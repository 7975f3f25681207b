"""What is refused for now says when to come again (Retry-After); what time does not mend does not."""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import witness
from harness import h2frames as h2
from harness import metrics, rawgrpc, rawhttp
from harness.held import Bodies
from harness.repository import Repository
from harness.servers import HOST, Nereid
from witness import Board, board, compile_backend  # noqa: F401

EXPLICIT = {"model-control-mode": "explicit"}
QUEUE = "dynamic_batching { default_queue_policy { max_queue_size: 1 allow_timeout_override: true } }"
TENSOR = {"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [7]}


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_backend(tmp_path_factory.mktemp("backends"))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Nereid]:
    """Has no room for a MiB."""
    made = Repository(tmp_path / "models")
    made.identity("echo")
    with Nereid(made.path, EXPLICIT | {"load-model": "echo", "memory-budget": str(1 << 20)}) as server:
        yield server


def again(answer: rawhttp.Answer) -> tuple[int, str | None]:
    return answer.status, answer.header("Retry-After")


def test_a_full_queue_and_a_timeout(board: Board, backend: Path, pool: ThreadPoolExecutor) -> None:  # noqa: F811
    """The header counts seconds: one is the least that it can say."""
    board.model("busy", extra=QUEUE, batch=1, gated=True)
    with Nereid(board.repository.path, {"backend-directory": str(backend)}) as server:
        tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [1, 1], "data": [7]}
        first = pool.submit(witness.try_to_ask, server, "busy", json.dumps({"inputs": [tensor]}).encode())
        server.process.wait_until(lambda: board.now() == 1, 60)
        late = witness.try_to_ask(server, "busy", json.dumps({"inputs": [tensor], "parameters": {"timeout": 500000}}).encode())
        assert again(late) == (503, "1") and "timeout expired" in late.json()["error"].lower()
        waits = pool.submit(witness.try_to_ask, server, "busy", json.dumps({"inputs": [tensor]}).encode())
        pending = "nv_inference_pending_request_count"
        server.process.wait_until(lambda: metrics.scrape(server.metrics)[pending].value(model="busy") == 1, 60)
        refused = witness.try_to_ask(server, "busy", json.dumps({"inputs": [tensor]}).encode())
        assert again(refused) == (503, "1") and "Exceeds maximum queue size" in refused.json()["error"]
        board.open_gate()
        assert again(first.result()) == again(waits.result()) == (200, None)


def binary(server: Nereid, size: int) -> rawhttp.Answer:
    """Asks for a tensor of that many bytes, of which none come: whether there is room is said before."""
    headers = {"Content-Length": str(size), "Inference-Header-Content-Length": "100", "Expect": "100-continue"}
    return rawhttp.request(HOST, server.http_port, "POST", "/v2/models/echo/infer", None, headers)


def test_what_is_spent(small: Nereid) -> None:
    """What is more than the whole budget will never have room."""
    with Bodies(small.http, "echo") as holder:
        assert holder.hold(768 << 10)
        assert again(binary(small, 512 << 10)) == (503, "1")
        assert again(binary(small, 2 << 20)) == (503, None)
    small.process.wait_until(lambda: binary(small, 512 << 10).status == 100, 60)


def test_what_is_more_than_a_whole_budget(tmp_path: Path) -> None:
    """However large the steps are in which room is taken: who announces it is told at once, who does not as soon as it is known."""
    made = Repository(tmp_path / "models")
    made.identity("echo")
    limit, size = 32 << 20, 40 << 20
    only = f"only {limit} bytes may be in flight at once; raise --memory-budget"
    with Nereid(made.path, {"memory-budget": str(limit)}) as server:
        announced = binary(server, size)
        assert again(announced) == (503, None)
        assert announced.json()["error"] == f"no room for a body of {size} bytes: {only}"
        with rawhttp.Connection(HOST, server.http_port) as client:
            client.send(rawhttp.head("POST", "/v2/models/echo/infer", {"Transfer-Encoding": "chunked"}))
            with contextlib.suppress(ConnectionError):  # the answer comes before the end
                for _ in range(size >> 20):
                    client.send(b"100000\r\n", bytes(1 << 20), b"\r\n")
            unannounced = client.answer()
        assert again(unannounced) == (503, None)
        assert unannounced.json()["error"].endswith(f": {only}")
        with h2.Connection(server.grpc) as asking:
            head = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelInfer"))
            asking.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, head), h2.frame(h2.DATA, 0, 1, b"\0" + size.to_bytes(4, "big") + b"\x0a"))
            ended = asking.finish(1).trailers
        assert ended["grpc-message"] == f"no room for a message of {size} bytes: {only}"
        assert metrics.scrape(server.metrics)["nereid_requests_total"].value(protocol="http", route="infer", code="503") == 2


def test_a_model_that_is_loading(board: Board, backend: Path) -> None:  # noqa: F811
    """Longer, because loads take longer. What was unloaded does not come by waiting."""
    board.model("slow", kept_out=True)
    with Nereid(board.repository.path, EXPLICIT | {"backend-directory": str(backend)}) as server, ThreadPoolExecutor(1) as loads:
        path = "/v2/models/slow/versions/1"
        loading = loads.submit(rawhttp.post, server.http, "/v2/repository/models/slow/load", b"")
        server.process.wait_until(lambda: rawhttp.get(server.http, path).status == 503, 30)
        assert again(rawhttp.get(server.http, path)) == (503, "5")
        assert again(rawhttp.get(server.http, "/v2/health/ready"))[1] is None
        board.open_door()
        assert loading.result().status == 200
        assert again(rawhttp.get(server.http, path)) == (200, None)
        assert rawhttp.post(server.http, "/v2/repository/models/slow/unload", b"").status == 200
        server.process.wait_until(lambda: rawhttp.get(server.http, path).status == 503, 30)
        assert again(rawhttp.get(server.http, path)) == (503, None)


def test_what_time_does_not_mend(small: Nereid) -> None:
    setting = rawhttp.post(small.http, "/v2/logging", {"log_format": "bad"})
    assert again(setting) == (503, None)
    assert again(rawhttp.post(small.http, "/v2/models/echo/infer", {"inputs": []})) == (400, None)
    assert again(rawhttp.get(small.http, "/v2/models/none")) == (404, None)


def test_a_server_that_stops(tmp_path: Path) -> None:
    """It does not know whether another one comes."""
    made = Repository(tmp_path / "models")
    made.identity("echo")
    server = Nereid(made.path, EXPLICIT).start()
    try:
        with server.process.halted():
            held = rawhttp.Connection(HOST, server.http_port)
            held.send(rawhttp.head("POST", "/v2/repository/index", {"Transfer-Encoding": "chunked"}), b"2\r\n{}\r\n")
            server.process.terminate()
        server.process.wait_until(lambda: held.send(b"1\r\n \r\n") or "stopping" in server.process.log(), 30)
        held.send(b"0\r\n\r\n")
        assert again(held.answer()) == (503, None)
        held.close()
        server.process.ends(0)
    finally:
        server.kill()


def test_a_stream_that_cannot_begin(board: Board, backend: Path, pool: ThreadPoolExecutor) -> None:  # noqa: F811
    """generate_stream: the head comes with the first event."""
    board.model("busy", extra=QUEUE, batch=1, gated=True)
    with Nereid(board.repository.path, {"backend-directory": str(backend)}) as server:
        body = json.dumps({"INPUT0": [7]}).encode()
        tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [1, 1], "data": [7]}
        held = pool.submit(witness.try_to_ask, server, "busy", json.dumps({"inputs": [tensor]}).encode())
        server.process.wait_until(lambda: board.now() == 1, 60)
        waits = pool.submit(witness.try_to_ask, server, "busy", json.dumps({"inputs": [tensor]}).encode())
        server.process.wait_until(lambda: waiting(server) == 1, 60)
        for path in ("generate_stream", "generate"):
            assert again(rawhttp.post(server.http, f"/v2/models/busy/{path}", body)) == (503, "1")
        board.open_gate()
        assert [held.result().status, waits.result().status] == [200, 200]


def waiting(server: Nereid) -> float:
    return metrics.scrape(server.metrics)["nv_inference_pending_request_count"].value(model="busy")
