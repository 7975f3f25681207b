"""The goals of "What it must cost" in ARCHITECTURE.md, and the machine that they were stated for.

Times are CPU time of the server process per request, in us. A goal is also shown scaled by the
speed of this machine: the floor measured here over the floor stated there.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    floor: tuple[float, float] | None  # stated, least and most
    threads: float  # goal with instance threads
    inline: float | None  # goal with inline execution
    scale_by: str | None = None  # the row whose floor scales this one; None = the row itself


GOALS: dict[str, Goal] = {
    "http_json_16": Goal((6.3, 6.3), 12, 9.5),
    "http_bin_16": Goal((6.3, 6.3), 12, 9.5),
    "http_bin_16k": Goal((19, 19), 30, None),
    "http_bin_256k": Goal((250, 390), 400, None),
    "http_bin_4m": Goal((5700, 5700), 7000, None),
    "grpc_16_streams": Goal((1.5, 1.5), 6, 3.5),
    "grpc_16_conns": Goal((8.8, 8.8), 16, 12),
    "grpc_16k_conns": Goal(None, 28, None, "http_bin_16k"),
    "grpc_16k_streams": Goal(None, 28, None, "http_bin_16k"),
    "grpc_256k_conns": Goal(None, 350, None, "http_bin_256k"),
    "grpc_256k_streams": Goal(None, 350, None, "http_bin_256k"),
    "grpc_4m_conns": Goal(None, 7000, None, "http_bin_4m"),
    "grpc_4m_streams": Goal(None, 7000, None, "http_bin_4m"),
}

LARGE_ROWS = tuple(
    name for name in GOALS if name.split("_")[-1] in ("4m", "256k") or "_4m_" in name or "_256k_" in name
)
MEMORY_AFTER_LARGE = 1.10  # of what it was at the start, two seconds after the last request


@dataclass(frozen=True)
class StartGoal:
    ready_ms: float
    rss_mib: float
    threads: int
    exit_ms: float
    reference_ready_ms: float  # stated, middle of its range: it scales the times


START_GOALS = {
    1: StartGoal(10, 6, 12, 50, 81),
    100: StartGoal(30, 10, 12, 50, 112.5),
}


def machine_factor(name: str, floors: dict[str, float]) -> float | None:
    """Floor measured here over floor stated there; floors: row -> us measured."""
    row = GOALS[name].scale_by or name
    stated = GOALS[row].floor
    if stated is None or row not in floors:
        return None
    return floors[row] / (sum(stated) / 2)
