"""Models of one name in several repositories (--model-namespacing): the same questions to both servers, with the same answers expected."""

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import BOTH
from harness import metrics, rawgrpc, rawhttp
from harness.compare import Grpc, Http, compare
from harness.ensembles import Ensemble, Step, chain
from harness.process import ServerFailed
from harness.repository import Repository
from harness.servers import Server, serving
from tritonclient.grpc import service_pb2 as pb

ON = {"model-namespacing": "true"}
EXPLICIT = {**ON, "model-control-mode": "explicit"}
POLL = {**ON, "model-control-mode": "poll", "repository-poll-secs": "1"}
FORGIVING = {"exit-on-error": "false", "strict-readiness": "false"}


class Repositories:
    """Three of them. Whatever is called x takes FP32 in the first, and INT32 in the second, so that a wrong one does not do."""

    def __init__(self, path: Path):
        self.a, self.b, self.c = (Repository(path / name) for name in "abc")

    @property
    def paths(self) -> list[Path]:
        return [self.a.path, self.b.path, self.c.path]

    def x(self) -> "Repositories":
        self.a.identity("x")
        self.b.identity("x", "INT32")
        return self

    def ensembles(self) -> "Repositories":
        """Each uses the x beside it."""
        self.x()
        self.a.model("floats", chain("floats", ["x"]).config())
        self.b.model("whole", chain("whole", ["x"], datatype="INT32").config())
        return self

    def across(self) -> "Repositories":
        """Whose step lies in another repository, and whose step lies in two others."""
        self.b.identity("far")
        self.a.model("cross", chain("cross", ["far"]).config())
        self.b.identity("twice")
        self.c.identity("twice")
        self.a.model("torn", chain("torn", ["twice"]).config())
        return self

    def broken(self) -> "Repositories":
        """One that the backend refuses, and one whose configuration cannot be read, each with a namesake that serves."""
        self.a.identity("half")
        self.b.model("half", "name: 'half' backend: 'nosuch' max_batch_size: 0")
        self.a.identity("scrap")
        self.b.model("scrap", "name: 'scrap' backend: 'ide")
        return self


@pytest.fixture
def repositories(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path)


def several(name: str, count: int = 2) -> str:
    return (
        f"There are {count} identifiers of model '{name}' in global map, model namespace must be provided to resolve ambiguity."
    )


def unknown(name: str) -> str:
    return f"Request for unknown model: '{name}' is not found"


def gone(name: str) -> str:
    return f"Identifier of model '{name}' is not found in global map"


def post(server: Server, path: str, body: Any = None) -> rawhttp.Answer:
    return rawhttp.post(server.http, path, json.dumps({} if body is None else body).encode())


def get(server: Server, path: str) -> rawhttp.Answer:
    host, port = server.http.split(":")
    return rawhttp.request(host, int(port), "GET", path)


def index(server: Server) -> list[tuple[str, str]]:
    """Names and states of what was loaded once, in their order; nothing is on its way out then."""

    def rows() -> list[dict[str, str]]:
        return post(server, "/v2/repository/index").json()

    server.process.wait_until(lambda: all(row.get("state") != "UNLOADING" for row in rows()), 60)
    return [(row["name"], row["state"]) for row in rows() if row.get("version")]


def ready(server: Server) -> list[str]:
    return [name for name, state in index(server) if state == "READY"]


def load(
    server: Server, model: str, parameters: dict[str, Any] | None = None, repository: str = ""
) -> rawhttp.Answer:
    path = f"/v2/repository/{repository}/models" if repository else "/v2/repository/models"
    return post(server, f"{path}/{model}/load", {"parameters": parameters} if parameters else None)


def unload(server: Server, model: str, dependents: bool = False, repository: str = "") -> rawhttp.Answer:
    path = f"/v2/repository/{repository}/models" if repository else "/v2/repository/models"
    server.rest()
    return post(server, f"{path}/{model}/unload", {"parameters": {"unload_dependents": True}} if dependents else None)


