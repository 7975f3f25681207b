"""What the tests on a GPU share: requests, what was copied, and what was measured, a line each for people, in the output and in the file that
NEREID_GPU_FIGURES names."""

import os
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import cuda, procfs
from harness.gpus import Gpus
from harness.servers import Server
from sklearn import datasets

SOURCE = Path(__file__).with_name("count_copies.c")
CLIENTS = {"HTTP": httpclient, "gRPC": grpcclient}
SIZE = 4 << 20  # elements of a large tensor: 16 MiB
NUMPY = {"float32": "FP32", "int32": "INT32", "int64": "INT64", "object": "BYTES"}


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


def asker(module: Any, server: Server, model: str, given: dict[str, np.ndarray], wanted: str, **more: Any) -> Callable[[], np.ndarray]:
    """What sends this request, over a connection of its own, and gives the output."""
    client = module.InferenceServerClient(server.http if module is httpclient else server.grpc)
    inputs = []
    for name, data in given.items():
        inputs.append(module.InferInput(name, list(data.shape), NUMPY[str(data.dtype)]))
        inputs[-1].set_data_from_numpy(data)
    return lambda: client.infer(model, inputs, **more).as_numpy(wanted)


def measured(server: Server, copies: Copies, make: Callable[[], Callable[[], Any]]) -> tuple[float, float, float, float]:
    """Copies and bytes per request, requests per second, microseconds of the server's processors per request."""
    ask = make()
    ask()
    count, size = copies.read()
    for _ in range(10):
        ask()
    after = copies.read()
    rate, cpu = load(server, make, 1, 1)
    return (after[0] - count) / 10, (after[1] - size) / 10, rate, cpu


def there_and_back(server: Server, copies: Copies, model: str, output: str, by_the_host: bool = False) -> None:
    """A tensor of 16 MiB to the GPU and back, by a model that doubles x: as bytes of a request, and in memory of the GPU that client and server share.

    by_the_host  the backend has its tensors on the host, and what is on the GPU goes there and back
    """
    data = np.random.default_rng(2).random(SIZE, dtype=np.float32)
    rows = {}
    for protocol, module in CLIENTS.items():

        def plain(module: Any = module) -> Callable[[], np.ndarray]:
            return asker(module, server, model, {"x": data}, output)

        assert (plain()() == data * 2).all()
        rows[f"{protocol}, in the request"] = measured(server, copies, plain)
    with cuda.Client(Gpus(Path("/nonexistent"))) as client:
        given, wanted = client.memory(data.nbytes, data.tobytes()), client.memory(data.nbytes)
        assert cuda.register(server, "given", given).status == 200
        assert cuda.register(server, "wanted", wanted).status == 200
        for protocol, module in CLIENTS.items():

            def shared(module: Any = module) -> Callable[[], Any]:
                asks = module.InferenceServerClient(server.http if module is httpclient else server.grpc)
                x, y = module.InferInput("x", [SIZE], "FP32"), module.InferRequestedOutput(output)
                x.set_shared_memory("given", data.nbytes)
                y.set_shared_memory("wanted", data.nbytes)
                return lambda: asks.infer(model, [x], outputs=[y])

            shared()()
            assert wanted.read(data.nbytes) == (data * 2).tobytes()
            wanted.write(bytes(data.nbytes))
            rows[f"{protocol}, on the GPU"] = measured(server, copies, shared)
        # One copy, from the model's memory to the client's, and none of the input.
        number = 4 if by_the_host else 1
        assert rows["HTTP, on the GPU"][:2] == rows["gRPC, on the GPU"][:2] == (number, number * data.nbytes)
        assert rows["HTTP, in the request"][1] == 2 * data.nbytes
        assert cuda.unregister(server).status == 200
    for name, (count, size, rate, cpu) in rows.items():
        note(f"16 MiB there and back, {name}: {count:.1f} copies, {size / 1048576:.1f} MiB copied, {cpu:.0f} us of a processor, {rate:.0f} requests/s")


def images() -> tuple[np.ndarray, np.ndarray]:
    found = datasets.load_digits()
    return found.data.astype(np.float32), found.target
