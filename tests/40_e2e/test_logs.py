"""What the server logs: the reference's formats to the byte, JSON, the access log, the table at start, the last line of a crash."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

import pytest
from harness import rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from witness import compile_backend

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
BODY = {"id": 'a"b\nc', "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
BACKEND = "backend: \"no\\tsuch\\\"backend\"\ninput [ { name: \"I\" data_type: TYPE_FP32 dims: [ 1 ] } ]\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "models")
    made.identity("one")
    made.identity("two", versions=(1, 2), extra="version_policy: { all { } }\n")
    return made


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> type[Server]:
    return KINDS[request.param]


LINE = {
    "default": r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ [\w.]+:\d+\] ",
    "ISO8601": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ [IWE] \d+ [\w.]+:\d+\] ",
}


@pytest.mark.parametrize("escaped", [True, False], ids=["escaped", "as it is"])
@pytest.mark.parametrize("format_name", ["default", "ISO8601"])
def test_formats(kind: type[Server], repository: Repository, format_name: str, escaped: bool) -> None:
    """The same pattern for both servers; the message of a failed load holds what has to be escaped."""
    repository.model("odd", BACKEND + "output [ { name: \"O\" data_type: TYPE_FP32 dims: [ 1 ] } ]\n")
    env = {} if escaped else {"TRITON_SERVER_ESCAPE_LOG_MESSAGES": "0"}
    options = {"log-format": format_name, "exit-on-error": "false", "strict-readiness": "false"}
    server = kind(repository.path, options, env=env)
    with server:
        log = server.process.log()
    message = r'"loading: one:1"' if escaped else r"loading: one:1"
    assert re.search("^" + LINE[format_name] + message + "$", log, re.MULTILINE), log
    name = r"no\\tsuch\\\"backend" if escaped else "no\tsuch\"backend"
    pattern = "^" + LINE[format_name] + '"?failed to load \'odd\' version 1: Invalid argument: unable to find backend library for backend \'' + name
    assert re.search(pattern, log, re.MULTILINE), log


def _table(log: str) -> list[list[str]]:
    """The rows of the table of models, which stands below a line that has no message."""
    found = re.search(r"\] \n\+-[-+]+\n(\| Model +\| Version +\| Status +\|\n(?:[|+].*\n)+)\n", log)
    assert found, log
    lines = [line for line in found[1].splitlines() if line.startswith("|")]
    return [[each.strip() for each in line.strip("|").split("|")] for line in lines]


def test_table_at_the_start(kind: type[Server], repository: Repository) -> None:
    repository.model("broken", 'backend: "nosuchbackend"\ninput [ { name: "I" data_type: TYPE_FP32 dims: [ 1 ] } ]\noutput [ { name: "O" data_type: TYPE_FP32 dims: [ 1 ] } ]\n')
    with kind(repository.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        rows = _table(server.process.log())
    broken = next(row for row in rows if row[0] == "broken")
    rows.remove(broken)
    assert rows == [["Model", "Version", "Status"], ["one", "1", "READY"], ["two", "1", "READY"], ["two", "2", "READY"]]
    assert broken[1] == "1"
    assert broken[2].startswith("UNAVAILABLE: Invalid argument: unable to find backend library for backend 'nosuchbackend'")


def test_levels_go_where_the_reference_sends_them(repository: Repository) -> None:
    """Info to the standard output, errors to the standard error."""
    argv = Nereid(repository.path, {"http-address": "256.0.0.0.0"}).command()
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert ended.stdout.startswith("I")
    assert ended.stderr.startswith("E")
    assert "256.0.0.0.0" in ended.stderr


def test_json_lines(repository: Repository) -> None:
    with Nereid(repository.path, {"log-format": "json"}) as server:
        lines = [json.loads(line) for line in server.process.log().splitlines()]
    loading = next(line for line in lines if line["message"] == "loading: one:1")
    assert loading["level"] == "info"
    assert loading["component"] == "repo"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", loading["time"])
    assert any(line["message"].startswith("+-") for line in lines)


def test_a_component_is_verbose_alone(repository: Repository) -> None:
    def lines(options: dict[str, str | list[str]]) -> list[dict[str, str]]:
        with Nereid(repository.path, options | {"log-format": "json"}) as server, rawgrpc.Channel(server.grpc) as channel:
            channel.call("ModelInfer", rawgrpc.infer_request("nobody", []))
            return [json.loads(line) for line in server.process.log().splitlines()]

    def verbose(found: list[dict[str, str]]) -> set[str]:
        return {line["component"] for line in found if line["level"] == "verbose"}

    assert verbose(lines({})) == set()
    assert verbose(lines({"log-component": "grpc=1"})) == {"grpc"}
    everything = verbose(lines({"log-verbose": "1"}))
    assert "grpc" in everything and len(everything) > 1
    assert verbose(lines({"log-verbose": "1", "log-component": "grpc=0"})) == everything - {"grpc"}


def test_a_line_about_a_request_names_it(repository: Repository) -> None:
    with Nereid(repository.path, {"log-verbose": "1"}) as server, rawgrpc.Channel(server.grpc) as channel:
        tensor = ("INPUT0", "INT32", [2], b"\0" * 8)
        channel.call("ModelInfer", rawgrpc.infer_request("one", [tensor], request_id="seven"))
        found = [line for line in server.process.log().splitlines() if "Infer failed" in line]
        rawhttp.post(server.http, "/v2/logging", {"log_format": "json"})
        channel.call("ModelInfer", rawgrpc.infer_request("one", [tensor], request_id="eight"))
        later = [line for line in server.process.log().splitlines() if "Infer failed" in line][len(found) :]
    assert len(found) == len(later) == 1
    assert "[request id: seven] " in found[0]
    assert json.loads(later[0])["request_id"] == "eight"


GREPPED = [
    r"\n\+-+\+-+\+\n\| Repository Agent \| Path \|\n\+-+\+-+\+\n\+-+\+-+\+\n\n",
    r"\| Backend +\| Path +\| Config ", r"\| identity +\| \S+/identity/libtriton_identity.so \| \{\"cmdline\":\{\"auto-complete-config\":\"true\",",
    r"\| Model +\| Version \| Status +\|", r"\| one +\| 1 +\| READY",
    r"\| Option +\| Value ", r"\| server_id +\| triton ", r"\| server_extensions +\| classification sequence ",
    r"\| model_repository_path\[0\] +\| \S+/models ", r"\| model_control_mode +\| MODE_EXPLICIT ", r"\| startup_models_0 +\| one ",
    r"\| strict_model_config +\| 0 ", r"\| rate_limit +\| OFF ", r"\| strict_readiness +\| 1 ", r"\| exit_timeout +\| 30 ", r"\| cache_enabled +\| 0 ",
    "Adding default backend config setting: default-max-batch-size,4", "successfully loaded 'one'",
    "HTTP request: 0 /v2/models/one", "HTTP request: 2 /v2/models/one/infer", "HTTP request: 0 /nowhere",
    r"\[request id: a\\\"b\\nc\] Infer failed: .*inference input 'INPUT0' data-type is 'INT32'",
    r"\[request id: <id_unknown>\] Infer failed: Request for unknown model: 'nobody' is not found",
]
AT_THE_END = [
    "Waiting for in-flight requests to complete.", "Timeout 30: Found 0 model versions that have in-flight inferences",
    "All models are stopped, unloading models", "successfully unloaded 'one' version 1",
    r"Timeout \d+: Found 0 live models and 0 in-flight non-inference requests",
]


def test_resources_of_the_rate_limiter_in_the_table(kind: type[Server], repository: Repository) -> None:
    """By device, then by name, each with the smallest count that was said; between the rows where the reference has them."""
    said = ["R2:3", "R1:4:1", "R1:7", "R1:5", "Z:1:0", "A:2:1"]
    with kind(repository.path, {"rate-limit": "execution_count", "rate-limit-resource": said}) as server:
        rows = re.findall(r"^\| (\w+(?:\[\d\])?) +\| (.*?) +\|$", server.process.log(), re.MULTILINE)
    at = rows.index(("rate_limit", "EXEC_COUNT"))
    expected = [("R1", 5, -1), ("R2", 3, -1), ("Z", 1, 0), ("A", 2, 1), ("R1", 4, 1)]
    assert rows[at + 1 : at + 6] == [
        (f"rate_limit_resource[{index}]", f'{{"name":"{name}", "count":{count} "device":{device}}}')
        for index, (name, count, device) in enumerate(expected)
    ]
    assert rows[at + 6][0] == "pinned_memory_pool_byte_size"


def test_lines_that_people_look_for(kind: type[Server], repository: Repository) -> None:
    """Each in both servers."""
    server = kind(repository.path, {"log-verbose": "1", "model-control-mode": "explicit", "load-model": "one"})
    with server:
        rawhttp.get(server.http, "/v2/models/one")
        rawhttp.get(server.http, "/nowhere")
        wrong = {**BODY, "inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [2], "data": [1, 2]}]}
        assert rawhttp.post(server.http, "/v2/models/one/infer", wrong).status == 400
        with rawgrpc.Channel(server.grpc) as channel:
            channel.call("ModelInfer", rawgrpc.infer_request("nobody", []))
        log = server.process.log()
        if kind is Nereid:
            assert '"gRPC request: /inference.GRPCInferenceService/ModelInfer"' in log
        for words in GREPPED:
            assert re.search(words, log), words
        server.process.terminate()
        server.process.wait_until(lambda: re.search(AT_THE_END[-1], server.process.log()) is not None, 60)
        log = server.process.log()
        for words in AT_THE_END:
            assert re.search(words, log), words


def test_files_are_opened_anew(repository: Repository, tmp_path: Path) -> None:
    log, access = tmp_path / "log", tmp_path / "access"
    with Nereid(repository.path, {"log-file": str(log), "access-log": str(access)}) as server:
        assert server.process.log() == ""
        assert "loading: one:1" in log.read_text()
        for path in (log, access):
            path.rename(path.with_suffix(".1"))
        os.kill(server.pid, signal.SIGHUP)
        server.process.wait_until(lambda: log.exists() and "anew" in log.read_text(), 30)
        rawhttp.get(server.http, "/v2/models/one")
        server.process.wait_until(lambda: "route=model" in access.read_text(), 30)
    assert "stopping" in log.read_text()
    assert "route=ready" in access.with_suffix(".1").read_text()


def test_a_file_that_cannot_be_opened_anew_is_named_and_goes_on(repository: Repository, tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    log, access = tmp_path / "log", directory / "access"
    with Nereid(repository.path, {"log-file": str(log), "access-log": str(access)}) as server:
        moved = tmp_path / "moved"
        directory.rename(moved)
        os.kill(server.pid, signal.SIGHUP)
        server.process.wait_until(lambda: "lines go on into the file that was open" in log.read_text(), 30)
        assert f"opening '{access}'" in log.read_text()
        rawhttp.get(server.http, "/v2/models/one")
        server.process.wait_until(lambda: "route=model" in (moved / "access").read_text(), 30)
        assert "opened the log files anew" not in log.read_text()
        moved.rename(directory)
        os.kill(server.pid, signal.SIGHUP)
        server.process.wait_until(lambda: "opened the log files anew" in log.read_text(), 30)


@pytest.mark.parametrize("option", ["log-file", "access-log"])
def test_a_named_pipe_that_nobody_reads_is_refused_at_the_start(repository: Repository, tmp_path: Path, option: str) -> None:
    """Opening it does not wait for a reader."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    argv = Nereid(repository.path, {option: str(pipe)}).command()
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert f"option --{option}: opening '{pipe}': expected a reader of this named pipe, found none" in ended.stderr