def infer(server: Server, model: str, datatype: str = "FP32", tensor: str = "INPUT0") -> rawhttp.Answer:
    given = {"name": tensor, "datatype": datatype, "shape": [2], "data": [1, 2]}
    return post(server, f"/v2/models/{model}/infer", {"inputs": [given]})


def means(server: Server, model: str) -> str:
    """What the name leads to: the data type that it takes, or the error."""
    for datatype in ("FP32", "INT32"):
        got = infer(server, model, datatype)
        if got.status == 200:
            return datatype
    return f"{got.status} {got.json()['error']}"


def runs(server: Server, ensemble: str, datatype: str = "FP32") -> str:
    got = infer(server, ensemble, datatype, "IN")
    return "" if got.status == 200 else f"{got.status} {got.json()['error']}"


def steps(server: Server, ensemble: str) -> list[str]:
    """The spaces of an ensemble's steps, as its configuration tells."""
    config = get(server, f"/v2/models/{ensemble}/config").json()
    return [step["model_namespace"] for step in config["ensemble_scheduling"]["step"]]


def grpc(server: Server, method: str, request: Any) -> tuple[str, str]:
    with rawgrpc.Channel(server.grpc) as channel:
        got = channel.call(method, request)
    return got.code, got.details


def counted(server: Server, model: str) -> dict[str, float]:
    """Successful requests of a model, by space."""
    family = metrics.parse(get_metrics(server))["nv_inference_request_success"]
    return {labels["namespace"]: value for _, labels, value in family.samples if labels["model"] == model}


def get_metrics(server: Server) -> str:
    host, port = server.metrics.split(":")
    return rawhttp.request(host, int(port), "GET", "/metrics").body.decode()


@pytest.mark.parametrize("kind", BOTH)
def test_a_name_that_means_several(kind: str, repositories: Repositories) -> None:
    repositories.x().a.identity("alone", versions=(1, 3))
    with serving(kind, repositories.paths, ON) as server:
        assert ready(server) == ["alone", "x", "x"]
        for path in ("", "/config", "/versions/1"):
            got = get(server, f"/v2/models/x{path}")
            assert (got.status, got.json()["error"]) == (400, several("x")), path
        for path in ("/stats", "/versions/1/stats"):
            got = get(server, f"/v2/models/x{path}")
            assert (got.status, got.json()["error"]) == (400, "requested model 'x' is not available"), path
        assert get(server, "/v2/models/x/ready").status == 400
        assert means(server, "x") == f"400 {several('x')}"
        assert grpc(server, "ModelMetadata", pb.ModelMetadataRequest(name="x")) == ("INVALID_ARGUMENT", several("x"))
        assert grpc(server, "ModelConfig", pb.ModelConfigRequest(name="x")) == ("INVALID_ARGUMENT", several("x"))
        wanted = rawgrpc.infer_request("x", [("INPUT0", "FP32", [2], bytes(8))])
        assert grpc(server, "ModelInfer", wanted) == ("INVALID_ARGUMENT", several("x"))
        with rawgrpc.Channel(server.grpc) as channel:
            got = channel.call("ModelReady", pb.ModelReadyRequest(name="x"))
        assert got.code == "OK"
        assert not got.parse(pb.ModelReadyResponse).ready
        assert means(server, "alone") == "FP32"
        assert means(server, "nosuch") == f"400 {unknown('nosuch')}"
        title = f"{repositories.a.path}::alone"
        got = get(server, "/v2/models/alone/versions/7")
        assert (got.status, got.json()["error"]) == (
            404,
            f"Request for unknown model: '{title}' version 7 is not found",
        )
        assert counted(server, "alone") == {str(repositories.a.path): 1}
        assert counted(server, "x") == {str(repositories.a.path): 0, str(repositories.b.path): 0}


