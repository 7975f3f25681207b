"""Implicit state of sequences: what both servers keep for a model, and what they say to a backend that writes it.

The backend `states` (tests/10_inprocess/plugins/states.c) runs the script of a request and answers what came of each step; the very same
file runs in both servers.
"""

import shutil
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import BOTH
from harness import paths, rawhttp
from harness.ensembles import Ensemble, Step
from harness.repository import DATATYPES, Repository, config_type
from harness.servers import KINDS, Nereid, Server

ZERO = "zero_data: true"


def state(
    type: str = "TYPE_INT32", dims: str = "1", initial: str | None = ZERO, initial_dims: str | None = None,
    input: str = "IN", output: str = "OUT", more: str = "",
) -> str:
    begin = (
        f'initial_state: {{ name: "begin" data_type: {type} dims: [ {initial_dims or dims} ] {initial} }}'
        if initial else ""
    )
    return f'state {{ input_name: "{input}" output_name: "{output}" data_type: {type} dims: [ {dims} ] {begin} {more} }}\n'


def config(
    name: str, states: str, strategy: str = "", batch: int = 0, idle_us: int = 60_000_000, more: str = "",
) -> str:
    return f"""name: "{name}"
backend: "states"
max_batch_size: {batch}
input {{ name: "SCRIPT" data_type: TYPE_STRING dims: [ 1 ] }}
output {{ name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }}
instance_group {{ count: 1 kind: KIND_CPU }}
{more}
sequence_batching {{
max_sequence_idle_microseconds: {idle_us}
{strategy}
{states}}}
"""


class Models(Repository):
    """A repository for one of the servers: the library lies with each model."""

    def __init__(self, path: Path, kind: str):
        super().__init__(path)
        build = paths.RELEASE if kind == "reference" else paths.BUILD
        self.library = paths.need(build / "tests" / "backends" / "states" / "libtriton_states.so")

    def add(self, name: str, states: str, files: dict[str, bytes] | None = None, **settings: Any) -> None:
        folder = self.model(name, config(name, states, **settings))
        shutil.copy(self.library, folder / self.library.name)
        for file, content in (files or {}).items():
            (folder / "initial_state").mkdir(exist_ok=True)
            (folder / "initial_state" / file).write_bytes(content)


def texts(*each: str) -> bytes:
    return b"".join(struct.pack("<I", len(one)) + one.encode() for one in each)


TOGETHER = "direct { max_queue_delay_microseconds: 20000000 minimum_slot_utilization: 1 }"
IN_PLACE = "use_same_buffer_for_input_output: true"
VARIABLE = state(dims="-1, 2", initial_dims="1, 2")


def write(models: Models) -> None:
    models.add("count", state())
    models.add("count_batched", state(), batch=2)
    models.add("count_oldest", state(), batch=2, strategy="oldest { max_candidate_sequences: 4 }")
    models.add("count_together", state(), batch=2, strategy=TOGETHER)
    models.add("in_place", state(more=IN_PLACE))
    models.add("no_state", "")
    models.add("no_initial", state(initial=None))
    models.add("variable", VARIABLE)
    models.add("variable_together", VARIABLE, batch=2, strategy=TOGETHER.replace("20000000", "2000000"))
    models.add("variable_in_place", state(dims="-1, 2", initial_dims="1, 2", more=IN_PLACE))
    models.add("larger", state(dims="-1, 2", initial_dims="3, 2"))
    models.add("iterative", state(), strategy="iterative_sequence: true")
    models.add("forgetful", state(), idle_us=200_000)
    models.add("strings", state("TYPE_STRING", "2"))
    models.add("crossed", state(input="A", output="Z") + state(input="B", output="Y"))
    models.add("twice", state(initial=None, output="FIRST") + state(initial=None, output="SECOND"))
    models.add("input_too", state(), more='input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }')
    models.add("from_file", state(initial='data_file: "five"'), {"five": struct.pack("<ii", 5, 9)})
    words = texts("abcd", "efgh")
    models.add("strings_from_file", state("TYPE_STRING", "2", 'data_file: "words"'), {"words": words})
    types = "".join(
        state(config_type(type), "2, 3", input=f"IN_{type}", output=f"OUT_{type}") for type in DATATYPES
    )
    models.add("types", types)
    step = Step("count", {"SCRIPT": "SCRIPT"}, {"TEXT": "TEXT"})
    ensemble = Ensemble("nested", [step], ("SCRIPT",), ("TEXT",), datatype="BYTES", dims="1")
    models.model("nested", ensemble.config())


