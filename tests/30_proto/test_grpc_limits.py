"""gRPC requests with more parts than any model has: refused before anything is made of them, the connection stays."""

import contextlib
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from harness import h2frames as h2
from harness import metrics, rawgrpc, rawhttp
from harness.held import Bodies
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server
from tritonclient.grpc import service_pb2 as pb

STREAM = f"/{rawgrpc.SERVICE}/ModelStreamInfer"
TOO_MANY = "the request has more tensors, dimensions or parameters than allowed"
TWO = struct.pack("<2f", 1, 2)


def _request() -> pb.ModelInferRequest:
    return rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [2], TWO)])


def inputs(m: pb.ModelInferRequest, count: int) -> None:
    for _ in range(count - 1):
        m.inputs.add(name="X")


def outputs(m: pb.ModelInferRequest, count: int) -> None:
    for _ in range(count):
        m.outputs.add(name="X")


def raw(m: pb.ModelInferRequest, count: int) -> None:
    m.raw_input_contents.extend([b""] * (count - 1))


def parameters(m: pb.ModelInferRequest, count: int) -> None:
    for number in range(count):
        m.parameters[f"p{number}"].bool_param = True


def parameters_of_an_input(m: pb.ModelInferRequest, count: int) -> None:
    for number in range(count):
        m.inputs[0].parameters[f"p{number}"].bool_param = True


def parameters_of_all_outputs(m: pb.ModelInferRequest, count: int) -> None:
    """As many as are allowed in each."""
    for number in range(count):
        output = m.outputs[-1] if number % 256 else m.outputs.add(name="X")
        output.parameters[f"p{number}"].bool_param = True


def dimensions(m: pb.ModelInferRequest, count: int) -> None:
    m.inputs[0].shape[:] = [1] * count


LIMITS: list[tuple[Callable[[pb.ModelInferRequest, int], None], int]] = [
    (inputs, 4096), (outputs, 4096), (raw, 4096), (parameters, 256), (parameters_of_an_input, 256),
    (parameters_of_all_outputs, 8192), (dimensions, 256),
]


@pytest.mark.parametrize(("fill", "most"), LIMITS)
def test_parts_of_a_request(nereid: Server, fill: Callable[[pb.ModelInferRequest, int], None], most: int) -> None:
    with rawgrpc.Channel(nereid.grpc) as channel:
        for count in (most, most + 1):
            request = _request()
            fill(request, count)
            answer = channel.call("ModelInfer", request)
            assert (answer.code == "RESOURCE_EXHAUSTED") == (count > most), answer
            assert (answer.details == TOO_MANY) == (count > most), answer
        assert channel.call("ModelInfer", _request()).code == "OK"


def test_parts_of_a_request_in_a_stream(nereid: Server) -> None:
    """The stream ends, and with it what is under way: so the broken one is sent when the first was answered."""
    broken = _request()
    dimensions(broken, 257)
    answered = threading.Event()

    def requests() -> Iterator[bytes]:
        yield _request().SerializeToString()
        assert answered.wait(60)
        yield broken.SerializeToString()

    with rawgrpc.Channel(nereid.grpc) as channel:
        call = channel.channel.stream_stream(STREAM)(requests(), timeout=60)
        first = pb.ModelStreamInferResponse.FromString(next(call))
        assert first.infer_response.raw_output_contents[0] == TWO
        answered.set()
        with pytest.raises(grpc.RpcError) as ended:
            next(call)
        assert (ended.value.code().name, ended.value.details()) == ("RESOURCE_EXHAUSTED", TOO_MANY)
        assert channel.call("ModelInfer", _request()).code == "OK"


BUDGET = 1 << 20
# Nothing is executed before eight requests wait.
EIGHT = "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 3600000000 }\n"


def one_row(model: str) -> pb.ModelInferRequest:
    return rawgrpc.infer_request(model, [("INPUT0", "FP32", [1, 2], TWO)])


def after_ping(connection: h2.Connection, *parts: bytes) -> None:
    """What is sent was taken when the answer to a ping behind it comes."""
    connection.send(*parts, h2.frame(h2.PING, 0, 0, b"whatever"))
    while connection.read().kind != h2.PING:
        pass


def page(server: Server) -> rawhttp.Answer:
    """The metrics. Where the budget is spent one page at a time is told: the one before may not have been given back yet."""
    answers: list[rawhttp.Answer] = []

    def is_told() -> bool:
        answers.append(rawhttp.request(HOST, server.metrics_port, "GET", "/metrics"))
        return answers[-1].status == 200

    server.process.wait_until(is_told, 60)
    return answers[-1]