@pytest.mark.parametrize("kind", BOTH)
def test_ensembles_use_their_own_namesakes(kind: str, repositories: Repositories) -> None:
    repositories.ensembles()
    with serving(kind, repositories.paths, ON) as server:
        for _ in range(3):
            assert runs(server, "floats") == ""
        assert runs(server, "whole", "INT32") == ""
        a, b = str(repositories.a.path), str(repositories.b.path)
        assert counted(server, "x") == {a: 3, b: 1}
        assert (steps(server, "floats"), steps(server, "whole")) == ([a], [b])


@pytest.mark.parametrize("kind", BOTH)
def test_a_step_of_another_repository(kind: str, repositories: Repositories) -> None:
    """Where there is one of its name; not where there are two."""
    repositories.across()
    with serving(kind, repositories.paths, ON | FORGIVING) as server:
        assert runs(server, "cross") == ""
        assert steps(server, "cross") == [str(repositories.b.path)]
        title = f"{repositories.a.path}::torn"
        assert runs(server, "torn") == f"404 Request for unknown model: '{title}' is not found"
        assert f"ensemble {title} contains models that are not available or ambiguous: twice" in server.process.log()


@pytest.mark.parametrize("kind", BOTH)
def test_ensembles_that_cross(kind: str, repositories: Repositories) -> None:
    """Each lies beside a plain namesake of the other: the names go in a circle, the models do not."""
    repositories.a.model("p", chain("p", ["q"]).config())
    repositories.a.identity("q")
    repositories.b.model("q", chain("q", ["p"]).config())
    repositories.b.identity("p")
    for here, name, step in ((repositories.a, "uses_p", "p"), (repositories.b, "uses_q", "q")):
        here.model(name, Ensemble(name, [Step(step, {"IN": "IN"}, {"OUT": "OUT"})]).config())
    with serving(kind, repositories.paths, ON) as server:
        assert ready(server) == ["p", "q", "uses_p", "p", "q", "uses_q"]
        assert runs(server, "uses_p") == runs(server, "uses_q") == ""


@pytest.mark.parametrize("kind", BOTH)
def test_ensembles_that_go_in_a_circle(kind: str, repositories: Repositories) -> None:
    for here, name, other in ((repositories.a, "p", "q"), (repositories.b, "q", "p")):
        config = chain(name, [other]).config().replace("INPUT0", "IN").replace("OUTPUT0", "OUT")
        here.model(name, config)
    with serving(kind, repositories.paths, EXPLICIT) as server:
        got = load(server, "p")
        a, b = f"{repositories.a.path}::p", f"{repositories.b.path}::q"
        assert got.status == 400
        assert f"load failed for model '{a}': " in got.json()["error"]
        assert f"circular dependency between ensembles: {a} -> ... -> {b} -> {a}" in got.json()["error"]


@pytest.mark.parametrize("kind", BOTH)
def test_loading_and_unloading_are_for_every_namesake(kind: str, repositories: Repositories) -> None:
    repositories.x()
    with serving(kind, repositories.paths, EXPLICIT) as server:
        assert means(server, "x") == f"400 {unknown('x')}", "nobody asked for it yet"
        assert load(server, "x").status == 200
        assert ready(server) == ["x", "x"]
        assert means(server, "x") == f"400 {several('x')}"
        assert unload(server, "x").status == 200
        assert index(server) == [("x", "UNAVAILABLE")] * 2
        assert means(server, "x") == f"404 {gone('x')}"
        assert unload(server, "x").status == 200
        got = load(server, "nosuch")
        assert got.status == 500
        assert got.json()["error"].startswith("failed to load 'nosuch', failed to poll from model repository")
        assert means(server, "nosuch") == f"400 {unknown('nosuch')}"


