"""The interfaces that SageMaker and Vertex AI call, as the reference has them: the same questions to both servers."""

import json
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import witness
from harness import ports, rawhttp
from harness.process import ServerFailed
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server, listens
from witness import Board, backend, board  # noqa: F401

ENVIRONMENT = {
    "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "echo",
    "AIP_PREDICT_ROUTE": "/v1/endpoints/1:predict",
    "AIP_HEALTH_ROUTE": "/v1/health",
}
TYPES = {
    "sagemaker": "application/vnd.sagemaker-triton.binary+json;json-header-size=",
    "vertex-ai": "application/vnd.vertex-ai-triton.binary+json;json-header-size=",
}
PREDICT = {"sagemaker": "/invocations", "vertex-ai": "/v1/endpoints/1:predict"}
HEALTH = {"sagemaker": "/ping", "vertex-ai": "/v1/health"}
INPUT = {"name": "INPUT0", "datatype": "FP32", "shape": [2]}
BODY = json.dumps({"id": "7", "inputs": [INPUT | {"data": [1, 2]}]}).encode()
REDIRECT = "X-Vertex-Ai-Triton-Redirect"


def start(kind: type[Server], path: Path, options: dict[str, Any] | None = None, env: dict[str, str] | None = None) -> Server:
    """With both interfaces, each at a port of its own."""
    given: dict[str, Any] = {f"allow-{name}": "true" for name in TYPES} | {f"{name}-port": str(ports.free_port()) for name in TYPES}
    return kind(path, given | {"vertex-ai-default-model": "echo"} | (options or {}), env=os.environ | ENVIRONMENT | (env or {}))


def ask(
    server: Server, cloud: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> rawhttp.Answer:
    return rawhttp.request(HOST, int(str(server.options[f"{cloud}-port"])), method, path, body, headers)


def told(answer: rawhttp.Answer) -> tuple[int, Any]:
    """Of a health request only the status: the reference's answer has no body."""
    body = json.loads(answer.body or "null")
    return answer.status, None if body and "ready" in body else body


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Repository(tmp_path_factory.mktemp("models"))
    for name in ("echo", "other"):
        made.identity(name)
    return made.path


@pytest.fixture(scope="module")
def servers(models: Path) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [stack.enter_context(start(kind, models)) for kind in KINDS.values()]


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Server]:
    with start(Nereid, models) as running:
        yield running


def binary(cloud: str, json_size: int | str | None = None, ahead: str = "") -> tuple[bytes, dict[str, str]]:
    """A request with binary data both ways, and the header that says where they begin."""
    asked = {"inputs": [INPUT | {"parameters": {"binary_data_size": 8}}], "parameters": {"binary_data_output": True}}
    head = json.dumps(asked).encode()
    size = len(head) if json_size is None else json_size
    return head + struct.pack("<2f", 1, 2), {"Content-Type": f"{ahead}{TYPES[cloud]}{size}"}


@pytest.mark.reference
@pytest.mark.parametrize("cloud", TYPES)
def test_predictions(servers: list[Server], cloud: str) -> None:
    for method, path, body in [
        ("POST", PREDICT[cloud], BODY),
        ("POST", PREDICT[cloud] + "?x=1", BODY),
        ("POST", PREDICT[cloud], b"{}"),
        ("POST", PREDICT[cloud], json.dumps({"inputs": [INPUT | {"name": "no", "data": [1, 2]}]}).encode()),
        ("GET", HEALTH[cloud], None),
    ]:
        ours, theirs = (ask(each, cloud, method, path, body) for each in servers)
        assert told(ours) == told(theirs), (method, path, body)


@pytest.mark.reference
@pytest.mark.parametrize("cloud", TYPES)
def test_what_is_not_there(servers: list[Server], cloud: str) -> None:
    """The status is the same; ours says why besides."""
    for method, path in [
        ("GET", "/"),
        ("GET", "/v2"),
        ("POST", "/v2/models/echo/infer"),
        ("GET", "/v2/health/ready"),
        ("GET", "/metrics"),
        ("GET", PREDICT[cloud]),
        ("POST", HEALTH[cloud]),
        ("POST", PREDICT[cloud] + "/"),
        ("POST", PREDICT[cloud] + "s"),
    ]:
        ours, theirs = (ask(each, cloud, method, path, BODY if method == "POST" else None) for each in servers)
        assert ours.status == theirs.status, (method, path)


