"""gRPC calls with bytes in and bytes out: statuses and details come back as values, never raised."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message
from tritonclient.grpc import service_pb2 as pb

SERVICE = "inference.GRPCInferenceService"
HEALTH = "grpc.health.v1.Health"
LIMIT = 2**31 - 1
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", LIMIT), ("grpc.max_send_message_length", LIMIT)]

M = TypeVar("M", bound=Message)


@dataclass
class Answer:
    code: str  # "OK", "INVALID_ARGUMENT", ...
    details: str = ""
    body: bytes = b""
    initial: dict[str, Any] = field(default_factory=dict)
    trailing: dict[str, Any] = field(default_factory=dict)

    def parse(self, message: type[M]) -> M:
        assert self.code == "OK", f"{self.code}: {self.details}"
        return message.FromString(self.body)


class Channel:
    """root: the certificate of the authority that vouches for a server over TLS."""

    def __init__(self, address: str, root: bytes | None = None):
        if root:
            self.channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(root), options=_OPTIONS)
        else:
            self.channel = grpc.insecure_channel(address, options=_OPTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()

    def call(
        self,
        method: str,
        body: bytes | Message = b"",
        service: str = SERVICE,
        metadata: list[tuple[str, str]] | None = None,
        timeout: float = 60,
    ) -> Answer:
        data = body.SerializeToString() if isinstance(body, Message) else body
        stub = self.channel.unary_unary(f"/{service}/{method}")
        try:
            reply, call = stub.with_call(data, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            return Answer(
                error.code().name,
                error.details() or "",
                b"",  # type: ignore[attr-defined]
                dict(error.initial_metadata() or ()),
                dict(error.trailing_metadata() or ()),  # type: ignore[attr-defined]
            )
        return Answer(
            "OK", call.details() or "", reply, dict(call.initial_metadata()), dict(call.trailing_metadata())
        )


def infer_request(
    model: str,
    inputs: list[tuple[str, str, list[int], bytes]],
    outputs: list[str] | None = None,
    request_id: str = "",
    version: str = "",
) -> pb.ModelInferRequest:
    """inputs: (name, datatype, shape, raw little-endian content)"""
    message = pb.ModelInferRequest(model_name=model, model_version=version, id=request_id)
    for name, datatype, shape, raw in inputs:
        message.inputs.add(name=name, datatype=datatype, shape=shape)
        message.raw_input_contents.append(raw)
    for name in outputs or []:
        message.outputs.add(name=name)
    return message
