"""Load generators of the distribution: wrk for HTTP/1.1, h2load for gRPC. Every answer must be a good one."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from tritonclient.grpc import service_pb2 as pb

from . import arrays, paths, procfs
from .servers import Server

LUA = paths.ROOT / "tests" / "90_bench" / "load.lua"


@dataclass(frozen=True)
class Load:
    """What a generator says of a run."""

    answered: int
    seconds: float
    p99: float  # ms

    @property
    def rate(self) -> float:
        return self.answered / self.seconds


def _run(argv: list[str], env: dict[str, str] | None = None) -> str:
    return subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


def as_http(inputs: dict[str, np.ndarray]) -> tuple[bytes, dict[str, str]]:
    """A request with tensors as bytes, and its headers."""
    tensors = [{"name": n, "datatype": _datatype(a), "shape": a.shape, "parameters": {"binary_data_size": a.nbytes}} for n, a in inputs.items()]
    head = json.dumps({"inputs": tensors, "parameters": {"binary_data_output": True}}).encode()
    return head + b"".join(a.tobytes() for a in inputs.values()), {"Inference-Header-Content-Length": str(len(head))}


def as_grpc(model: str, inputs: dict[str, np.ndarray]) -> bytes:
    message = pb.ModelInferRequest(model_name=model)
    for name, array in inputs.items():
        message.inputs.add(name=name, datatype=_datatype(array), shape=array.shape)
        message.raw_input_contents.append(array.tobytes())
    return message.SerializeToString()


def _datatype(array: np.ndarray) -> str:
    return next(name for name, kind in arrays.NUMPY.items() if kind == array.dtype.type)


class Wrk:
    """One request, sent again and again over HTTP."""

    def __init__(self, scratch: Path, body: bytes, headers: dict[str, str]):
        self.env = {"BENCH_BODY": str(scratch / "body"), "BENCH_HEADERS": str(scratch / "headers"), "PATH": "/usr/bin:/bin"}
        (scratch / "body").write_bytes(body)
        (scratch / "headers").write_text("".join(f"{name}: {value}\n" for name, value in headers.items()))

    def run(self, server: Server, model: str, connections: int, seconds: float) -> Load:
        url = f"http://{server.http}/v2/models/{model}/infer"
        output = _run(["wrk", "-t1", f"-c{connections}", f"-d{seconds:.0f}s", "--timeout", "60s", "-s", str(LUA), url], self.env)
        found = re.search(r"^RESULT (.*)$", output, re.M)
        assert found, output
        said = json.loads(found[1])
        assert said["requests"] and not said["errors"], output
        return Load(said["requests"], said["seconds"], said["p99_us"] / 1000)


class Counted:
    """One request, sent by h2load so many times to a path; none is cut off by the end, which would count where few are answered in a turn."""

    def __init__(self, scratch: Path, door: str, path: str, body: bytes, flags: list[str]):
        self.body, self.log, self.door, self.path, self.flags = scratch / "message", scratch / "log", door, path, flags
        self.body.write_bytes(body)

    def run(self, server: Server, connections: int, streams: int, seconds: float, rate: float) -> Load:
        """As many requests as are answered in that time at that rate, and as many as there are at the same time at least."""
        self.log.unlink(missing_ok=True)
        count = max(connections * streams, round(rate * seconds))
        argv = ["h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-n{count}", f"--log-file={self.log}", "-d", str(self.body)]
        output = _run([*argv, *self.flags, f"http://{getattr(server, self.door)}{self.path}"])
        took = re.search(r"finished in ([\d.]+)(us|ms|s),", output)
        good = re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", output)
        assert took and good, output
        times = [int(line.split("\t")[2]) / 1000 for line in self.log.read_text().splitlines()]
        return Load(int(good[1]), float(took[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[took[2]], float(np.percentile(times, 99)))


class H2load(Counted):
    """A message over gRPC; method: of the inference service."""

    def __init__(self, scratch: Path, message: bytes, method: str = "ModelInfer"):
        flags = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
        super().__init__(scratch, "grpc", f"/inference.GRPCInferenceService/{method}", b"\0" + len(message).to_bytes(4, "big") + message, flags)


class H1load(Counted):
    """A request over HTTP/1.1."""

    def __init__(self, scratch: Path, model: str, body: bytes, headers: dict[str, str]):
        flags = ["--h1", *(word for name, value in headers.items() for word in ("-H", f"{name}: {value}"))]
        super().__init__(scratch, "http", f"/v2/models/{model}/infer", body, flags)


@dataclass(frozen=True)
class Turn:
    """One of several subjects that are measured by turns."""

    rate: float  # answers a second
    cpu: float  # ms of the process for an answer
    p99: float = 0  # ms


def turn(server: Server, run: Callable[[], Load]) -> Turn:
    before = procfs.cpu_ns(server.pid)
    load = run()
    return Turn(load.rate, (procfs.cpu_ns(server.pid) - before) / 1e6 / load.answered, load.p99)


def compared(what: str, unit: str, mine: list[Turn], theirs: list[Turn]) -> str:
    """The medians of both, and that of the turns' ratios with the least and the greatest."""
    values, others = ([getattr(each, what) for each in turns] for turns in (mine, theirs))
    ratios = [a / b for a, b in zip(values, others, strict=True)]
    return f"{what} {median(values):9.3f} {unit}, {median(others):9.3f}: {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
