"""Clients that make a server hold what they do not take: all of it is within one budget, and others do not feel it."""

import contextlib
import json
import os
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from crowd import Crowd
from harness import h2frames as h2
from harness import http2, rawgrpc, rawhttp, recite
from harness.held import Bodies
from harness.metrics import scrape
from harness.processors import on
from harness.repository import Repository
from harness.servers import Nereid, Server
from siege import ADDRESS_SANITIZED, FULL, OURS, THEIRS, THREAD_SANITIZED, Allowed, Siege, Step, besiege, memory_bytes, nothing
from tritonclient.grpc import service_pb2 as pb

BUDGET = 64 << 20
OVER = 1.2  # what a server takes besides may be so much more
SERVICE = f"/{rawgrpc.SERVICE}/"
CROWD = 64 if FULL else 16  # connections that send without end
PARAMETERS = 2500  # of a model whose configuration is long
# The address sanitizer puts something around each piece of memory, and keeps what was freed for a while; the thread sanitizer more so.
# Were it to look for free pages at each piece that is freed it would stop the loops for tens of milliseconds.
SPARE = (512 << 20) if THREAD_SANITIZED else (24 << 20) if ADDRESS_SANITIZED else 0
# What others get is as late as three times. The address sanitizer keeps some of what was freed, in the long run as in the short; so do the
# caches of the threads that met the first attack: the server itself holds 2 MiB.
ALLOWED = Allowed(3.0, (8 << 20) if ADDRESS_SANITIZED else (2 << 20))
ASAN = "quarantine_size_mb=4:thread_local_quarantine_size_kb=64:allocator_release_to_os_interval_ms=5000:malloc_context_size=3"


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("budget") / "models")
    repository.identity("id_fp32")
    recite.model(repository, "recite", ("text_input", "BYTES", (1,)))
    repository.identity("decoupled", extra="model_transaction_policy { decoupled: true }")
    repository.identity("wordy", extra="".join(f'parameters {{ key: "p{i}" value {{ string_value: "{i:040}" }} }}\n' for i in range(PARAMETERS)))
    repository.identity("slow", datatype="INT64", extra='parameters { key: "execute_delay_ms" value { string_value: "300" } }')
    repository.identity("late", extra='parameters { key: "creation_delay_sec" value { string_value: "1" } }')
    options = {"log-info": "false", "memory-budget": str(BUDGET), "model-control-mode": "explicit"}
    options["load-model"] = ["id_fp32", "decoupled", "recite", "wordy", "slow"]  # type: ignore[assignment]
    sanitizer = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), ASAN]))
    with contextlib.ExitStack() as stack:
        with on(OURS):
            server = stack.enter_context(Nereid(repository.path, options, env={"ASAN_OPTIONS": sanitizer}))
        stack.enter_context(on(THEIRS))
        yield server


@pytest.fixture
def siege(besieged: Server, record_property: Callable[[str, object], None]) -> Iterator[Siege]:
    with besiege(besieged, record_property, short=True, allowed=ALLOWED) as it:
        yield it


class Held:
    """What a siege's server holds, and the most it may."""

    def __init__(self, siege: Siege, note: Callable[[str, object], None]):
        self.siege, self.note = siege, note
        self.before, self.most = memory_bytes(siege.server.pid), 0

    def look(self) -> None:
        self.most = max(self.most, memory_bytes(self.siege.server.pid) - self.before)

    def check(self) -> None:
        self.look()
        self.note("held_kib", self.most >> 10)
        assert self.most <= BUDGET * OVER + SPARE, f"{self.most >> 20} MiB held, of a budget of {BUDGET >> 20}"


def withstand(siege: Siege, record: Callable[[str, object], None], attack: Callable[[], contextlib.AbstractContextManager[Step]]) -> None:
    held = Held(siege, record)
    siege.honest_meanwhile(attack, look=held.look)
    held.check()


