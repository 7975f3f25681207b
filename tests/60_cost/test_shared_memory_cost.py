"""What 16 MiB in and out through shared memory cost the server, beside copying them once in this very run.

CPU time of the server process for a number of requests, and of this process for as many copies between two pieces of memory of that size,
by turns. Of each the least of its turns counts, as in test_cost.py: rounds are repeated until the cost is within its bound.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness import processors, procfs, rawhttp
from harness.regions import Memory, body, part, register
from harness.repository import Repository
from harness.servers import HOST, Nereid

BYTES = 16 << 20
REQUESTS = 40  # of a turn
FEWEST, ROUNDS = 5, 100
COPIES, EXTRA_US = 2, 20  # the promise: so many copies, and so much more


def copy_us(source: np.ndarray, target: np.ndarray) -> float:
    """CPU time of one copy."""
    before = procfs.cpu_ns(os.getpid())
    for _ in range(REQUESTS):
        np.copyto(target, source)
    return (procfs.cpu_ns(os.getpid()) - before) / 1000 / REQUESTS


def request_us(server: Nereid, asked: bytes) -> float:
    """CPU time of the server for one request; each is answered well."""
    with rawhttp.Connection(HOST, server.http_port) as connection:
        before = procfs.cpu_ns(server.pid)
        for _ in range(REQUESTS):
            assert connection.ask("POST", "/v2/models/id_fp32/infer", asked).status == 200
        return (procfs.cpu_ns(server.pid) - before) / 1000 / REQUESTS


def test_sixteen_mib_cost_two_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    made = Repository(tmp_path / "models")
    made.identity("id_fp32")
    values = np.arange(BYTES // 4, dtype=np.float32)
    target = np.zeros_like(values)
    asked = body([BYTES // 4], part("in", BYTES), part("out", BYTES))
    least_copy = least_request = float("inf")
    with processors.on(processors.apart()[0]):
        server = Nereid(made.path, {"allow-client-shm": "true"}).start()
    try:
        with Memory(BYTES, values.tobytes()) as given, Memory(BYTES, bytes(BYTES)) as out:
            assert register(server, "in", given.key, BYTES).status == register(server, "out", out.key, BYTES).status == 200
            for turn in range(1, ROUNDS + 1):
                with processors.on(processors.apart()[0]):
                    least_copy = min(least_copy, copy_us(values, target))
                with processors.on(processors.apart()[1]):
                    least_request = min(least_request, request_us(server, asked))
                if turn >= FEWEST and least_request <= COPIES * least_copy + EXTRA_US:
                    break
            assert out.read(BYTES) == given.read(BYTES)
        server.stop()
    except BaseException:
        server.kill()
        raise
    figures = f"a request {least_request:.0f} us, a copy {least_copy:.0f} us"
    record_property("cost", figures)
    with capsys.disabled():
        print(f"\n  16 MiB by shared memory: {figures}")
    assert least_request <= COPIES * least_copy + EXTRA_US, figures