@pytest.fixture(scope="module", params=BOTH)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    models = Models(tmp_path_factory.mktemp("states") / "models", request.param)
    write(models)
    with KINDS[request.param](models.path) as server:
        yield server


@pytest.fixture(scope="module")
def nereid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """For what the reference does otherwise (docs/decisions/0070-state-of-sequences.md)."""
    models = Models(tmp_path_factory.mktemp("states") / "models", "nereid")
    write(models)
    with Nereid(models.path) as server:
        yield server


def post(
    server: Server, model: str, script: str, id: int = 1, start: bool = False, end: bool = False,
    inputs: tuple[dict[str, Any], ...] = (),
) -> rawhttp.Answer:
    batched = model.endswith(("_batched", "_oldest", "_together"))
    tensor = {"name": "SCRIPT", "datatype": "BYTES", "shape": [1, 1] if batched else [1], "data": [script]}
    parameters = {"sequence_id": id, "sequence_start": start, "sequence_end": end}
    return rawhttp.post(
        server.http, f"/v2/models/{model}/infer", {"inputs": [tensor, *inputs], "parameters": parameters}
    )


def ask(server: Server, model: str, script: str, id: int = 1, start: bool = False, end: bool = False) -> list[str]:
    answer = post(server, model, script, id, start, end)
    assert answer.status == 200, answer.body
    lines: list[str] = answer.json()["outputs"][0]["data"][0].splitlines()
    return lines


def whole(server: Server, model: str, *scripts: str, id: int = 1) -> list[list[str]]:
    """A sequence of requests, from its start to its end."""
    last = len(scripts) - 1
    return [ask(server, model, each, id, step == 0, step == last) for step, each in enumerate(scripts)]


def shown(value: int, dims: str = "1") -> str:
    return f"IN INT32 [{dims}] 4 bytes {struct.pack('<i', value).hex()}"


COUNTING = ["count", "in_place", "count_batched", "count_oldest"]


@pytest.mark.parametrize("model", COUNTING)
def test_what_is_written_is_read_by_the_next_request(served: Server, model: str) -> None:
    dims = "1" if model in ("count", "in_place") else "1,1"
    for _ in range(2):  # the second sequence of that id begins as the first one did
        answers = whole(served, model, "inputs; add 5", "inputs; add 7", "inputs")
        assert answers == [[shown(0, dims), "5"], [shown(5, dims), "12"], [shown(12, dims)]]


def test_a_start_begins_anew(served: Server) -> None:
    assert ask(served, "count", "add 3", start=True) == ["3"]
    assert ask(served, "count", "add 3") == ["6"]
    assert ask(served, "count", "add 3", start=True) == ["3"]
    assert ask(served, "count", "inputs", end=True) == [shown(3)]
    assert post(served, "count", "inputs").status == 400


@pytest.mark.parametrize("model", COUNTING)
def test_sequences_side_by_side(served: Server, model: str) -> None:
    def one(id: int) -> list[list[str]]:
        return whole(served, model, *["add %d" % id] * 12, id=id)

    with ThreadPoolExecutor(6) as pool:
        for id, answers in zip(range(1, 7), pool.map(one, range(1, 7)), strict=True):
            assert [lines[0] for lines in answers] == [str(id * step) for step in range(1, 13)]


def pair(server: Server, model: str, scripts: tuple[str, str], **flags: bool) -> list[list[str]]:
    """A request of each of two sequences, at one time."""
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, server, model, script, id, **flags) for id, script in enumerate(scripts, 1)]
        return [each.result() for each in asked]


def test_a_batch_of_sequences(served: Server) -> None:
    """Each row has the state of its sequence."""
    pair(served, "count_together", ("add 1", "add 2"), start=True)
    for step in range(2, 5):
        answers = pair(served, "count_together", ("add 1", "add 2"))
        assert [lines[0] for lines in answers] == [str(step), str(2 * step)]
        assert sorted(lines[1] for lines in answers) == ["row 0 of 2", "row 1 of 2"]
    pair(served, "count_together", ("inputs", "inputs"), end=True)


