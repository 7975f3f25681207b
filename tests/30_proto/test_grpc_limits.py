"""gRPC requests with more parts than any model has: refused before anything is made of them, the connection stays."""

import struct
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest
from harness import rawgrpc
from harness.servers import Server
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
