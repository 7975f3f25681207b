"""The logging extension: the same requests, one after the other, to both servers; and what is ours: components, all or nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc
import tritonclient.http
from google.protobuf.json_format import MessageToDict
from harness import rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid, Reference, Server
from tritonclient.grpc import service_pb2 as pb

PATH = "/v2/logging"
DEFAULT = {
    "log_file": "",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}
Wish = dict[str, bool | int | str | None]


def _post(server: Server, body: bytes | Wish) -> tuple[int, Any]:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    got = rawhttp.request(HOST, server.http_port, "POST", PATH, sent)
    assert got.header("Content-Type") == "application/json"
    return got.status, got.json()


def _get(server: Server) -> Any:
    return rawhttp.get(server.http, PATH).json()


def _request(wish: Wish) -> pb.LogSettingsRequest:
    made = pb.LogSettingsRequest()
    for key, value in wish.items():
        setting = pb.LogSettingsRequest.SettingValue()
        if isinstance(value, bool):
            setting.bool_param = value
        elif isinstance(value, int):
            setting.uint32_param = value
        elif value is not None:
            setting.string_param = value
        made.settings[key].CopyFrom(setting)
    return made


def _call(server: Server, request: pb.LogSettingsRequest | bytes) -> tuple[str, Any]:
    with rawgrpc.Channel(server.grpc) as channel:
        got = channel.call("LogSettings", request)
    if got.code != "OK":
        return got.code, got.details
    return got.code, MessageToDict(pb.LogSettingsResponse.FromString(got.body))


# In this order: what one of them changes, the next ones tell.
BODIES: list[bytes] = [
    b"",
    b"{}",
    b"null",
    b"[]",
    b"5",
    b'{"log_file":"/tmp/x"}',
    b'{"log_file":""}',
    b'{"log_file":5}',
    b'{"log_file":null}',
    b'{"log_info":false}',
    b'{"log_info":null}',
    b'{"log_info":"x"}',
    b'{"log_info":1}',
    b'{"log_info":true,"log_info":false}',
    b'{"log_warning":[]}',
    b'{"log_error":{}}',
    b'{"log_warning":false,"log_error":false}',
    b'{"log_warning":true,"log_error":true,"nothing":7,"log_warnings":5}',
    b'{"log_verbose_level":2}',
    b'{"log_verbose_level":-1}',
    b'{"log_verbose_level":1.0}',
    b'{"log_verbose_level":"1"}',
    b'{"log_verbose_level":true}',
    b'{"log_verbose_level":2147483647}',
    b'{"log_verbose_level":2147483648}',
    b'{"log_verbose_level":4294967295}',
    b'{"log_verbose_level":4294967298}',
    b'{"log_verbose_level":18446744073709551615}',
    b'{"log_verbose_level":18446744073709551616}',
    b'{"log_format":"ISO8601"}',
    b'{"log_format":"iso8601"}',
    b'{"log_format":""}',
    b'{"log_format":"a\\"b"}',
    b'{"log_format":5}',
    b'{"log_format":null}',
    b'{"log_format":"bad","log_file":"x"}',
    b'{"log_info":5,"log_format":"bad"}',
    b'{"log_format":"default"}',
]
WISHES: list[Wish] = [
    {},
    {"log_file": "x"},
    {"log_file": None},
    {"log_info": "x"},
    {"log_info": None},
    {"log_info": 1},
    {"log_info": False},
    {"log_warning": False, "log_error": False, "nothing": 5},
    {"log_warning": True, "log_error": True, "log_info": True},
    {"log_warning": "x"},
    {"log_error": 0},
    {"log_verbose_level": "x"},
    {"log_verbose_level": True},
    {"log_verbose_level": 7},
    {"log_verbose_level": 2147483648},
    {"log_verbose_level": 4294967295},
    {"log_verbose_level": 0},
    {"log_format": 5},
    {"log_format": "bad"},
    {"log_format": ""},
    {"log_format": "ISO8601"},
    {"log_format": "bad", "log_file": "x"},
    {"log_format": "default"},
]


@pytest.mark.reference
def test_as_the_reference(repository: Repository) -> None:
    answers: list[list[Any]] = []
    for kind in (Nereid, Reference):
        with kind(repository.path) as server:
            told: list[Any] = [("GET", _get(server))]
            told += [(body, _post(server, body)) for body in BODIES]
            told += [(wish, _call(server, _request(wish))) for wish in WISHES]
            told += [("GET", _get(server)), (b"\x80", _call(server, b"\x80"))]
        answers.append(told)
    for ours, theirs in zip(*answers, strict=True):
        assert ours == theirs


def test_what_is_changed_is_followed_at_once(repository: Repository) -> None:
    """Lines of a level that was switched off do not come, others do, in the form that was wished for, by HTTP and by gRPC."""
    with Nereid(repository.path) as server, rawgrpc.Channel(server.grpc) as channel:

        def lines() -> list[str]:
            """That of a call that fails (verbose, of grpc), and that of a model that cannot be loaded (error)."""
            before = server.process.log_path.stat().st_size
            channel.call("ModelInfer", rawgrpc.infer_request("nobody", []))
            repository.model("odd", 'backend: "nosuchbackend"\n')
            rawhttp.post(server.http, "/v2/repository/models/odd/load", {})
            return server.process.log(offset=before).splitlines()

        verbose: Callable[[list[str]], bool] = lambda found: any("ModelInfer" in line for line in found)  # noqa: E731
        assert not verbose(lines())
        assert _post(server, {"log_verbose_level": 1}) == (200, DEFAULT | {"log_verbose_level": 1})
        assert verbose(lines())
        assert _call(server, _request({"log_verbose_level": 0}))[0] == "OK"
        assert not verbose(lines())
        assert _post(server, {"log_component": "grpc=1"}) == (200, DEFAULT | {"log_component": "grpc=1"})
        assert verbose(lines())
        assert _post(server, {"log_verbose_level": 5, "log_component": "grpc=0", "log_format": "json"})[0] == 200
        found = [json.loads(line) for line in lines()]
        assert not verbose([line["message"] for line in found])
        everything = {"log_info": True, "log_verbose_level": 0, "log_component": "", "log_format": "default"}
        assert _post(server, json.dumps(everything).encode()) == (200, DEFAULT)


def test_components(repository: Repository, tmp_path: Path) -> None:
    """Told only where one has a level of its own; what is told can be sent again; a wish says all of them."""
    log = str(tmp_path / "log")
    with Nereid(repository.path, {"log-component": ["repo=2", "http=1"], "log-file": log}) as server:
        start = DEFAULT | {"log_file": log, "log_component": "http=1,repo=2"}
        assert _get(server) == start
        assert _post(server, {"log_component": "http=1,repo=2"}) == (200, start)
        code, told = _call(server, _request({"log_component": "grpc=3"}))
        assert code == "OK"
        assert told["settings"]["log_component"] == {"stringParam": "grpc=3"}
        status, body = _post(server, {"log_component": "nobody=1"})
        assert status == 400
        assert body["error"].startswith("log_component: no component 'nobody', there are abi, ")
        assert _post(server, {"log_component": "grpc"}) == (
            400,
            {"error": "log_component: component 'grpc': expected <component>=<level>"},
        )
        assert _post(server, b'{"log_component":5}')[0] == 500
        assert _call(server, _request({"log_component": 5})) == (
            "INVALID_ARGUMENT",
            "expect string for 'log_component'",
        )
        assert _get(server)["log_component"] == "grpc=3"
        assert "log_component" not in _post(server, {"log_component": ""})[1]


def test_all_or_nothing(repository: Repository) -> None:
    with Nereid(repository.path) as server:
        assert _post(server, {"log_info": False, "log_format": "bad"})[0] == 503
        assert _post(server, {"log_info": False, "log_component": "bad"})[0] == 400
        assert _call(server, _request({"log_error": False, "log_format": "bad"}))[0] == "INVALID_ARGUMENT"
        assert _get(server) == DEFAULT


def test_clients_as_they_are(repository: Repository) -> None:
    with Nereid(repository.path) as server:
        http = tritonclient.http.InferenceServerClient(server.http)
        assert http.get_log_settings() == DEFAULT
        wished = {"log_info": False, "log_verbose_level": 1, "log_component": "http=2"}
        assert http.update_log_settings(wished) == DEFAULT | wished
        assert http.update_log_settings({"log_component": ""}) == DEFAULT | {"log_info": False, "log_verbose_level": 1}
        http.close()
        with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
            assert not client.get_log_settings().settings["log_info"].bool_param
            told = client.update_log_settings({"log_info": True, "log_verbose_level": 0})
            assert told.settings["log_info"].bool_param
        assert _get(server) == DEFAULT
        page = rawhttp.get(server.metrics, "/metrics").body.decode()
        assert 'route="logging"' in page


def test_restricted(repository: Repository) -> None:
    options = {"http-restricted-api": "logging:k=v", "grpc-restricted-protocol": "logging:k=v"}
    with Nereid(repository.path, options) as server:  # type: ignore[arg-type]
        got = rawhttp.request(HOST, server.http_port, "POST", PATH, b'{"log_info":false}')
        assert (got.status, got.json()["error"]) == (403, "This API is restricted, expecting header 'k'")
        code, details = _call(server, _request({"log_info": False}))
        assert (code, details) == ("UNAVAILABLE", "This protocol is restricted, expecting header 'triton-grpc-protocol-k'")
        assert rawhttp.request(HOST, server.http_port, "GET", PATH, None, {"k": "v"}).json() == DEFAULT
