"""TLS: the HTTP port beside nginx, with the same certificate, the same body and the same clients, in turn; one thread each."""

import json
import os
import re
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import load
import subjects
from check import WrongAnswer
from harness import paths, ports, tls
from harness.process import Process
from harness.processors import on
from harness.repository import Repository

NAME = "tls"
TITLE = "TLS on the HTTP port beside nginx"
HEAD = [TITLE, "of", "ours, CPU", "nginx, CPU", "ratio", "in turn", "ours, rate", "nginx, rate", "other"]
PATH = "/v2/health/ready"
BODY = '{"ready":true}'
PROTOCOLS = ["http/1.1"]

CONFIG = """\
daemon off;
master_process off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    default_type application/json;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {host}:{port} ssl http2;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20;
        location {path} {{ return 200 '{body}'; }}
    }}
}}
"""


class Nginx(subjects.Subject):
    def __init__(self, folder: Path, pair: tls.Pair):
        self.port = ports.free_port()
        binary = paths.need(paths.ROOT / "build/deps/bench/usr/sbin/nginx", "tools/bench.sh")
        config = folder / "nginx.conf"
        config.write_text(CONFIG.format(folder=folder, host=subjects.HOST, port=self.port, cert=pair.cert, key=pair.key, path=PATH, body=BODY))
        super().__init__("nginx", Process("nginx", [str(binary), "-e", str(folder / "error.log"), "-c", str(config)], folder / "nginx.log"))
        self.process.wait_until(lambda: _answers(self.port), 30)

    def stop(self) -> None:
        self.process.stop(status=None)

    def kill(self) -> None:
        self.process.kill()


class Ours(subjects.Subject):
    def __init__(self, folder: Path, pair: tls.Pair):
        models = Repository(folder / "models")
        models.identity("identity")
        options = tls.options(pair, ("http",)) | {"loop-threads": "1"}
        self.server = tls.Secure(models.path, options).start()
        self.port = self.server.http_port
        super().__init__("ours", self.server.process)

    def stop(self) -> None:
        self.server.stop()

    def kill(self) -> None:
        self.server.kill()


def _answers(port: int) -> bool:
    try:
        with tls.Connection(port, tls.context(None)) as connection:
            got = connection.ask("GET", PATH)
    except (OSError, ssl.SSLError):
        return False
    if got.status != 200 or json.loads(got.body) != json.loads(BODY):
        raise WrongAnswer(f"port {port}: {got.status} {got.body!r}")
    return True


Client = Callable[[int, float, load.Watch], int]


def _number(pattern: str, output: str) -> int:
    found = re.search(pattern, output, re.MULTILINE)
    if not found:
        raise WrongAnswer(f"no {pattern!r} in:\n{output}")
    return int(found.group(1))


def _s_time(*how: str) -> Client:
    """One handshake after the other, with a request each: without one it would be a stranger's, that gets a tenth of the loop."""

    def run(port: int, seconds: float, watch: load.Watch) -> int:
        argv = ["openssl", "s_time", "-connect", f"{subjects.HOST}:{port}", "-time", str(max(1, round(seconds))), "-www", PATH, *how]
        return _number(r"^(\d+) connections in \d+ real seconds", load.run(argv, {}, watch, seconds + 60))

    return run


def _again(port: int, seconds: float, watch: load.Watch) -> int:
    """TLS 1.3 gives its ticket behind the handshake: each connection asks once and brings the last one's ticket."""
    context, until, count, session = tls.context(None, alpn=PROTOCOLS), time.monotonic() + seconds, 0, None
    while time.monotonic() < until:
        with tls.Connection(port, context, session=session) as connection:
            if connection.ask("GET", PATH).status != 200 or connection.socket.session_reused != bool(count):
                raise WrongAnswer(f"port {port}: connection {count} was not resumed")
            session = connection.socket.session
        count += 1
        watch.sample()
    return count


