"""OpenAI's interface over models in Python, asked by OpenAI's client: what a request says comes to them, and what they say comes back."""

import asyncio
import base64
import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from catalog import SOURCES
from conftest import environment
from harness import paths, ports, rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server

OUTPUTS = "".join(
    f'output {{ name: "{name}" data_type: TYPE_{datatype} dims: [ 1 ] }}\n'
    for name, datatype in (("TEXT", "STRING"), ("FINISH", "STRING"), ("SAID", "UINT32"), ("HEARD", "UINT32"))
)
TELLS = {"text": "TEXT", "finish_reason": "FINISH", "completion_tokens": "SAID", "prompt_tokens": "HEARD"}


def config(inputs: dict[str, tuple[str, int]], outputs: str, roles: dict[str, Any], extra: str) -> str:
    text = 'backend: "python"\n' + extra
    for name, (datatype, dim) in inputs.items():
        text += f'input {{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dim} ] optional: true }}\n'
    return text + outputs + f"parameters {{ key: \"openai\" value {{ string_value: '{json.dumps(roles)}' }} }}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`talks` gets messages and members of requests, `sampled` prompts and all parameters as JSON; `strange` says any number of texts; `embeds` texts, eight at a time."""
    made = Repository(tmp_path_factory.mktemp("openai") / "models")
    decoupled = "model_transaction_policy { decoupled: true }\n"
    members = {"max_tokens": "MOST", "stop": "STOP", "temperature": "HEAT", "tools": "TOOLS"}
    talks = {"messages": "MESSAGES", "stream": "STREAM", "inputs": members, "defaults": {"temperature": 1, "max_tokens": 100}, **TELLS}
    inputs = {"MESSAGES": ("STRING", 1), "STREAM": ("BOOL", 1), "MOST": ("INT32", 1), "STOP": ("STRING", -1), "HEAT": ("FP32", 1), "TOOLS": ("STRING", 1)}
    made.model("talks", config(inputs, OUTPUTS, talks, decoupled))
    made.model("sampled", config({"PROMPT": ("STRING", 1), "SAMPLING": ("STRING", 1)}, OUTPUTS, {"prompt": "PROMPT", "parameters": "SAMPLING", **TELLS}, decoupled))
    strange = "".join(f'output {{ name: "{name}" data_type: TYPE_{datatype} dims: [ -1 ] }}\n' for name, datatype in zip(TELLS.values(), ("STRING", "STRING", "INT32", "INT64"), strict=True))
    made.model("strange", config({"PROMPT": ("STRING", 1)}, strange, {"prompt": "PROMPT", **TELLS}, decoupled))
    vector = 'output { name: "VECTOR" data_type: TYPE_FP32 dims: [ 3 ] }\noutput { name: "HEARD" data_type: TYPE_INT64 dims: [ 1 ] }\n'
    embeds = {"input": "TEXTS", "embedding": "VECTOR", "prompt_tokens": "HEARD", "inputs": {"dimensions": "SIZE"}}
    made.model("embeds", config({"TEXTS": ("STRING", 1), "SIZE": ("INT32", 1)}, vector, embeds, "max_batch_size: 8\n"))
    for name in ("talks", "sampled", "strange", "embeds"):
        shutil.copy(SOURCES / "talks.py", made.path / name / "1" / "model.py")
    options = {"allow-openai": "true", "openai-port": str(ports.free_port()), "backend-directory": str(paths.backends())}
    with Nereid(made.path, options, env=environment()) as running:
        yield running


def address(server: Server) -> str:
    return f"http://{HOST}:{server.options['openai-port']}/v1"


@pytest.fixture(scope="module")
def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=address(server), api_key="none", max_retries=0, timeout=120)


def user(text: str) -> list[Any]:
    return [{"role": "system", "content": "You are a parrot."}, {"role": "user", "content": text}]


def asked(client: openai.OpenAI, **more: Any) -> dict[str, Any]:
    """What came to the model."""
    text = client.chat.completions.create(model="talks", messages=user("asked"), **more).choices[0].message.content
    found: dict[str, Any] = json.loads(text or "")
    return found


def test_a_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="talks", messages=user("one two three"))
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("one two three ", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (3, 3, 6)


def test_a_streamed_chat(client: openai.OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="talks", messages=user("one two three"), max_tokens=2, stream=True))
    assert [(each.choices[0].delta.content, each.choices[0].finish_reason) for each in chunks] == [("one ", None), ("two ", "length")]
    options: Any = {"include_usage": True}
    *said, last = client.chat.completions.create(model="talks", messages=user("one two"), stream=True, stream_options=options)
    assert [each.choices[0].delta.content for each in said] == ["one ", "two "]
    assert all(each.usage is None for each in said)
    assert last.choices == [] and last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (2, 2)


