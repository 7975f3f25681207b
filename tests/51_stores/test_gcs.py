"""Models out of Google Cloud Storage, served by an emulator."""

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import shelf
from endpoint import Answer, Endpoint, Request
from faults import FAULTS, Fault, Proxy
from harness.servers import Nereid
from peers import HOST, FakeGcs, gcs_env
from shelf import Files, log_of_a_start_that_fails, serve


@pytest.fixture(scope="module")
def gcs() -> Iterator[FakeGcs]:
    with FakeGcs() as gcs:
        yield gcs


def fill(gcs: FakeGcs, bucket: str, files: Files) -> str:
    gcs.make_bucket(bucket)
    for name, data in files.items():
        gcs.put(bucket, name, data)
    return bucket


def test_paths(gcs: FakeGcs, cache: Path) -> None:
    """MR-03, MR-07: any number of parts below the bucket, or none."""
    fill(gcs, "paths", shelf.identity("top") | {f"a/b/{name}": data for name, data in shelf.identity("deep").items()})
    for path, models in (("gs://paths/a/b", {"deep"}), ("gs://paths/a//b/", {"deep"})):
        with serve(path, gcs_env(cache, gcs.port)) as server:
            assert set(shelf.index(server)) == models
            assert all(shelf.infers(server, model) for model in models)


def test_second_start_moves_no_byte_of_a_model(gcs: FakeGcs, cache: Path) -> None:
    files = shelf.many(200)
    fill(gcs, "many", files)
    with Proxy(gcs.port) as proxy:
        for start in (1, 2):
            proxy.forget()
            with serve("gs://many", gcs_env(cache, proxy.port)) as server:
                assert shelf.index(server) == {f"model_{i:03}": {"1": "READY"} for i in range(200)}
                assert shelf.infers(server, "model_123")
            assert proxy.object_bytes() == (sum(map(len, files.values())) if start == 1 else 0)
            assert len(proxy.objects()) == (400 if start == 1 else 0)


def test_files_arrive_as_they_are(gcs: FakeGcs, cache: Path) -> None:
    files = shelf.identity("odd") | {"odd/1/empty": b"", "odd/1/big.bin": shelf.content("big", 20 << 20)}
    for name in ("a b+c%20.txt", "\u00e9\u4e2d & <x>.txt", "=;,:@!$'()*~.bin", "deep/er/q=1#f.txt", "%2e%2e/x"):
        files[f"odd/1/{name}"] = shelf.content(name, 300)
    fill(gcs, "odd", files)
    with serve("gs://odd", gcs_env(cache, gcs.port)) as server:
        assert shelf.index(server) == {"odd": {"1": "READY"}}
        assert dict(shelf.model_files(cache)) == files


def test_a_listing_of_many_pages(gcs: FakeGcs, cache: Path) -> None:
    files = shelf.identity("wide") | {f"wide/1/part-{i:05}": b"%d" % i for i in range(300)}
    fill(gcs, "wide", files)
    small = Fault(rewrite=("maxResults=1000", "maxResults=20"))
    with Proxy(gcs.port, lambda exchange, rng: small) as proxy, serve("gs://wide", gcs_env(cache, proxy.port)):
        assert dict(shelf.model_files(cache)) == files
        assert len(proxy.listings()) == 16


def test_poll_follows_generations(gcs: FakeGcs, cache: Path) -> None:
    fill(gcs, "poll", shelf.identity("m"))
    options = {"model_control_mode": "poll", "repository_poll_secs": "1"}
    with serve("gs://poll", gcs_env(cache, gcs.port), **options) as server:

        def loads() -> int:
            return server.process.log().count("successfully loaded 'm' version 1")

        assert loads() == 1
        gcs.put("poll", "m/1/weights.bin", b"other")
        server.process.wait_until(lambda: loads() == 2, 120, 0.1)
        gcs.put("poll", "m/1/weights.bin", b"other")  # the same bytes, another generation
        server.process.wait_until(lambda: loads() == 3, 120, 0.1)


@pytest.mark.parametrize("kind", ["errors", "resets", "cut", "corrupted"])
def test_slower_but_never_wrong(gcs: FakeGcs, cache: Path, kind: str) -> None:
    files = shelf.many(20) | {"model_000/1/big.bin": shelf.content("big", 20 << 20)}
    fill(gcs, f"faults-{kind}", files)
    with Proxy(gcs.port, FAULTS[kind], seed=11) as proxy:
        with Nereid(f"gs://faults-{kind}", env=gcs_env(cache, proxy.port), ready_within=180) as server:
            assert dict(shelf.model_files(cache)) == files
            assert shelf.infers(server, "model_007")


def test_a_bucket_that_is_not_there(gcs: FakeGcs, cache: Path) -> None:
    log = log_of_a_start_that_fails("gs://nowhere/at/all", gcs_env(cache, gcs.port))
    assert f"http://{HOST}:{gcs.port}/storage/v1/b/nowhere/o" in log and "404" in log


