"""`nereid bench`, and a server that keeps what it was sent."""

import contextlib
import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import paths
from harness.servers import HOST, Server

STABLE, NOT_STABLE = 0, 3
# A machine that does much else gives no answer within a short window: then longer ones are asked for.
LONGER: list[list[str]] = [[], ["-p", "2000"], ["-p", "20000"]]


def bench(*options: str) -> tuple[int, str, str]:
    argv = [str(paths.nereid_binary()), "bench", *options]
    got = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    return got.returncode, got.stdout, got.stderr


def measured_once(*options: str) -> str:
    """Whether it is stable depends on what else the machine does: the report says it, and the status the same."""
    status, out, err = bench(*options)
    assert status == (NOT_STABLE if "no answer" in out or "Not stable within" in out else STABLE), (status, out, err)
    return out


def measured(*options: str, most: int = 0) -> str:
    """most: more requests than that are wanted in its windows"""
    for longer in LONGER:
        out = measured_once(*options, *longer)
        if "no answer" not in out and number(out, "Request count") > most:
            break
    return out


def number(out: str, name: str) -> float:
    found = re.search(rf"^ +{name}: ([\d.]+)", out, re.MULTILINE)
    assert found, (name, out)
    return float(found[1])


def place(server: Server, protocol: str) -> list[str]:
    return ["-i", protocol, "-u", server.grpc if protocol == "grpc" else server.http]


class Recorder(ThreadingHTTPServer):
    """Speaks as much of the protocol as a load tester needs, and keeps what it was sent."""

    daemon_threads = True
    inputs: list[dict[str, object]]
    config: dict[str, object]

    def __init__(self, answer: Callable[[bytes], bytes | None]):
        super().__init__((HOST, 0), Asked)
        self.answer = answer  # returns the body of an error, None = there is none
        self.rude: Callable[[Asked], None] | None = None  # answers in its place, behind the head of a request
        self.statistics: Callable[[], object] | None = None
        self.bodies: list[tuple[str, dict[str, str], bytes]] = []


class Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # head and body in one write
    server: Recorder

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def say(self, status: int, found: object) -> None:
        self.give(status, json.dumps(found).encode())

    def give(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path.endswith("/config"):
            self.say(200, self.server.config)
        elif self.path.endswith("/stats"):
            if self.server.statistics:
                self.say(200, self.server.statistics())
            else:
                self.say(404, {"error": "no statistics"})
        else:
            self.say(200, {"name": "m", "inputs": self.server.inputs, "outputs": []})

    def do_POST(self) -> None:
        if self.server.rude:
            self.server.rude(self)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.path, dict(self.headers.items()), body))
        wrong = self.server.answer(body)
        if wrong is None:
            self.say(200, {"outputs": []})
        else:
            self.give(400, wrong)


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    made = Recorder(lambda body: None)
    made.inputs = [{"name": "A", "datatype": "INT32", "shape": [-1, 2]}, {"name": "B", "datatype": "BYTES", "shape": [-1, 1]}]
    made.config = {"max_batch_size": 4}
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def at(recorder: Recorder) -> list[str]:
    return ["-m", "m", "-u", f"{HOST}:{recorder.server_port}", "-p", "50", "--max-trials", "1"]


def measured_until(enough: Callable[[], bool], recorder: Recorder, *options: str) -> str:
    """The window that counts is the first in which enough was sent: a busy machine sends little in a short one."""
    for window in range(100, 60_000, 1000):
        recorder.bodies.clear()
        out = measured_once(*at(recorder), "-p", str(window), *options)
        if "no answer" not in out and enough():
            break
    return out


def split(sent: tuple[str, dict[str, str], bytes]) -> tuple[dict[str, object], bytes]:
    _, headers, body = sent
    length = int(headers.get("Inference-Header-Content-Length", len(body)))
    return json.loads(body[:length]), body[length:]
