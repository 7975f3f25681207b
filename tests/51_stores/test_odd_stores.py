"""What a store says is not believed: names that climb, listings without an end, contents that are not theirs."""

import calendar
import dataclasses
import email.utils
import hashlib
import itertools
import time
from pathlib import Path

import pytest
import shelf
from endpoint import HOST, Answer, Request
from harness.servers import Nereid
from odd_store import OddStore, listing, md5_tag
from peers import clean_env, s3_env

LENIENT = {"exit-on-error": "false", "strict-readiness": "false"}
GOOD = shelf.identity("good")


def serve(store: OddStore, cache: Path, **env: str) -> Nereid:
    return Nereid(store.path, LENIENT, s3_env(cache, **env))


def log_of(store: OddStore, cache: Path, **env: str) -> str:
    return shelf.log_of_a_start_that_fails(store.path, s3_env(cache, **env))


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("name", ["../../../escape", "1/../../../../escape", "/1/x", "1//x", "1/./x", "1/" + "d/" * 40 + "x", "1/" + "n" * 300])
def test_names_that_leave_the_model(cache: Path, name: str, encoded: bool) -> None:
    evil = shelf.identity("evil") | {f"evil/{name}": b"evil"}
    objects = {n: (len(d), md5_tag(d)) for n, d in (GOOD | evil).items()}

    def odd(request: Request) -> Answer | None:
        names = {n.replace(".", "%2e") if encoded else n: about for n, about in objects.items()}
        return Answer(body=listing(names, encoded=encoded)) if request.is_listing else None

    with OddStore(GOOD | evil, odd) as store, serve(store, cache) as server:
        found = shelf.index(server)
        assert found["good"] == {"1": "READY"} and set(found["evil"].values()) == {"UNAVAILABLE"}
        assert "would not stay within its model's directory" in shelf.reasons(server)["evil"]
        assert not any("evil" in path.name or "escape" in path.name for path in cache.parent.rglob("*"))
        assert all(not r.path.startswith("/bucket/evil") for r in store.requests)


def test_a_file_where_a_directory_is(cache: Path) -> None:
    both = shelf.identity("both") | {"both/1/a": b"file", "both/1/a/b": b"below it"}
    with OddStore(GOOD | both) as store, serve(store, cache) as server:
        found = shelf.index(server)
        assert found["good"] == {"1": "READY"} and "READY" not in found["both"].values()


@pytest.mark.parametrize(
    "body",
    [
        b'<!DOCTYPE a [<!ENTITY x "' + b"x" * 1000 + b'">]><ListBucketResult>&x;</ListBucketResult>',
        b"<ListBucketResult><Contents><Key>good/1/x</Key>",
        b"<html>nothing of the kind</html>",
        b"<ListBucketResult><Contents><Key>good/1/x</Key><Size>-5</Size></Contents></ListBucketResult>",
        b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        b"<ListBucketResult>" + b"<a>" * 100 + b"</a>" * 100 + b"</ListBucketResult>",
    ],
    ids=["entities", "cut", "html", "size", "no-token", "deep"],
)
def test_what_is_no_listing(cache: Path, body: bytes) -> None:
    with OddStore({}, lambda request: Answer(body=body)) as store:
        assert "the answer is not a listing" in log_of(store, cache, NEREID_CLOUD_TIMEOUT_SECS="4")
        assert len(store.requests) > 1  # it may have been damaged on its way


def test_a_listing_of_more_than_any_repository_has(cache: Path) -> None:
    def odd(request: Request) -> Answer:
        page = int(request.query.get("continuation-token", "0"))
        names = {f"m{page}/1/{i}": (1, '"x"') for i in range(20000)}
        return Answer(body=listing(names, next_token=str(page + 1)))

    with OddStore({}, odd) as store:
        assert "more than 200000 objects" in log_of(store, cache)
        assert len(store.requests) == 11


def test_a_listing_that_goes_round(cache: Path) -> None:
    with OddStore({}, lambda request: Answer(body=listing({}, next_token="again"))) as store:
        assert "it does not end" in log_of(store, cache)


