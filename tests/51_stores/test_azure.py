"""Models out of Azure Blob Storage, served by an emulator that checks signatures."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import shelf
from endpoint import Answer, Endpoint, Request
from faults import FAULTS, Fault, Proxy
from harness.servers import Nereid
from peers import ACCOUNT, ACCOUNT_KEY, HOST, Azurite, azure_env, clean_env
from shelf import Files, log_of_a_start_that_fails, serve


@pytest.fixture(scope="module")
def azure() -> Iterator[Azurite]:
    with Azurite() as azure:
        yield azure


def fill(azure: Azurite, container: str, files: Files, public: bool = False) -> str:
    azure.make_container(container, public)
    for name, data in files.items():
        azure.put(container, name, data)
    return container


def test_ways_to_name_account_and_key(azure: Azurite, cache: Path, tmp_path: Path) -> None:
    """MR-03."""
    fill(azure, "ways", {f"a/b/{name}": data for name, data in shelf.identity("m").items()})
    host = f"{HOST}:{azure.port}"
    file = tmp_path / "credentials.json"
    entry = {"account_str": ACCOUNT, "account_key": ACCOUNT_KEY}
    file.write_text(json.dumps({"as": {"": {"account_str": "x", "account_key": "AAAA"}, f"as://{host}": entry}}))
    connection = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint=http://{host}/{ACCOUNT};"
    for path, env in [
        (f"as://{host}/{ACCOUNT}/ways/a/b", azure_env(cache)),
        (f"as://http://{host}/{ACCOUNT}/ways//a/b/", azure_env(cache)),
        (f"as://{host}/{ACCOUNT}/ways/a/b", clean_env(cache, TRITON_CLOUD_CREDENTIAL_PATH=str(file))),
        (f"as://{ACCOUNT}/ways/a/b", clean_env(cache, AZURE_STORAGE_CONNECTION_STRING=connection)),
    ]:
        with serve(path, env) as server:
            assert shelf.index(server) == {"m": {"1": "READY"}}
            assert shelf.infers(server, "m")


def test_second_start_moves_no_byte_of_a_model(azure: Azurite, cache: Path) -> None:
    files = shelf.many(30) | {"model_000/1/empty": b"", "model_000/1/big.bin": shelf.content("big", 20 << 20)}
    for name in ("a b+c%20.txt", "\u00e9\u4e2d & <x>.txt", "=;,:@!$'()*~.bin", "deep/er/f.txt"):
        files[f"model_001/1/{name}"] = shelf.content(name, 300)
    fill(azure, "many", files)
    with Proxy(azure.port) as proxy:
        for start in (1, 2):
            proxy.forget()
            with serve(f"as://{HOST}:{proxy.port}/{ACCOUNT}/many", azure_env(cache)) as server:
                assert shelf.index(server) == {f"model_{i:03}": {"1": "READY"} for i in range(30)}
                assert dict(shelf.model_files(cache)) == files
            assert proxy.object_bytes() == (sum(map(len, files.values())) if start == 1 else 0)


def test_a_listing_of_many_pages(azure: Azurite, cache: Path) -> None:
    """Anyone may read it: so the proxy can ask for small pages in place of those that we ask for."""
    files = shelf.identity("wide") | {f"wide/1/part-{i:05}": b"%d" % i for i in range(150)}
    fill(azure, "wide", files, public=True)
    small = Fault(rewrite=("maxresults=1000", "maxresults=10"))
    with Proxy(azure.port, lambda exchange, rng: small) as proxy:
        with serve(f"as://{HOST}:{proxy.port}/{ACCOUNT}/wide", clean_env(cache)):
            assert dict(shelf.model_files(cache)) == files
            assert len(proxy.listings()) == 16


@pytest.mark.parametrize("kind", ["errors", "resets", "cut", "corrupted"])
def test_slower_but_never_wrong(azure: Azurite, cache: Path, kind: str) -> None:
    files = shelf.many(20) | {"model_000/1/big.bin": shelf.content("big", 20 << 20)}
    fill(azure, f"faults-{kind}", files)
    with Proxy(azure.port, FAULTS[kind], seed=5) as proxy:
        path = f"as://{HOST}:{proxy.port}/{ACCOUNT}/faults-{kind}"
        with Nereid(path, env=azure_env(cache), ready_within=180) as server:
            assert dict(shelf.model_files(cache)) == files
            assert shelf.infers(server, "model_007")


def test_what_is_refused(azure: Azurite, cache: Path) -> None:
    host = f"{HOST}:{azure.port}"
    fill(azure, "private", shelf.identity("m"))
    path = f"as://{host}/{ACCOUNT}/private"
    assert "HTTP status 403" in log_of_a_start_that_fails(path, clean_env(cache, AZURE_STORAGE_KEY="AAAAAAAA"))
    assert "is no base64" in log_of_a_start_that_fails(path, clean_env(cache, AZURE_STORAGE_KEY="no!key"))
    assert "expected as://ACCOUNT/CONTAINER/PATH" in log_of_a_start_that_fails(f"as://{host}/{ACCOUNT}", azure_env(cache))
    assert "HTTP status 404" in log_of_a_start_that_fails(f"as://{host}/{ACCOUNT}/nowhere", azure_env(cache))


class Identity(Endpoint):
    """Gives tokens: to a managed identity, and to a registered application."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, str]] = []

    def answer(self, request: Request) -> Answer:
        self.asked.append(request.form or request.query)
        body = json.dumps({"access_token": f"token-{len(self.asked)}", "expires_in": "3600"}).encode()
        return Answer(200 if self.is_right(request) else 400, body)

    def is_right(self, request: Request) -> bool:
        if request.method == "POST":
            return request.path == "/tenant-1/oauth2/v2.0/token" and request.form["scope"] == "https://storage.azure.com/.default"
        shown = (request.headers.get("metadata"), request.headers.get("x-identity-header"))
        return request.query["resource"] == "https://storage.azure.com/" and shown == ("true", "house secret")