@pytest.mark.parametrize("kind", BOTH)
def test_a_namesake_that_cannot_be_loaded(kind: str, repositories: Repositories) -> None:
    """One that was read is meant by its name, also where it fails; one that cannot be read is not."""
    repositories.broken()
    with serving(kind, repositories.paths, EXPLICIT) as server:
        got = load(server, "half")
        assert got.status == 400
        assert got.json()["error"].startswith(
            f"load failed for model '{repositories.b.path}::half': version 1 is at UNAVAILABLE state: "
        )
        assert index(server) == [("half", "READY"), ("half", "UNAVAILABLE")]
        assert means(server, "half") == f"400 {several('half')}"
        got = load(server, "scrap")
        assert got.status == 500
        assert got.json()["error"].startswith("failed to load 'scrap', failed to poll from model repository")
        assert means(server, "scrap") == "FP32"


@pytest.mark.parametrize("kind", BOTH)
def test_one_that_is_taken_away(kind: str, repositories: Repositories) -> None:
    """Until it is unloaded it serves on, and its name means two."""
    repositories.x()
    with serving(kind, repositories.paths, EXPLICIT) as server:
        load(server, "x")
        shutil.rmtree(repositories.b.path / "x")
        assert load(server, "x").status == 200
        assert means(server, "x") == f"400 {several('x')}"
        unload(server, "x")
        assert load(server, "x").status == 200
        assert means(server, "x") == "FP32"


@pytest.mark.parametrize("kind", BOTH)
def test_one_of_them_is_loaded_again(kind: str, repositories: Repositories) -> None:
    """Loading finds what changed: the other is left as it is."""
    repositories.ensembles()
    with serving(kind, repositories.paths, EXPLICIT) as server:
        assert load(server, "floats").status == 200
        assert load(server, "whole").status == 200
        assert runs(server, "floats") == runs(server, "whole", "INT32") == ""
        changed = repositories.a.path / "x" / "1" / "changed"
        changed.write_text("")
        now = os.stat(changed).st_mtime_ns
        os.utime(changed, ns=(now + 10**10, now + 10**10))
        assert load(server, "x").status == 200
        assert runs(server, "floats") == runs(server, "whole", "INT32") == ""
        log = server.process.log()
        assert log.count(f"loading: {repositories.a.path}::x:1") == 2
        assert log.count(f"loading: {repositories.b.path}::x:1") == 1


OWN = {
    "backend": "identity",
    "max_batch_size": 0,
    "input": [{"name": "INPUT0", "data_type": "TYPE_FP64", "dims": [-1]}],
    "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP64", "dims": [-1]}],
}


@pytest.mark.parametrize("kind", BOTH)
def test_what_a_client_brings(kind: str, repositories: Repositories) -> None:
    """A configuration is for every namesake; with files it is one more model, that lies in no repository."""
    repositories.x().a.identity("alone")
    with serving(kind, repositories.paths, EXPLICIT) as server:
        assert load(server, "alone", {"config": json.dumps(OWN)}).status == 200
        assert get(server, "/v2/models/alone").json()["inputs"][0]["datatype"] == "FP64"
        assert load(server, "x", {"config": json.dumps(OWN)}).status == 200
        assert means(server, "x") == f"400 {several('x')}"
        brought = {"config": json.dumps(OWN), "file:1/weights": "YWJj"}
        assert load(server, "own", brought).status == 200
        assert get(server, "/v2/models/own").json()["inputs"][0]["datatype"] == "FP64"
        got = get(server, "/v2/models/own/versions/9")
        assert got.json()["error"] == "Request for unknown model: 'own' version 9 is not found"
        assert load(server, "alone", brought).status == 200
        assert means(server, "alone") == f"400 {several('alone')}"
        unload(server, "alone")
        assert means(server, "alone") == f"404 {gone('alone')}"


