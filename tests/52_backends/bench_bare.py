"""This server with one instance beside the bare runtime in a loop (bare/), both with one thread, and beside the reference with the same
backend: inferences a second and CPU time of one, for networks with random weights. Printed, not judged. By hand:

    build/venv/bin/python -m pytest -s tests/52_backends/bench_bare.py [-k RUNTIME]

They compute by turns, so that what else the machine does meets all; the medians of the turns' ratios count. Two clients ask a server, so that
it always has something to compute."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from harness import paths
from harness.loads import Counted, H1load, H2load, Turn, as_grpc, as_http, compared, turn
from harness.repository import Repository
from harness.servers import Server, serving

import random_networks
from clients import ask, parameters, tensor

pytestmark = pytest.mark.reference
TURNS = int(os.environ.get("NEREID_BENCH_TURNS", "5"))
SECONDS = float(os.environ.get("NEREID_BENCH_SECONDS", "5"))  # of a turn
CLIENTS = 2
DEPS = paths.ROOT / "build" / "deps"
ONE = "instance_group { count: 1 kind: KIND_CPU }\n"


@dataclass(frozen=True)
class Runtime:
    save: Callable[[str, Path], Path]
    config: str
    source: str
    flags: Callable[[], list[str]]
    output: str = "y"


def linked(folder: Path, *libraries: str) -> list[str]:
    named = [f"-l:{paths.need(each).name}" for library in libraries for each in sorted(folder.glob(library))]
    assert named, f"{folder} has none of {libraries}"
    return [f"-L{folder}", "-Wl,--no-as-needed", *named, f"-Wl,-rpath,{folder}", "-Wl,--allow-shlib-undefined"]


RUNTIMES = {
    "onnxruntime": Runtime(
        random_networks.save_onnx, 'backend: "onnxruntime"\n' + parameters({"intra_op_thread_count": "1"}), "onnxruntime.c",
        lambda: [f"-I{DEPS / 'usr' / 'include' / 'onnxruntime'}", *linked(paths.BUILD / "backends" / "onnxruntime", "libonnxruntime.so.1")],
    ),
    "openvino": Runtime(
        random_networks.save_onnx, 'backend: "openvino"\ndefault_model_filename: "model.onnx"\n'
        + parameters({"INFERENCE_NUM_THREADS": "1", "NUM_STREAMS": "1"}), "openvino.c",
        lambda: [f"-I{DEPS / 'openvino' / 'openvino' / 'include'}", *linked(paths.BUILD / "backends" / "openvino", "libopenvino_c.so.*")],
    ),
    "tensorflow": Runtime(
        random_networks.save_graph, 'platform: "tensorflow_graphdef"\n' + parameters({"TF_NUM_INTRA_THREADS": "1"}), "tensorflow.c",
        lambda: linked(paths.BUILD / "backends" / "tensorflow", "libtensorflow_cc.so.2", "libtensorflow_framework.so.2"),
    ),
    "pytorch": Runtime(
        random_networks.save_script, 'platform: "pytorch_libtorch"\n' + parameters({"INTRA_OP_THREAD_COUNT": "1"}), "pytorch.cc",
        lambda: ["-std=c++17", f"-isystem{DEPS / 'pytorch' / 'torch' / 'include'}",
                 *linked(paths.BUILD / "backends" / "pytorch", "libtorch_cpu.so", "libc10.so", "libtorch.so")],
        output="y__0",
    ),
}


def dims(runtime: str, network: str) -> list[int]:
    wanted = random_networks.DIMS[network]
    return wanted if runtime != "tensorflow" or len(wanted) < 4 else [wanted[0], *wanted[2:], wanted[1]]


class Bare:
    """The runtime in a loop."""

    def __init__(self, program: Path, file: Path, shape: list[int], output: str):
        argv = [str(program), str(file), "x", "x".join(map(str, shape)), output]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"TF_CPP_MIN_LOG_LEVEL": "1"})
        self.turn(0.1)

    def turn(self, seconds: float) -> Turn:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        runs, took, cpu, self.sum = map(float, self.process.stdout.readline().split())
        return Turn(runs / took, cpu * 1000 / runs)

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait() == 0


@contextmanager
def bare(scratch: Path, runtime: str, network: str, file: Path) -> Iterator[Bare]:
    source = Path(__file__).parent / "bare" / RUNTIMES[runtime].source
    compiler = "g++" if source.suffix == ".cc" else "gcc"
    subprocess.run([compiler, "-O2", str(source), "-o", str(scratch / "bare"), *RUNTIMES[runtime].flags()], check=True)
    made = Bare(scratch / "bare", file, dims(runtime, network), RUNTIMES[runtime].output)
    yield made
    made.end()


def asks(server: Server, load: Counted, rate: float) -> Turn:
    return turn(server, lambda: load.run(server, CLIENTS, 1, SECONDS, rate))


@pytest.mark.parametrize("network", list(random_networks.DIMS))
@pytest.mark.parametrize("runtime", list(RUNTIMES))
def test_beside_the_bare_runtime(runtime: str, network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape, output = dims(runtime, network), RUNTIMES[runtime].output
    shapes = tensor("input", "x", "FP32", shape) + tensor("output", output, "FP32", random_networks.RESULTS[network])
    made = Repository(tmp_path / "models")
    file = RUNTIMES[runtime].save(network, made.model(network, RUNTIMES[runtime].config + ONE + shapes))
    count = int(np.prod(shape))
    x = (np.arange(count, dtype=np.float32) / np.float32(count) - np.float32(0.5)).reshape(shape)
    for protocol in ("http", "grpc"):
        (tmp_path / protocol).mkdir()
    loads = {"http": H1load(tmp_path / "http", network, *as_http({"x": x})), "grpc": H2load(tmp_path / "grpc", as_grpc(network, {"x": x}))}
    with ExitStack() as stack:
        loop = stack.enter_context(bare(tmp_path, runtime, network, file))
        servers = {kind: stack.enter_context(serving(kind, made.path, {})) for kind in ("nereid", "reference")}
        for server in servers.values():
            found = float(ask(server, "grpc", network, {"x": x})[output].sum(dtype=np.float64))
            assert abs(found - loop.sum) < 1e-3 * max(1, abs(loop.sum)), (found, loop.sum)
        asked = {(kind, protocol): (servers[kind], load) for kind in servers for protocol, load in loads.items()}
        rates = {which: asks(*asked[which], min(1000, loop.turn(0.5).rate)).rate for which in asked}
        turns: dict[tuple[str, str], list[Turn]] = {each: [] for each in [("bare", ""), *asked]}
        for i in range(TURNS):
            for which in sorted(turns, reverse=bool(i % 2)):
                turns[which].append(asks(*asked[which], rates[which]) if which in asked else loop.turn(SECONDS))

    def told(which: tuple[str, str]) -> str:
        return "   ".join(compared(what, unit, turns[which], turns["bare", ""]) for what, unit in (("rate", "/s"), ("cpu", "ms")))

    with capsys.disabled():
        for which in turns:
            print(f"\n{runtime:11} {network:10} {' '.join(which):14} {told(which)}", end="")
