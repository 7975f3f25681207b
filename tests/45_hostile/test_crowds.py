"""Crowds of connections that cost the server more than they cost whoever opens them."""

import time

import pytest

from crowd import Crowd
from harness import h2frames, rawhttp
from siege import FULL, Siege

IDLE = 10_000
SLOW = 2_000 if FULL else 300
SLOW_SECONDS = 60 if FULL else 5


@pytest.mark.promise
def test_idle_connections(siege: Siege) -> None:
    with Crowd(siege.server.http, IDLE // 2) as http, Crowd(siege.server.grpc, IDLE // 2) as grpc:
        siege.honest_meanwhile()
        for crowd in (http, grpc):
            crowd.pump()
            assert crowd.is_borne()


@pytest.mark.promise
def test_idle_grpc_connections_after_the_handshake(siege: Siege) -> None:
    count = IDLE // 5
    with Crowd(siege.server.grpc, count) as crowd:
        crowd.send_all(h2frames.PREFACE + h2frames.settings())
        siege.honest_meanwhile(crowd.pump)
        deadline = time.monotonic() + 120
        while not all(crowd.received.values()):  # behind everything else, where crowds came before
            crowd.pump(0.1)
            assert time.monotonic() < deadline, "not all are greeted"
        assert crowd.is_borne()


@pytest.mark.promise
def test_a_byte_a_second(siege: Siege) -> None:
    body = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[1]}]}' + b" " * 1000
    head = rawhttp.head("POST", "/v2/models/id_fp32/infer", body=body)
    call = h2frames.header_block(h2frames.call_headers("/inference.GRPCInferenceService/ModelInfer"))
    greeting = h2frames.PREFACE + h2frames.settings()
    begun = greeting + h2frames.frame(h2frames.HEADERS, h2frames.END_HEADERS, 1, call)
    message = h2frames.frame(h2frames.DATA, 0, 1, h2frames.message(bytes(1000)))
    kinds = [
        (siege.server.http, b"", head),
        (siege.server.http, head, body),
        (siege.server.grpc, b"", begun),
        (siege.server.grpc, begun, message),
    ]
    crowds = [Crowd(address, SLOW // len(kinds)) for address, _, _ in kinds]
    begin = time.monotonic()
    sent = [0] * len(kinds)

    def trickle() -> None:
        for i, (_, _, text) in enumerate(kinds):
            if sent[i] <= time.monotonic() - begin:
                crowds[i].send_all(text[sent[i] : sent[i] + 1])
                sent[i] += 1
            crowds[i].pump()

    for crowd, (_, first, _) in zip(crowds, kinds, strict=True):
        crowd.send_all(first)
    siege.honest_meanwhile(trickle)
    while time.monotonic() < begin + SLOW_SECONDS:
        trickle()
        crowds[0].pump(0.05)
    siege.honest_meanwhile(trickle)
    assert min(sent) >= SLOW_SECONDS
    for crowd in crowds:
        crowd.__exit__(None, None, None)


def test_connections_that_come_and_go(siege: Siege) -> None:
    address = siege.server.http

    def storm() -> None:
        with Crowd(address, 50) as crowd:
            crowd.send_all(b"GET /v2/health/live HTTP/1.1\r\n")

    siege.honest_meanwhile(storm)


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
    with Crowd(siege.server.http, count, receive_bytes=4096) as crowd:
        left = dict.fromkeys(crowd.members, 0)
        deadline = time.monotonic() + 120
        while left:
            for number, at in list(left.items()):
                left[number] = at + crowd.send(number, text[at : at + (1 << 18)])
                if left[number] == len(text) or number not in crowd.members:
                    del left[number]
            assert time.monotonic() < deadline, "the server does not take the requests"
        siege.honest_meanwhile()