def test_tokens(azure: Azurite, cache: Path, tmp_path: Path) -> None:
    """The emulator takes tokens over TLS with certificates of its own only: what the requests show is looked at on their way."""
    fill(azure, "public", shelf.identity("m"), public=True)
    federated = tmp_path / "federated"
    federated.write_text("a token of the cluster")
    with Identity() as identity:
        machine = {"IDENTITY_ENDPOINT": f"{identity.url}/token", "IDENTITY_HEADER": "house secret"}
        application = {"AZURE_TENANT_ID": "tenant-1", "AZURE_CLIENT_ID": "app", "AZURE_AUTHORITY_HOST": f"{identity.url}/"}
        for env, shown in [
            ({"AZURE_STORAGE_AUTH_TYPE": "managed_identity", "AZURE_STORAGE_CLIENT_ID": "mine"} | machine, {"client_id": "mine"}),
            ({"AZURE_STORAGE_AUTH_TYPE": "default"} | machine, {"api-version": "2019-08-01"}),
            ({"AZURE_STORAGE_AUTH_TYPE": "default", "AZURE_CLIENT_SECRET": "s&"} | application, {"client_secret": "s&", "client_id": "app"}),
            (
                {"AZURE_STORAGE_AUTH_TYPE": "default", "AZURE_FEDERATED_TOKEN_FILE": str(federated)} | application,
                {"client_assertion": "a token of the cluster"},
            ),
        ]:
            identity.asked.clear()
            # The first token is refused once: another is fetched.
            rule = lambda exchange, rng: Fault(status=401 if exchange.authorization == "Bearer token-1" else 0, bare=True)  # noqa: E731
            with Proxy(azure.port, rule) as proxy:
                with serve(f"as://{HOST}:{proxy.port}/{ACCOUNT}/public", clean_env(cache, **env)) as server:
                    assert shelf.infers(server, "m")
                assert {e.authorization for e in proxy.exchanges} == {"Bearer token-1", "Bearer token-2"}
            assert len(identity.asked) == 2 and shown.items() <= identity.asked[0].items()


def test_anonymous(azure: Azurite, cache: Path) -> None:
    fill(azure, "open", shelf.identity("m"), public=True)
    with serve(f"as://{HOST}:{azure.port}/{ACCOUNT}/open", clean_env(cache)) as server:
        assert shelf.infers(server, "m")
