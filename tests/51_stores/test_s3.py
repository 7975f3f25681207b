"""Models out of S3, served by a gateway that checks signatures."""

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import shelf
from faults import Proxy
from harness import rawhttp
from harness.servers import Nereid
from peers import HOST, VersityGateway, clean_env, s3_env
from s3_client import KEY_ID, SECRET
from shelf import Files, serve

Fill = Callable[[Files], str]


@pytest.mark.parametrize("path", ["s3://{host}/{bucket}", "s3://http://{host}/{bucket}/", "s3://{host}//{bucket}/deep//er/"])
def test_paths_that_lead_to_a_bucket(gateway: VersityGateway, fill: Fill, cache: Path, path: str) -> None:
    """MR-03, MR-09, X-01: host and port, the bucket, any number of parts below it."""
    prefix = "deep/er/" if "deep" in path else ""
    bucket = fill({prefix + name: data for name, data in shelf.identity("m").items()})
    with serve(path.format(host=f"{HOST}:{gateway.port}", bucket=bucket), s3_env(cache)) as server:
        assert shelf.index(server) == {"m": {"1": "READY"}}
        assert shelf.infers(server, "m")


def test_https(tmp_path: Path, cache: Path) -> None:
    """X-01: https:// in front of the host; the authority is the one that the environment names."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", f"subjectAltName=IP:{HOST}", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )
    with VersityGateway((certificate, key)) as gateway:
        # Filled through its directory: the client here speaks plain HTTP.
        shelf.write(shelf.identity("m"), gateway.root / "bucket")
        path = f"s3://https://{HOST}:{gateway.port}/bucket"
        with serve(path, s3_env(cache, AWS_CA_BUNDLE=str(certificate))) as server:
            assert shelf.infers(server, "m")
        refused = shelf.log_of_a_start_that_fails(path, s3_env(cache, NEREID_CLOUD_TIMEOUT_SECS="20"))
        assert "certificate" in refused and "(attempt 1," in refused  # no other attempt would end otherwise


def test_second_start_moves_no_byte_of_a_model(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    bucket = fill(shelf.many(200))
    with Proxy(gateway.port) as proxy:
        for start in (1, 2):
            proxy.forget()
            with serve(f"s3://{HOST}:{proxy.port}/{bucket}", s3_env(cache)) as server:
                assert len(proxy.listings()) == 1  # and not one a model
                assert shelf.index(server) == {f"model_{i:03}": {"1": "READY"} for i in range(200)}
                assert shelf.infers(server, "model_123")
            moved = sum(len(data) for data in shelf.many(200).values())
            assert proxy.object_bytes() == (moved if start == 1 else 0)
            assert len(proxy.objects()) == (400 if start == 1 else 0)


def test_files_arrive_as_they_are(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """Names with characters that URLs, XML and signatures treat in ways of their own; an upload in parts; empty files."""
    files = shelf.identity("odd")
    for name in ("a b+c%20.txt", "\u00e9\u4e2d & <x>.txt", "=;,:@!$'()*~.bin", "deep/er/?q=1#f.txt", "%2e%2e/x"):
        files[f"odd/1/{name}"] = shelf.content(name, 300)
    files["odd/1/empty"] = b""
    bucket = fill(files)
    big = shelf.content("big", 23 << 20)
    gateway.client().put_in_parts(bucket, "odd/1/parts.bin", big, 5 << 20)
    with serve(f"s3://{HOST}:{gateway.port}/{bucket}", s3_env(cache)) as server:
        assert shelf.index(server) == {"odd": {"1": "READY"}}
        assert dict(shelf.model_files(cache)) == files | {"odd/1/parts.bin": big}


def test_a_model_that_is_tried_again_is_not_fetched_again(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    bucket = fill({name: data.replace(b'"identity"', b'"nowhere"') for name, data in shelf.identity("m").items()})
    with Proxy(gateway.port) as proxy:
        options = {"model_control_mode": "explicit", "model_load_retry_count": "2"}
        with serve(f"s3://{HOST}:{proxy.port}/{bucket}", s3_env(cache), **options) as server:
            assert "unable to find backend library" in shelf.load(server, "m").json()["error"]
            log = server.process.log()
        assert log.count("failed to load 'm' version 1: Invalid argument: unable to find backend library") == 3
        assert len(proxy.objects()) == 2


def test_only_versions_that_the_policy_picks_are_read(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    bucket = fill(
        shelf.identity("latest", (1, 2, 3))
        | shelf.identity("some", (1, 2, 3), "version_policy { specific { versions: [ 1, 3 ] } }")
    )
    with serve(f"s3://{HOST}:{gateway.port}/{bucket}", s3_env(cache)) as server:
        assert shelf.index(server) == {"latest": {"3": "READY"}, "some": {"1": "READY", "3": "READY"}}
        weights = {name for name, _ in shelf.model_files(cache) if name.endswith(".bin")}
        assert weights == {"latest/3/weights.bin", "some/1/weights.bin", "some/3/weights.bin"}


def test_an_empty_repository_and_names_that_are_no_models(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """MR-14, MR-25, MR-26: what lies at the top, begins with a dot or is no version, is passed over."""
    bucket = fill({"readme.txt": b"x", ".git/config": b"x"} | shelf.identity("m") | {"m/01/x": b"", "m/tmp/x": b""})
    with serve(f"s3://{HOST}:{gateway.port}/{bucket}", s3_env(cache)) as server:
        assert shelf.index(server) == {"m": {"1": "READY"}}
    with serve(f"s3://{HOST}:{gateway.port}/{bucket}/nothing/here", s3_env(cache)) as server:
        assert shelf.index(server) == {}


def test_a_listing_of_many_pages_by_files_without_etag(gateway: VersityGateway, cache: Path) -> None:
    """Files that were put into the gateway's directory have no ETag: the time of their last change tells one from the other."""
    files = shelf.identity("wide")
    files |= {f"wide/1/part-{i:05}": b"%d" % i for i in range(1500)}
    shelf.write(files, gateway.root / "bucket-wide")
    with Proxy(gateway.port) as proxy:
        with serve(f"s3://{HOST}:{proxy.port}/bucket-wide", s3_env(cache)) as server:
            assert dict(shelf.model_files(cache)) == files
            assert len(proxy.listings()) == 2
            assert shelf.infers(server, "wide")
        proxy.forget()
        with serve(f"s3://{HOST}:{proxy.port}/bucket-wide", s3_env(cache)):
            assert proxy.object_bytes() == 0


