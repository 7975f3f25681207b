"""What a runtime allocates between the layers of a network: the heap keeps it for the next run."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import paths, procfs
from harness.repository import Repository
from harness.servers import Nereid, Server

import torch_oracle
from clients import ask, parameters, tensor

HEAVY = 'backend: "pytorch"\n' + tensor("input", "x", "FP32", [1, 1]) + tensor("output", "y__0", "FP32", [1, 1])


ONES = {"x": np.ones((1, 1), np.float32)}


@pytest.fixture(params=["", parameters({"ISOLATION": "process"})], ids=["in_the_server", "in_a_process_of_its_own"])
def heavy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, int]]:
    """A server, and the process in which a run of its model allocates 1 MiB eight times."""
    made = Repository(tmp_path / "models")
    torch_oracle.save("Heavy", made.model("heavy", HEAVY + request.param))
    with Nereid(made.path) as server:
        yield server, procfs.children(server.pid)[0] if request.param else server.pid


def test_is_not_mapped_anew(heavy: tuple[Server, int]) -> None:
    """2,048 pages. The least of many runs: now and then memory is given back meanwhile."""
    server, pid = heavy
    faults = []
    for _ in range(50):
        before = procfs.faults(pid)
        ask(server, "grpc", "heavy", ONES)
        faults.append(procfs.faults(pid) - before)
    assert min(faults) < 200 or paths.BUILD != paths.RELEASE, faults  # sanitizers have a heap of their own


def test_goes_back_when_idle(heavy: tuple[Server, int]) -> None:
    """Behind a run the pieces lie free in the heap; nobody needs them."""
    server, pid = heavy
    before = procfs.anonymous_bytes(pid)
    for _ in range(20):
        ask(server, "grpc", "heavy", ONES)
    server.process.wait_until(lambda: procfs.anonymous_bytes(pid) < before + (8 << 20) or paths.BUILD != paths.RELEASE, 60)
