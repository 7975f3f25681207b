"""Over TLS the last record of an answer went out as if another followed, where the answer had several pieces that fit into one record: the kernel
held it back for 200 ms. Each page of metrics did."""

import time
from pathlib import Path

from harness import tls
from harness.repository import Repository

HELD_S = 0.2  # the shortest time after which the kernel sends what was to wait for more
TURNS = 100


def test_a_page_of_metrics_is_not_held_back(tmp_path: Path) -> None:
    """One of them came sooner than the kernel sends what waits, which none did on the fastest machine: 205 ms. Now they take one."""
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    authority = tls.Authority(tmp_path / "authority")
    with tls.Secure(repository.path, tls.options(authority.sign())) as server, tls.Connection(server.metrics_port, tls.context(authority)) as connection:
        least = HELD_S
        for _ in range(TURNS):
            begun = time.monotonic()
            assert connection.ask("GET", "/metrics").status == 200
            least = min(least, time.monotonic() - begun)
            if least < HELD_S / 2:
                break
    assert least < HELD_S / 2, f"the fastest of {TURNS} took {least} s"
