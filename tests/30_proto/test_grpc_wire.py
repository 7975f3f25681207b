"""gRPC on HTTP/2, frame by frame."""

import struct

import numpy as np
import pytest
from harness import h2frames as h2
from harness import procfs, rawgrpc
from harness.servers import Server
from tritonclient.grpc import service_pb2 as pb

INFER = f"/{rawgrpc.SERVICE}/ModelInfer"
CHECK = f"/{rawgrpc.HEALTH}/Check"
PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR = 1, 3, 6, 9


def _request(values: list[float], request_id: str = "") -> bytes:
    raw = np.array(values, dtype="<f4").tobytes()
    return rawgrpc.infer_request(
        "id_fp32", [("INPUT0", "FP32", [len(values)], raw)], request_id=request_id
    ).SerializeToString()


def _headers(stream: int, path: str = INFER, end: bool = False, **more: str) -> bytes:
    flags = h2.END_HEADERS | (h2.END_STREAM if end else 0)
    return h2.frame(h2.HEADERS, flags, stream, h2.header_block(h2.call_headers(path, **more)))


def _data(stream: int, payload: bytes, end: bool = True) -> bytes:
    return h2.frame(h2.DATA, h2.END_STREAM if end else 0, stream, payload)


def _good(call: h2.Call, values: list[float]) -> pb.ModelInferResponse:
    assert call.reset is None
    assert call.headers[":status"] == "200"
    assert call.headers["content-type"].startswith("application/grpc")
    assert call.trailers["grpc-status"] == "0"
    assert len(call.blocks) == 2, "headers and trailers are two blocks"
    (body,) = call.messages()
    answer = pb.ModelInferResponse.FromString(body)
    assert answer.raw_output_contents[0] == np.array(values, dtype="<f4").tobytes()
    return answer


def test_settings_come_first(server: Server) -> None:
    with h2.Connection(server.grpc) as connection:
        first = connection.read()
        assert (first.kind, first.flags & h2.ACK, first.stream) == (h2.SETTINGS, 0, 0)
        while not any(each.kind == h2.SETTINGS and each.flags & h2.ACK for each in connection.frames):
            connection.read()


def test_one_call(server: Server) -> None:
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(1) + _data(1, h2.message(_request([1, 2, 3], "seven"))))
        assert _good(connection.finish(1), [1, 2, 3]).id == "seven"


def test_everything_in_one_packet(server: Server) -> None:
    """Preface, settings and the call before the server said a word."""
    with h2.Connection(server.grpc, start=False) as connection:
        connection.send(h2.PREFACE + h2.settings() + _headers(1) + _data(1, h2.message(_request([1]))))
        _good(connection.finish(1), [1])


def test_byte_by_byte(server: Server) -> None:
    with h2.Connection(server.grpc, start=False) as connection:
        stream = h2.PREFACE + h2.settings() + _headers(1) + _data(1, h2.message(_request([1, 2])))
        connection.send(*(stream[at : at + 1] for at in range(len(stream))))
        _good(connection.finish(1), [1, 2])


@pytest.mark.parametrize("size", [1, 3, 5, 16])
def test_message_over_many_frames(server: Server, size: int) -> None:
    """The prefix may be cut too; END_STREAM comes alone on an empty frame."""
    body = h2.message(_request([1, 2, 3]))
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(1))
        connection.send(*(_data(1, body[at : at + size], end=False) for at in range(0, len(body), size)))
        connection.send(_data(1, b""))
        _good(connection.finish(1), [1, 2, 3])


def test_padding(nereid: Server) -> None:
    """RFC 9113 6.1; the reference's library refuses padded DATA."""
    body = h2.message(_request([4]))
    padded = h2.frame(h2.DATA, h2.END_STREAM | h2.PADDED, 1, bytes([9]) + body + b"\0" * 9)
    with h2.Connection(nereid.grpc) as connection:
        connection.send(_headers(1) + padded)
        _good(connection.finish(1), [4])


def test_header_block_over_continuations(server: Server) -> None:
    block = h2.header_block(h2.call_headers(INFER))
    with h2.Connection(server.grpc) as connection:
        connection.send(
            h2.frame(h2.HEADERS, 0, 1, block[:10]) + h2.frame(h2.CONTINUATION, 0, 1, block[10:30])
        )
        connection.send(
            h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, block[30:]) + _data(1, h2.message(_request([5])))
        )
        _good(connection.finish(1), [5])


def test_many_streams_interleaved(server: Server) -> None:
    """64 calls on one connection, their frames mixed, each with its own answer."""
    streams = range(1, 129, 2)
    bodies = {stream: h2.message(_request([stream, -stream], str(stream))) for stream in streams}
    with h2.Connection(server.grpc) as connection:
        connection.send(*(_headers(stream) for stream in streams))
        connection.send(*(_data(stream, bodies[stream][:20], end=False) for stream in streams))
        connection.send(*(_data(stream, bodies[stream][20:]) for stream in reversed(streams)))
        for stream in streams:
            assert _good(connection.finish(stream), [stream, -stream]).id == str(stream)


