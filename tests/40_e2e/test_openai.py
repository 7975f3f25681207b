"""The interface of OpenAI, asked by its own client: completions, chats, streams, errors, cancellation. Models of the Python backend: tests/47_python."""

import contextlib
import gzip
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from harness import h2frames as h2
from harness import http2, ports, procfs, rawhttp, recite
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server

MAPPED = 'parameters {{ key: "openai" value {{ string_value: \'{}\' }} }}\n'


def mapped(**roles: Any) -> str:
    return MAPPED.format(json.dumps(roles))


def serve(repository: Repository, options: dict[str, Any] | None = None) -> Nereid:
    given = {"allow-openai": "true", "openai-port": str(ports.free_port()), "http-header-forward-pattern": "^(count|fail_at|stop|joined|mark|quiet|slow)$"}
    return Nereid(repository.path, given | (options or {}))


def port_of(server: Server) -> int:
    return int(str(server.options["openai-port"]))


def client_of(server: Server, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://{HOST}:{port_of(server)}/v1", api_key=key, max_retries=0, timeout=120)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """`recite` answers with the prompt as often as the header `count` says; `echo` once, and takes lists; `told` answers with its parameters; `plain` says nothing of OpenAI."""
    made = Repository(tmp_path_factory.mktemp("openai") / "models")
    roles = mapped(prompt="text_in", text="text_out", completion_tokens="INDEX")
    recite.model(made, "recite", ("text_in", "BYTES", (1,)), extra=roles)
    made.identity("echo", "BYTES", (1,), max_batch_size=8, extra=mapped(prompt="INPUT0", text="OUTPUT0"))
    made.identity("dialogue", "BYTES", (1,), extra=mapped(messages="INPUT0", text="OUTPUT0"))
    made.identity("whole", "BYTES", (1,), extra=mapped(request="INPUT0", text="OUTPUT0"))
    made.identity("told", "BYTES", (1,), tensors=2, extra=mapped(prompt="INPUT0", parameters="INPUT1", text="OUTPUT1"))
    made.identity("plain", "BYTES", (1,))
    return made


@pytest.fixture(scope="module")
def server(models: Repository) -> Iterator[Server]:
    """It waits for its clients as long as a test may take: some do not read."""
    with serve(models, {"http-stall-timeout-secs": "600"}) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> openai.OpenAI:
    return client_of(server)


def test_models(client: openai.OpenAI) -> None:
    assert [each.id for each in client.models.list()] == ["dialogue", "echo", "recite", "told", "whole"]
    one = client.models.retrieve("echo")
    assert (one.id, one.object, one.owned_by) == ("echo", "model", "nereid")
    assert one.created > 1_600_000_000
    for name in ("plain", "nobody"):
        with pytest.raises(openai.NotFoundError) as e:
            client.models.retrieve(name)
        assert (e.value.code, e.value.param, e.value.type) == ("model_not_found", "model", "invalid_request_error")


def test_a_completion(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="echo", prompt='once "upon"\n\x01 a täme')
    assert (answer.object, answer.model) == ("text_completion", "echo")
    assert [(each.index, each.text, each.finish_reason) for each in answer.choices] == [(0, 'once "upon"\n\x01 a täme', "stop")]
    assert answer.usage is None


def test_prompts_side_by_side(client: openai.OpenAI) -> None:
    prompts = ["one", "", "three ☃"]
    answer = client.completions.create(model="echo", prompt=prompts)
    assert [(each.index, each.text) for each in answer.choices] == list(enumerate(prompts))


def test_a_chat_is_rendered(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="echo",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Good "}, {"type": "text", "text": "day"}]},
        ],
    )
    assert (answer.object, answer.choices[0].message.role, answer.choices[0].finish_reason) == ("chat.completion", "assistant", "stop")
    assert answer.choices[0].message.content == "system: Be brief.\nuser: Good day\nassistant:"


def test_a_chat_as_json(client: openai.OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": "tell \u00e9 \"me\""}, {"role": "assistant", "content": None, "tool_calls": []}]
    answer = client.chat.completions.create(model="dialogue", messages=messages)
    assert json.loads(answer.choices[0].message.content or "") == messages
    more = {"temperature": 0.5, "tools": [{"type": "function", "function": {"name": "f"}}]}
    answer = client.chat.completions.create(model="whole", messages=messages, **more)
    assert json.loads(answer.choices[0].message.content or "") == {"model": "whole", "messages": messages} | more