def _there(reader: int) -> bytes:
    """What a pipe has now."""
    try:
        return os.read(reader, 1 << 20)
    except BlockingIOError:
        return b""


def test_a_named_pipe_whose_reader_goes(repository: Repository, tmp_path: Path) -> None:
    """SIGHUP does not wait for a new one, requests are answered, a new reader gets lines, and SIGTERM ends the server."""
    pipe, access = tmp_path / "pipe", tmp_path / "access"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    server = Nereid(repository.path, {"log-file": str(pipe), "access-log": str(access)}).start()
    try:
        assert b"loading: one:1" in _there(reader)
        os.close(reader)
        access.unlink()
        os.kill(server.pid, signal.SIGHUP)
        server.process.wait_until(access.exists, 60)  # it is opened after the log
        assert rawhttp.post(server.http, "/v2/models/nobody/infer", BODY).status == 404
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.kill(server.pid, signal.SIGHUP)
        server.process.wait_until(lambda: b"opened the log files anew" in _there(reader), 60)
        os.close(reader)
        os.kill(server.pid, signal.SIGHUP)
        server.process.terminate()
        server.process.ends(0)
    finally:
        server.kill()


def _access(repository: Repository, tmp_path: Path, log_format: str, ask: Callable[[Server], None]) -> list[str]:
    path = tmp_path / "access"
    with Nereid(repository.path, {"access-log": str(path), "log-format": log_format}) as server:
        ask(server)
    return path.read_text().splitlines()


