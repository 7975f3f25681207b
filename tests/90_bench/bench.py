"""make bench: ours against the reference and against the bare floors, and with TLS against nginx, in one run.

    python tests/90_bench/bench.py [--only ROW ...] [--subjects NAME ...] [--shared] [--json FILE] [--quick]

Prints progress while it runs, then the tables. It records and never judges: the exit status is 0
whenever every answer was right.
"""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import measure  # noqa: E402
import report  # noqa: E402
import secure  # noqa: E402
import start_many  # noqa: E402
import testers  # noqa: E402
from rows import ROWS  # noqa: E402
from subjects import FLOOR  # noqa: E402
from targets import START_GOALS  # noqa: E402

from harness import processors  # noqa: E402

START = "start"
MORE = [START, start_many.NAME, secure.NAME, testers.NAME]  # besides the rows
EXTRA_UNTIL = 15 * 60  # seconds after the begin; later rows are not repeated, so that it ends within 20 min


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ours against the reference and the bare floors.")
    names = [row.name for row in ROWS] + MORE
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="ROW", help=f"only these rows: {', '.join(names)}"
    )
    parser.add_argument(
        "--subjects",
        nargs="+",
        choices=measure.SUBJECTS,
        default=measure.SUBJECTS,
        metavar="NAME",
        help=f"of {', '.join(measure.SUBJECTS)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    parser.add_argument("--repeats", type=int, default=3, help="runs a row and subject (3)")
    parser.add_argument("--extra", type=int, default=3, help="further runs where other work disturbed (3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a run (2)")
    parser.add_argument(
        "--shared",
        action="store_true",
        help="server and client use the same processors; else the client has the last one, and the server the others",
    )
    parser.add_argument("--quick", action="store_true", help="one short run each: does it work at all")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.repeats, chosen.extra, chosen.seconds = 1, 0, 0.5
    return chosen


def main() -> int:
    chosen = arguments()
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:6.1f} s] {text}", flush=True)

    places = processors.shared() if chosen.shared else processors.apart()
    say(f"rows: servers on processors {sorted(places[0])}, their client on {sorted(places[1])}")
    wanted = set(chosen.only or [row.name for row in ROWS] + MORE)
    rows = [row for row in ROWS if row.name in wanted]
    found = []
    failed: list[str] = []
    for index, row in enumerate(rows, 1):
        say(f"{index}/{len(rows)} {row.title}: {', '.join(chosen.subjects)}")
        extra = chosen.extra if time.monotonic() - begun < EXTRA_UNTIL else 0
        try:
            measured = measure.row(row, chosen.subjects, places, chosen.repeats, extra, chosen.seconds, say)
            found.append((row, measured))
        except AssertionError as error:
            failed.append(f"{row.name}: {error}")
            say(f"FAILED {failed[-1]}")
    starts = {}
    if START in wanted:
        for models in START_GOALS:
            for name in (name for name in chosen.subjects if name != FLOOR):
                say(f"start and exit with {models} model(s): {name}")
                starts[name, models] = measure.start(name, models, 1 if chosen.quick else 5)
    many = {}
    if start_many.NAME in wanted:
        say(start_many.TITLE)
        many = start_many.measure(1 if chosen.quick else 9)
    safe = {}
    if secure.NAME in wanted:
        say(secure.TITLE)
        safe = secure.measure(places, chosen.repeats, chosen.seconds)
    beside = {}
    if testers.NAME in wanted:
        say(testers.TITLE)
        beside = testers.measure_all(places, chosen.repeats, chosen.seconds)
    say("done")

    tables = [report.figures(found), report.goals(found), report.memory(found)] if found else []
    tables += [report.starts(starts)] if starts else []
    tables += [report.table(start_many.HEAD, start_many.rows(many))] if many else []
    tables += [report.table(secure.HEAD, secure.rows(safe))] if safe else []
    tables += [report.table(testers.HEAD, testers.rows(beside))] if beside else []
    print("\n" + "\n\n".join(table for table in [*tables, report.LEGEND] if table))
    if chosen.json:
        record = {
            "rows": {
                row.name: {name: result.figures() for name, result in results.items()}
                for row, results in found
            },
            "start": {
                f"{name} {models}": dataclasses.asdict(start) for (name, models), start in starts.items()
            },
            start_many.NAME: {name: dataclasses.asdict(cost) for name, cost in many.items()},
            secure.NAME: {title: dataclasses.asdict(figures) for title, figures in safe.items()},
        }
        chosen.json.write_text(json.dumps(record, indent=1) + "\n")
    if failed:
        print("\nrows that are missing, since an answer was wrong or a server failed:", *failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
