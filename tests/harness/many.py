"""A repository of many small models, and what a server costs that starts with it."""

import statistics
from dataclasses import dataclass
from pathlib import Path

from models import onnx_models

from . import procfs
from .repository import Repository
from .servers import Server

IDENTITY = 100
ONNX = 100


def repository(path: Path) -> Path:
    """100 identity models and 100 small ONNX models, each with one instance on the CPU."""
    made = Repository(path)
    built = onnx_models.add_sub()
    one = "instance_group { count: 1 kind: KIND_CPU }\n"
    for index in range(IDENTITY):
        made.identity(f"identity_{index}", extra=one)
    for index in range(ONNX):
        folder = made.model(f"onnx_{index}", f'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n{one}')
        onnx_models.save(built, folder)
    return path


@dataclass
class Cost:
    """Of one start, or of several: the least of each, or the medians."""

    ready_ms: float
    own_ms: float  # the same, but for what that thread which waited for a processor for the longest time waited: none on a quiet machine
    cpu_ms: float  # of all threads, until it was ready
    rss: float
    pss: float
    threads: float


def start(server: Server) -> Cost:
    server.start(period=0.001)
    cpu = procfs.cpu_ns(server.pid)
    memory = procfs.memory(server.pid)
    ready_ms = server.ready_after * 1e3
    own_ms = ready_ms - procfs.longest_wait_seconds(server.pid) * 1e3
    cost = Cost(ready_ms, own_ms, cpu / 1e6, memory.rss, memory.pss, procfs.threads(server.pid))
    server.stop(status=None)
    return cost


def least(costs: list[Cost]) -> Cost:
    return Cost(*(min(getattr(cost, key) for cost in costs) for key in Cost.__dataclass_fields__))


def middle(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(getattr(cost, key) for cost in costs) for key in Cost.__dataclass_fields__))