def test_poll_follows_the_bucket(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """MR-02."""
    bucket = fill(shelf.identity("stays") | shelf.identity("goes"))
    client = gateway.client()
    with serve(f"s3://{HOST}:{gateway.port}/{bucket}", s3_env(cache), model_control_mode="poll", repository_poll_secs="1") as server:

        def shows(expected: dict[str, dict[str, str]]) -> None:
            server.process.wait_until(lambda: {m: {v: s for v, s in vs.items() if s == "READY"} for m, vs in shelf.index(server).items()} == expected, 120, 0.1)

        shows({"stays": {"1": "READY"}, "goes": {"1": "READY"}})
        for name, data in (shelf.identity("comes") | {"stays/2/weights.bin": b"two"}).items():
            client.put(bucket, name, data)
        for name in shelf.identity("goes"):
            client.delete(bucket, name)
        shows({"stays": {"2": "READY"}, "comes": {"1": "READY"}})
        before = server.process.log().count("successfully loaded 'stays' version 2")
        client.put(bucket, "stays/2/weights.bin", b"other")
        server.process.wait_until(lambda: server.process.log().count("successfully loaded 'stays' version 2") > before, 120, 0.1)


def test_explicit_load_sees_what_lies_there_now(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    bucket = fill(shelf.identity("first"))
    client = gateway.client()
    with serve(f"s3://{HOST}:{gateway.port}/{bucket}", s3_env(cache), model_control_mode="explicit") as server:
        assert shelf.index(server) == {"first": {"": ""}}
        for name, data in shelf.identity("second").items():
            client.put(bucket, name, data)
        assert shelf.load(server, "second").status == 200
        assert shelf.infers(server, "second")
        answer = shelf.load(server, "third")
        assert answer.status == 500 and b"failed to poll from model repository" in answer.body
        client.put(bucket, "second/2/weights.bin", b"x")
        assert shelf.load(server, "second").status == 200
        assert shelf.index(server)["second"]["2"] == "READY"


@pytest.mark.parametrize(
    "extra", [{"config": 'platform: "custom"'}, {"file": "1/libtriton_mine.so", "config": 'backend: "mine"'}], ids=["platform", "library"]
)
def test_custom_backends_are_refused(gateway: VersityGateway, fill: Fill, cache: Path, extra: dict[str, str]) -> None:
    """MR-67, MR-68, X-03."""
    config = shelf.identity("c")["c/config.pbtxt"].replace(b'backend: "identity"', extra["config"].encode())
    bucket = fill({"c/config.pbtxt": config, f"c/{extra.get('file', '1/libcustom.so')}": b"\x7fELF"} | shelf.identity("m"))
    with serve(f"s3://{HOST}:{gateway.port}/{bucket}", s3_env(cache), exit_on_error="false", strict_readiness="false") as server:
        assert shelf.index(server) == {"c": {"1": "UNAVAILABLE"}, "m": {"1": "READY"}}
        assert "custom backend is not loaded from a repository in cloud storage" in shelf.reasons(server)["c"]


def test_no_library_is_named_out_of_a_store(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """X-03: neither beside the model nor by the name that content has in the cache, which whoever wrote it can tell."""
    library = b"\x7fELF, or so"
    digest = hashlib.sha256(library).hexdigest()
    kept = cache / "nereid" / "cloud" / "objects" / digest[:2] / digest[2:]
    config = 'backend: "identity"\nmodel_operations {{ op_library_filename: "{}" }}\n'
    files = shelf.identity("m")
    for model, name in (("beside", "1/ops.bin"), ("kept", str(kept))):
        files |= {f"{model}/config.pbtxt": files["m/config.pbtxt"].replace(b'name: "m"\nbackend: "identity"', config.format(name).encode())}
        files |= {f"{model}/1/ops.bin": library}
    with serve(f"s3://{HOST}:{gateway.port}/{fill(files)}", s3_env(cache), exit_on_error="false", strict_readiness="false") as server:
        found, reasons = shelf.index(server), shelf.reasons(server)
        assert found["m"] == {"1": "READY"} and found["beside"] == found["kept"] == {"1": "UNAVAILABLE"}
        assert kept.exists()
        assert all("op_library_filename" in reasons[m] and "cloud storage" in reasons[m] for m in ("beside", "kept")), reasons


def test_no_operators_of_openvino_come_out_of_a_store(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """X-03: whatever backend would read the parameter."""
    files = shelf.identity("m") | {"brings/1/weights": b"", "brings/1/ops.bin": b"\x7fELF"}
    parameter = b'parameters { key: "CPU_EXTENSION_PATH" value { string_value: "1/ops.bin" } }\n'
    files["brings/config.pbtxt"] = files["m/config.pbtxt"].replace(b'name: "m"\n', b"") + parameter
    with serve(f"s3://{HOST}:{gateway.port}/{fill(files)}", s3_env(cache), exit_on_error="false", strict_readiness="false") as server:
        assert shelf.index(server) == {"m": {"1": "READY"}, "brings": {"1": "UNAVAILABLE"}}
        reason = shelf.reasons(server)["brings"]
        assert "CPU_EXTENSION_PATH: libraries are not loaded for a model from a repository in cloud storage" in reason, reason


def test_no_compiled_model_comes_out_of_a_store(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """X-03: a package of AOTInductor has a library in it."""
    files = shelf.identity("m") | {"compiled/1/model.pt2": b"PK"}
    files["compiled/config.pbtxt"] = b'platform: "torch_aoti"\ninput { name: "ARGS[0]" data_type: TYPE_FP32 dims: 1 }\n'
    with serve(f"s3://{HOST}:{gateway.port}/{fill(files)}", s3_env(cache), exit_on_error="false", strict_readiness="false") as server:
        assert shelf.index(server) == {"m": {"1": "READY"}, "compiled": {"1": "UNAVAILABLE"}}
        reason = shelf.reasons(server)["compiled"]
        assert "platform 'torch_aoti': its file has a library in it, which is not loaded for a model from a repository in cloud" in reason, reason


def test_no_batching_strategy_comes_out_of_a_store(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    """X-03: neither by the usual name, beside the model or the version, nor by a parameter."""
    files = shelf.identity("m")
    config = files["m/config.pbtxt"]
    parameter = b'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "1/mine.so" } }\n'
    for model, name, more in (("beside", "batchstrategy.so", b""), ("within", "1/batchstrategy.so", b""), ("named", "1/mine.so", parameter)):
        files |= {f"{model}/config.pbtxt": config.replace(b'name: "m"\n', b"") + more}
        files |= {f"{model}/1/weights": b"", f"{model}/{name}": b"\x7fELF"}
    with serve(f"s3://{HOST}:{gateway.port}/{fill(files)}", s3_env(cache), exit_on_error="false", strict_readiness="false") as server:
        found, reasons = shelf.index(server), shelf.reasons(server)
        assert found.pop("m") == {"1": "READY"}
        assert found == dict.fromkeys(("beside", "within", "named"), {"1": "UNAVAILABLE"})
        for model in found:
            assert "a batching strategy is not loaded from a repository in cloud storage" in reasons[model], reasons


def test_a_name_in_two_repositories(gateway: VersityGateway, fill: Fill, cache: Path, tmp_path: Path) -> None:
    """MR-05: repositories of all kinds together; a name that two of them have is not served."""
    local = shelf.write(shelf.identity("both") | shelf.identity("mine"), tmp_path / "local")
    buckets = [fill(shelf.identity("both") | shelf.identity("theirs")), fill(shelf.identity("third"))]
    repositories = [local, *(f"s3://{HOST}:{gateway.port}/{bucket}" for bucket in buckets)]
    with Nereid(repositories, {"exit-on-error": "false", "strict-readiness": "false"}, s3_env(cache)) as server:
        found = {model: set(versions.values()) for model, versions in shelf.index(server).items()}
        assert found == {"both": {"UNAVAILABLE"}, "mine": {"READY"}, "theirs": {"READY"}, "third": {"READY"}}
        assert "two or more repositories" in shelf.reasons(server)["both"]


def test_names_told_apart(gateway: VersityGateway, fill: Fill, cache: Path, tmp_path: Path) -> None:
    """A directory and a bucket with a model of one name: both serve, and a load asks the bucket too."""
    local = shelf.write(shelf.identity("both") | shelf.identity("mine"), tmp_path / "local")
    bucket = fill(shelf.identity("both") | shelf.identity("theirs"))
    repositories = [local, f"s3://{HOST}:{gateway.port}/{bucket}"]
    options = {"model-namespacing": "true", "model-control-mode": "explicit", "load-model": "mine"}
    with Nereid(repositories, options, s3_env(cache)) as server:
        assert shelf.load(server, "both").status == 200
        rows = rawhttp.post(server.http, "/v2/repository/index", b'{"ready":true}').json()
        assert [row["name"] for row in rows] == ["both", "mine", "both"]
        assert rawhttp.request(HOST, server.http_port, "GET", "/v2/models/both").status == 400
        gateway.client().put(bucket, "mine/config.pbtxt", shelf.identity("mine")["mine/config.pbtxt"])
        gateway.client().put(bucket, "mine/1/weights.bin", b"new")
        assert shelf.load(server, "mine").status == 200
        assert rawhttp.request(HOST, server.http_port, "GET", "/v2/models/mine").status == 400
        assert shelf.load(server, "theirs").status == 200
        assert shelf.infers(server, "theirs")


def test_mount_directory(gateway: VersityGateway, fill: Fill, cache: Path) -> None:
    bucket = fill(shelf.identity("m"))
    mount = cache / "elsewhere"
    with serve(f"s3://{HOST}:{gateway.port}/{bucket}", s3_env(cache, TRITON_AWS_MOUNT_DIRECTORY=str(mount))):
        assert dict(shelf.model_files(mount)) == shelf.identity("m")
        assert not (cache / "nereid").exists()
    assert not list(mount.glob("**/run/*/*"))


# Credentials


def starts(path: str, env: dict[str, str]) -> tuple[bool, str]:
    """Whether a server that ends on errors comes up, and its log."""
    server = serve(path, env)
    server.wait_ready = False
    server.start()
    while not server.process.ended_within(0.05):  # allowed: ends when the server does, and it is asked meanwhile
        if server.ready():
            log = server.process.log()
            server.stop()
            return True, log
    server.process.ends(1)
    log = server.process.log()
    server.kill()
    return False, log


def profile_files(folder: Path, profiles: dict[str, tuple[str, str]]) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    text = "".join(f"[{name}]\naws_access_key_id = {key}\naws_secret_access_key={secret}\n" for name, (key, secret) in profiles.items())
    (folder / "credentials").write_text(f"# comment\n{text}")
    (folder / "config").write_text("[default]\nregion = us-east-1\ns3 =\n  max_concurrent_requests = 2\n[profile other]\nregion=us-east-1\n")
    return {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"), "AWS_CONFIG_FILE": str(folder / "config")}


GOOD = (KEY_ID, SECRET)
BAD = (KEY_ID, "wrong")


@pytest.mark.parametrize(
    ("profiles", "env", "works"),
    [
        ({"default": GOOD}, {}, True),
        ({"default": BAD, "other": GOOD}, {"AWS_PROFILE": "other"}, True),
        ({"default": GOOD, "other": BAD}, {"AWS_PROFILE": "other"}, False),
        ({"default": GOOD}, {"AWS_PROFILE": "missing"}, False),
        ({"default": BAD}, {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}, True),
        ({"default": GOOD}, {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": "wrong"}, False),
    ],
)
def test_environment_and_profiles(
    gateway: VersityGateway, fill: Fill, cache: Path, tmp_path: Path,
    profiles: dict[str, tuple[str, str]], env: dict[str, str], works: bool,
) -> None:
    """MR-10, MR-11, MR-12."""
    bucket = fill(shelf.identity("m"))
    files = profile_files(tmp_path / "aws", profiles)
    up, log = starts(f"s3://{HOST}:{gateway.port}/{bucket}", clean_env(cache, **files, **env))
    assert up == works, log
    if not works:
        assert "InvalidAccessKeyId" in log or "SignatureDoesNotMatch" in log or "'missing'" in log


def test_credential_file(gateway: VersityGateway, fill: Fill, cache: Path, tmp_path: Path) -> None:
    """TRITON_CLOUD_CREDENTIAL_PATH: the longest beginning of the path wins."""
    bucket = fill(shelf.identity("m"))
    path = f"s3://{HOST}:{gateway.port}/{bucket}"
    entry = '{{"key_id": "{}", "secret_key": "{}", "region": "us-east-1", "session_token": "", "profile": ""}}'
    file = tmp_path / "credentials.json"
    env = clean_env(cache, TRITON_CLOUD_CREDENTIAL_PATH=str(file))
    for text, works in [
        ('{{"s3": {{"": {good}}}}}', True),
        ('{{"s3": {{"": {bad}, "{path}": {good}, "s3://{host}": {bad}}}}}', True),
        ('{{"s3": {{"": {good}, "{path}": {bad}}}}}', False),
        ('{{"s3": {{"s3://elsewhere": {good}}}}}', False),
        ('{{"gs": {{"": "x"}}}}', False),
        ('{{"s3": ', False),
    ]:
        file.write_text(text.format(good=entry.format(*GOOD), bad=entry.format(*BAD), path=path, host=HOST))
        up, log = starts(path, env)
        assert up == works, (text, log)


def test_a_bucket_that_is_not_there(gateway: VersityGateway, cache: Path) -> None:
    up, log = starts(f"s3://{HOST}:{gateway.port}/no-such-bucket", s3_env(cache))
    assert not up
    assert f"http://{HOST}:{gateway.port}/no-such-bucket" in log and "NoSuchBucket" in log


@pytest.mark.parametrize("path", ["s3://", "s3:///", "s3://host:port/bucket", "s3://http://:80/bucket"])
def test_paths_that_lead_nowhere(cache: Path, path: str) -> None:
    up, log = starts(path, s3_env(cache))
    assert not up and f"model repository '{path}'" in log
