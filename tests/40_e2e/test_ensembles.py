"""Ensembles, asked of both servers: what they answer, say of themselves, and refuse."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import rawgrpc, rawhttp, together
from harness.compare import Answer, Http, compare
from harness.digits import load_digits
from harness.ensembles import Ensemble, Step, chain
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Reference, Server
from models import onnx_models
from tritonclient.grpc import service_pb2 as pb

pytestmark = pytest.mark.onnx

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
SAMPLES = Path(__file__).parents[2] / "build" / "models"


def one_to_one(model: str, source: str, target: str) -> Step:
    return Step(model, {"INPUT0": source}, {"OUTPUT0": target})


ENSEMBLES = [
    chain("two", ["id", "id"]),
    chain("three", ["id", "other", "id"]),
    chain("strings", ["id_bytes", "id_bytes"], datatype="BYTES"),
    chain("batched", ["id_batch", "id_batch"], max_batch_size=8),
    Ensemble("nested", [Step("two", {"IN": "IN"}, {"OUT": "t"}), Step("three", {"IN": "t"}, {"OUT": "OUT"})]),
    Ensemble(
        "fork", [one_to_one("id", "IN", "A"), one_to_one("other", "IN", "B")], outputs=("A", "B")
    ),
    Ensemble(
        "join",
        [
            one_to_one("id", "IN", "left"),
            one_to_one("other", "IN", "right"),
            Step("id_two", {"INPUT0": "left", "INPUT1": "right"}, {"OUTPUT0": "A", "OUTPUT1": "B"}),
        ],
        outputs=("A", "B"),
    ),
    Ensemble("inner", [one_to_one("id", "IN", "A"), one_to_one("other", "A", "B")], outputs=("A", "B")),
    # A model without batches behind one with batches, and the other way round.
    chain("to_plain", ["id_batch", "id_rows"], max_batch_size=8),
    chain("to_batch", ["id_rows", "id_batch"], dims="-1, -1"),
    chain("one_row", ["id_batch", "id"], max_batch_size=8),
    Ensemble(
        "optional",
        [Step("id_two_optional", {"INPUT0": "IN", "INPUT1": "MORE"}, {"OUTPUT0": "OUT"})],
        inputs=("IN", "MORE"),
        optional=("MORE",),
    ),
    Ensemble("fails", [Step("gather", {"index": "IN"}, {"y": "OUT"})], types={"IN": ("INT64", "1"), "OUT": ("FP32", "1")}, max_batch_size=8),
    chain("full", ["id_batch", "id_full"], max_batch_size=1),
    Ensemble(
        "deep",
        [Step("two", {"IN": "IN"}, {"OUT": "a"}), *(Step("id", {"INPUT0": x}, {"OUTPUT0": y}) for x, y in (("a", "b"), ("b", "c"), ("c", "OUT")))],
    ),
    chain("late", ["id_batch", "id_late"], max_batch_size=1),
    chain("reshaped", ["id_reshaped", "id"], dims="4"),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Repository(tmp_path_factory.mktemp("ensembles") / "models")
    made.identity("id")
    made.identity("other")
    made.identity("id_bytes", "BYTES")
    made.identity("id_batch", max_batch_size=8)
    made.identity("id_rows", dims=(-1, -1))
    made.identity("id_two", tensors=2)
    slow = "parameters { key: 'execute_delay_ms' value: { string_value: '300' } }"
    made.identity(
        "id_full",
        max_batch_size=1,
        extra=f"{slow} dynamic_batching {{ default_queue_policy {{ max_queue_size: 1 }} }}",
    )
    policy = "default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 10000000 }"
    made.identity("id_late", max_batch_size=1, extra=f"{slow} dynamic_batching {{ {policy} }}")
    io = "{{ name: '{0}' data_type: TYPE_FP32 dims: [ -1 ] {1} }}"
    made.model(
        "id_two_optional",
        "name: 'id_two_optional' backend: 'identity'\n"
        + f"input [ {io.format('INPUT0', '')}, {io.format('INPUT1', 'optional: true')} ]\n"
        + f"output [ {io.format('OUTPUT0', '')}, {io.format('OUTPUT1', '')} ]\n",
    )
    reshape = "data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] }"
    made.model(
        "id_reshaped",
        f"name: 'id_reshaped' backend: 'identity' input {{ name: 'INPUT0' {reshape} }} output {{ name: 'OUTPUT0' {reshape} }}",
    )
    folder = made.model(
        "gather",
        "name: 'gather' backend: 'onnxruntime' max_batch_size: 8"
        " input { name: 'index' data_type: TYPE_INT64 dims: [ 1 ] }"
        " output { name: 'y' data_type: TYPE_FP32 dims: [ 1 ] }",
    )
    onnx_models.save(onnx_models.gather(), folder)
    _digits(made)
    for ensemble in ENSEMBLES:
        made.model(ensemble.name, ensemble.config())
    # A file in a version of an ensemble is not looked at.
    (made.path / "two" / "1" / "model.onnx").write_text("no model")
    return made.path


def _digits(made: Repository) -> None:
    """The digits model behind a step that reads negatives: pixels from 16 (paper) to 0 (ink)."""
    from onnx import helper

    negative = onnx_models.model(
        [helper.make_node("Sub", ["paper", "pixels"], ["image"])],
        [("pixels", "FP32", ["n", 64])], [("image", "FP32", ["n", 64])],
        {"paper": np.array([16], dtype=np.float32)},
    )
    folder = made.model(
        "negative",
        "name: 'negative' backend: 'onnxruntime' max_batch_size: 64"
        " input { name: 'pixels' data_type: TYPE_FP32 dims: [ 64 ] }"
        " output { name: 'image' data_type: TYPE_FP32 dims: [ 64 ] }",
    )
    onnx_models.save(negative, folder)
    (made.path / "digits").symlink_to(SAMPLES / "digits")
    whole = Ensemble(
        "read_digits",
        [Step("negative", {"pixels": "PIXELS"}, {"image": "image"}), Step("digits", {"image": "image"}, {"logits": "LOGITS"})],
        inputs=("PIXELS",), outputs=("LOGITS",), types={"PIXELS": ("FP32", "64"), "LOGITS": ("FP32", "10")}, max_batch_size=64,
    )
    text = whole.config().replace("dims: [ 10 ] }", 'dims: [ 10 ] label_filename: "labels.txt" }')
    made.model("read_digits", text)
    labels = (SAMPLES / "digits" / "digits_labels.txt").read_text()
    (made.path / "read_digits" / "labels.txt").write_text(labels)


@pytest.fixture(scope="module")
def ours(repository: Path) -> Iterator[Server]:
    with Nereid(repository) as server:
        yield server


@pytest.fixture(scope="module")
def theirs(repository: Path) -> Iterator[Server]:
    with Reference(repository) as server:
        yield server


@pytest.fixture(params=BOTH)
def either(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue("ours" if request.param == "nereid" else "theirs")


def tensor(name: str, data: list[Any], shape: list[int] | None = None, datatype: str = "FP32") -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape or [len(data)], "data": data}


def infer(server: Server, model: str, *inputs: dict[str, Any], **more: Any) -> rawhttp.Answer:
    body = json.dumps({"inputs": list(inputs)} | more).encode()
    return rawhttp.post(server.http, f"/v2/models/{model}/infer", body)


def outputs(answer: rawhttp.Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    return {output["name"]: output for output in answer.json()["outputs"]}


def _sorted_outputs(answer: Answer) -> None:
    """The reference shows the outputs of an ensemble in the order of a hash table."""
    answer["body"]["outputs"].sort(key=lambda output: output["name"])


def _without_limit(answer: Answer) -> None:
    """The reference of this age does not know the field."""
    answer["body"]["ensemble_scheduling"].pop("max_inflight_requests", None)


def ask(name: str, model: str, *inputs: dict[str, Any], **more: Any) -> Http:
    body = json.dumps({"inputs": list(inputs)} | more).encode()
    return Http(name, "POST", f"/v2/models/{model}/infer", body, adjust=_sorted_outputs)


X = tensor("IN", [1.0, 2.5, -3.0])
ROW = tensor("IN", [1.0], [1, 1])
ROWS = tensor("IN", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])

QUESTIONS = [
    *(
        Http(f"config of {e.name}", "GET", f"/v2/models/{e.name}/config", adjust=_without_limit)
        for e in ENSEMBLES
    ),
    *(Http(f"metadata of {e.name}", "GET", f"/v2/models/{e.name}") for e in ENSEMBLES),
    *(ask(f"run {name}", name, X) for name in ("two", "three", "nested", "fork", "join", "inner")),
    ask("strings", "strings", tensor("IN", ["a", "", "äöü"], datatype="BYTES")),
    ask("a batch", "batched", ROWS),
    ask("a batch to a model without", "to_plain", ROWS),
    ask("rows to a model with batches", "to_batch", ROWS),
    ask("one row", "one_row", tensor("IN", [1.0, 2.0], [1, 2])),
    ask("rows that do not fit a model without batches", "one_row", ROWS),
    ask("without the optional input", "optional", X),
    ask("with the optional input", "optional", X, tensor("MORE", [1.0])),
    ask("reshaped", "reshaped", tensor("IN", [1.0, 2.0, 3.0, 4.0])),
    ask("some outputs", "fork", X, outputs=[{"name": "B"}]),
    ask("empty tensor", "two", tensor("IN", [], [0])),
    ask("an id", "two", X, id="my own"),
    ask("a sequence", "two", X, parameters={"sequence_id": 7, "sequence_start": True, "sequence_end": False}),
    ask("a named sequence", "two", X, parameters={"sequence_id": "s", "sequence_start": True, "sequence_end": True}),
    ask("parameters", "two", X, parameters={"priority": 3, "timeout": 1000000, "mine": "x"}),
    ask("unknown input", "two", tensor("WRONG", [1.0])),
    ask("unknown output", "two", X, outputs=[{"name": "t1"}]),
    ask("wrong data type", "two", tensor("IN", [1], datatype="INT32")),
    ask("wrong rank", "two", tensor("IN", [1.0], [1, 1])),
    ask("batch too large", "batched", tensor("IN", [0.0] * 9, [9, 1])),
    ask("a step fails", "fails", tensor("IN", [1, 77], [2, 1], "INT64")),
    ask("a step works", "fails", tensor("IN", [1, 3], [2, 1], "INT64")),
    ask("other version", "two", X, id="v"),
]


@pytest.mark.reference
@pytest.mark.onnx
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_both_say_the_same(question: Http, ours: Server, theirs: Server) -> None:
    """MC-130, PB-137, PB-138, PB-139, PB-141, PB-144, PB-145, PB-146, PB-147, X-13."""
    assert compare(question, ours, theirs) == []


@pytest.mark.onnx
def test_a_named_sequence_through_an_ensemble_within(ours: Server) -> None:
    """Its answer names the sequence, which the steps behind it pass on when it is long gone. The reference crashes."""
    for number in range(20):
        named = {"sequence_id": f"{number}-" + "s" * 60, "sequence_start": True, "sequence_end": True}
        answer = rawhttp.post(ours.http, "/v2/models/deep/infer", {"inputs": [X], "parameters": named})
        assert answer.json()["parameters"] == named


@pytest.mark.reference
@pytest.mark.onnx
@pytest.mark.parametrize("name", [e.name for e in ENSEMBLES])
def test_both_are_ready(name: str, ours: Server, theirs: Server) -> None:
    for server in (ours, theirs):
        assert rawhttp.request(HOST, server.http_port, "GET", f"/v2/models/{name}/ready").status == 200


def test_inputs_and_outputs_are_the_ensembles_own(either: Server) -> None:
    """PB-177: not those of its steps, whose names and tensors are nothing to a client."""
    told = rawhttp.get(either.http, "/v2/models/three").json()
    assert [(side, each["name"]) for side in ("inputs", "outputs") for each in told[side]] == [("inputs", "IN"), ("outputs", "OUT")]
    assert list(outputs(infer(either, "three", X))) == ["OUT"]
    for wrong in ("INPUT0", "t1"):
        assert infer(either, "three", tensor(wrong, X["data"])).status == 400
        assert infer(either, "three", X, outputs=[{"name": wrong}]).status == 400


@pytest.mark.parametrize("kind", BOTH)
def test_layout(kind: str, tmp_path: Path) -> None:
    """MR-71, MR-72, MR-73, X-04: a configuration and version directories, in which nothing is looked for; without one of these nothing is
    served."""
    made = Repository(tmp_path / "models")
    made.identity("part")
    for name in ("preprocess_resnet50_ensemble", "filled", "two_versions", "no_version"):
        made.model(name, chain(name, ["part", "part"], extra="version_policy { all { } }\n").config())
    (made.path / "filled" / "1" / "model.onnx").write_text("no model")
    (made.path / "two_versions" / "3").mkdir()
    (made.path / "no_version" / "1").rmdir()
    with KINDS[kind](made.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        for name, versions in (("preprocess_resnet50_ensemble", "1"), ("filled", "1"), ("two_versions", "13")):
            for version in versions:
                body = json.dumps({"inputs": [X]}).encode()
                answer = rawhttp.post(server.http, f"/v2/models/{name}/versions/{version}/infer", body)
                assert (outputs(answer)["OUT"]["data"], answer.json()["model_version"]) == (X["data"], version)
        assert list((made.path / "preprocess_resnet50_ensemble" / "1").iterdir()) == []
        assert rawhttp.get(server.http, "/v2/models/no_version/ready").status != 200


def test_only_what_is_wanted_is_run(ours: Server) -> None:
    """An output that is also the input of a step: the reference then refuses each of them alone."""
    for wanted in ("A", "B"):
        assert outputs(infer(ours, "inner", X, outputs=[{"name": wanted}])) == {
            wanted: tensor(wanted, X["data"])
        }
    before = ours.statistics("other")["inference_count"]
    infer(ours, "inner", X, outputs=[{"name": "A"}])
    infer(ours, "fork", X, outputs=[{"name": "A"}])
    assert ours.statistics("other")["inference_count"] == before


def _counts(server: Server, model: str) -> dict[str, Any]:
    """Without times."""
    got = server.statistics(model)
    return {
        "inferences": got["inference_count"],
        "executions": got["execution_count"],
        "stats": {name: value["count"] for name, value in got["inference_stats"].items()},
        "batches": {b["batch_size"]: b["compute_infer"]["count"] for b in got["batch_stats"]},
    }


@pytest.mark.onnx
@pytest.mark.parametrize("kind", BOTH)
def test_statistics(kind: str, repository: Path) -> None:
    """The ensemble counts its requests, the models theirs; compute is the sum of the steps'. It counts once it was answered."""
    with KINDS[kind](repository) as server:
        for _ in range(3):
            outputs(infer(server, "batched", ROWS))
        infer(server, "fails", tensor("IN", [77], [1, 1], "INT64"))
        none = {"cache_hit": 0, "cache_miss": 0}
        work = dict.fromkeys(("queue", "compute_input", "compute_infer", "compute_output"), 3)
        expected = {
            "inferences": 6,
            "executions": 3,
            "stats": {"success": 3, "fail": 0} | work | none,
            "batches": {2: 3},
        }
        server.process.wait_for(lambda: _counts(server, "batched"), expected)
        assert _counts(server, "id_batch")["inferences"] == 12
        whole, part = server.statistics("batched"), server.statistics("id_batch")
        for time in ("compute_input", "compute_infer", "compute_output"):
            assert whole["inference_stats"][time]["ns"] == part["inference_stats"][time]["ns"]
        failures = 1 if kind == "nereid" else 2  # the reference counts each twice
        server.process.wait_for(lambda: _counts(server, "fails")["stats"]["fail"], failures)
        assert _counts(server, "fails")["inferences"] == 0
        lines = {
            'nv_inference_request_success{model="batched",version="1"} 3',
            'nv_inference_count{model="batched",version="1"} 6',
            f'nv_inference_request_failure{{model="fails",reason="OTHER",version="1"}} {failures}',
        }
        server.process.wait_for(lambda: lines - set(rawhttp.get(server.metrics, "/metrics").body.decode().splitlines()), set())


