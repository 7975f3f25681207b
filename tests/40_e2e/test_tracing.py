"""Traces: settings, asked of both servers one after the other; and what is written, read as the reference's trace_summary.py does."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from google.protobuf.json_format import MessageToDict
from harness import rawgrpc, rawhttp
from harness.ensembles import chain
from harness.repository import Repository
from harness.servers import HOST, Nereid, Reference, Server
from tritonclient.grpc import service_pb2 as pb

ALL = "/v2/trace/setting"
ONE = "/v2/models/one/trace/setting"

COMPUTE = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
CORE = ["REQUEST_START", "QUEUE_START", *COMPUTE, "REQUEST_END"]
HTTP = ["HTTP_RECV_START", "HTTP_RECV_END", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END"]
GRPC = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "INFER_RESPONSE_COMPLETE", "GRPC_SEND_START", "GRPC_SEND_END"]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "models")
    made.identity("one")
    made.identity("id")
    made.identity("words", datatype="BYTES")
    made.model("two", chain("two", ["id", "id"]).config())
    return made


def _config(path: Path, *more: str) -> dict[str, str | list[str]]:
    return {"trace-config": [f"triton,file={path}", "level=TIMESTAMPS", "rate=1", *more]}


def _infer(server: Server, model: str = "one", data: list[Any] | None = None, request_id: str = "") -> None:
    datatype = "BYTES" if model == "words" else "FP32"
    values = data or [1.5, 2.0]
    sent: dict[str, Any] = {
        "inputs": [{"name": "IN" if model == "two" else "INPUT0", "datatype": datatype, "shape": [len(values)], "data": values}]
    }
    if request_id:
        sent["id"] = request_id
    assert rawhttp.post(server.http, f"/v2/models/{model}/infer", sent).status == 200


def _count_so_far(path: Path) -> int:
    """Of traces in a file that is perhaps being written."""
    try:
        return len(_traces(path))
    except (FileNotFoundError, json.JSONDecodeError):
        return 0


def _traces(path: Path) -> dict[int, dict[str, Any]]:
    """By number, in order: what is told of a trace, its times by name, its tensors, put together as trace_summary.py does."""
    traces: dict[int, dict[str, Any]] = {}
    for told in json.loads(path.read_text()):
        trace = traces.setdefault(told["id"], {"times": {}, "tensors": []})
        for each in told.get("timestamps", []):
            trace["times"][each["name"]] = each["ns"]
        if "activity" in told:
            trace["tensors"].append((told["activity"], told["tensor"]))
        trace.update({key: value for key, value in told.items() if key not in ("id", "timestamps", "activity", "tensor")})
    return dict(sorted(traces.items()))  # a trace ends behind its answer, so the next one may be written first


def _post(server: Server, path: str, body: bytes | dict[str, Any]) -> tuple[int, Any]:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    got = rawhttp.request(HOST, server.http_port, "POST", path, sent)
    return got.status, got.json()


def _set(server: Server, path: str, **values: Any) -> dict[str, Any]:
    status, body = _post(server, path, values)
    assert status == 200, body
    return body


def _call(server: Server, model: str, settings: dict[str, list[str]]) -> tuple[str, Any]:
    request = pb.TraceSettingRequest(model_name=model)
    for key, values in settings.items():
        request.settings[key].value.extend(values)
    with rawgrpc.Channel(server.grpc) as channel:
        got = channel.call("TraceSetting", request)
    if got.code != "OK":
        return got.code, got.details
    return got.code, MessageToDict(pb.TraceSettingResponse.FromString(got.body))


# In this order: what one of them changes, the next ones tell.
ASKED: list[tuple[str, bytes]] = [
    *(
        (ALL, body)
        for body in (
            b"",
            b"{}",
            b"null",
            b"[]",
            b"5",
            b'{"trace_file":null}',
            b'{"trace_file":"/tmp/x"}',
            b'{"trace_level":"OFF"}',
            b'{"trace_level":5}',
            b'{"trace_level":[5]}',
            b'{"trace_level":["OFF","TIMESTAMPS"]}',
            b'{"trace_level":["TIMESTAMPS","OFF"]}',
            b'{"trace_level":[]}',
            b'{"trace_level":["off"]}',
            b'{"trace_level":["TIMESTAMPS","nothing","TENSORS"]}',
            b'{"trace_level":null}',
            b'{"trace_rate":"0"}',
            b'{"trace_rate":5}',
            b'{"trace_rate":"x"}',
            b'{"trace_rate":""}',
            b'{"trace_rate":["3"]}',
            b'{"trace_rate":" 7x"}',
            b'{"trace_rate":"+8"}',
            b'{"trace_rate":"1e3"}',
            b'{"trace_rate":"0x10"}',
            b'{"trace_rate":"-3"}',
            b'{"trace_rate":"2147483647"}',
            b'{"trace_rate":"2147483648"}',
            b'{"trace_rate":"99999999999999999999999"}',
            b'{"trace_rate":"7","trace_rate":"8"}',
            b'{"trace_count":"-2"}',
            b'{"trace_count":"0"}',
            b'{"trace_count":"x"}',
            b'{"trace_count":7}',
            b'{"trace_count":"2147483648"}',
            b'{"trace_count":"-2147483649"}',
            b'{"trace_count":"12"}',
            b'{"trace_count":"-1"}',
            b'{"log_frequency":"-2"}',
            b'{"log_frequency":"x"}',
            b'{"log_frequency":1}',
            b'{"log_frequency":"99999999999"}',
            b'{"log_frequency":"10"}',
            b'{"log_frequency":null}',
            b'{"trace_mode":"opentelemetry"}',
            b'{"nothing":1}',
            b'{"trace_rate":"9","trace_level":["nothing"],"trace_count":"x"}',
            b'{"trace_rate":"9","trace_file":"x"}',
            b'{"trace_level":null,"trace_rate":null,"trace_count":null}',
        )
    ),
    (ONE, b'{"trace_rate":"7"}'),
    (ONE, b"{}"),
    (ONE, b'{"trace_rate":"7","trace_count":"5","log_frequency":"3","trace_level":["TENSORS"]}'),
    (ONE, b'{"trace_rate":null}'),
    (ALL, b'{"trace_rate":"9","trace_level":["TENSORS","TIMESTAMPS"]}'),
    (ONE, b"{}"),
    (ALL, b'{"trace_level":["OFF"]}'),
    (ONE, b"{}"),
    (ALL, b'{"trace_rate":null,"trace_level":null}'),
    (ONE, b'{"trace_level":null,"trace_rate":null,"trace_count":null,"log_frequency":null}'),
    (ONE, b'{"trace_rate":"3","trace_level":null}'),
    (ALL, b'{"trace_rate":"4"}'),
    (ONE, b'{"trace_rate":null}'),
    ("/v2/models/nobody/trace/setting", b'{"trace_rate":"3"}'),
    ("/v2/models/one/versions/1/trace/setting", b"{}"),
]
CALLED: list[tuple[str, dict[str, list[str]]]] = [
    ("", {}),
    ("one", {}),
    ("nobody", {}),
    ("", {"trace_level": ["OFF", "TENSORS"]}),
    ("", {"trace_level": []}),
    ("", {"trace_level": ["", "x"]}),
    ("", {"trace_level": ["TENSORS"]}),
    ("", {"trace_rate": ["1", "2"]}),
    ("", {"trace_rate": ["x"]}),
    ("", {"trace_rate": [""]}),
    ("", {"trace_rate": ["0"]}),
    ("", {"trace_rate": ["99999999999"]}),
    ("", {"trace_rate": ["5"], "nothing": ["x"]}),
    ("", {"trace_count": ["1", "2"]}),
    ("", {"trace_count": ["-2"]}),
    ("", {"trace_count": ["x"]}),
    ("", {"trace_count": ["99999999999"]}),
    ("", {"trace_count": ["50"]}),
    ("", {"log_frequency": ["1", "2"]}),
    ("", {"log_frequency": ["-2"]}),
    ("", {"log_frequency": ["99999999999"]}),
    ("", {"log_frequency": ["6"]}),
    ("", {"trace_file": ["x"]}),
    ("", {"trace_file": []}),
    ("", {"trace_mode": ["opentelemetry"]}),
    ("one", {"trace_rate": ["2"], "trace_level": ["TIMESTAMPS", "TENSORS"]}),
    ("one", {"trace_rate": []}),
    ("one", {"trace_level": []}),
    ("", {"trace_rate": [], "trace_count": [], "log_frequency": []}),
]


@pytest.mark.reference
@pytest.mark.parametrize("traced", [True, False])
def test_settings_as_the_reference(repository: Repository, tmp_path: Path, traced: bool) -> None:
    """What is told and refused, in both protocols, where something is traced and where nothing was asked for at the start."""
    answers: list[list[Any]] = []
    file = tmp_path / "trace.json"
    options = _config(file, "count=4", "triton,log-frequency=2") if traced else {}
    for kind in (Nereid, Reference):
        with kind(repository.path, options) as server:
            told: list[Any] = [(path, rawhttp.get(server.http, path).json()) for path in (ALL, ONE)]
            for path, body in ASKED:
                got = rawhttp.request(HOST, server.http_port, "POST", path, body)
                told.append((path, body, got.status, got.json() if got.status != 404 else None))
            told += [(wish, _call(server, *wish)) for wish in CALLED]
            told.append(rawhttp.request(HOST, server.http_port, "PUT", ALL).status)
        answers.append(told)
    for ours, theirs in zip(*answers, strict=True):
        assert ours == theirs


def test_file(repository: Repository, tmp_path: Path) -> None:
    """A request of each protocol, with its times in order; the file is JSON while the server runs and after it."""
    file = tmp_path / "trace.json"
    with Nereid(repository.path, _config(file)) as server:
        _infer(server, request_id='a"b\\c')
        server.process.wait_until(lambda: _count_so_far(file) == 1, 60)
        with rawgrpc.Channel(server.grpc) as channel:
            sent = rawgrpc.infer_request("one", [("INPUT0", "FP32", [1], np.array([3], np.float32).tobytes())])
            assert channel.call("ModelInfer", sent).code == "OK"
    first, second = _traces(file).values()
    assert (first["model_name"], first["model_version"], first["request_id"]) == ("one", 1, 'a"b\\c')
    assert "request_id" not in second and "parent_id" not in second
    for trace, front in ((first, HTTP), (second, GRPC)):
        assert sorted(trace["times"]) == sorted(CORE + front)
        times = [trace["times"][name] for name in (*front[:2], *CORE[:2], *COMPUTE, *front[2:])]
        assert times == sorted(times)


@pytest.mark.parametrize("path", ["generate", "generate_stream"])
def test_generate(repository: Repository, tmp_path: Path, path: str) -> None:
    """The same times as those of other requests, each once."""
    file = tmp_path / "trace.json"
    with Nereid(repository.path, _config(file)) as server:
        assert rawhttp.post(server.http, f"/v2/models/one/{path}", {"INPUT0": 1}).status == 200
    (trace,) = _traces(file).values()
    assert sorted(trace["times"]) == sorted(CORE + HTTP)
    times = [trace["times"][name] for name in (*HTTP[:2], *CORE[:2], *COMPUTE, *HTTP[2:])]
    assert times == sorted(times)


def test_tensors(repository: Repository, tmp_path: Path) -> None:
    """Their contents, as the reference writes them, but as JSON; without times where only they are asked for."""
    file = tmp_path / "trace.json"
    options: dict[str, str | list[str]] = {"trace-config": [f"triton,file={file}", "level=TENSORS", "rate=1"]}
    with Nereid(repository.path, options) as server:
        _infer(server, data=[1.5, 2.0, 0.1])
        _infer(server, "words", ['x"y', "\u00e9"])
    numbers, words = _traces(file).values()
    assert not numbers["times"] and not words["times"]
    fp32 = {"data": "1.5,2,0.1", "shape": "3", "dtype": "FP32"}
    assert len(numbers["tensors"]) == 3
    assert dict(numbers["tensors"]) == {  # threads tell of them, in any order
        "TENSOR_QUEUE_INPUT": {"name": "INPUT0", **fp32},
        "TENSOR_BACKEND_INPUT": {"name": "INPUT0", **fp32},
        "TENSOR_BACKEND_OUTPUT": {"name": "OUTPUT0", **fp32},
    }
    assert dict(words["tensors"])["TENSOR_QUEUE_INPUT"] == {"name": "INPUT0", "data": '"x"y","\u00e9"', "shape": "2", "dtype": "BYTES"}


def test_ensembles_nest(repository: Repository, tmp_path: Path) -> None:
    """The steps of an ensemble are traces of their own, whose parent is that of the ensemble."""
    file = tmp_path / "trace.json"
    with Nereid(repository.path, _config(file)) as server:
        _infer(server, "two", request_id="r")
    traces = _traces(file)
    (top,) = (number for number, trace in traces.items() if trace["model_name"] == "two")
    steps = [trace for number, trace in traces.items() if number != top]
    assert [(each["model_name"], each["parent_id"]) for each in steps] == [("id", top)] * 2
    assert set(CORE) <= set(steps[0]["times"])
    assert traces[top]["times"]["REQUEST_START"] <= steps[0]["times"]["REQUEST_START"]
    assert steps[1]["times"]["REQUEST_END"] <= traces[top]["times"]["REQUEST_END"]


def test_streams(repository: Repository, tmp_path: Path) -> None:
    """Each request of a stream is a trace."""
    file = tmp_path / "trace.json"
    answered: list[Any] = []
    with Nereid(repository.path, _config(file)) as server:
        with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
            client.start_stream(lambda result, error: answered.append((result, error)))
            given = tritonclient.grpc.InferInput("INPUT0", [1], "FP32")
            given.set_data_from_numpy(np.array([1], np.float32))
            for number in range(3):
                client.async_stream_infer("one", [given], request_id=f"s{number}")
            client.stop_stream()
        assert [error for _, error in answered] == [None] * 3
    traces = _traces(file).values()
    assert sorted(each["request_id"] for each in traces) == ["s0", "s1", "s2"]
    assert all(sorted(each["times"]) == sorted(CORE + GRPC) for each in traces)


def test_rate_and_count(repository: Repository, tmp_path: Path) -> None:
    """Every third request, and no more than two of them: then they are in a file with a number, and the rest is told as 0."""
    file = tmp_path / "trace.json"
    with Nereid(repository.path, _config(file, "rate=3", "count=2")) as server:
        for number in range(12):
            _infer(server, request_id=f"r{number}")
        assert rawhttp.get(server.http, ALL).json()["trace_count"] == "0"
        numbered = file.with_name("trace.json.0")
        server.process.wait_until(lambda: _count_so_far(numbered) == 2, 60)
    assert [each["request_id"] for each in _traces(numbered).values()] == ["r2", "r5"]
    assert not file.exists()


def test_a_count_that_ran_out_is_in_the_way_of_no_change(repository: Repository, tmp_path: Path) -> None:
    """To set none is refused all the same, as by the reference."""
    with Nereid(repository.path, _config(tmp_path / "trace.json")) as server:
        for where in (ONE, ALL):
            assert _post(server, where, {"trace_count": "1"})[0] == 200
            for each in ("one", "two"):
                _infer(server, each)
            assert rawhttp.get(server.http, where).json()["trace_count"] == "0"
            assert _post(server, ALL, {"trace_rate": "5"})[0] == 200
            assert _post(server, ONE, {"log_frequency": "7"})[0] == 200
            assert _post(server, ALL, {"trace_count": "0"})[0] == 400
            assert _post(server, ALL, {"trace_rate": "1"})[0] == 200
            assert rawhttp.get(server.http, where).json()["trace_count"] == "0"


def test_frequency(repository: Repository, tmp_path: Path) -> None:
    """So many traces a file, each with the next number; at the end of the server those that are left."""
    file = tmp_path / "trace.json"
    with Nereid(repository.path, _config(file, "triton,log-frequency=2")) as server:
        for number in range(5):
            _infer(server, request_id=f"r{number}")
    written = {each.name: [trace["request_id"] for trace in _traces(each).values()] for each in tmp_path.glob("trace.json*")}
    assert {name: len(ids) for name, ids in written.items()} == {"trace.json.0": 2, "trace.json.1": 2, "trace.json.2": 1}
    # A trace ends behind the answer, so the next one may be faster.
    assert sorted(each for ids in written.values() for each in ids) == [f"r{number}" for number in range(5)]


def test_settings_of_one_model(repository: Repository, tmp_path: Path) -> None:
    """One model alone is traced, by a rate of its own, where nothing is otherwise; cleared, it is as the others again."""
    file = tmp_path / "trace.json"
    options: dict[str, str | list[str]] = {"trace-config": [f"triton,file={file}", "rate=1"]}
    with Nereid(repository.path, options) as server:
        _infer(server)
        assert _set(server, ONE, trace_level=["TIMESTAMPS"], trace_rate="2")["trace_rate"] == "2"
        assert rawhttp.get(server.http, ALL).json()["trace_level"] == ["OFF"]
        for number in range(4):
            _infer(server, request_id=f"r{number}")
            _infer(server, "id")
        assert _set(server, ONE, trace_level=None, trace_rate=None)["trace_level"] == ["OFF"]
        _infer(server)
    assert [(each["model_name"], each["request_id"]) for each in _traces(file).values()] == [("one", "r1"), ("one", "r3")]


def test_all_or_nothing(repository: Repository, tmp_path: Path) -> None:
    """What would leave one model with settings that are none is refused, and changes nothing; in the reference, half."""
    with Nereid(repository.path, _config(tmp_path / "trace.json", "level=off")) as server:
        _set(server, ONE, trace_level=["TIMESTAMPS"])
        before = [rawhttp.get(server.http, path).json() for path in (ALL, ONE)]
        status, body = _post(server, ALL, {"trace_rate": "0", "trace_count": "5"})
        assert (status, body["error"]) == (400, "Attempting to set invalid trace setting :sample rate must be non-zero")
        assert [rawhttp.get(server.http, path).json() for path in (ALL, ONE)] == before


def test_a_change_keeps_what_was_traced(repository: Repository, tmp_path: Path) -> None:
    """Traces belong to the settings that made them: when these are replaced they are written, and none is lost."""
    file = tmp_path / "trace.json"
    with Nereid(repository.path, _config(file, "triton,log-frequency=100")) as server:
        for number in range(3):
            _infer(server, request_id=f"r{number}")
        _set(server, ALL, trace_level=["OFF"])
        numbered = file.with_name("trace.json.0")
        server.process.wait_until(lambda: _count_so_far(numbered) == 3, 60)
        _infer(server, request_id="later")
    assert [each.name for each in tmp_path.glob("trace.json*")] == ["trace.json.0"]


def test_disk_that_takes_nothing(repository: Repository, tmp_path: Path) -> None:
    """One line of the log says so, and requests go on."""
    with Nereid(repository.path, _config(tmp_path / "nowhere" / "trace.json")) as server:
        for _ in range(5):
            _infer(server)
            server.process.wait_until(lambda: "traces cannot be written" in server.process.log(), 60)
        log = Counter("traces cannot be written" in line for line in server.process.log().splitlines())
        assert log[True] == 1


def test_options(repository: Repository, tmp_path: Path) -> None:
    """The deprecated options do the same; what --trace-config says wins over them, and OFF over other levels."""
    file = tmp_path / "trace.json"
    old: dict[str, str | list[str]] = {
        "trace-file": str(file),
        "trace-level": ["TIMESTAMPS", "TENSORS"],
        "trace-rate": "5",
        "trace-count": "6",
        "trace-log-frequency": "7",
    }
    expected = {
        "trace_level": ["TIMESTAMPS", "TENSORS"],
        "trace_rate": "5",
        "trace_count": "6",
        "log_frequency": "7",
        "trace_file": str(file),
        "trace_mode": "triton",
    }
    with Nereid(repository.path, old) as server:
        assert rawhttp.get(server.http, ALL).json() == expected
    both = {**old, "trace-config": ["rate=8", "count=9", "level=off", f"triton,file={file}2", "TRITON,log-frequency=10"]}
    with Nereid(repository.path, both) as server:
        assert rawhttp.get(server.http, ALL).json() == {
            "trace_level": ["OFF"],
            "trace_rate": "8",
            "trace_count": "9",
            "log_frequency": "10",
            "trace_file": f"{file}2",
            "trace_mode": "triton",
        }


@pytest.mark.threadless
def test_what_waits_leaves_room(tmp_path: Path) -> None:
    """Traces of many models wait for others of theirs, which do not come: those of another model are made and written all the same."""
    models = [f"waiting{i}" for i in range(12)]
    repository = Repository(tmp_path / "models")
    for model in [*models, "one"]:
        repository.identity(model)
    file = tmp_path / "trace.json"
    body = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[1]}]}'
    with Nereid(repository.path, _config(file)) as server, rawhttp.Connection(HOST, server.http_port) as connection:
        for model in models:
            _set(server, f"/v2/models/{model}/trace/setting", trace_count="1000000")
            for _ in range(18):  # a trace takes 4 KiB at least, and 8 MiB of each model's wait
                connection.send((rawhttp.head("POST", f"/v2/models/{model}/infer", None, body) + body) * 100)
                assert all(connection.answer().status == 200 for _ in range(100))

        def last_is_told() -> bool:  # those that wait to be written may take all the room for a moment
            _infer(server, request_id="last")
            return file.exists() and b'"request_id":"last"' in file.read_bytes()

        server.process.wait_until(last_is_told, 60)


def test_a_file_that_is_there_becomes_this_user_s_alone(repository: Repository, tmp_path: Path) -> None:
    """Whatever others could read before: it holds what clients send."""
    file = tmp_path / "traces"
    file.write_text("old")
    file.chmod(0o644)
    with Nereid(repository.path, _config(file)) as server:
        _infer(server)
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(_traces(file)) == 1


def test_a_pipe_is_no_file_of_traces(repository: Repository, tmp_path: Path) -> None:
    """Nobody reads it: traces are thrown away, which is told, requests are answered, and the server ends."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Nereid(repository.path, _config(pipe)) as server:
        _infer(server)
        server.process.wait_until(lambda: f"traces cannot be written and are thrown away: '{pipe}' is not a regular file" in server.process.log(), 60)
        _infer(server)