def test_access_log(repository: Repository, tmp_path: Path) -> None:
    answers: list[rawhttp.Answer] = []

    def ask(server: Server) -> None:
        answers.append(rawhttp.post(server.http, "/v2/models/one/infer", BODY))
        rawhttp.get(server.http, '/v2/models/no"body/ready')
        rawhttp.post(server.http, '/v2/models/no"body/infer', BODY)
        rawhttp.get(server.metrics, "/metrics")
        with rawgrpc.Channel(server.grpc) as channel:
            tensor = ("INPUT0", "FP32", [2], b"\0" * 8)
            channel.call("ModelInfer", rawgrpc.infer_request("one", [tensor], request_id="g"))
            channel.call("ModelInfer", rawgrpc.infer_request("nobody", [tensor]))

    lines = [json.loads(line) for line in _access(repository, tmp_path, "json", ask)]
    found = {(line["protocol"], line["route"], line["model"], line["status"]): line for line in lines}
    infer = found[("http", "infer", "one", 200)]
    assert (infer["method"], infer["id"], infer["out"]) == ("POST", BODY["id"], answers[0].size)
    assert infer["in"] == len(json.dumps(BODY))
    assert re.fullmatch(r"127\.0\.0\.1:\d+", infer["peer"])
    assert 0 < infer["us"] < 60_000_000
    assert ("http", "infer", 'no"body', 404) in found
    assert ("metrics", "metrics", "", 200) in found
    assert found[("grpc", "ModelInfer", "one", 0)]["id"] == "g"
    assert ("grpc", "ModelInfer", "nobody", 5) in found


