"""What goes wrong in each callback, cancellation, and stubs that die; as in the reference, or better where it says so."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from asks import Asker, words
from conftest import Both, make_server
from harness import rawhttp

ERRORS = ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED"]


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize(
    "ask",
    [
        "raise", "model exception", "no list", "too many", "too few", "wrong thing", "wrong type",
        "no output", "error plain", "error and outputs", *(f"error {code}" for code in ERRORS),
    ],
)  # fmt: skip
def test_failures_of_execute(both: Both, ask: str, protocol: str) -> None:
    both.same(lambda asker: asker.told("fails_execute", ask, protocol=protocol))
    assert both.same(lambda asker: asker.told("fails_execute", "well", protocol=protocol)) == "well"


def test_an_errors_code(both: Both) -> None:
    """It equals its number, is no int and is never false."""
    assert "UNKNOWN" in both.same(lambda asker: asker.told("fails_execute", "code"))


@pytest.mark.parametrize(
    "model",
    [
        "fails_initialize", "fails_import", "no_class", "fails_auto_complete", "auto_complete_clash",
        "auto_complete_nothing", "environment_missing",
    ],
)  # fmt: skip
def test_models_that_do_not_load(both: Both, model: str) -> None:
    """The status and the reason are the reference's, but for the lines of the backend's own module; the index has it too."""

    def ask(asker: Asker) -> Any:
        status, told = asker.load(model)
        lines = told["error"].replace(str(asker.server.options["backend-directory"]), "BACKENDS").splitlines()
        return status, [line for line in lines if "triton_python_backend_utils.py(" not in line]

    status, _ = both.same(ask)
    assert status == 400
    assert {asker.ready(model) for asker in both.askers.values()} <= {400, 404}


@pytest.mark.parametrize("ask", ["none", "a none"])
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_requests_without_a_response(both: Both, ask: str, protocol: str) -> None:
    """The reference never answers these; this server does, once nobody is left who could."""
    for kind in both.askers.keys() - {"reference"}:
        answer = both.askers[kind].told("fails_execute", ask, protocol=protocol)
        assert "without a final response" in answer["message"]


def test_a_model_without_execute(both: Both) -> None:
    assert both.same(lambda asker: asker.load("no_execute"))[0] == 200
    assert "message" in both.same(lambda asker: asker.told("no_execute", ""))


def test_failure_of_finalize(both: Both) -> None:
    """The model is unloaded all the same, and can be loaded again."""
    for _ in range(2):
        assert both.same(lambda asker: asker.load("fails_finalize"))[0] == 200
        assert both.same(lambda asker: asker.told("fails_finalize", "")) == "well"
        assert both.same(lambda asker: asker.unload("fails_finalize"))[0] == 200
        for asker in both.askers.values():
            asker.until(lambda asker=asker: asker.ready("fails_finalize") != 200)


def test_cancelled_requests(both: Both) -> None:
    """Cancelled on the way: the model sees it, and the client has its answer at once."""

    def ask(asker: Asker) -> Any:
        before = asker.log_size()
        working = asker.start("cancel", {"ASK": words("work")})
        asker.until(lambda: "the model works" in asker.log_since(before))
        working.cancel()
        return asker.told("cancel", "ends")

    assert both.same(ask) == "cancelled"


def test_cancelled_streams(both: Both) -> None:
    def ask(asker: Asker) -> Any:
        came = asker.stream("cancel_decoupled", {"ASK": words("work")}, cancel_after=1)
        assert came[0]["TOLD"][2] == [b"begun"]

        def ends() -> str:
            return asker.stream("cancel_decoupled", {"ASK": words("ends")})[0]["TOLD"][2][0].decode()

        asker.until(lambda: ends() != "")
        return ends()

    assert both.same(ask) == "cancelled"


def stub_of(asker: Asker, model: str) -> int:
    return int(asker.told(model, "pid"))


def renew(asker: Asker, model: str) -> None:
    assert asker.unload(model)[0] == 200
    asker.until(lambda: asker.ready(model) != 200)
    assert asker.load(model)[0] == 200


def test_a_stub_that_dies_in_execute(both: Both) -> None:
    """The request is answered with an error that names the model's instance. With our backend the next one finds a new stub; with the
    compiled one those after it fail as well, until the model is loaded anew."""

    def ask(asker: Asker) -> Any:
        before = stub_of(asker, "dies")
        failed = asker.told("dies", "die")
        after = asker.told("dies", "")
        renew(asker, "dies")
        return failed["message"], after, before != stub_of(asker, "dies"), asker.ready("dies")

    for kind, (failed, after, renewed, status) in both.each(ask).items():
        assert "'dies_0'" in failed
        assert after == "1" if kind == "nereid" else "'dies_0'" in after["message"]
        assert renewed and status == 200


def test_a_stub_that_is_killed_while_idle(both: Both) -> None:
    """With our backend nobody notices."""

    def ask(asker: Asker) -> Any:
        os.kill(stub_of(asker, "dies"), signal.SIGKILL)
        told = asker.told("dies", "")
        renew(asker, "dies")
        return told, asker.told("dies", "")

    for kind, (told, after) in both.each(ask).items():
        assert told == "1" if kind == "nereid" else "'dies_0'" in told["message"]
        assert after == "1"


def test_other_models_lose_nothing(both: Both) -> None:
    """While the stub of one model dies, another one answers every request. What is said of the dead one differs
    (docs/user/python.md, "Where it differs from Triton's"): ours says more."""
    said = "Stub process 'dies_0' is not healthy."
    whole = {"nereid": f"Failed to process the request(s) for model instance 'dies_0', message: {said} It has ended."}

    def ask(asker: Asker) -> Any:
        told = asker.at_once(lambda i: asker.told("dies", "die") if i == 0 else asker.told("logs", ""), 8)
        renew(asker, "dies")
        return told

    for kind, told in both.each(ask).items():
        assert told == [{"status": "StatusCode.INTERNAL", "message": whole.get(kind, said)}, *["logged"] * 7], kind


@pytest.mark.parametrize("kind", ["nereid", "compiled"])
@pytest.mark.parametrize("model", ["fails_initialize", "fails_import"])
def test_a_model_that_does_not_load_leaves_no_memory_behind(
    python_backends: dict[str, Path], repository: Path, tmp_path: Path, model: str, kind: str
) -> None:
    """The backend frees the memory that it shares with its stub in Finalize, also after a failed Initialize."""
    prefix = f"left_{os.getpid()}_{model}_"
    options = {"model-control-mode": "explicit", "backend-config": f"python,shm-region-prefix-name={prefix}"}
    server = make_server(kind, python_backends, repository, options)
    server.start()
    try:
        server.wait_until_ready(240)
        answer = rawhttp.post(server.http, f"/v2/repository/models/{model}/load", b"{}")
        assert answer.status == 400, answer.body
        assert [path.name for path in Path("/dev/shm").iterdir() if path.name.startswith(prefix)] == []
    finally:
        server.kill()  # small things of the backend's own are lost, which a sanitizer would tell