def test_streams(client: openai.OpenAI) -> None:
    chunks = list(client.completions.create(model="recite", prompt="so", stream=True, extra_headers={"count": "5"}))
    assert [each.choices[0].text for each in chunks] == ["so"] * 5 + [""]
    assert [each.choices[0].finish_reason for each in chunks] == [None] * 5 + ["stop"]
    assert len({each.id for each in chunks}) == 1
    talk = list(client.chat.completions.create(model="recite", messages=[{"role": "user", "content": "x"}], stream=True, extra_headers={"count": "3"}))
    assert [each.choices[0].delta.role for each in talk] == ["assistant", None, None, None]
    assert "".join(each.choices[0].delta.content or "" for each in talk) == "user: x\nassistant:" * 3
    assert talk[0].object == "chat.completion.chunk"


def test_a_stream_of_a_model_that_answers_once(client: openai.OpenAI) -> None:
    chunks = list(client.completions.create(model="echo", prompt=["a", "b"], stream=True))
    texts = ["", ""]
    for each in chunks:
        for choice in each.choices:
            texts[choice.index] += choice.text
    assert texts == ["a", "b"]
    assert {choice.finish_reason for choice in chunks[-1].choices} == {"stop"}


def test_the_bytes_of_a_stream(server: Server) -> None:
    body = json.dumps({"model": "recite", "prompt": "x", "stream": True}).encode()
    answer = rawhttp.request(HOST, port_of(server), "POST", "/v1/completions", body, {"count": "2"})
    assert (answer.status, answer.header("Content-Type")) == (200, "text/event-stream; charset=utf-8")
    events = answer.body.split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    assert all(each.startswith(b'data: {"id":"cmpl-') for each in events[:-2])


def test_responses_are_one_text_without_a_stream(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="recite", prompt="ab", extra_headers={"count": "300"})
    assert answer.choices[0].text == "ab" * 300


def told_error(e: openai.APIStatusError) -> tuple[Any, ...]:
    return e.status_code, e.type, e.param, e.code


def test_errors_have_the_shape_that_clients_read(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="nobody") as missing:
        client.completions.create(model="nobody", prompt="x")
    assert told_error(missing.value) == (404, "invalid_request_error", "model", "model_not_found")
    with pytest.raises(openai.NotFoundError, match="does not serve completions") as not_mapped:
        client.completions.create(model="plain", prompt="x")
    assert told_error(not_mapped.value) == (404, "invalid_request_error", "model", "model_not_found")
    with pytest.raises(openai.NotFoundError, match="does not serve embeddings"):
        client.embeddings.create(model="echo", input="x")
    for call, param, message in (
        (lambda: client.completions.create(model="echo", prompt=[1, 2, 3]), "prompt", r"'prompt\[0\]': expected a string"),
        (lambda: client.completions.create(model="echo", prompt=[]), "prompt", "expected 1 to 2048 strings, found 0"),
        (lambda: client.completions.create(model="echo", prompt="x", n=2), "n", "the model does not take it"),
        (lambda: client.completions.create(model="echo", prompt="x", logprobs=1), "logprobs", "the model does not take it"),
        (lambda: client.completions.create(model="echo", prompt="x", stream="yes"), "stream", "expected a boolean"),  # type: ignore[call-overload]
        (lambda: client.completions.create(model="echo", prompt="x", stream_options={"include_usage": True}), "stream_options", "'stream' to be true"),
        (lambda: client.chat.completions.create(model="echo", messages=[]), "messages", "found an empty one"),
        (lambda: client.chat.completions.create(model="echo", messages=[{"content": "x"}]), "messages", r"messages\[0\]\.role"),  # type: ignore[list-item]
        (lambda: client.chat.completions.create(model="echo", messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]), "messages", "of type 'text'"),
    ):
        with pytest.raises(openai.BadRequestError, match=message) as e:
            call()
        assert told_error(e.value) == (400, "invalid_request_error", param, None)
    assert client.completions.create(model="echo", prompt="x", n=1, temperature=0.5, seed=7, user="me").choices[0].text == "x"


