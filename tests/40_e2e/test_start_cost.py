"""Many small models in one start cost a part of what they cost the reference, with the same backends."""

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import many, paths
from harness.servers import Nereid, Reference

TIME = 1 / 3  # of the reference's until it is ready
MEMORY = 1 / 2
CPU = 1 / 2
TURNS = 10


@pytest.mark.reference
def test_two_hundred_models(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """A third of the reference's time, half of its memory. Started by turns, the least of each counts: other work on the machine only
    adds to what a start costs, so there are further turns until the ratios show."""
    path = many.repository(tmp_path / "models")
    starts: list[list[many.Cost]] = [[], []]
    for _ in range(TURNS):
        for kind, of in zip((Nereid, Reference), starts, strict=True):
            of.append(many.start(kind(path, ready_within=300)))
        ours, theirs = map(many.least, starts)
        ratios = {key: getattr(ours, key) / getattr(theirs, key) for key in ("ready_ms", "cpu_ms", "rss")}
        within = ratios["ready_ms"] <= TIME and ratios["cpu_ms"] <= CPU and ratios["rss"] <= MEMORY
        if within or paths.BUILD.name != "release":  # sanitizers cost what they cost
            break
    record_property("ratios", ratios)
    assert ours.threads < 24
    assert within or paths.BUILD.name != "release", ratios
