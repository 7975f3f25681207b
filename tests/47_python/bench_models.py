"""What python models cost, server and stubs together, and how many requests a second they answer, beside the reference: small and large
tensors, strings, several instances, batches, streams, nested requests, over HTTP (wrk) and gRPC (h2load). Printed, not judged (test_cost.py
judges a few). By hand:

    build/venv/bin/python -m pytest -s tests/47_python/bench_models.py [-k NAME]

The servers are asked by turns, for a second or a few, so that what else the machine does meets both; the medians count. The clients have
the last processor, the servers and their stubs the others; with NEREID_BENCH_SHARED=1 all have all."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from asks import Asker, words
from conftest import make_server, ready_with
from harness import processors, procfs, rawhttp
from harness.loads import H2load, Load, Wrk
from harness.servers import HOST, Server
from tritonclient.grpc import service_pb2 as pb
from tritonclient.utils import serialize_byte_tensor

pytestmark = pytest.mark.reference
MODELS = Path(__file__).parent / "models"
SERVERS_ON, CLIENTS_ON = processors.shared() if os.environ.get("NEREID_BENCH_SHARED") == "1" else processors.apart()
TURNS = 5
SECONDS = 1  # of a turn; longer where an answer takes long
MIB = 1 << 20

NUMBERS = "max_batch_size: 16 input { name: 'IN_FP32' data_type: TYPE_FP32 dims: [ -1 ] } output { name: 'OUT_FP32' data_type: TYPE_FP32 dims: [ -1 ] }"
STRINGS = "input { name: 'IN_S' data_type: TYPE_STRING dims: [ -1 ] } output { name: 'OUT_S' data_type: TYPE_STRING dims: [ -1 ] }"
DATA = "input { name: 'DATA' data_type: TYPE_UINT8 dims: [ -1 ] } output { name: 'BACK' data_type: TYPE_UINT8 dims: [ -1 ] }"
REPEAT = (
    "input { name: 'IN' data_type: TYPE_INT32 dims: [ -1 ] } input { name: 'WHERE' data_type: TYPE_STRING dims: [ 1 ] } "
    "output { name: 'OUT' data_type: TYPE_INT32 dims: [ 1 ] } model_transaction_policy { decoupled: true }"
)
TEXT = "input { name: 'ASK' data_type: TYPE_STRING dims: [ 1 ] } output { name: 'TOLD' data_type: TYPE_STRING dims: [ 1 ] }"


def count(instances: int) -> str:
    return f" instance_group [ {{ count: {instances} kind: KIND_CPU }} ]"


# Name -> source, configuration.
SERVED = {
    "numbers": ("identity", NUMBERS),
    "numbers_2": ("identity", NUMBERS + count(2)),
    "numbers_4": ("identity", NUMBERS + count(4)),
    "batched": ("identity", NUMBERS + " dynamic_batching { }"),
    "strings": ("identity", STRINGS),
    "large": ("large", DATA),
    "repeat": ("repeat", REPEAT),
    "bls_plain": ("bls_plain", TEXT + count(2)),
    "bls_outer": ("bls_plain", TEXT + count(2)),
    "echo": ("echo", TEXT),
}


@dataclass(frozen=True)
class Row:
    model: str
    protocol: str  # http, grpc, or stream: gRPC, a stream for each request
    at_once: int
    inputs: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        return sum(each.nbytes for each in self.inputs.values() if each.dtype != np.object_) // MIB

    @property
    def name(self) -> str:
        more = f"{self.size}M-" if self.size else f"{self.inputs['WHERE'][0]}-" if "WHERE" in self.inputs else ""
        return f"{self.model}-{more}{self.protocol}-{self.at_once}"

    @property
    def seconds(self) -> int:
        return SECONDS * (5 if self.size > 8 else 1)


SMALL = {"IN_FP32": np.arange(16, dtype=np.float32).reshape(1, 16)}
HUNDRED = {"IN_S": words(*("a string of some length" * (i % 4) for i in range(100)))}
NESTED = {"ASK": words("echo/x")}
TWICE = {"ASK": words("bls_plain/echo/x")}
FIFTY = np.arange(50, dtype=np.int32)
ROWS = [
    *(Row("numbers", protocol, at_once, SMALL) for protocol in ("http", "grpc") for at_once in (1, 16)),
    *(Row(model, protocol, 16, SMALL) for model in ("numbers_2", "numbers_4", "batched") for protocol in ("http", "grpc")),
    *(Row("strings", protocol, 4, HUNDRED) for protocol in ("http", "grpc")),
    *(Row("bls_plain", protocol, 4, NESTED) for protocol in ("http", "grpc")),
    *(Row("bls_outer", protocol, 4, TWICE) for protocol in ("http", "grpc")),
    *(Row("repeat", "stream", 4, {"IN": FIFTY, "WHERE": words(where)}) for where in ("execute", "thread")),
    *(Row("large", protocol, 2, {"DATA": np.zeros(size, np.uint8)}) for size in (MIB, 64 * MIB) for protocol in ("http", "grpc")),
]


def raw(array: np.ndarray) -> bytes:
    return serialize_byte_tensor(array).item() if array.dtype == np.object_ else array.tobytes()


def datatype(array: np.ndarray) -> str:
    return {"object": "BYTES", "float32": "FP32", "int32": "INT32", "uint8": "UINT8"}[str(array.dtype)]


def http(row: Row) -> tuple[bytes, dict[str, str]]:
    """Body and headers: JSON, large tensors as bytes behind it."""
    if not row.model.startswith("large"):
        plain = {name: [each.decode() if isinstance(each, bytes) else each for each in a.flatten().tolist()] for name, a in row.inputs.items()}
        tensors = [{"name": n, "datatype": datatype(a), "shape": a.shape, "data": plain[n]} for n, a in row.inputs.items()]
        return json.dumps({"inputs": tensors}).encode(), {"Content-Type": "application/json"}
    tensors = [
        {"name": n, "datatype": datatype(a), "shape": a.shape, "parameters": {"binary_data_size": a.nbytes}} for n, a in row.inputs.items()
    ]
    head = json.dumps({"inputs": tensors, "parameters": {"binary_data_output": True}}).encode()
    return head + b"".join(map(raw, row.inputs.values())), {"Inference-Header-Content-Length": str(len(head))}


def message(row: Row) -> bytes:
    ask = pb.ModelInferRequest(model_name=row.model)
    for name, array in row.inputs.items():
        ask.inputs.add(name=name, datatype=datatype(array), shape=array.shape)
        ask.raw_input_contents.append(raw(array))
    return ask.SerializeToString()


def used(server: Server) -> int:
    """CPU time of a server and its stubs, in ns."""
    return sum(procfs.cpu_ns(pid) for pid in (server.pid, *procfs.children(server.pid)))


def load(row: Row, server: Server, scratch: Path, rate: float) -> Load:
    if row.protocol == "http":
        return Wrk(scratch, *http(row)).run(server, row.model, row.at_once, row.seconds)
    return H2load(scratch, message(row), "ModelStreamInfer" if row.protocol == "stream" else "ModelInfer").run(server, 1, row.at_once, row.seconds, rate)


def turn(row: Row, server: Server, scratch: Path, rate: float) -> tuple[float, float]:
    """Microseconds of CPU time a request, requests a second."""
    before = used(server)
    with processors.on(CLIENTS_ON):
        found = load(row, server, scratch, rate)
    return (used(server) - before) / 1000 / found.answered, found.rate


@pytest.fixture(scope="module")
def servers(python_backends: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    repository = tmp_path_factory.mktemp("bench") / "models"
    for name, (source, config) in SERVED.items():
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(f"name: '{name}' backend: 'python' {config}\n")
        shutil.copy(MODELS / f"{source}.py", repository / name / "1" / "model.py")
    options = {"model-control-mode": "explicit", "load-model": list(SERVED), "log-verbose": "0", "backend-config": "python,shm-default-byte-size=268435456"}
    made = {kind: make_server(kind, python_backends, repository, options) for kind in ("nereid", "reference")}
    try:
        with processors.on(SERVERS_ON):
            for server in made.values():
                server.start()
        for server in made.values():
            ready_with(server, list(SERVED))
        yield made
    finally:
        for server in made.values():
            server.kill()


def check(row: Row, servers: dict[str, Server]) -> None:
    """Both give the same answer to one request."""
    answers = []
    for server in servers.values():
        asker = Asker(server)
        answers.append(asker.stream(row.model, row.inputs) if row.protocol == "stream" else asker.infer(row.model, row.inputs))
        asker.close()
    assert answers[0] == answers[1] and "message" not in answers[0], str(answers)[:2000]
    body, headers = http(row)
    if row.protocol == "http":
        for server in servers.values():
            answer = rawhttp.request(HOST, server.http_port, "POST", f"/v2/models/{row.model}/infer", body, headers=headers, timeout=60)
            assert answer.status == 200, answer


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_cost(row: Row, servers: dict[str, Server], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(row, servers)
    turns: dict[str, list[tuple[float, float]]] = {kind: [] for kind in servers}
    rates = {kind: turn(row, server, tmp_path, 4.0)[1] for kind, server in servers.items()}
    for i in range(TURNS):
        for kind in sorted(servers, reverse=bool(i % 2)):
            turns[kind].append(turn(row, servers[kind], tmp_path, rates[kind]))
    cpu = {kind: median(each[0] for each in of) for kind, of in turns.items()}
    rate = {kind: median(each[1] for each in of) for kind, of in turns.items()}
    pairs = [mine[1] / theirs[1] for mine, theirs in zip(turns["nereid"], turns["reference"], strict=True)]
    with capsys.disabled():
        print(
            f"\n{row.name:20} CPU {cpu['nereid']:9.1f} us, reference {cpu['reference']:9.1f}: {cpu['nereid'] / cpu['reference']:.2f}   "
            f"rate {rate['nereid']:8.1f}/s, reference {rate['reference']:8.1f}: {median(pairs):.2f} ({min(pairs):.2f} to {max(pairs):.2f})",
            end="",
        )
