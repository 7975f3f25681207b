"""Models that load and unload models, metrics of models, and the statistics that are kept of them; as in the reference."""

import re
from typing import Any

import numpy as np
import pytest
from asks import Asker, words
from conftest import Both
from harness import rawhttp

CONFIG = '{"name": "loaded_by_a_model", "backend": "python", "max_batch_size": 0, "input": [{"name": "ASK", "data_type": "TYPE_STRING", "dims": [1]}], "output": [{"name": "TOLD", "data_type": "TYPE_STRING", "dims": [1]}], "version_policy": {"specific": {"versions": [1]}}}'


def load(asker: Asker, ask: dict[str, Any]) -> Any:
    return asker.once_it_has_turns(lambda: asker.asked("loads", {"call": "load_model", **ask}))


def ready(asker: Asker, model: str, **more: Any) -> Any:
    return asker.asked("loads", {"call": "is_model_ready", "model_name": model, **more})


def test_loading_and_unloading(both: Both) -> None:
    name = "loaded_by_a_model"
    assert both.same(lambda asker: ready(asker, name)) is False
    assert both.same(lambda asker: load(asker, {"model_name": name})) is None
    assert both.same(lambda asker: ready(asker, name)) is True
    assert both.same(lambda asker: ready(asker, name, model_version="1")) is True
    assert both.same(lambda asker: ready(asker, name, model_version="3")) is False
    assert both.same(lambda asker: asker.told(name, "x")) == "x"
    assert both.same(lambda asker: asker.asked("loads", {"call": "unload_model", "model_name": name})) is None
    for asker in both.askers.values():
        asker.until(lambda asker=asker: asker.ready(name) == 400 or asker.ready(name) == 404)
    assert both.same(lambda asker: ready(asker, name)) is False


def test_loading_with_a_configuration_and_files(both: Both) -> None:
    name = "loaded_by_a_model"
    source = "import triton_python_backend_utils as pb_utils\nimport numpy as np\n\n\nclass TritonPythonModel:\n    def execute(self, requests):\n        told = pb_utils.Tensor('TOLD', np.array(['from a file'], dtype=object))\n        return [pb_utils.InferenceResponse([told]) for _ in requests]\n"
    ask = {"model_name": name, "config": CONFIG, "files": {"file:1/model.py": source}}
    assert both.same(lambda asker: load(asker, ask)) is None
    assert both.same(lambda asker: asker.told(name, "x")) == "from a file"
    assert both.same(lambda asker: asker.asked("loads", {"call": "unload_model", "model_name": name, "unload_dependents": True})) is None
    for asker in both.askers.values():
        asker.until(lambda asker=asker: asker.ready(name) != 200)


def test_readiness_of_what_is_not_there(both: Both) -> None:
    """Loads that fail are not tried here: what the backend does then races, and takes down either server."""
    assert both.same(lambda asker: ready(asker, "nobody")) is False
    assert both.same(lambda asker: ready(asker, "tell", model_version="7")) is False
    assert both.same(lambda asker: ready(asker, "fails_import")) is False
    assert both.same(lambda asker: asker.asked("loads", {"call": "unload_model", "model_name": "fails_import"})) is None


def metric_lines(asker: Asker) -> list[str]:
    text = rawhttp.get(asker.server.metrics, "/metrics").body.decode()
    return sorted(line for line in text.splitlines() if "py_" in line)


def test_metrics_of_models(both: Both) -> None:
    told = both.same(lambda asker: asker.asked("metrics", {}))
    assert told["counter"] == 2 and told["other"] == 0.5 and told["gauge"] == 7.5
    again = both.same(lambda asker: asker.asked("metrics", {}))
    assert again["counter"] == 4
    lines = both.same(lambda asker: [re.sub(r"(\d)\.0\b", r"\1", line) for line in metric_lines(asker)])
    assert any(line.startswith("py_sizes_bucket") for line in lines)


def counts(asker: Asker, model: str) -> dict[str, Any]:
    _, answer = asker.get(f"/v2/models/{model}/stats")
    stats = answer["model_stats"][0]
    kept = {key: stats[key] for key in ("inference_count", "execution_count")}
    kept["requests"] = {kind: value["count"] for kind, value in stats["inference_stats"].items()}
    kept["batches"] = {each["batch_size"]: each["compute_infer"]["count"] for each in stats["batch_stats"]}
    kept["responses"] = {
        index: {kind: value["count"] for kind, value in row.items()} for index, row in stats.get("response_stats", {}).items()
    }
    return kept


def test_statistics(both: Both) -> None:
    """The same questions were asked of both by the tests before, in the same order, and are asked here once more. The backend counts
    behind its answers."""
    both.same(lambda asker: asker.told("fails_execute", "well"))
    both.same(lambda asker: asker.told("fails_execute", "raise"))
    both.same(lambda asker: asker.told("fails_execute", "error plain"))
    both.same(lambda asker: asker.stream("repeat", {"IN": np.array([1, 2], np.int32), "WHERE": words("execute")}))
    for model in ("fails_execute", "repeat"):
        until_same(both, model)


def until_same(both: Both, model: str) -> None:
    found: list[dict[str, Any]] = []

    def same() -> bool:
        found[:] = [counts(asker, model) for asker in both.askers.values()]
        return all(each == found[0] for each in found)

    Asker.until(same)
    assert found[0]["requests"]
