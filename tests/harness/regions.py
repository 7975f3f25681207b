"""Shared memory as a client makes it, and how a client registers it."""

import itertools
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import rawhttp
from .servers import Server

SYSTEM = "/v2/systemsharedmemory"
CUDA = "/v2/cudasharedmemory"
_numbers = itertools.count()


class Memory:
    """Shared memory of a name of its own, gone on leaving. key: how a server opens it."""

    def __init__(self, size: int, content: bytes = b""):
        self.key = f"/tests-region-{os.getpid()}-{next(_numbers)}"
        self.path = Path("/dev/shm") / self.key[1:]
        self.size = size
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(self.fd, size)
        self.write(content)

    def write(self, content: bytes, at: int = 0) -> None:
        os.pwrite(self.fd, content, at)

    def read(self, size: int, at: int = 0) -> bytes:
        return os.pread(self.fd, size, at)

    def cut(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def register(server: Server, name: str, key: str, size: int, offset: int = 0) -> rawhttp.Answer:
    return rawhttp.post(server.http, f"{SYSTEM}/region/{name}/register", {"key": key, "byte_size": size, "offset": offset})


def unregister(server: Server, name: str = "") -> rawhttp.Answer:
    return rawhttp.post(server.http, f"{SYSTEM}/region/{name}/unregister" if name else f"{SYSTEM}/unregister", {})


def status(server: Server) -> Any:
    return rawhttp.get(server.http, f"{SYSTEM}/status").json()


def part(region: str, size: int, offset: int = 0) -> dict[str, Any]:
    """Parameters of a tensor that lies there."""
    return {"shared_memory_region": region, "shared_memory_byte_size": size} | ({"shared_memory_offset": offset} if offset else {})


def body(shape: list[int], source: dict[str, Any], target: dict[str, Any] | None = None, datatype: str = "FP32") -> bytes:
    """A request for an identity model of one tensor."""
    asked: dict[str, Any] = {"inputs": [{"name": "INPUT0", "datatype": datatype, "shape": shape, "parameters": source}]}
    if target is not None:
        asked["outputs"] = [{"name": "OUTPUT0", "parameters": target}]
    return json.dumps(asked).encode()
