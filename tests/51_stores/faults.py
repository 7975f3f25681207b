"""A proxy between the server and a store that counts what passes and spoils what it is told to. Seeded: a run can be had again."""

import asyncio
import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
STEP = 16384


@dataclass
class Exchange:
    """One request as it came by."""

    method: str
    target: str
    number: int
    is_listing: bool
    spoiled: int = 0  # requests for the same before this one
    authorization: str = ""
    status: int = 0
    body_bytes: int = 0


@dataclass
class Fault:
    """What happens to one exchange. The default is nothing."""

    status: int = 0  # answer this without asking the store
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    reset: bool = False  # the connection breaks before an answer
    keep: float = 1.0  # this share of the body is sent, then the connection breaks
    arrives: bool = False  # and all of that share arrives: the connection ends, and does not break
    flip: bool = False  # a byte of the body is another
    pause_per_step: float = 0.0  # seconds between pieces
    step: int = STEP  # bytes of a piece
    hold: bool = False  # nothing is answered at all
    bare: bool = False  # the store is not told who asks
    rewrite: tuple[str, str] = ("", "")  # in the target; only where nothing is signed

    @property
    def spoils(self) -> bool:
        return bool(self.status) or self.reset or self.keep < 1 or self.flip


Rule = Callable[[Exchange, random.Random], Fault]


def no_fault(exchange: Exchange, rng: random.Random) -> Fault:
    return Fault()


MOST = 5  # who is unlucky again and again gives up some day, and may


def at_most(rule: Rule) -> Rule:
    """No object and no listing is spoiled more often, however the dice fall."""
    return lambda exchange, rng: rule(exchange, rng) if exchange.spoiled < MOST else Fault()


def to_a_third(fault: Fault) -> Rule:
    return lambda exchange, rng: fault if rng.random() < 1 / 3 else Fault()


def errors(exchange: Exchange, rng: random.Random) -> Fault:
    if rng.random() >= 1 / 3:
        return Fault()
    status = rng.choice([500, 503, 502, 429])
    return Fault(status=status, headers={"Retry-After": "1"} if rng.random() < 0.05 else {}, body=b"<Error><Code>SlowDown</Code></Error>")


def flipped(exchange: Exchange, rng: random.Random) -> Fault:
    """Contents alone: no store says a digest of its listings."""
    return Fault(flip=not exchange.is_listing and rng.random() < 1 / 6)


def cut_listings(exchange: Exchange, rng: random.Random) -> Fault:
    return Fault(keep=rng.random()) if exchange.is_listing and exchange.number < 3 else Fault()


def cut_deep(exchange: Exchange, rng: random.Random) -> Fault:
    return Fault(keep=rng.random()) if rng.random() < 1 / 3 else Fault()


# Slower, and never wrong: kinds that each store is put through.
FAULTS: dict[str, Rule] = {
    "errors": at_most(errors),
    "resets": at_most(to_a_third(Fault(reset=True))),
    "cut": at_most(cut_deep),
    "cut-listings": at_most(cut_listings),
    "corrupted": at_most(flipped),
    "slow": lambda exchange, rng: Fault(pause_per_step=0.0002),
}


class Proxy:
    def __init__(self, upstream: int, rule: Rule = no_fault, seed: int = 1):
        self.upstream = upstream
        self.rule = rule
        self.rng = random.Random(seed)
        self.port = 0  # known as soon as it is entered
        self.exchanges: list[Exchange] = []
        self._spoiled: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._up = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    # what the tests ask

    def object_bytes(self) -> int:
        return sum(e.body_bytes for e in self.exchanges if not e.is_listing and e.status in (200, 206))

    def objects(self) -> list[Exchange]:
        return [e for e in self.exchanges if not e.is_listing]

    def listings(self) -> list[Exchange]:
        return [e for e in self.exchanges if e.is_listing]

    def forget(self) -> None:
        self.exchanges = []

    def wait_for(self, ready: Callable[[], bool], seconds: float = 120) -> None:
        with self._changed:
            assert self._changed.wait_for(ready, seconds), f"not so after {seconds} s"

    # the proxy

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._client, HOST, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._up.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self._loop), return_exceptions=True))
        self._loop.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in lines[1:] if ":" in line}
        sent = await reader.readexactly(int(headers.get("content-length", "0")))
        listing = "list-type=2" in target or "comp=list" in target or target.split("?")[0].endswith(("/o", "/token"))
        exchange = Exchange(method, target, len(self.exchanges), listing, self._spoiled[target], headers.get("authorization", ""))
        with self._changed:
            self.exchanges.append(exchange)
            self._changed.notify_all()
        fault = self.rule(exchange, self.rng)
        self._spoiled[target] += fault.spoils
        if fault.hold:
            await asyncio.Event().wait()
        if fault.reset:
            writer.transport.abort()
            return False
        if fault.status:
            extra = "".join(f"{k}: {v}\r\n" for k, v in fault.headers.items())
            writer.write(f"HTTP/1.1 {fault.status} Fault\r\n{extra}Content-Length: {len(fault.body)}\r\n\r\n".encode() + fault.body)
            await writer.drain()
            exchange.status = fault.status
            return True
        head = head.replace(*(part.encode() for part in fault.rewrite), 1) if fault.rewrite[0] else head
        if fault.bare:
            head = "\r\n".join(line for line in lines if not line.lower().startswith("authorization:")).encode("latin-1")
        return await self._pass(head + sent, writer, exchange, fault, method == "HEAD")

    async def _pass(self, request: bytes, writer: asyncio.StreamWriter, exchange: Exchange, fault: Fault, no_body: bool) -> bool:
        up_reader, up_writer = await asyncio.open_connection(HOST, self.upstream)
        try:
            up_writer.write(request)
            await up_writer.drain()
            head = await up_reader.readuntil(b"\r\n\r\n")
            body = b"" if no_body else await self._body(head, up_reader)
        finally:
            up_writer.close()
        exchange.status = int(head.split(b" ", 2)[1])
        lines = [line for line in head.decode("latin-1").split("\r\n") if line and not line.lower().startswith(("transfer-encoding:", "content-length:", "connection:"))]
        writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1"))
        if fault.flip and body:
            at = self.rng.randrange(len(body))
            body = body[:at] + bytes([body[at] ^ 0x20]) + body[at + 1 :]
        kept = body[: int(len(body) * fault.keep)]
        for at in range(0, len(kept), fault.step):
            # Counted first: who has read it finds it counted.
            exchange.body_bytes += len(kept[at : at + fault.step])
            writer.write(kept[at : at + fault.step])
            await writer.drain()
            with self._changed:
                self._changed.notify_all()
            if fault.pause_per_step:
                await self._pause(fault.pause_per_step)
        if len(kept) < len(body):
            if not fault.arrives:
                writer.transport.abort()
            return False
        await writer.drain()
        return True

    async def _body(self, head: bytes, reader: asyncio.StreamReader) -> bytes:
        text = head.decode("latin-1").lower()
        if "transfer-encoding: chunked" in text:
            body = b""
            while size := int((await reader.readline()).split(b";")[0], 16):
                body += await reader.readexactly(size)
                await reader.readline()
            return body
        for line in text.split("\r\n"):
            if line.startswith("content-length:"):
                return await reader.readexactly(int(line.split(":")[1]))
        return b""

    def _pause(self, seconds: float) -> Coroutine[None, None, None]:
        """Time passes between two pieces: that is the fault."""
        done = self._loop.create_future()
        self._loop.call_later(seconds, done.set_result, None)

        async def wait() -> None:
            await done

        return wait()

    def __enter__(self) -> Self:
        self._thread.start()
        self._up.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
