"""gRPC calls as they are cancelled, streamed, compressed, refused and interrupted."""

import gzip
import queue
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
from harness import h2frames as h2
from harness import metrics, rawgrpc
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from tritonclient.grpc import service_pb2 as pb

INFER = f"/{rawgrpc.SERVICE}/ModelInfer"
STREAM = f"/{rawgrpc.SERVICE}/ModelStreamInfer"
DELAY_MS = 300
CANCEL, ENHANCE_YOUR_CALM = 8, 11


def _slow(ms: int) -> str:
    return f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{ms}" }} }}\n'


@pytest.fixture(scope="module", params=["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def both(request: pytest.FixtureRequest, repository: Path) -> Iterator[Server]:
    with KINDS[request.param](repository) as server:
        yield server


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Repository(tmp_path_factory.mktemp("calls") / "models")
    made.identity("fast")
    made.identity("slow", extra=_slow(DELAY_MS))
    # Waits an hour for a second request.
    made.identity("lonely", max_batch_size=2, extra="dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 3600000000 }\n")
    # As many as 64.
    made.identity("waits", max_batch_size=64, extra="dynamic_batching { preferred_batch_size: [ 64 ] max_queue_delay_microseconds: 3600000000 }\n")
    return made.path


@pytest.fixture(scope="module")
def ours(repository: Path) -> Iterator[Server]:
    """With instance threads: a model that waits must not wait on a network thread."""
    with Nereid(repository, {"inline-execution": "false"}) as server:
        yield server


def _request(
    request_id: str, model: str = "fast", datatype: str = "FP32", size: int = 4
) -> pb.ModelInferRequest:
    raw = np.full(size, 7, dtype="<f4").tobytes()
    shape = [1, size] if model in ("lonely", "waits") else [size]
    return rawgrpc.infer_request(model, [("INPUT0", datatype, shape, raw)], request_id=request_id)


def _stream(
    channel: rawgrpc.Channel, requests: list[pb.ModelInferRequest]
) -> list[pb.ModelStreamInferResponse]:
    call = channel.channel.stream_stream(STREAM)((each.SerializeToString() for each in requests), timeout=60)
    return [pb.ModelStreamInferResponse.FromString(each) for each in call]


def test_a_stream_answers_in_order(both: Server) -> None:
    """SX-25, SX-29, SX-30, SX-31, SX-32: The slow one first: those behind it wait. Errors take their turn too."""
    asked = [
        _request("1", "slow"),
        _request("2"),
        _request("3", "nobody"),
        _request("4", datatype="INT32"),
        _request("5"),
    ]
    with rawgrpc.Channel(both.grpc) as channel:
        answers = _stream(channel, asked)
    assert [each.infer_response.id for each in answers] == ["1", "2", "3", "4", "5"]
    assert [bool(each.error_message) for each in answers] == [False, False, True, True, False]
    assert answers[2].error_message == "Request for unknown model: 'nobody' is not found"
    good = answers[0].infer_response
    assert good.raw_output_contents[0] == asked[0].raw_input_contents[0]
    assert good.parameters["triton_final_response"].bool_param is True
    assert not answers[3].infer_response.outputs


def test_a_stream_without_requests(both: Server) -> None:
    with rawgrpc.Channel(both.grpc) as channel:
        assert _stream(channel, []) == []


def test_answers_come_while_the_client_still_sends(both: Server) -> None:
    """The second request is made of the first answer."""
    outbox: queue.Queue[bytes | None] = queue.Queue()
    with rawgrpc.Channel(both.grpc) as channel:
        answers = channel.channel.stream_stream(STREAM)(iter(outbox.get, None), timeout=60)
        for number in range(5):
            outbox.put(_request(str(number)).SerializeToString())
            got = pb.ModelStreamInferResponse.FromString(next(answers))
            assert got.infer_response.id == str(number)
        outbox.put(None)
        assert list(answers) == []
        assert answers.code() == grpc.StatusCode.OK


def test_more_requests_than_a_stream_may_have_under_way(ours: Server) -> None:
    """The client is made to wait, nothing is lost: the first one holds all others up."""
    count = 2000
    asked = [_request("0", "slow")] + [_request(str(number), size=600) for number in range(1, count)]
    with rawgrpc.Channel(ours.grpc) as channel:
        answers = _stream(channel, asked)
    assert [each.infer_response.id for each in answers] == [str(number) for number in range(count)]
    assert all(not each.error_message for each in answers)


def test_tensors_over_a_stream(both: Server) -> None:
    sizes = [0, 1, 5000, 300_000, 2 << 20]
    with rawgrpc.Channel(both.grpc) as channel:
        answers = _stream(channel, [_request(str(size), size=size) for size in sizes])
    for size, answer in zip(sizes, answers, strict=True):
        assert answer.infer_response.raw_output_contents[0] == np.full(size, 7, dtype="<f4").tobytes()


def test_a_stream_with_nonsense_in_it(ours: Server) -> None:
    with rawgrpc.Channel(ours.grpc) as channel:
        call = channel.channel.stream_stream(STREAM)(iter([b"\xff\xff\xff"]), timeout=60)
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    assert caught.value.details() == "Unable to parse request"


def test_deadline(ours: Server) -> None:
    with rawgrpc.Channel(ours.grpc) as channel:
        late = channel.call("ModelInfer", _request("late", "lonely"), timeout=0.1)
        assert late.code == "DEADLINE_EXCEEDED"
        assert channel.call("ModelInfer", _request("next")).code == "OK"


def test_the_server_keeps_the_deadline_too(ours: Server) -> None:
    """A client that only waits is told."""
    with h2.Connection(ours.grpc) as connection:
        body = h2.message(_request("late", "lonely").SerializeToString())
        headers = h2.header_block(h2.call_headers(INFER, grpc_timeout="20m"))
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, headers))
        connection.send(h2.frame(h2.DATA, h2.END_STREAM, 1, body))
        assert connection.finish(1).trailers["grpc-status"] == "4"