def test_many_streams_at_once(server: Server) -> None:
    async def one(client: openai.AsyncOpenAI, number: int) -> str:
        stream = await client.chat.completions.create(model="talks", messages=user(f"<{number}> " * 10), stream=True)
        return "".join([each.choices[0].delta.content or "" async for each in stream])

    async def all_of_them() -> list[str]:
        async with openai.AsyncOpenAI(base_url=address(server), api_key="none", max_retries=0, timeout=120) as client:
            return await asyncio.gather(*(one(client, number) for number in range(40)))

    assert asyncio.run(all_of_them()) == [f"<{number}> " * 10 for number in range(40)]


def test_what_comes_to_the_model(client: openai.OpenAI) -> None:
    found = asked(client)
    assert json.loads(found.pop("MESSAGES")[0]) == user("asked")
    assert found == {"STREAM": [False], "MOST": [100], "HEAT": [1.0]}
    tools: Any = [{"type": "function", "function": {"name": "fly", "parameters": {"type": "object", "properties": {}}}}]
    found = asked(client, temperature=0.25, stop=["a", "b"], max_completion_tokens=7, tools=tools)
    assert (found["HEAT"], found["STOP"], found["MOST"], json.loads(found["TOOLS"][0])) == ([0.25], ["a", "b"], [7], tools)
    assert asked(client, stop="\n")["STOP"] == ["\n"]
    assert asked(client, extra_body={"stop": [[1, 2]]})["STOP"] == ["[[1,2]]"]  # what is no list of strings, as JSON
    for param, wrong in (("temperature", "hot"), ("max_tokens", 1.5), ("max_tokens", [1, 2])):
        with pytest.raises(openai.BadRequestError) as e:
            asked(client, **{param: wrong})
        assert e.value.param == param


def test_parameters_as_json(client: openai.OpenAI) -> None:
    more: Any = {"max_tokens": 5, "temperature": 0, "logit_bias": {"50256": -100}, "stop": ["x", "y"], "seed": 7, "user": "me"}
    answer = client.completions.create(model="sampled", prompt="asked", **more)
    sampling = json.loads(json.loads(answer.choices[0].text)["SAMPLING"][0])
    assert sampling == {name: value for name, value in more.items() if name != "user"}
    answer = client.completions.create(model="sampled", prompt="asked", extra_body={"max_completion_tokens": 3, "we\"ird": 1, "top_k": 4, "topP2": 5})
    assert json.loads(json.loads(answer.choices[0].text)["SAMPLING"][0]) == {"max_tokens": 3, "top_k": 4, "topP2": 5}
    assert json.loads(json.loads(client.completions.create(model="sampled", prompt="asked").choices[0].text)["SAMPLING"][0]) == {}


def test_characters_in_pieces(client: openai.OpenAI) -> None:
    chunks = list(client.completions.create(model="sampled", prompt="bytes", stream=True))
    assert "".join(each.choices[0].text for each in chunks) == "a\u00e9\u2603\U0001f99c"
    assert client.completions.create(model="sampled", prompt="bytes").choices[0].text == "a\u00e9\u2603\U0001f99c"


def test_a_reason_that_comes_without_text(client: openai.OpenAI) -> None:
    chunks = list(client.completions.create(model="sampled", prompt="apart", stream=True))
    assert [(each.choices[0].text, each.choices[0].finish_reason) for each in chunks] == [("a", None), ("", "length")]
    answer = client.completions.create(model="sampled", prompt="apart").choices[0]
    assert (answer.text, answer.finish_reason) == ("a", "length")


def told(client: openai.OpenAI, prompt: str) -> list[list[tuple[int, str, str | None]]]:
    """The choices of each chunk."""
    chunks = client.completions.create(model="strange", prompt=prompt, stream=True)
    return [[(choice.index, choice.text, choice.finish_reason) for choice in each.choices] for each in chunks]


def test_a_chunk_has_a_choice(client: openai.OpenAI) -> None:
    """A response without any text is none: clients read the first choice of every chunk."""
    assert told(client, "none") == [[(0, "a", None)], [(0, "b", None)], [(0, "", "stop")]]
    assert client.completions.create(model="strange", prompt="none").choices[0].text == "ab"