def connect(stack: contextlib.ExitStack, address: str, count: int) -> list[h2.Connection]:
    """Connections whose client opens no window for answers."""
    return [stack.enter_context(h2.Connection(address, initial={h2.INITIAL_WINDOW_SIZE: 0})) for _ in range(count)]


def block(method: str) -> bytes:
    return h2.header_block(h2.call_headers(SERVICE + method))


def pour(connections: list[h2.Connection], texts: list[bytes]) -> None:
    """Each sends the texts, one by one and by turns; one that the server has ended sends no more."""
    gone: set[h2.Connection] = set()
    for text in texts:
        for each in connections:
            if each in gone:
                continue
            try:
                each.send(text)
            except ConnectionError:
                gone.add(each)


@pytest.mark.parametrize("model", ["decoupled", "id_fp32"])
def test_streams_without_a_window(siege: Siege, record_property: Callable[[str, object], None], model: str) -> None:
    """Answers of sixty bytes to streams that nobody reads, many on each of many calls."""
    calls, connections, requests = 50, 8, 200 if FULL else 100
    message = h2.message(rawgrpc.infer_request(model, [("INPUT0", "FP32", [1], bytes(4))]).SerializeToString())
    streams = range(1, 1 + 2 * calls, 2)
    opened = b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("ModelStreamInfer")) for stream in streams)
    round_ = b"".join(h2.frame(h2.DATA, 0, stream, message * 10) for stream in streams)

    @contextlib.contextmanager
    def unread() -> Iterator[Step]:
        with contextlib.ExitStack() as stack:
            pour(connect(stack, siege.server.grpc, connections), [opened] + [round_] * (requests // 10))
            yield nothing

    withstand(siege, record_property, unread)


def test_streams_of_many_responses_without_a_window(siege: Siege, record_property: Callable[[str, object], None]) -> None:
    """Each request is answered thousands of times, before the first answer can be written."""
    request = rawgrpc.infer_request("recite", [("text_input", "BYTES", [1], b"\x01\0\0\0t")])
    request.parameters["count"].int64_param = 20000 if FULL else 2000
    streams = range(1, 21, 2)
    text = b"".join(
        h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("ModelStreamInfer")) + h2.frame(h2.DATA, 0, stream, h2.message(request.SerializeToString()))
        for stream in streams
    )

    @contextlib.contextmanager
    def unread() -> Iterator[Step]:
        with contextlib.ExitStack() as stack:
            pour(connect(stack, siege.server.grpc, 20), [text])
            yield nothing

    withstand(siege, record_property, unread)


@pytest.mark.parametrize("length", [1, 20000])
def test_events_that_nobody_reads(siege: Siege, record_property: Callable[[str, object], None], length: int) -> None:
    """Short ones and long ones, many requests on each of many connections."""
    body = json.dumps({"text_input": "t" * length, "count": 20000 if FULL else 2000}).encode()
    text = (rawhttp.head("POST", "/v2/models/recite/generate_stream", body=body) + body) * 10
    withstand(siege, record_property, lambda: unread_http(siege.server.http, 20, text))


def calls_for_long_answers(method: str, count: int) -> bytes:
    body = h2.message(pb.ModelConfigRequest(name="wordy").SerializeToString())
    return b"".join(
        h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block(method)) + h2.frame(h2.DATA, h2.END_STREAM, stream, body)
        for stream in range(1, 2 * count, 2)
    )


@pytest.mark.parametrize("method", ["ModelConfig", "ModelStatistics", "ModelMetadata"])
def test_answers_about_models_that_nobody_reads_over_grpc(siege: Siege, record_property: Callable[[str, object], None], method: str) -> None:
    text = calls_for_long_answers(method, 1000)

    @contextlib.contextmanager
    def unread() -> Iterator[Step]:
        with contextlib.ExitStack() as stack:
            pour(connect(stack, siege.server.grpc, 10), [text])
            yield nothing

    withstand(siege, record_property, unread)


