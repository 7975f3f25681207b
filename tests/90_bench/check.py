"""No answer counts before it was checked: the very bytes of the load are sent once and compared."""

import numpy as np
from harness import rawgrpc, rawhttp
from rows import Row
from subjects import FLOOR, Subject
from tritonclient.grpc import service_pb2 as pb


class WrongAnswer(AssertionError):
    pass


def _expect(condition: bool, subject: Subject, row: Row, what: str) -> None:
    if not condition:
        raise WrongAnswer(f"{subject.name}, {row.name}: {what}")


def _http(subject: Subject, row: Row) -> int:
    host, port = subject.address(row)
    answer = rawhttp.request(host, port, "POST", row.http_path, row.http_body, row.http_headers)
    _expect(answer.status == 200, subject, row, f"status {answer.status}: {answer.body[:200]!r}")
    if row.binary:
        length = int(answer.header("Inference-Header-Content-Length") or "0")
        _expect(length > 0, subject, row, "the answer is not binary")
        _expect(answer.body[length:] == row.payload, subject, row, "the answer's bytes differ")
    else:
        values = np.array(answer.json()["outputs"][0]["data"], dtype="<f4")
        _expect(values.tobytes() == row.payload, subject, row, "the answer's values differ")
    return answer.size


def _stream(subject: Subject, row: Row, channel: rawgrpc.Channel) -> int:
    """The size of all responses to a request, each with its prefix."""
    answers = list(channel.channel.stream_stream(row.grpc_path)(iter([row.grpc_body]), timeout=60))
    _expect(len(answers) == row.responses, subject, row, f"{len(answers)} responses")
    for answer in answers:
        message = pb.ModelStreamInferResponse.FromString(answer)
        right = not message.error_message and message.infer_response.raw_output_contents[0] == row.payload
        _expect(right, subject, row, f"a wrong response: {message}")
    return sum(len(answer) + 5 for answer in answers)


def _grpc(subject: Subject, row: Row) -> int:
    host, port = subject.address(row)
    with rawgrpc.Channel(f"{host}:{port}") as channel:
        if row.responses:
            return _stream(subject, row, channel)
        answer = channel.call(row.rpc, row.grpc_body)
    _expect(answer.code == "OK", subject, row, f"{answer.code}: {answer.details}")
    if subject.name == FLOOR:
        _expect(answer.body == row.grpc_body, subject, row, "the echo differs")
    else:
        message = pb.ModelInferResponse.FromString(answer.body)
        _expect(message.raw_output_contents[0] == row.payload, subject, row, "the answer's bytes differ")
        _expect(list(message.outputs[0].shape) == [row.floats], subject, row, "the shape differs")
    return len(answer.body) + 5


def answer_size(subject: Subject, row: Row) -> int:
    """Asks once and checks; returns the size of a right answer: over HTTP with its head, over
    gRPC the message with its prefix. The load's byte count must then be a multiple of it."""
    return (_http if row.protocol == "http" else _grpc)(subject, row)
