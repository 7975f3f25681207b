"""Stateful models: what both servers give the model, and say to requests that are no part of a sequence.

The identity backend shows the control inputs as outputs, so that the answer tells what the model saw.
"""

import queue
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from conftest import BOTH
from harness import metrics, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from tritonclient.grpc import service_pb2 as pb

CONTROLS = """\
  control_input [
    {{ name: "INPUT1" control [ {{ kind: CONTROL_SEQUENCE_START {values} }} ] }},
    {{ name: "INPUT2" control [ {{ kind: CONTROL_SEQUENCE_END {values} }} ] }},
    {{ name: "INPUT3" control [ {{ kind: CONTROL_SEQUENCE_READY {values} }} ] }},
    {{ name: "INPUT4" control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: {corrid} }} ] }}
  ]
"""


def _model(
    repository: Repository,
    name: str,
    strategy: str = "",
    batch: int = 4,
    values: str = "int32_false_true: [ 3, 7 ]",
    type: str = "TYPE_INT32",
    corrid: str = "TYPE_UINT64",
    count: int = 1,
    extra: str = "",
    idle_us: int = 60_000_000,
) -> None:
    outputs = "".join(f'output {{ name: "OUTPUT{i}" data_type: {type} dims: [ 1 ] }}\n' for i in (1, 2, 3))
    repository.model(
        name,
        f"""name: "{name}"
backend: "identity"
max_batch_size: {batch}
input {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }}
output {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }}
{outputs}
output {{ name: "OUTPUT4" data_type: {corrid} dims: [ 1 ] }}
instance_group [ {{ count: {count} kind: KIND_CPU }} ]
{extra}
sequence_batching {{
  max_sequence_idle_microseconds: {idle_us}
  {strategy}
{CONTROLS.format(values=values, corrid=corrid)}}}
""",
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    r = Repository(tmp_path_factory.mktemp("sequences") / "models")
    oldest = "oldest { max_candidate_sequences: 2 }"
    _model(r, "direct")
    _model(r, "oldest", oldest)
    _model(r, "single", batch=0)
    _model(r, "fp32", values="fp32_false_true: [ -1.5, 2.5 ]", type="TYPE_FP32", corrid="TYPE_INT32")
    _model(r, "bool", values="bool_false_true: [ false, true ]", type="TYPE_BOOL", corrid="TYPE_STRING")
    _model(r, "slow", batch=2, extra='parameters { key: "execute_delay_ms" value { string_value: "100" } }')
    _model(r, "one_slot", batch=0)
    _model(r, "one_candidate", "oldest { max_candidate_sequences: 1 }")
    _model(r, "forgetful", batch=1, idle_us=200_000)
    _model(r, "spread", batch=1, count=3)
    _model(r, "made_number", "iterative_sequence: true")
    _model(r, "made_text", "iterative_sequence: true", corrid="TYPE_STRING")
    r.identity("bare", extra="sequence_batching { }")
    r.identity(
        "ordered",
        max_batch_size=2,
        extra="dynamic_batching { preserve_ordering: true }\n"
        "instance_group [ { count: 3 kind: KIND_CPU } ]\n"
        'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'
        'parameters { key: "instance_wise_delay_multiplier" value { string_value: "3" } }',
    )
    return r.path


@pytest.fixture(scope="module", params=BOTH)
def served(request: pytest.FixtureRequest, repository: Path) -> Iterator[Server]:
    with KINDS[request.param](repository) as server:
        yield server


def _ask(
    server: Server, model: str, shape: tuple[int, ...] = (1, 2), **parameters: Any
) -> rawhttp.Answer:
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": shape, "data": [1.0] * int(np.prod(shape))}
    body = {"inputs": [tensor], "parameters": parameters}
    return rawhttp.post(server.http, f"/v2/models/{model}/infer", body)


def _saw(answer: rawhttp.Answer) -> dict[str, Any]:
    """start, end, ready and id, as the model saw them."""
    assert answer.status == 200, answer.body
    outputs = {output["name"]: output for output in answer.json()["outputs"]}
    names = {"start": "OUTPUT1", "end": "OUTPUT2", "ready": "OUTPUT3", "id": "OUTPUT4"}
    return {name: outputs[output]["data"][0] for name, output in names.items()}


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_controls_follow_the_flags(served: Server, model: str) -> None:
    """SX-01, SX-05, SX-06, MC-126, MC-127, PB-106, PB-107, PB-109, PB-111, PB-119, PB-120, PB-136."""
    big = 2**64 - 1
    assert _saw(_ask(served, model, sequence_id=big, sequence_start=True)) == {
        "start": 7, "end": 3, "ready": 7, "id": big,
    }  # fmt: skip
    assert _saw(_ask(served, model, sequence_id=big)) == {"start": 3, "end": 3, "ready": 7, "id": big}
    assert _saw(_ask(served, model, sequence_id=big, sequence_end=True)) == {
        "start": 3, "end": 7, "ready": 7, "id": big,
    }  # fmt: skip


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_flags_mark_the_ends_of_a_sequence(served: Server, model: str) -> None:
    """SX-02, SX-10, SX-11, SX-13, SX-14, SX-17, SX-19, SX-20: not said is false; both in one request are a sequence of one."""
    said: list[dict[str, bool]] = [{"sequence_start": True, "sequence_end": False}, {"sequence_start": False}, {}, {"sequence_end": True}]
    ends = [(7, 3), (3, 3), (3, 3), (3, 7)]
    for flags, (start, end) in zip(said, ends, strict=True):
        assert _saw(_ask(served, model, sequence_id=5, **flags)) == {"start": start, "end": end, "ready": 7, "id": 5}
    assert _ask(served, model, sequence_id=5).status == 400, "it has ended"
    both = _saw(_ask(served, model, sequence_id=5, sequence_start=True, sequence_end=True))
    assert both == {"start": 7, "end": 7, "ready": 7, "id": 5}


def test_shape_of_controls(served: Server) -> None:
    """PB-117: one element a row."""
    flags = {"sequence_id": 1, "sequence_start": True, "sequence_end": True}
    batched = _ask(served, "direct", **flags).json()["outputs"]
    assert [output["shape"] for output in batched if output["name"] != "OUTPUT0"] == [[1, 1]] * 4
    plain = _ask(served, "single", shape=(2,), **flags).json()["outputs"]
    assert [output["shape"] for output in plain if output["name"] != "OUTPUT0"] == [[1]] * 4


def test_control_types(served: Server) -> None:
    """SX-05, PB-112, PB-113, PB-115, PB-116, PB-118, X-34."""
    id = 2**40 + 9  # the low 32 bits are 9
    saw = _saw(_ask(served, "fp32", sequence_id=id, sequence_start=True, sequence_end=True))
    assert saw == {"start": 2.5, "end": 2.5, "ready": 2.5, "id": 9}
    name = "e333c95a-07fc-42d2-ab16-033b1a566ed5"
    saw = _saw(_ask(served, "bool", sequence_id=name, sequence_start=True, sequence_end=True))
    assert saw == {"start": True, "end": True, "ready": True, "id": name}


def test_without_controls_and_strategy(served: Server) -> None:
    """SX-20, MC-126, PB-114, PB-131, PB-136: all of it may be left out; requests still have to say where they belong."""
    for flags in ({"sequence_start": True}, {}, {"sequence_end": True}):
        answer = _ask(served, "bare", shape=(2,), sequence_id=6, **flags)
        assert answer.status == 200, answer.body
        assert [output["name"] for output in answer.json()["outputs"]] == ["OUTPUT0"]
    assert _ask(served, "bare", shape=(2,)).status == 400


def test_one_id_in_the_dynamic_batcher(served: Server) -> None:
    """MC-114, PB-98: preserve_ordering keeps the order of requests of one id, though instances take different times."""
    with rawgrpc.Channel(served.grpc) as channel:
        stub = channel.channel.stream_stream(f"/{rawgrpc.SERVICE}/ModelStreamInfer")
        requests = [_request("ordered", 5) for _ in range(24)]
        for step, request in enumerate(requests):
            request.id = f"{step}"
        replies = stub(iter([request.SerializeToString() for request in requests]), timeout=60)
        ids = [pb.ModelStreamInferResponse.FromString(body).infer_response.id for body in replies]
    assert ids == [f"{step}" for step in range(24)]


BAD = {
    "no id": ({}, "must specify a non-zero or non-empty correlation ID"),
    "id 0": ({"sequence_id": 0}, "must specify a non-zero or non-empty correlation ID"),
    "empty id": ({"sequence_id": ""}, "must specify a non-zero or non-empty correlation ID"),
    "start without id": ({"sequence_start": True}, "must specify a non-zero or non-empty correlation ID"),
    "end without id": ({"sequence_end": True}, "must specify a non-zero or non-empty correlation ID"),
    "not started": ({"sequence_id": 77}, "must specify the START flag on the first request of the sequence"),
    "end first": ({"sequence_id": 77, "sequence_end": True}, "must specify the START flag"),
}


@pytest.mark.parametrize("model", ["direct", "oldest"])
@pytest.mark.parametrize("case", BAD)
def test_refused(served: Server, model: str, case: str) -> None:
    """SX-07, SX-08, SX-12, SX-15, X-24."""
    parameters, message = BAD[case]
    answer = _ask(served, model, **parameters)
    assert answer.status == 400
    assert message in answer.json()["error"]


def test_not_started_by_name(served: Server) -> None:
    """The message shows a string without quotes, as that of the reference does."""
    answer = _ask(served, "bare", shape=(2,), sequence_id="77")
    assert answer.status == 400
    assert "inference request for sequence 77 to model" in answer.json()["error"]


def test_an_id_that_the_model_cannot_read(repository: Path) -> None:
    """A control takes ids that are numbers, or strings; the other kind would be one id for the model, whatever the client says."""
    end = "correlation ID, not a {}: control 'INPUT4' of the model has data type {}"
    with Nereid(repository) as server:
        for model, id, words in (
            ("direct", "alice", 'sequence "alice" to model \'direct\' must specify a number as ' + end.format("string", "TYPE_UINT64")),
            ("fp32", "7", 'sequence "7" to model \'fp32\' must specify a number as ' + end.format("string", "TYPE_INT32")),
            ("bool", 7, "sequence 7 to model 'bool' must specify a string as " + end.format("number", "TYPE_STRING")),
        ):
            answer = _ask(server, model, sequence_id=id, sequence_start=True)
            assert (answer.status, answer.json()) == (400, {"error": f"inference request for {words}"})


def test_what_is_no_sequence_needs_no_id(served: Server) -> None:
    """SX-07, SX-08: an id of 0, or none at all, is that of a request on its own."""
    for parameters in ({}, {"sequence_id": 0}, {"sequence_id": ""}):
        assert _ask(served, "ordered", **parameters).status == 200


def test_one_row_only(served: Server) -> None:
    """MC-123, X-22: a request of a sequence is one row."""
    answer = _ask(served, "direct", shape=(2, 2), sequence_id=1, sequence_start=True)
    assert answer.status == 400
    assert answer.json()["error"] == (
        "inference request to model 'direct' must specify batch-size 1 due to requirements of sequence batcher"
    )


def test_same_refusals(nereid_and_reference: tuple[Server, Server]) -> None:
    ours, reference = nereid_and_reference
    for parameters, _ in BAD.values():
        answers = [_ask(server, "direct", **parameters) for server in (ours, reference)]
        assert answers[0].json() == answers[1].json()


@pytest.fixture(scope="module")
def nereid_and_reference(repository: Path) -> Iterator[tuple[Server, Server]]:
    with KINDS["nereid"](repository) as ours, KINDS["reference"](repository) as reference:
        yield ours, reference


test_same_refusals = pytest.mark.reference(test_same_refusals)


def test_number_and_text_are_two_ids(served: Server) -> None:
    """SX-09: 42 and "42" are two sequences."""
    assert _ask(served, "bare", shape=(2,), sequence_id=42, sequence_start=True).status == 200
    assert _ask(served, "bare", shape=(2,), sequence_id="42").status == 400
    assert _ask(served, "bare", shape=(2,), sequence_id=42, sequence_end=True).status == 200


def test_an_id_may_be_used_again(served: Server) -> None:
    """SX-18."""
    for _ in range(3):
        assert _ask(served, "direct", sequence_id=8, sequence_start=True).status == 200
        assert _ask(served, "direct", sequence_id=8, sequence_end=True).status == 200
        assert _ask(served, "direct", sequence_id=8).status == 400


def test_an_id_that_is_made_for_a_request(repository: Path) -> None:
    """Iterative models take requests without an id; each is a sequence, of whichever kind the model reads."""
    with Nereid(repository) as server:
        for model, kind in (("made_number", int), ("made_text", str)):
            saw = [_saw(_ask(server, model)) for _ in range(2)]
            assert [each["id"] for each in saw] == [kind(2**64 - 1), kind(2**64 - 2)]
            assert [each["start"] for each in saw] == [7, 7]


def test_a_second_start_goes_on_in_its_slot(served: Server) -> None:
    assert _ask(served, "direct", sequence_id=9, sequence_start=True).status == 200
    assert _saw(_ask(served, "direct", sequence_id=9, sequence_start=True))["start"] == 7
    assert _ask(served, "direct", sequence_id=9, sequence_end=True).status == 200
    log = served.process.log()
    assert "sequence 9 for model 'direct' has a conflict" in log


def _request(model: str, id: int, *, start: bool = False, end: bool = False, timeout_us: int = 0) -> pb.ModelInferRequest:
    shape = [1, 2] if model != "one_slot" else [2]
    content = struct.pack("<2f", 1, 2)
    request = rawgrpc.infer_request(model, [("INPUT0", "FP32", shape, content)], request_id=f"{id}")
    request.parameters["sequence_id"].int64_param = id
    request.parameters["sequence_start"].bool_param = start
    request.parameters["sequence_end"].bool_param = end
    if timeout_us:
        request.parameters["timeout"].int64_param = timeout_us
    return request


def _later(channel: rawgrpc.Channel, request: pb.ModelInferRequest) -> Any:
    stub = channel.channel.unary_unary(f"/{rawgrpc.SERVICE}/ModelInfer")
    return stub.future(request.SerializeToString(), timeout=120)


@pytest.mark.parametrize("model", ["one_slot", "one_candidate"])
def test_backlog(served: Server, model: str) -> None:
    """SX-24, SX-28, PB-122, PB-126, PB-127, PB-131: without a free slot a sequence waits, whole, until another one ends."""

    def queued() -> float:
        return metrics.scrape(served.metrics)["nv_inference_pending_request_count"].value(model=model)

    with rawgrpc.Channel(served.grpc) as channel:
        assert channel.call("ModelInfer", _request(model, 1, start=True)).code == "OK"
        waiting: list[Any] = []
        for request in (_request(model, 2, start=True), _request(model, 2), _request(model, 3, start=True, end=True)):
            waiting.append(_later(channel, request))
            served.process.wait_for(queued, len(waiting))  # the reference may take calls in another order
        assert channel.call("ModelInfer", _request(model, 1)).code == "OK"
        assert not any(call.done() for call in waiting)
        assert channel.call("ModelInfer", _request(model, 1, end=True)).code == "OK"
        for call in waiting[:2]:
            call.result()
        assert not waiting[2].done()
        assert channel.call("ModelInfer", _request(model, 2, end=True)).code == "OK"
        waiting[2].result()


def test_time_out_in_the_backlog(served: Server) -> None:
    with rawgrpc.Channel(served.grpc) as channel:
        assert channel.call("ModelInfer", _request("one_slot", 1, start=True)).code == "OK"
        late = channel.call("ModelInfer", _request("one_slot", 2, start=True, timeout_us=50_000))
        assert (late.code, late.details) == ("UNAVAILABLE", "timeout of the corresponding sequence has been expired")
        assert channel.call("ModelInfer", _request("one_slot", 1, end=True)).code == "OK"


def test_an_idle_sequence_ends(served: Server) -> None:
    """MC-127, PB-132, PB-133, PB-134: the next in the backlog has the slot once the first was idle for 0.2 s."""
    with rawgrpc.Channel(served.grpc) as channel:
        assert channel.call("ModelInfer", _request("forgetful", 1, start=True)).code == "OK"
        second = _later(channel, _request("forgetful", 2, start=True, end=True))
        second.result()
        gone = channel.call("ModelInfer", _request("forgetful", 1))
        assert gone.code == "INVALID_ARGUMENT"
        assert "must specify the START flag" in gone.details


def test_sequences_share_a_batch(served: Server) -> None:
    """MC-123, PB-121, PB-176: what waits of two sequences while the model is busy runs in batches of two, each sequence in its row."""
    requests = [
        _request("slow", id, start=step == 0, end=step == 3) for step in range(4) for id in (1, 2)
    ]
    with rawgrpc.Channel(served.grpc) as channel:
        stub = channel.channel.stream_stream(f"/{rawgrpc.SERVICE}/ModelStreamInfer")
        assert channel.call("ServerLive").code == "OK"  # the connection stands
        sent = threading.Event()

        def each() -> Iterator[bytes]:
            for request in requests:
                yield request.SerializeToString()
            sent.set()

        with served.process.halted():
            answers = stub(each(), timeout=60)
            assert sent.wait(30)
        replies = list(answers)
    assert len(replies) == 8
    stats = served.statistics("slow")
    assert stats["inference_count"] == 8
    assert stats["inference_stats"]["success"]["count"] == 8
    assert {row["batch_size"] for row in stats["batch_stats"]} <= {1, 2}
    assert stats["execution_count"] <= 6


def test_a_stream_of_sequences(served: Server) -> None:
    """SX-24, SX-25, SX-26, SX-27, SX-32: over one stream, an error in between."""
    answers: queue.Queue[Any] = queue.Queue()
    tensor = grpcclient.InferInput("INPUT0", [1, 2], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 2), np.float32))
    with grpcclient.InferenceServerClient(served.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for id, start, end in ((1, True, False), (2, True, False), (3, False, False), (1, False, True), (2, False, True)):
            client.async_stream_infer(
                "direct", [tensor], sequence_id=id, sequence_start=start, sequence_end=end, request_id=f"{id}{end}"
            )
        got = [answers.get(timeout=30) for _ in range(5)]
        client.stop_stream()
    errors = [str(error) for _, error in got if error]
    assert len(errors) == 1
    assert "inference request for sequence 3 to model 'direct' must specify the START flag" in errors[0]
    seen = {r.get_response().id: int(r.as_numpy("OUTPUT4")[0][0]) for r, e in got if not e}
    assert seen == {"1False": 1, "2False": 2, "1True": 1, "2True": 2}


def test_configuration_and_metadata(nereid_and_reference: tuple[Server, Server]) -> None:
    """reads MC-126, MC-127: shown as the reference shows them; controls are no inputs of the metadata."""
    for model in ("direct", "oldest", "single", "fp32", "bool"):
        for path in ("config", ""):
            ours, theirs = (
                rawhttp.get(server.http, f"/v2/models/{model}/{path}".rstrip("/")).json()
                for server in nereid_and_reference
            )
            assert ours == theirs


test_configuration_and_metadata = pytest.mark.reference(test_configuration_and_metadata)


def test_many_sequences_under_load(repository: Path) -> None:
    """SX-06, SX-27: requests of a sequence stay in order, whatever else runs; none is lost."""
    ids, steps = range(1, 31), range(8)
    with Nereid(repository) as server, rawgrpc.Channel(server.grpc) as channel:
        stub = channel.channel.stream_stream(f"/{rawgrpc.SERVICE}/ModelStreamInfer")
        for model in ("spread", "direct", "oldest"):
            requests = []
            for step in steps:
                for id in ids:
                    requests.append(_request(model, id, start=step == 0, end=step == 7))
                    requests[-1].id = f"{id} {step}"
            seen: dict[int, list[int]] = {id: [] for id in ids}
            for body in stub(iter([request.SerializeToString() for request in requests]), timeout=60):
                reply = pb.ModelStreamInferResponse.FromString(body)
                assert not reply.error_message
                id, step = (int(part) for part in reply.infer_response.id.split())
                assert struct.unpack("<Q", reply.infer_response.raw_output_contents[4])[0] == id
                seen[id].append(step)
            assert all(order == list(steps) for order in seen.values()), model


@pytest.fixture
def unloading(tmp_path: Path) -> Iterator[tuple[Server, Repository]]:
    """A server that loads what it is told, with a model "s" of two instances, for two sequences that never end."""
    made = Repository(tmp_path / "models")
    _model(made, "s", batch=1, count=2, idle_us=3_600_000_000)
    with Nereid(made.path, {"model-control-mode": "explicit", "load-model": "s", "exit-timeout-secs": "60"}) as server:
        for number in (1, 2):
            assert _ask(server, "s", (1, 1), sequence_id=number, sequence_start=True).status == 200
        yield server, made


def _unloads(server: Server) -> None:
    """At once."""
    assert rawhttp.post(server.http, "/v2/repository/models/s/unload", {}).status == 200
    server.process.wait_for(lambda: rawhttp.post(server.http, "/v2/repository/index", {}).json()[0]["state"], "UNAVAILABLE", 30)


def test_an_idle_sequence_holds_no_model_that_leaves(unloading: tuple[Server, Repository]) -> None:
    """Of a model whose instances became fewer, one with a sequence that nobody goes on with: who holds only that waits for nobody."""
    server, made = unloading
    _model(made, "s", batch=1, count=1, idle_us=3_600_000_000)
    assert rawhttp.post(server.http, "/v2/repository/models/s/load", {}).status == 200
    for number in (1, 2):
        assert _ask(server, "s", (1, 1), sequence_id=number).status == 200  # as long as it serves
    _unloads(server)
    assert "waits for" not in server.process.log()  # nobody is blamed
    assert server.stop() < 30


def test_who_waits_for_a_slot_has_it_when_the_model_leaves(unloading: tuple[Server, Repository]) -> None:
    """The sequences that have the slots cannot be ended by anybody then."""
    server, _ = unloading

    def queued() -> float:
        return metrics.scrape(server.metrics)["nv_inference_pending_request_count"].value(model="s")

    with rawgrpc.Channel(server.grpc) as channel:
        waiting = _later(channel, _request("s", 3, start=True))
        server.process.wait_for(queued, 1)
        _unloads(server)
        waiting.result()
