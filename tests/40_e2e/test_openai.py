"""The interface of OpenAI, asked by its own client: completions, chats, streams, errors, cancellation. Models of the Python backend: tests/47_python."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from harness import ports, rawhttp, recite
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server

MAPPED = 'parameters {{ key: "openai" value {{ string_value: \'{}\' }} }}\n'


def mapped(**roles: Any) -> str:
    return MAPPED.format(json.dumps(roles))


def serve(repository: Repository, options: dict[str, Any] | None = None) -> Nereid:
    given = {"allow-openai": "true", "openai-port": str(ports.free_port()), "http-header-forward-pattern": "^(count|fail_at|stop|joined|mark)$"}
    return Nereid(repository.path, given | (options or {}))


def port_of(server: Server) -> int:
    return int(str(server.options["openai-port"]))


def client_of(server: Server, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://{HOST}:{port_of(server)}/v1", api_key=key, max_retries=0, timeout=120)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """`recite` answers with the prompt as often as the header `count` says; `echo` once, and takes lists; `plain` says nothing of OpenAI."""
    made = Repository(tmp_path_factory.mktemp("openai") / "models")
    roles = mapped(prompt="text_in", text="text_out", completion_tokens="INDEX")
    recite.model(made, "recite", ("text_in", "BYTES", (1,)), extra=roles)
    made.identity("echo", "BYTES", (1,), max_batch_size=8, extra=mapped(prompt="INPUT0", text="OUTPUT0"))
    made.identity("dialogue", "BYTES", (1,), extra=mapped(messages="INPUT0", text="OUTPUT0"))
    made.identity("whole", "BYTES", (1,), extra=mapped(request="INPUT0", text="OUTPUT0"))
    made.identity("plain", "BYTES", (1,))
    return made


@pytest.fixture(scope="module")
def server(models: Repository) -> Iterator[Server]:
    with serve(models) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> openai.OpenAI:
    return client_of(server)


def test_models(client: openai.OpenAI) -> None:
    assert [each.id for each in client.models.list()] == ["dialogue", "echo", "recite", "whole"]
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
