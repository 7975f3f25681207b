"""HTTP/2 frames that cost little to send: each flood is ended by the server, and others do not feel it."""

import contextlib
import select
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from harness import h2frames as h2
from harness import http2
from siege import FULL, Siege, Step, nothing

INFER = "/inference.GRPCInferenceService/ModelInfer"
# What opens a stream on each port that speaks HTTP/2.
BLOCKS = {
    "grpc": h2.header_block(h2.call_headers(INFER)),
    "http": h2.header_block(http2.fields("POST", "/v2/models/id_fp32/infer")),
}
FRAMES = 400_000 if FULL else 60_000  # at most, of a flood that must be ended before
PING = h2.frame(h2.PING, 0, 0, bytes(8))
SEND_BUFFER = 16384  # so little of a flood lies here unread: of what was sent, the server has had all but the first hundred KiB


def streams() -> Iterator[int]:
    return iter(range(1, 2 * FRAMES, 2))


def resets(block: bytes) -> Iterator[bytes]:
    cancel = struct.pack(">I", 8)
    for stream in streams():
        yield h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block) + h2.frame(h2.RST_STREAM, 0, stream, cancel)


def made_resets(block: bytes) -> Iterator[bytes]:
    """The server is made to reset the streams itself: a window update of nothing is an error of the stream."""
    for stream in streams():
        yield h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block) + h2.frame(
            h2.WINDOW_UPDATE, 0, stream, bytes(4)
        )


def pings(block: bytes) -> Iterator[bytes]:
    for _ in range(FRAMES):
        yield PING


def settings(block: bytes) -> Iterator[bytes]:
    for i in range(FRAMES):
        yield h2.settings({h2.INITIAL_WINDOW_SIZE: 65535 + i % 2})


def many_settings(block: bytes) -> Iterator[bytes]:
    entry = struct.pack(">HI", h2.INITIAL_WINDOW_SIZE, 65535)
    for _ in range(FRAMES):
        yield h2.frame(h2.SETTINGS, 0, 0, entry * 100)


def continuations(block: bytes) -> Iterator[bytes]:
    yield h2.frame(h2.HEADERS, 0, 1, block)
    piece = h2.header_block([("x-a", "b" * 1000)])
    for _ in range(FRAMES):
        yield h2.frame(h2.CONTINUATION, 0, 1, piece)


def empty_continuations(block: bytes) -> Iterator[bytes]:
    yield h2.frame(h2.HEADERS, 0, 1, block)
    for _ in range(FRAMES):
        yield h2.frame(h2.CONTINUATION, 0, 1)


def unknown_frames(block: bytes) -> Iterator[bytes]:
    """Frames of a type that nobody knows must be passed over: they are no error, but so many are useless."""
    for _ in range(FRAMES):
        yield h2.frame(0x42, 0, 0, b"12345678")


def empty_data(block: bytes) -> Iterator[bytes]:
    yield h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block)
    for _ in range(FRAMES):
        yield h2.frame(h2.DATA, 0, 1)


def padding(block: bytes) -> Iterator[bytes]:
    yield h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block)
    for _ in range(FRAMES):
        yield h2.frame(h2.DATA, h2.PADDED, 1, bytes([3]) + bytes(3))


def priorities(block: bytes) -> Iterator[bytes]:
    for i in range(FRAMES):
        yield h2.frame(2, 0, 2 * i + 1, struct.pack(">IB", 0, 16))


PROMISED = [resets, made_resets, pings, continuations, empty_continuations]
ENDED = [resets, made_resets, pings, settings, many_settings, continuations, empty_continuations]
ENDED += [unknown_frames, empty_data, padding, priorities]


class Flood:
    """One connection after the other, each flooded until the server ends it or the frames are used up."""

    def __init__(self, address: str, block: bytes, frames: object):
        self.address = address
        self.block = block
        self.frames = frames
        self.ended = 0
        self.used_up = 0

    @contextlib.contextmanager
    def attack(self) -> Iterator[Step]:
        self._open()
        try:
            yield self.step
        finally:
            self.socket.close()

    def _open(self) -> None:
        host, port = self.address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self.socket.setblocking(False)
        self.left = b""
        self.stream = self._batches()
        self.left = h2.PREFACE + h2.settings()

    def _batches(self) -> Iterator[bytes]:
        batch = b""
        for frame in self.frames(self.block):  # type: ignore[operator]
            batch += frame
            if len(batch) > 16384:
                yield batch
                batch = b""
        yield batch

    def _over(self, ended: bool) -> None:
        self.ended += ended
        self.used_up += not ended
        self.socket.close()
        self._open()

    def step(self) -> None:
        """Sends what the socket takes, for a few milliseconds. Reads nothing, as a flood does."""
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            if not self.left:
                self.left = next(self.stream, b"")
                if not self.left:
                    self._over(False)
                    continue
            try:
                self.left = self.left[self.socket.send(self.left) :]
            except BlockingIOError:
                # It takes no more while nobody reads: see whether the server has ended it.
                if self._closed_meanwhile():
                    self._over(True)
                else:
                    select.select([], [self.socket], [], max(0, until - time.monotonic()))
            except ConnectionError:
                self._over(True)

    def _closed_meanwhile(self) -> bool:
        try:
            while self.socket.recv(1 << 16):
                pass
        except BlockingIOError:
            return False
        except ConnectionError:
            pass
        return True


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(frames, id=frames.__name__, marks=[pytest.mark.promise] if frames in PROMISED else [])
        for frames in ENDED
    ],
)
@pytest.mark.parametrize("port", BLOCKS)
def test_flood(siege: Siege, frames: object, port: str) -> None:
    flood = Flood(getattr(siege.server, port), BLOCKS[port], frames)
    siege.honest_meanwhile(flood.attack)
    deadline = time.monotonic() + 120
    with flood.attack() as step:
        while not flood.ended + flood.used_up:
            step()
            assert time.monotonic() < deadline, "the server neither ends the flood nor takes it"
    siege.note("floods_ended_by_the_server", flood.ended)
    assert flood.used_up == 0, f"{FRAMES} frames were taken"


@pytest.mark.parametrize(("port", "limit"), [("grpc", 1024), ("http", 256)])
def test_streams_over_the_limit(siege: Siege, port: str, limit: int) -> None:
    """Requests that never send their body: those over the limit are refused, the rest wait. Who opens a thousand more than he may
    without a whole message is sent away (tests/40_e2e/test_http2.py)."""
    count = limit + 900

    @contextlib.contextmanager
    def waiting() -> Iterator[Step]:
        with h2.Connection(getattr(siege.server, port)) as connection:
            for stream in range(1, 2 * count, 2):
                connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, BLOCKS[port]))
            while sum(call.reset == 7 for call in connection.calls.values()) < count - limit:  # REFUSED_STREAM
                connection.read()
            connection.send(PING)
            while connection.read().kind != h2.PING:
                pass
            assert sum(call.ended for call in connection.calls.values()) == count - limit
            yield nothing

    siege.honest_meanwhile(waiting)
