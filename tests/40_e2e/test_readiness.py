"""What is live and ready when the start did not go well, in both servers."""

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import tritonclient.grpc
from harness import rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Server
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.reference


@pytest.mark.parametrize("mode", ["none", "explicit"])
def test_a_repository_that_is_not_there(tmp_path: Path, mode: str) -> None:
    """With --exit-on-error=false both servers stay: their ports are open, they are not live, and nothing of models is answered."""
    made = Repository(tmp_path / "models")
    made.identity("model")
    asks = [
        ("GET", "/v2/health/live"), ("GET", "/v2/health/ready"), ("GET", "/v2"), ("GET", "/v2/models/model"),
        ("GET", "/v2/models/model/ready"), ("GET", "/v2/models/model/config"), ("GET", "/v2/models/model/stats"),
        ("GET", "/v2/models/stats"), ("POST", "/v2/repository/index"), ("POST", "/v2/repository/models/model/load"),
        ("POST", "/v2/repository/models/model/unload"), ("GET", "/v2/logging"),
    ]  # fmt: skip
    found = {}
    for kind in KINDS:
        options = {"exit-on-error": "false", "model-control-mode": mode}
        server = KINDS[kind]([made.path, tmp_path / "none"], options, wait_ready=False)
        server.start()
        try:

            def up(server: Server = server) -> bool:
                try:
                    for port in (server.grpc_port, server.metrics_port):
                        socket.create_connection((HOST, port), timeout=60).close()
                    return rawhttp.get(server.http, "/v2/health/live").status == 400
                except OSError:
                    return False

            server.process.wait_until(up, 120)
            if kind == "nereid":
                server.process.wait_until(lambda server=server: "nothing is served" in server.process.log(), 60)
            answers = [rawhttp.request(HOST, server.http_port, *ask, *([b"{}"] if ask[0] == "POST" else [])) for ask in asks]
            told = [(a.status, a.json() if a.status == 503 else None) for a in answers]
            with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
                assert not client.is_server_live() and not client.is_server_ready()
                with pytest.raises(InferenceServerException) as index:
                    client.get_model_repository_index()
            found[kind] = [*told, (index.value.status(), index.value.message())]
            assert "server is ready" not in server.process.log()
        finally:
            server.stop(status=0 if kind == "nereid" else None)
    assert found["nereid"] == found["reference"]


def test_strict_readiness_counts_what_could_be_looked_at(tmp_path: Path) -> None:
    """A model that has no configuration where one is asked for, or none that can be read, holds readiness up in neither server; one whose
    version fails does in both, unless --strict-readiness=false."""
    for kind in KINDS:
        made = Repository(tmp_path / kind)
        made.identity("model")
        made.model("bare", None)
        (made.identity("unreadable") / "config.pbtxt").write_text('name: "unreadable" backe')
        options = {"exit-on-error": "false", "strict-model-config": "true"}
        with KINDS[kind](made.path, options) as server:
            assert rawhttp.get(server.http, "/v2/health/ready").status == 200
        made.model("broken", 'name: "broken" backend: "nobody_has"')
        with KINDS[kind](made.path, {"exit-on-error": "false"}, wait_ready=False) as server:

            def live(server: Server = server) -> bool:
                try:
                    return rawhttp.get(server.http, "/v2/health/live").status == 200
                except OSError:
                    return False

            server.process.wait_until(live, 120)
            assert rawhttp.get(server.http, "/v2/health/ready").status == 400
        with KINDS[kind](made.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
            assert rawhttp.get(server.http, "/v2/health/ready").status == 200


BATCHED = "max_batch_size: 2 dynamic_batching { preferred_batch_size: [ 4 ] }"
NOT_LOOKED_AT = (500, "failed to load", 200, "is not found")
LOAD_FAILED = (400, "load failed for model", 400, "has no available versions")


def tensors(dims: str = "-1") -> str:
    return "".join(f'{kind} [ {{ name: "{kind.upper()}0" data_type: TYPE_FP32 dims: [ {dims} ] }} ]\n' for kind in ("input", "output"))


IDENTITY = 'backend: "identity"\n' + tensors()
WARM_UP = 'inputs { key: "NONE" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } }'

# What is wrong with a model: its configuration, its versions, and what a server that serves another one answers: the status of the load,
# the beginning of its message, whether the server is ready then, and the end of what inference of the model is told.
BAD_MODELS: dict[str, tuple[str | None, tuple[int, ...], tuple[int, str, int, str]]] = {
    "unreadable": ("x", (1,), NOT_LOOKED_AT),
    "other_name": (IDENTITY + 'name: "another"', (1,), NOT_LOOKED_AT),
    "negative_batch": (IDENTITY + "max_batch_size: -1", (1,), NOT_LOOKED_AT),
    "negative_batch_no_version": (IDENTITY + "max_batch_size: -1", (), NOT_LOOKED_AT),
    "preferred_over_maximum": (IDENTITY + BATCHED, (1,), NOT_LOOKED_AT),
    "no_configuration": (None, (1,), NOT_LOOKED_AT),
    "nothing": (None, (), NOT_LOOKED_AT),
    "no_backend": ("max_batch_size: 1", (1,), NOT_LOOKED_AT),
    "ensemble_with_backend": (IDENTITY + 'platform: "ensemble"', (1,), NOT_LOOKED_AT),
    "ensemble_without_steps": ('platform: "ensemble"\n' + tensors(), (1,), NOT_LOOKED_AT),
    "decoupled_cache": (IDENTITY + "response_cache { enable: true } model_transaction_policy { decoupled: true }", (1,), NOT_LOOKED_AT),
    "no_version": (IDENTITY, (), LOAD_FAILED),
    "no_version_of_the_policy": (IDENTITY + "version_policy { specific { versions: 9 } }", (1,), LOAD_FAILED),
    "versions_that_cannot_be": (IDENTITY + "version_policy { specific { versions: 0 } }", (1,), LOAD_FAILED),
    "unknown_backend": ('backend: "nobody_has"', (1,), LOAD_FAILED),
    "path_as_backend": ('backend: "../identity"', (1,), LOAD_FAILED),
    "zero_dimension": ('backend: "identity"\n' + tensors("0"), (1,), LOAD_FAILED),
    "warm_up_of_another_input": (IDENTITY + f'model_warmup [ {{ name: "a" batch_size: 1 {WARM_UP} }} ]', (1,), LOAD_FAILED),
}
ONE_ROW = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[1]}]}'