@pytest.mark.reference
@pytest.mark.parametrize("cloud", TYPES)
def test_binary_data(servers: list[Server], cloud: str) -> None:
    """Content-Type says how much is JSON, in answers of SageMaker's port too; the inference port's header means nothing."""
    kept = []
    for each in servers:
        body, headers = binary(cloud)
        answer = ask(each, cloud, "POST", PREDICT[cloud], body, headers)
        assert answer.status == 200, answer.body
        kind = answer.header("Content-Type") or ""
        length = kind.removeprefix(TYPES[cloud]) if cloud == "sagemaker" else answer.header("Inference-Header-Content-Length")
        assert answer.body[int(length or 0) :] == body[-8:]
        kept.append((json.loads(answer.body[: int(length or 0)]), kind.rstrip("0123456789"), answer.header("Inference-Header-Content-Length") is None))
    assert kept[0] == kept[1]
    for size, ahead in [("x", ""), ("", ""), ("100000", ""), ("-1", ""), ("99999999999", ""), (None, "a, "), (5, "")]:
        body, headers = binary(cloud, size, ahead)
        ours, theirs = (ask(each, cloud, "POST", PREDICT[cloud], body, headers) for each in servers)
        assert ours.status == theirs.status >= 400, (size, ahead)
        if ahead or size in ("100000", "-1"):  # this version of the reference takes what is no number for 0; of broken JSON each has its words
            assert told(ours) == told(theirs)
    body, headers = binary(cloud)
    wrong = {"Inference-Header-Content-Length": headers["Content-Type"].removeprefix(TYPES[cloud])}
    ours, theirs = (ask(each, cloud, "POST", PREDICT[cloud], body, wrong) for each in servers)
    assert ours.status == theirs.status == 400


@pytest.mark.reference
@pytest.mark.parametrize("cloud", TYPES)
def test_codings_mean_nothing(servers: list[Server], cloud: str) -> None:
    for headers in ({"Accept-Encoding": "gzip"}, {"Content-Encoding": "gzip"}, {"Content-Encoding": "br"}):
        ours, theirs = (ask(each, cloud, "POST", PREDICT[cloud], BODY, headers) for each in servers)
        assert told(ours) == told(theirs)
        assert ours.status == 200
        assert ours.header("Content-Encoding") is None


@pytest.mark.reference
def test_redirects(servers: list[Server]) -> None:
    """A prediction that a header sends to another route is answered as that route answers, whatever its method is."""
    for path, body in [
        ("v2", b""),
        ("v2/health/live", b""),
        ("v2/health/ready", b""),
        ("v2/models/other", b""),
        ("v2/models/other/versions/1", b""),
        ("v2/models/other/ready", b""),
        ("v2/models/other/config", b""),
        ("v2/models/nobody", b""),
        ("v2/models/other/infer", BODY),
        ("v2/models/other/versions/1/infer", BODY),
        ("v2/models/nobody/infer", BODY),
        ("v2/repository/index", b""),
        ("v2/systemsharedmemory/status", b""),
    ]:
        ours, theirs = (ask(each, "vertex-ai", "POST", PREDICT["vertex-ai"], body, {REDIRECT: path}) for each in servers)
        if path == "v2":  # names, versions and extensions differ
            assert ours.status == theirs.status == 200
        elif path.endswith("/index"):
            assert sorted(map(str, ours.json())) == sorted(map(str, theirs.json()))
        elif theirs.status == 200 and not theirs.body:
            assert ours.status == 200
        else:
            assert told(ours) == told(theirs), path
    for path in ("v2/models/stats", "v2/models/other/stats", "metrics"):
        ours, theirs = (ask(each, "vertex-ai", "POST", PREDICT["vertex-ai"], b"", {REDIRECT: path}) for each in servers)
        assert ours.status == theirs.status == 200
    for path in ("", "v2/", "/v2", "v3", "v2/nothing", "v2/logging", "v2/trace/setting", "v2/models/other/generate", "metrics/", "http://x/v2"):
        ours, theirs = (ask(each, "vertex-ai", "POST", PREDICT["vertex-ai"], b"", {REDIRECT: path}) for each in servers)
        assert ours.status == theirs.status == 400, path
    for method in ("GET", "DELETE", "PUT"):
        ours, theirs = (ask(each, "vertex-ai", method, PREDICT["vertex-ai"], None, {REDIRECT: "v2"}) for each in servers)
        assert ours.status == theirs.status == 405, method


