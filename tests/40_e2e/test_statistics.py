"""Statistics: what was asked is what was counted, and both protocols tell the same."""

from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import rawhttp
from harness.servers import Server
from tritonclient.utils import InferenceServerException


def _stats(server: Server, model: str, version: str = "") -> dict[str, Any]:
    server.settle()
    with httpclient.InferenceServerClient(server.http) as client:
        found = client.get_inference_statistics(model, version)["model_stats"]
    assert len(found) == 1
    return found[0]


def _infer(server: Server, model: str, batch: int) -> None:
    data = np.zeros((batch, 4), dtype=np.int32)
    sent = httpclient.InferInput("INPUT0", list(data.shape), "INT32")
    sent.set_data_from_numpy(data)
    with httpclient.InferenceServerClient(server.http) as client:
        client.infer(model, [sent])


def _counts(stats: dict[str, Any]) -> dict[str, int]:
    counts = {
        key: stats["inference_stats"][key].get("count", 0)
        for key in ("success", "fail", "queue", "compute_infer")
    }
    return {**counts, "inference": stats["inference_count"], "execution": stats["execution_count"]}


def test_counts(server: Server) -> None:
    before = _counts(_stats(server, "id_int_batch"))
    for batch in (1, 3, 3):
        _infer(server, "id_int_batch", batch)
    with pytest.raises(InferenceServerException):
        _infer(server, "id_int_batch", 5)  # over max_batch_size: refused before it is queued
    stats = _stats(server, "id_int_batch")
    after = _counts(stats)
    gained = {key: after[key] - before[key] for key in after}
    assert gained == {"success": 3, "fail": 0, "queue": 3, "compute_infer": 3, "inference": 7, "execution": 3}
    sizes = {row["batch_size"]: row["compute_infer"]["count"] for row in stats["batch_stats"]}
    assert sizes[1] >= 1 and sizes[3] >= 2
    assert stats["last_inference"] > 1_600_000_000_000  # ms since 1970


def test_times_rise(server: Server) -> None:
    _infer(server, "id_int_batch", 1)
    first = _stats(server, "id_int_batch")["inference_stats"]
    _infer(server, "id_int_batch", 1)
    second = _stats(server, "id_int_batch")["inference_stats"]
    assert second["success"]["ns"] > first["success"]["ns"]
    for part in ("queue", "compute_input", "compute_infer", "compute_output"):
        assert second[part]["ns"] >= first[part]["ns"]
        assert second[part]["ns"] <= second["success"]["ns"]


def test_all_models(server: Server) -> None:
    with httpclient.InferenceServerClient(server.http) as client:
        rows = client.get_inference_statistics()["model_stats"]
    assert {("id_fp32", "1"), ("id_newest", "3"), ("id_specific", "1"), ("id_specific", "3")} <= {
        (row["name"], row["version"]) for row in rows
    }
    assert [
        row["version"]
        for row in rawhttp.get(server.http, "/v2/models/id_specific/versions/3/stats").json()["model_stats"]
    ] == ["3"]


def test_grpc_tells_the_same(server: Server) -> None:
    _infer(server, "id_int_batch", 2)
    over_http = _stats(server, "id_int_batch")
    with grpcclient.InferenceServerClient(server.grpc) as client:
        (over_grpc,) = client.get_inference_statistics("id_int_batch").model_stats
    assert over_grpc.inference_count == over_http["inference_count"]
    assert over_grpc.execution_count == over_http["execution_count"]
    assert over_grpc.inference_stats.success.count == over_http["inference_stats"]["success"]["count"]
    assert over_grpc.inference_stats.success.ns == over_http["inference_stats"]["success"]["ns"]
    assert [row.batch_size for row in over_grpc.batch_stats] == [
        row["batch_size"] for row in over_http["batch_stats"]
    ]
