"""The metrics port: a text that parses, the reference's families, counts that are right."""

import threading
from pathlib import Path

import pytest
from harness import metrics, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server
from witness import Board, backend, board

USUAL = ["0.5", "0.9", "0.95", "0.99", "0.999"]

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
    server.settle()
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


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
def test_the_page_is_only_read(server: Server, method: str) -> None:
    answer = rawhttp.request(HOST, server.metrics_port, method, "/metrics", b"")
    assert (answer.status, answer.json()) == (405, {"error": "Method Not Allowed"})


@pytest.mark.parametrize("path", ["/", "/metricsx", "/metrics/x", "/Metrics", "/v2/health/live"])
def test_nothing_else_is_served_there(nereid: Server, path: str) -> None:
    """The reference answers every path, with 200 and nothing: a scraper that asks for a wrong one would not notice."""
    answer = rawhttp.get(nereid.metrics, path)
    assert (answer.status, answer.json()) == (404, {"error": "Not Found"})
    assert rawhttp.get(nereid.metrics, "/metrics?query=1").status == 200
    assert rawhttp.request(HOST, nereid.metrics_port, "HEAD", "/metrics").body == b""


def test_model_load_duration(nereid: Server) -> None:
    """A family of today's Triton that the older reference does not have."""
    family = metrics.scrape(nereid.metrics)["nv_model_load_duration_secs"]
    assert family.kind == "gauge"
    assert 0 < family.value(model="id_batch", version="1") < 60


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
    expected = {
        *(f"nereid_inference_{part}_latency_seconds" for part in ("request", "queue", "compute")),
        "nereid_inference_batch_size",
    }
    nereid.process.wait_for(lambda: {name for name, count in counts().items() if count == before[name] + 1}, expected)
    histograms = [family for family in metrics.scrape(nereid.metrics).values() if family.kind == "histogram"]
    assert expected <= {family.name for family in histograms}
    for family in histograms:
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


# The front doors.


def _requests(server: Server) -> dict[tuple[str, ...], float]:
    family = metrics.scrape(server.metrics).get("nereid_requests_total")
    samples = family.samples if family else []
    keys = ("protocol", "route", "model", "code")
    return {tuple(labels.get(key, "") for key in keys): value for _, labels, value in samples}


def test_requests_by_route_model_and_code(nereid: Server) -> None:
    before = _requests(nereid)
    _ask(nereid)
    _ask(nereid)
    assert rawhttp.post(nereid.http, "/v2/models/id_batch/infer", b"{}").status == 500
    assert rawhttp.get(nereid.http, "/v2/models/id_batch/infer").status == 405
    assert rawhttp.get(nereid.http, "/nothing/of/ours").status == 404
    assert rawhttp.get(nereid.http, "/v2/health/live").status == 200
    with rawgrpc.Channel(nereid.grpc) as channel:
        request = rawgrpc.infer_request("id_batch", [("INPUT0", "FP32", [1, 16], b"\0" * 64)])
        assert channel.call("ModelInfer", request).code == "OK"
        assert channel.call("ServerLive").code == "OK"
        assert channel.call("Nothing").code == "UNIMPLEMENTED"

    def gained() -> dict[tuple[str, ...], float]:
        """But what is asked for it. A call that is refused by its name is counted when the rest of it has come, which may be later."""
        now = {key: value - before.get(key, 0) for key, value in _requests(nereid).items()}
        assert now.pop(("metrics", "metrics", "", "200")) >= 1
        return {key: value for key, value in now.items() if value}

    expected = {
        ("http", "infer", "id_batch", "200"): 2,
        ("http", "infer", "id_batch", "500"): 1,
        ("http", "infer", "", "405"): 1,
        ("http", "other", "", "404"): 1,
        ("http", "live", "", "200"): 1,
        ("grpc", "ModelInfer", "id_batch", "OK"): 1,
        ("grpc", "ServerLive", "", "OK"): 1,
        ("grpc", "other", "", "UNIMPLEMENTED"): 1,
    }
    nereid.process.wait_for(gained, expected)


def test_names_of_strangers_make_no_labels(nereid: Server) -> None:
    """Whatever clients ask for, the page does not grow by it."""
    for index in range(20):
        assert rawhttp.post(nereid.http, f"/v2/models/stranger{index}/infer", REQUEST).status == 404
        assert rawhttp.get(nereid.http, f"/strange/{index}").status == 404
    page = rawhttp.get(nereid.metrics, "/metrics").body
    assert b"strange" not in page