def test_errors_of_the_model(client: openai.OpenAI) -> None:
    """Before the first event as everywhere; after it, as the last."""
    for stream in (False, True):
        with pytest.raises(openai.InternalServerError, match="point of failure") as e:
            client.completions.create(model="recite", prompt="x", stream=stream, extra_headers={"count": "3", "fail_at": "0"})
        assert told_error(e.value) == (503, "server_error", None, None)
    with pytest.raises(openai.InternalServerError, match="point of failure"):
        client.completions.create(model="recite", prompt="x", extra_headers={"count": "9", "fail_at": "5"})
    chunks = client.completions.create(model="recite", prompt="x", stream=True, extra_headers={"count": "9", "fail_at": "5"})
    found = []
    with pytest.raises(openai.APIError, match="point of failure"):
        for each in chunks:
            found.append(each.choices[0].text)
    assert found == ["x"] * 5


def test_a_client_that_goes_away_cancels(client: openai.OpenAI, server: Server, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    stream = client.completions.create(model="recite", prompt="x", stream=True, extra_headers={"mark": str(mark), "slow": "yes"})
    assert [next(stream).choices[0].text for _ in range(100)] == ["x"] * 100
    assert not mark.exists()
    stream.close()
    server.process.wait_until(mark.exists, 60)


def test_a_client_that_goes_away_before_its_answer(server: Server, tmp_path: Path) -> None:
    """Nothing was streamed to it."""
    mark = tmp_path / "mark"
    body = json.dumps({"model": "recite", "prompt": "x"}).encode()
    with rawhttp.Connection(HOST, port_of(server)) as connection:
        connection.send(rawhttp.head("POST", "/v1/completions", {"mark": str(mark), "quiet": "yes"}, body) + body)
        server.process.wait_until((tmp_path / "mark.begun").exists, 60)  # one that has not begun is cancelled without its model
        assert in_flight(server) > 0
        connection.reset()
    server.process.wait_until(mark.exists, 60)


def counted(server: Server, metric: str) -> float:
    lines = rawhttp.get(server.metrics, "/metrics").body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(metric) and 'protocol="openai"' in line)


def in_flight(server: Server) -> float:
    """Requests of this port that are not answered yet."""
    return counted(server, "nereid_requests_in_flight")


def answered(server: Server) -> float:
    """Requests of this port that have had their answer, or were given up."""
    return counted(server, "nereid_requests_total")


def test_many_at_once(server: Server) -> None:
    def ask(number: int) -> str:
        with client_of(server) as client:
            if number % 2:
                chunks = client.completions.create(model="recite", prompt=f"<{number}>", stream=True, extra_headers={"count": "20"})
                return "".join(each.choices[0].text for each in chunks)
            return client.completions.create(model="recite", prompt=f"<{number}>", extra_headers={"count": "20"}).choices[0].text

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(48))) == [f"<{number}>" * 20 for number in range(48)]


def post(server: Server, path: str, body: bytes, headers: dict[str, str] | None = None) -> rawhttp.Answer:
    return rawhttp.request(HOST, port_of(server), "POST", path, body, headers)


