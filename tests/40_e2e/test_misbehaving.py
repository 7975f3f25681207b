"""Backends that break the rules of the C ABI: only their own model is harmed, and the log names the rule."""

import base64
import contextlib
import http.client
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import h2frames as h2
from harness import paths, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import ENDED_AT_ONCE, HOST, Nereid, Reference, Server
from tritonclient.utils import InferenceServerException

CONFIG = """
name: "{name}"
backend: "{backend}"
input [ {{ name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }} ]
"""
RULE = "broke a rule: "

# Misdeed -> status of its answer, what the log says about it, calls that the backend saw refused.
PUNISHED: dict[str, tuple[int, str, int]] = {
    "released_twice": (200, "TRITONBACKEND_RequestRelease: the request was released before", 1),
    "sent_twice": (200, "TRITONBACKEND_ResponseSend: the response was sent or deleted before", 4),
    "sent_after_final": (200, "TRITONBACKEND_ResponseSend: the final response of the request was sent before", 3),
    "used_after_release": (200, "TRITONBACKEND_InputBuffer: the request of the input was released before", 5),
    "factory_deleted_twice": (200, "TRITONBACKEND_ResponseFactoryDelete: the response factory was deleted before", 3),
    "wrong_handles": (200, "TRITONBACKEND_RequestInputCount: expected a TRITONBACKEND_Request", 4),
    "released_by_two": (200, "TRITONBACKEND_RequestRelease: the request was released before", 1),
    "no_response": (500, "it released a request without a final response", 0),
    "never_final": (500, "it released a request without a final response", 0),
    "output_too_small": (500, "", 0),
    "output_without_memory": (500, "", 0),
    "error_after_final": (200, "", 0),
    "error_after_release": (200, "returned an error and had released 1 of 1 requests", 1),
    "error": (500, "", 0),
}


ISOLATED = 'parameters { key: "ISOLATION" value { string_value: "process" } }'


def _add(repository: Repository, name: str, backend: str = "misbehave", fail_in: str | None = None, extra: str = "") -> None:
    """A model with a backend library of its own, which a file beside it tells where to fail."""
    folder = repository.model(name, CONFIG.format(name=name, backend=backend) + extra)
    library = paths.need(paths.BUILD / "tests" / "backends" / backend / f"libtriton_{backend}.so")
    shutil.copy(library, folder / library.name)
    if fail_in:
        (folder / (fail_in if fail_in.startswith(("hang_", "crash_")) else f"fail_{fail_in}")).touch()


def _body(value: int) -> dict[str, Any]:
    return {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [value]}]}


def _infer(server: Nereid, model: str, value: int, misdeed: str | None = None) -> Any:
    body = _body(value)
    if misdeed:
        body["parameters"] = {"misdeed": misdeed}
    return rawhttp.post(server.http, f"/v2/models/{model}/infer", body)


def _works(server: Nereid, model: str = "bad", value: int = 7) -> None:
    answer = _infer(server, model, value)
    assert answer.status == 200, answer
    assert json.loads(answer.body)["outputs"][0]["data"] == [value]


class Load(threading.Thread):
    """Asks the innocent model again and again; every answer must be right."""

    def __init__(self, server: Nereid, number: int):
        super().__init__()
        self.server, self.number = server, number
        self.over = threading.Event()
        self.answered = 0
        self.failed: list[str] = []

    def run(self) -> None:
        value = self.number
        with rawhttp.Connection(HOST, self.server.http_port) as connection:
            while not self.over.is_set():
                value += 8
                body = b'{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1],"data":[%d]}]}' % value
                connection.send(rawhttp.head("POST", "/v2/models/innocent/infer", body=body) + body)
                answer = connection.answer()
                if answer.status != 200 or json.loads(answer.body)["outputs"][0]["data"] != [value]:
                    self.failed.append(str(answer))
                self.answered += 1


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "models")
    made.identity("innocent", datatype="INT32")
    return made


@pytest.fixture
def server(repository: Repository) -> Iterator[Nereid]:
    _add(repository, "bad")
    with Nereid(repository.path) as started:
        yield started


