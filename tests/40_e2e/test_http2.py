"""HTTP/2 on the HTTP port: that it says what HTTP/1.1 says, in any order, and to whom it no longer does."""

import contextlib
import gzip
import json
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import h2frames as h2
from harness import http2, metrics, rawhttp, recite, tls
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server

INFER = "/v2/models/id_fp32/infer"
STREAM = "/v2/models/recite/generate_stream"
TEXT = {"text_input": "hello"}
JSON = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[3],"data":[1.5,-2,0]}]}'
TENSOR = struct.pack("<3f", 1.5, -2, 0)
SHORT = json.dumps(
    {
        "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [3], "parameters": {"binary_data_size": 12}}],
        "parameters": {"binary_data_output": True},
    }
).encode()
BINARY = ("POST", INFER, SHORT + TENSOR, {"Inference-Header-Content-Length": str(len(SHORT))})
KEPT = 256 << 20  # bytes of events that wait for their client
SESSION = 32 << 10  # what is charged for a session of HTTP/2

QUESTIONS: dict[str, tuple[str, str, bytes | None, dict[str, str]]] = {
    "live": ("GET", "/v2/health/live", None, {}),
    "ready": ("GET", "/v2/health/ready", None, {}),
    "head": ("HEAD", "/v2", None, {}),
    "metadata": ("GET", "/v2", None, {}),
    "openapi": ("GET", "/v2/openapi.json", None, {}),
    "model": ("GET", "/v2/models/id_fp32", None, {}),
    "model-ready": ("GET", "/v2/models/id_fp32/ready", None, {}),
    "config": ("GET", "/v2/models/id_batch/config", None, {}),
    "stats-of-none": ("GET", "/v2/models/nobody/stats", None, {}),
    "stats": ("GET", "/v2/models/id_quiet/stats", None, {}),
    "index": ("POST", "/v2/repository/index", b'{"ready":true}', {}),
    "load": ("POST", "/v2/repository/models/id_fp32/load", b"{}", {}),
    "trace": ("GET", "/v2/trace/setting", None, {}),
    "logging": ("GET", "/v2/logging", None, {}),
    "logging-set": ("POST", "/v2/logging", b'{"log_verbose_level":0}', {}),
    "memory": ("GET", "/v2/systemsharedmemory/status", None, {}),
    "memory-register": ("POST", "/v2/systemsharedmemory/region/a/register", b'{"key":"/a","offset":0,"byte_size":8}', {}),
    "cuda-memory": ("GET", "/v2/cudasharedmemory/status", None, {}),
    "infer": ("POST", INFER, JSON, {}),
    "infer-binary": BINARY,
    "infer-packed": ("POST", INFER, gzip.compress(JSON, mtime=0), {"Content-Encoding": "gzip"}),
    "infer-unpackable": ("POST", INFER, JSON, {"Content-Encoding": "gzip"}),
    "infer-to-pack": ("POST", INFER, JSON, {"Accept-Encoding": "gzip"}),
    "infer-no-json": ("POST", INFER, b"nothing", {}),
    "infer-nothing": ("POST", INFER, b"", {}),
    "infer-of-none": ("POST", "/v2/models/nobody/infer", JSON, {}),
    "two-lengths": ("POST", INFER, SHORT + TENSOR, {"Inference-Header-Content-Length": "1000000"}),
    "generate": ("POST", "/v2/models/recite_once/generate", json.dumps(TEXT).encode(), {}),
    "generate-fault": ("POST", "/v2/models/recite_once/generate", b"{}", {}),
    "stream": ("POST", STREAM, json.dumps(TEXT | {"IN1": 1, "count": 3}).encode(), {}),
    "stream-of-none": ("POST", STREAM, json.dumps(TEXT | {"IN1": 1, "count": 0}).encode(), {}),
    "stream-error": ("POST", STREAM, json.dumps(TEXT | {"IN1": 1, "count": 3, "fail_at": 1}).encode(), {}),
    "other-method": ("PUT", "/v2", b"text", {}),
    "page": ("GET", "/", None, {}),
    "unknown": ("GET", "/v2/nothing?a=b", None, {}),
    "long-path": ("GET", "/" + "a" * 17000, None, {}),
    "many-headers": ("GET", "/v2", None, {f"x{i}": "a" for i in range(300)}),
}
OF_CONNECTION = ("connection", "transfer-encoding")


