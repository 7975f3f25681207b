"""The metrics page, with everything on, as Prometheus' own parser and linter read it (what `promtool check metrics` does).

Clean but for names that the reference dictates, each with what is wrong with it."""

import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import metrics, paths, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Server

PROGRAM = paths.ROOT / "build" / "clients" / "promlint" / "client"
EVERYTHING = {"metrics-config": ["summary_latencies=true", "histogram_latencies=true"], "cache-config": "local,size=1048576"}

NO_TOTAL = 'counter metrics should have "_total" suffix'
SHORT_UNIT = "metric names should not contain abbreviated units"
COUNT = 'non-histogram and non-summary metrics should not have "_count" suffix'
SUMMARY = "metric name should not include type 'summary'"
TIMED = ("request", "queue", "compute_input", "compute_infer", "compute_output")
YOUNGER = "nv_inference_first_response_histogram_ms"  # than the reference that is asked here
# By family; the reference's names, which dashboards ask for.
ALLOWED = {
    "nv_inference_request_success": {NO_TOTAL},
    "nv_inference_request_failure": {NO_TOTAL},
    "nv_inference_count": {NO_TOTAL, COUNT},
    "nv_inference_exec_count": {NO_TOTAL, COUNT},
    "nv_inference_pending_request_count": {COUNT},
    **{f"nv_inference_{what}_duration_us": {NO_TOTAL, SHORT_UNIT} for what in TIMED},
    **{f"nv_inference_{what}_summary_us": {SUMMARY, SHORT_UNIT} for what in TIMED},
    **{f"nv_cache_{what}_per_model": {NO_TOTAL} for what in ("num_hits", "hit_duration", "num_misses", "miss_duration")},
    **{f"nv_cache_{what}_summary_per_model": {SUMMARY} for what in ("hit", "miss")},
    YOUNGER: {"metric name should not include type 'histogram'", SHORT_UNIT},
}


@pytest.fixture(scope="module", params=["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Everything on, and every family with samples."""
    repository = Repository(tmp_path_factory.mktemp("lint") / "models")
    odd = "te am" if request.param == "nereid" else "team"  # a key that is no name of a label ends the reference
    tags = f'metric_tags [ {{ key: "{odd}" value: "a\\"b" }}, {{ key: "one" value: "c\\\\d \u00e9" }} ]\n'
    repository.identity("plain", dims=(2,), extra=tags)
    repository.identity("cached", dims=(2,), extra="response_cache { enable: true }\n")
    caches = paths.BUILD / "caches" if request.param == "nereid" else paths.reference_root() / "caches"
    with KINDS[request.param](repository.path, {**EVERYTHING, "cache-directory": str(caches)}) as server:
        body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
        for model in ("plain", "cached", "cached"):
            assert rawhttp.post(server.http, f"/v2/models/{model}/infer", body).status == 200
        with rawgrpc.Channel(server.grpc) as channel:
            assert channel.call("ServerLive").code == "OK"
        yield server


def lint(address: str) -> tuple[int, dict[str, set[str]]]:
    """How many families there are, and what is wrong with which."""
    run = subprocess.run([paths.need(PROGRAM), f"http://{address}/metrics"], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    count, *lines = run.stdout.splitlines()
    found: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        name, problem = line.split("\t")
        found[name].add(problem)
    return int(count), dict(found)


def test_clean_but_for_names_of_the_reference(full: Server) -> None:
    count, found = lint(full.metrics)
    families = metrics.scrape(full.metrics)
    assert count == len(families)
    dictated = dict(ALLOWED)
    if full.kind == "reference":
        del dictated[YOUNGER]
    assert found == dictated


def test_names_that_need_escaping_are_as_clean(tmp_path: Path) -> None:
    """Of models, and a second version."""
    repository = Repository(tmp_path / "models")
    repository.identity("with space", dims=(2,), versions=(1, 2), extra="version_policy { all { } }\n")
    repository.identity("sl-ash.dot", dims=(2,))
    with KINDS["nereid"](repository.path) as server:
        _, found = lint(server.metrics)
        assert found and all(found[name] == ALLOWED[name] for name in found)


def test_the_linter_finds_what_is_wrong() -> None:
    """A page that breaks rules; the program itself is what is tested."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"# TYPE asked counter\nasked 1\n" if self.path == "/metrics" else b"")

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Page) as page:
        Thread(target=page.serve_forever, daemon=True).start()
        count, found = lint(f"127.0.0.1:{page.server_port}")
        page.shutdown()
    assert count == 1
    assert found == {"asked": {"no help text", NO_TOTAL}}