@pytest.mark.parametrize("frame", [16384, 5000])
def test_large_messages_interleaved(nereid: Server, frame: int) -> None:
    """Three calls of different length, within the windows, a frame of each in turn: every byte comes to its own message."""
    values = {stream: np.arange(stream, stream + 100_000 + 20_000 * stream, dtype="<f4") for stream in (1, 3, 5)}
    bodies = {}
    for stream, array in values.items():
        request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [len(array)], array.tobytes())])
        bodies[stream] = h2.message(request.SerializeToString())
    with h2.Connection(nereid.grpc) as connection:
        connection.send(*(_headers(stream) for stream in bodies))
        for at in range(0, max(map(len, bodies.values())), frame):
            parts = {stream: body[at : at + frame] for stream, body in bodies.items() if at < len(body)}
            connection.send(*(_data(stream, part, end=at + frame >= len(bodies[stream])) for stream, part in parts.items()))
        for stream, array in values.items():
            (reply,) = connection.finish(stream).messages()
            assert pb.ModelInferResponse.FromString(reply).raw_output_contents[0] == array.tobytes()


def test_large_message_within_the_windows(server: Server) -> None:
    """4 MiB each way: we send what the server's windows allow and wait for more."""
    values = np.arange(1 << 20, dtype="<f4")
    request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1 << 20], values.tobytes())])
    body = h2.message(request.SerializeToString())
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(1))
        sender = _Sender(connection, 1)
        sender.send(body)
        call = connection.finish(1)
    (reply,) = call.messages()
    assert pb.ModelInferResponse.FromString(reply).raw_output_contents[0] == values.tobytes()
    assert call.trailers["grpc-status"] == "0"


class _Sender:
    """Keeps the books of both windows, as a careful client does."""

    FRAME = 16384

    def __init__(self, connection: h2.Connection, stream: int):
        self.connection = connection
        self.stream = stream
        self.initial = 65535
        self.used = self.used_connection = 0
        self.grown = self.grown_connection = 0
        self.seen = 0

    def _room(self) -> int:
        for got in self.connection.frames[self.seen :]:
            if got.kind == h2.SETTINGS and not got.flags & h2.ACK:
                for key, value in struct.iter_unpack(">HI", got.payload):
                    self.initial = value if key == h2.INITIAL_WINDOW_SIZE else self.initial
            elif got.kind == h2.WINDOW_UPDATE and got.stream in (0, self.stream):
                more = int.from_bytes(got.payload, "big")
                self.grown += more if got.stream else 0
                self.grown_connection += 0 if got.stream else more
        self.seen = len(self.connection.frames)
        return min(
            self.initial + self.grown - self.used, 65535 + self.grown_connection - self.used_connection
        )

    def send(self, body: bytes) -> None:
        at = 0
        while at < len(body):
            room = min(self._room(), self.FRAME, len(body) - at)
            if room <= 0:
                self.connection.read()
                continue
            self.connection.send(_data(self.stream, body[at : at + room], end=at + room == len(body)))
            at += room
            self.used += room
            self.used_connection += room


def test_our_window_is_kept(server: Server) -> None:
    """With a window of 1000 bytes no more than 1000 come before it is opened."""
    values = list(range(1000))
    with h2.Connection(server.grpc, initial={h2.INITIAL_WINDOW_SIZE: 1000}) as connection:
        connection.send(_headers(1) + _data(1, h2.message(_request(values))))
        while len(connection.calls.setdefault(1, h2.Call()).data) < 1000:
            connection.read()
        connection.send(h2.frame(h2.PING, 0, 0, b"12345678"))
        while not any(each.kind == h2.PING and each.flags & h2.ACK for each in connection.frames):
            connection.read()
        assert len(connection.calls[1].data) == 1000
        connection.send(h2.frame(h2.WINDOW_UPDATE, 0, 1, struct.pack(">I", 1 << 20)))
        _good(connection.finish(1), values)


def test_ping(server: Server) -> None:
    with h2.Connection(server.grpc) as connection:
        connection.send(h2.frame(h2.PING, 0, 0, b"pingpong"))
        while connection.read().kind != h2.PING:
            pass
        assert (connection.frames[-1].flags & h2.ACK, connection.frames[-1].payload) == (h2.ACK, b"pingpong")


def _status(call: h2.Call) -> tuple[str, str, int]:
    return call.headers[":status"], call.trailers["grpc-status"], len(call.data)


@pytest.mark.parametrize("path", [f"/{rawgrpc.SERVICE}/Nothing", "/no.such.Service/ModelInfer", "/", "/x"])
def test_unknown_methods_are_unimplemented(server: Server, path: str) -> None:
    """UNIMPLEMENTED (12) in trailers alone: one header block, no message."""
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(1, path) + _data(1, h2.message(b"")))
        call = connection.finish(1)
        assert _status(call) == ("200", "12", 0)
        assert len(call.blocks) == 1


