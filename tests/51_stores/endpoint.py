"""HTTP servers of the tests' own, each on a thread and a free port: what gives credentials, and stores that no honest peer would be."""

import email.utils
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def is_listing(self) -> bool:
        return "list-type" in self.query

    @property
    def form(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(self.body.decode()))


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Endpoint:
    """A context manager; `answer` says what it gives. On a free port unless one is named."""

    def __init__(self, port: int = 0) -> None:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def respond(self) -> None:
                url = urllib.parse.urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(headers.get("content-length", "0")))
                query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
                answer = endpoint.answer(Request(self.command, urllib.parse.unquote(url.path), query, headers, body))
                self.send_response_only(answer.status)
                for name, value in {"Date": email.utils.formatdate(usegmt=True), **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            do_GET = do_HEAD = do_POST = do_PUT = respond

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer((HOST, port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://{HOST}:{self.port}"

    def answer(self, request: Request) -> Answer:
        raise NotImplementedError

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.server.shutdown()
        self.server.server_close()