def test_a_row_that_nobody_asked_for_changes_no_state(served: Server) -> None:
    for id in (1, 2):
        ask(served, "count_batched", f"add {10 * id}", id, start=True)
    rows = set()
    for step in (2, 3):  # one of the two stands behind the other's empty row
        for id in (1, 2):
            value, *row = ask(served, "count_batched", f"add {10 * id}", id)
            assert value == str(10 * id * step)
            rows |= set(row)
    assert rows == {"row 1 of 2"}
    for id in (1, 2):
        assert ask(served, "count_batched", "inputs", id, end=True)[0] == shown(30 * id, "1,1")


def test_every_type(served: Server) -> None:
    (lines,) = whole(served, "types", "inputs")
    sizes = dict.fromkeys(("BOOL", "UINT8", "INT8"), 1) | dict.fromkeys(("UINT16", "INT16", "FP16", "BF16"), 2)
    sizes |= dict.fromkeys(("UINT64", "INT64", "FP64"), 8)
    for line in lines:
        _, type, dims, count, _, *words = line.split()
        assert (dims, int(count)) == ("[2,3]", 6 * sizes.get(type, 4))
        assert set("".join(words)) == {"0"}
    assert sorted(line.split()[1] for line in lines) == sorted(DATATYPES)


@pytest.mark.parametrize("type", ["FP16", "INT64", "BOOL", "BF16"])
def test_another_value_of_each_type(served: Server, type: str) -> None:
    size = {"INT64": 48, "BOOL": 6}.get(type, 12)
    write = f"new OUT_{type} {type} 2,3; buffer {size}; fill 1; update"
    _, lines = whole(served, "types", write, "inputs")
    found = {line.split()[0]: set("".join(line.split()[5:])) for line in lines}
    assert found.pop(f"IN_{type}") == {"0", "1"}
    assert all(digits == {"0"} for digits in found.values())


def test_strings(served: Server) -> None:
    answers = whole(served, "strings", "inputs; new OUT BYTES 2; buffer 11; text hellooo; update", "inputs")
    assert answers[0][0] == "IN BYTES [2] 8 bytes 00000000 00000000"
    assert answers[1] == ["IN BYTES [2] 11 bytes " + "07000000 68656c6c 6f6f6f"]


def test_from_a_file(served: Server) -> None:
    """A file that is longer than the state gives its first bytes; the next sequence begins with it, too."""
    for _ in range(2):
        assert whole(served, "from_file", "inputs; add 1", "inputs") == [[shown(5), "6"], [shown(6)]]


def test_without_an_initial_state(served: Server) -> None:
    (lines,) = whole(served, "no_initial", "inputs")
    assert lines[0].startswith("IN INT32 [1] 4 bytes ")


def test_the_shape_may_change(served: Server) -> None:
    grow = "inputs; new OUT INT32 3,2; buffer 24; fill 3; update"
    shrink = "inputs; new OUT INT32 0,2; buffer 0; update"
    answers = whole(served, "variable", grow, shrink, "inputs")
    assert answers[0][0] == "IN INT32 [1,2] 8 bytes 00000000 00000000"
    assert answers[1][0] == "IN INT32 [3,2] 24 bytes" + " 03030303" * 6
    if served.kind == "nereid":  # the reference asks for memory of no bytes, and gets none
        assert answers[2] == ["IN INT32 [0,2] 0 bytes"]


def test_type_and_shape_are_the_backends(served: Server) -> None:
    """Neither has to be what the configuration says."""
    answers = whole(served, "count", "new OUT FP64 3; buffer 24; fill 1; attributes; update", "inputs")
    assert answers[0] == ["new", "buffer", "24 bytes of CPU 0", "update"]
    assert answers[1] == ["IN FP64 [3] 24 bytes" + " 01010101" * 6]


def test_what_is_not_updated_is_not_kept(served: Server) -> None:
    answers = whole(served, "count", "add 4", "new OUT INT32 1; buffer 4; fill 3", "inputs", "inputs")
    assert answers[2:] == [[shown(4)]] * 2