@pytest.mark.parametrize(
    "path",
    [
        "v2/repository/models/other/unload",
        "v2/repository/models/other/load",
        "v2/repository/mine/models/other/load",
        "v2/systemsharedmemory/region/a/register",
        "v2/systemsharedmemory/unregister",
        "v2/cudasharedmemory/region/a/register",
    ],
)
def test_predictions_change_nothing(server: Server, path: str) -> None:
    """Later versions of the reference refuse it too: who may predict is not who may change the server."""
    answer = ask(server, "vertex-ai", "POST", PREDICT["vertex-ai"], b"{}", {REDIRECT: path})
    assert answer.status == 403
    assert "HTTP or gRPC port" in answer.json()["error"]


def test_restricted_interfaces_are_restricted_here_too(models: Path) -> None:
    """One place decides for every port (CVE-2026-24206, CVE-2026-24207)."""
    limits = {"http-restricted-api": "inference,model-repository,metadata:x-key=one"}
    with start(Nereid, models, limits) as running:
        for cloud in TYPES:
            assert ask(running, cloud, "POST", PREDICT[cloud], BODY).status == 403
            assert ask(running, cloud, "POST", PREDICT[cloud], BODY, {"x-key": "two"}).status == 403
            assert ask(running, cloud, "POST", PREDICT[cloud], BODY, {"x-key": "one"}).status == 200
            assert ask(running, cloud, "GET", HEALTH[cloud]).status == 200
        redirected = {REDIRECT: "v2/models/other"}
        assert ask(running, "vertex-ai", "POST", PREDICT["vertex-ai"], b"", redirected).status == 403
        assert ask(running, "vertex-ai", "POST", PREDICT["vertex-ai"], b"", redirected | {"x-key": "one"}).status == 200


