"""What an isolated model may cost: time that it hangs, memory that it shares; and that it ends when it shall."""

import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from harness import metrics, paths, procfs, rawgrpc, rawhttp
from harness.procfs import children, links
from harness.repository import Repository
from harness.servers import HOST, Nereid
from isolated import (
    AWAIT_CANCEL, HANG, HANG_WHEN_ENDED, ISOLATED, KILL, PARAMETERS, QUIET_CRASHES, SAY, SLACK, THREAD_SANITIZED, answers, ask,
    body, crasher, group_members, parameters, process_of, ready, until,
)

EXPLICIT = {"model-control-mode": "explicit", "load-model": "*"}


def control(server: Nereid, model: str, what: str) -> rawhttp.Answer:
    return rawhttp.request(HOST, server.http_port, "POST", f"/v2/repository/models/{model}/{what}", body=b"{}")


def in_background(server: Nereid, model: str, numbers: list[int]) -> tuple[threading.Thread, list[rawhttp.Answer]]:
    found: list[rawhttp.Answer] = []
    thread = threading.Thread(target=lambda: found.append(ask(server, model, numbers)))
    thread.start()
    return thread, found


def test_a_time_out_answers_what_hangs_and_what_waits_behind_it(repository: Repository) -> None:
    crasher(repository, "stuck", ISOLATED | {"ISOLATION_GRACE_SECS": "0.3"})
    with Nereid(repository.path, options=EXPLICIT) as server:
        assert answers(server, "stuck")
        found = [in_background(server, "stuck", [HANG])]
        until(lambda: "hangs from here on" in server.process.log())
        found.append(in_background(server, "stuck", [1]))
        until(lambda: metrics.scrape(server.metrics)["nv_inference_pending_request_count"].value(model="stuck") == 1)
        answer = ask(server, "stuck", [HANG], parameters={"timeout": 400_000})
        assert answer.status == 503 and "Request timeout expired" in answer.json()["error"]
        unloaded = control(server, "stuck", "unload")  # what hangs is ended after the time of grace
        assert unloaded.status == 200
        for thread, _ in found:
            thread.join()
        hung, waited = (each[0] for _, each in found)
        assert hung.status == 500 and "while it had the request" in hung.json()["error"]
        assert waited.status in (500, 503)  # allowed: it waited still, or had just been handed to the process that was ended
        assert "ended: signal 9" in waited.json()["error"]
        until(lambda: not children(server.pid))


def test_a_time_out_holds_during_execution(repository: Repository) -> None:
    crasher(repository, "stuck", ISOLATED | {"ISOLATION_GRACE_SECS": "0.3"})
    with Nereid(repository.path, options=EXPLICIT) as server:
        answer = ask(server, "stuck", [HANG], parameters={"timeout": 1_000_000})
        assert answer.status == 503 and "Request timeout expired" in answer.json()["error"]
        assert control(server, "stuck", "unload").status == 200
        until(lambda: not children(server.pid))


def test_an_execution_that_takes_too_long_ends_the_process(repository: Repository) -> None:
    crasher(repository, "slow", ISOLATED | {"ISOLATION_EXECUTE_TIMEOUT_SECS": "0.3"})
    with Nereid(repository.path) as server:
        answer = ask(server, "slow", [HANG])
        assert answer.status == 500 and "model 'slow' version 1" in answer.json()["error"]
        until(lambda: answers(server, "slow"))
        assert "ISOLATION_EXECUTE_TIMEOUT_SECS" in server.process.log()


def test_finalizing_that_hangs_is_ended(repository: Repository) -> None:
    crasher(repository, "stuck", ISOLATED | {"ISOLATION_GRACE_SECS": "0.3"})
    with Nereid(repository.path, options=EXPLICIT) as server:
        assert ask(server, "stuck", [HANG_WHEN_ENDED]).status == 200
        old = process_of(server, "stuck")
        assert control(server, "stuck", "unload").status == 200
        until(lambda: not group_members(old))
        assert control(server, "stuck", "load").status == 200
        assert answers(server, "stuck")


def test_the_server_stops_though_a_model_hangs(repository: Repository) -> None:
    crasher(repository, "stuck", ISOLATED | {"ISOLATION_GRACE_SECS": "0.3"})
    server = Nereid(repository.path, options={"exit-timeout-secs": "20"}).start()
    thread = quietly_in_background(server, "stuck", [HANG])
    old = process_of(server, "stuck")
    until(lambda: "hangs from here on" in server.process.log())
    server.process.terminate()
    server.process.ends(1)  # a request was cut, in time
    assert "1 over HTTP and 0 over gRPC are cut" in server.process.log()
    assert "ended at once" not in server.process.log()
    server.kill()
    thread.join()
    until(lambda: not group_members(old))


def test_a_killed_server_leaves_no_process(repository: Repository) -> None:
    crasher(repository, "stuck")
    crasher(repository, "idle")
    server = Nereid(repository.path).start()
    thread = quietly_in_background(server, "stuck", [HANG])
    until(lambda: "hangs from here on" in server.process.log())
    left = [process_of(server, "stuck"), process_of(server, "idle")]
    server.process.kill()
    until(lambda: not any(group_members(pid) for pid in left))
    thread.join()
    server.kill()