def test_a_reason_is_told_once(client: openai.OpenAI) -> None:
    """Also where others go on: clients that join chunks join reasons too."""
    assert told(client, "on") == [[(0, "a", "stop"), (1, "x", None)], [(1, "y", None)], [(0, "c", None), (1, "z", "length")]]
    answer = client.completions.create(model="strange", prompt="on")
    assert [(each.text, each.finish_reason) for each in answer.choices] == [("ac", "stop"), ("xyz", "length")]


def test_a_number_below_zero_is_none_of_tokens(client: openai.OpenAI) -> None:
    usage = client.completions.create(model="strange", prompt="below").usage
    assert usage is not None and (usage.prompt_tokens, usage.completion_tokens) == (0, 3)


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_gives_no_response(client: openai.OpenAI, stream: bool) -> None:
    with pytest.raises(openai.InternalServerError, match="the model gave no response") as e:
        client.completions.create(model="strange", prompt="nothing", stream=stream)
    assert (e.value.status_code, e.value.type) == (500, "server_error")


def test_errors_of_the_model(client: openai.OpenAI) -> None:
    for stream in (False, True):
        with pytest.raises(openai.InternalServerError, match="no more words") as e:
            client.completions.create(model="sampled", prompt="raise", stream=stream)
        assert (e.value.status_code, e.value.type) == (500, "server_error")
    with pytest.raises(openai.InternalServerError, match="late, but no more words"):
        client.completions.create(model="sampled", prompt="raise late")
    found = []
    with pytest.raises(openai.APIError, match="late, but no more words"):
        for each in client.completions.create(model="sampled", prompt="raise late", stream=True):
            found.append(each.choices[0].text)
    assert found == ["raise ", "late "]


def test_the_model_hears_that_its_client_is_gone(client: openai.OpenAI, server: Server, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    stream = client.completions.create(model="sampled", prompt=f"wait {mark}", stream=True)
    assert next(stream).choices[0].text == "waiting"
    assert not mark.exists()
    stream.close()
    server.process.wait_until(mark.exists, 60)


def test_embeddings(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model="embeds", input="parrot", encoding_format="float")
    assert [(each.index, each.object, each.embedding) for each in answer.data] == [(0, "embedding", [6.0, 112.0, -0.5])]
    assert (answer.object, answer.model, answer.usage.prompt_tokens, answer.usage.total_tokens) == ("list", "embeds", 6, 6)
    many = client.embeddings.create(model="embeds", input=["a", "bb", "", "\u00e9"])  # the client asks for base64, and reads it
    assert [each.embedding for each in many.data] == [[1.0, 97.0, -0.5], [2.0, 98.0, -0.5], [0.0, 0.0, -0.5], [2.0, 195.0, -0.5]]
    assert [each.index for each in many.data] == [0, 1, 2, 3]
    assert many.usage.prompt_tokens == 5
    assert len(client.embeddings.create(model="embeds", input=["a", "b"], dimensions=3).data) == 2  # repeated for each of the batch


def test_embeddings_in_base64(server: Server) -> None:
    body = json.dumps({"model": "embeds", "input": ["abc"], "encoding_format": "base64"}).encode()
    answer = rawhttp.request(HOST, int(str(server.options["openai-port"])), "POST", "/v1/embeddings", body)
    text = answer.json()["data"][0]["embedding"]
    assert struct.unpack("<3f", base64.b64decode(text, validate=True)) == (3.0, 97.0, -0.5)


def test_wrong_embeddings(client: openai.OpenAI) -> None:
    for wrong, param in (
        ({"input": [1, 2, 3]}, "input"),
        ({"input": [["a"]]}, "input"),
        ({"input": []}, "input"),
        ({"input": {"a": "b"}}, "input"),
        ({"input": "x", "encoding_format": "int8"}, "encoding_format"),
        ({"input": "x", "dimensions": "many"}, "dimensions"),
    ):
        with pytest.raises(openai.BadRequestError) as e:
            client.embeddings.create(model="embeds", **wrong)  # type: ignore[arg-type]
        assert e.value.param == param, wrong
    with pytest.raises(openai.BadRequestError, match="batch"):
        client.embeddings.create(model="embeds", input=["x"] * 9)
    with pytest.raises(openai.InternalServerError, match="this cannot be embedded"):
        client.embeddings.create(model="embeds", input="raise")
    with pytest.raises(openai.InternalServerError, match="no number that JSON has"):
        client.embeddings.create(model="embeds", input=["a", "no number"], encoding_format="float")
    assert len(client.embeddings.create(model="embeds", input=["a", "no number"]).data) == 2  # the bytes, as they are
    with pytest.raises(openai.NotFoundError, match="does not serve chat completions"):
        client.chat.completions.create(model="embeds", messages=user("x"))