def test_the_last_of_several_updates_is_kept(served: Server) -> None:
    again = "add 4; add 5; buffer 4; fill 1; update"
    assert whole(served, "count", again, "inputs")[1] == ["IN INT32 [1] 4 bytes 01010101"]


def test_a_request_that_fails_leaves_what_it_updated(served: Server) -> None:
    ask(served, "count", "add 1", start=True)
    for step in ("add 1; fail", "fail; add 1"):
        answer = post(served, "count", step)
        assert (answer.status, answer.json()["error"]) == (500, "told to fail")
    assert ask(served, "count", "inputs; new OUT INT32 1; buffer 4; fill 9; fail".replace("; fail", ""))[0] == shown(3)
    assert ask(served, "count", "inputs", end=True) == [shown(3)]


def test_a_sequence_that_idles_for_too_long_forgets(served: Server) -> None:
    """PB-132, PB-134: the second sequence waits for the place of the first."""
    ask(served, "forgetful", "add 8", id=1, start=True)
    assert ask(served, "forgetful", "inputs", id=2, start=True, end=True) == [shown(0)]
    assert post(served, "forgetful", "inputs", id=1).status == 400
    assert ask(served, "forgetful", "inputs", id=1, start=True, end=True) == [shown(0)]


def test_a_request_that_runs_again_reads_what_it_wrote(served: Server) -> None:
    for _ in range(2):  # the sequence ends with its request
        assert ask(served, "iterative", "inputs; add 1; until 4", start=True) == [shown(3), "4"]


def test_a_step_of_an_ensemble(served: Server) -> None:
    assert whole(served, "nested", "add 2", "add 2", "inputs") == [["2"], ["4"], [shown(4)]]


def test_a_state_is_no_input_of_clients(served: Server) -> None:
    given = {"name": "IN", "datatype": "INT32", "shape": [1], "data": [77]}
    answer = post(served, "count", "inputs", start=True, end=True, inputs=(given,))
    assert answer.status == 400
    assert "expected 1 inputs but got 2 inputs for model 'count'" in answer.json()["error"]


def test_a_state_takes_the_place_of_an_input(served: Server) -> None:
    """Where the configuration lists the state as an input besides, clients have to give it, and it is not looked at."""
    given = {"name": "IN", "datatype": "INT32", "shape": [1], "data": [77]}
    for flags in ({"start": True}, {"end": True}):
        answer = post(served, "input_too", "inputs", inputs=(given,), **flags)
        assert answer.json()["outputs"][0]["data"] == [shown(0) + "\n"]
    assert post(served, "input_too", "inputs", start=True, end=True).status == 400


@pytest.mark.parametrize(
    ("model", "script", "message"),
    [
        ("no_state", "new OUT INT32 1", "unable to add state 'OUT'. State configuration is missing for model 'no_state'."),
        ("count", "new NOPE INT32 1", "state 'NOPE' is not a valid state name."),
        ("count", "new IN INT32 1", "state 'IN' is not a valid state name."),
    ],
)
def test_what_a_backend_is_told(served: Server, model: str, script: str, message: str) -> None:
    assert whole(served, model, script) == [[f"Invalid argument: {message}"]]


# Configurations that do not load, and what both servers say.
BAD = {
    "two_initial": (
        state(more=f'initial_state: {{ name: "b" data_type: TYPE_INT32 dims: [ 1 ] {ZERO} }}'),
        "initial_state field for state input 'IN' must contain exactly one or zero element. Found '2' elements.",
    ),
    "other_type": (
        state(initial=None, more=f'initial_state: {{ name: "b" data_type: TYPE_FP32 dims: [ 1 ] {ZERO} }}'),
        "The data type used for 'initial_state' field of state 'IN' does not match the state data type.",
    ),
    "no_name": (
        state(initial=None, more=f"initial_state: {{ data_type: TYPE_INT32 dims: [ 1 ] {ZERO} }}"),
        "Field 'name' must be set when using initial_state for state input 'IN'.",
    ),
    "other_rank": (
        state(initial_dims="1, 1"),
        "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'IN'. 2 != 1",
    ),
    "variable_initial": (state(dims="-1"), "'initial_state' field for state input name 'IN' contains variable dimensions."),
    "other_dim": (
        state(dims="3", initial_dims="2"),
        "'initial_state' dim for input name 'IN' doesn't match 'state' dim description. 2 != 3",
    ),
    "no_data": (state(initial=" "), "initial_state setting expects state'IN' to have state_data set"),
    "no_file": (state(initial='data_file: "none"'), "none"),
    "short_file": (state(dims="3", initial='data_file: "short"'), "initial_state setting expects 12 bytes, but the data provided from short"),
    "repeated": (state(output="A") + state(output="B"), "State input name 'IN' specified more than once."),
}


