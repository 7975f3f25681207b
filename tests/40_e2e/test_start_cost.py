"""Many small models in one start cost a part of what they cost the reference, with the same backends."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import many, paths, processors
from harness.repository import Repository
from harness.servers import Nereid, Reference

pytestmark = pytest.mark.once

TIME = 1 / 3  # of the reference's until it is ready
MEMORY = 1 / 2
CPU = 1 / 2
TURNS = 10
MORE = 1.1  # of what a server took when it was written down


@pytest.mark.reference
def test_two_hundred_models(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """A third of the reference's time, half of its memory. Started by turns, and the least of each counts: other work on the machine only
    adds to what a start costs, so there are further turns until the ratios show. Of both, what the thread that waited for a processor
    for the longest time waited is none of their time."""
    path = many.repository(tmp_path / "models")
    starts: list[list[many.Cost]] = [[], []]
    for _ in range(TURNS):
        for kind, of in zip((Nereid, Reference), starts, strict=True):
            of.append(many.start(kind(path, ready_within=300)))
        ours, theirs = map(many.least, starts)
        ratios = {key: getattr(ours, key) / getattr(theirs, key) for key in ("own_ms", "cpu_ms", "rss")}
        within = ratios["own_ms"] <= TIME and ratios["cpu_ms"] <= CPU and ratios["rss"] <= MEMORY
        if within or paths.BUILD.name != "release":  # sanitizers cost what they cost
            break
    record_property("ratios", ratios)
    assert ours.threads < 24
    assert within or paths.BUILD.name != "release", ratios


@pytest.mark.parametrize(("models", "mib", "threads"), [(1, 3.6, 5), (100, 4.3, 7), (2000, 18, 7)])
def test_memory_and_threads_of_a_start(tmp_path: Path, models: int, mib: float, threads: int) -> None:
    """With identity models, and the network threads of two processors. The least of up to eight starts: a thread that has done its part of
    one may be on its way out when it is looked at, and how much of the libraries' files the kernel maps beside the pages that a start
    touches differs by 0.2 MiB from start to start."""
    made = Repository(tmp_path)
    for index in range(models):
        made.identity(f"model_{index}")
    starts: list[many.Cost] = []
    with processors.on(set(sorted(os.sched_getaffinity(0))[:2])):
        for _ in range(8):
            starts.append(many.start(Nereid(made.path, ready_within=300)))
            cost = many.least(starts)
            within = cost.threads <= threads and cost.rss <= mib * MORE * (1 << 20)
            if within or paths.BUILD.name != "release":  # sanitizers cost what they cost
                break
    assert within or paths.BUILD.name != "release", cost