def spend(server: Server, stack: contextlib.ExitStack) -> None:
    """Bodies that do not end take the budget but for some bytes, requests for a model that waits take these and a little more. Each has been
    looked at before the next comes, so that a few requests do: a client that pings for many would be thrown out."""
    bodies = stack.enter_context(Bodies(server.http, "all"))
    for bits in range(19, 10, -1):
        bodies.hold(1 << bits)  # what was held before decides whether there is room, and the sum is looked at below
    pusher = stack.enter_context(h2.Connection(server.grpc))
    asked = h2.message(one_row("other").SerializeToString())
    block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelInfer"))
    for stream in range(1, 60, 2):
        after_ping(pusher, h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block), h2.frame(h2.DATA, h2.END_STREAM, stream, asked))
        if metrics.parse(page(server).body.decode())["nereid_budget_in_use_bytes"].value() >= BUDGET:
            return
    raise AssertionError("the budget is not spent")


@pytest.mark.parametrize("more", [0, 1])
def test_who_reads_is_answered_though_others_spend_the_budget(tmp_path: Path, more: int) -> None:
    """A stream with more under way than its allowance, whose client reads; it may ask for more, and is told that there is no room."""
    made = Repository(tmp_path / "models")
    made.identity("all", max_batch_size=8, extra=EIGHT)
    made.identity("other", max_batch_size=64, extra=EIGHT.replace("8", "64", 1))
    asked = h2.message(one_row("all").SerializeToString())
    options = {"memory-budget": str(BUDGET), "inline-execution": "false"}
    with Nereid(made.path, options) as server, contextlib.ExitStack() as stack:
        reader = stack.enter_context(h2.Connection(server.grpc))
        after_ping(reader, h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.header_block(h2.call_headers(STREAM))), h2.frame(h2.DATA, 0, 1, asked * 7))
        spend(server, stack)
        after_ping(reader, h2.frame(h2.DATA, h2.END_STREAM, 1, asked * more))
        with rawgrpc.Channel(server.grpc) as channel:
            assert channel.call("ModelInfer", one_row("all")).code == "OK"
        call = reader.finish(1)
        answers = [pb.ModelStreamInferResponse.FromString(each) for each in call.messages()]
        assert call.trailers["grpc-status"] == "0", call.trailers
        assert [each.infer_response.raw_output_contents[0] for each in answers[:7]] == [TWO] * 7
        assert ["no room for more of this connection" in each.error_message for each in answers[7:]] == [True] * more


def test_models_are_unloaded_though_the_budget_is_spent(tmp_path: Path) -> None:
    """Whoever looks after the server gets room by that: short questions are answered always."""
    made = Repository(tmp_path / "models")
    made.identity("all", max_batch_size=8, extra=EIGHT)
    made.identity("other", max_batch_size=64, extra=EIGHT.replace("8", "64", 1))
    made.identity("idle")
    options = {"memory-budget": str(BUDGET), "inline-execution": "false", "model-control-mode": "explicit", "load-model": "*"}
    path = "/v2/repository/models/idle/"
    body = b'{"parameters": {"unload_dependents": true}}'
    with Nereid(made.path, options) as server, contextlib.ExitStack() as stack, rawgrpc.Channel(server.grpc) as channel:
        spend(server, stack)
        assert channel.call("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name="idle")).code == "OK"
        assert channel.call("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="idle")).code == "OK"
        assert rawhttp.request(HOST, server.http_port, "POST", f"{path}unload", body=body).status == 200
        assert rawhttp.request(HOST, server.http_port, "POST", f"{path}load", body=b"{}").status == 200


def test_metrics_are_told_though_the_budget_is_spent(tmp_path: Path) -> None:
    """A page that is longer than what a connection has besides: that of some tens of models."""
    made = Repository(tmp_path / "models")
    made.identity("all", max_batch_size=8, extra=EIGHT)
    made.identity("other", max_batch_size=64, extra=EIGHT.replace("8", "64", 1))
    for number in range(30):
        made.identity(f"many{number}")
    with Nereid(made.path, {"memory-budget": str(BUDGET), "inline-execution": "false"}) as server, contextlib.ExitStack() as stack:
        spend(server, stack)
        for _ in range(3):
            assert len(page(server).body) > 2 * 16384