@pytest.mark.parametrize("misdeed", PUNISHED)
def test_a_misdeed_is_noticed_and_named(server: Nereid, misdeed: str) -> None:
    """The backend gets an error, the log names backend, model and rule, and model and server go on."""
    status, rule, refused = PUNISHED[misdeed]
    offset = len(server.process.log())
    answer = _infer(server, "bad", 3, misdeed)
    assert answer.status == status, answer
    _works(server)
    log = server.process.log(offset)
    assert "UNNOTICED" not in log
    assert log.count("NOTICED") == refused, log
    if rule:
        named = [line for line in log.splitlines() if RULE in line and rule in line]
        assert named and all("backend 'misbehave'" in line and "model 'bad'" in line for line in named), log
    else:
        assert RULE not in log


@pytest.mark.parametrize("extra", ["", ISOLATED], ids=["in process", "isolated"])
def test_values_of_a_newer_abi(repository: Repository, extra: str) -> None:
    """An error code that the server does not know counts as unknown, and a flag that it does not know as not set."""
    _add(repository, "bad", extra=extra)
    with Nereid(repository.path) as server:
        answer = _infer(server, "bad", 3, "newer_code")
        assert (answer.status, json.loads(answer.body)) == (400, {"error": "with a code of its own"})
        answer = _infer(server, "bad", 3, "newer_flags")
        assert answer.status == 200 and json.loads(answer.body)["outputs"][0]["data"] == [3], answer
        log = server.process.log()
        assert RULE not in log and "broke the protocol" not in log, log


def test_a_request_without_an_answer_in_a_stream(server: Nereid) -> None:
    """Its client is told, as by the other ways to ask, and what it asks next is answered."""
    got: queue.Queue[Any] = queue.Queue()
    values = grpcclient.InferInput("IN", [1], "INT32")
    values.set_data_from_numpy(np.array([3], np.int32))
    with grpcclient.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException, match="expected a single response, got 0"):
            client.infer("bad", [values], parameters={"misdeed": "only_final"})
        client.start_stream(lambda result, error: got.put((result, error)))
        client.async_stream_infer("bad", [values], request_id="a", parameters={"misdeed": "only_final"})
        client.async_stream_infer("bad", [values], request_id="b")
        _, error = got.get(timeout=60)
        assert "expected a single response, got 0" in str(error)
        result, error = got.get(timeout=60)
        assert error is None and result.get_response().id == "b"
        client.stop_stream()
    answer = _infer(server, "bad", 3, "only_final")
    assert (answer.status, json.loads(answer.body)) == (500, {"error": "expected a single response, got 0"})


def test_a_report_about_a_rescheduled_request(repository: Repository) -> None:
    """As in the reference it counts, and is not held against the backend; whatever else it does with the request is."""
    _add(repository, "again", extra="sequence_batching { iterative_sequence: true }")
    with Nereid(repository.path) as server:
        answer = _infer(server, "again", 3, "reported_when_rescheduled")
        assert answer.status == 200, answer
        log = server.process.log()
        assert "UNNOTICED" not in log and log.count("NOTICED") == 1, log
        assert "TRITONBACKEND_ModelInstanceReportStatistics" not in log
        assert server.statistics("again")["inference_stats"]["success"]["count"] == 1


def test_a_request_that_was_answered_is_not_executed_again(repository: Repository) -> None:
    """It ends as if it were released for good, and the sequence goes on."""
    _add(repository, "again", extra="sequence_batching { iterative_sequence: true }")
    with Nereid(repository.path) as server:
        answer = _infer(server, "again", 3, "rescheduled_after_final")
        assert answer.status == 200, answer
        _works(server, "again")
        log = server.process.log()
        assert "UNNOTICED" not in log and log.count("NOTICED") == 2, log
        rule = "TRITONBACKEND_RequestRelease: the final response of the request was sent before; it cannot be executed again"
        assert log.count(RULE + rule) == 1, log