@pytest.mark.parametrize("sizes", [(1 << 62,), ((1 << 64) - 1,), (1 << 70,), (7 << 20,), (3 << 20, 3 << 20)], ids=["2^62", "2^64-1", "2^70", "one", "together"])
@pytest.mark.parametrize("most", [6 << 20, (1 << 62) - 1], ids=["6MiB", "2^62-1"])
def test_sizes_past_what_the_cache_may_hold(cache: Path, sizes: tuple[int, ...], most: int) -> None:
    """Nothing of such a model is asked for; what can be had is served."""
    huge = {f"huge/1/{i}.bin": size for i, size in enumerate(sizes)}
    config = shelf.identity("huge")["huge/config.pbtxt"]

    def odd(request: Request) -> Answer | None:
        known = {n: (len(d), md5_tag(d)) for n, d in store.files.items()}
        return Answer(body=listing(known | {n: (size, '"x"') for n, size in huge.items()})) if request.is_listing else None

    with OddStore(GOOD | {"huge/config.pbtxt": config}, odd) as store, serve(store, cache, NEREID_CLOUD_CACHE_MAX_BYTES=str(most)) as server:
        assert shelf.infers(server, "good")
        reason = shelf.reasons(server)["huge"]
        if sizes[0] >= 1 << 62 or most == 6 << 20:
            assert "larger than the cache may be" in reason or "expected at most 17592186044416" in reason
            assert not any(r.path.startswith("/bucket/huge/1/") for r in store.requests)
        else:
            assert any(r.path.startswith("/bucket/huge/1/") for r in store.requests)


def test_contents_that_are_not_what_was_listed(cache: Path) -> None:
    """Another size, other bytes of the same size, fewer bytes than the head says: the model does not load, others do."""
    size, content, short = (shelf.identity(name) for name in ("size", "content", "short"))

    def odd(request: Request) -> Answer | None:
        if request.is_listing:
            return None
        if request.path == "/bucket/size/1/weights.bin":
            return Answer(206, b"x" * 100, {"Content-Range": "bytes 0-99/5000"})
        if request.path == "/bucket/content/1/weights.bin":
            return Answer(206, b"x" * 100, {"Content-Range": "bytes 0-99/100"})
        if request.path == "/bucket/short/1/weights.bin":
            return Answer(206, b"x" * 50, {"Content-Range": "bytes 0-99/100"})
        return None

    with OddStore(GOOD | size | content | short, odd) as store, serve(store, cache, NEREID_CLOUD_TIMEOUT_SECS="8") as server:
        states = {name: set(versions.values()) for name, versions in shelf.index(server).items()}
        assert states == {"good": {"READY"}, "size": {"UNAVAILABLE"}, "content": {"UNAVAILABLE"}, "short": {"UNAVAILABLE"}}
        assert "its content is not what the store says it is" in shelf.reasons(server)["content"]


def test_a_tag_that_is_no_digest(cache: Path) -> None:
    """Encrypted with a key of the service; and a gateway whose tags mean something else, as the environment says."""
    tag = '"0123456789abcdef0123456789abcdef"'

    def odd(request: Request, kms: bool) -> Answer | None:
        if request.is_listing:
            return Answer(body=listing({n: (len(d), tag) for n, d in GOOD.items()}))
        answer = store.honest(request)
        return Answer(answer.status, answer.body, answer.headers | ({"x-amz-server-side-encryption": "aws:kms"} if kms else {}))

    with OddStore(GOOD, lambda request: odd(request, True)) as store, serve(store, cache / "a") as server:
        assert shelf.infers(server, "good")
    with OddStore(GOOD, lambda request: odd(request, False)) as store:
        with serve(store, cache / "b") as server:
            assert "READY" not in shelf.index(server)["good"].values()
        with serve(store, cache / "b", NEREID_S3_ETAG_IS_MD5="0") as server:
            assert shelf.infers(server, "good")


def tag_of_parts(data: bytes, sizes: list[int]) -> str:
    ends = list(itertools.accumulate(sizes))
    parts = [hashlib.md5(data[end - size : end]).digest() for size, end in zip(sizes, ends, strict=True)]
    return f'"{hashlib.md5(b"".join(parts)).hexdigest()}-{len(sizes)}"'


