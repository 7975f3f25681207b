"""The load generators: wrk for HTTP, h2load for gRPC. Each run is checked and measured."""

import json
import os
import re
import resource
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from check import WrongAnswer
from harness import procfs
from rows import Row
from subjects import Subject

LUA = Path(__file__).with_name("load.lua")


@dataclass
class Run:
    """One run of a load generator against one subject."""

    requests: int
    rate: float
    p50_us: float
    p99_us: float
    cpu_us: float  # CPU time of the subject's process per request
    rss_peak: int
    threads: int
    other_share: float  # of all processors: what other processes and the host took meanwhile


@dataclass
class Load:
    """What a generator said about itself."""

    requests: int
    seconds: float
    p50_us: float
    p99_us: float
    output: str = field(repr=False, default="")


class Watch:
    """The subject and the machine, from before a run to after it."""

    def __init__(self, subject: Subject):
        self.subject = subject
        self.rss_peak = 0
        self.threads = 0
        self._wall = time.monotonic()
        self._machine = procfs.machine_time()
        self._own = self._own_seconds()
        self._cpu = procfs.cpu_ns(subject.pid)

    @staticmethod
    def _own_seconds() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    def sample(self) -> None:
        self.rss_peak = max(self.rss_peak, procfs.rss_bytes(self.subject.pid))
        self.threads = max(self.threads, procfs.threads(self.subject.pid))

    def end(self, load: Load, answered: int) -> Run:
        cpu = (procfs.cpu_ns(self.subject.pid) - self._cpu) / 1e9
        machine = procfs.machine_time() - self._machine
        wall = time.monotonic() - self._wall
        other = machine.busy - cpu - (self._own_seconds() - self._own) + machine.steal
        return Run(
            load.requests,
            load.requests / load.seconds,
            load.p50_us,
            load.p99_us,
            cpu * 1e6 / answered,
            self.rss_peak,
            self.threads,
            max(0.0, other) / wall / (os.cpu_count() or 1),
        )


def run(argv: list[str], env: dict[str, str], watch: Watch, limit: float, good: tuple[int, ...] = (0,)) -> str:
    begun = time.monotonic()
    with subprocess.Popen(
        argv, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as load:
        try:
            while True:
                watch.sample()
                try:
                    output, _ = load.communicate(timeout=0.05)
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() - begun > limit:
                        raise WrongAnswer(f"{argv[0]} still running after {limit} s") from None
        except BaseException:
            load.kill()
            raise
    if load.returncode not in good:
        raise WrongAnswer(f"{argv[0]} ended with status {load.returncode}:\n{output}")
    return output


class Wrk:
    def __init__(self, row: Row, scratch: Path):
        self.row = row
        self.body, self.headers = scratch / "http_body", scratch / "http_headers"
        self.body.write_bytes(row.http_body)
        self.headers.write_text("".join(f"{k}: {v}\n" for k, v in row.http_headers.items()))

    def run(self, subject: Subject, size: int, seconds: float) -> Run:
        """size: bytes of one right answer"""
        host, port = subject.address(self.row)
        argv = ["wrk", "-t1", f"-c{self.row.connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s"]
        argv += ["-s", str(LUA), f"http://{host}:{port}{self.row.http_path}"]
        env = {"BENCH_BODY": str(self.body), "BENCH_HEADERS": str(self.headers)}
        before = subject.answered()
        watch = Watch(subject)
        output = run(argv, env, watch, seconds + 60)
        result = re.search(r"^RESULT (.*)$", output, re.MULTILINE)
        if not result:
            raise WrongAnswer(f"wrk gave no result:\n{output}")
        said = json.loads(result.group(1))
        load = Load(said["requests"], said["seconds"], said["p50_us"], said["p99_us"])
        after = subject.answered()
        answered = load.requests if before is None or after is None else after - before
        measured = watch.end(load, answered)
        # What was under way when wrk stopped was answered or begun, but not counted by wrk.
        spare = self.row.connections
        right_size = load.requests * size <= said["bytes"] <= (load.requests + spare) * size
        if said["errors"] or not right_size or not load.requests <= answered <= load.requests + spare:
            raise WrongAnswer(
                f"{subject.name}, {self.row.name}: {said}, {answered} answered, {size} bytes each"
            )
        return measured


class H2load:
    """Over gRPC, or over HTTP/1.1 where the row says so."""

    def __init__(self, row: Row, scratch: Path):
        self.row = row
        self.body, self.log = scratch / "h2load_body", scratch / "h2load_log"
        self.http = row.protocol == "http"
        self.body.write_bytes(row.http_body if self.http else b"\0" + len(row.grpc_body).to_bytes(4, "big") + row.grpc_body)
        headers = row.http_headers if self.http else {"content-type": "application/grpc", "te": "trailers"}
        self.options = [f"-H{name}: {value}" for name, value in headers.items()] + ["--h1"] * self.http
        self._rates: dict[str, float] = {}

    def run(self, subject: Subject, size: int, seconds: float) -> Run:
        """size: bytes of one right answer's message, prefix included"""
        if subject.name not in self._rates:
            self._find_rate(subject, size)
        count = max(self.row.concurrency, round(self._rates[subject.name] * seconds))
        run = self._count(subject, size, count)
        self._rates[subject.name] = run.rate
        return run

    def _find_rate(self, subject: Subject, size: int) -> None:
        count = self.row.concurrency
        while True:
            run = self._count(subject, size, count)
            if count / run.rate > 0.2:
                break
            count *= 4
        self._rates[subject.name] = run.rate

    def _count(self, subject: Subject, size: int, count: int) -> Run:
        host, port = subject.address(self.row)
        self.log.unlink(missing_ok=True)
        argv = ["h2load", "-t1", f"-c{self.row.connections}", f"-m{self.row.streams}", f"-n{count}", *self.options]
        argv += ["-d", str(self.body), f"--log-file={self.log}"]
        argv.append(f"http://{host}:{port}{self.row.http_path if self.http else self.row.grpc_path}")
        before = subject.answered()
        watch = Watch(subject)
        output = run(argv, {}, watch, 120)
        load = self._parse(output)
        measured = watch.end(load, count)
        after = subject.answered()
        # Statistics count responses of a stream, and not those alone: its bytes say that all have come.
        answered = count if before is None or after is None or self.row.responses else after - before
        data = int(re.search(r"\((\d+)\) data", output).group(1))  # type: ignore[union-attr]
        right_size = self.http or data == count * size  # of HTTP/1.1 it does not count heads
        if load.requests != count or answered != count or not right_size:
            raise WrongAnswer(
                f"{subject.name}, {self.row.name}: {load.requests} of {count} succeeded, "
                f"{answered} answered, {data} bytes instead of {count * size}:\n{output}"
            )
        return measured

    def _parse(self, output: str) -> Load:
        seconds = re.search(r"finished in ([\d.]+)(us|ms|s),", output)
        good = re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", output)
        if not seconds or not good:
            raise WrongAnswer(f"h2load gave no result:\n{output}")
        unit = {"us": 1e-6, "ms": 1e-3, "s": 1.0}[seconds.group(2)]
        times = sorted(int(line.split("\t")[2]) for line in self.log.read_text().splitlines())
        at = lambda share: float(times[min(len(times) - 1, int(len(times) * share))])  # noqa: E731
        return Load(int(good.group(1)), float(seconds.group(1)) * unit, at(0.5), at(0.99), output)


def generator(row: Row, scratch: Path) -> Wrk | H2load:
    return (Wrk if row.protocol == "http" else H2load)(row, scratch)
