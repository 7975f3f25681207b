"""What a python model is told, keeps, completes and finds; the same as in the reference."""

import json
import os
import re
from typing import Any

import numpy as np
import pytest
from asks import Asker
from conftest import Both


def without_home(told: Any, asker: Asker) -> Any:
    """What names the place of the server's own files is left out."""
    return json.loads(json.dumps(told).replace(str(asker.server.options["backend-directory"]), "BACKENDS"))


def test_what_initialize_is_told(both: Both) -> None:
    told = both.same(lambda asker: without_home(asker.asked_start("tell"), asker))
    assert told["name"] == "tell" and told["version"] == "1"
    assert told["config"]["parameters"]["own"] == {"string_value": "a value"}
    assert told["input"]["name"] == "ASK" and told["no input"] is None


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"request_id": "an id: \u00fc"},
        {"sequence_id": 7, "sequence_start": True, "sequence_end": True},
        {"sequence_id": "a name", "sequence_start": True},
        {"timeout": 10_000_000},
        {"priority": 1},
        {"parameters": {"text": "\u00fc \u4e16", "number": -5, "yes": True, "no": False, "big": 2**62}},
    ],
    ids=lambda more: "-".join(more) or "nothing",
)
def test_what_a_request_tells(both: Both, more: dict[str, Any], protocol: str) -> None:
    told = both.same(lambda asker: asker.asked("tell", {"see": 1}, protocol=protocol, outputs=["TOLD"], **more))
    assert told["inputs"] == ["ASK"] and told["cpu"] == [True] and told["none"] is True
    assert told["id"] == more.get("request_id", "")
    assert told["correlation"] == more.get("sequence_id", 0)
    assert told["timeout"] == more.get("timeout", 0)
    assert told["parameters"] == more.get("parameters", {})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 0.5])
def test_parameters_that_are_floats(both: Both, value: float) -> None:
    """The model gets them by the names that Python's json has for them."""
    told = both.same(lambda asker: repr(asker.asked("tell", {"see": 1}, parameters={"x": value})["parameters"]))
    assert told == repr({"x": value})


def test_state_is_kept_between_requests(both: Both) -> None:
    told = [both.same(lambda asker, each=each: asker.told("state", each)) for each in ("a", "b", "\u00fc", "")]
    assert told == ["a", "a,b", "a,b,\u00fc", "a,b,\u00fc,"]


def test_auto_complete(both: Both) -> None:
    status, config = both.same(lambda asker: asker.get("/v2/models/auto_complete/config"))
    assert status == 200
    assert config["max_batch_size"] == 4 and [each["name"] for each in config["input"]] == ["X", "MORE"]
    both.same(lambda asker: asker.get("/v2/models/auto_complete"))
    x = np.array([[1, 2, 3]], np.int32)
    alone = both.same(lambda asker: asker.infer("auto_complete", {"X": x}))
    assert alone["Y"][2] == (2 * x).tobytes()
    more = both.same(lambda asker: asker.infer("auto_complete", {"X": x, "MORE": x}))
    assert more["Y"][2] == (3 * x).tobytes()


def test_auto_complete_to_decoupled(both: Both) -> None:
    both.same(lambda asker: asker.get("/v2/models/auto_complete_decoupled/config"))
    came = both.same(lambda asker: asker.stream("auto_complete_decoupled", {"N": np.array([3], np.int32)}))
    assert [each["final"] for each in came] == [False, False, False, True]


@pytest.mark.parametrize("name", ["tell", "repeat", "batch", "identity", "environment", "reschedule", "reschedule_oldest"])
def test_configurations(both: Both, name: str) -> None:
    status, _ = both.same(lambda asker: asker.get(f"/v2/models/{name}/config"))
    assert status == 200
    both.same(lambda asker: asker.get(f"/v2/models/{name}"))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_models_that_ask_nothing(both: Both, protocol: str) -> None:
    """As those are that ask other models only."""
    for name in ("no_inputs", "no_inputs_batching", "no_outputs", "nothing"):
        both.same(lambda asker, name=name: asker.get(f"/v2/models/{name}"))
        both.same(lambda asker, name=name: asker.get(f"/v2/models/{name}/config"))
    answer = both.same(lambda asker: asker.infer("no_inputs", {}, protocol=protocol))
    assert answer["COUNT"][2] == np.array([0], np.int32).tobytes()
    assert both.same(lambda asker: asker.infer("nothing", {}, protocol=protocol)) == {}
    for name, inputs in (("no_outputs", {"A": np.array([1], np.int32)}), ("no_outputs", {}), ("no_inputs_batching", {})):
        both.same(lambda asker, name=name, inputs=inputs: asker.infer(name, inputs, protocol=protocol))


@pytest.mark.parametrize("name, told", [("environment", "from an archive"), ("environment_folder", "from a folder")])
def test_execution_environments(both: Both, name: str, told: str) -> None:
    assert both.same(lambda asker: asker.told(name, "")) == told


def test_a_module_beside_the_model(both: Both) -> None:
    assert both.same(lambda asker: asker.told("beside", "")) == "from beside the model"


def test_two_instances_work_at_once(both: Both, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each waits until both were asked."""
    places = {kind: tmp_path_factory.mktemp(kind) for kind in both.askers}

    def ask(asker: Asker) -> list[str]:
        place = str(places[asker.server.kind])
        return asker.at_once(lambda _: asker.told("instances", place), 2)

    assert both.same(ask) == ["instances_0_0,instances_0_1"] * 2


def test_stubs_are_children_with_names(both: Both) -> None:
    """A stub belongs to the server that started it and ends with it (see also test_faults.py)."""
    for asker in both.askers.values():
        pid = int(asker.told("dies", "pid"))
        status = open(f"/proc/{pid}/status").read()
        assert f"PPid:\t{asker.server.pid}" in status
        words = open(f"/proc/{pid}/cmdline").read().split("\0")
        assert any(os.path.basename(word).startswith("triton_python_backend_stub") for word in words[:2])


def test_logs(both: Both) -> None:
    """Every level, with the text as it is; the file and line are the model's own. Each begins a line (the reference's once mended). What
    our backend logs while it executes a request names that before the text."""

    def ask(asker: Asker) -> list[str]:
        before = asker.log_size()
        assert asker.told("logs", "") == "logged"

        def lines() -> list[str]:
            whole = asker.log_since(before).rpartition("\n")[0].splitlines()
            return [line for line in whole if "model.py:" in line]

        asker.until(lambda: len(lines()) >= 6)
        plain = [line.replace("[request id: <id_unknown>] ", "") for line in lines()]
        found = [re.fullmatch(r"([IWE])\d{4} [\d:.]+ \d+ (model\.py:\d+)\] (.*)", line) for line in plain]
        return ["".join(each.groups()) if each else "no line of its own" for each in found]

    logged = both.same(ask)
    assert [line[0] for line in logged] == ["I", "E", "I", "W", "E", "I"]
    assert 'error words"' in logged[4]


def test_words_at_the_start_are_logged(both: Both) -> None:
    for asker in both.askers.values():
        asker.until(lambda asker=asker: "begins: \u00fc \u4e16" in asker.server.process.log())


def test_many_small_requests(both: Both) -> None:
    data = np.arange(16, dtype=np.float32).reshape(1, 16)

    def ask(asker: Asker) -> list[Any]:
        return asker.at_once(lambda i: asker.infer("identity_numbers", {"IN_FP32": data + np.float32(i)}), 64)

    answers = both.same(ask)
    for i, answer in enumerate(answers):
        assert answer["OUT_FP32"][2] == (data + np.float32(i)).tobytes()


