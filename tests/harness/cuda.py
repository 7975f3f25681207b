"""Memory of GPUs as a client has it: a process of its own allocates it, by the stand-in of CUDA's driver or the machine's, and gives others
handles to it."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import rawhttp, regions
from .gpus import Gpus
from .servers import Server

PROGRAM = Path(__file__).parent / "cuda_client.py"


class Client:
    """A process that allocates memory of one GPU. On leaving it is gone."""

    def __init__(self, gpus: Gpus, device: int = 0):
        self.device = device
        env = {name: value for name, value in gpus.env.items() if name not in ("NEREID_CUDA_FAIL", "NEREID_CUDA_GATE", "NEREID_CUDA_REPORT")}
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(device)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | env, text=True
        )

    def ask(self, what: str, *values: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([what, *values]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def memory(self, size: int, content: bytes = b"") -> "Memory":
        made = Memory(self, size)
        made.write(content or bytes(size))
        return made

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            pipe.close()


class Memory:
    """Memory of a client's. handle: what cudaIpcGetMemHandle gives for it."""

    def __init__(self, client: Client, size: int):
        self.size, self.device, self._client = size, client.device, client
        self._address, handle = client.ask("new", size)
        self.handle = base64.b64decode(handle)

    def write(self, content: bytes, at: int = 0) -> None:
        self._client.ask("write", self._address + at, content.hex())

    def read(self, size: int, at: int = 0) -> bytes:
        return bytes.fromhex(self._client.ask("read", self._address + at, size))

    def free(self) -> None:
        self._client.ask("free", self._address)


def register(server: Server, name: str, memory: Memory, size: int | None = None, **other: Any) -> rawhttp.Answer:
    """other: what is not as the memory says."""
    body: dict[str, Any] = {
        "raw_handle": {"b64": base64.b64encode(other.get("handle", memory.handle)).decode()},
        "device_id": other.get("device", memory.device),
        "byte_size": memory.size if size is None else size,
    }
    return rawhttp.post(server.http, f"{regions.CUDA}/region/{name}/register", body)


def unregister(server: Server, name: str = "") -> rawhttp.Answer:
    return rawhttp.post(server.http, f"{regions.CUDA}/region/{name}/unregister" if name else f"{regions.CUDA}/unregister", {})


def status(server: Server) -> Any:
    return rawhttp.get(server.http, f"{regions.CUDA}/status").json()
