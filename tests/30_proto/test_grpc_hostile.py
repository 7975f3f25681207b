"""What gRPC clients may make the server do and hold: decode headers, keep texts, wait; and what becomes of a client that is honest."""

import contextlib
import gzip
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import h2frames as h2
from harness import metrics, rawgrpc
from harness.servers import Nereid, Server
from tritonclient.grpc import service_pb2 as pb

LIVE = f"/{rawgrpc.SERVICE}/ServerLive"
STREAM = f"/{rawgrpc.SERVICE}/ModelStreamInfer"
EMPTY = h2.message(b"")
ENHANCE_YOUR_CALM = 11
INDEXED = b"\xbe"  # the entry that came into the dynamic table last
WINDOW = 2 << 20  # of a stream, to begin with
TWO = struct.pack("<2f", 1, 2)


def _acknowledged(server: Server, initial: dict[int, int] | None = None) -> h2.Connection:
    """A connection on which frames may be large, and whose client's settings hold."""
    connection = h2.Connection(server.grpc, initial=initial)
    connection.send(h2.frame(h2.PING, 0, 0, bytes(8)))
    while not (seen := connection.read()).kind == h2.PING or not seen.flags & h2.ACK:
        pass
    return connection


def _headers(stream: int, block: bytes, flags: int = 0) -> bytes:
    return h2.frame(h2.HEADERS, h2.END_HEADERS | flags, stream, block)


def _block(path: str = LIVE, **more: str) -> bytes:
    return h2.header_block(h2.call_headers(path, **more))


def _is_served(connection: h2.Connection, stream: int) -> None:
    connection.send(_headers(stream, _block()), h2.frame(h2.DATA, h2.END_STREAM, stream, EMPTY))
    assert connection.finish(stream).trailers["grpc-status"] == "0"


def _bomb(times: int) -> bytes:
    """A header of four thousand bytes, and a byte for each time that it comes again."""
    value = b"a" * 3900
    return b"\x40" + h2._length(1) + b"x" + h2._length(len(value)) + value + INDEXED * times


