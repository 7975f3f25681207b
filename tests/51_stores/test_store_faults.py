"""Faults between the server and a store: slower, never wrong."""

import contextlib
import itertools
import os
import random
import socket
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
import shelf
from endpoint import Answer, Endpoint, Request
from faults import FAULTS, Exchange, Fault, Proxy, Rule
from harness import ports
from harness.repository import Repository
from harness.servers import Nereid
from instance_metadata import InstanceMetadata
from odd_store import OddStore
from peers import HOST, VersityGateway, clean_env, s3_env
from s3_client import KEY_ID, SECRET
from shelf import Files

Fill = Callable[[Files], str]
BIG = shelf.content("big", 40 << 20)


def repository() -> Files:
    """Thirty small models, and one of several pieces."""
    return shelf.many(30) | shelf.identity("large") | {"large/1/big.bin": BIG}


@pytest.fixture(scope="module")
def shared_bucket(gateway: VersityGateway) -> str:
    client = gateway.client()
    client.make_bucket("faults")
    for name, data in repository().items():
        client.put("faults", name, data)
    return "faults"


@pytest.mark.parametrize("fault", FAULTS)
def test_slower_but_never_wrong(gateway: VersityGateway, shared_bucket: str, cache: Path, fault: str) -> None:
    with Proxy(gateway.port, FAULTS[fault], seed=7) as proxy:
        with Nereid(f"s3://{HOST}:{proxy.port}/{shared_bucket}", env=s3_env(cache), ready_within=180) as server:
            assert dict(shelf.model_files(cache)) == repository()
            assert shelf.infers(server, "model_007") and shelf.infers(server, "large")


def test_a_piece_that_breaks_off_goes_on_where_it_broke(gateway: VersityGateway, shared_bucket: str, cache: Path) -> None:
    """No byte that arrived is asked for again."""

    def rule(exchange: Exchange, rng: random.Random) -> Fault:
        return Fault(keep=0.5, arrives=True) if "big.bin" in exchange.target and rng.random() < 0.5 else Fault()

    with Proxy(gateway.port, rule) as proxy:
        with Nereid(f"s3://{HOST}:{proxy.port}/{shared_bucket}", env=s3_env(cache), ready_within=180) as server:
            assert shelf.infers(server, "large")
            big = [e for e in proxy.objects() if "big.bin" in e.target]
            assert len(big) > 5
            assert sum(e.body_bytes for e in big) == len(BIG)


def whole_pieces(cache: Path, of: int) -> int:
    """How many the cache knows to be whole, of a file that is on its way in so many."""
    found = 0
    for folder, _, names in os.walk(cache):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # all of that file is there by now
                known = (Path(folder) / name).read_bytes() if name.endswith(".map") else b""
                found += known.count(b"\1") if len(known) == of else 0
    return found


def test_a_download_goes_on_after_a_crash(gateway: VersityGateway, shared_bucket: str, cache: Path) -> None:
    """Of five pieces three have arrived, two are asked for."""
    path = "s3://{}:{}/" + shared_bucket
    numbers = itertools.count()
    with Proxy(gateway.port, lambda exchange, rng: Fault(hold="big.bin" in exchange.target and next(numbers) >= 3)) as proxy:
        server = Nereid(path.format(HOST, proxy.port), env=s3_env(cache), wait_ready=False)
        server.start()
        proxy.wait_for(lambda: sum("big.bin" in e.target for e in proxy.objects()) == 5)
        server.process.wait_until(lambda: whole_pieces(cache, 5) == 3, 120)
        server.kill()
        proxy.forget()
        proxy.rule = lambda exchange, rng: Fault()
        with Nereid(path.format(HOST, proxy.port), env=s3_env(cache)) as again:
            assert dict(shelf.model_files(cache)) == repository()
            assert shelf.infers(again, "large")
        moved = sum(e.body_bytes for e in proxy.objects() if "big.bin" in e.target)
        assert moved == len(BIG) - 3 * (8 << 20)