def test_another_model_under_load_notices_nothing(server: Nereid) -> None:
    """Every misdeed many times while another model's requests come and go in the same memory."""
    loads = [Load(server, number) for number in range(4)]
    for load in loads:
        load.start()
    try:
        for _ in range(20):
            for misdeed, (status, _rule, _refused) in PUNISHED.items():
                assert _infer(server, "bad", 3, misdeed).status == status, misdeed
    finally:
        for load in loads:
            load.over.set()
        for load in loads:
            load.join()
    _works(server)
    assert "UNNOTICED" not in server.process.log()
    for load in loads:
        assert load.answered and not load.failed, load.failed[:3]


def test_what_is_kept_for_ever_holds_up_its_model_only(repository: Repository) -> None:
    """The others answer meanwhile; at the end they are finalised, the log names the models, and the process ends."""
    misdeeds = ("keep_response", "keep_request")
    for name in (*misdeeds, "fine"):
        _add(repository, name)
    server = Nereid(repository.path, {"exit-timeout-secs": "10", "log-verbose": "1"}, ENDED_AT_ONCE).start()
    try:
        log_path = server.process.log_path.read_text
        waiting = [rawhttp.Connection(HOST, server.http_port) for _ in misdeeds]
        for connection, misdeed in zip(waiting, misdeeds, strict=True):
            body = json.dumps({**_body(3), "parameters": {"misdeed": misdeed}}).encode()
            connection.send(rawhttp.head("POST", f"/v2/models/{misdeed}/infer", body=body) + body)
            _works(server, misdeed)
            _works(server, "fine")
        server.process.stop(status=1)
        for connection in waiting:
            connection.close()
        log = log_path()
        assert "successfully unloaded 'fine' version 1" in log
        assert "successfully unloaded 'innocent' version 1" in log
        for misdeed in misdeeds:
            kept = [line for line in log.splitlines() if f"unloading '{misdeed}' version 1 waits" in line]
            assert kept and "backend 'misbehave'" in kept[0], log
            assert f"'{misdeed}' version 1 is not unloaded: backend 'misbehave' holds up 1 request" in log
        assert "still not stopped after --exit-timeout-secs: ended at once" in log
    finally:
        server.kill()


def _end_at_once(server: Nereid, after: list[str]) -> list[str]:
    """Stops the server, a second time when the log has all of this, by another signal, since one that comes twice within a second counts as one; what
    it says then of each version that is left."""
    server.process.terminate(signal.SIGINT)
    server.process.wait_until(lambda: all(part in server.process.log() for part in after), 60)
    server.process.stop(status=1)
    return [line for line in server.process.log().splitlines() if "is not unloaded: " in line]


def test_who_does_not_let_it_end_is_named(repository: Repository) -> None:
    """With its backend and how much is outstanding; and nobody else is."""
    _add(repository, "bad")
    _add(repository, "fine")
    server = Nereid(repository.path, {"exit-timeout-secs": "100"}, ENDED_AT_ONCE).start()
    try:
        harmless, kept = (rawgrpc.infer_request("bad", [("IN", "INT32", [1], bytes(4))]) for _ in range(2))
        kept.parameters["misdeed"].string_param = "keep_request"
        block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelInfer"))
        with h2.Connection(server.grpc) as connection:
            for stream, request in ((1, kept), (3, kept), (5, harmless)):  # they are run in this order
                body = h2.message(request.SerializeToString())
                connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block), h2.frame(h2.DATA, h2.END_STREAM, stream, body))
            assert connection.finish(5).trailers["grpc-status"] == "0"
        after = ["unloading 'bad' version 1 waits for 2 requests", "unloaded 'fine' version 1", "unloaded 'innocent' version 1"]
        left = _end_at_once(server, after)
        assert len(left) == 1, left
        assert "'bad' version 1 is not unloaded: backend 'misbehave' holds up 2 requests" in left[0]
    finally:
        server.kill()


