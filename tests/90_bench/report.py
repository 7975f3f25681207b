"""The tables: figures, ratios, goals."""

from measure import Result, Start
from rows import Row
from subjects import FLOOR, INLINE, REFERENCE, THREADS
from targets import GOALS, LARGE_ROWS, MEMORY_AFTER_LARGE, START_GOALS, machine_factor

MIB = 1 << 20


def _time(us: float) -> str:
    if us < 100:
        return f"{us:.1f} us"
    return f"{us:.0f} us" if us < 10_000 else f"{us / 1000:.1f} ms"


def table(head: list[str], lines: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    rows = [head, ["-" * width for width in widths], *lines]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f}"


def figures(rows: list[tuple[Row, dict[str, Result]]]) -> str:
    head = ["row", "subject", "req/s", "p50", "p99", "CPU/req", "threads", "RSS start", "peak", "2 s after"]
    head += ["req/s / ref", "CPU / ref", "CPU / floor", "other", ""]
    lines = []
    for row, results in rows:
        for name, result in results.items():
            f = result.figures()
            reference, floor = results.get(REFERENCE), results.get(FLOOR)
            lines.append(
                [
                    row.title if name == next(iter(results)) else "",
                    name,
                    f"{f['rate']:.0f}",
                    _time(f["p50_us"]),
                    _time(f["p99_us"]),
                    _time(f["cpu_us"]),
                    f"{f['threads']:.0f}",
                    *(f"{f[key] / MIB:.1f}" for key in ("rss_start", "rss_peak", "rss_after")),
                    _ratio(f["rate"], reference.median("rate")) if reference else "-",
                    _ratio(f["cpu_us"], reference.median("cpu_us")) if reference else "-",
                    _ratio(f["cpu_us"], floor.median("cpu_us")) if floor else "-",
                    f"{f['other_share']:.0%}",
                    "disturbed" if f["disturbed"] else "",
                ]
            )
    return table(head, lines)


def _reached(measured: float, goal: float | None) -> str:
    if goal is None:
        return "-"
    return "yes" if measured <= goal else "NO"


def goals(rows: list[tuple[Row, dict[str, Result]]]) -> str:
    floors = {row.name: results[FLOOR].median("cpu_us") for row, results in rows if FLOOR in results}
    head = ["row", "ours", "CPU/req", "goal", "reached", "scaled goal", "reached", "floor here", "stated"]
    lines = []
    for row, results in rows:
        if row.name not in GOALS:
            continue
        goal = GOALS[row.name]
        factor = machine_factor(row.name, floors)
        for name, wanted in ((THREADS, goal.threads), (INLINE, goal.inline)):
            if name not in results:
                continue
            cost = results[name].median("cpu_us")
            scaled = wanted * factor if wanted is not None and factor is not None else None
            lines.append(
                [
                    row.title if name == THREADS else "",
                    name,
                    _time(cost),
                    _time(wanted) if wanted is not None else "-",
                    _reached(cost, wanted),
                    _time(scaled) if scaled is not None else "-",
                    _reached(cost, scaled),
                    _time(floors[row.name]) if row.name in floors else "-",
                    "-".join(f"{us:g}" for us in sorted(set(goal.floor))) + " us" if goal.floor else "-",
                ]
            )
    return table(head, lines) if lines else ""


def memory(rows: list[tuple[Row, dict[str, Result]]]) -> str:
    head = ["memory after large tensors", "subject", "start MiB", "2 s after", "ratio", "within 10 %"]
    lines = []
    for row, results in rows:
        if row.name not in LARGE_ROWS:
            continue
        for name in (INLINE, THREADS, REFERENCE):
            if name not in results:
                continue
            result = results[name]
            ratio = result.memory_after / result.memory_start
            lines.append(
                [
                    row.title,
                    name,
                    f"{result.memory_start / MIB:.1f}",
                    f"{result.memory_after / MIB:.1f}",
                    f"{ratio:.2f}",
                    _reached(ratio, MEMORY_AFTER_LARGE),
                ]
            )
    return table(head, lines) if lines else ""


def starts(found: dict[tuple[str, int], Start]) -> str:
    head = [
        "start and exit",
        "subject",
        "ready",
        "goal",
        "reached",
        "scaled",
        "reached",
        "RSS MiB",
        "PSS MiB",
        "goal",
    ]
    head += ["reached", "threads", "goal", "reached", "exit", "goal", "reached"]
    lines = []
    for (name, models), start in found.items():
        goal = START_GOALS[models]
        reference = found.get((REFERENCE, models))
        scaled = goal.ready_ms * reference.ready_ms / goal.reference_ready_ms if reference else None
        judged = name != REFERENCE

        def judge(value: float, limit: float | None, judged: bool = judged) -> str:
            return _reached(value, limit) if judged else ""

        lines.append(
            [
                f"{models} model{'s' if models > 1 else ''}",
                name,
                f"{start.ready_ms:.1f} ms",
                f"{goal.ready_ms:g} ms",
                judge(start.ready_ms, goal.ready_ms),
                f"{scaled:.1f} ms" if scaled else "-",
                judge(start.ready_ms, scaled),
                f"{start.rss / MIB:.1f}",
                f"{start.pss / MIB:.1f}",
                f"{goal.rss_mib:g}",
                judge(start.rss / MIB, goal.rss_mib),
                f"{start.threads:.0f}",
                f"< {goal.threads}",
                judge(start.threads, goal.threads - 1),
                f"{start.exit_ms:.0f} ms",
                f"{goal.exit_ms:g} ms",
                judge(start.exit_ms, goal.exit_ms),
            ]
        )
    return table(head, lines)


LEGEND = """\
CPU/req      CPU time of the server process per request answered and checked
floor        a bare epoll loop (HTTP) or a bare nghttp2 echo (gRPC): reads, copies once, answers
inline       ours, the loop runs idle instances itself; threads: ours, instance threads only
             the client has the last processor and the server the others, as if they were two machines;
             with --shared both have all, and where the system puts which thread decides much
scaled goal  the goal times the floor measured here over the floor stated with the goal; for large gRPC
             tensors the HTTP floor of the same size; for the start the reference's time
RSS          memory in MiB: ready, with one small request answered; the most during the runs; two
             seconds after the last one
other        processor share of other work on the machine meanwhile; "disturbed" rows stayed above
             the limit, or spread too widely, after all repeats"""