@contextlib.contextmanager
def unread_http(address: str, count: int, text: bytes) -> Iterator[Step]:
    """So many connections send a text as far as the server takes it, and read nothing."""
    host, port = address.rsplit(":", 1)
    with contextlib.ExitStack() as stack:
        left = {rawhttp.Connection(host, int(port)): text for _ in range(count)}
        for each in left:
            stack.callback(each.reset)
            each.socket.setblocking(False)

        def step() -> None:
            for each, rest in list(left.items()):
                try:
                    left[each] = rest[each.socket.send(rest) :]
                except BlockingIOError:
                    continue
                except ConnectionError:
                    del left[each]
                    continue
                if not left[each]:
                    del left[each]

        step()
        yield step


@pytest.mark.parametrize("path", ["/v2/models/wordy/config", "/v2/models/wordy/stats", "/v2/models/stats", "/nereid/uPlot.js", "/nereid/live"])
def test_answers_about_models_that_nobody_reads_over_http(siege: Siege, record_property: Callable[[str, object], None], path: str) -> None:
    text = rawhttp.head("GET", path) * 64
    withstand(siege, record_property, lambda: unread_http(siege.server.http, 60, text))


def test_index_that_nobody_reads(siege: Siege, record_property: Callable[[str, object], None]) -> None:
    text = (rawhttp.head("POST", "/v2/repository/index", body=b"{}") + b"{}") * 64
    withstand(siege, record_property, lambda: unread_http(siege.server.http, 60, text))


def test_many_short_inputs(siege: Siege, record_property: Callable[[str, object], None]) -> None:
    """Of JSON, for a model that is slow: each is too short for a buffer of its own."""
    values = 2000
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "INT64", "shape": [values], "data": [1] * values}]}, separators=(",", ":")).encode()
    text = (rawhttp.head("POST", "/v2/models/slow/infer", body=body) + body) * 64
    withstand(siege, record_property, lambda: unread_http(siege.server.http, 120, text))


def test_requests_for_a_slow_model_over_grpc(siege: Siege, record_property: Callable[[str, object], None]) -> None:
    """Short ones, many on each of many calls."""
    message = h2.message(rawgrpc.infer_request("slow", [("INPUT0", "INT64", [1], bytes(8))]).SerializeToString())
    streams = range(1, 401, 2)
    opened = b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("ModelStreamInfer")) for stream in streams)
    requests = b"".join(h2.frame(h2.DATA, 0, stream, message * 40) for stream in streams)

    @contextlib.contextmanager
    def waiting() -> Iterator[Step]:
        with contextlib.ExitStack() as stack:
            pour(connect(stack, siege.server.grpc, 8), [opened, requests])
            yield nothing

    withstand(siege, record_property, waiting)


def test_loads_that_wait(siege: Siege, record_property: Callable[[str, object], None]) -> None:
    """Each brings a file, of a size that arrives in one piece."""
    load = pb.RepositoryModelLoadRequest(model_name="late")
    load.parameters["config"].string_param = '{"backend":"identity"}' + " " * (120 << 10)
    body = h2.message(load.SerializeToString())

    def call(stream: int) -> bytes:
        frames = [h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("RepositoryModelLoad"))]
        for at in range(0, len(body), 1 << 17):
            last = at + (1 << 17) >= len(body)
            frames.append(h2.frame(h2.DATA, h2.END_STREAM if last else 0, stream, body[at : at + (1 << 17)]))
        return b"".join(frames)

    @contextlib.contextmanager
    def waiting() -> Iterator[Step]:
        with contextlib.ExitStack() as stack:
            pour(connect(stack, siege.server.grpc, 20), [call(stream) for stream in range(1, 81, 2)])
            yield nothing

    withstand(siege, record_property, waiting)


def test_calls_without_a_message(siege: Siege, record_property: Callable[[str, object], None]) -> None:
    """As many as connections take, on many of them."""
    opened = b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("ModelInfer")) for stream in range(1, 2049, 2))

    @contextlib.contextmanager
    def waiting() -> Iterator[Step]:
        with contextlib.ExitStack() as stack:
            pour(connect(stack, siege.server.grpc, 150), [opened])
            yield nothing

    withstand(siege, record_property, waiting)


