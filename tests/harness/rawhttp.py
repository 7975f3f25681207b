"""HTTP/1.1 by hand over one socket: what is sent is exactly what the caller wrote."""

import contextlib
import json
import socket
import struct
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


class Closed(ConnectionError):
    """The server closed the connection before a whole answer had come."""


@dataclass
class Answer:
    status: int
    reason: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    size: int = 0  # bytes on the wire, head and body

    def header(self, name: str) -> str | None:
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    def json(self) -> Any:
        return json.loads(self.body)


def head(method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> bytes:
    """A request head; Content-Length is added for a body unless headers give a length themselves."""
    lines = {"Host": "localhost", **(headers or {})}
    names = {name.lower() for name in lines}
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        lines["Content-Length"] = str(len(body))
    text = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
    return text.encode("latin-1") + b"\r\n"


class Connection:
    def __init__(self, host: str, port: int, timeout: float = 60):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._left = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Closes, and says so at once, also to a server that does not read what was sent before."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def vanish(self) -> None:
        """Closes; and the system forgets the connection after a second instead of a minute. A server cannot tell who closed it from who
        only sends no more, before this system says so to a probe of the server's."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, 1)
        self.close()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.socket.sendall(part)

    def _more(self) -> None:
        part = self.socket.recv(1 << 20)
        if not part:
            raise Closed(f"closed after {bytes(self._left)!r}")
        self._left += part

    def _until(self, mark: bytes) -> bytes:
        while (at := self._left.find(mark)) < 0:
            self._more()
        found = bytes(self._left[: at + len(mark)])
        del self._left[: at + len(mark)]
        return found

    def _exactly(self, count: int) -> bytes:
        while len(self._left) < count:
            self._more()
        found = bytes(self._left[:count])
        del self._left[:count]
        return found

    def _chunked(self) -> tuple[bytes, int]:
        body, size = bytearray(), 0
        while True:
            line = self._until(b"\r\n")
            count = int(line.split(b";")[0], 16)
            chunk = self._exactly(count + 2)
            size += len(line) + len(chunk)
            if count == 0:
                return bytes(body), size
            body += chunk[:-2]

    def answer(self, to_head: bool = False) -> Answer:
        """Reads one answer; to_head: the answer to a HEAD request, which has no body."""
        raw = self._until(b"\r\n\r\n")
        first, *rest = raw.decode("latin-1").split("\r\n")[:-2]
        _version, status, reason = (first.split(" ", 2) + [""])[:3]
        headers = [(k, v.strip()) for k, v in (line.split(":", 1) for line in rest)]
        found = Answer(int(status), reason, headers, b"", len(raw))
        if found.status < 200 or found.status in (204, 304) or to_head:
            return found
        if (found.header("Transfer-Encoding") or "").lower() == "chunked":
            found.body, size = self._chunked()
            found.size += size
        else:
            found.body = self._exactly(int(found.header("Content-Length") or "0"))
            found.size += len(found.body)
        return found

    def closed(self) -> bool:
        """Waits for the server's end of the connection; False when it sends something instead."""
        if self._left:
            return False
        try:
            self._left += self.socket.recv(1)
        except ConnectionError:
            return True
        return not self._left

    def rest(self) -> bytes:
        """What comes behind the answers that were read: this side says that it sends no more, and reads until the server closes."""
        with contextlib.suppress(OSError):  # the server has closed already
            self.socket.shutdown(socket.SHUT_WR)
            while part := self.socket.recv(1 << 16):
                self._left += part
        return bytes(self._left)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        self.send(head(method, path, headers, body) + (body or b""))
        return self.answer(to_head=method == "HEAD")


def request(
    host: str,
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    timeout: float = 60,
) -> Answer:
    with Connection(host, port, timeout) as connection:
        return connection.ask(method, path, body, headers)


def get(address: str, path: str) -> Answer:
    host, port = address.rsplit(":", 1)
    return request(host, int(port), "GET", path)


def post(
    address: str, path: str, body: bytes | dict[str, Any], headers: dict[str, str] | None = None
) -> Answer:
    host, port = address.rsplit(":", 1)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(host, int(port), "POST", path, data, headers)
