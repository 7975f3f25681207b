#!/usr/bin/env python3
"""Writes the pages of docs/user, and the options of the package for Python, that are made from tables in the sources.

    tools/pages.py [--root FOLDER] [--check]

  docs/user/command-line.md   from src/server/options/options.def
  docs/user/metrics.md        from src/metrics/metric.def
  bindings/python/nereid/_options.py  from src/server/options/options.def
--check writes nothing and exits with 1 if a page differs from its table.
"""

import argparse
import re
import sys
from pathlib import Path

TOKEN = re.compile(r'"((?:\\.|[^"\\])*)"|([A-Za-z_][\w.]*)|([(),])|(\d+)|(\s+)')


def rows_of(path: Path, names: set[str]) -> list[list[str]]:
    """The rows NAME(argument, ...) of a table, as [NAME, argument, ...]; adjacent strings are joined and lose their quotes."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    found: list[list[str]] = []
    depth, at = 0, 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if not token:
            raise SystemExit(f"{path}: cannot read {text[at:at + 40]!r}")
        at = token.end()
        string, word, mark, number, _space = token.groups()
        if mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
        elif mark == "," and depth:
            found[-1].append("")
        elif word and not depth:
            if word not in names:
                raise SystemExit(f"{path}: unknown row {word}")
            found.append([word, ""])
        elif string is not None:
            found[-1][-1] += string.replace('\\"', '"').replace("\\\\", "\\")
        elif depth and (word or number):
            found[-1][-1] += word or number
    return found


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`" if text else ""


COMMAND_LINE = """\
# Command line

    nereid --model-repository=DIRECTORY [options]

## Where it lies

`make install` makes it `/opt/tritonserver/bin/nereid` (`tritonserver` beside it is the same). Backends, agents and caches are looked for
beside its library: in `backends/`, `repoagents/` and `caches/` of the folder that has its `lib/`. So an installation may lie anywhere and
may be moved, and a build tree needs no option:

    build/release/bin/nereid --model-repository=models

The other pages write `nereid` for either. `nereid check REPOSITORY` reads a repository without serving it: [check](check.md).

`nereid doctor` takes the same options and says what this machine has for such a server, and what would be refused: cores, memory, host
policies, open files, huge pages, GPUs, the plug-ins that can be opened, caches with their settings, ports, files of logs and traces, certificates,
repositories. Its exit status is 0 when nothing would be, 1 when something would, 2 for a wrong command line.

`nereid migrate` says what would become of a tritonserver's command line and models here: [moving from Triton](moving-from-triton.md).

`nereid bench -m MODEL` sends inferences to a server and prints how many it answers in a second and how long they take: [bench](bench.md).

## Start and stop

The ports are open before the models are loaded (a shared one, `--reuse-http-port`, opens behind them); until those of the start are, `/v2/health/live` and `/v2/health/ready` answer 400. So
give a liveness probe time (`startupProbe` of Kubernetes), or have models loaded on request (`--model-control-mode=explicit`). `server is
ready` in the log ends the start. One that fails ends with status 1: the last error says so, those before it name the models.

SIGTERM or SIGINT stops the server: readiness answers 400, requests under way are answered, models are unloaded, the status is 0. A second
signal ends it at once, the same one only a second after the first, since GNU `timeout` sends its signal twice. So does the end of
`--exit-timeout-secs`: then the status is 1, and the log names what held it up: models whose
load or unload does not end, and versions that requests still hold. When a quarter of that time is left, at most five seconds, requests that
their models have not answered are cut: the client is told `the server is stopping`, with 503 of HTTP, as the last event of a stream, or with
UNAVAILABLE of gRPC, the log says how many they were, and the status is 1. Whoever would kill it after a while has to wait longer than that:
Kubernetes waits 30 seconds (`terminationGracePeriodSeconds`), as long as the option's default, systemd 90 (`TimeoutStopSec`). SIGHUP opens
[log files](logs.md) and reads [certificates and keys](securing.md) anew. Where there are none it says so and ends nothing, unless
the server was started at a terminal: that is gone then, and the server stops as with SIGTERM (under `nohup` it stays).

## How options are written