def quietly_in_background(server: Nereid, model: str, numbers: list[int]) -> threading.Thread:
    def run() -> None:
        try:
            ask(server, model, numbers)
        except OSError:  # the server is gone
            pass

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_shared_memory_has_a_limit(repository: Repository) -> None:
    repository.identity("small", "INT32", extra=parameters(ISOLATED | {"ISOLATION_MEMORY_MB": "1"}))
    with Nereid(repository.path) as server:
        assert ask(server, "small", list(range(200_000))).status == 200
        answer = ask(server, "small", list(range(300_000)))
        assert answer.status == 503
        assert "model 'small' version 1" in answer.json()["error"] and "ISOLATION_MEMORY_MB" in answer.json()["error"]
        # An answer has come before its memory is given back.
        until(lambda: ask(server, "small", list(range(200_000))).status == 200)


def test_shared_memory_is_charged_to_the_budget(repository: Repository) -> None:
    repository.identity("copied", "INT32", extra=parameters(ISOLATED))
    with Nereid(repository.path, options={"memory-budget": "20000000"}) as server:
        client = grpcclient.InferenceServerClient(server.grpc)

        def fits(count: int) -> bool:
            sent = grpcclient.InferInput("INPUT0", [count], "INT32")
            sent.set_data_from_numpy(np.zeros(count, dtype=np.int32))
            try:
                return len(client.infer("copied", [sent]).as_numpy("OUTPUT0")) == count
            except InferenceServerException as error:
                assert "in flight at once" in str(error)
                return False

        assert fits(1_000_000)
        assert not fits(3_000_000)
        until(lambda: fits(1_000_000))  # an answer has come before its memory is given back
        client.close()


def test_no_room_for_a_text_of_an_answer_is_no_fault_of_the_process(repository: Repository) -> None:
    """The budget is spent by one client's body that does not end, the allowance of another by its request."""
    budget, session = 1 << 20, 32 << 10  # of which the session of the client's connection is charged
    crasher(repository, "echo")
    size = budget - session - 12000
    announced = rawhttp.head("POST", "/v2/models/echo/infer", {"Content-Length": str(size)})
    request = rawgrpc.infer_request("echo", [("INPUT0", "INT32", [1], np.int32(PARAMETERS).tobytes())])
    request.parameters["text"].string_param = "x" * 7000
    with Nereid(repository.path, options={"memory-budget": str(budget)}) as server, rawgrpc.Channel(server.grpc) as client:
        for _ in range(8):  # so much is read of a known client that the request comes in one piece, and is held once
            assert client.call("ModelInfer", request).code == "OK"
        server.settle()  # what they held is given back
        old = process_of(server, "echo")
        with rawhttp.Connection(HOST, server.http_port) as greedy:
            greedy.send(announced + bytes(size - 1))
            until(lambda: metrics.scrape(server.metrics)["nereid_budget_in_use_bytes"].value() > budget - 16384)
            answer = client.call("ModelInfer", request)
            assert answer.code == "UNAVAILABLE" and "parameter 'text'" in answer.details, answer
            assert answers(server, "echo") and process_of(server, "echo") == old
        until(lambda: client.call("ModelInfer", request).code == "OK")
        assert process_of(server, "echo") == old


def test_memory_goes_back_when_it_is_idle(repository: Repository) -> None:
    repository.identity("large", "FP32", extra=parameters(ISOLATED))
    with Nereid(repository.path) as server:
        client = grpcclient.InferenceServerClient(server.grpc)
        child = process_of(server, "large")
        before = procfs.memory(server.pid).pss + procfs.memory(child).pss
        sent = grpcclient.InferInput("INPUT0", [8 << 20], "FP32")
        sent.set_data_from_numpy(np.ones(8 << 20, dtype=np.float32))
        for _ in range(3):
            client.infer("large", [sent])
        client.close()
        if not THREAD_SANITIZED:  # it keeps what it notes of each byte
            until(lambda: procfs.memory(server.pid).pss + procfs.memory(child).pss < before + SLACK, 60)


def test_cancellation_reaches_the_process(repository: Repository) -> None:
    crasher(repository, "waiting")
    with Nereid(repository.path) as server:
        connection = rawhttp.Connection(HOST, server.http_port)
        sent = rawhttp.head("POST", "/v2/models/waiting/infer", body=(text := body([AWAIT_CANCEL])))
        connection.send(sent + text)
        until(lambda: "waits to be cancelled" in server.process.log())
        connection.vanish()
        until(lambda: "saw that it was cancelled" in server.process.log())
        assert answers(server, "waiting")


def test_lines_of_the_process_are_in_our_log(repository: Repository) -> None:
    crasher(repository, "talker")
    with Nereid(repository.path, options={"log-format": "default"}) as server:
        assert ask(server, "talker", [SAY], id="q7").status == 200
        until(lambda: "an error of its own" in server.process.log())
        lines = {line[0]: line for line in server.process.log().splitlines() if "crasher.c:1" in line}
        assert "model 'talker' version 1: an \\\"informative\\\" line" in lines["I"] and "crasher.c:11]" in lines["I"]
        assert "[request id: q7] model 'talker' version 1: a warning" in lines["W"]
        assert f" {server.pid} " in lines["E"]