def _wrk(*how: str) -> Client:
    def run(port: int, seconds: float, watch: load.Watch) -> int:
        argv = ["wrk", "-t1", "-c16", f"-d{max(1, round(seconds))}s", *how, f"https://{subjects.HOST}:{port}{PATH}"]
        output = load.run(argv, {}, watch, seconds + 60)
        if "Non-2xx" in output or "Socket errors" in output:
            raise WrongAnswer(output)
        return _number(r"^\s*(\d+) requests in", output)

    return run


def _h2load(port: int, seconds: float, watch: load.Watch) -> int:
    argv = ["h2load", "-t1", "-c4", "-m16", f"-D{max(1, round(seconds))}", f"https://{subjects.HOST}:{port}{PATH}"]
    output = load.run(argv, {}, watch, seconds + 60)
    if not re.search(r"Application protocol: h2", output) or not re.search(r"status codes: \d+ 2xx, 0 3xx, 0 4xx, 0 5xx", output):
        raise WrongAnswer(output)
    return _number(r"status codes: (\d+) 2xx", output)


ASKED: list[tuple[str, str, Client]] = [
    ("handshakes of TLS 1.3, a request each", "connection", _s_time("-new", "-tls1_3")),
    ("handshakes of TLS 1.2, a request each", "connection", _s_time("-new", "-tls1_2")),
    ("TLS 1.2, resumed by a ticket, a request each", "connection", _s_time("-reuse", "-tls1_2")),
    ("TLS 1.3, resumed by a ticket, a request each", "connection", _again),
    ("HTTP/1.1, 16 connections that stay", "request", _wrk()),
    ("HTTP/2, 4 connections of 16 streams", "request", _h2load),
]


@dataclass
class Figures:
    """Of each round, by subject: CPU time of one handshake or request in us, and how many a second came."""

    cpu_us: dict[str, list[float]] = field(default_factory=lambda: {"ours": [], "nginx": []})
    rate: dict[str, list[float]] = field(default_factory=lambda: {"ours": [], "nginx": []})
    other: list[float] = field(default_factory=list)

    def take(self, name: str, run: load.Run) -> None:
        self.cpu_us[name].append(run.cpu_us)
        self.rate[name].append(run.rate)
        self.other.append(run.other_share)

    @property
    def ratios(self) -> list[float]:
        return [ours / theirs for ours, theirs in zip(self.cpu_us["ours"], self.cpu_us["nginx"], strict=True)]


def _run(client: Client, subject: Nginx | Ours, seconds: float) -> load.Run:
    watch = load.Watch(subject)
    begun = time.monotonic()
    count = client(subject.port, seconds, watch)
    took = time.monotonic() - begun
    return watch.end(load.Load(count, took, 0, 0), count)


def measure(places: tuple[set[int], set[int]], repeats: int, seconds: float) -> dict[str, Figures]:
    found = {title: Figures() for title, _, _ in ASKED}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        pair = tls.Authority(Path(folder) / "tls").sign()
        started: list[Nginx | Ours] = []
        try:
            for kind in (Ours, Nginx):
                with on(places[0]):
                    started.append(kind(Path(folder), pair))
            for _ in range(repeats):
                for title, _, client in ASKED:
                    for subject in started:
                        with on(places[1]):
                            found[title].take(subject.name, _run(client, subject, seconds))
            for subject in started:
                subject.stop()
        except BaseException:
            for subject in started:
                subject.kill()
            raise
    return found


def rows(found: dict[str, Figures]) -> list[list[str]]:
    lines = []
    for title, of, _ in ASKED:
        f = found[title]
        cost = {name: statistics.median(f.cpu_us[name]) for name in f.cpu_us}
        rate = {name: statistics.median(f.rate[name]) for name in f.rate}
        lines.append(
            [
                title,
                of,
                f"{cost['ours']:.1f} us",
                f"{cost['nginx']:.1f} us",
                f"{cost['ours'] / cost['nginx']:.2f}",
                f"{min(f.ratios):.2f} to {max(f.ratios):.2f}",
                f"{rate['ours']:.0f}/s",
                f"{rate['nginx']:.0f}/s",
                f"{statistics.median(f.other):.0%}, load {os.getloadavg()[0]:.1f}",
            ]
        )
    return lines
