"""Asks TensorFlow, called directly in a process of its own (tensorflow_peer.py), what a graph computes."""

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from harness import paths

PEER = Path(__file__).with_name("tensorflow_peer.py")
LIBRARY = paths.BUILD / "backends" / "tensorflow" / "libtensorflow_cc.so.2"


@cache
def _peer() -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | {"TF_CPP_MIN_LOG_LEVEL": "1", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    command = [sys.executable, str(PEER), str(paths.need(LIBRARY, "tools/backends.sh"))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def run(graph: bytes | str, feeds: dict[str, np.ndarray], fetches: Sequence[str] = (), targets: Sequence[str] = (), times: int = 0) -> list[np.ndarray]:
    """graph: a GraphDef, or where a SavedModel lies. An operation's name may be followed by ":INDEX" of a result.

    times: if not 0, so many times behind the first, and instead of the results: seconds, and seconds of a processor, of each
    """
    peer = _peer()
    assert peer.stdin and peer.stdout
    content = pickle.dumps((graph, feeds, list(fetches), list(targets), times))
    peer.stdin.write(struct.pack("<I", len(content)) + content)
    peer.stdin.flush()
    head = peer.stdout.read(4)
    assert len(head) == 4, "the process with TensorFlow has ended: what it says is above"
    answer = pickle.loads(peer.stdout.read(struct.unpack("<I", head)[0]))
    assert not isinstance(answer, str), answer
    return answer
