"""Ensembles come and go with the models that they need: the same steps in both servers, and storms of them under load."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import BOTH
from harness import paths, rawhttp
from harness.ensembles import Ensemble, Step, chain
from harness.process import ServerFailed
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server, serving

EXPLICIT = {"model-control-mode": "explicit"}
POLL = {"model-control-mode": "poll", "repository-poll-secs": "1"}


def build(path: Path) -> Repository:
    made = Repository(path)
    made.identity("a")
    made.identity("b")
    made.identity("int", "INT32")
    made.model("broken", "name: 'broken' backend: 'nosuch' max_batch_size: 0")
    for ensemble in (
        chain("two", ["a", "a"]),
        chain("again", ["a", "a"]),
        chain("pair", ["a", "b"]),
        Ensemble("nest", [Step("two", {"IN": "IN"}, {"OUT": "OUT"})]),
        Ensemble("c1", [Step("c2", {"IN": "IN"}, {"OUT": "OUT"})]),
        Ensemble("c2", [Step("c1", {"IN": "IN"}, {"OUT": "OUT"})]),
        Ensemble("self", [Step("self", {"IN": "IN"}, {"OUT": "OUT"})]),
        chain("lost", ["a", "nowhere"]),
        chain("fifth", ["a"], version=5),
        chain("bare", ["a"], version=None),
        chain("mixed", ["a", "int"]),
        chain("on_broken", ["broken"]),
    ):
        made.model(ensemble.name, ensemble.config())
    return made


def post(server: Server, path: str, body: Any = None) -> rawhttp.Answer:
    return rawhttp.post(server.http, path, json.dumps({} if body is None else body).encode())


def index(server: Server) -> list[dict[str, str]]:
    return post(server, "/v2/repository/index").json()


def states(server: Server) -> dict[str, str]:
    """What was loaded at some time, once nothing is on its way out; the reference shows an ensemble that never could as a name alone."""
    server.process.wait_until(lambda: all(row.get("state") != "UNLOADING" for row in index(server)), 60)
    return {row["name"]: row["state"] for row in index(server) if row.get("version")}


def ready(server: Server) -> list[str]:
    return sorted(name for name, state in states(server).items() if state == "READY")


def load(server: Server, model: str, config: dict[str, Any] | None = None) -> rawhttp.Answer:
    parameters = {"parameters": {"config": json.dumps(config)}} if config else None
    return post(server, f"/v2/repository/models/{model}/load", parameters)


def unload(server: Server, model: str, dependents: bool = False) -> rawhttp.Answer:
    parameters = {"parameters": {"unload_dependents": True}} if dependents else None
    server.rest()
    return post(server, f"/v2/repository/models/{model}/unload", parameters)


def infer(server: Server, model: str) -> rawhttp.Answer:
    tensor = {"name": "IN", "datatype": "FP32", "shape": [2], "data": [1.0, 2.0]}
    return post(server, f"/v2/models/{model}/infer", {"inputs": [tensor]})


def serves(server: Server, model: str) -> bool:
    got = infer(server, model)
    return got.status == 200 and got.json()["outputs"][0]["data"] == [1.0, 2.0]


@pytest.fixture(params=BOTH)
def explicit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with serving(request.param, build(tmp_path / "models").path, EXPLICIT) as server:
        yield server


def is_ours(server: Server) -> bool:
    return isinstance(server, Nereid)


def test_loading_brings_the_models_along(explicit: Server) -> None:
    """RX-49, RX-51, X-09: unload_dependents takes along what was brought along, and nobody else needs."""
    assert load(explicit, "two").status == 200
    assert ready(explicit) == ["a", "two"]
    assert serves(explicit, "two")
    assert unload(explicit, "two").status == 200
    assert ready(explicit) == ["a"]
    load(explicit, "two")
    load(explicit, "again")
    assert unload(explicit, "two", dependents=True).status == 200
    assert ready(explicit) == ["a", "again"]
    unload(explicit, "again", dependents=True)
    assert ready(explicit) == []
    load(explicit, "a")
    load(explicit, "two")
    unload(explicit, "two", dependents=True)
    assert ready(explicit) == ["a"], "it was asked for by name"


def test_nested_ensembles(explicit: Server) -> None:
    load(explicit, "nest")
    assert ready(explicit) == ["a", "nest", "two"]
    assert serves(explicit, "nest")
    unload(explicit, "nest", dependents=True)
    assert ready(explicit) == []


def test_a_model_that_goes_takes_its_ensembles_out(explicit: Server) -> None:
    """RX-50, X-09: without unload_dependents they come back with it."""
    load(explicit, "nest")
    load(explicit, "pair")
    assert unload(explicit, "a").status == 200
    assert ready(explicit) == ["b"]
    assert infer(explicit, "nest").json() == {"error": "Request for unknown model: 'nest' has no available versions"}
    assert load(explicit, "a").status == 200
    assert ready(explicit) == ["a", "b", "nest", "pair", "two"]
    assert serves(explicit, "nest")
    # The reference leaves them where they are, and they come back: the specification says that they are unloaded.
    assert unload(explicit, "a", dependents=True).status == 200
    assert ready(explicit) == ["b"]
    load(explicit, "a")
    assert ready(explicit) == (["a", "b"] if is_ours(explicit) else ["a", "b", "nest", "pair", "two"])


def changed(config: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**config, **more}


def test_a_model_that_changes_is_looked_at_again(explicit: Server) -> None:
    load(explicit, "two")
    config = rawhttp.get(explicit.http, "/v2/models/a/config").json()
    other = {
        side: [changed(tensor, data_type="TYPE_INT32") for tensor in config[side]] for side in ("input", "output")
    }
    assert load(explicit, "a", changed(config, **other)).status == 200, "the model itself is right"
    assert ready(explicit) == ["a"]
    assert load(explicit, "a", config).status == 200
    assert ready(explicit) == ["a", "two"]
    assert serves(explicit, "two")
    assert load(explicit, "a", changed(config, backend="nosuch")).status == 400
    assert serves(explicit, "two"), "what failed changed nothing"
    assert load(explicit, "two", changed(rawhttp.get(explicit.http, "/v2/models/two/config").json(), max_batch_size=4)).status == 200
    assert infer(explicit, "two").status == 400
    assert rawhttp.get(explicit.http, "/v2/models/two/config").json()["max_batch_size"] == 4


def test_one_that_does_not_come_back(explicit: Server, tmp_path: Path) -> None:
    """What was said when its model went still holds."""
    load(explicit, "two")
    assert unload(explicit, "a").status == 200
    gone = {"error": "Request for unknown model: 'two' has no available versions"}
    assert infer(explicit, "two").json() == gone
    (tmp_path / "models" / "two" / "1").rmdir()
    assert load(explicit, "a").status == 200
    assert ready(explicit) == ["a"]
    assert infer(explicit, "two").json() == gone


CANNOT = {
    "lost": "ensemble lost contains models that are not available or ambiguous: nowhere",
    "fifth": "ensemble 'fifth' depends on 'a' whose required version 5 is not loaded.",
    "bare": "ensemble 'bare' depends on 'a' whose required version 0 is not loaded.",
    "mixed": "in ensemble mixed, ensemble tensor t1: inconsistent data type: TYPE_FP32 is inferred from model a while "
    "TYPE_INT32 is inferred from model int",
    "c1": "circular dependency between ensembles: c1 -> ... -> c2 -> c1",
    "self": "circular dependency between ensembles: self -> ... -> self -> self",
}


@pytest.mark.parametrize("model", CANNOT)
def test_what_cannot_be_loaded(explicit: Server, model: str) -> None:
    """PB-140, PB-142, X-35: the same words; and nothing is left that waits."""
    got = load(explicit, model)
    assert (got.status, got.json()) == (400, {"error": f"load failed for model '{model}': {CANNOT[model]}\n"})
    assert infer(explicit, model).status == 404
    assert unload(explicit, model, dependents=True).status == 200
    assert load(explicit, "two").status == 200
    assert serves(explicit, "two")


def test_a_model_that_cannot_be_loaded(explicit: Server) -> None:
    got = load(explicit, "on_broken")
    assert got.status == 400
    start = "load failed for model 'on_broken': ensemble 'on_broken' depends on 'broken' which has no loaded version. "
    assert got.json()["error"].startswith(start + "Model 'broken' loading failed with error: version 1 is at UNAVAILABLE state: ")


def test_the_index_says_why(tmp_path: Path) -> None:
    """RX-20."""
    with serving("nereid", build(tmp_path / "models").path, EXPLICIT) as server:
        load(server, "lost")
        (row,) = [row for row in index(server) if row["name"] == "lost"]
        assert row == {"name": "lost", "state": "UNAVAILABLE", "reason": CANNOT["lost"]}


def test_the_index_says_which_model_went(tmp_path: Path) -> None:
    """RX-20: of an ensemble that is out since a model went, or changed, until it is back."""

    def reason() -> str | None:
        (row,) = [row for row in index(server) if row["name"] == "two"]
        return row.get("reason")

    with serving("nereid", build(tmp_path / "models").path, EXPLICIT) as server:
        load(server, "two")
        unload(server, "a")
        server.process.wait_until(lambda: reason() == "ensemble two contains models that are not available or ambiguous: a", 60)
        load(server, "a")
        assert (reason(), serves(server, "two")) == (None, True)
        unload(server, "two")
        server.process.wait_until(lambda: reason() == "unloaded", 60)


def test_a_circle_that_was_mended(tmp_path: Path) -> None:
    made = build(tmp_path / "models")
    with serving("nereid", made.path, EXPLICIT) as server:
        assert load(server, "c1").status == 400
        made.model("c2", chain("c2", ["a"]).config())
        assert load(server, "c1").status == 200, "c2 is read again"
        assert ready(server) == ["a", "c1", "c2"]
        # A model that serves cannot be made to need what needs it.
        body = {
            "name": "a", "platform": "ensemble",
            "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
            "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
            "ensemble_scheduling": {
                "step": [{"model_name": "c1", "model_version": -1, "input_map": {"IN": "INPUT0"}, "output_map": {"OUT": "OUTPUT0"}}]
            },
        }  # fmt: skip
        got = load(server, "a", body)
        assert got.status == 400 and "circular dependency between ensembles: a -> ... -> c2 -> a" in got.json()["error"]
        assert serves(server, "c1")


def test_circles_that_are_mended_at_once(tmp_path: Path) -> None:
    """The loader that answered for one of the circle may not have put it down when the next load comes: no circle goes through it."""
    made = build(tmp_path / "models")
    with serving("nereid", made.path, EXPLICIT) as server:
        for round in range(300 if paths.BUILD.name == "release" else 100):
            one, other = f"one{round}", f"other{round}"
            for name, step in ((one, other), (other, one)):
                made.model(name, Ensemble(name, [Step(step, {"IN": "IN"}, {"OUT": "OUT"})]).config())
            assert load(server, one).status == 400
            made.model(other, chain(other, ["a"]).config())
            assert load(server, one).status == 200


@pytest.mark.parametrize("kind", BOTH)
def test_all_at_the_start(kind: str, tmp_path: Path) -> None:
    """Whatever the order of names: an ensemble waits for its models. What cannot be loaded does not hold up the rest."""
    made = build(tmp_path / "models")
    for number in range(40):
        made.model(f"e{number}", chain(f"e{number}", [f"x{number}", f"e{number + 1}_", "a"]).config().replace(f'"e{number + 1}_"', '"b"'))
        made.identity(f"x{number}")
    with serving_all(kind, made) as server:
        wanted = {"a", "b", "int", "two", "again", "pair", "nest"} | {f"{c}{i}" for c in "ex" for i in range(40)}
        server.process.wait_until(lambda: wanted <= set(ready(server)), 120)
        assert set(ready(server)) == wanted
        assert all(serves(server, f"e{number}") for number in range(40))


@contextmanager
def serving_all(kind: str, made: Repository) -> Iterator[Server]:
    server = KINDS[kind](made.path, {"exit-on-error": "false"}, wait_ready=False).start()
    try:
        server.process.wait_until(lambda: rawhttp_answers(server), 180)
        yield server
        server.leave()
    finally:
        server.kill()


def rawhttp_answers(server: Server) -> bool:
    try:
        return rawhttp.get(server.http, "/v2").status == 200
    except OSError:
        return False


@pytest.mark.parametrize("kind", BOTH)
def test_named_at_the_start(kind: str, tmp_path: Path) -> None:
    made = build(tmp_path / "models")
    with serving(kind, made.path, {**EXPLICIT, "load-model": ["nest", "b"]}) as server:
        assert ready(server) == ["a", "b", "nest", "two"]


@pytest.mark.parametrize("kind", BOTH)
def test_a_server_whose_ensemble_fails_ends(kind: str, tmp_path: Path) -> None:
    made = Repository(tmp_path / "models")
    made.identity("a")
    made.model("lost", chain("lost", ["a", "nowhere"]).config())
    with pytest.raises(ServerFailed) as failed:
        KINDS[kind](made.path).start()
    assert "ended with status 1" in str(failed.value)
    assert CANNOT["lost"] in str(failed.value)


@pytest.mark.parametrize("kind", BOTH)
def test_poll(kind: str, tmp_path: Path) -> None:
    """MR-02: An ensemble and its model may come in any order, and go, and change."""
    made = Repository(tmp_path / "models")
    made.identity("b")
    with serving(kind, made.path, POLL) as server:
        made.model("pair", chain("pair", ["a", "b"]).config())
        server.process.wait_until(lambda: "pair" in {row["name"] for row in index(server)}, 60)
        made.identity("a")
        server.process.wait_until(lambda: ready(server) == ["a", "b", "pair"], 60)
        assert serves(server, "pair")
        made.identity("b", "INT32")
        server.process.wait_until(lambda: ready(server) == ["a", "b"], 60)
        made.identity("b")
        server.process.wait_until(lambda: ready(server) == ["a", "b", "pair"], 60)
        assert serves(server, "pair")


class Clients:
    """Clients that ask an ensemble again and again."""

    def __init__(self, server: Server, model: str, allowed: Callable[[rawhttp.Answer], bool]):
        self.server, self.model, self.allowed = server, model, allowed
        self.stop = threading.Event()
        self.wrong: list[str] = []
        self.answers = [0] * 16

    def ask(self, me: int) -> None:
        try:
            with rawhttp.Connection(HOST, self.server.http_port) as connection:
                for number in range(1 << 30):
                    if self.stop.is_set():
                        return
                    size = 2 if me % 2 else 3000
                    data = [float(me), float(number)] + [0.5] * (size - 2)
                    tensor = {"name": "IN", "datatype": "FP32", "shape": [size], "data": data}
                    got = connection.ask("POST", f"/v2/models/{self.model}/infer", json.dumps({"inputs": [tensor]}).encode())
                    if got.status == 200 and all(output["data"] == data for output in got.json()["outputs"]):
                        self.answers[me] += 1
                    elif got.status == 200 or not self.allowed(got):
                        self.wrong.append(f"{got.status} {got.body[:200]!r}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the test fails with it
            self.wrong.append(repr(error))


@contextmanager
def clients(server: Server, model: str, allowed: Callable[[rawhttp.Answer], bool]) -> Iterator[None]:
    crowd = Clients(server, model, allowed)
    threads = [threading.Thread(target=crowd.ask, args=(me,)) for me in range(len(crowd.answers))]
    for thread in threads:
        thread.start()
    try:
        server.process.wait_until(lambda: crowd.wrong != [] or min(crowd.answers) > 0, 60)
        yield
    finally:
        crowd.stop.set()
        for thread in threads:
            thread.join()
    assert crowd.wrong == []


def never(_: rawhttp.Answer) -> bool:
    return False


def is_gone(answer: rawhttp.Answer) -> bool:
    """Neither there, nor its models: one of the two is found out first."""
    error = answer.json()["error"]
    return answer.status in (400, 404, 503) and "Request for unknown model: '" in error


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Server]:
    with serving("nereid", build(tmp_path / "models").path, EXPLICIT) as server:
        assert load(server, "nest").status == 200
        assert load(server, "pair").status == 200
        yield server


def test_reloads_under_load(busy: Server) -> None:
    """Every model of an ensemble, and the ensemble, are replaced while it runs: no request fails."""
    configs = {model: rawhttp.get(busy.http, f"/v2/models/{model}/config").json() for model in ("a", "two", "nest")}
    with clients(busy, "nest", never):
        for number in range(150):
            model = ("a", "two", "nest")[number % 3]
            assert load(busy, model, configs[model]).status == 200
    assert ready(busy) == ["a", "b", "nest", "pair", "two"]


def test_unloads_under_load(busy: Server) -> None:
    """Models go and come back: requests under way end well, later ones are told; nothing waits for ever."""
    with clients(busy, "nest", is_gone):
        for number in range(60):
            assert unload(busy, "a", dependents=number % 10 == 9).status == 200
            assert "nest" not in ready(busy)
            assert load(busy, "nest" if number % 10 == 9 else "a").status == 200
            assert "nest" in ready(busy)
    assert serves(busy, "nest")


def test_many_at_a_time(busy: Server) -> None:
    """Loads and unloads of models that need each other, all at once: each is answered, and the end is what was asked for last."""
    done: list[str] = []

    def change(me: int) -> None:
        for number in range(25):
            model = ("nest", "two", "a", "pair", "b", "again")[(me + number) % 6]
            deed = "unload" if (me + number) % 3 else "load"
            got = unload(busy, model, number % 2 == 0) if deed == "unload" else load(busy, model)
            if got.status == 200:
                done.append(deed)
            else:  # a load may find that another has just taken out what it needs, and says so
                assert got.status == 400 and "load failed for model" in got.json()["error"], got.body

    failures: list[BaseException] = []

    def guarded(me: int) -> None:
        try:
            change(me)
        except BaseException as error:  # noqa: BLE001 - told to the test below
            failures.append(error)

    with clients(busy, "nest", is_gone):
        threads = [threading.Thread(target=guarded, args=(me,)) for me in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads)
        assert {"load", "unload"} <= set(done), done
        assert load(busy, "nest").status == 200
        assert serves(busy, "nest")
        busy.process.wait_until(lambda: serves(busy, "nest"), 30)
    assert failures == []


@pytest.mark.parametrize("inline", ["true", "false"])
def test_branches_on_many_threads(tmp_path: Path, inline: str) -> None:
    """Steps that run at the same time bring their answers from several threads; some of the models always have a thread."""
    made = Repository(tmp_path / "models")
    for number in range(4):
        delay = "" if number % 2 else "parameters { key: 'execute_delay_us' value: { string_value: '300' } }"
        made.identity(f"b{number}", extra=f"instance_group {{ count: 2 kind: KIND_CPU }} {delay}")
    made.identity("meet", tensors=4)
    names = [f"x{number}" for number in range(4)]
    steps = [Step(f"b{number}", {"INPUT0": "IN"}, {"OUTPUT0": names[number]}) for number in range(4)]
    steps.append(
        Step("meet", {f"INPUT{i}": names[i] for i in range(4)}, {f"OUTPUT{i}": f"O{i}" for i in range(4)})
    )
    outer = tuple(f"O{i}" for i in range(4))
    made.model("wide", Ensemble("wide", steps, outputs=outer).config())
    twice = [
        Step("wide", {"IN": "IN"}, {"O0": "t"}),
        Step("wide", {"IN": "t"}, {f"O{i}": f"O{i}" for i in range(4)}),
    ]
    made.model("twice", Ensemble("twice", twice, outputs=outer, max_inflight=5).config())
    with Nereid(made.path, {"inline-execution": inline}) as server:
        for model in ("wide", "twice"):
            with clients(server, model, never):
                server.process.wait_until(lambda m=model: succeeded(server, m) > 400, 120)


def succeeded(server: Server, model: str) -> int:
    stats = rawhttp.get(server.http, f"/v2/models/{model}/stats").json()["model_stats"][0]
    assert stats["inference_stats"]["fail"]["count"] == 0
    return stats["inference_stats"]["success"]["count"]


def test_check_tells_beforehand(tmp_path: Path) -> None:
    """nereid check: what the files alone show."""
    made = build(tmp_path / "models")
    made.identity("many", extra="model_transaction_policy { decoupled: true }")
    made.identity("both", tensors=2)
    two = Step("both", {"INPUT0": "t", "INPUT1": "IN"}, {"OUTPUT0": "OUT"})
    made.model("joined", Ensemble("joined", [Step("many", {"INPUT0": "IN"}, {"OUTPUT0": "t"}), two]).config())
    argv = [str(paths.nereid_binary()), "check", "--json", str(made.path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads(done.stdout)
    told = {one["model"]: one["problem"] for one in report["problems"]}
    assert told["mixed"] == CANNOT["mixed"]
    assert "'nowhere'" in told["lost"]
    assert told["joined"].endswith("receives inputs originated from different decoupled models")
    mends = {one["model"]: one["mend"] for one in report["problems"]}
    assert mends["joined"].startswith("a decoupled model answers any number of times") and mends["mixed"] != mends["joined"]
    assert told["self"].startswith("circular dependency between ensembles")
    assert not {"two", "again", "pair", "nest"} & told.keys()
