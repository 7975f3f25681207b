"""An honest client, as a process of its own: asks over HTTP and gRPC by turns and checks every answer.

    honest_client.py HTTP_ADDRESS GRPC_ADDRESS [short]

Reads a line `measure N` and answers, after N rounds, with a line of JSON: {"http": [ms...], "grpc": [ms...],
"wrong": ["what was wrong", ...]}. `pace N RATE` asks at fixed times, RATE rounds a second whatever the answers take, and
measures from those times on, unless it woke up late: an answer that is late makes those behind it late. What the client itself waited for a
processor while it asked is not counted. Ends with its input.
With `short` it asks for nothing that is long.
"""

import json
import os
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import h2frames as h2  # noqa: E402
from harness import rawgrpc, rawhttp  # noqa: E402
from harness.pause import pause  # noqa: E402
from tritonclient.grpc import service_pb2 as pb  # noqa: E402

CONNECTIONS = 4  # more than there are loops on a small machine
VALUES = 16
LARGE = 16384  # values; every so many rounds, so that bodies with a buffer of their own are asked for, too
LARGE_EVERY = 8


class OwnWaits:
    """How long this thread was ready and had no processor. It is the only one: a client library with threads of its own waits in each of them."""

    def __init__(self) -> None:
        self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def seconds(self) -> float:
        return int(os.pread(self._file, 128, 0).split()[1]) / 1e9


class GrpcConnection:
    """One call at a time, on the thread that asks."""

    def __init__(self, address: str):
        self.connection = h2.Connection(address)
        self.stream = -1

    def call(self, method: str, body: bytes) -> h2.Call:
        self.stream += 2
        head = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/{method}"))
        frames = h2.frames_of(self.stream, h2.message(body))
        self.connection.send(b"".join([h2.frame(h2.HEADERS, h2.END_HEADERS, self.stream, head), *frames]))
        got = self.connection.finish(self.stream)
        self.connection.calls.clear()
        self.connection.frames.clear()
        return got


class Client:
    def __init__(self, http: str, grpc: str, *how: str):
        self.short = how == ("short",)
        host, port = http.rsplit(":", 1)
        self.http = [rawhttp.Connection(host, int(port)) for _ in range(CONNECTIONS)]
        self.grpc = [GrpcConnection(grpc) for _ in range(2)]
        self.waits = OwnWaits()
        self.round = 0
        self.wrong: list[str] = []

    def ask_http(self, values: list[float]) -> None:
        tensor: dict[str, object] = {"name": "INPUT0", "datatype": "FP32", "shape": [len(values)]}
        headers, raw = {}, b""
        if len(values) == VALUES:
            body = json.dumps({"inputs": [{**tensor, "data": values}]}).encode()
        else:
            raw = struct.pack(f"<{len(values)}f", *values)
            tensor["parameters"] = {"binary_data_size": len(raw)}
            body = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
            headers = {"Inference-Header-Content-Length": str(len(body))}
        connection = self.http[self.round % CONNECTIONS]
        got = connection.ask("POST", "/v2/models/id_fp32/infer", body + raw, headers)
        if got.status != 200:
            self.wrong.append(f"HTTP {got.status}: {got.body[:200]!r}")
        elif raw and not got.body.endswith(raw):
            self.wrong.append("HTTP: another tensor came back")
        elif not raw and got.json()["outputs"][0]["data"] != values:
            self.wrong.append(f"HTTP: another tensor came back: {got.body[:200]!r}")

    def ask_grpc(self, values: list[float]) -> None:
        raw = struct.pack(f"<{len(values)}f", *values)
        request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [len(values)], raw)])
        got = self.grpc[self.round % 2].call("ModelInfer", request.SerializeToString())
        if got.reset is not None or got.trailers["grpc-status"] != "0":
            self.wrong.append(f"gRPC: {got}"[:300])
        elif [list(pb.ModelInferResponse.FromString(each).raw_output_contents) for each in got.messages()] != [[raw]]:
            self.wrong.append("gRPC: another tensor came back")

    def measure(self, rounds: int, rate: float = 0) -> dict[str, list[float] | list[str]]:
        took: dict[str, list[float]] = {"http": [], "grpc": []}
        self.wrong = []
        start = time.perf_counter()
        for number in range(rounds):
            self.round += 1
            count = VALUES if self.short or self.round % LARGE_EVERY else LARGE
            values = [float((self.round + i) % 1000) for i in range(count)]
            for index, (kind, ask) in enumerate((("http", self.ask_http), ("grpc", self.ask_grpc))):
                begun = time.perf_counter()
                if rate:
                    due = start + (number + index / 2) / rate
                    if due > begun:
                        pause(due - begun)
                        begun = time.perf_counter()  # that it woke up late is not the server's doing
                    else:
                        begun = due
                waited = self.waits.seconds()
                try:
                    ask(values)
                except OSError as error:
                    self.wrong.append(f"{kind}: {error!r}")
                    return {**took, "wrong": self.wrong}
                took[kind].append((time.perf_counter() - begun - (self.waits.seconds() - waited)) * 1000)
        return {**took, "wrong": self.wrong}


def main() -> None:
    client = Client(*sys.argv[1:])
    for line in sys.stdin:
        words = line.split()
        rate = float(words[2]) if words[0] == "pace" else 0
        print(json.dumps(client.measure(int(words[1]), rate)), flush=True)


if __name__ == "__main__":
    main()