PART = 1_234_567


@pytest.mark.parametrize(
    ("sizes", "knows", "times"),
    [([PART, PART, PART, 999], True, 1), ([PART, PART, PART, 999], False, 2), ([PART, 5, PART, 999], True, 2)],
    ids=["unusual", "the store does not tell", "uneven"],
)
def test_uploads_in_parts_of_unusual_sizes(cache: Path, sizes: list[int], knows: bool, times: int) -> None:
    """Read once where the store tells the size of the first part."""
    name, data = "good/1/parts.bin", shelf.content("parts", sum(sizes))

    def odd(request: Request) -> Answer | None:
        if request.is_listing:
            return Answer(body=listing({n: (len(d), tag_of_parts(d, sizes) if n == name else md5_tag(d)) for n, d in store.files.items()}))
        if request.method == "HEAD" and knows:
            assert request.query == {"partNumber": "1"} and "authorization" in request.headers
            return Answer(206, headers={"x-amz-mp-parts-count": str(len(sizes))}, body=data[: sizes[0]])
        return Answer(501) if request.method == "HEAD" else None

    with OddStore(GOOD | {name: data}, odd) as store, serve(store, cache) as server:
        assert shelf.infers(server, "good")
        assert dict(shelf.model_files(cache)) == store.files
        read = [r for r in store.requests if r.path.endswith(name)]
        assert [r.method for r in read].count("GET") == times and [r.method for r in read].count("HEAD") == 1
        assert ("arrived damaged" in server.process.log()) == (times > 1)


def test_a_part_that_arrives_damaged(cache: Path) -> None:
    """What the store says of its parts tells a damaged content from an unusual one."""
    sizes = [PART, PART, 7]
    name, data = "good/1/parts.bin", shelf.content("parts", sum(sizes))

    def odd(request: Request) -> Answer | None:
        if request.is_listing:
            return Answer(body=listing({n: (len(d), tag_of_parts(d, sizes) if n == name else md5_tag(d)) for n, d in store.files.items()}))
        if request.method == "HEAD":
            return Answer(206, body=data[:PART])
        answer = store.honest(request)
        first = request.path.endswith(name) and sum(r.path.endswith(name) and r.method == "GET" for r in store.requests) == 1
        return Answer(answer.status, bytes([answer.body[0] ^ 1]) + answer.body[1:], answer.headers) if first else None

    with OddStore(GOOD | {name: data}, odd) as store, serve(store, cache):
        assert dict(shelf.model_files(cache)) == store.files
        assert sum(r.path.endswith(name) and r.method == "GET" for r in store.requests) == 2


def test_a_token_of_many_bytes(cache: Path) -> None:
    """A session's token past 8 KiB is sent and signed like any other; one that no request can carry is named."""
    with OddStore(GOOD, lambda request: None if request.headers.get("x-amz-security-token") == "t" * 20000 else Answer(403)) as store:
        with serve(store, cache, AWS_SESSION_TOKEN="t" * 20000) as server:
            assert shelf.infers(server, "good")
        assert "'x-amz-security-token' has 70022 bytes" in log_of(store, cache, AWS_SESSION_TOKEN="t" * 70000)


def test_a_bucket_of_another_region(cache: Path) -> None:
    def odd(request: Request) -> Answer | None:
        right = "/eu-test-1/s3/" in request.headers["authorization"]
        return None if right else Answer(301, b"<Error><Code>PermanentRedirect</Code></Error>", {"x-amz-bucket-region": "eu-test-1"})

    with OddStore(GOOD, odd) as store, serve(store, cache) as server:
        assert shelf.infers(server, "good")
        assert sum("/us-east-1/" in r.headers["authorization"] for r in store.requests) == 1


