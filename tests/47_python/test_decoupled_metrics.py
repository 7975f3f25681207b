"""The time to the first response of decoupled models: a request counts once, however many responses it has."""

from pathlib import Path

from asks import Asker
from conftest import make_server, ready_with
from harness import metrics
from test_decoupled import repeat

FAMILY = "nv_inference_first_response_histogram_ms"


def test_each_request_counts_once(python_backends: dict[str, Path], repository: Path) -> None:
    options = {"model-control-mode": "explicit", "load-model": ["repeat"], "metrics-config": "histogram_latencies=true"}
    server = make_server("nereid", python_backends, repository, options)
    with server:
        ready_with(server, ["repeat"])
        asker = Asker(server)

        def counted() -> float:
            samples = metrics.scrape(server.metrics)[FAMILY].samples
            return sum(value for name, labels, value in samples if name == f"{FAMILY}_count" and labels["model"] == "repeat")

        assert counted() == 0
        assert [value for _, value in repeat(asker, [1, 2, 3], "thread")] == [1, 2, 3, None]
        assert counted() == 1
        repeat(asker, [4] * 50, "execute joined")
        assert counted() == 2
        assert repeat(asker, [], "execute") == [(True, None)]  # no response at all
        assert counted() == 2
        asker.close()