def refused(server: Server, left: dict[str, str]) -> None:
    for name, message in list(left.items()):
        answer = rawhttp.post(server.http, f"/v2/repository/models/{name}/load", {})
        assert answer.status == 400, (name, answer.body)
        assert message in answer.json()["error"], name
        del left[name]
    assert ask(server, "good", "add 1", start=True, end=True) == ["1"]


@pytest.mark.parametrize("kind", BOTH)
def test_what_does_not_load(kind: str, tmp_path: Path) -> None:
    models = Models(tmp_path / "models", kind)
    for name, (states, _) in BAD.items():
        models.add(name, states, {"short": bytes(8)})
    models.add("good", state())
    left = {name: message for name, (_, message) in BAD.items()}
    for _ in range(60 if kind == "reference" else 1):
        try:
            with KINDS[kind](models.path, {"model-control-mode": "explicit", "load-model": "good"}) as server:
                refused(server, left)
                break
        except ConnectionError:  # every second time the reference crashes over such a model, before it says why it is refused
            pass
    assert not left


# What the reference does otherwise


def test_zeros_where_nothing_is_said(nereid: Server) -> None:
    """The reference gives what the memory held before."""
    assert whole(nereid, "no_initial", "inputs") == [[shown(0)]]


def test_the_initial_shape_is_the_initial_states(nereid: Server) -> None:
    """The reference gives the bytes of three rows and the shape of one."""
    assert whole(nereid, "larger", "inputs") == [["IN INT32 [3,2] 24 bytes" + " 00000000" * 6]]


def test_strings_of_a_file_are_its_strings(nereid: Server) -> None:
    """The reference overwrites them with zeros."""
    words = texts("abcd", "efgh").hex()
    spaced = " ".join(words[at : at + 8] for at in range(0, len(words), 8))
    assert whole(nereid, "strings_from_file", "inputs") == [[f"IN BYTES [2] 16 bytes {spaced}"]]


def test_pairs_are_those_of_the_configuration(nereid: Server) -> None:
    """The reference pairs the n-th name of an input with the n-th name of an output, by the alphabet."""
    fill = "new Z INT32 1; buffer 4; fill 1; update; new Y INT32 1; buffer 4; fill 2; update"
    answers = whole(nereid, "crossed", fill, "inputs")
    assert answers[1] == ["A INT32 [1] 4 bytes 01010101", "B INT32 [1] 4 bytes 02020202"]


def test_of_states_with_one_name_the_first_counts(nereid: Server) -> None:
    """Of the reference it is any one."""
    (lines,) = whole(nereid, "twice", "inputs; new FIRST INT32 1; new SECOND INT32 1")
    assert lines == [shown(0), "new", "Invalid argument: state 'SECOND' is not a valid state name."]
    assert "Detected duplicate 'input_name' in the state configuration: 'IN'" in nereid.process.log()


def test_an_update_without_contents(nereid: Server) -> None:
    """The reference goes back to the value before."""
    answers = whole(nereid, "count", "new OUT INT32 1; update; attributes", "add 4; update", "inputs")
    assert "state 'OUT' has no new contents" in answers[0][1]
    assert answers[0][2] == "0 bytes of CPU 0"
    assert answers[1][0] == "4" and "state 'OUT' has no new contents" in answers[1][1]
    assert answers[2] == [shown(4)]


def test_shapes_that_cannot_be(nereid: Server) -> None:
    (lines,) = whole(nereid, "count", "new OUT INT32 -1,4; new OUT NONE 1; new OUT INT8 4611686018427387904,4")
    assert lines == [f"Invalid argument: state 'OUT' cannot have this {what}" for what in ("shape", "data type", "shape")]


