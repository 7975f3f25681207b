"""Inference over gRPC with the real client, and with contents in typed fields."""

from collections.abc import Callable

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import rawgrpc
from harness.servers import Server
from tritonclient.grpc import service_pb2 as pb


def _input(name: str, data: np.ndarray, datatype: str = "FP32") -> grpcclient.InferInput:
    made = grpcclient.InferInput(name, list(data.shape), datatype)
    made.set_data_from_numpy(data)
    return made


def test_two_tensors(server: Server) -> None:
    one = np.arange(12, dtype=np.float32).reshape(3, 4)
    two = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        result = client.infer("id_two", [_input("INPUT0", one), _input("INPUT1", two)])
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), one)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), two)


def test_only_the_requested_output(server: Server) -> None:
    data = np.ones((2, 3), dtype=np.float32)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        result = client.infer(
            "id_two",
            [_input("INPUT0", data), _input("INPUT1", data * 2)],
            outputs=[grpcclient.InferRequestedOutput("OUTPUT1")],
        )
    assert [each.name for each in result.get_response().outputs] == ["OUTPUT1"]


def test_id_and_version(server: Server) -> None:
    data = np.ones(1, dtype=np.float32)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        named = client.infer("id_specific", [_input("INPUT0", data)], model_version="1", request_id="abc-1")
        plain = client.infer("id_all", [_input("INPUT0", data)])
    assert (named.get_response().id, named.get_response().model_version) == ("abc-1", "1")
    assert (plain.get_response().id, plain.get_response().model_version) == ("", "10")


@pytest.mark.parametrize("length", [0, 1, 1000, 4 << 20])
def test_any_length(server: Server, length: int) -> None:
    data = np.arange(length, dtype=np.float32)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        result = client.infer("id_fp32", [_input("INPUT0", data)])
    assert list(result.get_response().outputs[0].shape) == [length]
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)


CONTENTS = [
    ("BOOL", "bool_contents", [True, False, True], np.bool_),
    ("INT8", "int_contents", [-128, 0, 127], np.int8),
    ("INT16", "int_contents", [-32768, 0, 32767], np.int16),
    ("INT32", "int_contents", [-(2**31), 0, 2**31 - 1], np.int32),
    ("INT64", "int64_contents", [-(2**63), 0, 2**63 - 1], np.int64),
    ("UINT8", "uint_contents", [0, 1, 255], np.uint8),
    ("UINT16", "uint_contents", [0, 1, 65535], np.uint16),
    ("UINT32", "uint_contents", [0, 1, 2**32 - 1], np.uint32),
    ("UINT64", "uint64_contents", [0, 1, 2**64 - 1], np.uint64),
    ("FP32", "fp32_contents", [-1.5, 0.0, 2.25], np.float32),
    ("FP64", "fp64_contents", [-1.5, 0.0, 1e300], np.float64),
]


@pytest.mark.parametrize(("datatype", "field", "values", "kind"), CONTENTS, ids=[row[0] for row in CONTENTS])
def test_typed_contents(server: Server, datatype: str, field: str, values: list, kind: type) -> None:
    request = pb.ModelInferRequest(model_name=f"id_{datatype.lower()}")
    tensor = request.inputs.add(name="INPUT0", datatype=datatype, shape=[len(values)])
    getattr(tensor.contents, field).extend(values)
    with rawgrpc.Channel(server.grpc) as channel:
        message = channel.call("ModelInfer", request).parse(pb.ModelInferResponse)
    assert message.raw_output_contents[0] == np.array(values, dtype=kind).tobytes()


def test_typed_bytes(server: Server) -> None:
    request = pb.ModelInferRequest(model_name="id_bytes")
    tensor = request.inputs.add(name="INPUT0", datatype="BYTES", shape=[3])
    tensor.contents.bytes_contents.extend([b"", b"with\0nul", b"abc"])
    with rawgrpc.Channel(server.grpc) as channel:
        message = channel.call("ModelInfer", request).parse(pb.ModelInferResponse)
    assert message.raw_output_contents[0] == b"\0\0\0\0\x08\0\0\0with\0nul\x03\0\0\0abc"


TEXTS: dict[str, Callable[[pb.ModelInferRequest, str], None]] = {
    "model": lambda q, text: setattr(q, "model_name", text),
    "model version": lambda q, text: setattr(q, "model_version", text),
    "request id": lambda q, text: setattr(q, "id", text),
    "input": lambda q, text: setattr(q.inputs[0], "name", text),
    "datatype": lambda q, text: setattr(q.inputs[0], "datatype", text),
    "output": lambda q, text: setattr(q.outputs[0], "name", text),
    "parameter": lambda q, text: setattr(q.parameters[text], "int64_param", 1),
    "parameter value": lambda q, text: setattr(q.outputs[0].parameters["shared_memory_region"], "string_param", text),
    "sequence id": lambda q, text: setattr(q.parameters["sequence_id"], "string_param", text),
}


@pytest.mark.parametrize("what", TEXTS)
def test_no_text_ends_at_a_zero_byte(nereid: Server, what: str) -> None:
    """What follows it would not be seen. A stream goes on behind such a request."""
    asked = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], bytes(4))], request_id="a")
    asked.outputs.add(name="OUTPUT0")
    wrong = pb.ModelInferRequest.FromString(asked.SerializeToString())
    TEXTS[what](wrong, "1\0x")
    with rawgrpc.Channel(nereid.grpc) as channel:
        answer = channel.call("ModelInfer", wrong)
        assert (answer.code, answer.details) == ("INVALID_ARGUMENT", f"{what} '1...' holds a zero byte")
        stream = channel.channel.stream_stream(f"/{rawgrpc.SERVICE}/ModelStreamInfer")
        sent = [each.SerializeToString() for each in (wrong, asked)]
        first, second = (pb.ModelStreamInferResponse.FromString(each) for each in stream(iter(sent), timeout=60))
        assert (first.error_message, second.infer_response.id) == (answer.details, "a")


def test_many_calls_on_one_channel(server: Server) -> None:
    """200 calls under way at the same time on one connection, each with its own answer."""
    with rawgrpc.Channel(server.grpc) as channel:
        stub = channel.channel.unary_unary(f"/{rawgrpc.SERVICE}/ModelInfer")
        calls = []
        for number in range(200):
            raw = np.full(number + 1, number, dtype=np.float32).tobytes()
            request = rawgrpc.infer_request(
                "id_fp32", [("INPUT0", "FP32", [number + 1], raw)], request_id=str(number)
            )
            calls.append((number, raw, stub.future(request.SerializeToString(), timeout=60)))
        for number, raw, call in calls:
            message = pb.ModelInferResponse.FromString(call.result())
            assert (message.id, message.raw_output_contents[0]) == (str(number), raw)
