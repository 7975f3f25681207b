"""generate and generate_stream: how JSON becomes tensors and parameters, and responses JSON and events."""

import json
from typing import Any

import adjust
from harness.compare import Adjust, Http, Question

TEXT = {"text_input": "hello"}
BOTH = TEXT | {"IN1": [1, 2, 3]}
MISSING: Adjust = adjust.any_input_order

# Of the model "recite": text_input, a string, and IN1, integers; decoupled.
REQUESTS: dict[str, Any] = {
    "a response": {},
    "an id": {"id": "42"},
    "an empty id": {"id": ""},
    "an id of odd characters": {"id": 'a "quoted" \\ id \u00e9\u4e2d\n'},
    "a long id": {"id": "i" * 5000},
    "id is a number": {"id": 5},
    "id is null": {"id": None},
    "id is an array": {"id": ["a"]},
    "an id among the parameters": {"parameters": {"id": "nested"}},
    "no response": {"count": 0},
    "two responses": {"count": 2},
    "many responses": {"count": 30},
    "responses, the last of them final": {"count": 3, "joined": True},
    "an error": {"fail_at": 0},
    "an error after a response": {"count": 2, "fail_at": 1},
    "an error before a response": {"count": 2, "fail_at": 0},
    "an error in between": {"count": 3, "fail_at": 1},
    "an error at the end": {"count": 3, "fail_at": 1, "stop": True},
    "an error that is final": {"fail_at": 0, "joined": True},
    "a refusal": {"refuse": True},
    "parameters of responses": {"told": True, "count": 2},
    "parameters apart": {"parameters": {"count": 2}},
    "no parameters apart": {"parameters": {}},
    "parameters within parameters": {"parameters": {"parameters": {"count": 2}}},
    "parameters are a number": {"parameters": 5},
    "parameters are null": {"parameters": None},
    "parameters are an array": {"parameters": []},
    "parameters are a text": {"parameters": "count"},
    "a parameter that is an object": {"x": {"a": 1}},
    "a parameter that is an array": {"x": [1]},
    "a parameter that is null": {"x": None},
    "a parameter apart that is null": {"parameters": {"x": None}},
    "parameters of every type": {"a": 1, "b": -1.5, "c": True, "d": "text", "e": 2**63, "f": -(2**63), "g": 2**70},
    "a reserved parameter": {"triton_x": 1},
    "a reserved parameter apart": {"parameters": {"triton_x": 1}},
    "an empty final response is wanted": {"triton_enable_empty_final_response": True},
    "an empty final response is wanted, apart": {"parameters": {"triton_enable_empty_final_response": True}},
    "a reserved parameter that is an object": {"triton_x": {}},
    "an empty parameter name": {"": "x"},
    "parameters that have a meaning elsewhere": {"timeout": -1, "priority": "x", "sequence_start": 5, "binary_data_output": "x"},
    "parameters called as what is told": {"model_name": "x", "model_version": 7, "text_output": "y"},
    "text in an array": {"text_input": ["a"]},
    "text in two arrays": {"text_input": [["a"]]},
    "two texts": {"text_input": ["a", "b"]},
    "no text": {"text_input": []},
    "an empty text": {"text_input": ""},
    "a long text": {"text_input": "t" * 20000},
    "a text of odd characters": {"text_input": 'a "b" \\ \u00e9 \u4e2d \U0001f600 \x01 \x7f / \u2028'},
    "a text with a zero byte": {"text_input": "a\0b"},
    "text is a number": {"text_input": 5},
    "text is true": {"text_input": True},
    "text is null": {"text_input": None},
    "a number alone": {"IN1": -7},
    "no number": {"IN1": []},
    "a number in two arrays": {"IN1": [[1], [2]]},
    "numbers in two arrays": {"IN1": [[1, 2], [3, 4]]},
    "an empty array in an array": {"IN1": [[]]},
    "number is a text": {"IN1": "x"},
    "number is a fraction": {"IN1": [1.5]},
    "number is true": {"IN1": [True]},
    "number is an object": {"IN1": {}},
    "number is null": {"IN1": None},
    "a number too large": {"IN1": [2**31]},
    "unknown members": {"unknown": 1, "others": "x"},
}
# Of it, as they stand; "...": the second input.
TEXTS: dict[str, tuple[bytes, Adjust | None]] = {
    "nothing": (b"", adjust.parser_words),
    "a brace": (b"{", adjust.parser_words),
    "an array": (b"[]", None),
    "a number": (b"5", None),
    "null": (b"null", None),
    "an empty object": (b"{}", MISSING),
    "one input": (b'{"text_input": "a"}', MISSING),
    "inputs among the parameters": (b'{"parameters": {"text_input": "a", "IN1": 1, "count": 2}}', None),
    "an input in both places": (b'{"text_input": "a", "IN1": 1, "parameters": {"IN1": 2}}', None),
    "an input twice": (b'{"text_input": "a", "text_input": "a", "IN1": 1}', None),
    "id twice": (b'{"text_input": "a", "IN1": 1, "id": "1", "id": "2"}', None),
    "something behind it": (b'{"text_input": "a", "IN1": 1} x', adjust.parser_words),
    "white space around it": (b' \n{"text_input": "a", "IN1": 1}\t ', None),
    "bytes that are no UTF-8": (b'{"text_input": "a\xff\xfe", "IN1": 1}', None),
    "a fault in the second of them": (b'{"parameters": {"text_input": "a", "IN1": "x"}}', None),
}
# Of models with other shapes: their name, and what is asked.
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "a row": ("recite_rows", {"text_input": "a"}),
    "two rows": ("recite_rows", {"text_input": ["a", "b"]}),
    "too many rows": ("recite_rows", {"text_input": ["a"] * 5}),
    "fixed shapes": ("recite_shapes", {"IN0": [1, 2], "IN1": [1, 2, 3]}),
    "a dimension of any size": ("recite_shapes", {"IN0": [1, 2, 3, 4.5], "IN1": [1, 2, 3]}),
    "an odd number": ("recite_shapes", {"IN0": [1, 2, 3], "IN1": [1, 2, 3]}),
    "arrays in arrays": ("recite_shapes", {"IN0": [[1], [2]], "IN1": [1, 2, 3]}),
    "larger arrays in arrays": ("recite_shapes", {"IN0": [[1, 2], [3, 4]], "IN1": [1, 2, 3]}),
    "too few": ("recite_shapes", {"IN0": [1, 2], "IN1": [1, 2]}),
    "one for three": ("recite_shapes", {"IN0": [1, 2], "IN1": 5}),
    "none of any size": ("recite_shapes", {"IN0": [], "IN1": [1, 2, 3]}),
    "none of a fixed size": ("recite_shapes", {"IN0": [1, 2], "IN1": []}),
    "truth for a number": ("recite_shapes", {"IN0": [True, 2], "IN1": [1, 2, 3]}),
    "a text for a number": ("recite_shapes", {"IN0": ["1", 2], "IN1": [1, 2, 3]}),
    "a number below zero": ("recite_shapes", {"IN0": [1, 2], "IN1": [1, 2, -1]}),
    "numbers that are none": ("recite_shapes", {"IN0": [float("nan"), float("-inf")], "IN1": [1, 2, 3]}),
    "not decoupled": ("recite_once", TEXT),
    "not decoupled, with an id": ("recite_once", TEXT | {"id": "7"}),
    "not decoupled, an error": ("recite_once", TEXT | {"fail_at": 0, "joined": True}),
    "an input called parameters": ("recite_parameters", {"parameters": 1}),
    "an output called as the model is": ("recite_names", {"model_name": 5, "id": "1", "told": True}),
    "a row of four": ("id_batch", {"INPUT0": [float(i) for i in range(16)]}),
    "nine rows": ("id_batch", {"INPUT0": [0.0] * 144}),
    "half a row": ("id_batch", {"INPUT0": [0.0] * 8}),
    "an unknown model": ("nobody", {"INPUT0": 1}),
    "an unknown version": ("id_newest/versions/7", {"INPUT0": 1}),
    "a version": ("id_newest/versions/3", {"INPUT0": 1}),
    "version 0": ("id_fp32/versions/0", {"INPUT0": 1}),
    "a version too large": ("id_fp32/versions/99999999999999999999", {"INPUT0": 1}),
    "truths": ("id_bool", {"INPUT0": [True, False]}),
    "a truth": ("id_bool", {"INPUT0": False}),
    "numbers of 64 bits": ("id_uint64", {"INPUT0": [0, 2**64 - 1]}),
    "numbers of 64 bits below zero": ("id_int64", {"INPUT0": [-(2**63), 2**63 - 1]}),
    "fractions": ("id_fp64", {"INPUT0": [0.5, -1e300]}),
    "a fraction": ("id_fp32", {"INPUT0": 2.5}),
    "texts": ("id_bytes", {"INPUT0": ["a", "", "\u00e9"]}),
}
HEADERS: dict[str, dict[str, str]] = {
    "accepts events": {"Accept": "text/event-stream"},
    "accepts JSON": {"Accept": "application/json"},
    "accepts nothing": {"Accept": "image/png;q=0.1"},
    "accepts gzip": {"Accept-Encoding": "gzip"},
    "gzip": {"Content-Encoding": "gzip"},
    "deflate": {"Content-Encoding": "deflate"},
    "an unknown coding": {"Content-Encoding": "br"},
    "identity": {"Content-Encoding": "identity"},
    "another type": {"Content-Type": "text/plain"},
    "a length of JSON": {"Inference-Header-Content-Length": "5"},
    "the last request": {"Connection": "close"},
}
STREAMED = {"generate": "", "generate_stream": "_stream"}


def _ask(name: str, streamed: str, model: str, body: Any, headers: dict[str, str] | None = None, change: Adjust | None = None) -> Question:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Http(name, "POST", f"/v2/models/{model}/generate{streamed}", text, headers or {}, change)


def _group(streamed: str) -> list[Question]:
    asked = [_ask(name, streamed, "recite", BOTH | members) for name, members in REQUESTS.items()]
    asked += [_ask(f"text: {name}", streamed, "recite", text, change=change) for name, (text, change) in TEXTS.items()]
    asked += [_ask(f"shape: {name}", streamed, model, body) for name, (model, body) in SHAPES.items()]
    asked += [_ask(f"header: {name}", streamed, "recite_once", TEXT, headers) for name, headers in HEADERS.items()]
    return asked


GROUPS = {group: _group(streamed) for group, streamed in STREAMED.items()}