def test_short_questions_are_answered_where_the_budget_is_spent(siege: Siege) -> None:
    """Who asks for little is served whatever others hold: that is each connection's allowance."""
    message = h2.message(rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], bytes(4))]).SerializeToString())
    with contextlib.ExitStack() as stack:
        greedy = connect(stack, siege.server.grpc, 8)
        streams = range(1, 201, 2)
        opened = b"".join(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("ModelStreamInfer")) for stream in streams)
        pour(greedy, [opened] + [b"".join(h2.frame(h2.DATA, 0, stream, message * 10) for stream in streams)] * 20)
        with rawhttp.Connection("127.0.0.1", siege.server.http_port) as client:
            for path in ("/v2/health/ready", "/v2/models/id_fp32", "/v2/models/id_fp32/config", "/v2/models/id_fp32/stats", "/v2"):
                assert client.ask("GET", path).status == 200
        with rawgrpc.Channel(siege.server.grpc) as channel:
            assert channel.call("ModelInfer", rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], struct.pack("<f", 7))])).code == "OK"
            assert channel.call("ModelConfig", pb.ModelConfigRequest(name="id_fp32")).code == "OK"


def used(server: Server) -> int:
    return int(scrape(server.metrics)["nereid_budget_in_use_bytes"].value())


@contextlib.contextmanager
def spent(server: Server) -> Iterator[None]:
    """Others hold the whole budget, but for less than the allowance of a connection: bodies that do not go on. What earlier requests hold may
    go meanwhile: then its room is taken, too."""
    smallest = 1 << 14
    until = time.monotonic() + 60
    with Bodies(server.http, "id_fp32") as bodies:
        while (left := BUDGET - used(server)) > smallest + 1024:
            assert time.monotonic() < until, f"{left} bytes are left of the budget"
            for size in [1 << power for power in range(20, 13, -1)]:
                while bodies.hold(size):
                    pass
        yield


def test_long_answers_about_the_server_where_the_budget_is_spent(siege: Siege) -> None:
    """Whoever looks after it is told everything, over both protocols, however long it is."""
    server = siege.server
    with spent(server):
        with rawgrpc.Channel(server.grpc) as channel:
            tensor = ("INPUT0", "FP32", [1 << 14], bytes(1 << 16))
            assert channel.call("ModelInfer", rawgrpc.infer_request("id_fp32", [tensor])).code == "UNAVAILABLE"
            for method, request in {"ModelConfig": pb.ModelConfigRequest(name="wordy"), "ModelStatistics": pb.ModelStatisticsRequest()}.items():
                for _ in range(20):
                    assert channel.call(method, request).code == "OK", method
            assert len(channel.call("ModelConfig", pb.ModelConfigRequest(name="wordy")).body) > PARAMETERS * 40
            assert channel.call("RepositoryIndex", pb.RepositoryIndexRequest()).code == "OK"
        for _ in range(20):
            answer = rawhttp.get(server.http, "/v2/models/wordy/config")
            assert answer.status == 200 and len(answer.json()["parameters"]) == PARAMETERS
        assert rawhttp.get(server.metrics, "/metrics").status == 200