def load(server: Server, model: str) -> rawhttp.Answer:
    return rawhttp.request(HOST, server.http_port, "POST", f"/v2/repository/models/{model}/load", b"{}")


def health(server: Server) -> int:
    return rawhttp.get(server.http, "/v2/health/ready").status


def told(server: Server, model: str) -> str:
    answer = rawhttp.request(HOST, server.http_port, "POST", f"/v2/models/{model}/infer", ONE_ROW)
    return answer.json().get("error", "serves")


def failed(server: Server, model: str) -> tuple[int, str, int, str]:
    """What a load came to, in the words that both servers have."""
    answer = load(server, model)
    said = answer.json()["error"]
    start = next((each for each in (NOT_LOOKED_AT[1], LOAD_FAILED[1]) if said.startswith(each)), said)
    return answer.status, start, health(server), told(server, model).removeprefix(f"Request for unknown model: '{model}' ")


@pytest.mark.parametrize("kind", KINDS)
def test_readiness_counts_the_models_that_a_load_came_to(tmp_path: Path, kind: str) -> None:
    """A configuration that both refuse before a version is begun does not hold readiness up; a model that has no version does, and one
    whose version fails. What was wrong is mended before the next one is asked for."""
    made = Repository(tmp_path)
    made.identity("good")
    for name, (config, versions, _) in BAD_MODELS.items():
        (made.path / name).mkdir()
        made.model(name, config, versions)
    found = {}
    with KINDS[kind](made.path, {"model-control-mode": "explicit", "load-model": "good"}) as server:
        for name in BAD_MODELS:
            found[name] = failed(server, name)
            made.model(name, IDENTITY)
            assert (load(server, name).status, health(server)) == (200, 200), name
    assert found == {name: wanted for name, (_, _, wanted) in BAD_MODELS.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_strict_configurations_are_refused_before_a_version_is_begun(tmp_path: Path, kind: str) -> None:
    """Where nothing is to be completed, inputs and outputs are looked at with the rest."""
    made = Repository(tmp_path)
    made.model("model", 'backend: "identity"\n' + tensors("0"))
    options = {"model-control-mode": "explicit", "strict-model-config": "true"}
    with KINDS[kind](made.path, options) as server:
        assert failed(server, "model") == NOT_LOOKED_AT


@pytest.mark.parametrize("kind", KINDS)
def test_what_became_of_versions_outlives_a_load_that_looks_at_none(tmp_path: Path, kind: str) -> None:
    """A version that was unloaded, or failed, is still one of the model's when the next load gets to no version."""
    made = Repository(tmp_path)
    made.model("model", IDENTITY)
    (made.path / "model" / "1" / "file").write_text("x")

    def broken() -> None:
        made.model("model", "x")

    def negative() -> None:
        made.model("model", IDENTITY + "max_batch_size: -1")

    def without_version() -> None:
        made.model("model", IDENTITY)
        shutil.rmtree(made.path / "model" / "1")

    def without_backend() -> None:
        made.model("model", 'backend: "nobody_has"')

    gone = "has no available versions"
    steps: list[tuple[Callable[[], None], int, int]] = [
        (broken, 500, 200), (negative, 500, 200), (without_version, 400, 200), (without_backend, 400, 400),
        (broken, 500, 400), (negative, 500, 400), (without_version, 400, 400),
    ]  # fmt: skip
    with KINDS[kind](made.path, {"model-control-mode": "explicit", "load-model": "model"}) as server:
        for change, status, _ in steps[:3]:
            change()
            assert (load(server, "model").status, health(server), told(server, "model")) == (status, 200, "serves"), change.__name__
        made.model("model", IDENTITY)
        assert load(server, "model").status == 200
        assert rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/models/model/unload", b"{}").status == 200
        server.process.wait_until(lambda: b"unloaded" in index(server), 60)
        for change, status, ready in steps:
            change()
            got = failed(server, "model")
            assert (got[0], got[2], got[3]) == (status, ready, gone), change.__name__
        made.model("model", IDENTITY)
        assert (load(server, "model").status, health(server), told(server, "model")) == (200, 200, "serves")


def index(server: Server) -> bytes:
    return rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/index", b"").body


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_being_copied_in(tmp_path: Path, kind: str) -> None:
    """Its version is there before its configuration is: a server that polls stays ready, and serves the model when it is complete."""
    made = Repository(tmp_path)
    made.identity("good")
    with KINDS[kind](made.path, {"model-control-mode": "poll", "repository-poll-secs": "1"}) as server:
        made.model("copied", None)
        server.process.wait_until(lambda: "copied" in server.process.log(), 60)
        for marker in ("marker", "another"):  # when that is served, the half copied one has been looked at
            made.identity(marker)
            server.process.wait_until(lambda marker=marker: told(server, marker) == "serves", 60)
            assert health(server) == 200
            assert "copied" in [row["name"] for row in json.loads(index(server))] or kind == "reference"
        made.model("copied", IDENTITY)
        server.process.wait_until(lambda: told(server, "copied") == "serves", 60)
        assert health(server) == 200
