"""Requests about identity models, and what the servers count of them."""

import json
from typing import Any

from harness import metrics, rawhttp
from harness.repository import Repository
from harness.servers import Server

CACHED = "response_cache { enable: true }\n"
ENSEMBLE = """\
platform: "ensemble"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [ {
  model_name: "plain" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" }
} ] }
"""


def write_models(repository: Repository) -> None:
    repository.identity("plain")
    repository.identity("cached", extra=CACHED)
    repository.identity("another", extra=CACHED)
    repository.identity("versions", extra=CACHED + "version_policy { all {} }\n", versions=(1, 2))
    repository.identity("two", dims=(-1,), tensors=2, extra=CACHED)
    repository.identity("square", dims=(-1, -1), extra=CACHED)
    repository.identity("strings", "BYTES", extra=CACHED)
    repository.model("chain", ENSEMBLE + CACHED)
    repository.identity(
        "batched", max_batch_size=8,
        extra=CACHED + "dynamic_batching { preserve_ordering: true max_queue_delay_microseconds: 2000 }\n",
    )


def tensor(values: list[Any], name: str = "INPUT0", shape: list[int] | None = None, datatype: str = "FP32") -> Any:
    return {"name": name, "datatype": datatype, "shape": shape or [len(values)], "data": values}


def infer(server: Server, model: str, *inputs: Any, **more: Any) -> dict[str, Any]:
    """The answer's outputs by name: shape and data."""
    body = json.dumps({"inputs": list(inputs), **more}).encode()
    answer = rawhttp.post(server.http, f"/v2/models/{model}/infer", body)
    assert answer.status == 200, answer.body
    return {out["name"]: (out["shape"], out["data"]) for out in answer.json()["outputs"]}


def counts(server: Server, model: str) -> dict[str, int]:
    """What the statistics extension counts of all versions of a model."""
    server.settle()
    answer = rawhttp.request(*server.http.split(":"), "GET", f"/v2/models/{model}/stats")
    sums: dict[str, int] = {}
    for version in answer.json()["model_stats"]:
        for name, value in version["inference_stats"].items():
            sums[name] = sums.get(name, 0) + int(value["count"])
        for name in ("inference_count", "execution_count"):
            sums[name] = sums.get(name, 0) + int(version[name])
    return sums


def page(server: Server) -> dict[str, metrics.Family]:
    server.settle()
    answer = rawhttp.request(*server.metrics.split(":"), "GET", "/metrics")
    return metrics.parse(answer.body.decode())