Options are written `--name=value` or `--name value`. A name may be cut short as long as it is no other's. Of an option that is given
twice the last value holds; the options that say so may be given more than once. Truth is `true`, `1`, `yes`, `on`, or `false`, `0`,
`no`, `off`. Such words, and those of `--model-control-mode` and the like, may be written in capitals. `--help` prints the options below, `--version` the version. A wrong option or value ends the start with a message that names
it and what is allowed.

## A file of options

`--config FILE` reads the same names from a file, one `name = value` a line, without the dashes; lines that begin with `#` are comments,
and a value goes to the end of its line. Options without a value are written `name = true`. What the command line says wins; repositories
on the command line take the place of those in the file. Errors name the file and the line.

    # nereid.conf
    model-repository = /srv/models
    http-port = 8080
    log-format = json

## Options
"""

TUNES = """
## Accepted, without effect

These options of Triton tune what this version does another way, or does not have. A line of the log says that they do nothing.

| option | value | what it is |
|---|---|---|
"""


def command_line(root: Path) -> str:
    rows = rows_of(root / "src/server/options/options.def", {"OPTION", "TUNES"})
    page, group = COMMAND_LINE, ""
    for row in rows:
        if row[0] != "OPTION":
            continue
        _, of, name, _kind, _field, default, value, help_text = row
        if of != group:
            page += f"\n### {of}\n\n| option | value | default | what it does |\n|---|---|---|---|\n"
            group = of
        page += f"| `--{name}` | {code(value)} | {code(default)} | {cell(help_text)} |\n"
    page += TUNES
    for row in rows:
        if row[0] == "TUNES":
            _, _of, name, _form, value, help_text = row
            page += f"| `--{name}` | {code(value)} | {cell(help_text)} |\n"
    return page


METRICS = """\
# Metrics

`http://HOST:8002/metrics` shows every number in the text format of Prometheus. `--metrics-port`, `--metrics-address` and
`--allow-metrics=false` change where, or whether. Names that begin with `nv_` are those of Triton, with its labels. Everything is read
when the page is asked for, but for `nv_cpu_utilization`, which is measured over `--metrics-interval-ms`, and what the GPUs do, which is read once in
that time.

A family is on the page while there is something to count: those of a model once it is loaded, those of the cache (`nv_cache_...`) where a
model has a response cache, `nereid_requests_total` with each combination of labels from its first request on. In an alert say what absence
means: `absent(...)`, or `... or vector(0)`.

`reason` is `REJECTED` (the queue was full, or the time-out was over), `CANCELED` (the client went before it was executed), `BACKEND` (the backend reported an
error) or `OTHER`. `code` is the status: of HTTP as a number (499: the client went before the answer; 503: the server stopped before it), of gRPC as a name (`OK`, `NOT_FOUND`).
`route` is that of the [access log](logs.md).

Values of labels are bounded: `route` and `code` come from tables, and `model` is the name of a model that was loaded; requests for
others are counted without that label. Histograms of latencies are always there; `--metrics-config summary_latencies=true` shows the
`nv_..._summary_us` besides, with the quantiles of `summary_quantiles=0.5:0.05,0.99:0.001` or the usual five, over all requests since
the model was loaded and off by an eighth at most; a model with a response cache has the summaries of the cache in place of that of
whole requests. `counter_latencies=false` leaves the counters of durations and of the cache out. Tags of a model (`metric_tags` of its
configuration) are labels of its families, with `_` in front.

`--metrics-config histogram_latencies=true` shows `nv_inference_first_response_histogram_ms`: how long requests waited for their first
response, or their only one, errors included, in whole milliseconds. Its upper bounds are 100, 500, 2000 and 5000 ms unless the
configuration of a model has others:

    model_metrics {
      metric_control [
        {
          metric_identifier { family: "nv_inference_first_response_histogram_ms" }
          histogram_options { buckets: [ 1, 2, 4, 8 ] }
        }
      ]
    }

What is told of [GPUs](gpu.md) (`nv_gpu_...`, `nv_energy_consumption`) is there once a model, or anybody else, has made the server look for them: of
each GPU that is used and that NVML knows, under its UUID. A value that NVML does not tell is left out for so long, and all of them while NVML does not answer.
`--allow-gpu-metrics=false` shows none. Families of models have no label `gpu_uuid`.

