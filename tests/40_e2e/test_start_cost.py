"""Many small models in one start cost a part of what they cost the reference, with the same backends."""

from pathlib import Path

import pytest
from harness import many, paths
from harness.servers import Nereid, Reference


@pytest.mark.reference
def test_two_hundred_models(tmp_path: Path) -> None:
    """Bounds that hold on a machine with other work; the bench has the figures."""
    path = many.repository(tmp_path / "models")
    ours, theirs = (many.middle([many.start(kind(path, ready_within=300)) for _ in range(3)]) for kind in (Nereid, Reference))
    assert ours.threads < 24
    if paths.BUILD.name == "release":  # sanitizers cost what they cost
        assert ours.cpu_ms < 0.6 * theirs.cpu_ms
        assert ours.rss < 0.6 * theirs.rss
        assert ours.ready_ms < 0.75 * theirs.ready_ms
