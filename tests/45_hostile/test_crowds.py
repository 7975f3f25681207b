"""Crowds of connections that cost the server more than they cost whoever opens them."""

import contextlib
import time
from collections.abc import Iterator

import pytest

from crowd import Crowd
from harness import h2frames, rawhttp
from siege import FULL, Siege, Step, nothing, steps

IDLE = 10_000
SLOW = 2_000 if FULL else 300
SLOW_SECONDS = 60 if FULL else 5


@pytest.mark.promise
def test_idle_connections(siege: Siege) -> None:
    @contextlib.contextmanager
    def idle() -> Iterator[Step]:
        with Crowd(siege.server.http, IDLE // 2) as http, Crowd(siege.server.grpc, IDLE // 2) as grpc:
            crowds = (http, grpc)

            def pump() -> None:
                for crowd in crowds:
                    crowd.pump()

            yield pump  # all the while: how old one was when it was cut is told by when that is noticed
            pump()
            assert all(crowd.is_borne() for crowd in crowds), [min(crowd.ages, default=None) for crowd in crowds]

    siege.honest_meanwhile(idle)


@pytest.mark.promise
def test_idle_grpc_connections_after_the_handshake(siege: Siege) -> None:
    @contextlib.contextmanager
    def greeted() -> Iterator[Step]:
        with Crowd(siege.server.grpc, IDLE // 5) as crowd:
            crowd.send_all(h2frames.PREFACE + h2frames.settings())
            yield crowd.pump
            deadline = time.monotonic() + 120
            while not all(crowd.received.values()):  # behind everything else, where crowds came before
                crowd.pump(0.1)
                assert time.monotonic() < deadline, "not all are greeted"
            assert crowd.is_borne()

    siege.honest_meanwhile(greeted)


class Trickle:
    """Crowds whose requests come a byte a second: of each kind (address, what comes at once, what trickles) as many."""

    def __init__(self, kinds: list[tuple[str, bytes, bytes]]):
        self.kinds = kinds

    def __enter__(self) -> Step:
        self.crowds = [Crowd(address, SLOW // len(self.kinds)) for address, _, _ in self.kinds]
        for crowd, (_, first, _) in zip(self.crowds, self.kinds, strict=True):
            crowd.send_all(first)
        self.begun = time.monotonic()
        self.sent = [0] * len(self.kinds)
        return self.step

    def __exit__(self, *_: object) -> None:
        for crowd in self.crowds:
            crowd.__exit__(None, None, None)

    def step(self) -> None:
        for i, (_, _, text) in enumerate(self.kinds):
            if self.sent[i] <= time.monotonic() - self.begun:
                self.crowds[i].send_all(text[self.sent[i] : self.sent[i] + 1])
                self.sent[i] += 1
            self.crowds[i].pump()


@pytest.mark.promise
def test_a_byte_a_second(siege: Siege) -> None:
    body = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[1]}]}' + b" " * 1000
    head = rawhttp.head("POST", "/v2/models/id_fp32/infer", body=body)
    call = h2frames.header_block(h2frames.call_headers("/inference.GRPCInferenceService/ModelInfer"))
    greeting = h2frames.PREFACE + h2frames.settings()
    begun = greeting + h2frames.frame(h2frames.HEADERS, h2frames.END_HEADERS, 1, call)
    message = h2frames.frame(h2frames.DATA, 0, 1, h2frames.message(bytes(1000)))
    trickle = Trickle(
        [
            (siege.server.http, b"", head),
            (siege.server.http, head, body),
            (siege.server.grpc, b"", begun),
            (siege.server.grpc, begun, message),
        ]
    )
    siege.honest_meanwhile(lambda: trickle, turns=2)  # long ones, of eight bytes each
    with trickle as step:
        while time.monotonic() < trickle.begun + SLOW_SECONDS:
            step()
            trickle.crowds[0].pump(0.05)
        siege.answered_soon(step)
        assert min(trickle.sent) >= SLOW_SECONDS


def test_connections_that_come_and_go(siege: Siege) -> None:
    address = siege.server.http

    def storm() -> None:
        with Crowd(address, 50) as crowd:
            crowd.send_all(b"GET /v2/health/live HTTP/1.1\r\n")

    siege.honest_meanwhile(steps(storm))


def test_slow_readers_of_large_answers(siege: Siege) -> None:
    """Each asks for 4 MiB and takes nothing of it: what waits for them is bounded, and goes with them."""
    count, size = (200, 4 << 20) if FULL else (40, 4 << 20)
    request = (
        '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[%d],"parameters":{"binary_data_size":%d}}],'
        '"parameters":{"binary_data_output":true}}' % (size // 4, size)
    ).encode()
    body = request + bytes(size)
    length = {"Inference-Header-Content-Length": str(len(request))}
    text = rawhttp.head("POST", "/v2/models/id_fp32/infer", length, body) + body

    @contextlib.contextmanager
    def unread() -> Iterator[Step]:
        with Crowd(siege.server.http, count, receive_bytes=4096) as crowd:
            left = dict.fromkeys(crowd.members, 0)
            deadline = time.monotonic() + 120
            while left:
                for number, at in list(left.items()):
                    left[number] = at + crowd.send(number, text[at : at + (1 << 18)])
                    if left[number] == len(text) or number not in crowd.members:
                        del left[number]
                assert time.monotonic() < deadline, "the server does not take the requests"
            yield nothing

    siege.honest_meanwhile(unread, turns=2)
