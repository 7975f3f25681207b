"""The endpoints that give an instance or a container its credentials: no such machine is at hand."""

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

ROLE = "test-role"
TOKEN = "token-of-this-session"
CREDENTIALS = "/latest/meta-data/iam/security-credentials/"


class InstanceMetadata:
    """Gives the keys in turn, the last one again and again."""

    def __init__(self, keys: list[tuple[str, str]], seconds: float):
        self.keys, self.seconds = keys, seconds
        self.given = self.tokens = 0
        self.authorizations: set[str] = set()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def credentials(self) -> bytes:
        key, secret = self.keys[min(self.given, len(self.keys) - 1)]
        self.given += 1
        ends = datetime.now(UTC) + timedelta(seconds=self.seconds)
        return json.dumps(
            {"AccessKeyId": key, "SecretAccessKey": secret, "Token": "", "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}
        ).encode()

    def answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if (method, path) == ("PUT", "/latest/api/token"):
            self.tokens += 1
            return (200, TOKEN.encode()) if "x-aws-ec2-metadata-token-ttl-seconds" in headers else (400, b"")
        if (method, path) == ("GET", "/container"):
            self.authorizations.add(headers.get("authorization", ""))
            return 200, self.credentials()
        if headers.get("x-aws-ec2-metadata-token") != TOKEN:
            return 401, b""
        if path == CREDENTIALS:
            return 200, ROLE.encode()
        return (200, self.credentials()) if path == CREDENTIALS + ROLE else (404, b"")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        metadata = self

        class Handler(BaseHTTPRequestHandler):
            def respond(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, body = metadata.answer(self.command, self.path, headers)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = respond

            def log_message(self, *args: object) -> None:
                pass

        return Handler

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.server.shutdown()
        self.server.server_close()