def test_who_does_not_end_its_finalisation_is_named(repository: Repository) -> None:
    """Whatever is taken out while it hangs does not wait for it."""
    _add(repository, "hangs", fail_in="hang_ModelInstanceFinalize")
    _add(repository, "fine")
    options = {"exit-timeout-secs": "100", "model-control-mode": "explicit", "load-model": ["hangs", "fine", "innocent"]}
    server = Nereid(repository.path, options, ENDED_AT_ONCE).start()
    try:
        _works(server, "hangs")
        for model, then in (("hangs", "hang_ModelInstanceFinalize: never returns"), ("fine", "unloaded 'fine' version 1")):
            assert rawhttp.request(HOST, server.http_port, "POST", f"/v2/repository/models/{model}/unload").status == 200
            server.process.wait_until(lambda then=then: then in server.process.log(), 60)
        left = _end_at_once(server, ["hang_ModelInstanceFinalize: never returns", "unloaded 'innocent' version 1"])
        assert len(left) == 1, left
        assert "'hangs' version 1 is not unloaded: backend 'misbehave' does not end finalising it" in left[0]
    finally:
        server.kill()


def test_at_a_stop_who_still_executes_is_named(repository: Repository) -> None:
    """It answered its request from a thread of its own, so nothing is under way, but its Execute never returns."""
    _add(repository, "hangs")
    server = Nereid(repository.path, {"exit-timeout-secs": "100"}, ENDED_AT_ONCE).start()
    try:
        assert _infer(server, "hangs", 7, "answer_and_hang").status == 200
        server.process.wait_until(lambda: "answer_and_hang: never returns" in server.process.log(), 60)
        left = _end_at_once(server, ["unloaded 'innocent' version 1"])
        assert len(left) == 1, left
        assert "'hangs' version 1 is not unloaded: backend 'misbehave' still executes in instance 'hangs_0', or a" in left[0]
    finally:
        server.kill()


def test_at_an_unload_who_still_executes_is_named(repository: Repository) -> None:
    """In an instance that the model has no more: no request is left, in whose name the backend could be told of."""
    _add(repository, "hangs", extra="instance_group [ { kind: KIND_CPU count: 2 } ]\n")
    server = Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "hangs"}, ENDED_AT_ONCE).start()
    try:
        for _ in range(2):
            assert _infer(server, "hangs", 7, "answer_and_hang").status == 200
        config = repository.path / "hangs" / "config.pbtxt"
        config.write_text(config.read_text().replace("count: 2", "count: 1"))
        for change in ("load", "unload"):
            assert rawhttp.request(HOST, server.http_port, "POST", f"/v2/repository/models/hangs/{change}").status == 200
        line = "unloading 'hangs' version 1 waits for backend 'misbehave', which has not returned from an execution"
        server.process.wait_until(lambda: line in server.process.log(), 60)
        assert "waits for 0 requests" not in server.process.log()
    finally:
        server.kill()