| family | type | labels | what it is |
|---|---|---|---|
"""
VERSION = "`model`, `version`"


def metrics(root: Path) -> str:
    kinds = {"METRIC_MODEL", "METRIC_REASON", "METRIC_HISTOGRAM", "METRIC_SUMMARY", "METRIC_BOUNDED",
             "METRIC_BATCHES", "METRIC_CACHE", "METRIC_FRONT", "METRIC_REQUESTS",
             "METRIC_PROCESS", "METRIC_GPU", "METRIC_BUILD"}
    page = METRICS
    for row in rows_of(root / "src/metrics/metric.def", kinds):
        kind, arguments = row[0], row[1:]
        labels = {"METRIC_MODEL": VERSION, "METRIC_REASON": VERSION + ", `reason`", "METRIC_HISTOGRAM": VERSION,
                  "METRIC_SUMMARY": VERSION + ", `quantile`", "METRIC_BOUNDED": VERSION,
                  "METRIC_BATCHES": VERSION, "METRIC_CACHE": VERSION, "METRIC_FRONT": "`protocol`", "METRIC_BUILD": "`version`",
                  "METRIC_GPU": "`gpu_uuid`",
                  "METRIC_REQUESTS": "`protocol`, `route`, `model`, `code`"}.get(kind, "")
        if kind in ("METRIC_MODEL", "METRIC_FRONT", "METRIC_PROCESS", "METRIC_GPU"):
            shown, name = arguments[0], arguments[1]
        else:
            shown = {"METRIC_BUILD": "gauge", "METRIC_SUMMARY": "summary",
                     "METRIC_HISTOGRAM": "histogram", "METRIC_BOUNDED": "histogram", "METRIC_BATCHES": "histogram"}.get(kind, "counter")
            name = arguments[0]
        page += f"| `{name}` | {shown} | {labels} | {cell(arguments[-1])} |\n"
    return page


OPTIONS = '''\
"""The options of the command line, made by tools/pages.py: not written by hand."""

import os
from collections.abc import Sequence
from typing import Literal, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]


class Options(TypedDict, total=False):
    """Those of docs/user/command-line.md, with _ for -. Several values are a list or a tuple."""

'''
NAMES = '''\


# Their names on the command line; those that have no value there.
NAMES = frozenset(name.replace("_", "-") for name in Options.__annotations__)
'''
TEXTS = "Union[str, Sequence[str]]"  # of the kinds that are not below
TYPES = {
    "BOOL": "bool", "FLAG": "bool", "LEVEL": "Union[int, bool]", "FILE": "Path", "ADDRESS": "str", "STRING": "str", "FILENAME": "str",
    "LOG_FORMAT": 'Literal["default", "ISO8601", "json"]', "CONTROL_MODE": 'Literal["none", "poll", "explicit"]',
    "COMPRESSION": 'Literal["none", "low", "medium", "high"]', "REPOSITORY": "Union[Path, Sequence[Path]]",
    "RATE_LIMIT": 'Literal["off", "execution_count"]',
    "CACHE_SIZE": "int", "TRACE_RATE": "int", "TRACE_COUNT": "int", "TRACE_FREQUENCY": "int", "TRACE_FILE": "Path",
    **{kind: "int" for kind in ("U16", "U32", "U64", "SIZE", "SECONDS", "THREADS")},
}


def package_options(root: Path) -> str:
    rows = [row for row in rows_of(root / "src/server/options/options.def", {"OPTION", "TUNES"}) if row[0] == "OPTION"]
    page = OPTIONS
    for _, _group, name, kind, _field, _default, _value, _help in rows:
        page += f"    {name.replace('-', '_')}: {TYPES.get(kind, TEXTS)}\n"
    flags = "".join(f'    "{row[2]}",\n' for row in rows if row[3] == "FLAG")
    return page + f"{NAMES}FLAGS = frozenset((\n{flags}))\n"


PAGES = {"docs/user/command-line.md": command_line, "docs/user/metrics.md": metrics, "bindings/python/nereid/_options.py": package_options}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    wrong = 0
    for name, make in PAGES.items():
        path, text = given.root / name, make(given.root)
        if path.is_file() and path.read_text() == text:
            continue
        if given.check:
            print(f"{name}: not what its table says: run tools/pages.py")
            wrong = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
