"""The id in the answer to a refused message of a stream was read after the message had been freed."""

import struct

from harness import h2frames, rawgrpc
from harness.servers import Server
from tritonclient.grpc import service_pb2 as pb


def test_id_of_a_refused_message_that_came_in_parts(nereid: Server) -> None:
    identity = "the id of the message " * 40
    request = rawgrpc.infer_request(
        "id_fp32", [("INPUT0", "INT32", [2], struct.pack("<2i", 1, 2))], request_id=identity
    )
    body = h2frames.message(request.SerializeToString())
    with h2frames.Connection(nereid.grpc) as connection:
        path = f"/{rawgrpc.SERVICE}/ModelStreamInfer"
        block = h2frames.header_block(h2frames.call_headers(path))
        half = len(body) // 2
        connection.send(
            h2frames.frame(h2frames.HEADERS, h2frames.END_HEADERS, 1, block),
            h2frames.frame(h2frames.DATA, 0, 1, body[:half]),
            h2frames.frame(h2frames.DATA, h2frames.END_STREAM, 1, body[half:]),
        )
        (answer,) = connection.finish(1).messages()
    reply = pb.ModelStreamInferResponse.FromString(answer)
    assert "inference input 'INPUT0' data-type is 'INT32'" in reply.error_message
    assert reply.infer_response.id == identity