def test_grpc(either: Server) -> None:
    """Tensors of every size: small ones are copied into the answer, large ones referred to."""
    for count in (0, 1, 1000, 1 << 18):
        raw = np.arange(count, dtype=np.float32).tobytes()
        with rawgrpc.Channel(either.grpc) as channel:
            got = channel.call("ModelInfer", rawgrpc.infer_request("three", [("IN", "FP32", [count], raw)]))
        answer = got.parse(pb.ModelInferResponse)
        assert answer.raw_output_contents[0] == raw
        assert answer.parameters["sequence_id"].int64_param == 0


@pytest.mark.onnx
def test_digits(either: Server) -> None:
    """MR-18, MC-130, PB-46: A real pipeline on real images: the answers of its model, whose input the first step makes; labels are the
    ensemble's own."""
    digits = load_digits()
    images = digits.data
    right = 0
    for start in range(0, len(images), 60):
        part = images[start : start + 60]
        pixels = (16 - part).ravel().tolist()
        got = outputs(infer(either, "read_digits", tensor("PIXELS", pixels, list(part.shape))))
        logits = np.array(got["LOGITS"]["data"], np.float32).reshape(got["LOGITS"]["shape"])
        alone = outputs(infer(either, "digits", tensor("image", part.ravel().tolist(), list(part.shape))))
        assert np.allclose(logits.ravel(), alone["logits"]["data"], atol=1e-4)
        right += int((logits.argmax(axis=1) == digits.target[start : start + 60]).sum())
    assert right / len(images) > 0.9
    top = infer(
        either,
        "read_digits",
        tensor("PIXELS", (16 - images[0]).tolist(), [1, 64]),
        outputs=[{"name": "LOGITS", "parameters": {"classification": 1}}],
    )
    labels = (SAMPLES / "digits" / "digits_labels.txt").read_text().split()
    assert outputs(top)["LOGITS"]["data"][0].endswith(f":0:{labels[0]}")