def test_files_of_a_load_request_go_when_the_server_is_ended(repository: Repository, tmp_path: Path) -> None:
    """At once, and when the next one starts if it was killed; never those of a server that runs."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    library = paths.need(paths.BUILD / "tests" / "backends" / "misbehave" / "libtriton_misbehave.so").read_bytes()
    tensor = {"data_type": "TYPE_INT32", "dims": [1]}
    config = {"backend": "misbehave", "input": [{"name": "IN", **tensor}], "output": [{"name": "OUT", **tensor}]}
    brought = {"config": json.dumps(config), "file:1/libtriton_misbehave.so": base64.b64encode(library).decode()}
    options = {"model-control-mode": "explicit", "allow-library-upload": "true", "exit-timeout-secs": "100"}

    def start() -> Nereid:
        started = Nereid(repository.path, options, ENDED_AT_ONCE | {"TMPDIR": str(scratch)}).start()
        assert rawhttp.post(started.http, "/v2/repository/models/hangs/load", {"parameters": brought}).status == 200
        return started

    server, other = start(), None
    try:
        assert len(list(scratch.iterdir())) == 1
        other = start()
        assert len(list(scratch.iterdir())) == 2
        other.kill()
        assert len(list(scratch.iterdir())) == 2
        other = start()
        assert len(list(scratch.iterdir())) == 2
        other.process.stop(status=0)
        assert _infer(server, "hangs", 7, "answer_and_hang").status == 200
        _end_at_once(server, ["signal 2"])
        assert not list(scratch.iterdir())
    finally:
        server.kill()
        if other:
            other.kill()


# The sanitizer would catch the signal, and say so in its own way.
CRASHES = {
    "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:handle_segv=0",
    "TSAN_OPTIONS": f"{os.environ.get('TSAN_OPTIONS', '')}:handle_segv=0",
}
WORK = {
    "crash_Initialize": "loading",
    "crash_ModelInitialize": "loading",
    "crash_ModelInstanceInitialize": "loading",
    "crash_ModelInstanceFinalize": "finalizing",
    "crash_ModelFinalize": "finalizing",
    None: "executing",
}


@pytest.mark.parametrize("entry", WORK)
def test_a_crash_names_the_model_and_what_was_done(repository: Repository, entry: str | None) -> None:
    """With the version, and the id of the request that is executed."""
    _add(repository, "bad", fail_in=entry)
    server = Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "innocent"}, CRASHES).start()
    server.process.judged = False
    ask = ("/v2/repository/models/bad/load", "/v2/models/bad/infer", "/v2/repository/models/bad/unload")
    try:
        for path in ask:
            body = {**_body(7), "id": "r7", "parameters": {} if entry else {"misdeed": "crash"}} if "infer" in path else {}
            with contextlib.suppress(OSError, http.client.HTTPException):
                rawhttp.post(server.http, path, body)
        assert server.process.ended_within(120)
        found = [line for line in server.process.log().splitlines() if " crashed: " in line]
        id_of = "" if entry else ", request id r7"
        assert len(found) == 1 and found[0].endswith(f", {WORK[entry]} model 'bad', version 1{id_of}"), found
    finally:
        server.kill()


@pytest.mark.parametrize("extra", ["", ISOLATED], ids=["in process", "isolated"])
def test_a_factory_that_is_never_deleted(repository: Repository, extra: str) -> None:
    """It held a request that is over; the request is ended without it, so the model can be unloaded and the server stops."""
    _add(repository, "bad", extra=extra)
    server = Nereid(repository.path, {"exit-timeout-secs": "100"}).start()
    try:
        for value in range(3):
            assert _infer(server, "bad", value, "keep_factory").status == 200
        server.process.stop(seconds=120, status=0)
        log = server.process.log()
        named = [line for line in log.splitlines() if RULE in line]
        assert named and all("backend 'misbehave' of model 'bad'" in line and "response factory" in line for line in named), log
        assert "successfully unloaded 'bad' version 1" in log
    finally:
        server.kill()


def test_a_factory_that_is_deleted_late(server: Nereid) -> None:
    """The server has deleted it by then: what it is asked is refused, and nothing else happens."""
    assert _infer(server, "bad", 1, "forget_factory").status == 200
    server.process.wait_until(lambda: "did not delete the response factory" in server.process.log(), 60)
    offset = len(server.process.log())
    assert _infer(server, "bad", 2, "remember_factory").status == 200
    _works(server)
    log = server.process.log(offset)
    assert "UNNOTICED" not in log
    assert log.count("NOTICED") == 4, log


@pytest.mark.parametrize(
    "entry",
    [
        ("ApiVersion", "API version 1.19 of the server is not 99.0"),
        ("Initialize", "told to fail in Initialize"),
        ("GetBackendAttribute", "told to fail in GetBackendAttribute"),
        ("ModelInitialize", "told to fail in ModelInitialize"),
        ("ModelInstanceInitialize", "told to fail in ModelInstanceInitialize"),
    ],
    ids=lambda entry: entry[0],
)
def test_a_backend_that_refuses_to_load(repository: Repository, entry: tuple[str, str]) -> None:
    name, message = entry
    _add(repository, "bad", fail_in=name)
    _add(repository, "fine")
    with Nereid(repository.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        assert message in _reason(server, "bad")
        _works(server, "fine")
        lines = [line for line in server.process.log().splitlines() if message in line]
        entry_name = "Initialize" if name == "ApiVersion" else name
        told = [line for line in lines if f": TRITONBACKEND_{entry_name} returned an error" in line]
        assert told and "backend 'misbehave'" in told[0], lines
        assert any("'bad'" in line for line in lines), lines


# Which entry fails -> what is finalised by then, the last first: the reference's plug-ins leave to it what they made before they failed.
FINALIZED = {
    "Initialize": ["backend"],
    "ModelInitialize": ["model"],
    "ModelInstanceInitialize": ["instance", "model"],
}


@pytest.mark.parametrize("isolated", [False, True], ids=["", "isolated"])
@pytest.mark.parametrize("entry", FINALIZED)
def test_what_failed_to_initialize_is_finalized(repository: Repository, entry: str, isolated: bool) -> None:
    _add(repository, "bad", fail_in=entry, extra=ISOLATED if isolated else "")
    with Nereid(repository.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        assert f"told to fail in {entry}" in _reason(server, "bad")
        if isolated:  # its process is told to end, and what it said comes before it is gone
            server.process.wait_until(lambda: _finalized(server)[-1:] == ["backend"], 60)
        found = _finalized(server)
        assert found[: len(FINALIZED[entry])] == FINALIZED[entry], server.process.log()


def _finalized(server: Server) -> list[str]:
    return re.findall(r"FINALIZED (\w+)", server.process.log())


@pytest.mark.reference
def test_the_reference_finalizes_the_same(repository: Repository, tmp_path: Path) -> None:
    for entry, expected in FINALIZED.items():
        made = Repository(tmp_path / f"fails_{entry}")
        folder = made.model("bad", CONFIG.format(name="bad", backend="misbehave"))
        library = folder / "libtriton_misbehave.so"
        argv = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", f"-I{paths.ROOT / 'include'}"]
        source = paths.ROOT / "tests/10_inprocess/plugins/misbehave.c"
        subprocess.run([*argv, str(source), "-o", str(library)], check=True)
        (folder / f"fail_{entry}").touch()
        with Reference(made.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
            assert _finalized(server)[: len(expected)] == expected, server.process.log()


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("hollow", "does not export TRITONBACKEND_ModelInstanceExecute"),
        ("tomorrow", "undefined symbol: TRITONBACKEND_OfTomorrow"),
    ],
)
def test_symbols_that_are_missing(repository: Repository, backend: str, message: str) -> None:
    _add(repository, "bad", backend=backend)
    _add(repository, "fine")
    with Nereid(repository.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        reason = _reason(server, "bad")
        assert message in reason and backend in reason
        _works(server, "fine")


@pytest.mark.parametrize("entry", ["ModelInstanceFinalize", "ModelFinalize", "Finalize"])
def test_finalizers_that_fail(repository: Repository, entry: str) -> None:
    """They are logged; the process ends as if they had not."""
    _add(repository, "bad", fail_in=entry)
    server = Nereid(repository.path).start()
    try:
        _works(server)
        read = server.process.log_path.read_text
        server.process.stop()
        lines = [line for line in read().splitlines() if f"told to fail in {entry}" in line]
        assert lines and f": TRITONBACKEND_{entry} returned an error" in lines[0], lines
        assert "backend 'misbehave'" in lines[0] and ("model 'bad'" in lines[0] or entry == "Finalize")
    finally:
        server.kill()


def _reason(server: Nereid, model: str) -> str:
    answer = rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/index")
    return next(str(m.get("reason")) for m in json.loads(answer.body) if m["name"] == model)


def test_a_load_that_does_not_end_is_named(repository: Repository) -> None:
    """Whoever waits for the stop learns which model it is; those that were loaded are not held against anybody."""
    repository.identity("late", extra='parameters { key: "creation_delay_sec" value { string_value: "1000" } }')
    options = {"exit-timeout-secs": "100", "model-control-mode": "explicit", "load-model": "innocent"}
    server = Nereid(repository.path, options, ENDED_AT_ONCE).start()
    try:
        with rawhttp.Connection(HOST, server.http_port) as connection:
            connection.send(rawhttp.head("POST", "/v2/repository/models/late/load"))
            server.process.wait_until(lambda: "loading: late:1" in server.process.log(), 60)
            server.process.terminate(signal.SIGINT)
            server.process.wait_until(lambda: "received, stopping" in server.process.log(), 60)
            server.process.stop(status=1)
        left = [line for line in server.process.log().splitlines() if "is still being" in line]
        assert len(left) == 1 and "'late' is still being loaded" in left[0], left
    finally:
        server.kill()