def test_keys_are_asked_for_here_too(models: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("full-of-secrets-0123456789 all\nprobe-only-0123456789012 health\n")
    with start(Nereid, models, {"api-keys": str(keys)}).ready_when_it_says("server is ready") as running:
        running_key = {"Authorization": "Bearer full-of-secrets-0123456789"}
        probe = {"Authorization": "Bearer probe-only-0123456789012"}
        for cloud in TYPES:
            assert ask(running, cloud, "POST", PREDICT[cloud], BODY).status == 401
            assert ask(running, cloud, "POST", PREDICT[cloud], BODY, probe).status == 403
            assert ask(running, cloud, "POST", PREDICT[cloud], BODY, running_key).status == 200
            assert ask(running, cloud, "GET", HEALTH[cloud]).status == 401
            assert ask(running, cloud, "GET", HEALTH[cloud], None, probe).status == 200
        metrics = {REDIRECT: "metrics"}
        assert ask(running, "vertex-ai", "POST", PREDICT["vertex-ai"], b"", probe | metrics).status == 403


def test_they_are_counted(server: Server) -> None:
    ask(server, "sagemaker", "POST", "/invocations", BODY)
    ask(server, "vertex-ai", "GET", "/elsewhere")
    page = rawhttp.get(server.metrics, "/metrics").body.decode()
    assert 'nereid_requests_total{code="200",model="echo",protocol="sagemaker",route="infer"} ' in page
    assert 'nereid_requests_total{code="400",protocol="vertex",route="unknown"} ' in page


@pytest.mark.parametrize("inference", ["generate", "generate_stream"])
def test_what_invocations_do(inference: str, models: Path) -> None:
    """Named by the environment, as in later versions of the reference."""
    with start(Nereid, models, env={"SAGEMAKER_TRITON_INFERENCE_TYPE": inference}) as running:
        answer = ask(running, "sagemaker", "POST", "/invocations", b'{"INPUT0":[1,2]}')
    assert answer.status == 200
    assert answer.body.startswith(b"data: " if inference == "generate_stream" else b"{")
    assert b"OUTPUT0" in answer.body


@pytest.mark.reference
@pytest.mark.parametrize("mode", ["live", "ready", "else"])
def test_what_ping_tells(tmp_path: Path, mode: str) -> None:
    """A server that is not ready, as a model could not be loaded, is alive nevertheless."""
    made = Repository(tmp_path / "models")
    made.identity("echo")
    made.model("broken", 'backend: "of_nobody" input { name: "I" data_type: TYPE_FP32 dims: 1 } output { name: "O" data_type: TYPE_FP32 dims: 1 }')
    statuses = []
    for kind in KINDS.values():
        running = start(kind, made.path, {"exit-on-error": "false"}, {"SAGEMAKER_TRITON_PING_MODE": mode})
        with running.ready_when_it_says("server is ready" if kind is Nereid else "Started Metrics"):
            statuses.append(ask(running, "sagemaker", "GET", "/ping").status)
    assert statuses == ([200, 200] if mode == "live" else [400, 400])


@pytest.mark.reference
@pytest.mark.parametrize(
    ("options", "env", "words"),
    [
        ({"vertex-ai-default-model": "nobody"}, {}, "Expect the default model 'nobody' is loaded"),
        ({"vertex-ai-default-model": ""}, {}, "Expect the model repository contains only a single model if default model is not specified"),
        ({}, {"AIP_PREDICT_ROUTE": ""}, "_PREDICT_ROUTE"),
        ({}, {"AIP_HEALTH_ROUTE": ""}, "AIP_HEALTH_ROUTE"),
        ({"sagemaker-safe-port-range": "1-2"}, {}, r"a port from 1 to 2|port range is \[1, 2\]"),
    ],
)
def test_starts_that_fail(models: Path, options: dict[str, str], env: dict[str, str], words: str) -> None:
    for kind in KINDS.values():
        running = start(kind, models, options, env)
        running.ready = lambda: False  # type: ignore[method-assign]
        with pytest.raises(ServerFailed) as failed:
            running.start()
        assert "ended with status" in str(failed.value)
        assert re.search(words, str(failed.value))


def test_a_container_of_vertex(models: Path, tmp_path: Path) -> None:
    """The environment says everything: no HTTP, no gRPC, one model."""
    made = Repository(tmp_path / "models")
    made.identity("echo")
    port = ports.free_port()
    env = {"AIP_MODE": "PREDICTION", "AIP_HTTP_PORT": str(port), "AIP_STORAGE_URI": str(made.path)}
    running = Nereid([], {"vertex-ai-port": str(port)}, env=os.environ | ENVIRONMENT | env)
    with running.ready_when_it_says("server is ready"):
        assert ask(running, "vertex-ai", "POST", PREDICT["vertex-ai"], BODY).status == 200
        for closed in (running.http_port, running.grpc_port):
            with pytest.raises(ConnectionRefusedError):
                rawhttp.Connection(HOST, closed)


def test_bodies_that_come_in_pieces(server: Server) -> None:
    """What a header redirects to stays known while chunks and trailers come."""
    with rawhttp.Connection(HOST, int(str(server.options["vertex-ai-port"]))) as connection:
        for _ in range(3):
            connection.send(rawhttp.head("POST", PREDICT["vertex-ai"], {REDIRECT: "v2/models/other/infer", "Transfer-Encoding": "chunked"}))
            for at in range(0, len(BODY), 7):
                piece = BODY[at : at + 7]
                connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            connection.send(b"0\r\n" + b"".join(b"X-Trailer-%d: %b\r\n" % (i, b"t" * 300) for i in range(40)) + b"\r\n")
            answer = connection.answer()
            assert answer.status == 200
            assert answer.json()["model_name"] == "other"


@pytest.mark.parametrize("cloud", TYPES)
def test_what_nobody_should_send(server: Server, cloud: str) -> None:
    """Each is answered with an error, and the next request as ever."""
    long = "x" * 60000
    no_model = 404 if cloud == "sagemaker" else 400  # the other has no such pages
    for method, path, headers, status in [
        ("POST", PREDICT[cloud], {"Content-Type": TYPES[cloud] + "9" * 200}, 400),
        ("POST", PREDICT[cloud], {"Content-Type": TYPES[cloud] + "-9223372036854775808"}, 400),
        ("POST", PREDICT[cloud], {"Content-Type": TYPES[cloud] * 2 + "1"}, 400),
        ("POST", PREDICT[cloud], {"Content-Type": long + TYPES[cloud]}, 400),
        ("POST", "/models//invoke", {}, 400),
        ("POST", "/models/%2e%2e/invoke", {}, no_model),
        ("POST", "/models/../invoke", {}, no_model),
        ("POST", "/models/" + long[:16000] + "/invoke", {}, no_model),
        ("GET", "/models", {REDIRECT: long}, 400) if cloud == "vertex-ai" else ("GET", "/modelsx", {}, 400),
        ("GET", "/model", {}, 400),
        ("DELETE", "/models/", {}, 400),
        ("DELETE", "/", {}, 400),
    ]:
        body = None if method != "POST" else BODY
        assert ask(server, cloud, method, path, body, headers).status == status, (method, path[:40], headers)
    for path, status in [
        (long, 400),
        ("v2/models/" + long + "/infer", 404),
        ("v2/models/other/versions/" + "9" * 40000 + "/infer", 400),
        ("v2/models/%6fther", 404),
        ("v2/../metrics", 400),
        ("\x80\xff", 400),
    ]:
        answer = ask(server, "vertex-ai", "POST", PREDICT["vertex-ai"], BODY, {REDIRECT: path})
        assert answer.status == status, path[:40]
    assert ask(server, cloud, "POST", PREDICT[cloud], BODY).status == 200


def test_what_is_under_way_is_answered_when_the_server_stops(board: Board, backend: Path) -> None:  # noqa: F811
    """At both ports, without one waiting for the other."""
    board.model("slow", gated=True)
    options = {"backend-directory": str(backend), "vertex-ai-default-model": "slow", "inline-execution": "false"}
    running = start(Nereid, board.repository.path, options, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "slow"}).start()

    def both_wait() -> bool:
        page = rawhttp.get(running.metrics, "/metrics").body.decode()
        return all(f'nereid_requests_in_flight{{protocol="{name}"}} 1' in page for name in ("sagemaker", "vertex"))

    try:
        connections = [rawhttp.Connection(HOST, int(str(running.options[f"{cloud}-port"]))) for cloud in TYPES]
        for connection, cloud in zip(connections, TYPES, strict=True):
            connection.send(rawhttp.head("POST", PREDICT[cloud], body=witness.BODY) + witness.BODY)
        running.process.wait_until(both_wait, 30)
        running.process.terminate()
        running.process.wait_until(lambda: "stopping" in running.process.log(), 30)
        board.open_gate()
        assert [connection.answer().status for connection in connections] == [200, 200]
        for connection in connections:
            connection.close()
        running.process.ends(0)
    finally:
        running.kill()