@pytest.mark.parametrize("timeout", ["0S", "0n", "00000000H"])
def test_a_deadline_that_is_over(ours: Server, timeout: str) -> None:
    """As clients send it whose caller has no time left. (The reference says the same, and ends now and then.)"""
    with h2.Connection(ours.grpc) as connection:
        block = h2.header_block(h2.call_headers(INFER, grpc_timeout=timeout))
        body = h2.message(_request("late").SerializeToString())
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block) + h2.frame(h2.DATA, h2.END_STREAM, 1, body))
        trailers = connection.finish(1).trailers
    assert (trailers["grpc-status"], trailers["grpc-message"]) == ("4", "Deadline Exceeded")


@pytest.mark.parametrize("timeout", ["1", "x", "-1S", "123456789S"])
def test_timeouts_that_are_none(ours: Server, timeout: str) -> None:
    with h2.Connection(ours.grpc) as connection:
        block = h2.header_block(h2.call_headers(INFER, grpc_timeout=timeout))
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block))
        assert connection.finish(1).trailers["grpc-status"] == "13"


def _waiting(server: Server) -> tuple[float, float]:
    """Requests in the queue, and those that were cancelled."""
    found = metrics.scrape(server.metrics)
    cancelled = found["nv_inference_request_failure"].value(model="waits", reason="CANCELED")
    return found["nv_inference_pending_request_count"].value(model="waits"), cancelled


def test_cancelled_calls(ours: Server) -> None:
    """While they wait in the queue: they leave it, and count as cancelled."""
    _, before = _waiting(ours)
    with rawgrpc.Channel(ours.grpc) as channel:
        stub = channel.channel.unary_unary(INFER)
        calls = [stub.future(_request(str(each), "waits").SerializeToString(), timeout=60) for each in range(20)]
        ours.process.wait_for(lambda: _waiting(ours), (20, before))
        for call in calls:
            call.cancel()
        assert {call.code() for call in calls} == {grpc.StatusCode.CANCELLED}
        ours.process.wait_for(lambda: _waiting(ours), (0, before + 20))
        assert channel.call("ModelInfer", _request("after")).code == "OK"


def test_a_client_that_goes_away(ours: Server) -> None:
    """With requests that wait, and in the middle of another."""
    _, before = _waiting(ours)
    with h2.Connection(ours.grpc) as connection:
        body = h2.message(_request("gone", "waits").SerializeToString())
        for stream in (1, 3, 5):
            block = h2.header_block(h2.call_headers(INFER))
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block))
            connection.send(h2.frame(h2.DATA, h2.END_STREAM, stream, body) if stream < 5 else h2.frame(h2.DATA, 0, stream, body[:20]))
        ours.process.wait_for(lambda: _waiting(ours), (2, before))
    ours.process.wait_for(lambda: _waiting(ours), (0, before + 2))
    with rawgrpc.Channel(ours.grpc) as channel:
        assert channel.call("ModelInfer", _request("next")).code == "OK"


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests(both: Server, compression: grpc.Compression) -> None:
    request = _request("small again", size=100_000)
    with rawgrpc.Channel(both.grpc) as channel:
        reply = channel.channel.unary_unary(INFER)(
            request.SerializeToString(), timeout=60, compression=compression
        )
    assert pb.ModelInferResponse.FromString(reply).raw_output_contents[0] == request.raw_input_contents[0]


