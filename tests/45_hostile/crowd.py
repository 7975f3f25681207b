"""Many connections at once, none of which is waited for: what can be written is written, what comes is dropped."""

import contextlib
import select
import socket
import time
from types import TracebackType
from typing import Self


# Seconds after which the server closes who has begun a request and does not go on, or has asked nothing: its shortest time-out, less what
# a turn of a loop may take, which counts from its own begin.
PATIENCE = 60 - 1


class Crowd:
    def __init__(self, address: str, count: int, receive_bytes: int | None = None):
        host, port = address.rsplit(":", 1)
        self._address = (host, int(port))
        self._receive_bytes = receive_bytes
        self.members: dict[int, socket.socket] = {}
        self.received: dict[int, int] = {}
        self.left: dict[int, memoryview] = {}  # of the piece that each is sending
        self.heard: dict[int, bytes] = {}  # the beginning of what each was told
        self.opened: dict[int, float] = {}  # when, or a little before
        self.ages: list[float] = []  # of those that the server has closed, in seconds, and more by as long as nobody has pumped
        self._poll = select.epoll()
        self.grow(count, b"")

    def grow(self, count: int, first: bytes) -> None:
        """Opens connections until there are so many; each new one sends `first`."""
        while len(self.members) < count:
            member = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            if self._receive_bytes:
                member.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_bytes)
            member.settimeout(60)
            opened = time.monotonic()
            member.connect(self._address)
            member.setblocking(False)
            self.members[member.fileno()] = member
            self.opened[member.fileno()] = opened
            self.received[member.fileno()] = 0
            self._poll.register(member.fileno(), select.EPOLLIN)
            self.heard[member.fileno()] = b""
            self.send(member.fileno(), first)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members.values():
            member.close()
        self._poll.close()

    def send(self, number: int, data: bytes | memoryview) -> int:
        """How many bytes the connection took; a closed one takes none."""
        try:
            return self.members[number].send(data) if number in self.members else 0
        except BlockingIOError:
            return 0
        except ConnectionError:
            with contextlib.suppress(BlockingIOError):
                while number in self.members:  # what came before that
                    self._take(number)
            if number in self.members:
                self._gone(number)
            return 0

    def send_all(self, data: bytes) -> None:
        for number in list(self.members):
            self.send(number, data)

    def stream(self, piece: memoryview) -> int:
        """Each sends the same piece again and again, from where it came to; returns how many bytes were taken."""
        taken = 0
        for number in list(self.members):
            left = self.left.get(number) or piece
            sent = self.send(number, left)
            if number in self.members:
                self.left[number] = left[sent:]
            taken += sent
        return taken

    def _gone(self, number: int) -> None:
        self.left.pop(number, None)
        member = self.members.pop(number)
        self._poll.unregister(number)
        member.close()
        self.ages.append(time.monotonic() - self.opened.pop(number))

    def pump(self, seconds: float = 0.0) -> int:
        """Takes what came in; returns from how many connections. Waits for the first so long."""
        events = self._poll.poll(seconds, 4096)
        for number, _ in events:
            with contextlib.suppress(BlockingIOError):
                self._take(number)
        return len(events)

    def _take(self, number: int) -> None:
        try:
            data = self.members[number].recv(1 << 16)
        except ConnectionError:
            data = b""
        if data:
            self.received[number] += len(data)
            self.heard[number] = (self.heard[number] + data)[:1024]
        else:
            self._gone(number)

    def is_borne(self) -> bool:
        """The server has closed none of them before its time."""
        return all(age >= PATIENCE for age in self.ages)

    def until_closed(self, seconds: float = 30) -> None:
        """Waits until the server has closed them all."""
        deadline = time.monotonic() + seconds
        while self.members:
            self.pump(0.1)
            assert time.monotonic() < deadline, f"{len(self.members)} connections are still open"
