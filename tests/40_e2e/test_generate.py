"""generate and generate_stream: what goes on while events come, and to whom. Their words are compared in tests/41_compare."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import rawhttp, recite
from harness.ensembles import Ensemble, Step
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server

STREAM = "/v2/models/recite/generate_stream"
TEXT = {"text_input": "hello"}
KEPT = 256 << 20  # bytes of events that wait for their client


@pytest.fixture(scope="module")
def reciter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("recite") / "models")
    recite.model(repository, "recite", ("text_input", "BYTES", (1,)))
    recite.model(repository, "recite_once", ("text_input", "BYTES", (1,)), decoupled=False, index=False)
    repository.identity("id_fp32")
    for name, of in (("wrapped", "recite"), ("nested", "wrapped")):
        step = Step(of, {"text_input": "text_input"}, {"text_output": "text_output"})
        repository.model(name, Ensemble(name, [step], ("text_input",), ("text_output",), "BYTES", "1", extra=recite.DECOUPLED).config())
    with Nereid(repository.path, {"http-stall-timeout-secs": "600"}) as server:  # some clients do not read, for as long as a test may take
        yield server


def connect(server: Server) -> rawhttp.Connection:
    return rawhttp.Connection(HOST, server.http_port)


def request(**members: object) -> bytes:
    body = json.dumps(TEXT | members).encode()
    return rawhttp.head("POST", STREAM, None, body) + body


def ask(connection: rawhttp.Connection, **members: object) -> None:
    connection.send(request(**members))


def events(body: bytes) -> list[dict[str, object]]:
    assert not body or body.endswith(b"\n\n")
    return [json.loads(each.removeprefix(b"data: ")) for each in body.split(b"\n\n")[:-1] if each != b":"]


def test_a_connection_goes_on_behind_a_stream(server: Server) -> None:
    with connect(server) as connection:
        for count in (3, 0, 1):
            ask(connection, IN1=1, count=count)
            got = connection.answer()
            assert (got.status, got.header("Content-Type")) == (200, "text/event-stream; charset=utf-8")
            assert [each["INDEX"] for each in events(got.body)] == list(range(count))
        assert connection.ask("GET", "/v2").status == 200


def test_requests_behind_a_stream_wait_for_its_end(reciter: Server) -> None:
    with connect(reciter) as connection:
        infer = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[2]}]}'
        ask(connection, count=100)
        connection.send(rawhttp.head("POST", "/v2/models/id_fp32/infer", None, infer) + infer)
        ask(connection, count=2)
        assert [each["INDEX"] for each in events(connection.answer().body)] == list(range(100))
        assert connection.answer().json()["outputs"][0]["data"] == [2.0]
        assert len(events(connection.answer().body)) == 2


def test_many_responses(reciter: Server) -> None:
    """In order, none lost, each in a chunk of its own."""
    with connect(reciter) as connection:
        ask(connection, count=20000, joined=True)
        found = events(connection.answer().body)
    assert [each["INDEX"] for each in found] == list(range(20000))


@pytest.mark.parametrize("model", ["recite", "wrapped", "nested"])
def test_an_error_of_the_model_is_an_event(reciter: Server, model: str) -> None:
    """Of an ensemble, too, when the model of one of its steps fails."""
    got = rawhttp.post(reciter.http, f"/v2/models/{model}/generate_stream", TEXT | {"fail_at": 0})
    assert (got.status, got.header("Content-Type")) == (503, "text/event-stream; charset=utf-8")
    (event,) = events(got.body)
    assert str(event["error"]).endswith("recited to the point of failure")


def test_streams_side_by_side(reciter: Server) -> None:
    connections = [connect(reciter) for _ in range(20)]
    for number, each in enumerate(connections):
        ask(each, count=number * 10, id=f"the {number}th")
    for number, each in enumerate(connections):
        found = events(each.answer().body)
        assert [(one["id"], one["INDEX"]) for one in found] == [(f"the {number}th", i) for i in range(number * 10)]
        each.close()


def test_long_events(reciter: Server) -> None:
    """Each longer than what answers are put together in."""
    text = "\u00e9" * 300_000
    with connect(reciter) as connection:
        ask(connection, text_input=text, count=4)
        found = events(connection.answer().body)
    assert [each["text_output"] for each in found] == [text] * 4


@pytest.mark.parametrize("headers", [{}, {"Connection": "keep-alive"}], ids=["", "kept alive"])
@pytest.mark.parametrize("path", [STREAM, "/v2/models/recite_once/generate"])
def test_clients_of_http_1_0(reciter: Server, path: str, headers: dict[str, str]) -> None:
    """They know no chunks: of a stream the end of the connection is the end."""
    body = json.dumps(TEXT | {"count": 3}).encode()
    if path != STREAM:
        body = json.dumps(TEXT).encode()
    with connect(reciter) as connection:
        connection.send(rawhttp.head("POST", path, headers, body).replace(b"HTTP/1.1", b"HTTP/1.0") + body)
        if path != STREAM:
            assert connection.answer().json()["text_output"] == "hello"
            return
        raw = b""
        while part := connection.socket.recv(1 << 16):
            raw += part
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert b"chunked" not in head and b"Connection: close" in head
    assert [each["INDEX"] for each in events(rest)] == [0, 1, 2]


def test_events_come_while_the_model_goes_on(reciter: Server, tmp_path: Path) -> None:
    """The model recites until its client is gone: it hears of that."""
    mark = tmp_path / "mark"
    with connect(reciter) as connection:
        ask(connection, mark=str(mark))
        raw = b""
        while raw.count(b"data: ") < 100:
            raw += connection.socket.recv(1 << 16)
        assert not mark.exists()
        connection.reset()
    reciter.process.wait_until(mark.exists, 60)


def test_a_client_that_closes_in_a_stream(reciter: Server, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with connect(reciter) as connection:
        ask(connection, mark=str(mark))
        connection.socket.recv(1 << 10)
    reciter.process.wait_until(mark.exists, 60)


def test_a_client_that_sends_no_more(reciter: Server) -> None:
    """It closed its side alone, and gets all events."""
    with connect(reciter) as connection:
        ask(connection, count=5000)
        connection.socket.shutdown(1)
        assert len(events(connection.answer().body)) == 5000


def test_a_client_that_does_not_read(reciter: Server, tmp_path: Path) -> None:
    """The model is cancelled; the client, when it reads on, gets what there was, then an error, and the end of the stream."""
    mark = tmp_path / "mark"
    with connect(reciter) as connection:
        ask(connection, mark=str(mark))
        reciter.process.wait_until(lambda: mark.exists() and mark.read_text() != "", 120)
        found = events(connection.answer().body)
        assert len(found) < KEPT // 1024  # an event takes more than a KiB; what the model sent besides was dropped
        assert found[-1] == {"error": "the client does not take the responses of its request"}
        assert [each["INDEX"] for each in found[:-1]] == list(range(len(found) - 1))
        assert connection.ask("GET", "/v2/health/live").status == 200


def test_requests_of_a_connection_that_is_gone(reciter: Server, tmp_path: Path) -> None:
    """Also those whose turn to be answered had not come; the first is being answered."""
    marks = [tmp_path / f"mark{i}" for i in range(3)]
    with connect(reciter) as connection:
        connection.send(b"".join(request(mark=str(each)) for each in marks))
        connection.socket.recv(1 << 10)
        connection.reset()
    reciter.process.wait_until(marks[0].exists, 60)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
@pytest.mark.parametrize("path", [STREAM, "/v2/models/recite/generate"])
def test_other_methods(reciter: Server, method: str, path: str) -> None:
    with connect(reciter) as connection:
        assert connection.ask(method, path).status == 405
