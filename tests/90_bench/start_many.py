"""Starting with 100 identity models and 100 small ONNX models: ours beside the reference, in turn."""

import tempfile
from pathlib import Path

from harness import many
from harness.servers import Nereid, Reference

NAME = "start_many"
TITLE = "start with 100 identity and 100 ONNX models"
GOAL_TIME = 1 / 3
GOAL_MEMORY = 1 / 2
MIB = 1 << 20


def measure(repeats: int) -> dict[str, many.Cost]:
    found: dict[str, list[many.Cost]] = {"nereid": [], "reference": []}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = many.repository(Path(folder) / "models")
        for _ in range(repeats):
            for kind in (Nereid, Reference):
                found[kind.kind].append(many.start(kind(path, ready_within=300)))
    return {name: many.middle(costs) for name, costs in found.items()}


def rows(found: dict[str, many.Cost]) -> list[list[str]]:
    ours, theirs = found["nereid"], found["reference"]

    def row(what: str, mine: float, other: float, unit: str, goal: float | None) -> list[str]:
        ratio = mine / other
        reached = "" if goal is None else ("yes" if ratio <= goal else "no")
        return [what, f"{mine:.1f} {unit}", f"{other:.1f} {unit}", f"{ratio:.2f}", f"{goal:.2f}" if goal else "-", reached]

    return [
        row("ready", ours.ready_ms, theirs.ready_ms, "ms", GOAL_TIME),
        row("CPU time until then", ours.cpu_ms, theirs.cpu_ms, "ms", GOAL_TIME),
        row("RSS", ours.rss / MIB, theirs.rss / MIB, "MiB", GOAL_MEMORY),
        row("PSS", ours.pss / MIB, theirs.pss / MIB, "MiB", GOAL_MEMORY),
        row("threads", ours.threads, theirs.threads, "", None),
    ]


HEAD = [TITLE, "ours", "reference", "ratio", "goal", "reached"]
