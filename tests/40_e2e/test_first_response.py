"""nv_inference_first_response_histogram_ms: how long requests wait for their first response, in the model's own buckets.

Younger than the reference that the tests ask, which takes the option and shows nothing."""

import json
from pathlib import Path

import pytest
from harness import metrics, rawhttp, together
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server

FAMILY = "nv_inference_first_response_histogram_ms"
ON = {"metrics-config": ["histogram_latencies=true"]}
CHAIN = """
platform: "ensemble"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling { step [ {
  model_name: "slow" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }
"""


def buckets(*bounds: float, family: str = FAMILY) -> str:
    listed = ", ".join(str(bound) for bound in bounds)
    control = f'metric_identifier {{ family: "{family}" }} histogram_options {{ buckets: [ {listed} ] }}'
    return f"model_metrics {{ metric_control [ {{ {control} }} ] }}\n"


def delay(ms: int) -> str:
    return f'parameters [ {{ key: "execute_delay_ms" value: {{ string_value: "{ms}" }} }} ]\n'


def ask(server: Server, model: str, expected: int = 200) -> None:
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
    assert rawhttp.post(server.http, f"/v2/models/{model}/infer", body).status == expected


def shown(server: Server, model: str) -> dict[str, float]:
    """By bound, and the count and the sum."""
    family = metrics.scrape(server.metrics)[FAMILY]
    assert family.kind == "histogram"
    return {
        labels.get("le", name.removeprefix(FAMILY)): value
        for name, labels, value in family.samples
        if labels["model"] == model and labels["version"] == "1"
    }


def test_every_model_has_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("quick", dims=(2,))
    repository.identity("slow", dims=(2,), extra=delay(120))
    repository.model("chain", CHAIN)
    with Nereid(repository.path, ON) as server:
        assert shown(server, "quick") == dict.fromkeys(["100", "500", "2000", "5000", "+Inf", "_sum", "_count"], 0)
        ask(server, "quick")
        ask(server, "chain")
        ask(server, "slow")
        ask(server, "slow")
        quick, slow, chain = (shown(server, model) for model in ("quick", "slow", "chain"))
    assert quick["_count"] == 1
    assert all(quick[bound] == (quick["_sum"] <= float(bound)) for bound in ("100", "500", "2000", "5000", "+Inf"))
    assert (slow["100"], slow["+Inf"], slow["_count"]) == (0, 3, 3)
    assert slow["_sum"] >= 360
    assert (chain["100"], chain["_count"]) == (0, 1)
    assert chain["_sum"] >= 120


def test_buckets_of_a_model(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("own", dims=(2,), extra=delay(30) + buckets(0.5, 20, 60000))
    repository.identity("usual", dims=(2,), extra=buckets(1, 2, family="nv_inference_count"))
    with Nereid(repository.path, ON) as server:
        ask(server, "own")
        own = shown(server, "own")
        assert 30 <= own.pop("_sum") < 60000
        assert own == {"0.5": 0, "20": 0, "60000": 1, "+Inf": 1, "_count": 1}
        assert list(shown(server, "usual"))[:2] == ["100", "500"]
        warned = "Metric family 'nv_inference_count' in 'metric_identifier' is not a customizable metric"
        assert server.process.log().count(warned) == 1


def test_refusals_of_the_queue_count(tmp_path: Path) -> None:
    """But not what is no request of the model at all."""
    repository = Repository(tmp_path / "models")
    queue = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n"
    repository.identity("full", dims=(2,), max_batch_size=1, extra=delay(200) + queue)
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}).encode()
    with Nereid(repository.path, {**ON, "inline-execution": "false"}) as server:
        ask(server, "full", 400)  # its shape lacks the batch
        assert shown(server, "full")["_count"] == 0
        codes = {answer.status for answer in together.ask(server, "/v2/models/full/infer", [body] * 6)}
        assert codes == {200, 503}
        assert shown(server, "full")["_count"] == 6


@pytest.mark.parametrize("kind", ["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def test_not_shown_unless_asked_for(tmp_path: Path, kind: str) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("quick", dims=(2,))
    for options in ({}, ON) if kind == "reference" else ({}, {"metrics-config": ["histogram_latencies=false"]}):
        with KINDS[kind](repository.path, options) as server:
            ask(server, "quick")
            assert FAMILY not in metrics.scrape(server.metrics)


@pytest.mark.parametrize(
    ("control", "message"),
    [
        ("{ }", "metric control must specify 'metric_identifier'"),
        ("{ metric_identifier { } }", "metric identifier must specify non-empty 'family'"),
        ('{ metric_identifier { family: "f" } }', "metric control must specify 'histogram_options'"),
        ('{ metric_identifier { family: "f" } histogram_options { } }', "histogram options must specify non-empty 'buckets'"),
    ],
)
def test_settings_that_are_none(tmp_path: Path, control: str, message: str) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("broken", dims=(2,), extra=f"model_metrics {{ metric_control [ {control} ] }}\n")
    with Nereid(repository.path, {"strict-readiness": "false", "exit-on-error": "false"}) as server:
        index = rawhttp.post(server.http, "/v2/repository/index", {}).json()
        assert [entry["reason"] for entry in index] == [message]  # of the model: no version was begun
