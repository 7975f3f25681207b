"""What is asked: one row of the table is one kind of request under one kind of load."""

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from harness import rawgrpc

MODEL = "identity"
ENSEMBLE = "three_steps"  # of MODEL, one after the other
RECITE = "recite"  # decoupled: it answers as often as a request says


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    protocol: str  # "http" or "grpc"
    floats: int
    connections: int
    streams: int = 1  # at the same time on one connection
    binary: bool = True
    model: str = MODEL
    responses: int = 0  # to each request, on a stream of its own; 0: a call with one answer

    @property
    def rpc(self) -> str:
        return "ModelStreamInfer" if self.responses else "ModelInfer"

    @property
    def grpc_path(self) -> str:
        return f"/{rawgrpc.SERVICE}/{self.rpc}"

    @property
    def http_path(self) -> str:
        return f"/v2/models/{self.model}/infer"

    @property
    def concurrency(self) -> int:
        return self.connections * self.streams

    @cached_property
    def values(self) -> np.ndarray:
        """Values whose shortest decimal form is exact, so that JSON gives them back bit for bit."""
        return (np.arange(self.floats, dtype=np.int64) % 1000 - 500).astype("<f4") / np.float32(4)

    @cached_property
    def payload(self) -> bytes:
        return self.values.tobytes()

    @cached_property
    def http_headers(self) -> dict[str, str]:
        if not self.binary:
            return {"Content-Type": "application/json"}
        return {
            "Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(len(self._http_json)),
        }

    @cached_property
    def _http_json(self) -> bytes:
        tensor: dict[str, object] = {"name": "INPUT0", "datatype": "FP32", "shape": [self.floats]}
        request: dict[str, object] = {"inputs": [tensor]}
        if self.binary:
            tensor["parameters"] = {"binary_data_size": len(self.payload)}
            request["parameters"] = {"binary_data_output": True}
        else:
            tensor["data"] = self.values.tolist()
        return json.dumps(request, separators=(",", ":")).encode()

    @cached_property
    def http_body(self) -> bytes:
        return self._http_json + (self.payload if self.binary else b"")

    @cached_property
    def grpc_body(self) -> bytes:
        tensor = ("INPUT0", "FP32", [self.floats], self.payload)
        request = rawgrpc.infer_request(self.model, [tensor])
        if self.responses:
            request.parameters["count"].int64_param = self.responses
            request.parameters["joined"].bool_param = True
        return request.SerializeToString()


def _sizes(protocol: str) -> list[Row]:
    rows = []
    for floats, size, label in (
        (16, "64 B", "16"),
        (16 << 10, "64 KiB", "16k"),
        (256 << 10, "1 MiB", "256k"),
        (4 << 20, "16 MiB", "4m"),
    ):
        big = floats == 4 << 20
        connections = 4 if big else 16
        if protocol == "http":
            rows.append(
                Row(
                    f"http_bin_{label}",
                    f"HTTP binary, {size}, {connections} connections",
                    "http",
                    floats,
                    connections,
                )
            )
            continue
        streams = 8 if big else 64
        rows.append(
            Row(
                f"grpc_{label}_conns", f"gRPC, {size}, {connections} connections", "grpc", floats, connections
            )
        )
        rows.append(
            Row(
                f"grpc_{label}_streams", f"gRPC, {size}, {streams} streams on one", "grpc", floats, 1, streams
            )
        )
    return rows


ROWS = [
    Row("http_json_16", "HTTP JSON, 16 floats, 16 connections", "http", 16, 16, binary=False),
    *_sizes("http"),
    *_sizes("grpc"),
    Row("grpc_16_responses", "gRPC, streams of 1,000 responses of 64 B, 4 connections", "grpc", 16, 4, model=RECITE, responses=1000),
    Row("ensemble_http_16", "Ensemble of 3 steps, HTTP, 64 B, 16 connections", "http", 16, 16, model=ENSEMBLE),
    Row("ensemble_http_256k", "Ensemble of 3 steps, HTTP, 1 MiB, 16 connections", "http", 256 << 10, 16, model=ENSEMBLE),
    Row("ensemble_grpc_16", "Ensemble of 3 steps, gRPC, 64 B, 64 streams on one", "grpc", 16, 1, 64, model=ENSEMBLE),
]