def _raw_call(server: Server, headers: list[tuple[str, str]], body: bytes) -> h2.Call:
    with h2.Connection(server.grpc) as connection:
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.header_block(headers)))
        connection.send(h2.frame(h2.DATA, h2.END_STREAM, 1, body))
        return connection.finish(1)


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", None)]
)
def test_the_flag_says_what_is_compressed(ours: Server, encoding: str, pack: object) -> None:
    plain = _request("x").SerializeToString()
    headers = h2.call_headers(INFER, grpc_encoding=encoding)
    assert _raw_call(ours, headers, h2.message(plain)).trailers["grpc-status"] == "0"
    if callable(pack):
        assert _raw_call(ours, headers, h2.message(pack(plain), 1)).trailers["grpc-status"] == "0"
        assert _raw_call(ours, headers, h2.message(plain, 1)).trailers["grpc-status"] == "3"
    else:
        assert _raw_call(ours, headers, h2.message(plain, 1)).trailers["grpc-status"] == "13"


def test_unknown_compression(ours: Server) -> None:
    call = _raw_call(ours, h2.call_headers(INFER, grpc_encoding="snappy"), h2.message(b"x", 1))
    assert call.trailers["grpc-status"] == "12"
    assert "gzip" in call.headers["grpc-accept-encoding"]


def test_bombs(ours: Server) -> None:
    """64 MiB of zeros in 64 KiB: no request, and nobody else suffers."""
    bomb = h2.message(gzip.compress(b"\0" * (64 << 20)), 1)
    block = h2.header_block(h2.call_headers(INFER, grpc_encoding="gzip"))
    with h2.Connection(ours.grpc) as connection:
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block))
        for at in range(0, len(bomb), 16384):
            connection.send(h2.frame(h2.DATA, 0, 1, bomb[at : at + 16384]))
        connection.send(h2.frame(h2.DATA, h2.END_STREAM, 1))
        assert connection.finish(1).trailers["grpc-status"] == "13"
    with rawgrpc.Channel(ours.grpc) as channel:
        assert channel.call("ModelInfer", _request("next")).code == "OK"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({":method": "GET"}, "405"),
        ({"content-type": "application/json"}, "415"),
        ({"content-type": "application/grpc-web"}, "415"),
    ],
)
def test_what_is_no_grpc(ours: Server, change: dict[str, str], status: str) -> None:
    headers = [(name, change.get(name, value)) for name, value in h2.call_headers(INFER)]
    assert _raw_call(ours, headers, b"").headers[":status"] == status


def test_content_type_may_name_the_encoding(both: Server) -> None:
    headers = [
        (name, "application/grpc+proto" if name == "content-type" else value)
        for name, value in h2.call_headers(INFER)
    ]
    body = h2.message(_request("x").SerializeToString())
    assert _raw_call(both, headers, body).trailers["grpc-status"] == "0"


def test_too_many_headers(ours: Server) -> None:
    headers = h2.call_headers(INFER) + [(f"x-{number}", "y" * 200) for number in range(70)]
    call = _raw_call(ours, headers, h2.message(_request("x").SerializeToString()))
    assert call.trailers["grpc-status"] == "8"


def test_messages_over_the_limit(ours: Server) -> None:
    call = _raw_call(ours, h2.call_headers(INFER), b"\0\x80\0\0\0abc")
    assert call.trailers["grpc-status"] == "8"
    assert call.trailers["grpc-message"] == "Received message larger than max (2147483648 vs. 2147483647)"


SMALL = 1 << 16


@pytest.mark.parametrize("path", [f"/{rawgrpc.SERVICE}/{each}" for each in ("ServerLive", "TraceSetting", "LogSettings", "RepositoryIndex", "RepositoryModelUnload")] + [f"/{rawgrpc.HEALTH}/Check"])
def test_messages_over_the_limit_of_their_method(ours: Server, path: str) -> None:
    """Refused by its first five bytes: nothing of it is held."""
    with h2.Connection(ours.grpc) as connection:
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.header_block(h2.call_headers(path))))
        connection.send(h2.frame(h2.DATA, 0, 1, h2.message(bytes(SMALL + 1))[:5]))
        trailers = connection.finish(1).trailers
    assert (trailers["grpc-status"], trailers["grpc-message"]) == ("8", f"Received message larger than max ({SMALL + 1} vs. {SMALL})")


def test_decompressed_messages_over_the_limit_of_their_method(ours: Server) -> None:
    """A field that nobody knows fills the message."""
    whole = b"\x7a" + (b"\xfc\xff\x03" + bytes(SMALL - 4))
    headers = h2.call_headers(f"/{rawgrpc.SERVICE}/ServerLive", grpc_encoding="gzip")
    assert _raw_call(ours, headers, h2.message(gzip.compress(whole), 1)).trailers["grpc-status"] == "0"
    trailers = _raw_call(ours, headers, h2.message(gzip.compress(whole + b"\0"), 1)).trailers
    assert (trailers["grpc-status"], trailers["grpc-message"]) == ("3", f"the decompressed message is over {SMALL} bytes")