class TokenEndpoint(Endpoint):
    """Takes assertions that the key's owner signed, gives tokens; and the metadata server of a machine."""

    def __init__(self, public_key: Path):
        super().__init__()
        self.public_key = public_key
        self.forms: list[dict[str, str]] = []
        self.asked_machine = 0
        self.first: list[int] = []

    def answer(self, request: Request) -> Answer:
        if request.method == "POST":
            self.forms.append(request.form)
            status = 200 if self.accepts(request.form) else 400
        else:
            self.asked_machine += 1
            right = request.headers.get("metadata-flavor") == "Google" and request.path.endswith("/service-accounts/default/token")
            status = self.first.pop(0) if self.first else 200 if right else 403
        return Answer(status, json.dumps({"access_token": f"token-{len(self.forms)}", "expires_in": 3600}).encode())

    def accepts(self, form: dict[str, str]) -> bool:
        if form["grant_type"] == "refresh_token":
            return form["refresh_token"] == "refresh me" and form["client_secret"] == "s&cret"
        signed, signature = form["assertion"].rsplit(".", 1)
        (self.public_key.parent / "signature").write_bytes(base64.urlsafe_b64decode(signature + "=="))
        command = ["openssl", "dgst", "-sha256", "-verify", str(self.public_key), "-signature", str(self.public_key.parent / "signature")]
        verified = subprocess.run(command, input=signed.encode(), capture_output=True, check=False).returncode == 0
        claims = json.loads(base64.urlsafe_b64decode(signed.split(".")[1] + "=="))
        return verified and claims["aud"] == f"{self.url}/token" and claims["iss"] == "tester@example" and claims["exp"] > claims["iat"]


@pytest.fixture
def key_pair(tmp_path: Path) -> tuple[Path, Path]:
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    subprocess.run(["openssl", "genrsa", "-out", str(private), "2048"], check=True, capture_output=True)
    subprocess.run(["openssl", "rsa", "-in", str(private), "-pubout", "-out", str(public)], check=True, capture_output=True)
    return private, public


def authorized(proxy: Proxy, token: str) -> list[str]:
    """What the requests to the store showed."""
    return [e.authorization for e in proxy.exchanges if e.authorization != f"Bearer {token}"]


def test_tokens_of_a_service_account(gcs: FakeGcs, cache: Path, tmp_path: Path, key_pair: tuple[Path, Path]) -> None:
    """A signed assertion for a token; a token that is refused is replaced."""
    fill(gcs, "service", shelf.identity("m"))
    with TokenEndpoint(key_pair[1]) as endpoint, Proxy(gcs.port) as proxy:
        key = {
            "type": "service_account", "client_email": "tester@example", "private_key_id": "k1",
            "private_key": key_pair[0].read_text(), "token_uri": f"{endpoint.url}/token",
        }
        file = tmp_path / "key.json"
        file.write_text(json.dumps(key))
        proxy.rule = lambda exchange, rng: Fault(status=401 if exchange.authorization == "Bearer token-1" else 0)
        with serve("gs://service", gcs_env(cache, proxy.port, GOOGLE_APPLICATION_CREDENTIALS=str(file))) as server:
            assert shelf.infers(server, "m")
        assert len(endpoint.forms) == 2
        assert authorized(proxy, "token-2") == ["Bearer token-1"]
        # The credential file names the key for the longest beginning of the path.
        other = tmp_path / "credentials.json"
        other.write_text(json.dumps({"gs": {"": "/no/such/key", "gs://service": str(file)}}))
        with serve("gs://service", gcs_env(cache, proxy.port, TRITON_CLOUD_CREDENTIAL_PATH=str(other))):
            assert len(endpoint.forms) == 3


def test_tokens_of_a_user(gcs: FakeGcs, cache: Path, tmp_path: Path, key_pair: tuple[Path, Path]) -> None:
    fill(gcs, "user", shelf.identity("m"))
    with TokenEndpoint(key_pair[1]) as endpoint, Proxy(gcs.port) as proxy:
        file = tmp_path / "key.json"
        file.write_text(json.dumps({
            "type": "authorized_user", "client_id": "id", "client_secret": "s&cret", "refresh_token": "refresh me",
            "token_uri": f"{endpoint.url}/token",
        }))
        with serve("gs://user", gcs_env(cache, proxy.port, GOOGLE_APPLICATION_CREDENTIALS=str(file))) as server:
            assert shelf.infers(server, "m")
        assert authorized(proxy, "token-1") == []


def test_tokens_of_a_machine(gcs: FakeGcs, cache: Path, key_pair: tuple[Path, Path]) -> None:
    fill(gcs, "machine", shelf.identity("m"))
    with TokenEndpoint(key_pair[1]) as endpoint, Proxy(gcs.port) as proxy:
        with serve("gs://machine", gcs_env(cache, proxy.port, GCE_METADATA_HOST=endpoint.url.removeprefix("http://"))) as server:
            assert shelf.infers(server, "m")
        assert endpoint.asked_machine == 1
        assert authorized(proxy, "token-0") == []


@pytest.mark.parametrize("first", [503, 404])
def test_tokens_of_a_machine_after_trouble(gcs: FakeGcs, cache: Path, key_pair: tuple[Path, Path], first: int) -> None:
    """A service that is busy is asked again; after one that knows of no token, when the store wants one."""
    fill(gcs, f"trouble-{first}", shelf.identity("m"))
    with TokenEndpoint(key_pair[1]) as endpoint, Proxy(gcs.port) as proxy:
        endpoint.first = [first]
        proxy.rule = lambda exchange, rng: Fault(status=401 if exchange.authorization != "Bearer token-0" else 0)
        options = {"model_control_mode": "poll", "repository_poll_secs": "1", "exit_on_error": "false", "strict_readiness": "false"}
        env = gcs_env(cache, proxy.port, GCE_METADATA_HOST=endpoint.url.removeprefix("http://"))
        with serve(f"gs://trouble-{first}", env, **options) as server:
            server.process.wait_until(lambda: shelf.index(server) == {"m": {"1": "READY"}}, 120, 0.1)
            assert ("requests go without" in server.process.log()) == (first == 404)


def test_a_key_that_is_none(gcs: FakeGcs, cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text('{"type": "service_account", "private_key": "no key"}')
    log = log_of_a_start_that_fails("gs://paths", gcs_env(cache, gcs.port, GOOGLE_APPLICATION_CREDENTIALS=str(file)))
    assert "its private_key is no RSA key" in log