@pytest.mark.parametrize("turn", range(4))  # the moment is short
def test_whoever_is_ready_predicts(turn: int, board: Board, backend: Path) -> None:  # noqa: F811
    """The model that Vertex AI's predictions are for is chosen before health says that the server is ready, not shortly after it."""
    board.model("late", kept_out=True)
    options = {"vertex-ai-default-model": "late", "backend-directory": str(backend), "loop-threads": "64"}
    options |= {"reuse-http-port": "true", "reuse-grpc-port": "true"}  # opened when the server is ready, for each loop
    running = start(Nereid, board.repository.path, options).ready_when_it_says("server is ready")
    running.wait_ready = False
    both = rawhttp.head("GET", HEALTH["vertex-ai"]) + rawhttp.head("POST", PREDICT["vertex-ai"], None, BODY) + BODY
    with running, ThreadPoolExecutor() as pool:
        running.process.wait_until(lambda: listens(int(str(running.options["vertex-ai-port"]))), 60)
        with rawhttp.Connection(HOST, int(str(running.options["vertex-ai-port"]))) as connection:
            answers = pool.submit(_all_received, connection)  # its loop is never without a question
            asked = pool.submit(_send_until, running.ready, connection, both * 200)
            board.open_door()
            asked.result(60)
            connection.socket.shutdown(socket.SHUT_WR)
            statuses = re.findall(rb"HTTP/1.1 ([0-9]+)", answers.result(60))
    told_ready = [predicted for health, predicted in zip(statuses[::2], statuses[1::2], strict=True) if health == b"200"]
    assert len(told_ready) >= 200
    assert set(told_ready) == {b"400"}  # the model takes no FP32


def _send_until(over: Callable[[], bool], connection: rawhttp.Connection, questions: bytes) -> None:
    while not over():
        connection.send(questions)
    connection.send(questions)


def _all_received(connection: rawhttp.Connection) -> bytes:
    return b"".join(iter(lambda: connection.socket.recv(1 << 20), b""))


def test_keys_are_asked_for_before_the_models_are_loaded(board: Board, backend: Path) -> None:  # noqa: F811
    board.model("late", kept_out=True)
    options = {"vertex-ai-default-model": "late", "backend-directory": str(backend), "http-restricted-api": "inference:x-key=one"}
    running = start(Nereid, board.repository.path, options)
    running.wait_ready = False
    with running:
        running.process.wait_until(lambda: listens(int(str(running.options["vertex-ai-port"]))), 60)
        assert ask(running, "vertex-ai", "POST", PREDICT["vertex-ai"], BODY).status == 403
        early = ask(running, "vertex-ai", "POST", PREDICT["vertex-ai"], BODY, {"x-key": "one"})
        assert (early.status, early.json()["error"]) == (503, "the models are still being loaded")
        board.open_door()
        running.process.wait_until(running.ready, 60)
        assert ask(running, "vertex-ai", "POST", PREDICT["vertex-ai"], BODY, {"x-key": "one"}).status == 400