@pytest.fixture(scope="module")
def recital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = Repository(tmp_path_factory.mktemp("recite") / "models")
    recite.model(repository, "recite", ("text_input", "BYTES", (1,)))
    repository.identity("id_fp32")
    return repository.path


@pytest.fixture(scope="module")
def reciter(recital: Path) -> Iterator[Server]:
    with Nereid(recital, {"http-stall-timeout-secs": "2"}) as server:
        yield server


@pytest.fixture
def patient(recital: Path) -> Iterator[Server]:
    """It waits for its clients as long as a test may take."""
    with Nereid(recital, {"http-stall-timeout-secs": "600", "log-verbose": "1"}) as server:
        yield server


def _events(body: bytes) -> list[dict[str, object]]:
    return [json.loads(each.removeprefix(b"data: ")) for each in body.split(b"\n\n")[:-1]]


def _stream(**members: object) -> bytes:
    return json.dumps(TEXT | members).encode()


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_says_what_http1_says(nereid: Server, name: str) -> None:
    method, path, body, headers = QUESTIONS[name]
    with rawhttp.Connection(HOST, nereid.http_port) as one, http2.Connection(nereid.http) as two:
        one.send(rawhttp.head(method, path, headers, body) + (body or b""))
        expected = one.answer(to_head=method == "HEAD")
        got = two.ask(method, path, body, headers)
    assert got.headers[":status"] == str(expected.status)
    assert got.data == expected.body
    said = {key.lower(): value for key, value in expected.headers if key.lower() not in OF_CONNECTION}
    assert {key: value for key, value in got.headers.items() if key != ":status"} == said


def test_headers_over_the_limit(nereid: Server) -> None:
    """Each counts with 32 bytes more, as the setting says of which clients are told."""
    with http2.Connection(nereid.http) as connection:
        answer = connection.ask("GET", "/v2", None, {f"x{i}": "a" * 1000 for i in range(64)})
        assert answer.headers[":status"] == "431"
        assert json.loads(answer.data) == {"error": "the request head is over 65536 bytes"}
        assert connection.ask("GET", "/v2").headers[":status"] == "200"


def _bomb() -> bytes:
    """A header of four thousand bytes, and one byte for each of forty times that it comes again."""
    value = b"a" * 3900
    return b"\x40" + h2._length(1) + b"x" + h2._length(len(value)) + value + b"\xbe" * 40


@pytest.mark.parametrize("ends", [True, False], ids=["head", "trailers"])
def test_headers_without_end(nereid: Server, ends: bool) -> None:
    """CVE-2024-27316 and bombs of HPACK: they are not decoded to their end."""
    with http2.Connection(nereid.http) as connection:
        connection.settle()
        fields = h2.header_block(http2.fields("POST", INFER))
        first = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, fields) if not ends else b""
        block = _bomb() if not ends else fields + _bomb()
        connection.send(first, h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, block))
        goodbyes = [each.payload for each in connection.finish_by_connection() if each.kind == h2.GOAWAY]
        assert [each[4:] for each in goodbyes] == [struct.pack(">I", 11) + b"too_much_metadata"]


def test_heads_are_charged(identity_repository: Path) -> None:
    """What bombs that stay below the limit make of a few bytes finds no room past the budget; others are answered."""
    with Nereid(identity_repository, {"memory-budget": str(8 << 20), "http-header-forward-pattern": "x.*", "log-verbose": "1"}) as server:
        with http2.Connection(server.http) as connection, http2.Connection(server.http) as other:
            connection.settle()
            value = b"a" * 3900
            fields = h2.header_block(http2.fields("POST", INFER))
            entry = b"\x40" + h2._length(1) + b"x" + h2._length(len(value)) + value
            connection.send(http2.head(1, http2.fields("GET", "/v2"), end=True))
            stream = 1
            for times in (14, 1, 0):  # smaller and smaller ones, until no byte is left
                refused = False
                while not refused:
                    stream += 2
                    block = fields + (entry if stream == 3 else b"") + b"\xbe" * times
                    connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block))
                    for _ in range(2):  # answers to pings overtake answers to requests
                        connection.settle()
                    call = connection.calls.get(stream)
                    refused = bool(call and call.blocks and call.headers[":status"] == "503")
            assert other.ask("GET", "/v2/health/ready").headers[":status"] == "200"


def test_metrics(nereid: Server) -> None:
    with http2.Connection(nereid.metrics) as connection:
        assert b"nv_inference_request_success" in connection.ask("GET", "/metrics").data


