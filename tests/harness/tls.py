"""TLS: authorities and certificates made on the spot, and a server whose ports speak it."""

import ssl
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import rawhttp
from .servers import HOST, Nereid

FRONTS = ("http", "grpc", "metrics")


def openssl(*argv: str | Path) -> str:
    return subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True, text=True, timeout=60).stdout


@dataclass
class Pair:
    """A certificate and its key."""

    cert: Path
    key: Path

    def move_to(self, other: "Pair") -> None:
        """In place of another one, file by file, as those who renew certificates do."""
        self.key.rename(other.key)
        self.cert.rename(other.cert)


class Authority:
    def __init__(self, folder: Path, name: str = "authority"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
        self._made = 0
        self._key(self.pair.key)
        openssl("req", "-x509", "-new", "-key", self.pair.key, "-subj", f"/CN={name}", "-days", "30", "-out", self.pair.cert)

    @property
    def cert(self) -> Path:
        return self.pair.cert

    def _key(self, path: Path, rsa: bool = False) -> None:
        if rsa:
            openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", path)
        else:
            openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)

    def _request(self, name: str, rsa: bool) -> tuple[Pair, Path, Path]:
        self._made += 1
        stem = self.folder / f"{name}-{self._made}"
        pair = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request, extra = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        self._key(pair.key, rsa)
        extra.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("req", "-new", "-key", pair.key, "-subj", f"/CN={name}", "-out", request)
        return pair, request, extra

    def sign_until(self, when: float) -> Pair:
        """One that expires in the second of that time."""
        pair, request, extra = self._request("server", False)
        (self.folder / "index").touch()
        config = self.folder / "ca"
        config.write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={self.folder}/index\nnew_certs_dir={self.folder}\nrand_serial=yes\n"
            "default_md=sha256\nunique_subject=no\npolicy=any\n[any]\ncommonName=supplied\n"
        )
        openssl(
            "ca", "-batch", "-notext", "-config", config, "-in", request, "-cert", self.pair.cert, "-keyfile", self.pair.key,
            "-enddate", time.strftime("%Y%m%d%H%M%SZ", time.gmtime(when)), "-extfile", extra, "-out", pair.cert,
        )  # fmt: skip
        return pair

    def sign(self, name: str = "server", days: int = 30, rsa: bool = False) -> Pair:
        """A certificate for localhost and 127.0.0.1; days below 0: it has expired."""
        pair, request, extra = self._request(name, rsa)
        openssl(
            "x509", "-req", "-in", request, "-CA", self.pair.cert, "-CAkey", self.pair.key, "-CAcreateserial",
            "-days", str(days), "-extfile", extra, "-out", pair.cert,
        )  # fmt: skip
        return pair


def context(authority: Authority | None, client: Pair | None = None, alpn: list[str] | None = None) -> ssl.SSLContext:
    """Of a client that trusts the authority (None = anybody)."""
    made = ssl.create_default_context(cafile=str(authority.cert) if authority else None)
    if not authority:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if client:
        made.load_cert_chain(client.cert, client.key)
    if alpn:
        made.set_alpn_protocols(alpn)
    return made


def options(pair: Pair, fronts: tuple[str, ...] = FRONTS, root: Path | None = None) -> dict[str, str | list[str]]:
    """What a server is told; root: clients need a certificate of that authority."""
    told: dict[str, str | list[str]] = {}
    for front in fronts:
        told |= {f"{front}-use-ssl": "true", f"{front}-server-cert": str(pair.cert), f"{front}-server-key": str(pair.key)}
        if root:
            told |= {f"{front}-use-ssl-mutual": "true", f"{front}-root-cert": str(root)}
    return told


class Connection(rawhttp.Connection):
    """HTTP/1.1 by hand, over TLS."""

    def __init__(self, port: int, ctx: ssl.SSLContext, timeout: float = 60, session: ssl.SSLSession | None = None):
        super().__init__(HOST, port, timeout)
        self.socket: Any = ctx.wrap_socket(self.socket, server_hostname="localhost", session=session)


class Secure(Nereid):
    """Ready when a client that trusts anybody is told so. client: the certificate that it shows."""

    def __init__(self, *args: Any, client: Pair | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.client = client

    def ready(self) -> bool:
        try:
            with Connection(self.http_port, context(None, self.client)) as c:
                return c.ask("GET", "/v2/health/ready").status == 200
        except (OSError, ssl.SSLError):
            return False
