"""How long connections may wait: each time-out is proved at a second or two, and with what must not count against it."""

import json
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import metrics, procfs, rawhttp
from harness.servers import HOST, Nereid, Server

PATH = "/v2/models/id_fp32/infer"
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[3],"data":[1,2,3]}]}'
LARGE = 1 << 20  # of which nobody hears a byte before a quarter is there
SHORT = "1"
LONG = "86400"


def _options(**short: str) -> dict[str, str | list[str]]:
    names = {"header": LONG, "stall": LONG, "idle": LONG} | short
    return {f"http-{name}-timeout-secs": value for name, value in names.items()}


@pytest.fixture(scope="module")
def short_header(identity_repository: Path) -> Iterator[Server]:
    with Nereid(identity_repository, _options(header=SHORT)) as server:
        yield server


@pytest.fixture(scope="module")
def short_stall(identity_repository: Path) -> Iterator[Server]:
    with Nereid(identity_repository, _options(stall="2")) as server:
        yield server


@pytest.fixture(scope="module")
def short_idle(identity_repository: Path) -> Iterator[Server]:
    with Nereid(identity_repository, _options(idle=SHORT)) as server:
        yield server


def _open(server: Server) -> rawhttp.Connection:
    return rawhttp.Connection(HOST, server.http_port, timeout=30)


def _quiet(connection: rawhttp.Connection, seconds: float) -> bool:
    """Nothing comes for so long, not even the end."""
    return not select.select([connection.socket], [], [], seconds)[0]  # allowed: the property is that time passes and nothing is cut


def test_a_head_that_does_not_end(short_header: Server) -> None:
    for part in (b"G", b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n"):
        with _open(short_header) as connection:
            connection.send(part)
            assert connection.closed()


def test_between_requests_only_the_idle_time_counts(short_header: Server) -> None:
    """Blank lines are no begin of a head: a head that is begun on another connection after them is given up first."""
    with _open(short_header) as connection:
        for blank in (b"", b"\r\n", b"\n", b"\r\n\r\n"):
            connection.send(blank)
            short_header.process.wait_until(lambda: procfs.unread(short_header.http_port) == 0, 30)
            with _open(short_header) as other:
                other.send(b"G")
                assert other.closed()
        assert connection.ask("POST", PATH, BODY).status == 200


def test_a_connection_that_asks_nothing(short_idle: Server) -> None:
    with _open(short_idle) as fresh, _open(short_idle) as used:
        assert used.ask("POST", PATH, BODY).status == 200
        assert used.closed()
        assert fresh.closed()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_does_not_come(short_stall: Server, chunked: bool) -> None:
    headers = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(LARGE)}
    with _open(short_stall) as connection:
        connection.send(rawhttp.head("POST", PATH, headers), b"5\r\n" if chunked else b"{")
        assert connection.closed()


def test_an_answer_that_nobody_reads(short_stall: Server) -> None:
    """It is more than sockets hold: without the time-out it would be kept as long as the client likes."""

    def open_now() -> float:
        return metrics.scrape(short_stall.metrics)["nereid_connections"].value(protocol="http")

    short_stall.process.wait_until(lambda: open_now() == 0, 30)
    values = 8_000_000
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [values], "parameters": {"binary_data_size": 4 * values}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    body = text + bytes(4 * values)
    with _open(short_stall) as connection:
        connection.send(rawhttp.head("POST", PATH, {"Inference-Header-Content-Length": str(len(text))}, body), body)
        assert connection.socket.recv(1), "it is not answered"
        short_stall.process.wait_until(lambda: open_now() == 0, 30)


def _trickle(connection: rawhttp.Connection, body: bytes, seconds: float, most: float) -> int | None:
    """Sends byte after byte; how many, or None when this side was held up for longer than `most` between two of them."""
    begun = last = time.monotonic()
    sent = 0
    while last - begun < seconds:
        assert _quiet(connection, 0.2), f"cut after {last - begun:.1f} s"
        connection.send(body[sent : sent + 1])
        sent += 1
        now = time.monotonic()
        if now - last > most:
            return None
        last = now
    return sent


def test_a_body_that_comes_byte_by_byte(short_stall: Server) -> None:
    """Each byte is progress, also where the server has asked its system to be woken up by many only."""
    body = BODY + b" " * (LARGE - len(BODY))
    for _ in range(20):
        with _open(short_stall) as connection:
            connection.send(rawhttp.head("POST", PATH, body=body))
            sent = _trickle(connection, body, seconds=7, most=1)
            if sent is None:
                continue  # this machine is too busy to say
            connection.send(body[sent:])
            assert connection.answer().status == 200
            return
    raise AssertionError("no byte could be sent in time")
