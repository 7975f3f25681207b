"""What is measured: ours (inline on and off), the reference and the two floors."""

import json
import socket
import tempfile
from pathlib import Path

from harness import paths, ports, rawhttp
from harness.process import Process
from harness.servers import HOST, Nereid, Reference, Server
from rows import Row

INLINE = "inline"
THREADS = "threads"
REFERENCE = "reference"
FLOOR = "floor"


class Subject:
    def __init__(self, name: str, process: Process):
        self.name = name
        self.process = process
        self.pid = process.pid

    def address(self, row: Row) -> tuple[str, int]:
        raise NotImplementedError

    def answered(self) -> int | None:
        """Requests answered well so far by the subject's own count; None when it does not count."""
        return None

    def stop(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError


class Measured(Subject):
    def __init__(self, name: str, server: Server, model: str):
        self.model = model
        self.server = server.start(period=0.001)
        super().__init__(name, server.process)

    def address(self, row: Row) -> tuple[str, int]:
        return HOST, self.server.http_port if row.protocol == "http" else self.server.grpc_port

    def answered(self) -> int | None:
        stats = rawhttp.get(self.server.http, f"/v2/models/{self.model}/stats").json()
        return stats["model_stats"][0]["inference_stats"]["success"]["count"]

    def stop(self) -> None:
        self.server.stop()

    def kill(self) -> None:
        self.server.kill()


class Floor(Subject):
    def __init__(self, protocol: str):
        self.port = ports.free_port()
        self._scratch = tempfile.TemporaryDirectory(prefix="floor-")
        binary = paths.need(paths.BUILD / "bench" / f"bench_floor_{protocol}", "make bench")
        log = Path(self._scratch.name) / "log"
        super().__init__(FLOOR, Process(binary.name, [str(binary), str(self.port)], log))
        self.process.wait_until(self._ready, 60)

    def _ready(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def address(self, row: Row) -> tuple[str, int]:
        return HOST, self.port

    def stop(self) -> None:
        self.process.stop(status=None)
        self._scratch.cleanup()

    def kill(self) -> None:
        self.process.kill()
        self._scratch.cleanup()


def nereid(repository: Path, name: str) -> Nereid:
    return Nereid(repository, {"inline-execution": json.dumps(name == INLINE)})


def start(names: list[str], repository: Path, row: Row) -> list[Subject]:
    def make(name: str) -> Subject:
        if name == FLOOR:
            return Floor(row.protocol)
        server = Reference(repository) if name == REFERENCE else nereid(repository, name)
        return Measured(name, server, row.model)

    started: list[Subject] = []
    try:
        for name in names:
            started.append(make(name))
    except BaseException:
        for subject in started:
            subject.kill()
        raise
    return started