def test_who_does_not_read_gets_no_more_than_the_spare_room(siege: Siege, record_property: Callable[[str, object], None]) -> None:
    """Where the budget is spent what is told besides stays within a sixteenth of it, and an answer, whoever asks."""
    server = siege.server
    body = h2.message(pb.ModelConfigRequest(name="wordy").SerializeToString())
    call = b"".join(
        h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("ModelConfig")) + h2.frame(h2.DATA, h2.END_STREAM, stream, body)
        for stream in range(1, 101, 2)
    )
    with spent(server), contextlib.ExitStack() as stack:
        held = Held(siege, record_property)
        connections = connect(stack, server.grpc, 100)
        pour(connections, [call])
        for each in connections:  # all that was asked was looked at, or waits for its turn
            each.send(h2.frame(h2.PING, 0, 0, b"question"))
            while (got := each.read()).kind != h2.PING or not got.flags & h2.ACK:
                pass
        held.look()
        # The last two: calls that wait, within the allowance, and the sessions of the connections.
        assert used(server) <= BUDGET + BUDGET // 16 + 100 * (32 << 10) + 100 * (32 << 10)
        with rawhttp.Connection("127.0.0.1", server.http_port) as client:
            assert client.ask("GET", "/v2/models/id_fp32/config").status == 200
    assert held.most <= BUDGET // 16 + (8 << 20) + SPARE, held.most >> 10


def test_short_questions_that_come_in_pieces_where_the_budget_is_spent(siege: Siege) -> None:
    """A byte at a time, as a slow network brings them."""
    server = siege.server
    inputs = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[7]}]}'
    infer = h2.message(rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1], bytes(4))]).SerializeToString())
    with spent(server):
        for path, body in (("/v2/repository/index", b"{}"), ("/v2/models/id_fp32/infer", inputs)):
            with rawhttp.Connection("127.0.0.1", server.http_port) as client:
                client.send(rawhttp.head("POST", path, body=body), *(body[at : at + 1] for at in range(len(body))))
                assert client.answer().status == 200, path
        for method, message in (("ModelInfer", infer), ("RepositoryIndex", h2.message(pb.RepositoryIndexRequest().SerializeToString()))):
            with h2.Connection(server.grpc) as asking:
                asking.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block(method)))
                asking.send(*(h2.frame(h2.DATA, 0, 1, message[at : at + 1]) for at in range(len(message))))
                asking.send(h2.frame(h2.DATA, h2.END_STREAM, 1))
                assert asking.finish(1).trailers["grpc-status"] == "0", method


ANNOUNCED, COUNT = 3 << 20, 150  # several times the budget together


def announced_over_http(server: Server, stack: contextlib.ExitStack) -> None:
    head = {"Content-Length": str(ANNOUNCED), "Inference-Header-Content-Length": "100", "Expect": "100-continue"}
    for _ in range(COUNT):
        connection = stack.enter_context(rawhttp.Connection("127.0.0.1", server.http_port))
        connection.send(rawhttp.head("POST", "/v2/models/id_fp32/infer", head))
        assert connection.answer().status == 100
        connection.send(b"{")


def announced_over_http2(server: Server, stack: contextlib.ExitStack) -> None:
    connection = stack.enter_context(http2.Connection(server.http))
    head = http2.fields("POST", "/v2/models/id_fp32/infer", {"content-length": str(ANNOUNCED)})
    streams = range(1, 1 + 2 * COUNT, 2)
    connection.send(*(http2.head(stream, head) + h2.frame(h2.DATA, 0, stream, b"{") for stream in streams))
    connection.settle()
    assert not any(call.ended for call in connection.calls.values())


def taken(connection: h2.Connection) -> None:
    """The server has seen what was sent. Who pings so often would be thrown out."""
    connection.send(h2.settings())
    while not (got := connection.read()).kind == h2.SETTINGS or not got.flags & h2.ACK:
        pass


def announced_over_grpc(server: Server, stack: contextlib.ExitStack) -> None:
    """On several connections: of a message that is alone on one more is read at once. So another byte comes of each first one."""
    connections = [stack.enter_context(http2.Connection(server.grpc)) for _ in range(COUNT // 5)]
    prefix = b"\0" + struct.pack(">I", ANNOUNCED)
    for stream in range(1, 11, 2):
        for each in connections:
            each.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("ModelInfer")), h2.frame(h2.DATA, 0, stream, prefix + b"\x0a"))
            taken(each)
            each.send(h2.frame(h2.DATA, 0, stream, b"\x07"))
            taken(each)
    assert not any(call.ended for each in connections for call in each.calls.values())


