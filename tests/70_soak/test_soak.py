"""Long ordinary work: clients that ask all the time, models that come and go, people who make mistakes. Every answer is right, and in the
end the server takes what it took after the first tenth of the time: memory, threads, descriptors. NEREID_SOAK_SECONDS says how long."""

import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import tritonclient.grpc as grpcclient
from harness import paths, procfs, rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid

SECONDS = float(os.environ.get("NEREID_SOAK_SECONDS", "60"))
CLIENTS = Path(__file__).resolve().parents[1] / "40_e2e" / "echo_clients.py"
MEASURED = paths.BUILD.name == "release"  # sanitizers keep what was freed
GROWTH, SLACK = 1.02, 256 << 10  # 2 % of 5.6 MiB are 28 pages; how many clients ask at the same moment is as many
ISOLATED = 'parameters { key: "ISOLATION" value { string_value: "process" } }'
SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'


class Work:
    """What happens in each round besides the clients' requests."""

    def __init__(self, repository: Repository, server: Nereid):
        self.repository, self.server = repository, server
        self.rounds = 0

    def _post(self, path: str, body: bytes = b"{}") -> rawhttp.Answer:
        return rawhttp.post(self.server.http, path, body)

    def reload(self) -> None:
        self.repository.identity("echo", extra=f'parameters {{ key: "round" value {{ string_value: "{self.rounds}" }} }}')
        assert self._post("/v2/repository/models/echo/load").status == 200

    def come_and_go(self) -> None:
        assert self._post("/v2/repository/models/guest/load").status == 200
        answer = self._post("/v2/models/guest/infer", BODY)
        assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [1, 2]
        assert self._post("/v2/repository/models/guest/unload").status == 200

    def isolated(self) -> None:
        answer = self._post("/v2/models/apart/infer", BODY)
        assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [1, 2]

    def mistakes(self) -> None:
        for path, body in (("/v2/models/nobody/infer", BODY), ("/v2/models/echo/infer", BODY[:-5]), ("/v2/models/echo/infer", b"{}")):
            answer = self._post(path, body)
            assert 400 <= answer.status <= 500 and answer.json()["error"]

    def gone(self) -> None:
        """Clients that vanish: with half a request, while theirs is executed, and without reading."""
        text = rawhttp.head("POST", "/v2/models/slow/infer", body=BODY) + BODY
        for sent in (text[:40], text[:-1], text, text * 5):
            with socket.create_connection((HOST, self.server.http_port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(sent)

    def stream(self) -> None:
        got: list[object] = []
        with grpcclient.InferenceServerClient(self.server.grpc) as client:
            client.start_stream(lambda result, error: got.append(error or result.as_numpy("OUTPUT0").tolist()))
            for number in range(20):
                tensor = grpcclient.InferInput("INPUT0", [1], "FP32").set_data_from_numpy(np.array([number], np.float32))
                client.async_stream_infer("decoupled", [tensor])
            client.stop_stream()
        assert got == [[float(number)] for number in range(20)]

    def looks(self) -> None:
        for path in ("/v2", "/v2/models/echo", "/v2/models/echo/config", "/v2/models/stats", "/v2/health/ready"):
            assert rawhttp.get(self.server.http, path).status == 200
        assert self._post("/v2/repository/index").status == 200
        assert rawhttp.get(self.server.metrics, "/metrics").status == 200

    def round(self) -> None:
        self.rounds += 1
        each: list[Callable[[], None]] = [self.reload, self.come_and_go, self.isolated, self.mistakes, self.gone, self.stream, self.looks]
        for one in each:
            one()


def models(path: Path) -> Repository:
    made = Repository(path)
    for name in ("echo", "guest"):
        made.identity(name)
    made.identity("slow", extra=SLOW)
    made.identity("apart", extra=ISOLATED)
    made.identity("decoupled", extra="model_transaction_policy { decoupled: true }")
    return made


def test_soak(tmp_path: Path) -> None:
    repository = models(tmp_path / "models")
    options: dict[str, str | list[str]] = {"model-control-mode": "explicit", "load-model": ["echo", "slow", "apart", "decoupled"], "log-info": "false"}
    taken: list[tuple[float, int, int, int]] = []  # when; memory, threads, descriptors
    with Nereid(repository.path, options) as server:
        work = Work(repository, server)
        argv = [sys.executable, str(CLIENTS), server.http, server.grpc, "echo"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as clients:
            assert clients.stdin and clients.stdout
            assert clients.stdout.readline() == b"\n"
            begun = time.monotonic()
            while (now := time.monotonic() - begun) < SECONDS or work.rounds < 100:
                work.round()
                taken.append((now, procfs.rss_bytes(server.pid), procfs.threads(server.pid), len(procfs.links(server.pid))))
            clients.stdin.close()
            assert json.loads(clients.stdout.read()) == []
        tenth = max(len(taken) // 10, 1)
        early, late = taken[tenth : 3 * tenth], taken[-2 * tenth :]
        for what, name in ((2, "threads"), (3, "descriptors")):
            assert median(row[what] for row in late) <= median(row[what] for row in early) + 1, name
        if MEASURED:
            assert median(row[1] for row in late) < max(row[1] for row in early) * GROWTH + SLACK, taken[:: len(taken) // 20]