@pytest.mark.parametrize("where", ["model", "instance"])
@pytest.mark.parametrize("how", ["die_in", "fail_in"])
def test_a_model_that_cannot_load_says_why(repository: Repository, how: str, where: str) -> None:
    crasher(repository, "broken", ISOLATED | {how: where})
    crasher(repository, "fine")
    with Nereid(repository.path, options={"exit-on-error": "false"}, wait_ready=False) as server:
        server.process.wait_until(lambda: _serves(server), 120)
        until(lambda: reason(server, "broken"))
        words = "signal 9 (Killed)" if how == "die_in" else f"the {where} is not to the backend's liking"
        assert words in reason(server, "broken")
        until(lambda: len(children(server.pid)) == 1)


def reason(server: Nereid, model: str) -> str:
    """Why a model does not serve; "" as long as it is not known."""
    index = rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/index", body=b"{}").json()
    return next(row.get("reason", "") for row in index if row["name"] == model)


def _serves(server: Nereid) -> bool:
    try:
        return ready(server, "fine")
    except OSError:
        return False


def test_the_configuration_is_completed_in_the_process(repository: Repository) -> None:
    folder = repository.model("completed", f'backend: "crasher"\n{parameters(ISOLATED | {"complete": "yes"})}')
    library = paths.BUILD / "tests" / "backends" / "crasher" / "libtriton_crasher.so"
    (folder / library.name).symlink_to(library)
    with Nereid(repository.path) as server:
        config = rawhttp.request(HOST, server.http_port, "GET", "/v2/models/completed/config").json()
        assert config["max_batch_size"] == 4 and config["input"][0]["name"] == "INPUT0"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"ISOLATION": "thread"}, "expected 'process' or 'none', found 'thread'"),
        ({"ISOLATION": "process", "ISOLATION_MEMORY_MB": "lots"}, "'ISOLATION_MEMORY_MB': expected a number"),
        ({"ISOLATION": "process", "ISOLATION_GRACE_SECS": "-1"}, "'ISOLATION_GRACE_SECS': expected a number"),
    ],
)
def test_parameters_are_checked(repository: Repository, values: dict[str, str], words: str) -> None:
    crasher(repository, "odd", values)
    crasher(repository, "fine", {"ISOLATION": "none"})
    with Nereid(repository.path, options={"exit-on-error": "false"}, wait_ready=False) as server:
        server.process.wait_until(lambda: _serves(server), 120)
        until(lambda: words in reason(server, "odd"))
        assert not children(server.pid)


def test_a_process_that_dies_at_once_is_started_at_longer_intervals(repository: Repository) -> None:
    crasher(repository, "hopeless")
    with Nereid(repository.path, env=QUIET_CRASHES) as server:

        def dies_at_once(times: int) -> None:
            for _ in range(times):
                until(lambda: ready(server, "hopeless"))
                assert ask(server, "hopeless", [KILL]).status == 500

        dies_at_once(5)
        until(lambda: server.process.log().count("started in") == 5)
        pauses = [line.split(" s\"")[0] for line in server.process.log().split("started in ")[1:]]
        assert [pause.split(" s")[0] for pause in pauses] == ["0.0", "0.1", "0.2", "0.4", "0.8"]
        while (answer := ask(server, "hopeless", [1])).status == 200:
            dies_at_once(5)  # the pause was over already: once more
        assert answer.status == 503 and "model 'hopeless' version 1 is not ready" in answer.json()["error"]
        until(lambda: answers(server, "hopeless"))


def test_a_process_has_no_descriptor_of_the_server(repository: Repository) -> None:
    crasher(repository, "one")
    crasher(repository, "two")

    def sockets(pid: int) -> set[str]:
        return {link for link in links(pid) if link.startswith("socket:")}

    with Nereid(repository.path) as server:
        one, two = (process_of(server, model) for model in ("one", "two"))
        assert sockets(one) and sockets(two)
        assert not sockets(one) & sockets(two) and not (sockets(one) | sockets(two)) & sockets(server.pid)
        assert os.getpgid(one) == one and os.getpgid(two) == two


def test_the_program_is_not_for_people_to_start() -> None:
    argv = [str(paths.nereid_binary()), "--isolated-model-process", "x"]
    ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert ran.returncode == 1 and b"not for people to start" in ran.stderr


def test_instances_come_and_go_without_a_reload(repository: Repository) -> None:
    folder = crasher(repository, "counted", extra="instance_group { count: 1 }\n")
    with Nereid(repository.path, options=EXPLICIT) as server:
        old = process_of(server, "counted")
        config: Path = folder / "config.pbtxt"
        common = config.read_text().split("instance_group")[0] + parameters(ISOLATED)
        for count in (3, 1, 2):
            config.write_text(f"{common}instance_group {{ count: {count} }}\n")
            assert control(server, "counted", "load").status == 200
            assert answers(server, "counted")
        assert process_of(server, "counted") == old