def _curl(*argv: str) -> str:
    command = ["curl", "-sS", "--fail-with-body", "--max-time", "60", *argv]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=90).stdout


def test_curl(nereid: Server, tmp_path: Path) -> None:
    """Also with a body that it asks for with Expect: 100-continue."""
    url = f"http://{nereid.http}/v2/models/id_int32/infer"
    values = list(range(300_000))
    file = tmp_path / "request"
    file.write_text(json.dumps({"inputs": [{"name": "INPUT0", "shape": [len(values)], "datatype": "INT32", "data": values}]}))
    for how in ([], ["-H", "Expect: 100-continue"], ["-H", "Content-Length:", "-T", "-", "-X", "POST"]):
        argv = how if "-T" in how else [*how, "--data-binary", f"@{file}"]
        command = ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "60", *argv, url]
        with file.open() as text:
            answer = subprocess.run(command, check=True, capture_output=True, text=True, stdin=text, timeout=90).stdout
        assert json.loads(answer)["outputs"][0]["data"] == values


def test_a_crowd_of_nghttp2(nereid: Server, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(JSON)
    command = ["h2load", "-n2000", "-c4", "-m100", "-d", str(body), f"http://{nereid.http}{INFER}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    assert "status codes: 2000 2xx, 0 3xx, 0 4xx, 0 5xx" in text


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tls.Authority:
    return tls.Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(identity_repository: Path, authority: tls.Authority) -> Iterator[tls.Secure]:
    with tls.Secure(identity_repository, tls.options(authority.sign(), ("http", "metrics"))) as server:
        yield server


@pytest.mark.parametrize(("how", "version"), [("--http2", "2"), ("--http1.1", "1.1"), ("--no-alpn", "1.1")])
def test_tls_says_which_is_spoken(secure: tls.Secure, authority: tls.Authority, how: str, version: str) -> None:
    for port, path in ((secure.http_port, "/v2"), (secure.metrics_port, "/metrics")):
        url = f"https://localhost:{port}{path}"
        seen = _curl("--cacert", str(authority.cert), how, "-o", "/dev/null", "-w", "%{http_version} %{http_code}", url)
        assert seen == f"{version} 200"


@pytest.mark.parametrize(("said", "sent"), [("h2", b"GET /v2 HTTP/1.1\r\n\r\n"), ("http/1.1", h2.PREFACE + h2.settings())])
def test_who_speaks_another_than_it_said(secure: tls.Secure, authority: tls.Authority, said: str, sent: bytes) -> None:
    with tls.Connection(secure.http_port, tls.context(authority, alpn=[said])) as connection:
        connection.send(sent)
        got = b""
        while part := connection.socket.recv(1 << 16):
            got += part
    assert got == b"" or got.startswith(b"HTTP/1.1 4")


def test_a_preface_in_pieces(nereid: Server) -> None:
    with http2.Connection(nereid.http, start=False) as connection:
        for byte in h2.PREFACE + h2.settings():
            connection.send(bytes([byte]))
        assert connection.ask("POST", INFER, JSON).headers[":status"] == "200"


@pytest.mark.parametrize("begun", [b"P", b"PR", h2.PREFACE[:20]])
def test_what_only_begins_like_a_preface(nereid: Server, begun: bytes) -> None:
    rest = rawhttp.head("POST", INFER, None, JSON)[1:] + JSON if begun == b"P" else b"X / HTTP/1.1\r\n\r\n"
    with rawhttp.Connection(HOST, nereid.http_port) as connection:
        connection.send(begun)
        connection.send(rest)
        assert connection.answer().status == (200 if begun == b"P" else 400 if len(begun) > 2 else 405)


def test_no_preface_follows_a_request(nereid: Server) -> None:
    with rawhttp.Connection(HOST, nereid.http_port) as connection:
        assert connection.ask("GET", "/v2").status == 200
        connection.send(h2.PREFACE + h2.settings())
        assert connection.answer().status >= 400
        assert connection.closed()


def test_answers_in_any_order(reciter: Server, tmp_path: Path) -> None:
    """Those behind a stream without end come before it ends; it ends when it is reset, and its model hears of that."""
    mark = tmp_path / "mark"
    with http2.Connection(reciter.http) as connection:
        endless = connection.begin("POST", STREAM, _stream(mark=str(mark), slow=True))
        others = [connection.begin("POST", INFER, JSON) for _ in range(100)]
        for each in others:
            assert json.loads(connection.finish(each).data)["outputs"][0]["data"] == [1.5, -2, 0]
        while not connection.calls.get(endless, h2.Call()).data:  # a model that has not begun would leave no mark
            connection.read()
        assert not connection.calls[endless].ended
        assert not mark.exists()
        connection.send(h2.frame(h2.RST_STREAM, 0, endless, struct.pack(">I", 8)))
        reciter.process.wait_until(mark.exists, 60)
        assert connection.ask("GET", "/v2/health/live").headers[":status"] == "200"


def test_many_events(reciter: Server) -> None:
    with http2.Connection(reciter.http) as connection:
        streams = [connection.begin("POST", STREAM, _stream(count=2000, joined=True)) for _ in range(5)]
        for each in streams:
            assert [event["INDEX"] for event in _events(connection.finish(each).data)] == list(range(2000))


def test_a_client_that_closes(reciter: Server, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with http2.Connection(reciter.http) as connection:
        stream = connection.begin("POST", STREAM, _stream(mark=str(mark)))
        while not connection.calls.get(stream, h2.Call()).data:
            connection.read()
    reciter.process.wait_until(mark.exists, 60)


def test_a_client_that_does_not_read(patient: Server, tmp_path: Path) -> None:
    """It opens no window, and reads nothing: its model is cancelled long before the memory is gone."""
    mark = tmp_path / "mark"
    with http2.Connection(patient.http, initial={h2.INITIAL_WINDOW_SIZE: 0}) as connection:
        stream = connection.begin("POST", STREAM, _stream(mark=str(mark)))
        patient.process.wait_until(lambda: mark.exists() and mark.read_text() != "", 120)
        connection.send(h2.frame(h2.WINDOW_UPDATE, 0, stream, struct.pack(">I", 2**31 - 1)))
        pieces = []
        while not connection.calls.get(stream, h2.Call()).ended:
            if (got := connection.read()).kind == h2.DATA:
                pieces.append(got.payload)
                connection.calls[stream].data = b""  # adding to it takes longer with each piece
        *found, last = _events(b"".join(pieces))
        assert len(found) < KEPT // 1024  # an event takes more than a KiB; what the model sent besides was dropped
        assert last == {"error": "the client does not take the responses of its request"}


@pytest.mark.threadless
@pytest.mark.parametrize("window", [0, 2**31 - 1], ids=["closed", "open"])
def test_the_stream_that_is_not_read_ends(patient: Server, window: int) -> None:
    """Two streams of a connection let more wait than it may. The one that lets most wait is reset; the other one, which its client
    reads then, comes to its end. The model answers one request after the other."""
    text = "x" * (64 << 10)
    with http2.Connection(patient.http, initial={h2.INITIAL_WINDOW_SIZE: window}) as connection:
        unread = connection.begin("POST", STREAM, _stream(text_input=text, count=3400))
        read = connection.begin("POST", STREAM, _stream(text_input=text, count=1500))
        patient.process.wait_until(lambda: "ending a request whose client does not take the answer" in patient.process.log(), 300)
        if not window:
            connection.send(h2.frame(h2.WINDOW_UPDATE, 0, read, struct.pack(">I", 2**31 - 1)))
        pieces = []
        while not connection.calls.setdefault(read, h2.Call()).ended:
            got = connection.read()
            if got.kind == h2.DATA:
                pieces += [got.payload] if got.stream == read else []
                connection.calls[got.stream].data = b""  # adding to it takes longer with each piece
        assert connection.finish(unread).reset == 11  # ENHANCE_YOUR_CALM
        assert [each["INDEX"] for each in _events(b"".join(pieces))] == list(range(1500))
        assert connection.ask("HEAD", "/v2/health/live").headers[":status"] == "200"


def test_requests_over_the_limit(nereid: Server) -> None:
    """RFC 9113, 5.1.2: each too many is refused alone, also once the client has confirmed that it knows how many there may be."""
    with http2.Connection(nereid.http) as connection:
        assert dict(struct.iter_unpack(">HI", connection.read().payload))[h2.MAX_CONCURRENT_STREAMS] == 256
        connection.settle()
        sized = {"content-length": str(len(JSON))}
        streams = [1 + 2 * i for i in range(260)]
        connection.send(*(http2.head(each, http2.fields("POST", INFER, sized)) for each in streams))
        assert [connection.finish(each).reset for each in streams[256:]] == [7] * 4  # REFUSED_STREAM
        connection.send(*(frame for each in streams[:256] for frame in h2.frames_of(each, JSON)))
        assert {connection.finish(each).headers[":status"] for each in streams[:256]} == {"200"}
        connection._next = 521
        assert connection.ask("POST", INFER, JSON).headers[":status"] == "200"


def test_who_opens_refused_streams_for_ever(nereid: Server) -> None:
    with http2.Connection(nereid.http) as connection:
        connection.settle()
        head = http2.fields("POST", INFER, {"content-length": "10"})
        with contextlib.suppress(ConnectionError):  # it may be closed before all was sent
            connection.send(*(http2.head(1 + 2 * i, head) for i in range(256 + 1001)))
        goodbyes = [each.payload for each in connection.finish_by_connection() if each.kind == h2.GOAWAY]
        assert [each[4:] for each in goodbyes] == [struct.pack(">I", 11) + b"too_many_streams"]


def test_connections_are_charged(identity_repository: Path) -> None:
    """What their sessions take counts against the budget: past it tensors find no room, and short questions are still answered."""
    with Nereid(identity_repository, {"memory-budget": str(4 << 20)}) as server, contextlib.ExitStack() as stack:

        def held() -> float:
            return metrics.scrape(server.metrics)["nereid_budget_in_use_bytes"].value()

        before = held()
        connections = [stack.enter_context(http2.Connection(each)) for each in (server.http, server.grpc) * 75]
        for each in connections:
            each.settle()
        assert held() - before >= 150 * SESSION
        assert connections[-2].ask("GET", "/v2/health/ready").headers[":status"] == "200"
        refused = connections[-2].ask("POST", INFER, JSON + b" " * 100_000)
        assert (refused.headers[":status"], b"memory" in refused.data) == ("503", True)
        for each in connections:
            each.socket.close()
        server.process.wait_until(lambda: held() <= before, 60)


def test_a_window_that_stays_closed(reciter: Server) -> None:
    """The request alone is reset, others go on."""
    with http2.Connection(reciter.http, initial={h2.INITIAL_WINDOW_SIZE: 10}) as connection:
        stream = connection.begin("POST", INFER, JSON)
        assert connection.ask("HEAD", "/v2").headers[":status"] == "200"
        assert connection.finish(stream).reset == 11  # ENHANCE_YOUR_CALM
        assert connection.ask("HEAD", "/v2").headers[":status"] == "200"


def test_a_window_that_is_opened_slowly(nereid: Server) -> None:
    with http2.Connection(nereid.http, initial={h2.INITIAL_WINDOW_SIZE: 7}) as connection:
        stream = connection.begin("GET", "/v2/models/id_fp32/config")
        call = connection.calls.setdefault(stream, h2.Call())
        while not call.ended:
            before = len(call.data)
            connection.read()
            if len(call.data) > before:
                connection.send(h2.frame(h2.WINDOW_UPDATE, 0, stream, struct.pack(">I", len(call.data) - before)))
        assert json.loads(call.data)["name"] == "id_fp32"
        assert max(len(each.payload) for each in connection.frames if each.kind == h2.DATA) == 7


@pytest.mark.parametrize("sized", [True, False])
def test_a_body_longer_than_its_window(nereid: Server, sized: bool) -> None:
    """Sent as far as the server opens the window."""
    count = 1_000_000
    tensor = struct.pack(f"<{count}f", *range(count))
    text = SHORT.replace(b"[3]", f"[{count}]".encode()).replace(b": 12}", f": {len(tensor)}}}".encode())
    body = text + tensor
    headers = {"inference-header-content-length": str(len(text))} | ({"content-length": str(len(body))} if sized else {})
    with http2.Connection(nereid.http) as connection:
        connection.send(http2.head(1, http2.fields("POST", INFER, headers)))
        at, window = 0, 65535
        while at < len(body):
            size = min(16384, window, len(body) - at)
            if not size:
                got = connection.read()
                if got.kind == h2.WINDOW_UPDATE and got.stream == 1:
                    window += struct.unpack(">I", got.payload)[0]
                elif got.kind == h2.SETTINGS and not got.flags & h2.ACK:
                    window += dict(struct.iter_unpack(">HI", got.payload))[h2.INITIAL_WINDOW_SIZE] - 65535
                continue
            at, window = at + size, window - size
            connection.send(h2.frame(h2.DATA, h2.END_STREAM if at == len(body) else 0, 1, body[at - size : at]))
        assert connection.finish(1).data.endswith(tensor)


def test_a_body_that_does_not_come(reciter: Server) -> None:
    with http2.Connection(reciter.http) as connection:
        connection.send(http2.head(1, http2.fields("POST", INFER, {"content-length": "100"})), h2.frame(h2.DATA, 0, 1, b"{"))
        assert connection.finish(1).reset == 8  # CANCEL


@pytest.mark.parametrize("sized", [True, False])
def test_a_body_over_the_limit(identity_repository: Path, sized: bool) -> None:
    """It is answered before all of it came, and its sender told to stop; the connection goes on."""
    with Nereid(identity_repository, {"http-max-input-size": "100000"}) as server, http2.Connection(server.http) as connection:
        connection.settle()
        connection.send(http2.head(1, http2.fields("POST", INFER, {"content-length": "200000"} if sized else {})))
        connection.send(*(h2.frame(h2.DATA, 0, 1, b" " * 16384) for _ in range(10)))
        call = connection.finish(1)
        while call.reset is None:
            connection.read()
        assert (call.headers[":status"], call.reset) == ("400", 0)
        assert b"exceeds the maximum allowed" in call.data
        connection._next = 3
        assert connection.ask("POST", INFER, JSON).headers[":status"] == "200"


def test_a_body_that_is_longer_than_it_said(nereid: Server) -> None:
    with http2.Connection(nereid.http) as connection:
        connection.send(http2.head(1, http2.fields("POST", INFER, {"content-length": "10"})), h2.frame(h2.DATA, 0, 1, JSON))
        assert connection.finish(1).reset == 1  # PROTOCOL_ERROR
        connection._next = 3
        assert connection.ask("POST", INFER, JSON).headers[":status"] == "200"


def test_keys_and_pages(identity_repository: Path, tmp_path: Path) -> None:
    """Who may not ask is told so by the same gate, before the body is wanted."""
    keys = tmp_path / "keys"
    keys.write_text("key-of-alice all\n")
    options: dict[str, str | list[str]] = {"api-keys": str(keys), "http-cors-origin": "https://a.example"}
    with Nereid(identity_repository, options, wait_ready=False) as server:
        server.process.wait_until(lambda: "server is ready" in server.process.log(), 60)
        with http2.Connection(server.http) as connection:
            refused = connection.ask("POST", INFER, JSON, {"origin": "https://a.example"})
            assert (refused.headers[":status"], refused.headers["www-authenticate"]) == ("401", "Bearer")
            assert refused.headers["access-control-allow-origin"] == "https://a.example"
            assert connection.ask("POST", INFER, JSON, {"x-api-key": "key-of-alice"}).headers[":status"] == "200"
            asked = connection.ask("OPTIONS", INFER, None, {"origin": "https://a.example", "access-control-request-method": "POST"})
            assert (asked.headers[":status"], asked.headers["access-control-max-age"]) == ("200", "7200")


def test_it_is_counted(nereid: Server) -> None:
    def served() -> float:
        return metrics.scrape(nereid.metrics)["nereid_requests_total"].value(protocol="http", route="ready", code="200")

    with http2.Connection(nereid.http) as connection:
        before = served()
        for _ in range(5):
            connection.ask("GET", "/v2/health/ready")
        assert served() >= before + 5


@pytest.mark.parametrize("seconds", [1, 4], ids=["before a request", "after one"])
def test_an_idle_connection_is_told_to_go(identity_repository: Path, seconds: int) -> None:
    with Nereid(identity_repository, {"http-idle-timeout-secs": str(seconds)}) as server, http2.Connection(server.http) as connection:
        if seconds > 1:
            connection.ask("GET", "/v2")
        goodbyes = [each for each in connection.finish_by_connection() if each.kind == h2.GOAWAY]
        assert [int.from_bytes(each.payload[4:8], "big") for each in goodbyes] == [0, 0]


def test_a_head_that_does_not_end(identity_repository: Path) -> None:
    with Nereid(identity_repository, {"http-header-timeout-secs": "1"}) as server, http2.Connection(server.http) as connection:
        block = h2.header_block(http2.fields("GET", "/v2"))
        connection.send(h2.frame(h2.HEADERS, h2.END_STREAM, 1, block))
        connection.finish_by_connection()


def test_who_says_nothing(identity_repository: Path) -> None:
    with Nereid(identity_repository, {"http-header-timeout-secs": "1"}) as server, socket.create_connection((HOST, server.http_port)) as connection:
        connection.sendall(h2.PREFACE[:10])
        connection.settimeout(60)
        assert connection.recv(1) == b""