@pytest.mark.parametrize("bytes_more", [20_000, 40_000])
def test_metadata_over_the_limit_is_an_answer(nereid: Server, bytes_more: int) -> None:
    with _acknowledged(nereid) as connection:
        many = {f"x{i}": "a" * 1000 for i in range(bytes_more // 1000)}
        connection.send(_headers(1, _block(**many)), h2.frame(h2.DATA, h2.END_STREAM, 1, EMPTY))
        trailers = connection.finish(1).trailers
        assert (trailers["grpc-status"], trailers["grpc-message"]) == ("8", "received metadata size exceeds limit")
        _is_served(connection, 3)


def _small_bomb() -> bytes:
    return _headers(3, _block() + _bomb(2000))


def _wrapping_bomb() -> bytes:
    """As much as 32 bits count, and a little: it would be few bytes again."""
    block = _block() + _bomb(-(-(1 << 32) // 3933))
    first, rest = block[:1_000_000], block[1_000_000:]
    return h2.frame(h2.HEADERS, 0, 3, first) + h2.frame(h2.CONTINUATION, h2.END_HEADERS, 3, rest)


def _long_block() -> bytes:
    piece = h2.header_block([("x", "a" * 1000)])
    block = _block() + piece * 100
    frames = h2.frame(h2.HEADERS, 0, 3, block[:60_000])
    return frames + h2.frame(h2.CONTINUATION, h2.END_HEADERS, 3, block[60_000:])


def _trailers() -> bytes:
    begun = _headers(3, _block()) + h2.frame(h2.DATA, 0, 3, EMPTY)
    return begun + _headers(3, _bomb(2000), h2.END_STREAM)


@pytest.mark.parametrize("make", [_small_bomb, _wrapping_bomb, _long_block, _trailers])
def test_metadata_without_end_is_not_decoded(nereid: Server, make: Callable[[], bytes]) -> None:
    with _acknowledged(nereid) as connection:
        _is_served(connection, 1)
        connection.socket.settimeout(60)
        with contextlib.suppress(ConnectionError):  # closed before all was sent
            connection.send(make())
        _is_expelled(connection)


def _is_expelled(connection: h2.Connection) -> None:
    goodbyes = [frame for frame in connection.finish_by_connection() if frame.kind == h2.GOAWAY]
    assert [int.from_bytes(frame.payload[4:8], "big") for frame in goodbyes] == [ENHANCE_YOUR_CALM]
    assert goodbyes[0].payload[8:] == b"too_much_metadata"


def test_metadata_of_a_call_that_is_refused(nereid: Server) -> None:
    """A call over the limit, before the client says that it knows the limit: its headers are passed over, but to the end of the block."""
    with h2.Connection(nereid.grpc) as connection:
        connection.send(b"".join(_headers(stream, _block(STREAM)) for stream in range(1, 2 * 1024, 2)))
        connection.send(h2.frame(h2.HEADERS, 0, 5001, _block()))
        with contextlib.suppress(ConnectionError):  # closed before all was sent
            connection.send(h2.frame(h2.CONTINUATION, 0, 5001, b"\x82" * 16_000) * 5)
        _is_expelled(connection)


def _send_all(connection: h2.Connection, stream: int, data: bytes) -> None:
    """Within the stream's window, and ends it."""
    window, at = WINDOW, 0
    while at < len(data):
        count = min(16384, window, len(data) - at)
        end = h2.END_STREAM if at + count == len(data) else 0
        connection.send(h2.frame(h2.DATA, end, stream, data[at : at + count]))
        at, window = at + count, window - count
        while at < len(data) and not window:
            seen = connection.read()
            if seen.kind == h2.WINDOW_UPDATE and seen.stream == stream:
                window += int.from_bytes(seen.payload, "big")


def test_a_stream_goes_on_after_a_compressed_message(nereid: Server) -> None:
    """What came while a helper was at the message is taken then, and the client is told that it may send the rest."""
    size = 60 << 20  # decompressed: too much to be done at once
    large = rawgrpc.infer_request("nobody", [("INPUT0", "FP32", [size // 4], bytes(size))])
    first = h2.message(gzip.compress(large.SerializeToString(), 1), 1)
    values = 2 << 20
    second = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [values], bytes(4 * values))])
    assert len(first) < WINDOW
    with _acknowledged(nereid) as connection:
        connection.send(_headers(1, _block(STREAM, grpc_encoding="gzip")))
        _send_all(connection, 1, first + h2.message(second.SerializeToString()))
        answers = [pb.ModelStreamInferResponse.FromString(m) for m in connection.finish(1).messages()]
    assert answers[0].error_message.startswith("Request for unknown model")
    assert len(answers[1].infer_response.raw_output_contents[0]) == 4 * values


# Texts.


def _request(**more: str) -> pb.ModelInferRequest:
    return rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [2], TWO)], **more)


def test_ids_have_a_limit(nereid: Server) -> None:
    with rawgrpc.Channel(nereid.grpc) as channel:
        longest = channel.call("ModelInfer", _request(request_id="i" * 16384))
        assert longest.code == "OK" and longest.parse(pb.ModelInferResponse).id == "i" * 16384
        longer = channel.call("ModelInfer", _request(request_id="i" * 16385))
        assert longer.code == "INVALID_ARGUMENT"
        assert longer.details == "the request id has 16385 bytes, which is more than the 16384 that are allowed"


def test_ids_of_sequences_have_a_limit(server: Server) -> None:
    """Both servers say the same."""
    with rawgrpc.Channel(server.grpc) as channel:
        for length, code in ((128, "OK"), (129, "UNIMPLEMENTED")):
            request = _request()
            request.parameters["sequence_id"].string_param = "s" * length
            answer = channel.call("ModelInfer", request)
            assert answer.code == code
        assert answer.details == "string correlation ID cannot be longer than 128 characters"


def test_text_parameters_may_be_long(nereid: Server) -> None:
    request = _request()
    request.parameters["text"].string_param = "t" * (2 << 20)
    with rawgrpc.Channel(nereid.grpc) as channel:
        assert channel.call("ModelInfer", request).code == "OK"


@pytest.fixture
def frugal(identity_repository: Path) -> Iterator[Server]:
    with Nereid(identity_repository, {"memory-budget": str(64 << 20)}) as server:
        yield server




def test_errors_that_nobody_reads_are_short(frugal: Server) -> None:
    """A model's name of 4 MiB is not what the answer to it holds, nor what a client gets that does read it."""
    body = h2.message(pb.ModelInferRequest(model_name="m" * (4 << 20)).SerializeToString())
    streams = range(1, 9, 2)
    with _acknowledged(frugal, {h2.INITIAL_WINDOW_SIZE: 0}) as connection:
        for stream in streams:
            connection.send(_headers(stream, _block(STREAM)))
            _send_all(connection, stream, body)
        connection.send(h2.settings({h2.INITIAL_WINDOW_SIZE: 1 << 30}))
        for stream in streams:
            (message,) = connection.finish(stream).messages()
            assert len(message) < 40_000
            text = pb.ModelStreamInferResponse.FromString(message).error_message
            assert text.startswith("Request for unknown model: 'mmm") and len(text) == 32768


# What operators see.


def _counts(server: Server) -> dict[tuple[str, ...], float]:
    family = metrics.scrape(server.metrics).get("nereid_requests_total")
    samples = family.samples if family else []
    keys = ("route", "model", "code")
    return {tuple(labels.get(key, "") for key in keys): value for _, labels, value in samples if labels["protocol"] == "grpc"}


def test_requests_of_a_stream_that_fail_are_counted(nereid: Server) -> None:
    bad = rawgrpc.infer_request("id_fp32", [("INPUT0", "INT32", [2], TWO)])
    before = _counts(nereid)
    with rawgrpc.Channel(nereid.grpc) as channel:
        requests = [_request(), rawgrpc.infer_request("nobody", []), bad, bad]
        call = channel.channel.stream_stream(STREAM)(iter([r.SerializeToString() for r in requests]), timeout=60)
        assert len(list(call)) == len(requests)

    def added() -> dict[tuple[str, ...], float]:
        now = {key: value - before.get(key, 0) for key, value in _counts(nereid).items() if key[0] == "ModelStreamInfer"}
        now.pop(("ModelStreamInfer", "", "CANCELLED"), None)  # of an earlier test, whose connection was closed only now
        return {key[1:]: value for key, value in now.items() if value}

    expected = {
        ("", "OK"): 1,  # the call
        ("", "NOT_FOUND"): 1,
        ("id_fp32", "INVALID_ARGUMENT"): 2,
    }
    nereid.process.wait_for(added, expected)


def test_lines_about_requests_that_fail_name_them(identity_repository: Path) -> None:
    request = rawgrpc.infer_request("nobody", [], request_id="seven")
    with Nereid(identity_repository, {"log-component": "grpc=1", "log-format": "json"}) as server:
        with rawgrpc.Channel(server.grpc) as channel:
            channel.call("ModelInfer", request)
            list(channel.channel.stream_stream(STREAM)(iter([request.SerializeToString()]), timeout=60))
            channel.call("ModelInfer", rawgrpc.infer_request("nobody", []))
        lines = [json.loads(line) for line in server.process.log().splitlines() if "failed" in line]
    assert [line.get("request_id", "") for line in lines] == ["seven", "seven", ""]
