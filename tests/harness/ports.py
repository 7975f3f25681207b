"""Free TCP ports below the ephemeral range, so that no outgoing connection takes one meanwhile."""

import random
import socket

_given: set[int] = set()


def free_port() -> int:
    for _ in range(1000):
        port = random.randint(12000, 32000)
        if port in _given:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            try:
                sock.bind(("0.0.0.0", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise RuntimeError("no free port between 12000 and 32000")