WRONG = {
    "nothing": b"",
    "no json": b"prompt=x",
    "cut": b'{"model":"echo","prompt":"x"',
    "a list": b'[{"model":"echo"}]',
    "a number": b"7",
    "no model": b'{"prompt":"x"}',
    "model of a wrong type": b'{"model":["echo"],"prompt":"x"}',
    "model with a zero byte": b'{"model":"echo\\u0000","prompt":"x"}',
    "an object for a prompt": b'{"model":"echo","prompt":{"b64":"eA=="}}',
    "an object among prompts": b'{"model":"echo","prompt":["x",{"b64":"eA=="}]}',
    "lists in lists": b'{"model":"echo","prompt":[["x"]]}',
    "too many": b'{"model":"echo","prompt":[' + b'"",' * 2048 + b'""]}',
    "more than a batch": b'{"model":"echo","prompt":[' + b'"",' * 8 + b'""]}',
    "deep": b'{"model":"echo","prompt":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "open": b'{"model":"echo","prompt":' + b"[" * 200_000,
    "a deep message": b'{"model":"echo","messages":[' + b'{"role":' * 5000 + b'"x"' + b"}" * 5000 + b"]}",
    "no prompt": b'{"model":"echo"}',
    "null": b'{"model":"echo","prompt":null}',
    "options of a wrong type": b'{"model":"echo","prompt":"x","stream":true,"stream_options":7}',
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_bodies(server: Server, name: str) -> None:
    path = "/v1/chat/completions" if b"messages" in WRONG[name] else "/v1/completions"
    answer = post(server, path, WRONG[name])
    assert answer.status == 400, answer.body
    error = answer.json()["error"]
    assert list(error) == ["message", "type", "param", "code"] and error["type"] == "invalid_request_error" and error["message"]


def test_numbers_that_are_none_and_bytes_that_are_no_text(server: Server) -> None:
    for body in (b'{"model":"whole","prompt":"x","temperature":NaN}', b'{"model":"whole","prompt":"\xff"}', b'{"model":"echo","prompt":"\\ud800"}'):
        answer = post(server, "/v1/completions", body)
        assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error"), body
    long = "\u00e9" * 300_000  # more than what is written at a time
    answer = post(server, "/v1/completions", json.dumps({"model": "echo", "prompt": long}).encode())
    assert answer.json()["choices"][0]["text"] == long


def parameters_of(server: Server, members: bytes) -> rawhttp.Answer:
    return post(server, "/v1/completions", b'{"model":"told","prompt":"x",' + members + b"}")


def test_a_member_that_comes_twice_counts_once(server: Server) -> None:
    answer = parameters_of(server, b'"top_p":0.5,"max_tokens":1,"top_p":1,"max_completion_tokens":2,"max_tokens":3,"max_completion_tokens":4,"seed":null,"seed":5')
    text = answer.json()["choices"][0]["text"]
    assert json.loads(text, object_pairs_hook=list) == [("top_p", 0.5), ("max_tokens", 2), ("seed", 5)]
    assert json.loads(parameters_of(server, b'"max_tokens":7').json()["choices"][0]["text"]) == {"max_tokens": 7}


def test_parameters_are_limited(server: Server) -> None:
    members = [b'"p%d":1' % i for i in range(1025)]
    assert parameters_of(server, b",".join(members[:-1])).status == 200
    answer = parameters_of(server, b",".join(members))
    assert (answer.status, answer.json()["error"]["message"]) == (400, "expected at most 1024 parameters besides the texts")


def test_many_members_of_one_name_cost_what_others_cost(server: Server) -> None:
    """As many members of the same length that say nothing are the measure: both are read alike, and none is looked up anew."""

    def cost(name: bytes) -> int:
        members = (b'"%b":1,' % name) * 40_000 + b'"max_completion_tokens":1'
        before = procfs.cpu_ns(server.pid)
        assert parameters_of(server, members).status == 200
        return procfs.cpu_ns(server.pid) - before

    cost(b"max-tokens")
    plain, named = (min(cost(name) for _ in range(3)) for name in (b"max-tokens", b"max_tokens"))
    assert named < 30 * plain, f"{named / 1e6:.1f} ms against {plain / 1e6:.1f} ms"


def test_what_is_not_there(server: Server) -> None:
    for method, path, status in (
        ("GET", "/", 404),
        ("GET", "/v2", 404),
        ("POST", "/v1/images/generations", 404),
        ("GET", "/v1/models/", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
        ("DELETE", "/v1/models/echo", 405),
    ):
        answer = rawhttp.request(HOST, port_of(server), method, path)
        assert (answer.status, answer.json()["error"]["type"]) == (status, "invalid_request_error"), path


def test_health_and_metrics(server: Server, client: openai.OpenAI) -> None:
    assert rawhttp.request(HOST, port_of(server), "GET", "/health/ready").status == 200
    client.completions.create(model="echo", prompt="counted")
    page = rawhttp.request(HOST, port_of(server), "GET", "/metrics").body.decode()
    assert [line for line in page.splitlines() if 'protocol="openai"' in line and 'route="completions"' in line and 'code="200"' in line]


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1/models", 200), ("/v1/models/echo", 200), ("/v1/models/nobody", 404), ("/health/ready", 200), ("/metrics", 200), ("/v1/completions", 405)],
)
def test_head_as_get(server: Server, path: str, status: int) -> None:
    head, get = (rawhttp.request(HOST, port_of(server), method, path) for method in ("HEAD", "GET"))
    assert (head.status, head.body, get.status) == (status, b"", status)
    assert head.header("Content-Type") == get.header("Content-Type")


def test_compressed_bodies(server: Server) -> None:
    body = gzip.compress(json.dumps({"model": "echo", "prompt": "packed" * 1000}).encode())
    answer = post(server, "/v1/completions", body, {"Content-Encoding": "gzip"})
    assert answer.json()["choices"][0]["text"] == "packed" * 1000
    for coding, sent in (("gzip", body[:-9]), ("br", body), ("gzip", b"{}")):
        assert post(server, "/v1/completions", sent, {"Content-Encoding": coding}).status == 400, coding


def test_bodies_are_limited(models: Repository) -> None:
    """Announced, in chunks without end, packed, and where text grows on the way to the model."""
    with serve(models, {"http-max-input-size": "100000"}) as server:
        body = json.dumps({"model": "echo", "prompt": "x" * 100_000}).encode()
        for path in ("/v1/completions", "/v1/chat/completions", "/v1/embeddings"):
            assert "--http-max-input-size" in post(server, path, body).json()["error"]["message"]
        assert post(server, "/v1/completions", gzip.compress(body), {"Content-Encoding": "gzip"}).status == 400
        with rawhttp.Connection(HOST, port_of(server)) as connection:
            connection.send(rawhttp.head("POST", "/v1/completions", {"Transfer-Encoding": "chunked"}))
            piece = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
            with contextlib.suppress(ConnectionError):  # it may be gone before all is sent
                for _ in range(40):
                    connection.send(piece)
            answer = connection.answer()
            assert (answer.status, answer.header("Connection")) == (400, "close")
        grows = json.dumps({"model": "whole", "prompt": "x", "stop": [1e20] * 12_000}).replace("1e+20", "1e20").encode()
        assert len(grows) < 100_000
        answer = post(server, "/v1/completions", grows)
        assert (answer.status, answer.json()["error"]["param"]) == (400, "request")


def test_keys_and_restrictions(models: Repository, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("key-of-alice all\nkey-of-bob inference\n- health\n")
    with serve(models, {"api-keys": str(file), "http-cors-origin": "https://app.example"}) as server:
        assert client_of(server, "key-of-alice").models.list().data
        assert client_of(server, "key-of-bob").completions.create(model="echo", prompt="x").choices[0].text == "x"
        with pytest.raises(openai.AuthenticationError) as unknown:
            client_of(server, "key-of-mallory").completions.create(model="echo", prompt="x")
        assert told_error(unknown.value) == (401, "authentication_error", None, "invalid_api_key")
        with pytest.raises(openai.PermissionDeniedError) as others:
            client_of(server, "key-of-bob").models.list()
        assert told_error(others.value) == (403, "permission_error", None, None)
        for path in ("/v1/models", "/v1/models/echo", "/metrics", "/nothing"):
            assert rawhttp.request(HOST, port_of(server), "GET", path).status == 401, path
        assert rawhttp.request(HOST, port_of(server), "GET", "/health/ready").status == 200
        asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        answer = rawhttp.request(HOST, port_of(server), "OPTIONS", "/v1/chat/completions", None, asked)
        assert (answer.status, answer.header("Access-Control-Allow-Origin")) == (200, "https://app.example")
    with serve(models, {"http-restricted-api": "inference:secret=sesame"}) as server:
        assert client_of(server).models.list().data
        with pytest.raises(openai.PermissionDeniedError):
            client_of(server).completions.create(model="echo", prompt="x")
        assert client_of(server).completions.create(model="echo", prompt="x", extra_headers={"secret": "sesame"}).choices[0].text == "x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json", "parameter 'openai': expected a JSON object: "),
        ("[]", "parameter 'openai': expected a JSON object, found array"),
        ('{"prompt": "NO", "text": "OUTPUT0"}', "'prompt': expected the name of an input, found 'NO', which the model does not have"),
        ('{"prompt": "INPUT0"}', "expected 'text' and one of 'prompt', 'messages' and 'request', or 'embedding' and one of"),
        ('{"input": "INPUT0", "embedding": "OUTPUT0"}', "'embedding': expected one of TYPE_FP32, found 'OUTPUT0' of TYPE_STRING"),
        ('{"promt": "INPUT0"}', "found 'promt'"),
        ('{"prompt": "INPUT0", "text": "OUTPUT0", "defaults": {"max_tokens": 1}}', "'defaults': expected members of 'inputs', found 'max_tokens'"),
    ],
)
def test_mappings_that_are_wrong(tmp_path: Path, text: str, words: str) -> None:
    made = Repository(tmp_path / "models")
    made.identity("wrong", "BYTES", (1,), extra=MAPPED.format(text))
    with serve(made, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        index = rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/index").json()
        assert words in index[0]["reason"], index


def test_off_unless_asked_for(models: Repository) -> None:
    with Nereid(models.path, {"openai-port": str(ports.free_port())}) as server, pytest.raises(ConnectionError):
        rawhttp.request(HOST, port_of(server), "GET", "/v1/models")


@pytest.mark.threadless
def test_a_client_that_does_not_read(server: Server, tmp_path: Path) -> None:
    """The model is cancelled; the client, when it reads on, gets what there was, then an error, and the end of the stream."""
    mark = tmp_path / "mark"
    body = json.dumps({"model": "recite", "prompt": "x" * 20_000, "stream": True}).encode()
    with rawhttp.Connection(HOST, port_of(server)) as connection:
        connection.send(rawhttp.head("POST", "/v1/completions", {"mark": str(mark)}, body) + body)
        server.process.wait_until(lambda: mark.exists() and mark.read_text() != "", 120)
        *events, last, end = connection.answer().body.split(b"\n\n")
        assert end == b"" and events
        error = json.loads(last.removeprefix(b"data: "))["error"]
        assert (error["message"], error["type"]) == ("the client does not take the responses of its request", "server_error")
        assert connection.ask("GET", "/health/ready").status == 200


def test_over_http2(server: Server, client: openai.OpenAI, tmp_path: Path) -> None:
    """Streams side by side on one connection; one that is reset is cancelled alone."""
    mark = tmp_path / "mark"
    body = json.dumps({"model": "recite", "prompt": "x", "stream": True}).encode()
    with http2.Connection(f"{HOST}:{port_of(server)}") as connection:
        goes = connection.begin("POST", "/v1/completions", body, {"mark": str(mark), "quiet": "yes"})
        told = connection.ask("POST", "/v1/completions", body, {"count": "3"})
        events = told.data.split(b"\n\n")
        assert told.headers[":status"] == "200" and events[-2:] == [b"data: [DONE]", b""]
        assert [json.loads(each.removeprefix(b"data: "))["choices"][0]["text"] for each in events[:-2]] == ["x", "x", "x", ""]
        missing = connection.ask("POST", "/v1/completions", b'{"model":"nobody","prompt":"x"}')
        assert (missing.headers[":status"], json.loads(missing.data)["error"]["code"]) == ("404", "model_not_found")
        assert not mark.exists()
        connection.send(h2.frame(h2.RST_STREAM, 0, goes, (8).to_bytes(4, "big")))
        server.process.wait_until(mark.exists, 60)
        assert connection.ask("GET", "/v1/models").headers[":status"] == "200"


def test_chunks_for_which_there_is_no_room(models: Repository) -> None:
    """They wait for a window, each larger than what is written at a time: when no more may wait, an error ends the stream, and nothing is kept."""
    with serve(models, {"memory-budget": "8000000"}) as server:
        body = json.dumps({"model": "recite", "prompt": "x" * 300_000, "stream": True}).encode()
        with http2.Connection(f"{HOST}:{port_of(server)}", initial={h2.INITIAL_WINDOW_SIZE: 0}) as connection:
            connection.settle()
            stream = connection.begin("POST", "/v1/completions", body, {"count": "40"})
            server.process.wait_until(lambda: answered(server) == 1, 60)
            connection.send(h2.settings({h2.INITIAL_WINDOW_SIZE: 2**31 - 1}))
            *texts, last, end = connection.finish(stream).data.split(b"\n\n")
            assert texts and all(json.loads(each.removeprefix(b"data: "))["choices"][0]["text"] == "x" * 300_000 for each in texts)
            assert json.loads(last.removeprefix(b"data: "))["error"]["type"] == "server_error" and end == b""
        server.process.wait_until(lambda: b"nereid_budget_in_use_bytes 0\n" in rawhttp.get(server.metrics, "/metrics").body, 60)


def test_stopping_answers_first(models: Repository) -> None:
    """What is in flight when the server is told to stop is said to its end."""
    with serve(models) as server, rawhttp.Connection(HOST, port_of(server)) as connection:
        body = json.dumps({"model": "recite", "prompt": "x", "stream": True}).encode()
        connection.send(rawhttp.head("POST", "/v1/completions", {"count": "20000"}, body) + body)
        connection.socket.recv(1)  # the head: it has begun
        server.process.terminate()
        rest = b""
        while part := connection.socket.recv(1 << 20):
            rest += part
        assert rest.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") and rest.count(b'"text":"x"') == 20000
        server.process.ends(0)