@pytest.mark.parametrize(
    ("env", "region"),
    [({}, "eu-file-1"), ({"AWS_PROFILE": "other"}, "eu-file-2"), ({"AWS_DEFAULT_REGION": "eu-env-1"}, "eu-env-1")],
    ids=["file", "profile", "environment"],
)
def test_the_region_of_files_and_environment(cache: Path, tmp_path: Path, env: dict[str, str], region: str) -> None:
    """MR-10, MR-11, MR-12: the environment wins."""
    (tmp_path / "config").write_text("[default]\nregion = eu-file-1\n[profile other]\nregion = eu-file-2\n")
    keys = "aws_access_key_id = id\naws_secret_access_key = secret\n"
    (tmp_path / "credentials").write_text(f"[default]\n{keys}[other]\n{keys}")
    files = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    with OddStore(GOOD) as store, Nereid(store.path, LENIENT, clean_env(cache, **files, **env)) as server:
        assert shelf.infers(server, "good")
        assert all(f"/{region}/s3/" in request.headers["authorization"] for request in store.requests)


@pytest.mark.parametrize("path", ["s3://bucket", "s3://bucket/deep", "s3://bucket/deep/er/"])
def test_paths_that_name_a_bucket_alone(cache: Path, path: str) -> None:
    """MR-08: the host is not in the path, and any number of parts stand below the bucket."""
    prefix = path.removeprefix("s3://bucket").strip("/")
    files = {f"{prefix}/{name}".lstrip("/"): data for name, data in GOOD.items()}
    with OddStore(files | shelf.identity("elsewhere")) as store:
        with Nereid(path, LENIENT, s3_env(cache, AWS_ENDPOINT_URL=f"http://{HOST}:{store.port}")) as server:
            assert set(shelf.index(server)) == ({"good"} if prefix else {"good", "elsewhere"})
            assert shelf.infers(server, "good")


def test_a_clock_that_is_wrong(cache: Path) -> None:
    """The store's clock counts."""
    later = time.time() + 5 * 86400

    def odd(request: Request) -> Answer | None:
        said = calendar.timegm(time.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ"))
        if abs(said - later) < 3600:
            return None
        return Answer(403, b"<Error><Code>RequestTimeTooSkewed</Code></Error>", {"Date": email.utils.formatdate(later, usegmt=True)})

    with OddStore(GOOD, odd) as store, serve(store, cache) as server:
        assert shelf.infers(server, "good")


def test_retry_after_is_waited_for(cache: Path) -> None:
    def odd(request: Request) -> Answer | None:
        return Answer(503, b"", {"Retry-After": "1"}) if len(store.requests) == 1 else None

    with OddStore(GOOD, odd) as store, serve(store, cache) as server:
        assert shelf.infers(server, "good")
        assert store.requests[1].at - store.requests[0].at >= 1


def test_a_model_that_changes_while_it_is_read(cache: Path) -> None:
    """What was listed is gone when it is asked for: it is listed again, and read as it is then."""
    old = shelf.identity("good") | {"good/1/old.bin": b"old"}

    def odd(request: Request) -> Answer | None:
        if request.path.endswith("old.bin"):
            store.files = GOOD | {"good/1/new.bin": b"new"}
        return None

    with OddStore(old, odd) as store, serve(store, cache) as server:
        assert shelf.infers(server, "good")
        assert dict(shelf.model_files(cache)) == GOOD | {"good/1/new.bin": b"new"}


def test_virtual_hosts_and_tokens_of_sessions(cache: Path) -> None:
    """The bucket in the host's name; a session's token is sent and signed."""
    store = OddStore(GOOD)

    def odd(request: Request) -> Answer | None:
        right = request.headers["host"] == f"bucket.localhost:{store.port}" and request.headers.get("x-amz-security-token") == "a session"
        if not right or "x-amz-security-token" not in request.headers["authorization"]:
            return Answer(400, b"")
        return None if request.is_listing else store.honest(dataclasses.replace(request, path="/bucket" + request.path))

    store.odd = odd
    with store:
        env = s3_env(cache, NEREID_S3_ADDRESSING="virtual", AWS_SESSION_TOKEN="a session")
        with Nereid(f"s3://localhost:{store.port}/bucket", env=env) as server:
            assert shelf.infers(server, "good")
