"""A store of the tests' own that answers as no honest one would. The honest ones are in peers.py."""

import email.utils
import hashlib
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from xml.sax.saxutils import escape

HOST = "127.0.0.1"


@dataclass
class Request:
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    at: float = field(default_factory=time.monotonic)

    @property
    def is_listing(self) -> bool:
        return "list-type" in self.query


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def md5_tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def listing(objects: dict[str, tuple[int, str]], next_token: str = "", encoded: bool = False) -> bytes:
    """A page: names with sizes and ETags."""
    items = "".join(
        f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><ETag>{escape(tag)}</ETag></Contents>" for name, (size, tag) in objects.items()
    )
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{next_token}</NextContinuationToken>" if next_token else ""
    kind = "<EncodingType>url</EncodingType>" if encoded else ""
    return f'<?xml version="1.0"?><ListBucketResult>{kind}{more}{items}</ListBucketResult>'.encode()


class OddStore:
    """Answers by `odd` where that gives an answer; else as a bucket with these files would."""

    def __init__(self, files: dict[str, bytes], odd: Callable[[Request], Answer | None] = lambda request: None):
        self.files, self.odd = files, odd
        self.requests: list[Request] = []
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urllib.parse.urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(urllib.parse.unquote(url.path), dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True)), headers)
                store.requests.append(request)
                answer = store.odd(request) or store.answer(request)
                self.send_response_only(answer.status)
                for name, value in {"Date": email.utils.formatdate(usegmt=True), **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        self.port = self.server.server_address[1]

    def answer(self, request: Request) -> Answer:
        if request.is_listing:
            prefix = request.query["prefix"]
            return Answer(body=listing({n: (len(d), md5_tag(d)) for n, d in self.files.items() if n.startswith(prefix)}))
        data = self.files.get(request.path.removeprefix("/bucket/"))
        if data is None:
            return Answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        first, last = (int(n) for n in request.headers["range"].removeprefix("bytes=").split("-"))
        part = data[first : last + 1]
        return Answer(206, part, {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(data)}", "ETag": md5_tag(data)})

    @property
    def path(self) -> str:
        return f"s3://{HOST}:{self.port}/bucket"

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.server.shutdown()
        self.server.server_close()