def test_in_place_the_shape_changes_too(nereid: Server) -> None:
    grow = "new OUT INT32 2,2; buffer 16; fill 3; update"
    answers = whole(nereid, "variable_in_place", grow, "inputs; new OUT INT32 2,2; buffer 16; fill 4", "inputs")
    assert answers[1][0] == "IN INT32 [2,2] 16 bytes" + " 03030303" * 4
    assert answers[2] == ["IN INT32 [2,2] 16 bytes" + " 04040404" * 4]  # the memory is the input's


def test_a_handle_ends_with_its_request(nereid: Server) -> None:
    ask(nereid, "count", "add 1", start=True)
    calls = {"update": "StateUpdate", "buffer 4": "StateBuffer", "attributes": "StateBufferAttributes"}
    for step, call in calls.items():
        ask(nereid, "count", "add 1")
        (line,) = ask(nereid, "count", f"former; {step}")
        assert line == f"Invalid argument: TRITONBACKEND_{call}: the request of the state was released before; its states end with that"
    assert ask(nereid, "count", "inputs", end=True) == [shown(4)]
    assert "broke a rule: TRITONBACKEND_StateUpdate: the request of the state was released before" in nereid.process.log()


def test_states_of_two_shapes_share_no_batch(nereid: Server) -> None:
    grow = "new OUT INT32 1,3,2; buffer 24; fill 3; update"
    pair(nereid, "variable_together", (grow, "inputs"), start=True)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, nereid, "variable_together", "inputs", id, end=True) for id in (1, 2)]
        first, second = (each.result() for each in asked)
    assert first[0] == "IN INT32 [1,3,2] 24 bytes" + " 03030303" * 6
    assert second[0] == "IN INT32 [1,1,2] 8 bytes 00000000 00000000"
    # The sequence in the first slot runs alone, the one in the second with a row before it that nobody fills.
    assert sorted([first[1:], second[1:]]) == [[], ["row 1 of 2"]]


def test_a_file_outside_of_the_folder(tmp_path: Path) -> None:
    """The reference reads it."""
    models = Models(tmp_path / "models", "nereid")
    models.add("outside", state(initial='data_file: "../config.pbtxt"'))
    with Nereid(models.path, {"model-control-mode": "explicit"}) as server:
        answer = rawhttp.post(server.http, "/v2/repository/models/outside/load", {})
        assert answer.status == 400 and "../config.pbtxt" in answer.json()["error"]


def test_states_count_as_memory_in_flight(tmp_path: Path) -> None:
    """What a sequence wrote is given back when it ends; when there is no room a value is refused, and the former one stays."""
    models = Models(tmp_path / "models", "nereid")
    models.add("kept", VARIABLE, strategy="oldest { max_candidate_sequences: 2 }")
    write = "new OUT INT32 600000,2; buffer 4800000; fill 1; update"
    with Nereid(models.path, {"memory-budget": "8000000"}) as server:
        for _ in range(3):
            assert ask(server, "kept", write, id=1, start=True) == ["new", "buffer", "update"]
            ask(server, "kept", "new OUT INT32 1,2; buffer 8; fill 2; update", id=2, start=True)
            refused = ask(server, "kept", "new OUT INT32 600000,2; buffer 4800000", id=2)
            assert refused[1].startswith("Unavailable: state 'OUT': ")
            ask(server, "kept", "inputs", id=1, end=True)
            written = ask(server, "kept", f"inputs; {write}", id=2, end=True)
            assert written == ["IN INT32 [1,2] 8 bytes 02020202 02020202", "new", "buffer", "update"]


def test_growable_memory_is_for_gpus(tmp_path: Path) -> None:
    """The reference says so in its log, at each sequence, and runs without the state."""
    models = Models(tmp_path / "models", "nereid")
    models.add("growable", state(more=f"use_growable_memory: true {IN_PLACE}"))
    models.add("growable_alone", state(more="use_growable_memory: true"))
    with Nereid(models.path, {"model-control-mode": "explicit"}) as server:
        for name, message in (
            ("growable", "'use_growable_memory' can only work with KIND_GPU model instances right now."),
            ("growable_alone", "In order to 'use_growable_memory', you must also enable 'use_single_buffer' for state input name 'IN'."),
        ):
            answer = rawhttp.post(server.http, f"/v2/repository/models/{name}/load", {})
            assert answer.status == 400 and message in answer.json()["error"]