def _front(server: Server, name: str, protocol: str) -> float:
    return metrics.scrape(server.metrics)[name].value(protocol=protocol)


def test_connections_and_bytes(identity_repository: Path) -> None:
    """What a connection does is counted before, or right after it notices."""
    with Nereid(identity_repository) as server:
        names = ("nereid_received_bytes_total", "nereid_sent_bytes_total", "nereid_connections_accepted_total")
        server.process.wait_until(lambda: _front(server, "nereid_connections", "http") == 0, 30)
        before = [_front(server, name, "http") for name in names]
        with rawhttp.Connection(HOST, server.http_port) as connection:
            sent = rawhttp.head("GET", "/v2")
            connection.send(sent)
            answer = connection.answer()
            assert _front(server, "nereid_connections", "http") == 1

            def gained() -> list[float]:
                return [_front(server, name, "http") - old for name, old in zip(names, before, strict=True)]

            server.process.wait_until(lambda: gained() == [len(sent), answer.size, 1], 30)
            server.process.wait_until(lambda: _front(server, "nereid_requests_in_flight", "http") == 0, 30)
        server.process.wait_until(lambda: _front(server, "nereid_connections", "http") == 0, 30)


def test_what_a_model_does_now(board: Board, backend: Path) -> None:
    """Busy instances, the queue behind them and how long its first request has waited; then the batches that ran."""
    board.model("slow", extra="dynamic_batching { }\n", batch=4, gated=True)
    body = {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 1], "data": [7]}]}
    with Nereid(board.repository.path, {"backend-directory": str(backend)}) as server:

        def now(name: str) -> float:
            return metrics.scrape(server.metrics)[name].value(model="slow", version="1")

        def ask() -> None:
            assert rawhttp.post(server.http, "/v2/models/slow/infer", body).status == 200

        asking = [threading.Thread(target=ask) for _ in range(3)]
        asking[0].start()
        server.process.wait_until(lambda: now("nereid_instances_busy") == 1, 30)
        server.process.wait_until(lambda: now("nv_inference_pending_request_count") == 0, 30)  # the first one is taken
        assert now("nereid_instances") == 1
        for thread in asking[1:]:
            thread.start()
        server.process.wait_until(lambda: now("nv_inference_pending_request_count") == 2, 30)
        waited = now("nereid_queue_oldest_seconds")
        assert 0 < waited < now("nereid_queue_oldest_seconds")
        assert _front(server, "nereid_requests_in_flight", "http") == 3
        board.open_gate()
        for thread in asking:
            thread.join(60)
            assert not thread.is_alive()
        server.process.wait_until(lambda: now("nereid_instances_busy") == 0, 30)
        assert now("nereid_queue_oldest_seconds") == 0
        sizes = metrics.scrape(server.metrics)["nereid_inference_batch_size"]
        buckets = {labels["le"]: value for _, labels, value in sizes.samples if "le" in labels}
        assert (buckets["1"], buckets["2"], buckets["+Inf"]) == (1, 2, 2)


# --metrics-config


@pytest.mark.parametrize("kind", ["nereid", pytest.param("reference", marks=pytest.mark.reference)])
@pytest.mark.parametrize("quantiles", ["", "0.25:0.1,0.5:0.01,0.9999:0.001"])
def test_summaries(identity_repository: Path, kind: str, quantiles: str) -> None:
    settings = ["summary_latencies=true"] + ([f"summary_quantiles={quantiles}"] if quantiles else [])
    expected = [part.split(":")[0] for part in quantiles.split(",")] if quantiles else USUAL
    with KINDS[kind](identity_repository, {"metrics-config": settings}) as server:
        for _ in range(4):
            _ask(server)
        found = metrics.scrape(server.metrics)
        assert set(COUNTERS) <= found.keys(), "summaries do not take the place of counters"
        for part in ("request", "queue", "compute_input", "compute_infer", "compute_output"):
            family = found[f"nv_inference_{part}_summary_us"]
            assert family.kind == "summary"
            samples = [(name, labels, value) for name, labels, value in family.samples if labels["model"] == "id_batch"]
            shown = [labels["quantile"] for name, labels, value in samples if "quantile" in labels]
            assert [float(each) for each in shown] == [float(each) for each in expected]
            values = [value for name, labels, value in samples if "quantile" in labels]
            assert values == sorted(values)
            rest = {name: value for name, labels, value in samples if "quantile" not in labels}
            assert rest.pop(f"{family.name}_count") == 4
            total = rest.pop(f"{family.name}_sum")
            assert total == found[f"nv_inference_{part}_duration_us"].value(model="id_batch", version="1")


