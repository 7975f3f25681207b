"""Free TCP ports below the ephemeral range, so that no outgoing connection takes one meanwhile.

Tests that run beside others are told theirs: NEREID_TEST_PORTS=FIRST-LAST."""

import os
import random
import socket

FIRST, LAST = (int(port) for port in os.environ.get("NEREID_TEST_PORTS", "12000-32000").split("-"))
_given: dict[int, None] = {}  # the oldest first


def free_port() -> int:
    if len(_given) > (LAST - FIRST) // 2:
        del _given[next(iter(_given))]  # who got it is gone, or has it bound
    for _ in range(1000):
        port = random.randint(FIRST, LAST - 1)
        if port in _given:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            try:
                sock.bind(("0.0.0.0", port))
            except OSError:
                continue
        _given[port] = None
        return port
    raise RuntimeError(f"no free port between {FIRST} and {LAST}")