@pytest.mark.parametrize("kind", BOTH)
def test_what_a_step_means_changes(kind: str, repositories: Repositories) -> None:
    """With namesakes that come: two elsewhere are one too many, the ensemble's own is always right."""
    repositories.across()
    a, b = str(repositories.a.path), str(repositories.b.path)
    with serving(kind, repositories.paths, EXPLICIT) as server:
        assert load(server, "cross").status == 200
        assert steps(server, "cross") == [b]
        repositories.c.identity("far")
        assert load(server, "far").status == 200
        assert runs(server, "cross") == f"404 Request for unknown model: '{a}::cross' has no available versions"
        repositories.a.identity("far")
        assert load(server, "far").status == 200
        assert runs(server, "cross") == ""
        assert steps(server, "cross") == [a]
        assert unload(server, "far").status == 200
        assert runs(server, "cross") == f"404 Request for unknown model: '{a}::cross' has no available versions"
        shutil.rmtree(repositories.a.path / "far")
        shutil.rmtree(repositories.c.path / "far")
        assert load(server, "far").status == 200
        assert runs(server, "cross") == ""
        assert steps(server, "cross") == [b]


@pytest.mark.parametrize("kind", BOTH)
def test_what_is_loaded_along(kind: str, repositories: Repositories) -> None:
    """Every namesake of a step comes along; unload_dependents takes the one that was used."""
    repositories.ensembles()
    with serving(kind, repositories.paths, EXPLICIT) as server:
        assert load(server, "floats").status == 200
        assert ready(server) == ["floats", "x", "x"]
        assert unload(server, "floats", dependents=True).status == 200
        assert index(server) == [("floats", "UNAVAILABLE"), ("x", "UNAVAILABLE"), ("x", "READY")]
        assert means(server, "x") == "INT32"


@pytest.mark.parametrize("kind", BOTH)
def test_messages_about_a_load(kind: str, repositories: Repositories) -> None:
    repositories.x().across()
    repositories.a.model("unfit", chain("unfit", ["x"], datatype="INT32").config())
    repositories.a.model("empty", "name: 'empty' backend: 'identity' max_batch_size: 0", versions=("none",))
    repositories.b.identity("empty")
    a = repositories.a.path
    with serving(kind, repositories.paths, EXPLICIT) as server:
        expected = {
            "torn": f"load failed for model '{a}::torn': ensemble {a}::torn contains models that are not available or ambiguous: twice\n",
            "unfit": f"load failed for model '{a}::unfit': in ensemble {a}::unfit, ensemble tensor IN: inconsistent data type: "
            f"TYPE_INT32 is inferred from model {a}::unfit while TYPE_FP32 is inferred from model {a}::x\n",
            "empty": f"load failed for model '{a}::empty': at least one version must be available under the version policy of "
            f"model '{a}::empty'\n",
        }
        for model, message in expected.items():
            got = load(server, model)
            assert (got.status, got.json()["error"]) == (400, message)


@pytest.mark.parametrize("kind", BOTH)
def test_polling_one_while_the_other_serves(kind: str, repositories: Repositories) -> None:
    repositories.ensembles()
    here = repositories.a.path / "x"
    aside = repositories.a.path.parent / "aside"
    with serving(kind, repositories.paths, POLL | FORGIVING) as server:
        assert means(server, "x") == f"400 {several('x')}"
        here.rename(aside)
        server.process.wait_until(lambda: means(server, "x") == "INT32", 60)
        assert runs(server, "whole", "INT32") == ""
        # The other x takes other data: the ensemble is out.
        server.process.wait_until(lambda: runs(server, "floats") != "", 60)
        aside.rename(here)
        server.process.wait_until(lambda: means(server, "x") == f"400 {several('x')}", 60)
        server.process.wait_until(lambda: runs(server, "floats") == "", 60)
        assert runs(server, "whole", "INT32") == ""
        shutil.rmtree(here)
        shutil.rmtree(repositories.b.path / "x")
        server.process.wait_until(lambda: means(server, "x") == f"404 {gone('x')}", 60)