@pytest.mark.parametrize("flag", [2, 255])
def test_flags_that_mean_nothing(ours: Server, flag: int) -> None:
    assert _raw_call(ours, h2.call_headers(INFER), h2.message(b"", flag)).trailers["grpc-status"] == "13"


def test_two_messages_in_a_unary_call(ours: Server) -> None:
    body = h2.message(_request("x").SerializeToString())
    assert _raw_call(ours, h2.call_headers(INFER), body + body).trailers["grpc-status"] == "13"


def test_answered_before_the_client_is_done(ours: Server) -> None:
    """Trailers, then RST_STREAM(NO_ERROR): the rest need not be sent. RFC 9113 8.1."""
    with h2.Connection(ours.grpc) as connection:
        block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/Nothing"))
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block))
        assert connection.finish(1).trailers["grpc-status"] == "12"
        while connection.calls[1].reset is None:
            connection.read()
        assert connection.calls[1].reset == 0


def test_messages_in_trailers_are_percent_encoded(both: Server) -> None:
    with rawgrpc.Channel(both.grpc) as channel:
        answer = channel.call("ModelInfer", _request("x", "größe 100%"))
    assert answer.code == "NOT_FOUND"
    assert answer.details == "Request for unknown model: 'größe 100%' is not found"


def test_rapid_reset(ours: Server) -> None:
    """CVE-2023-44487: streams that are opened and reset at once end the connection."""
    reset = struct.pack(">I", CANCEL)
    block = h2.header_block(h2.call_headers(INFER))
    with h2.Connection(ours.grpc) as connection:
        try:
            for first in range(1, 20_000, 200):
                connection.send(
                    b"".join(
                        h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block)
                        + h2.frame(h2.RST_STREAM, 0, stream, reset)
                        for stream in range(first, first + 200, 2)
                    )
                )
        except OSError:
            pass  # closed while we still write
        frames = connection.finish_by_connection()
    goaways = [each for each in frames if each.kind == h2.GOAWAY]
    if goaways:  # lost when the server's reset overtakes it
        assert int.from_bytes(goaways[-1].payload[4:8], "big") != 0
    with rawgrpc.Channel(ours.grpc) as channel:
        assert channel.call("ModelInfer", _request("next")).code == "OK"


def test_a_client_that_reads_nothing(ours: Server) -> None:
    """16 answers of 4 MiB that nobody takes: other clients do not notice."""
    body = h2.message(_request("x", size=1 << 20).SerializeToString())
    with h2.Connection(ours.grpc) as connection:
        assert connection.read().kind == h2.SETTINGS  # and answers them, while nobody else writes
        sender = threading.Thread(target=_send_calls, args=(connection, body, 16))
        sender.start()
        with rawgrpc.Channel(ours.grpc) as channel:
            for number in range(20):
                assert channel.call("ModelInfer", _request(str(number))).code == "OK"
        for stream in range(1, 33, 2):
            call = connection.finish(stream)
            assert call.trailers["grpc-status"] == "0"
            assert len(call.data) > 4 << 20
        sender.join()


def _send_calls(connection: h2.Connection, body: bytes, count: int) -> None:
    block = h2.header_block(h2.call_headers(INFER))
    for stream in range(1, 2 * count + 1, 2):
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block))
        for at in range(0, len(body), 16384):
            last = at + 16384 >= len(body)
            connection.send(h2.frame(h2.DATA, h2.END_STREAM if last else 0, stream, body[at : at + 16384]))


def test_calls_under_way_finish_when_the_server_stops(repository: Path) -> None:
    """GOAWAY for the client, the answer for the call; then the end."""
    server = Nereid(repository, {"inline-execution": "false"}).start()
    try:
        with h2.Connection(server.grpc) as connection:
            block = h2.header_block(h2.call_headers(INFER))
            body = h2.message(_request("last", "slow").SerializeToString())
            connection.send(
                h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block),
                h2.frame(h2.DATA, h2.END_STREAM, 1, body),
                h2.frame(h2.PING, 0, 0, b"received"),
            )
            while not any(each.kind == h2.PING and each.flags & h2.ACK for each in connection.frames):
                connection.read()
            server.stop()
            frames = connection.finish_by_connection()
        assert any(each.kind == h2.GOAWAY for each in frames)
        (reply,) = connection.calls[1].messages()
        assert pb.ModelInferResponse.FromString(reply).id == "last"
        assert connection.calls[1].trailers["grpc-status"] == "0"
    except BaseException:
        server.kill()
        raise
