"""What was measured, for people to read: a line each, in the output and in the file that NEREID_GPU_FIGURES names."""

import os
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from harness import procfs
from harness.servers import Server

SOURCE = Path(__file__).with_name("count_copies.c")


def note(line: str) -> None:
    print(f"\n    {line}", flush=True)
    path = os.environ.get("NEREID_GPU_FIGURES")
    if path:
        with open(path, "a") as file:
            file.write(line + "\n")


def gpu_memory_used() -> int:
    """Bytes of the first GPU that anybody uses."""
    import torch  # noqa: PLC0415 - what is slow to load is loaded by those who ask

    free, total = torch.cuda.mem_get_info()
    return int(total - free)


class Copies:
    """Counts the copies that a server with this environment asks CUDA's driver for."""

    def __init__(self, folder: Path):
        library, self._counts = folder / "count_copies.so", folder / "copies"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", str(library), str(SOURCE)], check=True)
        self._counts.write_bytes(bytes(16))
        others = [each for each in [os.environ.get("LD_PRELOAD", "")] if each]
        self.env = {"LD_PRELOAD": " ".join([str(library), *others]), "NEREID_COPIES": str(self._counts)}

    def read(self) -> tuple[int, int]:
        count, size = struct.unpack("<2Q", self._counts.read_bytes())
        return count, size


def load(server: Server, ask: Callable[[], Callable[[], None]], threads: int, seconds: float = 2) -> tuple[float, float]:
    """Requests per second, and the processor time of the server per request in microseconds.

    ask  called in each thread; makes what sends one request and waits for its answer
    """
    counts, failures = [0] * threads, []

    def work(index: int) -> None:
        try:
            one = ask()
            one()
            while time.monotonic() < until:
                one()
                counts[index] += 1
        except BaseException as error:
            failures.append(error)

    until = time.monotonic() + seconds
    before, began = procfs.cpu_ns(server.pid), time.monotonic()
    all_threads = [Thread(target=work, args=(index,)) for index in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    took, used = time.monotonic() - began, procfs.cpu_ns(server.pid) - before
    assert not failures, failures[0]
    done = sum(counts) + threads
    return done / took, used / done / 1000
