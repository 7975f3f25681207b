"""HTTP/2 by hand: frames are built byte by byte, so that a test sends exactly what it says.

Header blocks are written as plain literals; what the server compressed is read with libnghttp2's
decoder, which is not the code under test on this side of the connection.
"""

import contextlib
import ctypes
import ctypes.util
import socket
import ssl
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
INITIAL_WINDOW_SIZE = 4
MAX_CONCURRENT_STREAMS = 3


@dataclass(frozen=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def settings(values: dict[int, int] | None = None) -> bytes:
    return frame(
        SETTINGS, 0, 0, b"".join(struct.pack(">HI", key, value) for key, value in (values or {}).items())
    )


def _length(count: int) -> bytes:
    """An HPACK integer with a 7-bit prefix; no Huffman coding."""
    if count < 127:
        return bytes([count])
    rest, out = count - 127, b"\x7f"
    while rest >= 128:
        out, rest = out + bytes([rest % 128 + 128]), rest // 128
    return out + bytes([rest])


def header_block(headers: Iterable[tuple[str, str]]) -> bytes:
    """Each header as a literal without indexing, with a new name."""
    block = b""
    for name, value in headers:
        raw_name, raw_value = name.encode(), value.encode()
        block += b"\0" + _length(len(raw_name)) + raw_name + _length(len(raw_value)) + raw_value
    return block


def call_headers(path: str, **more: str) -> list[tuple[str, str]]:
    fixed = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
    fixed += [("content-type", "application/grpc"), ("te", "trailers")]
    return fixed + [(name.replace("_", "-"), value) for name, value in more.items()]


def message(body: bytes, compressed: int = 0) -> bytes:
    """A gRPC message: the 5-byte prefix and the body."""
    return bytes([compressed]) + len(body).to_bytes(4, "big") + body


def frames_of(stream: int, data: bytes, size: int = 16384) -> list[bytes]:
    """DATA frames of what an ordinary peer takes, the last of which ends the stream."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [frame(DATA, END_STREAM if i == len(pieces) else 0, stream, piece) for i, piece in enumerate(pieces, 1)]


class _Pair(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.POINTER(ctypes.c_uint8)),
        ("value", ctypes.POINTER(ctypes.c_uint8)),
        ("namelen", ctypes.c_size_t),
        ("valuelen", ctypes.c_size_t),
        ("flags", ctypes.c_uint8),
    ]


class _Inflater:
    _EMIT, _FINAL = 0x02, 0x01

    def __init__(self) -> None:
        self._lib = ctypes.CDLL(ctypes.util.find_library("nghttp2"))
        self._lib.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        self._state = ctypes.c_void_p()
        assert self._lib.nghttp2_hd_inflate_new(ctypes.byref(self._state)) == 0

    def close(self) -> None:
        self._lib.nghttp2_hd_inflate_del(self._state)

    def inflate(self, block: bytes) -> list[tuple[str, str]]:
        headers, pair, flags, at = [], _Pair(), ctypes.c_int(0), 0
        while True:
            taken = self._lib.nghttp2_hd_inflate_hd2(
                self._state,
                ctypes.byref(pair),
                ctypes.byref(flags),
                block[at:],
                ctypes.c_size_t(len(block) - at),
                1,
            )
            assert taken >= 0, f"header block does not decode: {block!r}"
            at += taken
            if flags.value & self._EMIT:
                name, value = (
                    ctypes.string_at(p, n)
                    for p, n in ((pair.name, pair.namelen), (pair.value, pair.valuelen))
                )
                headers.append((name.decode(), value.decode()))
            if flags.value & self._FINAL:
                self._lib.nghttp2_hd_inflate_end_headers(self._state)
                return headers


@dataclass
class Call:
    """What came back on one stream."""

    lines: list[list[tuple[str, str]]] = field(default_factory=list)  # headers, trailers, as they came
    blocks: list[dict[str, str]] = field(default_factory=list)  # the same, by name
    data: bytes = b""
    ended: bool = False
    reset: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        assert self.blocks, f"no headers came: {self}"
        return self.blocks[0]

    @property
    def trailers(self) -> dict[str, str]:
        assert self.blocks, f"no headers came: {self}"
        return self.blocks[-1]

    def messages(self) -> list[bytes]:
        found, at = [], 0
        while at < len(self.data):
            compressed, length = struct.unpack_from(">BI", self.data, at)
            assert compressed == 0
            found.append(self.data[at + 5 : at + 5 + length])
            at += 5 + length
        assert at == len(self.data), "the last message is cut"
        return found


class Connection:
    """Answers SETTINGS and PING by itself, and opens the windows as wide as they go."""

    def __init__(
        self, address: str, timeout: float = 60, start: bool = True, initial: dict[int, int] | None = None, context: ssl.SSLContext | None = None
    ):
        host, port = address.rsplit(":", 1)
        self.opened = time.monotonic()  # or a little later
        self.socket = socket.create_connection((host, int(port)), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.frames: list[Frame] = []
        self.calls: dict[int, Call] = {}
        self._inflater = _Inflater()
        self._block = b""
        if start:
            self.send(
                PREFACE,
                settings(initial or {INITIAL_WINDOW_SIZE: 2**31 - 1}),
                frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 65536)),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()
        self._inflater.close()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.socket.sendall(part)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("closed by the server")
            data += part
        return data

    def read(self) -> Frame:
        """The next frame, after what it asks for was done."""
        head = self._exactly(9)
        got = Frame(
            head[3],
            head[4],
            int.from_bytes(head[5:], "big") & 0x7FFFFFFF,
            self._exactly(int.from_bytes(head[:3], "big")),
        )
        self.frames.append(got)
        if got.kind == SETTINGS and not got.flags & ACK:
            self._reply(frame(SETTINGS, ACK, 0))
        elif got.kind == PING and not got.flags & ACK:
            self._reply(frame(PING, ACK, 0, got.payload))
        elif got.kind in (DATA, HEADERS, CONTINUATION, RST_STREAM):
            self._on_stream(got)
        return got

    def _reply(self, data: bytes) -> None:
        """A server that has closed the connection takes it no more; what it said before that is still to be read."""
        with contextlib.suppress(ConnectionError):
            self.send(data)

    def _on_stream(self, got: Frame) -> None:
        call = self.calls.setdefault(got.stream, Call())
        if got.kind == RST_STREAM:
            call.reset, call.ended = int.from_bytes(got.payload, "big"), True
            return
        if got.kind == DATA:
            call.data += got.payload
        else:
            self._block += got.payload
            if got.flags & END_HEADERS:
                call.lines.append(self._inflater.inflate(self._block))
                call.blocks.append(dict(call.lines[-1]))
                self._block = b""
        if got.kind != CONTINUATION and got.flags & END_STREAM:
            call.ended = True

    def finish(self, stream: int) -> Call:
        """Reads until the stream has ended."""
        while not self.calls.setdefault(stream, Call()).ended:
            self.read()
        return self.calls[stream]

    def finish_by_connection(self) -> list[Frame]:
        """Reads until the server closes; returns every frame that came."""
        try:
            while True:
                self.read()
        except (ConnectionError, TimeoutError) as error:
            assert not isinstance(error, TimeoutError), "the server keeps the connection open"
        return self.frames