@pytest.mark.parametrize("kind", BOTH)
def test_models_of_the_start(kind: str, repositories: Repositories) -> None:
    repositories.ensembles().a.identity("other")
    options = EXPLICIT | {"load-model": ["x", "whole"]}
    with serving(kind, repositories.paths, options) as server:
        assert ready(server) == ["x", "whole", "x"]
        assert runs(server, "whole", "INT32") == ""
        assert means(server, "other") == f"400 {unknown('other')}"
    with serving(kind, repositories.paths, EXPLICIT | {"load-model": "*"}) as server:
        assert ready(server) == ["floats", "other", "x", "whole", "x"]
    with pytest.raises(ServerFailed, match="ended with status 1 before it was ready"), serving(kind, repositories.paths, EXPLICIT | {"load-model": "nosuch"}):
        pass


@pytest.mark.parametrize("kind", BOTH)
def test_without_it_a_name_is_one_model(kind: str, repositories: Repositories) -> None:
    repositories.ensembles()
    with serving(kind, repositories.paths, {"model-namespacing": "false"} | FORGIVING) as server:
        assert means(server, "x") == f"404 {unknown('x')}"
        rows = [row for row in post(server, "/v2/repository/index").json() if row["name"] == "x"]
        assert rows == [
            {"name": "x", "state": "UNAVAILABLE", "reason": "model appears in two or more repositories"}
        ]
        assert 'namespace="' not in get_metrics(server)


# Times, and a field that the reference had only later.
NOT_COMPARED = ("ns", "last_inference", "max_inflight_requests")


def forget(value: Any) -> None:
    if isinstance(value, dict):
        for key in NOT_COMPARED:
            value.pop(key, None)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        forget(inner)


def questions() -> list[Http | Grpc]:
    asked: list[Http | Grpc] = []
    for name in ("x", "half", "scrap", "floats", "far", "cross", "torn", "nosuch"):
        for path in ("", "/config", "/stats", "/versions/1", "/versions/9", "/versions/9/stats"):
            asked.append(Http(f"{name}{path}", "GET", f"/v2/models/{name}{path}", adjust=forget))
        tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}
        asked.append(Http(f"infer {name}", "POST", f"/v2/models/{name}/infer", json.dumps({"inputs": [tensor]}).encode()))
        asked.append(Grpc(f"metadata {name}", "ModelMetadata", pb.ModelMetadataRequest(name=name), pb.ModelMetadataResponse))
        asked.append(Grpc(f"config {name}", "ModelConfig", pb.ModelConfigRequest(name=name), pb.ModelConfigResponse))
        asked.append(Grpc(f"ready {name}", "ModelReady", pb.ModelReadyRequest(name=name), pb.ModelReadyResponse))
        wanted = rawgrpc.infer_request(name, [("INPUT0", "FP32", [2], bytes(8))])
        asked.append(Grpc(f"infer {name}", "ModelInfer", wanted, pb.ModelInferResponse))
    ready_only = json.dumps({"ready": True}).encode()
    asked.append(Http("index of what is ready", "POST", "/v2/repository/index", ready_only))
    return asked


@pytest.mark.reference
def test_every_question_has_the_answer_of_the_reference(repositories: Repositories) -> None:
    repositories.ensembles().across().broken()
    options = ON | FORGIVING
    with (
        serving("reference", repositories.paths, options) as reference,
        serving("nereid", repositories.paths, options) as ours,
    ):
        found = [
            f"{question.name}: {line}"
            for question in questions()
            for line in compare(question, ours, reference)
        ]
        assert found == []


def test_statistics_of_all_say_which(repositories: Repositories) -> None:
    """The reference looks for a model that is called like that, and fails."""
    repositories.ensembles()
    with serving("nereid", repositories.paths, ON) as server:
        runs(server, "floats")
        a, b = repositories.a.path, repositories.b.path

        def counted() -> dict[str, int]:
            rows = get(server, "/v2/models/stats").json()["model_stats"]
            return {row["name"]: row["inference_count"] for row in rows}

        # An ensemble counts once it was answered.
        server.process.wait_for(counted, {f"{a}::floats": 1, f"{a}::x": 1, f"{b}::whole": 0, f"{b}::x": 0})


