"""The real stores that the tests talk to, each a process on a free port, emptied with its directory."""

import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import socket
import tempfile
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from harness import paths, ports
from harness.process import Process
from s3_client import KEY_ID, SECRET, S3Client

HOST = "127.0.0.1"
PEERS = paths.ROOT / "build" / "stores"


def answers(port: int) -> Callable[[], bool]:
    def ask() -> bool:
        try:
            socket.create_connection((HOST, port), timeout=60).close()
        except OSError:
            return False
        return True

    return ask


class Peer:
    """A context manager around one process."""

    def __init__(self) -> None:
        self.port = ports.free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="store-")
        self.root = Path(self.folder.name) / "data"
        self.root.mkdir()
        self.process: Process | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def env(self) -> dict[str, str]:
        return {}

    def start(self) -> Self:
        self.process = Process(type(self).__name__, self.command(), Path(self.folder.name) / "log", self.env())
        self.process.wait_until(answers(self.port), 180)
        return self

    def stop(self) -> None:
        if self.process:
            self.process.kill()
        self.folder.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


class VersityGateway(Peer):
    """S3, with signatures checked."""

    def __init__(self, tls: tuple[Path, Path] | None = None) -> None:
        super().__init__()
        self.tls = tls

    def command(self) -> list[str]:
        argv = [str(paths.need(PEERS / "bin" / "versitygw")), "--port", f"{HOST}:{self.port}", "--quiet", "--keep-alive"]
        if self.tls:
            argv += ["--cert", str(self.tls[0]), "--key", str(self.tls[1])]
        return [*argv, "posix", str(self.root)]

    def env(self) -> dict[str, str]:
        return {"ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": SECRET, "HOME": self.folder.name}

    def client(self) -> S3Client:
        return S3Client(HOST, self.port)


class FakeGcs(Peer):
    """Google Cloud Storage's JSON interface."""

    def command(self) -> list[str]:
        return [
            str(paths.need(PEERS / "bin" / "fake-gcs-server")), "-scheme", "http", "-host", HOST, "-port", str(self.port),
            "-backend", "memory", "-log-level", "error",
        ]

    def request(self, method: str, target: str, body: bytes = b"", kind: str = "application/json") -> None:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=120)
        connection.request(method, target, body, {"Content-Type": kind})
        answer = connection.getresponse()
        assert answer.status in (200, 204), answer.read()  # allowed: not ours, and done with or without a body
        connection.close()

    def make_bucket(self, bucket: str) -> None:
        self.request("POST", "/storage/v1/b?project=test", json.dumps({"name": bucket}).encode())

    def put(self, bucket: str, name: str, data: bytes) -> None:
        quoted = urllib.parse.quote(name, safe="")
        self.request("POST", f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quoted}", data, "application/octet-stream")

    def delete(self, bucket: str, name: str) -> None:
        self.request("DELETE", f"/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}")


ACCOUNT = "nereidaccount"
ACCOUNT_KEY = base64.b64encode(hashlib.sha512(b"a key of the tests").digest()).decode()


class Azurite(Peer):
    """Azure Blob Storage, with signatures checked."""

    def command(self) -> list[str]:
        program = paths.need(PEERS / "node" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js")
        return ["node", str(program), "--blobHost", HOST, "--blobPort", str(self.port), "--location", str(self.root), "--silent"]

    def env(self) -> dict[str, str]:
        return {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}

    def request(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes = b"") -> None:
        """Signed by a signer of its own, written from the description and not from ours."""
        now = email.utils.formatdate(usegmt=True)
        headers = {"x-ms-date": now, "x-ms-version": "2021-08-06", **headers}
        quoted = f"/{ACCOUNT}{urllib.parse.quote(path, safe='/~')}"
        length = str(len(body)) if body else ""
        names = "".join(f"{k}:{v}\n" for k, v in sorted(headers.items()))
        resource = f"/{ACCOUNT}{quoted}" + "".join(f"\n{k}:{v}" for k, v in sorted(query.items()))
        text = f"{method}\n\n\n{length}\n\n\n\n\n\n\n\n\n{names}{resource}"
        signature = base64.b64encode(hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()).decode()
        connection = http.client.HTTPConnection(HOST, self.port, timeout=120)
        target = f"{quoted}?{urllib.parse.urlencode(query)}" if query else quoted
        connection.request(method, target, body, headers | {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": str(len(body))})
        answer = connection.getresponse()
        assert answer.status == 201, f"{answer.status} {answer.read().decode()}"
        connection.close()

    def make_container(self, container: str, public: bool = False) -> None:
        self.request("PUT", f"/{container}", {"restype": "container"}, {"x-ms-blob-public-access": "container"} if public else {})

    def put(self, container: str, name: str, data: bytes) -> None:
        self.request("PUT", f"/{container}/{name}", {}, {"x-ms-blob-type": "BlockBlob"}, data)


def azure_env(cache: Path, **more: str) -> dict[str, str]:
    return clean_env(cache, AZURE_STORAGE_KEY=ACCOUNT_KEY, **more)


def clean_env(cache: Path, **more: str) -> dict[str, str]:
    """The environment of a server that knows no cloud but what the test gives it."""
    env = {name: "" for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "GCE_", "AZURE_", "IDENTITY_", "TRITON_", "STORAGE_"))}
    env |= {
        "HOME": str(cache / "home"),
        "XDG_CACHE_HOME": str(cache),
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "*",
    }
    return env | more


def gcs_env(cache: Path, port: int, **more: str) -> dict[str, str]:
    return clean_env(cache, STORAGE_EMULATOR_HOST=f"{HOST}:{port}", **more)


def s3_env(cache: Path, **more: str) -> dict[str, str]:
    return clean_env(cache, AWS_ACCESS_KEY_ID=KEY_ID, AWS_SECRET_ACCESS_KEY=SECRET, AWS_DEFAULT_REGION="us-east-1", **more)
