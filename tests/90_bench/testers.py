"""`nereid bench` beside wrk and h2load: the same requests to the same server with the same number of connections, in turn.

wrk's percentiles are not of what it measured: to each answer that took more than twice as long as they do on average it adds those that would
have been asked for meanwhile. So with many connections wrk is compared in what it counts, and percentiles with those of h2load, over HTTP/1.1 too.
"""

import csv
import statistics
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import check
import load
import measure
import subjects
from harness import paths
from harness.processors import on
from rows import MODEL, ROWS, Row

NAME = "testers"
TITLE = "nereid bench beside wrk and h2load"
HEAD = [TITLE, "tester", "rate", "beside", "ratio", "p50, us", "beside", "ratio", "p99, us", "beside", "ratio", "other work"]
HTTP, GRPC = (next(row for row in ROWS if row.name == name) for name in ("http_bin_16", "grpc_16_conns"))
LONE_HTTP, LONE_GRPC = (replace(row, title=row.title.replace("16 connections", "1 connection"), connections=1) for row in (HTTP, GRPC))
TESTERS: list[tuple[str, Row, type[load.Wrk] | type[load.H2load]]] = [
    ("wrk", HTTP, load.Wrk),
    ("h2load --h1", HTTP, load.H2load),
    ("wrk", LONE_HTTP, load.Wrk),
    ("h2load --h1", LONE_HTTP, load.H2load),
    ("h2load", GRPC, load.H2load),
    ("h2load", LONE_GRPC, load.H2load),
]
SERVERS = [subjects.THREADS, subjects.REFERENCE]
MOST_OTHER = 0.03  # of all processors: a pair of turns that others disturbed more is left out
NOT_STABLE = 3  # its exit status where they do not agree at all: they count nevertheless
WINDOWS = 3  # `nereid bench` measures that many, and takes them all where they need not agree


class Bench:
    """A run of `nereid bench`."""

    def __init__(self, row: Row, scratch: Path):
        self.row, self.file = row, scratch / "levels.csv"

    def run(self, subject: subjects.Subject, _size: int, seconds: float) -> load.Run:
        host, port = subject.address(self.row)
        argv = [str(paths.nereid_binary()), "bench", "-m", MODEL, "-i", self.row.protocol, "-u", f"{host}:{port}", "-f", str(self.file)]
        argv += ["--concurrency-range", str(self.row.connections), "--shape", f"INPUT0:{self.row.floats}"]
        argv += ["--calls-per-connection", "1"] if self.row.protocol == "grpc" else []
        argv += ["-p", f"{1000 * seconds / WINDOWS:.0f}", "-s", "100", "-r", str(WINDOWS)]
        before = subject.answered() or 0
        watch = load.Watch(subject)
        load.run(argv, {}, watch, seconds + 60, good=(0, NOT_STABLE))
        answered = (subject.answered() or 0) - before
        with self.file.open() as file:
            level = next(csv.DictReader(file))
        rate = float(level["Inferences/Second"])
        said = load.Load(answered, answered / rate, float(level["p50 latency"]), float(level["p99 latency"]))
        return watch.end(said, answered)


@dataclass
class Pairs:
    """Of a row and a server: what both testers say, turn by turn."""

    ours: list[load.Run] = field(default_factory=list)
    theirs: list[load.Run] = field(default_factory=list)

    def calm(self) -> list[tuple[load.Run, load.Run]]:
        pairs = list(zip(self.ours, self.theirs, strict=True))
        return [pair for pair in pairs if max(run.other_share for run in pair) <= MOST_OTHER] or pairs


def _measure(row: Row, kind: type[load.Wrk] | type[load.H2load], server: str, places: tuple[set[int], set[int]], repeats: int, seconds: float) -> Pairs:
    pairs = Pairs()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        scratch = Path(folder)
        testers = [(pairs.ours, Bench(row, scratch)), (pairs.theirs, kind(row, scratch))]
        path = measure.repository(scratch / "models")
        with on(places[0]):
            (subject,) = subjects.start([server], path, row)
        try:
            size = check.answer_size(subject, row)
            for turn in range(-1, repeats):
                for runs, tester in testers if turn % 2 else reversed(testers):
                    with on(places[1]):
                        run = tester.run(subject, size, seconds)
                    if turn >= 0:  # what comes first warms up
                        runs.append(run)
            subject.stop()
        except BaseException:
            subject.kill()
            raise
    return pairs


Found = dict[tuple[int, str], Pairs]  # by the number of the tester and the server's name


def measure_all(places: tuple[set[int], set[int]], repeats: int, seconds: float) -> Found:
    return {(i, server): _measure(row, kind, server, places, repeats, seconds) for i, (_, row, kind) in enumerate(TESTERS) for server in SERVERS}


def rows(found: Found) -> list[list[str]]:
    lines = []
    for (i, server), pairs in found.items():
        tester, row, kind = TESTERS[i]
        calm = pairs.calm()
        line = [f"{row.title}, {server}", tester]
        for figure in ["rate"] if kind is load.Wrk and row is HTTP else ["rate", "p50_us", "p99_us"]:
            ours, theirs = ([getattr(run, figure) for run in side] for side in zip(*calm, strict=True))
            ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
            line += [f"{statistics.median(ours):.0f}", f"{statistics.median(theirs):.0f}"]
            line += [f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"]
        line += [""] * (len(HEAD) - 1 - len(line))
        others = max(run.other_share for pair in calm for run in pair)
        lines.append([*line, f"{others:.0%} at most, {len(calm)} of {len(pairs.ours)} turns"])
    return lines