def test_a_repository_is_a_space(repositories: Repositories) -> None:
    """RX-66, RX-74, X-11: a load or unload that names a repository is for the model there alone."""
    repositories.ensembles()
    with serving("nereid", repositories.paths, EXPLICIT) as server:
        assert load(server, "x", repository="b").status == 200
        assert means(server, "x") == "INT32"
        assert load(server, "whole").status == 200
        assert runs(server, "whole", "INT32") == ""
        assert load(server, "x", repository="a").status == 200
        assert means(server, "x") == f"400 {several('x')}"
        assert unload(server, "x", repository="a").status == 200
        assert means(server, "x") == "INT32"
        assert runs(server, "whole", "INT32") == ""
        got = unload(server, "x", repository="c")
        assert (got.status, got.json()["error"]) == (404, "model 'x' was not loaded from this repository")
        got = load(server, "x", repository="c")
        assert got.status == 500
        rows = post(server, "/v2/repository/a/index").json()
        assert [row["name"] for row in rows] == ["floats", "x"]


def test_one_comes_and_goes_under_load(repositories: Repositories) -> None:
    """Requests to the others never notice."""
    repositories.ensembles()
    wrong: list[str] = []
    asked = [0] * 4
    over = threading.Event()

    def client(server: Server, me: int) -> None:
        while not over.is_set():
            said = runs(server, "whole", "INT32")
            if said:
                wrong.append(said)
            asked[me] += 1

    with serving("nereid", repositories.paths, EXPLICIT) as server:
        load(server, "whole")
        clients = [threading.Thread(target=client, args=(server, me)) for me in range(len(asked))]
        for thread in clients:
            thread.start()
        try:
            server.process.wait_until(lambda: min(asked) > 0, 60)
            for turn in range(40):
                assert load(server, "floats", repository="a").status == 200
                assert runs(server, "floats") == ""
                assert unload(server, "x", dependents=True, repository="a").status == 200
                assert means(server, "x") == "INT32"
                server.process.wait_until(lambda turn=turn: sum(asked) > turn, 60)
        finally:
            over.set()
            for thread in clients:
                thread.join()
        assert wrong == []


def test_storm(repositories: Repositories) -> None:
    """Whatever is loaded and unloaded side by side, every call is answered, and what is asked for last holds."""
    repositories.ensembles().across()
    repositories.a.model("p", chain("p", ["q"]).config())
    repositories.a.identity("q")
    repositories.b.model("q", chain("q", ["p"]).config())
    repositories.b.identity("p")
    names = ["x", "floats", "whole", "far", "cross", "twice", "torn", "p", "q"]
    refusals = {"no repository has a directory of this name": 500, "was not loaded from this repository": 404}
    done: list[str] = []

    def shake(server: Server, me: int) -> None:
        for turn in range(30):
            name = names[(me * 7 + turn * 5) % len(names)]
            where = ["", "", "a", "b", "c"][(me + turn) % 5]
            if (me + turn) % 3:
                got = load(server, name, repository=where)
            else:
                got = unload(server, name, dependents=turn % 2 == 0, repository=where)
            if got.status != 200:
                error = got.json()["error"]
                assert name in error and got.status == next((status for words, status in refusals.items() if words in error), 400), got
            done.append("refused" if got.status != 200 else "load" if (me + turn) % 3 else "unload")

    with serving("nereid", repositories.paths, EXPLICIT) as server:
        threads = [threading.Thread(target=shake, args=(server, me)) for me in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 30 * len(threads) and set(done) == {"load", "unload", "refused"}, done
        for name in names:
            unload(server, name)
        assert ready(server) == []
        for name in ("floats", "whole", "cross"):
            assert load(server, name).status == 200
        assert runs(server, "floats") == runs(server, "whole", "INT32") == runs(server, "cross") == ""