def test_a_full_queue_of_a_step(either: Server) -> None:
    """MC-121, PB-92: It is the ensemble that answers, and at once."""
    got = together.ask(either, "/v2/models/full/infer", [json.dumps({"inputs": [ROW]}).encode()] * 8)
    refused = [answer for answer in got if answer.status != 200]
    assert refused and len(refused) < 8
    assert {(a.status, a.json()["error"]) for a in refused} == {
        (503, "in ensemble 'full', [request id: <id_unknown>] Exceeds maximum queue size")
    }


def test_the_timeout_goes_on_to_the_steps(either: Server) -> None:
    """MC-122, PB-91."""
    body = json.dumps({"inputs": [ROW], "parameters": {"timeout": 100000}}).encode()
    got = together.ask(either, "/v2/models/late/infer", [body] * 4)
    late = [answer.json()["error"] for answer in got if answer.status != 200]
    assert late and set(late) == {"in ensemble 'late', Request timeout expired"}


def test_a_limit_of_requests_under_way(tmp_path: Path) -> None:
    """max_inflight_requests: no more at a time, none lost, no thread waits: they come to their model one by one, not as a batch."""
    made = Repository(tmp_path / "models")
    slow = "parameters { key: 'execute_delay_ms' value: { string_value: '20' } } dynamic_batching { }"
    for name in ("one", "all"):
        made.identity(f"id_{name}", max_batch_size=16, extra=slow)
    for name, limit in (("one", 1), ("all", 0)):
        ensemble = chain(name, [f"id_{name}"], max_batch_size=16, max_inflight=limit)
        made.model(name, ensemble.config())
    with Nereid(made.path) as server:
        for name, alone in (("one", True), ("all", False)):
            got = together.ask(server, f"/v2/models/{name}/infer", [json.dumps({"inputs": [ROW]}).encode()] * 16)
            assert [outputs(answer)["OUT"]["data"] for answer in got] == [[1.0]] * 16
            sizes = _counts(server, f"id_{name}")["batches"]
            assert (set(sizes) == {1}) is alone, sizes


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.reference] * (kind == "reference")) for kind in KINDS])
def test_labels_come_from_the_step_that_makes_the_output(kind: str, tmp_path: Path) -> None:
    """MR-18, PB-46: Where the ensemble names none of its own; through an ensemble too, and anew when the step's model is loaded
    again."""
    made = Repository(tmp_path / "models")
    folder = made.identity("classes", dims=(2,))
    text = (folder / "config.pbtxt").read_text()
    (folder / "config.pbtxt").write_text(text.replace('name: "OUTPUT0"', 'name: "OUTPUT0" label_filename: "labels.txt"'))
    (folder / "labels.txt").write_text("cat\ndog\n")
    inner = Ensemble("inner", [one_to_one("classes", "IN", "OUT")], dims="2")
    outer = Ensemble("outer", [Step("inner", {"IN": "IN"}, {"OUT": "OUT"})], dims="2")
    own = Ensemble("own", [one_to_one("classes", "IN", "OUT")], dims="2")
    for each in (inner, outer):
        made.model(each.name, each.config())
    made.model("own", own.config().replace('output { name: "OUT"', 'output { name: "OUT" label_filename: "own.txt"'))
    (made.path / "own" / "own.txt").write_text("left\nright\n")

    def label(server: Server, model: str) -> str:
        wanted = [{"name": "OUT", "parameters": {"classification": 1}}]
        answer = infer(server, model, tensor("IN", [1, 3]), outputs=wanted)
        assert answer.status == 200, answer
        return answer.json()["outputs"][0]["data"][0].rsplit(":", 1)[-1]

    def load(server: Server, model: str) -> None:
        answer = rawhttp.post(server.http, f"/v2/repository/models/{model}/load", b"{}")
        assert answer.status == 200, answer

    with KINDS[kind](made.path, {"model-control-mode": "explicit"}) as server:
        for model in ("outer", "own"):
            load(server, model)
        assert [label(server, model) for model in ("inner", "outer", "own")] == ["dog", "dog", "right"]
        (folder / "labels.txt").write_text("cat\nmouse\n")
        load(server, "classes")
        if kind == "nereid":  # the ensembles follow on their own
            server.process.wait_until(lambda: label(server, "outer") == "mouse", 60)
        assert [label(server, model) for model in ("inner", "outer", "own")] == ["mouse", "mouse", "right"]