def test_access_log_as_text(repository: Repository, tmp_path: Path) -> None:
    lines = _access(repository, tmp_path, "default", lambda server: rawhttp.post(server.http, "/v2/models/one/infer", BODY) and None)
    pattern = (
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z peer=127\.0\.0\.1:\d+ protocol=http method=POST route=infer "
        r'model="one" status=200 in=\d+ out=\d+ us=\d+ id="a\\"b\\nc"'
    )
    assert [line for line in lines if re.fullmatch(pattern, line)], lines


@pytest.mark.parametrize("log_format", ["default", "json"])
def test_access_log_lines_are_short(repository: Repository, tmp_path: Path, log_format: str) -> None:
    """Names and ids as long as a client likes: of each a thousand bytes are written, and the line says that it was more."""
    ids = ("i" * 16000, "\x01" * 5000, "\u00e9" * 5000)

    def ask(server: Server) -> None:
        rawhttp.post(server.http, f"/v2/models/{'m' * 2000}/infer", BODY)
        rawhttp.post(server.http, "/v2/models/one/infer", BODY | {"id": "i" * (1 << 20)})  # may be refused
        for long in ids:
            assert rawhttp.post(server.http, "/v2/models/one/infer", BODY | {"id": long}).status == 200

    lines = [line for line in _access(repository, tmp_path, log_format, ask) if "infer" in line]
    assert len(lines) == 2 + len(ids)
    assert f'"{"m" * 1024}..."' in lines[0]
    for line in lines:
        assert len(line.encode()) < 4096
        assert line in lines[:2] or line.rstrip("}").endswith('..."')


def test_a_thread_without_a_stack_left_has_its_last_line(tmp_path: Path) -> None:
    made = Repository(tmp_path / "models")
    tensors = "input { name: 'INPUT0' data_type: TYPE_FP32 dims: [ 2 ] } output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: [ 2 ] }"
    made.model("deep", f"backend: 'bottomless' {tensors}")
    server = Nereid(made.path, {"backend-directory": str(compile_backend(tmp_path / "backends", "bottomless"))}).start()
    server.process.judged = False
    try:
        with pytest.raises((OSError, HTTPException)):
            rawhttp.post(server.http, "/v2/models/deep/infer", BODY)
        assert server.process.ended_within(120)
        log = server.process.log()
        if "Sanitizer" not in log:  # it says it its own way
            assert re.search(r"^nereid \S+ crashed: signal 11 \(SIGSEGV\), process \d+, thread \S+, executing model 'deep', version 1", log, re.M)
    finally:
        server.kill()


def test_the_last_line_of_a_crash(repository: Repository) -> None:
    """Version, signal and thread; then the signal does what it does."""
    server = Nereid(repository.path).start()
    server.process.judged = False  # a sanitizer reports this signal
    try:
        os.kill(server.pid, signal.SIGSEGV)
        assert server.process.ended_within(120)
        status = server.process.exit_status
        assert status is not None
        if "Sanitizer" in server.process.log():  # its report comes last, and its own exit status
            assert status > 0
        else:
            assert status == -signal.SIGSEGV
        last = server.process.log().splitlines()
        found = [line for line in last if " crashed: " in line]
        if not found:  # a sanitizer that has its own handler says it its own way
            assert "Sanitizer" in server.process.log()
        else:
            assert re.fullmatch(
                rf"nereid \d+\.\d+\.\d+ crashed: signal 11 \(SIGSEGV\), process {server.pid}, thread \S+", found[0]
            )
    finally:
        server.kill()

