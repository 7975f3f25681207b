"""The metrics port: a text that parses, the reference's families, counts that are right."""

from harness import metrics, rawhttp
from harness.servers import Server

REQUEST = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2, 16], "data": [0.5] * 32}]}
COUNTERS = (
    "nv_inference_request_success",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_request_duration_us",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
)
GAUGES = (
    "nv_inference_pending_request_count",
    "nv_cpu_utilization",
    "nv_cpu_memory_total_bytes",
    "nv_cpu_memory_used_bytes",
)


def _ask(server: Server) -> None:
    assert rawhttp.post(server.http, "/v2/models/id_batch/infer", REQUEST).status == 200


def test_families(server: Server) -> None:
    _ask(server)
    found = metrics.scrape(server.metrics)
    assert {name: found[name].kind for name in COUNTERS} == dict.fromkeys(COUNTERS, "counter")
    assert {name: found[name].kind for name in GAUGES} == dict.fromkeys(GAUGES, "gauge")
    assert found["nv_inference_request_failure"].kind == "counter"
    for name in COUNTERS:
        assert {"model", "version"} <= found[name].label_names()


def test_counts(server: Server) -> None:
    labels = {"model": "id_batch", "version": "1"}
    _ask(server)
    before = metrics.scrape(server.metrics)
    for _ in range(3):
        _ask(server)
    after = metrics.scrape(server.metrics)
    gained = {name: after[name].value(**labels) - before[name].value(**labels) for name in COUNTERS[:4]}
    assert gained.pop("nv_inference_request_duration_us") > 0
    assert gained == {
        "nv_inference_request_success": 3,
        "nv_inference_count": 6,
        "nv_inference_exec_count": 3,
    }
    assert after["nv_inference_pending_request_count"].value(**labels) == 0


def test_failure_reasons(server: Server) -> None:
    found = metrics.scrape(server.metrics)["nv_inference_request_failure"]
    reasons = {labels["reason"] for _, labels, _ in found.samples if labels["model"] == "id_batch"}
    assert reasons == {"REJECTED", "CANCELED", "BACKEND", "OTHER"}


def test_slash_at_the_end(server: Server) -> None:
    answer = rawhttp.get(server.metrics, "/metrics/")
    assert (answer.status, answer.body[:7]) == (200, b"# HELP ")


def test_model_load_duration(nereid: Server) -> None:
    """A family of today's Triton that the older reference does not have."""
    family = metrics.scrape(nereid.metrics)["nv_model_load_duration_secs"]
    assert family.kind == "gauge"
    assert 0 <= family.value(model="id_batch", version="1") < 60


def test_every_family_of_the_reference(nereid: Server, reference: Server) -> None:
    """Same name, same type, same labels, for everything that exists on a machine without a GPU."""
    for server in (nereid, reference):
        _ask(server)
    ours, theirs = metrics.scrape(nereid.metrics), metrics.scrape(reference.metrics)
    needs_gpu = {name for name in theirs if name.startswith("nv_pinned_memory_pool_") or "gpu" in name}
    for name in theirs.keys() - needs_gpu:
        assert name in ours, f"family {name} is missing"
        assert ours[name].kind == theirs[name].kind, name
        assert ours[name].label_names() == theirs[name].label_names(), name


def test_latency_histograms_are_always_on(nereid: Server) -> None:
    def counts() -> dict[str, float]:
        return {
            family.name: sum(
                value
                for name, labels, value in family.samples
                if name == f"{family.name}_count" and labels.get("model") == "id_batch"
            )
            for family in metrics.scrape(nereid.metrics).values()
            if family.kind == "histogram"
        }

    _ask(nereid)
    before = counts()
    _ask(nereid)
    after = counts()
    assert any(after[name] == before[name] + 1 for name in before), after
    for family in metrics.scrape(nereid.metrics).values():
        if family.kind == "histogram":
            _check_buckets(family)


def _check_buckets(family: metrics.Family) -> None:
    """Buckets never fall, and the last one (+Inf) is the count."""
    series: dict[tuple, list[tuple[float, float]]] = {}
    totals: dict[tuple, float] = {}
    for name, labels, value in family.samples:
        key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        if name.endswith("_bucket"):
            series.setdefault(key, []).append((float(labels["le"]), value))
        elif name.endswith("_count"):
            totals[key] = value
    assert series.keys() == totals.keys()
    for key, buckets in series.items():
        assert buckets == sorted(buckets)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert buckets[-1] == (float("inf"), totals[key])
