"""What a runtime allocates between the layers of a network: the heap keeps it for the next run."""

from pathlib import Path

import numpy as np
import pytest
from harness import paths, procfs
from harness.repository import Repository
from harness.servers import Nereid

import torch_oracle
from clients import ask, parameters, tensor

HEAVY = 'backend: "pytorch"\n' + tensor("input", "x", "FP32", [1, 1]) + tensor("output", "y__0", "FP32", [1, 1])


@pytest.mark.parametrize("more", ["", parameters({"ISOLATION": "process"})], ids=["in_the_server", "in_a_process_of_its_own"])
def test_is_not_mapped_anew(tmp_path: Path, more: str) -> None:
    """A run of this model allocates 1 MiB eight times, 2,048 pages. The least of many runs: now and then memory is given back meanwhile."""
    made = Repository(tmp_path / "models")
    torch_oracle.save("Heavy", made.model("heavy", HEAVY + more))
    with Nereid(made.path) as server:
        pid = procfs.children(server.pid)[0] if more else server.pid
        faults = []
        for _ in range(50):
            before = procfs.faults(pid)
            ask(server, "grpc", "heavy", {"x": np.ones((1, 1), np.float32)})
            faults.append(procfs.faults(pid) - before)
    assert min(faults) < 200 or paths.BUILD != paths.RELEASE, faults  # sanitizers have a heap of their own


@pytest.mark.parametrize("more", ["", parameters({"ISOLATION": "process"})], ids=["in_the_server", "in_a_process_of_its_own"])
def test_goes_back_when_idle(tmp_path: Path, more: str) -> None:
    """Behind a run, 1 MiB pieces lie free in the heap; nobody needs them."""
    made = Repository(tmp_path / "models")
    torch_oracle.save("Heavy", made.model("heavy", HEAVY + more))
    with Nereid(made.path) as server:
        pid = procfs.children(server.pid)[0] if more else server.pid
        before = procfs.anonymous_bytes(pid)
        for _ in range(20):
            ask(server, "grpc", "heavy", {"x": np.ones((1, 1), np.float32)})
        server.process.wait_until(lambda: procfs.anonymous_bytes(pid) < before + (8 << 20) or paths.BUILD != paths.RELEASE, 60)
