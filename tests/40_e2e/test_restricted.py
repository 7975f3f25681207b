"""Restricted interfaces and forwarded headers: the same questions to both servers."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from harness import h2frames as h2
from harness import rawgrpc, rawhttp
from harness.process import ServerFailed
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server
from witness import compile_backend

CATEGORIES = [
    "health",
    "metadata",
    "inference",
    "shared-memory",
    "model-config",
    "model-repository",
    "statistics",
    "trace",
    "logging",
]
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'
# What belongs to which category; the shared memory, trace and logging routes are asked with a wrong method besides.
ROUTES = [
    ("GET", "/v2/health/live"),
    ("GET", "/v2/health/ready"),
    ("GET", "/v2/models/id_fp32/ready"),
    ("GET", "/v2"),
    ("GET", "/v2/models/id_fp32"),
    ("GET", "/v2/models/nobody"),
    ("POST", "/v2/models/id_fp32/infer"),
    ("GET", "/v2/models/id_fp32/infer"),
    ("GET", "/v2/models/id_fp32/config"),
    ("POST", "/v2/repository/index"),
    ("POST", "/v2/repository/models/id_fp32/load"),
    ("GET", "/v2/models/stats"),
    ("GET", "/v2/models/id_fp32/stats"),
    ("GET", "/nothing"),
]
METHODS = [
    "ServerLive",
    "ServerReady",
    "ModelReady",
    "ServerMetadata",
    "ModelMetadata",
    "ModelConfig",
    "ModelStatistics",
    "RepositoryIndex",
    "RepositoryModelLoad",
    "ModelInfer",
    "SystemSharedMemoryStatus",
    "TraceSetting",
    "LogSettings",
]
RESTRICTED = {
    "http-restricted-api": [f"{','.join(CATEGORIES[:4])}:x-key=one", f"{','.join(CATEGORIES[4:])}:x-other=a=b"],
    "grpc-restricted-protocol": [f"{','.join(CATEGORIES[:4])}:x-key=one", f"{','.join(CATEGORIES[4:])}:x-other=a=b"],
}
KEYS: list[dict[str, str]] = [
    {},
    {"x-key": "one", "x-other": "a=b"},
    {"x-key": "one"},
    {"x-other": "a=b"},
    {"x-key": "ONE", "x-other": "a"},
    {"x-key": "onetwo", "x-other": ""},
    {"x-key": "on", "x-other": "a=b."},
]


def open_servers(identity_repository: Path) -> Iterator[list[Server]]:
    # Health is restricted: readiness is read from the log.
    made = [kind(identity_repository, RESTRICTED).ready_when_it_says("Started Metrics") for kind in KINDS.values()]
    with made[0], made[1]:
        for server in made:
            server.process.wait_until(lambda server=server: rawhttp_ready(server), 180)  # type: ignore[misc]
        yield made


def rawhttp_ready(server: Server) -> bool:
    try:
        return http(server, "GET", "/v2/health/ready", {"x-key": "one"})[0] == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def servers(identity_repository: Path) -> Iterator[list[Server]]:
    yield from open_servers(identity_repository)


def http(server: Server, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
    body = BODY if path.endswith("/infer") else b""
    with rawhttp.Connection(HOST, server.http_port) as connection:
        connection.send(rawhttp.head(method, path, headers, body) + body)
        answer = connection.answer()
        return answer.status, answer.body


def grpc_call(server: Server, method: str, headers: dict[str, str]) -> tuple[str, str]:
    request = b""
    if method.startswith("Model"):
        request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], bytes(4))]).SerializeToString()
        if method != "ModelInfer":
            request = b"\x0a\x07id_fp32"
    metadata = [(f"triton-grpc-protocol-{name}", value) for name, value in headers.items()]
    with grpc.insecure_channel(server.grpc) as channel:
        try:
            channel.unary_unary(f"/{rawgrpc.SERVICE}/{method}")(request, metadata=metadata, timeout=60)
        except grpc.RpcError as error:
            return error.code().name, error.details()  # type: ignore[attr-defined]
    return "OK", ""


@pytest.mark.reference
@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_http(servers: list[Server], keys: dict[str, str]) -> None:
    for method, path in ROUTES:
        ours, theirs = (http(server, method, path, keys) for server in servers)
        assert ours[0] == theirs[0], (method, path)
        if theirs[0] == 403:
            assert ours == theirs, (method, path)


@pytest.mark.reference
@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_grpc(servers: list[Server], keys: dict[str, str]) -> None:
    for method in METHODS:
        ours, theirs = (grpc_call(server, method, keys) for server in servers)
        restricted = "restricted" in theirs[1]
        assert ("restricted" in ours[1]) == restricted, (method, ours, theirs)
        if restricted:
            assert ours == theirs, method


def test_every_route_asks(identity_repository: Path) -> None:
    """Nothing of an interface is reachable without its header, whatever method, case or connection it comes by."""
    with Nereid(identity_repository, RESTRICTED).ready_when_it_says("Started Metrics") as server:
        server.process.wait_until(lambda: "server is ready" in server.process.log(), 180)
        known = [route for route in ROUTES if route[1] != "/nothing"]
        known += [("POST", path) for path in ("/v2/logging", "/v2/trace/setting", "/v2/models/id_fp32/generate")]
        known += [("GET", "/v2/systemsharedmemory/status"), ("PUT", "/v2/models/id_fp32/infer")]
        known += [("GET", "/v2?x=y"), ("GET", "http://x/v2/health/live"), ("HEAD", "/v2/models/id_fp32/config")]
        with rawhttp.Connection(HOST, server.http_port) as connection:
            for method, path in known:
                connection.send(rawhttp.head(method, path))
                assert connection.answer(to_head=method == "HEAD").status == 403, (method, path)
            for name in ("X-Key", "x-kEY"):
                connection.send(rawhttp.head("GET", "/v2/health/live", {name: "one"}))
                assert connection.answer().status == 200
        for method in METHODS:
            assert grpc_call(server, method, {})[0] == "UNAVAILABLE"
        assert grpc_call(server, "ServerLive", {"x-key": "one"})[0] == "OK"
        assert rawhttp.get(server.metrics, "/metrics").status == 200


WRONG = [
    ("http-restricted-api", "health", "<category>"),
    ("http-restricted-api", "health:key", "<category>"),
    ("http-restricted-api", "health:=value", "<category>"),
    ("http-restricted-api", "healthy:a=b", "'healthy'"),
    ("grpc-restricted-protocol", "health,health:a=b", "restricted twice"),
    ("http-header-forward-pattern", "a(b", "at character"),
    ("grpc-header-forward-pattern", "*", "regular expression"),
    ("grpc-infer-response-compression-level", "most", "none, low, medium or high"),
]


@pytest.mark.parametrize(("option", "value", "said"), WRONG)
def test_wrong_values(identity_repository: Path, option: str, value: str, said: str) -> None:
    with pytest.raises(ServerFailed) as error, Nereid(identity_repository, {option: value}):
        pass
    assert "ended with status 1 before it was ready" in str(error.value)
    assert f"--{option}" in str(error.value) and said in str(error.value)


# Forwarded headers. One that must not be forwarded is refused, which tells that the pattern took it.

PATTERNS = ["^time", "TIMEOUT", "(priority|triton_x)", ".*", "nothing", "[a-z]imeout$", "t", "(?-i)PRIO"]
RESERVED = ["timeout", "priority", "triton_x", "sequence_id"]
FREE = ["x-timeout", "my_header"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_which_headers_are_forwarded(identity_repository: Path, pattern: str) -> None:
    options: dict[str, str | list[str]] = {"http-header-forward-pattern": pattern, "grpc-header-forward-pattern": pattern}
    request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], bytes(4))]).SerializeToString()
    expression = re.compile(pattern.removeprefix("(?-i)"), 0 if pattern.startswith("(?-i)") else re.IGNORECASE)
    with Nereid(identity_repository, options) as server, grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(f"/{rawgrpc.SERVICE}/ModelInfer")
        for name in RESERVED + FREE:
            taken = name in RESERVED and expression.search(name)
            message = f"Header '{name}' is reserved for Triton usage and cannot be forwarded."
            status, body = http(server, "POST", "/v2/models/id_fp32/infer", {name: "1"})
            assert (status, message in body.decode()) == ((400, True) if taken else (200, False)), name
            try:
                call(request, metadata=[(name, "1")], timeout=60)
                assert not taken, name
            except grpc.RpcError as error:
                assert taken, name
                assert error.code() == grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]
                assert error.details() == message  # type: ignore[attr-defined]


# Headers as they are on the wire: several of one name, and blanks around values.


def send_http(server: Server, path: str, headers: list[tuple[str, str]], body: bytes) -> rawhttp.Answer:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
    with rawhttp.Connection(HOST, server.http_port) as connection:
        connection.send(head.encode() + body)
        return connection.answer()


def send_grpc(server: Server, headers: list[tuple[str, str]], request: bytes) -> h2.Call:
    block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelInfer") + headers)
    with h2.Connection(server.grpc) as connection:
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block))
        connection.send(h2.frame(h2.DATA, h2.END_STREAM, 1, h2.message(request)))
        while 1 not in connection.calls or not (connection.calls[1].ended or connection.calls[1].reset is not None):
            connection.read()
        return connection.calls[1]


# Values of the key, in order; whether they may pass, and whether the reference, which looks at the first alone, says otherwise.
SEVERAL: list[tuple[list[str], bool, bool]] = [
    (["one"], True, False),
    (["one", "one"], True, False),
    (["one "], False, False),
    (["one\t"], False, False),
    (["two", "one"], False, False),
    (["", "one"], False, False),
    (["two", "two"], False, False),
    (["one, one"], False, False),
    (["one", "two"], False, True),
    (["one", ""], False, True),
    (["one", "two", "one"], False, True),
]


@pytest.mark.reference
@pytest.mark.parametrize(("keys", "may", "differs"), SEVERAL, ids=str)
def test_several_keys(servers: list[Server], keys: list[str], may: bool, differs: bool) -> None:
    """Both protocols let a request pass when every key that it has is right."""
    request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], bytes(4))]).SerializeToString()
    for server in servers:
        passes = may != (differs and server.kind == "reference")
        answer = send_http(server, "/v2/models/id_fp32/infer", [("X-Key", key) for key in keys], BODY)
        assert answer.status == (200 if passes else 403), server.kind
        call = send_grpc(server, [("triton-grpc-protocol-x-key", key) for key in keys], request)
        assert call.trailers["grpc-status"] == ("0" if passes else "14"), server.kind


@pytest.fixture(scope="module")
def tellers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """Servers whose model answers with the headers that were forwarded to it."""
    folder = tmp_path_factory.mktemp("tellers")
    library = compile_backend(folder / "backends", "params") / "params" / "libtriton_params.so"
    repository = Repository(folder / "models")
    config = 'name: "params"\nbackend: "params"\ninput [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
    config += 'output [ { name: "TEXT" data_type: TYPE_STRING dims: [ -1 ] } ]\n'
    shutil.copy(library, repository.model("params", config) / library.name)
    options: dict[str, str | list[str]] = {"http-header-forward-pattern": "x-.*", "grpc-header-forward-pattern": "x-.*"}
    made = [kind(repository.path, options) for kind in KINDS.values()]
    with made[0], made[1]:
        yield made


BLANKS = [
    [("x-a", "one ")],
    [("x-a", "one\t")],
    [("x-a", "one \t ")],
    [("x-a", "a  b ")],
    [("x-a", "1"), ("x-a", "2 ")],
    [("x-a", " "), ("x-b", "2")],
]


@pytest.mark.reference
@pytest.mark.parametrize("headers", BLANKS, ids=str)
def test_blanks_reach_the_model(tellers: list[Server], headers: list[tuple[str, str]]) -> None:
    """At the end over HTTP, where those in front belong to the line; on both sides over gRPC."""
    body = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1],"data":[1]}]}'
    request = rawgrpc.infer_request("params", [("IN", "FP32", [1], bytes(4))]).SerializeToString()
    if headers[0][1].strip():
        ours, theirs = (send_http(server, "/v2/models/params/infer", headers, body) for server in tellers)
        assert ours.status == theirs.status == 200
        assert json.loads(ours.body)["outputs"] == json.loads(theirs.body)["outputs"]
        assert sorted(json.loads(ours.body)["outputs"][0]["data"]) == sorted(f"{name}={value}" for name, value in headers)
    around = [(name, f" {value}") for name, value in headers]
    for sent in (headers, around):
        ours_too, theirs_too = (send_grpc(server, sent, request) for server in tellers)
        assert ours_too.reset is None and ours_too.trailers["grpc-status"] == "0"
        assert ours_too.messages() == theirs_too.messages()
        for name, value in sent:
            assert f"{name}={value}".encode() in ours_too.messages()[0]