@pytest.mark.parametrize("kind", ["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def test_counters_of_latencies_can_be_left_out(identity_repository: Path, kind: str) -> None:
    with KINDS[kind](identity_repository, {"metrics-config": ["counter_latencies=false"]}) as server:
        _ask(server)
        found = metrics.scrape(server.metrics)
        assert not [name for name in found if name.endswith("_duration_us")]
        assert set(COUNTERS[:3]) <= found.keys()


def test_names_say_base_units(nereid: Server) -> None:
    """Families of our own are in seconds and bytes, counters end in _total; the reference's keep its names."""
    _ask(nereid)
    for family in metrics.scrape(nereid.metrics).values():
        if family.name.startswith("nv_"):
            continue
        assert not family.name.endswith(("_us", "_ms", "_secs")), family.name
        if family.kind == "counter":
            assert family.name.endswith("_total"), family.name
    bounds = [
        labels["le"]
        for name, labels, _ in metrics.scrape(nereid.metrics)["nereid_inference_request_latency_seconds"].samples
        if name.endswith("_bucket") and labels["model"] == "id_batch"
    ]
    assert bounds[:2] == ["0.000064", "0.000128"] and bounds[-3:] == ["8.388608", "16.777216", "+Inf"]


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.reference] * (kind == "reference")) for kind in KINDS])
def test_counters_go_on_over_a_reload(kind: str, tmp_path: Path) -> None:
    """They belong to the name and the version: a reload goes on with them, the protocol's statistics begin anew; so do both after an
    unload."""
    made = Repository(tmp_path / "models")
    folder = made.identity("model", dims=(-1,))
    options = {"model-control-mode": "explicit", "load-model": "model", "metrics-config": "counter_latencies=true"}
    with KINDS[kind](made.path, options) as server:

        def ask() -> None:
            body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
            assert rawhttp.post(server.http, "/v2/models/model/infer", body).status == 200

        def control(what: str) -> None:
            answer = rawhttp.post(server.http, f"/v2/repository/models/model/{what}", b"{}")
            assert answer.status == 200, answer

        def counted() -> tuple[float, float, int]:
            told = server.statistics("model")
            found = metrics.scrape(server.metrics)
            values = [found[name].value(model="model", version="1") for name in COUNTERS[:3:2]]
            return (*values, told["inference_stats"]["success"]["count"])

        ask()
        assert counted() == (1, 1, 1)
        (folder / "1" / "file").write_text("changed")
        control("load")
        assert counted() == (1, 1, 0)
        ask()
        assert counted() == (2, 2, 1)
        (folder / "config.pbtxt").write_text((folder / "config.pbtxt").read_text() + 'parameters { key: "x" value { string_value: "y" } }')
        control("load")
        ask()
        assert counted() == (3, 3, 1)
        control("unload")
        server.process.wait_until(lambda: _state(server) == "unloaded", 60)
        # The reference says so before it has freed the model, and its counters go with the model.
        server.process.wait_until(lambda: not _has_counters(server), 60)
        control("load")
        ask()
        assert counted() == (1, 1, 1)


def _has_counters(server: Server) -> bool:
    found = metrics.scrape(server.metrics).get(COUNTERS[0])
    return bool(found and found.samples)


def _state(server: Server) -> str:
    index = rawhttp.post(server.http, "/v2/repository/index", b"{}").json()
    return next(model.get("reason", "") for model in index if model["name"] == "model")


def test_histograms_of_what_was_never_asked_are_left_out(tmp_path: Path) -> None:
    """A thousand models of which two are asked have a page that can be read; counters and gauges are there from the start."""
    made = Repository(tmp_path / "models")
    for name in ("asked", "idle"):
        made.identity(name, dims=(-1,))
    with Nereid(made.path) as server:
        body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
        assert rawhttp.post(server.http, "/v2/models/asked/infer", body).status == 200
        found = metrics.scrape(server.metrics).values()
        rows = {
            name: {family.name for family in found for _, labels, _ in family.samples if labels.get("model") == name}
            for name in ("asked", "idle")
        }
        only = rows["asked"] - rows["idle"]
        assert only == {
            *(f"nereid_inference_{part}_latency_seconds" for part in ("request", "queue", "compute")),
            "nereid_inference_batch_size",
            "nereid_requests_total",
        }
        text = rawhttp.get(server.metrics, "/metrics").body.decode()
        assert len([line for line in text.splitlines() if 'model="idle"' in line]) <= 18
