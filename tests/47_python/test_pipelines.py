"""Ensembles of python models: decoupled steps, chains of them, models left out, cancellation; as in the reference."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asks import Asker, words
from conftest import Both, kinds_of, make_server, ready_with
from harness.ensembles import Ensemble, Step
from harness.repository import Repository

MODELS = Path(__file__).parent / "models"
DECOUPLED = "model_transaction_policy { decoupled: true }"
REPEAT = Step("repeat", {"IN": "IN", "WHERE": "WHERE"}, {"OUT": "one"})
TYPES = {"IN": ("INT32", "-1"), "WHERE": ("BYTES", "1"), "OUT": ("INT32", "1"), "BOTH": ("INT32", "1")}


def identity(source: str, target: str) -> Step:
    return Step("copy", {"INPUT0": source}, {"OUTPUT0": target})


def python(made: Repository, name: str, file: str, io: str, extra: str = "") -> None:
    folder = made.model(name, f"name: '{name}' backend: 'python' {io} {extra}")
    shutil.copy(MODELS / f"{file}.py", folder / "1" / "model.py")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Repository(tmp_path_factory.mktemp("ensembles") / "models")
    made.identity("copy", "INT32", dims=(1,))
    numbers = "input { name: 'IN' data_type: TYPE_INT32 dims: [ -1 ] } output { name: 'OUT' data_type: TYPE_INT32 dims: [ 1 ] }"
    where = "input { name: 'WHERE' data_type: TYPE_STRING dims: [ 1 ] }"
    text = "input { name: 'ASK' data_type: TYPE_STRING dims: [ 1 ] } output { name: 'TOLD' data_type: TYPE_STRING dims: [ 1 ] }"
    python(made, "repeat", "repeat", f"{numbers} {where}", DECOUPLED)
    python(made, "cancel", "cancel", text)
    python(made, "faults", "decoupled_faults", text, DECOUPLED)
    told = {"ASK": ("BYTES", "1"), "TOLD": ("BYTES", "1")}
    inputs = ("IN", "WHERE")
    for ensemble in (
        Ensemble("burst", [REPEAT, identity("one", "OUT")], inputs, types=TYPES),
        Ensemble("straight", [Step("repeat", REPEAT.inputs, {"OUT": "OUT"})], inputs, types=TYPES),
        Ensemble(
            "fork",
            [REPEAT, identity("one", "OUT"), identity("one", "BOTH")],
            inputs, ("OUT", "BOTH"), types=TYPES,
        ),
        Ensemble("limited", [REPEAT, identity("one", "OUT")], inputs, types=TYPES, max_inflight=1),
        Ensemble("asks", [Step("cancel", {"ASK": "ASK"}, {"TOLD": "TOLD"})], ("ASK",), ("TOLD",), types=told),
        Ensemble("errs", [Step("faults", {"ASK": "ASK"}, {"TOLD": "TOLD"})], ("ASK",), ("TOLD",), types=told),
    ):
        made.model(ensemble.name, ensemble.config())
    return made.path


@pytest.fixture(scope="module")
def mine(
    request: pytest.FixtureRequest, python_backends: dict[str, Path], models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    theirs = tmp_path_factory.mktemp("theirs") / "models"
    shutil.copytree(models, theirs)
    limited = theirs / "limited" / "config.pbtxt"  # it does not know the field
    limited.write_text(limited.read_text().replace("max_inflight_requests: 1", ""))
    places = {kind: theirs if kind == "reference" else models for kind in kinds_of(request.config)}
    options = {"log-verbose": "0", "model-control-mode": "explicit", "load-model": "*"}
    servers = {kind: make_server(kind, python_backends, place, options) for kind, place in places.items()}
    try:
        for server in servers.values():
            server.start()
        for server in servers.values():
            ready_with(server, [path.name for path in models.iterdir()])
        both = Both(servers)
        yield both
        both.close()
        for kind in servers.keys() - {"reference"}:
            servers[kind].stop(seconds=150)
    finally:
        for server in servers.values():
            server.kill()


def repeat(asker: Asker, model: str, values: list[int], where: str) -> list[Any]:
    came = asker.stream(model, {"IN": np.array(values, np.int32), "WHERE": words(where)}, request_id="the id")
    return [(each["final"], *(int(np.frombuffer(each[o][2], np.int32)[0]) for o in ("OUT", "BOTH") if o in each)) for each in came]


@pytest.mark.parametrize("where", ["execute", "thread", "thread joined"])
@pytest.mark.parametrize("count", [0, 1, 30])
@pytest.mark.parametrize("model", ["straight", "burst", "limited"])
def test_responses_go_on_one_by_one(mine: Both, model: str, count: int, where: str) -> None:
    """Each response of a decoupled step runs through what is behind it; the last answer is the last."""
    values = list(range(10, 10 + count))
    for came in mine.each(lambda asker: repeat(asker, model, values, where)).values():
        assert [each[1] for each in came if len(each) > 1] == values
        assert [each[0] for each in came] == [False] * (len(came) - 1) + [True]


def test_branches_meet_again(mine: Both) -> None:
    """What belongs to one response stays together, whichever branch is quicker."""
    for came in mine.each(lambda asker: repeat(asker, "fork", list(range(40)), "thread")).values():
        pairs = [each[1:] for each in came if len(each) > 1]
        assert pairs == [(i, i) for i in range(40)]


def test_many_streams(mine: Both) -> None:
    def ask(asker: Asker) -> list[Any]:
        return asker.at_once(lambda i: [e[1] for e in repeat(asker, "burst", [i] * 20, "thread") if len(e) > 1], 8)

    for came in mine.each(ask).values():
        assert came == [[i] * 20 for i in range(8)]


def test_it_is_decoupled(mine: Both) -> None:
    inputs = {"IN": np.array([1], np.int32), "WHERE": words("execute")}
    for protocol in ("grpc", "http"):
        assert "message" in mine.same(lambda asker, p=protocol: asker.infer("burst", inputs, protocol=p))


@pytest.mark.parametrize("ask", ["errors", "error_at_the_end", "returns"])
def test_errors_of_a_decoupled_step(mine: Both, ask: str) -> None:
    """An error ends the request, with what came before it answered."""
    for came in mine.each(lambda asker: asker.stream("errs", {"ASK": words(ask)})).values():
        assert came[0]["TOLD"][2] == [b"one"]
        assert "in ensemble 'errs', " in came[-1]["error"]


def test_cancellation_reaches_the_step_that_runs(mine: Both) -> None:
    """The reference tells steps that start later alone."""
    for kind in mine.servers.keys() - {"reference"}:
        server, asker = mine.servers[kind], mine.askers[kind]
        call = asker.start("asks", {"ASK": words("work")})
        asker.until(lambda server=server: "the model works" in server.process.log())
        call.cancel()
        assert asker.told("asks", "ends") == "cancelled"
