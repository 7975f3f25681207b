"""Pings of both sides, and the age of a connection: --grpc-keepalive-*, --grpc-http2-*, --grpc-max-connection-age*."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
from harness import h2frames as h2
from harness import metrics, rawgrpc
from harness.repository import Repository
from harness.servers import Nereid
from tritonclient.grpc import service_pb2 as pb

STREAM = f"/{rawgrpc.SERVICE}/ModelStreamInfer"
LIVE = f"/{rawgrpc.SERVICE}/ServerLive"
PING = h2.frame(h2.PING, 0, 0, b"question")


def serving(repository: Path, **options: str) -> Nereid:
    return Nereid(repository, {f"grpc-{name.replace('_', '-')}": value for name, value in options.items()})


def greeted(server: Nereid) -> h2.Connection:
    """A connection, once both sides have told their settings, and the server the size of its window."""
    connection = h2.Connection(server.grpc)
    awaited = {(h2.SETTINGS, 0), (h2.SETTINGS, h2.ACK), (h2.WINDOW_UPDATE, 0)}
    while awaited:
        got = connection.read()
        awaited.discard((got.kind, got.flags))
    return connection


@contextlib.contextmanager
def connected(repository: Path, **options: str) -> Iterator[h2.Connection]:
    with serving(repository, **options) as server, greeted(server) as connection:
        yield connection


def open_stream(connection: h2.Connection) -> None:
    block = h2.header_block(h2.call_headers(STREAM))
    connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block))


def call(connection: h2.Connection, stream: int) -> h2.Call:
    block = h2.header_block(h2.call_headers(LIVE))
    connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block) + h2.frame(h2.DATA, h2.END_STREAM, stream, h2.message(b"")))
    return connection.finish(stream)


def until_ping(connection: h2.Connection) -> h2.Frame:
    while True:
        got = connection.read()
        if got.kind == h2.PING and not got.flags & h2.ACK:
            return got


def pings_so_far(connection: h2.Connection) -> int:
    """How often the server had asked by the time at which it answers a question of this side, and the calls that are data between."""
    stream = 2 * len(connection.frames) + 101
    assert call(connection, stream).trailers["grpc-status"] == "0"
    return sum(frame.kind == h2.PING and not frame.flags & h2.ACK for frame in connection.frames)


def until_goaway(connection: h2.Connection) -> h2.Frame:
    while True:
        got = connection.read()
        if got.kind == h2.GOAWAY:
            return got


def without_answers(connection: h2.Connection) -> list[h2.Frame]:
    """What comes until the server closes, to a client that answers nothing."""
    connection.send = lambda *parts: None  # type: ignore[method-assign]
    before = len(connection.frames)
    return connection.finish_by_connection()[before:]


def test_silence_is_pinged(identity_repository: Path) -> None:
    with connected(identity_repository, keepalive_time="200", http2_max_pings_without_data="0") as connection:
        open_stream(connection)
        for _ in range(4):
            until_ping(connection)
        assert time.monotonic() - connection.opened > 0.6


def test_without_calls_only_where_that_is_asked_for(identity_repository: Path) -> None:
    options = {"keepalive_time": "50", "keepalive_permit_without_calls": "true"}
    with connected(identity_repository, **options) as connection:
        until_ping(connection)
    options = {"keepalive_time": "50", "http2_max_pings_without_data": "0"}
    with serving(identity_repository, **options) as server, greeted(server) as idle, greeted(server) as calling:
        open_stream(calling)
        for _ in range(10):
            until_ping(calling)
        assert pings_so_far(idle) == 0, "as long as the other was pinged ten times"


def test_so_many_pings_without_data(identity_repository: Path) -> None:
    options = {"keepalive_time": "50", "http2_max_pings_without_data": "3"}
    with serving(identity_repository, **options) as server, greeted(server) as quiet, greeted(server) as talking:
        for connection in (quiet, talking):
            open_stream(connection)
        for _ in range(3):
            until_ping(quiet)
        for stream in range(3, 3 + 2 * 10, 2):
            until_ping(talking)
            assert call(talking, stream).trailers["grpc-status"] == "0"  # data in between
        assert pings_so_far(quiet) == 3, "while the other was pinged ten times"
        until_ping(quiet)  # that was data


def test_who_does_not_answer_is_closed(identity_repository: Path) -> None:
    with connected(identity_repository, keepalive_time="50", keepalive_timeout="300") as connection:
        open_stream(connection)
        frames = without_answers(connection)
        assert time.monotonic() - connection.opened > 0.3
        assert [frame.kind for frame in frames if not frame.flags & h2.ACK].count(h2.PING) == 1


def pings_until_sent_away(connection: h2.Connection) -> int:
    """Behind each ping come settings, which are no data: when they are answered, so is the ping, in one way or the other."""
    for count in range(1, 50):
        connection.send(PING + h2.settings())
        while not ((got := connection.read()).kind == h2.SETTINGS and got.flags & h2.ACK):
            if got.kind == h2.GOAWAY:
                assert int.from_bytes(got.payload[4:8], "big") == 11  # ENHANCE_YOUR_CALM
                assert got.payload[8:] == b"too_many_pings"
                return count
            assert got.kind == h2.PING and got.flags & h2.ACK
    return 0


def test_clients_that_ping_too_often_are_sent_away(identity_repository: Path) -> None:
    """The first ping, then two strikes; the third is one too many."""
    with connected(identity_repository) as connection:
        open_stream(connection)
        assert pings_until_sent_away(connection) == 4
        connection.finish_by_connection()


def test_strikes_can_be_without_limit(identity_repository: Path) -> None:
    with connected(identity_repository, http2_max_ping_strikes="0") as connection:
        assert pings_until_sent_away(connection) == 0


def test_pings_may_be_allowed_to_come_sooner(identity_repository: Path) -> None:
    options = {"http2_min_recv_ping_interval_without_data": "0"}
    with connected(identity_repository, **options) as connection:
        open_stream(connection)
        assert pings_until_sent_away(connection) == 0
    with connected(identity_repository, **options) as connection:  # but hardly ever without a call
        assert pings_until_sent_away(connection) == 4
    options["keepalive_permit_without_calls"] = "true"
    with connected(identity_repository, **options) as connection:
        assert pings_until_sent_away(connection) == 0


def test_data_in_between_forgives(identity_repository: Path) -> None:
    with connected(identity_repository) as connection:
        for stream in range(1, 41, 2):
            connection.send(PING, PING)
            assert call(connection, stream).trailers["grpc-status"] == "0"


AGE = 0.5
NOTICE = 1  # seconds in which calls are taken still


def answered_after_the_notice(server: Nereid) -> h2.Connection:
    """A connection that has had the notice that it ends, and then an answer."""
    while True:
        connection = h2.Connection(server.grpc)
        assert int.from_bytes(until_goaway(connection).payload[:4], "big") == 2**31 - 1
        assert time.monotonic() - connection.opened > 0.8 * AGE
        with contextlib.suppress(ConnectionError):
            assert call(connection, 1).trailers["grpc-status"] == "0"
            return connection
        assert time.monotonic() - connection.opened > 0.8 * AGE + NOTICE, "the call came in time"
        connection.close()  # this process did not have its turn on the machine


def with_a_stream(server: Nereid) -> h2.Connection:
    """A connection whose stream was opened before it came of age."""
    while True:
        connection = h2.Connection(server.grpc)
        with contextlib.suppress(ConnectionError):
            open_stream(connection)
            if time.monotonic() - connection.opened < 0.9 * AGE:
                return connection
        connection.close()  # this process did not have its turn on the machine


def test_old_connections_are_ended(identity_repository: Path) -> None:
    """A notice first, so that nothing that was sent meanwhile is refused; the last call; the end."""
    with Nereid(identity_repository, {"grpc-max-connection-age": str(round(AGE * 1000))}) as server:
        connection = answered_after_the_notice(server)
        frames = connection.finish_by_connection()
        connection.close()
        last = [frame for frame in frames if frame.kind == h2.GOAWAY][-1]
        assert int.from_bytes(last.payload[:4], "big") == 1
        assert int.from_bytes(last.payload[4:8], "big") == 0


def test_calls_of_old_connections_have_their_grace(identity_repository: Path) -> None:
    options: dict[str, str | list[str]] = {"grpc-max-connection-age": str(round(AGE * 1000)), "grpc-max-connection-age-grace": "400"}
    with Nereid(identity_repository, options) as server:
        connection = with_a_stream(server)
        until_goaway(connection)
        connection.finish_by_connection()
        assert time.monotonic() - connection.opened > 0.9 * AGE + 0.39
        assert not connection.calls.get(1, h2.Call()).blocks
        connection.close()


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    made = Repository(tmp_path / "models")
    made.identity("slow", extra='parameters [ { key: "execute_delay_ms" value: { string_value: "600" } } ]\n')
    made.identity("id_fp32")
    return made.path


def test_a_real_client_notices_nothing(slow: Path) -> None:
    """Calls of all kinds go on over connections that end five times a second; none fails, unless the client had no turn between the
    notice and the end, and wrote to what was closed."""
    options: dict[str, str | list[str]] = {"grpc-max-connection-age": "200"}
    data = np.zeros(2, np.float32).tobytes()
    request = {name: rawgrpc.infer_request(name, [("INPUT0", "FP32", [2], data)]) for name in ("slow", "id_fp32")}
    with Nereid(slow, options) as server, grpc.insecure_channel(server.grpc) as channel:
        infer = channel.unary_unary(
            f"/{rawgrpc.SERVICE}/ModelInfer", pb.ModelInferRequest.SerializeToString, pb.ModelInferResponse.FromString
        )
        count, heard = 0, time.monotonic()
        until = heard + 60

        def answers(name: str) -> bool:
            nonlocal heard
            assert time.monotonic() < until, "connections do not end, or all calls fail"
            begun, before = time.monotonic(), heard
            heard = begun
            try:
                return infer(request[name], timeout=60).model_name == name
            except grpc.RpcError:
                if time.monotonic() - before < NOTICE:
                    raise
                return False

        while count < 20 or _connections(server) < 5:
            count += answers("id_fp32")
        while not answers("slow"):
            pass


def _connections(server: Nereid) -> float:
    """So many over gRPC were accepted."""
    return metrics.scrape(server.metrics)["nereid_connections_accepted_total"].value(protocol="grpc")


def test_a_real_client_that_keeps_alive(identity_repository: Path) -> None:
    """A client that pings every second over an open stream for a server that allows it."""
    options: dict[str, str | list[str]] = {
        "grpc-http2-min-recv-ping-interval-without-data": "10",
        "grpc-keepalive-permit-without-calls": "true",
    }
    client = [("grpc.keepalive_time_ms", 100), ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0)]
    with Nereid(identity_repository, options) as server, grpc.insecure_channel(server.grpc, options=client) as channel:
        stream = channel.stream_stream(STREAM)(iter([]), timeout=30)
        assert stream.code() == grpc.StatusCode.OK
        live = channel.unary_unary(LIVE)
        assert live(b"", timeout=30)
