"""Server reflection of gRPC: what a client needs to call a server that it has no proto file of."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from harness import h2frames as h2
from harness import rawgrpc
from harness.servers import Nereid, Server

VERSIONS = ["v1", "v1alpha"]
FILE_BY_NAME, FILE_OF_SYMBOL, FILE_OF_EXTENSION, EXTENSIONS_OF, LIST = 3, 4, 5, 6, 7


def field(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Fields of a message by number; numbers are below 16 here."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            length = varint()
            yield tag >> 3, data[at : at + length]
            at += length


def ask(address: str, version: str, requests: Iterable[bytes]) -> list[dict[int, bytes]]:
    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
        return [dict(fields(answer)) for answer in call(iter(requests), timeout=60)]  # type: ignore[misc]


def files(answer: dict[int, bytes]) -> list[descriptor_pb2.FileDescriptorProto]:
    return [descriptor_pb2.FileDescriptorProto.FromString(data) for _, data in fields(answer[4])]  # type: ignore[arg-type]


@pytest.mark.parametrize("version", VERSIONS)
def test_services(nereid: Server, version: str) -> None:
    (answer,) = ask(nereid.grpc, version, [field(LIST, b"*")])
    names = {dict(fields(service))[1].decode() for _, service in fields(answer[6])}  # type: ignore[arg-type, union-attr]
    assert names == {
        rawgrpc.SERVICE,
        rawgrpc.HEALTH,
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert dict(fields(answer[2]))[LIST] == b"*", "the request comes back with its answer"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_call_made_from_nothing_but_reflection(nereid: Server, version: str) -> None:
    (answer,) = ask(nereid.grpc, version, [field(FILE_OF_SYMBOL, rawgrpc.SERVICE.encode())])
    pool = descriptor_pool.DescriptorPool()
    found = files(answer)
    waiting = {each.name: each for each in found}
    while waiting:  # a file comes after those that it needs
        name = next(name for name, each in waiting.items() if not set(each.dependency) & set(waiting))
        pool.Add(waiting.pop(name))  # type: ignore[no-untyped-call]
    method = pool.FindServiceByName(rawgrpc.SERVICE).methods_by_name["ModelInfer"]
    request: Message = message_factory.GetMessageClass(method.input_type)()
    request.model_name = "id_fp32"  # type: ignore[attr-defined]
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[2])  # type: ignore[attr-defined]
    request.inputs[0].contents.fp32_contents.extend([1.5, -2])  # type: ignore[attr-defined]
    with rawgrpc.Channel(nereid.grpc) as channel:
        body = channel.call("ModelInfer", request).body
    response = message_factory.GetMessageClass(method.output_type).FromString(body)
    assert list(response.outputs[0].shape) == [2]


SYMBOLS = [
    (b"inference.ModelInferRequest", True),
    (b".inference.ModelInferRequest", True),
    (b"inference.ModelInferRequest.InferInputTensor", True),
    (b"inference.ModelInferRequest.model_name", True),
    (b"inference.GRPCInferenceService.ModelInfer", True),
    (b"inference.ModelConfig", True),
    (b"inference.DataType", True),
    (b"grpc.health.v1.Health.Check", True),
    (b"inference.ModelInferReques", False),
    (b"inference", False),
    (b"inference.", False),
    (b"", False),
    (b"ModelInferRequest", False),
    (b"inference.ModelInferRequest.nothing", False),
]


@pytest.mark.parametrize(("symbol", "known"), SYMBOLS)
def test_symbols(nereid: Server, symbol: bytes, known: bool) -> None:
    (answer,) = ask(nereid.grpc, "v1", [field(FILE_OF_SYMBOL, symbol)])
    assert (4 in answer) == known
    if not known:
        assert dict(fields(answer[7])) == {1: 5, 2: b"not found"}


def test_many_questions_on_one_stream(nereid: Server) -> None:
    answers = ask(
        nereid.grpc,
        "v1",
        [
            field(FILE_OF_SYMBOL, b"inference.ModelConfig"),
            field(FILE_BY_NAME, b"proto/grpc_service.proto"),
            field(FILE_BY_NAME, b"nothing.proto"),
            field(FILE_OF_EXTENSION, field(1, b"inference.ModelConfig")),
            field(EXTENSIONS_OF, b"inference.ModelConfig"),
            field(EXTENSIONS_OF, b"nothing"),
            b"",
        ],
    )
    assert [each.name for each in files(answers[0])] == ["proto/model_config.proto"]
    assert {each.name for each in files(answers[1])} == {"proto/model_config.proto", "proto/grpc_service.proto"}
    assert [dict(fields(answer[7]))[1] for answer in (answers[2], answers[3], answers[5], answers[6])] == [5, 5, 5, 12]
    assert dict(fields(answers[4][5])) == {1: b"inference.ModelConfig"}


def test_what_is_no_request(nereid: Server) -> None:
    for body, code in ((b"\x3a\xff", "INTERNAL"), (field(LIST, b"\xff"), "INTERNAL"), (field(FILE_OF_SYMBOL, b"inference.ModelConfig\0"), "INVALID_ARGUMENT"), (b"\x08" * 5000, "RESOURCE_EXHAUSTED")):
        with pytest.raises(grpc.RpcError) as error:
            ask(nereid.grpc, "v1", [body])
        assert error.value.code().name == code  # type: ignore[attr-defined]


def test_a_client_that_takes_no_answers(nereid: Server) -> None:
    """Its stream is ended before much has piled up."""
    path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    question = h2.message(field(FILE_OF_SYMBOL, rawgrpc.SERVICE.encode()))
    with h2.Connection(nereid.grpc, initial={h2.INITIAL_WINDOW_SIZE: 0}) as connection:
        block = h2.header_block(h2.call_headers(path))
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block))
        for _ in range(200):
            connection.send(h2.frame(h2.DATA, 0, 1, question))
        connection.send(h2.frame(h2.WINDOW_UPDATE, 0, 1, (2**31 - 1).to_bytes(4, "big")))
        call = connection.finish(1)
        assert call.trailers["grpc-status"] == "8"
        assert len(call.messages()) < 100


def test_it_can_be_restricted(identity_repository: Path) -> None:
    with Nereid(identity_repository, {"grpc-restricted-protocol": "metadata:key=secret"}) as server:
        with pytest.raises(grpc.RpcError) as error:
            ask(server.grpc, "v1", [field(LIST, b"")])
        assert "restricted" in error.value.details()  # type: ignore[attr-defined]
