"""The metrics page of both servers with everything on, family by family: name, type, labels, and the values that only depend on
what was asked."""

from collections.abc import Iterator
from pathlib import Path

import cache_asks as asks
import pytest
from conftest import extensions
from harness import metrics, paths
from harness.repository import Repository
from harness.servers import Nereid, Reference, Server

CACHED = "response_cache { enable: true }\n"
SUMMARIES = ["summary_latencies=true", "summary_quantiles=0.5:0.05,0.999:0.001"]
# Of a machine with a GPU; and of servers younger than the reference's 2.51.
OTHERS = ("nv_gpu_", "nv_energy_", "nv_model_load_duration_secs")
# What these requests make of it depends on the machine alone.
MEASURED = ("_duration_us", "_summary_us", "_duration_per_model", "_summary_per_model", "nv_cpu_", "nv_pinned_")


@pytest.fixture(scope="module", params=[[], SUMMARIES, ["counter_latencies=false"]], ids=["plain", "summaries", "no-counters"])
def pages(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, dict[str, metrics.Family]]]:
    repository = Repository(tmp_path_factory.mktemp("pages") / "models")
    repository.identity("plain", extra='metric_tags { key: "team" value: "a b" }\n')
    repository.identity("cached", extra=CACHED)
    found = {}
    for kind in (Nereid, Reference):
        directory = extensions("caches", "nereid") if kind is Nereid else paths.reference_root() / "caches"
        options = {"cache-config": "local,size=1048576", "cache-directory": str(directory)}
        with kind(repository.path, {**options, "metrics-config": request.param}) as server:
            ask(server)
            found[kind.kind] = metrics.scrape(server.metrics)
    yield found


def ask(server: Server) -> None:
    for value in (1, 1, 2, 1):
        asks.infer(server, "cached", asks.tensor([value]))
        asks.infer(server, "plain", asks.tensor([value]))


def shared(families: dict[str, metrics.Family]) -> dict[str, metrics.Family]:
    return {name: f for name, f in families.items() if name.startswith("nv_") and not name.startswith(OTHERS)}


@pytest.mark.reference
def test_both_pages_have_the_same_families(pages: dict[str, dict[str, metrics.Family]]) -> None:
    ours, theirs = shared(pages["nereid"]), shared(pages["reference"])
    assert {name: f.kind for name, f in ours.items()} == {name: f.kind for name, f in theirs.items()}

    def order(families: dict[str, metrics.Family]) -> list[str]:
        """Without those of the cache itself: what plug-ins have comes last here."""
        return [name for name in families if not name.startswith("nv_cache_") or name.endswith("_per_model")]

    assert order(ours) == order(theirs)


@pytest.mark.reference
def test_both_pages_have_the_same_samples(pages: dict[str, dict[str, metrics.Family]]) -> None:
    def series(families: dict[str, metrics.Family]) -> dict[str, list[tuple[str, list[tuple[str, str]]]]]:
        return {
            name: sorted((sample, sorted(labels.items())) for sample, labels, _ in f.samples)
            for name, f in shared(families).items()
        }

    assert series(pages["nereid"]) == series(pages["reference"])


@pytest.mark.reference
def test_both_pages_have_the_same_values(pages: dict[str, dict[str, metrics.Family]], request: pytest.FixtureRequest) -> None:
    """But for one thing: without the counters of latencies the reference no longer counts requests either; they stay 0."""

    def values(families: dict[str, metrics.Family]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        return {
            (sample, tuple(sorted(labels.items()))): value
            for name, f in shared(families).items()
            for sample, labels, value in f.samples
            if labels  # those of the cache itself have none; the reference's sets them every second
            if sample.endswith("_count") or not any(part in name for part in MEASURED)
        }

    ours, theirs = values(pages["nereid"]), values(pages["reference"])
    if "no-counters" in request.node.name:
        names = ("nv_inference_request_success", "nv_inference_count", "nv_inference_exec_count")
        counted = {key: value for key, value in ours.items() if key[0] in names}
        assert len(counted) == 6 and min(counted.values()) == 2
        assert {theirs[key] for key in counted} == {0}
        theirs |= counted
    assert ours == theirs


def test_summaries_of_a_cache(tmp_path: Path) -> None:
    """A model whose answers are kept: what looking up cost the hits, and what that and putting in cost the misses; no summary of whole
    requests."""
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    repository.identity("cached", extra=CACHED)
    options = {"cache-config": "local,size=1048576", "cache-directory": str(extensions("caches", "nereid"))}
    with Nereid(repository.path, {**options, "metrics-config": SUMMARIES}) as server:
        ask(server)
        found = metrics.scrape(server.metrics)
    for name, count in (("hit", 2), ("miss", 2)):
        family = found[f"nv_cache_{name}_summary_per_model"]
        assert family.kind == "summary"
        assert {labels["model"] for _, labels, _ in family.samples} == {"cached"}
        values = {labels.get("quantile", sample.removeprefix(family.name)): value for sample, labels, value in family.samples}
        assert 0 < values["0.5"] <= values["0.999"]
        assert values["_count"] == count
        assert values["_sum"] == found[f"nv_cache_{name}_duration_per_model"].value(model="cached")
    assert {labels["model"] for _, labels, _ in found["nv_inference_request_summary_us"].samples} == {"plain"}
    assert "cached" in {labels["model"] for _, labels, _ in found["nv_inference_queue_summary_us"].samples}