def test_what_changed_in_the_cache_is_fetched_again(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    files = shelf.identity("a", payload=5000) | shelf.identity("b", payload=6000)
    bucket = fill(files)
    with Proxy(gateway.port) as proxy:
        path = f"s3://{HOST}:{proxy.port}/{bucket}"
        with Nereid(path, env=s3_env(cache)):
            pass
        broken = next(p for p in cache.glob("**/objects/*/*") if p.stat().st_size == 6000)
        data = bytearray(broken.read_bytes())
        data[77] ^= 1
        broken.chmod(0o600)
        broken.write_bytes(data)
        proxy.forget()
        with Nereid(path, env=s3_env(cache)) as server:
            assert dict(shelf.model_files(cache)) == files
            assert "is not what it was" in server.process.log()
        assert proxy.object_bytes() == 6000


def test_two_servers_share_a_cache(gateway: VersityGateway, shared_bucket: str, cache: Path) -> None:
    """Started together, they fetch each byte once."""
    with Proxy(gateway.port, lambda exchange, rng: Fault(pause_per_step=0.0005)) as proxy:
        path = f"s3://{HOST}:{proxy.port}/{shared_bucket}"
        servers = [Nereid(path, env=s3_env(cache), wait_ready=False).start() for _ in range(2)]
        for server in servers:
            server.wait_until_ready(180)
        assert all(shelf.infers(server, "large") for server in servers)
        found = list(shelf.model_files(cache))
        assert dict(found) == repository() and len(found) == 2 * len(repository())
        assert proxy.object_bytes() == sum(len(data) for data in repository().values())
        for server in servers:
            server.stop()


def test_the_cache_keeps_within_its_bound(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """What no loaded model uses goes, the longest unused first; what one uses stays."""
    names = [f"m{i}" for i in range(6)]
    bucket = fill({k: v for name in names for k, v in shelf.identity(name, payload=1 << 20).items()})

    def content_bytes() -> int:
        return sum(p.stat().st_size for p in cache.glob("**/objects/*/*"))

    env = s3_env(cache, NEREID_CLOUD_CACHE_MAX_BYTES=str(3 << 20))
    path = f"s3://{HOST}:{gateway.port}/{bucket}"
    with Nereid(path, {"model-control-mode": "explicit", "load-model": "m0"}, env) as server:
        for name in names[1:]:
            assert shelf.load(server, name).status == 200
            if name != "m5":
                unloaded = shelf.unload(server, name)
                assert unloaded.status == 200
                server.process.wait_until(lambda n=name: f"successfully unloaded '{n}'" in server.process.log(), 120)
        assert content_bytes() <= 3 << 20
        assert dict(shelf.model_files(cache)) == shelf.identity("m0", payload=1 << 20) | shelf.identity("m5", payload=1 << 20)
        assert "the cache of cloud repositories gave up" in server.process.log()


def test_a_dead_store_holds_up_nothing_else(cache: Path, tmp_path: Path, gateway: VersityGateway, fill: Fill) -> None:
    """It takes connections and never answers: reported after its time-out, while all else serves."""
    local = shelf.write(shelf.identity("local"), tmp_path / "local")
    bucket = fill(shelf.identity("other"))
    limit = 12
    with Proxy(gateway.port, lambda exchange, rng: Fault(hold=True)) as proxy:
        repositories = [local, f"s3://{HOST}:{proxy.port}/dead/models", f"s3://{HOST}:{gateway.port}/{bucket}"]
        options = {"exit-on-error": "false", "strict-readiness": "false", "model-control-mode": "explicit", "load-model": "*"}
        server = Nereid(repositories, options, s3_env(cache, NEREID_CLOUD_TIMEOUT_SECS=str(limit)), wait_ready=False)
        server.start()
        def serves(model: str) -> Callable[[], bool]:
            return lambda: answers_index(server).get(model) == {"1": "READY"}

        for model in ("local", "other"):
            server.process.wait_until(serves(model), 120)
            assert shelf.infers(server, model)
        server.process.wait_until(lambda: "listing model repository" in server.process.log(), 120)
        line = next(x for x in server.process.log().splitlines() if "listing model repository" in x)
        assert f"GET http://{HOST}:{proxy.port}/dead: " in line and "(attempt " in line
        # Once the start is over, too: index, reload and health do not wait for it.
        server.wait_until_ready(120)
        for ask in (lambda: shelf.index(server), lambda: shelf.load(server, "local"), server.ready):
            at = time.monotonic()
            assert ask()
            assert time.monotonic() - at < limit
        server.stop()


def answers_index(server: Nereid) -> dict[str, dict[str, str]]:
    try:
        return shelf.index(server)
    except OSError:
        return {}


def test_a_listing_that_trickles_ends(gateway: VersityGateway, shared_bucket: str, cache: Path) -> None:
    """Fast enough to be alive, too slow to wait for."""
    with Proxy(gateway.port, lambda exchange, rng: Fault(step=30, pause_per_step=0.1)) as proxy:
        server = Nereid(f"s3://{HOST}:{proxy.port}/{shared_bucket}", env=s3_env(cache, NEREID_CLOUD_TIMEOUT_SECS="1"), wait_ready=False)
        server.start()
        server.process.ends(1)
        assert "timed out" in server.process.log()
        server.kill()


def test_a_store_that_refuses_connections_ends_the_start(cache: Path) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port = taken.getsockname()[1]
        server = Nereid(f"s3://{HOST}:{port}/gone", env=s3_env(cache, NEREID_CLOUD_TIMEOUT_SECS="2"), wait_ready=False)
        server.start()
        server.process.ends(1)
        log = server.process.log()
        server.kill()
    assert f"http://{HOST}:{port}/gone" in log and "(attempt " in log


def test_a_server_stops_while_a_store_holds_it(gateway: VersityGateway, shared_bucket: str, cache: Path) -> None:
    """In the middle of a load: SIGTERM is not made to wait for the time-out."""
    rule: Rule = lambda exchange, rng: Fault(hold="big.bin" in exchange.target)  # noqa: E731
    with Proxy(gateway.port, rule) as proxy:
        options = {"model-control-mode": "explicit"}
        env = s3_env(cache, NEREID_CLOUD_TIMEOUT_SECS="300")
        with Nereid(f"s3://{HOST}:{proxy.port}/{shared_bucket}", options, env) as server:
            loading = subprocess.Popen(
                ["curl", "-s", "-m", "120", "-X", "POST", f"http://{server.http}/v2/repository/models/large/load"], stdout=subprocess.PIPE
            )
            proxy.wait_for(lambda: any("big.bin" in e.target for e in proxy.exchanges))
            server.process.terminate()
            server.process.ends(0)
            loading.communicate()


def test_credentials_that_expire(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """The instance's role gives a key that the store takes no longer, then one that it takes; a key near its end is replaced before."""
    bucket = fill(shelf.identity("m"))
    keys = [(KEY_ID, "expired"), (KEY_ID, SECRET)]
    with InstanceMetadata(keys, seconds=3600) as metadata:
        env = clean_env(cache, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://{HOST}:{metadata.port}/")
        with Nereid(f"s3://{HOST}:{gateway.port}/{bucket}", env=env) as server:
            assert shelf.infers(server, "m")
        assert metadata.given == 2 and metadata.tokens == 2
    with InstanceMetadata([(KEY_ID, SECRET)], seconds=4) as metadata:
        env |= {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://{HOST}:{metadata.port}"}
        options = {"model-control-mode": "poll", "repository-poll-secs": "1"}
        with Nereid(f"s3://{HOST}:{gateway.port}/{bucket}", options, env) as server:
            server.process.wait_until(lambda: metadata.given >= 3, 120)
            assert "listing model repository" not in server.process.log()


@pytest.mark.parametrize("trouble", [[Answer(503)], [Answer(500), Answer(429)]], ids=["503", "500-429"])
def test_trouble_of_the_metadata_service_is_no_answer(gateway: VersityGateway, fill: Fill, cache: Path, trouble: list[Answer]) -> None:
    """Nobody goes without a key since the service for it was busy once."""
    bucket = fill(shelf.identity("m"))
    with InstanceMetadata([(KEY_ID, SECRET)], 3600, first=list(trouble)) as metadata:
        env = clean_env(cache, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.url)
        with Nereid(f"s3://{HOST}:{gateway.port}/{bucket}", env=env) as server:
            assert shelf.infers(server, "m")
            assert "requests to S3 are not signed" not in server.process.log()


@pytest.mark.parametrize("missing", ["refused", "404"])
def test_a_metadata_service_that_comes_later(gateway: VersityGateway, fill: Fill, cache: Path, missing: str) -> None:
    """Nobody is there: requests are not signed. The store wants to know who asks: it is looked again."""
    bucket = fill(shelf.identity("m"))
    port = ports.free_port()
    metadata = InstanceMetadata([(KEY_ID, SECRET)], 3600, [Answer(404)], port) if missing == "404" else None
    options = {"model-control-mode": "poll", "repository-poll-secs": "1", "exit-on-error": "false", "strict-readiness": "false"}
    env = clean_env(cache, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://{HOST}:{port}")
    with contextlib.ExitStack() as stack:
        if metadata:
            stack.enter_context(metadata)
        server = stack.enter_context(Nereid(f"s3://{HOST}:{gateway.port}/{bucket}", options, env))
        assert "requests to S3 are not signed" in server.process.log()
        if not metadata:
            stack.enter_context(InstanceMetadata([(KEY_ID, SECRET)], 3600, port=port))
        server.process.wait_until(lambda: shelf.index(server) == {"m": {"1": "READY"}}, 120, 0.1)
        assert shelf.infers(server, "m")


@pytest.mark.parametrize("connects", [False, True])
def test_a_metadata_service_that_is_silent(cache: Path, connects: bool) -> None:
    """Outside a cloud its address often swallows what is sent there, and in a container its answers get lost: a store that asks nobody's
    name serves all the same."""
    with OddStore(shelf.identity("m")) as store, contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_server((HOST, 0), backlog=100 if connects else 0))
        for _ in range(0 if connects else 4):  # fill the queue: whoever comes now is not answered
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(silent.getsockname())
        env = clean_env(cache, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://{HOST}:{silent.getsockname()[1]}")
        with Nereid(store.path, env=env) as server:
            assert shelf.infers(server, "m")
            assert "requests to S3 are not signed" in server.process.log()
        assert not any("authorization" in request.headers for request in store.requests)


def test_a_silent_store_is_named_while_the_start_waits_for_it(tmp_path: Path, cache: Path) -> None:
    """What a local repository has serves meanwhile; the log says which repositories are looked at, and the server can be stopped."""
    local = Repository(tmp_path / "local").identity("near").parent
    with socket.create_server((HOST, 0)) as silent:
        far = f"s3://http://{HOST}:{silent.getsockname()[1]}/models"
        server = Nereid([local, far], env=s3_env(cache), wait_ready=False).start()
        try:
            line = f"still looking at the model repositories: {local}, {far} (--log-verbose=1 tells of each attempt)"
            server.process.wait_until(lambda: line in server.process.log(), 60)
            server.process.stop()
        finally:
            server.kill()


class TokenService(Endpoint):
    """Gives keys for a role to who shows the token that is right at the time, and then wants another one."""

    ROLE = "arn:aws:iam::123456789012:role/models & more"

    def __init__(self, file: Path, keys: list[tuple[str, str]]):
        super().__init__()
        self.file, self.keys = file, keys
        self.forms: list[dict[str, str]] = []
        self.replace()

    def replace(self) -> None:
        self.file.write_text(f"e30.token/{len(self.forms)}+=\n")

    def answer(self, request: Request) -> Answer:
        form = request.form
        right = {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": self.ROLE, "WebIdentityToken": self.file.read_text().strip()}
        if request.method != "POST" or request.path != "/" or {k: form.get(k) for k in right} != right or "authorization" in request.headers:
            return Answer(400, b"<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>not this one</Message></Error></ErrorResponse>")
        key, secret = self.keys[min(len(self.forms), len(self.keys) - 1)]
        self.forms.append(form)
        self.replace()
        ends = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        given = f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{escape(secret)}</SecretAccessKey><SessionToken></SessionToken><Expiration>{ends}</Expiration>"
        body = f"<Credentials>{given}</Credentials><AssumedRoleUser><Arn>arn:x</Arn></AssumedRoleUser>"
        space = "https://sts.amazonaws.com/doc/2011-06-15/"
        result = f"<AssumeRoleWithWebIdentityResult>{body}</AssumeRoleWithWebIdentityResult>"
        return Answer(body=f'<AssumeRoleWithWebIdentityResponse xmlns="{space}">{result}</AssumeRoleWithWebIdentityResponse>'.encode())


@pytest.mark.parametrize("named", ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"])
def test_the_role_of_a_pod(gateway: VersityGateway, fill: Fill, cache: Path, named: str) -> None:
    """A token in a file for a key, before a container's or an instance's; the file is read again for each key."""
    bucket = fill(shelf.identity("m"))
    with TokenService(cache / "token", [(KEY_ID, "expired"), (KEY_ID, SECRET)]) as service:
        env = clean_env(
            cache, AWS_WEB_IDENTITY_TOKEN_FILE=str(service.file), AWS_ROLE_ARN=service.ROLE, AWS_ROLE_SESSION_NAME="session-1",
            AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://{HOST}:1/never", **{named: f"{service.url}/"},
        )
        with Nereid(f"s3://{HOST}:{gateway.port}/{bucket}", env=env) as server:
            assert shelf.infers(server, "m")
        assert [form["WebIdentityToken"] for form in service.forms] == ["e30.token/0+=", "e30.token/1+="]
        assert {form["RoleSessionName"] for form in service.forms} == {"session-1"}


def test_the_role_of_a_pod_that_is_refused(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    bucket = fill(shelf.identity("m"))
    with TokenService(cache / "token", [(KEY_ID, SECRET)]) as service:
        env = clean_env(cache, AWS_WEB_IDENTITY_TOKEN_FILE=str(service.file), AWS_ROLE_ARN="another", AWS_ENDPOINT_URL_STS=service.url)
        log = shelf.log_of_a_start_that_fails(f"s3://{HOST}:{gateway.port}/{bucket}", env)
        assert "the role 'another'" in log and "InvalidIdentityToken: not this one" in log
        env |= {"AWS_WEB_IDENTITY_TOKEN_FILE": str(cache / "missing")}
        assert "AWS_WEB_IDENTITY_TOKEN_FILE: " in shelf.log_of_a_start_that_fails(f"s3://{HOST}:{gateway.port}/{bucket}", env)


def test_credentials_of_a_container(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    bucket = fill(shelf.identity("m"))
    with InstanceMetadata([(KEY_ID, SECRET)], seconds=3600) as metadata:
        env = clean_env(
            cache, AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://{HOST}:{metadata.port}/container", AWS_CONTAINER_AUTHORIZATION_TOKEN="secret-token"
        )
        with Nereid(f"s3://{HOST}:{gateway.port}/{bucket}", env=env) as server:
            assert shelf.infers(server, "m")
        assert metadata.authorizations == {"secret-token"}


def test_a_store_that_comes_back(gateway: VersityGateway, shared_bucket: str, cache: Path) -> None:
    """What serves goes on while the store is away; afterwards the poll sees changes again."""
    with Proxy(gateway.port) as proxy:
        options = {"model-control-mode": "poll", "repository-poll-secs": "1"}
        env = s3_env(cache, NEREID_CLOUD_TIMEOUT_SECS="10")
        with Nereid(f"s3://{HOST}:{proxy.port}/{shared_bucket}", options, env) as server:
            proxy.rule = lambda exchange, rng: Fault(reset=True)
            server.process.wait_until(lambda: "listing model repository" in server.process.log(), 120)
            assert shelf.infers(server, "model_000") and shelf.index(server)["model_029"] == {"1": "READY"}
            proxy.rule = lambda exchange, rng: Fault()
            server.process.wait_until(lambda: "answers again" in server.process.log(), 120)
            assert shelf.infers(server, "model_000")
