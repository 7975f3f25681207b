"""Requests of HTTP/2 on the HTTP port, frame by frame: h2frames with the fields and bodies of requests that are no calls."""

from collections.abc import Iterable

from . import h2frames as h2


def fields(method: str, path: str, headers: dict[str, str] | None = None) -> list[tuple[str, str]]:
    fixed = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost")]
    return fixed + [(name.lower(), value) for name, value in (headers or {}).items()]


def head(stream: int, fields: Iterable[tuple[str, str]], end: bool = False) -> bytes:
    block = h2.header_block(fields)
    pieces = [block[at : at + 16384] for at in range(0, len(block), 16384)]
    frames = b""
    for i, piece in enumerate(pieces):
        flags = (h2.END_HEADERS if i == len(pieces) - 1 else 0) | (h2.END_STREAM if end and i == 0 else 0)
        frames += h2.frame(h2.CONTINUATION if i else h2.HEADERS, flags, stream, piece)
    return frames


def request(stream: int, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
    """Whole, in frames that every server takes, and with its length."""
    if body is None:
        return head(stream, fields(method, path, headers), end=True)
    sized = {"content-length": str(len(body))} | (headers or {})
    data = h2.frames_of(stream, body) or [h2.frame(h2.DATA, h2.END_STREAM, stream)]
    return head(stream, fields(method, path, sized)) + b"".join(data)


class Connection(h2.Connection):
    """Asks on one stream after the other."""

    _next = 1

    def settle(self) -> None:
        """Afterwards both sides know each other's settings."""
        self.send(h2.frame(h2.PING, 0, 0, bytes(8)))
        while not (seen := self.read()).kind == h2.PING or not seen.flags & h2.ACK:
            pass

    def begin(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> int:
        stream, self._next = self._next, self._next + 2
        self.send(request(stream, method, path, body, headers))
        return stream

    def ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> h2.Call:
        return self.finish(self.begin(method, path, body, headers))