def test_errors_are_trailers_only(server: Server) -> None:
    request = rawgrpc.infer_request("nobody", []).SerializeToString()
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(1) + _data(1, h2.message(request)))
        call = connection.finish(1)
        assert _status(call) == ("200", "5", 0)
        assert call.trailers["grpc-message"] == "Request for unknown model: 'nobody' is not found"


def test_a_message_that_is_no_protobuf(server: Server) -> None:
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(1) + _data(1, h2.message(b"\xff\xff\xff\xff")))
        assert _status(connection.finish(1)) == ("200", "13", 0)
        connection.send(_headers(3) + _data(3, h2.message(_request([1]))))
        _good(connection.finish(3), [1])


@pytest.mark.parametrize(
    "cut", [b"", b"\0\0\0", b"\0\0\0\0\x09abc"], ids=["nothing", "half a prefix", "half a message"]
)
def test_streams_that_end_too_early(nereid: Server, cut: bytes) -> None:
    with h2.Connection(nereid.grpc) as connection:
        connection.send(_headers(1) + _data(1, cut))
        assert _status(connection.finish(1)) == ("200", "13", 0)
        connection.send(_headers(3) + _data(3, h2.message(_request([1]))))
        _good(connection.finish(3), [1])


def test_health_check(server: Server) -> None:
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(1, CHECK) + _data(1, h2.message(b"")))
        call = connection.finish(1)
        assert call.messages() == [b"\x08\x01"]
        assert call.trailers["grpc-status"] == "0"


def test_reset_by_the_client_leaves_the_others_alone(server: Server) -> None:
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(1) + _headers(3) + _data(1, b"\0\0\0", end=False))
        connection.send(h2.frame(h2.RST_STREAM, 0, 1, struct.pack(">I", 8)))
        connection.send(_data(3, h2.message(_request([7]))))
        _good(connection.finish(3), [7])


def test_header_of_a_frame_cut_in_a_large_message(server: Server) -> None:
    """The rest of the header, with a byte of the message, looks like the header of another frame of the call."""
    stream, cut, short = 0x01010101, 16384, 64
    raw = (np.arange(40000) % 251).astype("<f4").tobytes()
    request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [40000], raw)])
    body = bytearray(h2.message(request.SerializeToString()))
    body[cut] = 1
    second = _data(stream, bytes(body[cut : cut + short]), end=False)
    with h2.Connection(server.grpc) as connection:
        connection.send(_headers(stream) + _data(stream, bytes(body[:cut]), end=False) + second[:1])
        server.process.wait_until(lambda: procfs.unread(server.grpc_port) == 0, 60)
        connection.send(second[1:], *h2.frames_of(stream, bytes(body[cut + short :])))
        call = connection.finish(stream)
    assert (call.reset, call.trailers["grpc-status"]) == (None, "0")
    (answer,) = call.messages()
    assert pb.ModelInferResponse.FromString(answer).raw_output_contents[0] == body[-len(raw) :]


WRONG_FRAMES = {
    "no preface": (b"GET / HTTP/1.1\r\n\r\n", None),
    "DATA on stream 0": (h2.PREFACE + h2.settings() + h2.frame(h2.DATA, 0, 0, b"x"), PROTOCOL_ERROR),
    "HEADERS on an even stream": (h2.PREFACE + h2.settings() + _headers(2), PROTOCOL_ERROR),
    "SETTINGS of 5 bytes": (h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0, b"12345"), FRAME_SIZE_ERROR),
    "header block that is none": (
        h2.PREFACE + h2.settings() + h2.frame(h2.HEADERS, h2.END_HEADERS, 1, b"\xff" * 20),
        COMPRESSION_ERROR,
    ),
    "window over its limit": (
        h2.PREFACE + h2.settings() + h2.frame(h2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 1)),
        FLOW_CONTROL_ERROR,
    ),
    "frame over its limit": (
        h2.PREFACE
        + h2.settings()
        + _headers(1)
        + struct.pack(">I", (1 << 24) - 1)[1:]
        + b"\0\0\0\0\0\1"
        + b"x" * 100,
        FRAME_SIZE_ERROR,
    ),
}


@pytest.mark.parametrize("name", WRONG_FRAMES)
def test_connection_errors(nereid: Server, name: str) -> None:
    """GOAWAY with the code of RFC 9113, and the end; the next connection is served."""
    stream, code = WRONG_FRAMES[name]
    with h2.Connection(nereid.grpc, start=False) as connection:
        connection.send(stream)
        frames = connection.finish_by_connection()
        if code is not None:
            last = [each for each in frames if each.kind == h2.GOAWAY][-1]
            assert int.from_bytes(last.payload[4:8], "big") == code
    with h2.Connection(nereid.grpc) as connection:
        connection.send(_headers(1) + _data(1, h2.message(_request([1]))))
        _good(connection.finish(1), [1])