@pytest.mark.parametrize("announced", [announced_over_http, announced_over_http2, announced_over_grpc])
def test_what_is_only_announced_is_not_charged(siege: Siege, announced: Callable[[Server, contextlib.ExitStack], None]) -> None:
    """A hundred and fifty messages of 3 MiB, of each of which a byte or two came: there is room for those of others."""
    server = siege.server
    tensor = json.dumps({"name": "INPUT0", "datatype": "FP32", "shape": [1 << 18], "parameters": {"binary_data_size": 1 << 20}})
    text = f'{{"inputs":[{tensor}],"parameters":{{"binary_data_output":true}}}}'.encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}
    with contextlib.ExitStack() as stack:
        announced(server, stack)
        assert used(server) < COUNT << 16
        with rawhttp.Connection("127.0.0.1", server.http_port) as client, rawgrpc.Channel(server.grpc) as channel:
            for _ in range(5):
                assert client.ask("POST", "/v2/models/id_fp32/infer", text + bytes(1 << 20), headers).status == 200
                request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [1 << 18], bytes(1 << 20))])
                assert channel.call("ModelInfer", request).code == "OK"


def endless_message(method: str, stream: int) -> bytes:
    """The beginning of a call whose message has all the bytes that the budget has: of more nothing is taken."""
    prefix = b"\0" + struct.pack(">I", BUDGET)
    return h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block(method)) + h2.frame(h2.DATA, 0, stream, prefix + b"\x0a")


@pytest.mark.promise
@pytest.mark.parametrize("calls", [1, 64])
@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
def test_endless_messages(siege: Siege, record_property: Callable[[str, object], None], method: str, calls: int) -> None:
    """As large as the budget, announced and really sent, on one call or many of each of many connections; who is thrown out comes again."""
    streams = range(1, 2 * calls, 2)
    begun = h2.PREFACE + h2.settings() + b"".join(endless_message(method, stream) for stream in streams)
    piece = memoryview(b"".join(h2.frame(h2.DATA, 0, stream, b"\xff" * 16384) for stream in streams) * (64 // calls))
    sent = 0

    @contextlib.contextmanager
    def endless() -> Iterator[Step]:
        with Crowd(siege.server.grpc, CROWD) as crowd:
            crowd.send_all(begun)

            def step() -> None:
                nonlocal sent
                until = time.monotonic() + 0.02
                while time.monotonic() < until:
                    crowd.grow(CROWD, begun)
                    sent += crowd.stream(piece)
                    crowd.pump()

            until = time.monotonic() + 60
            step()
            while sent <= BUDGET and time.monotonic() < until:
                step()
            assert sent > BUDGET, f"{sent >> 20} MiB were sent: no more than there is room for"
            yield step

    withstand(siege, record_property, endless)


def test_pipelined_questions_are_all_answered_in_order(siege: Siege) -> None:
    """Answers that were put off to another turn come like any other, between those that were not."""
    body = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[7]}]}'
    infer = rawhttp.head("POST", "/v2/models/id_fp32/infer", body=body) + body
    with rawhttp.Connection("127.0.0.1", siege.server.http_port) as client:
        client.send((rawhttp.head("GET", "/v2/models/wordy/config") + infer) * 100)
        for _ in range(100):
            assert len(client.answer().json()["parameters"]) == PARAMETERS
            assert client.answer().json()["outputs"][0]["data"] == [7]
    config = h2.message(pb.ModelConfigRequest(name="wordy").SerializeToString())
    with h2.Connection(siege.server.grpc) as asking:
        streams = range(1, 201, 2)
        for stream in streams:
            asking.send(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, block("ModelConfig")), h2.frame(h2.DATA, h2.END_STREAM, stream, config))
        for stream in streams:
            got = asking.finish(stream)
            assert got.trailers["grpc-status"] == "0" and len(got.data) > PARAMETERS * 40
