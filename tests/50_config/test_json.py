"""Our JSON reader and writer against protobuf's own JSON mapping, over every field of ModelConfig."""

import json
import re

import pytest
from config_corpus import random_messages
from config_tools import ask, canonical
from google.protobuf import json_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

MESSAGES = random_messages(seed=11, count=80)


def _numbers(value: object) -> object:
    """64-bit integers, which protobuf writes as strings, as the numbers that we write."""
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value


def _compare(ours: object, theirs: object, path: str) -> None:
    if isinstance(theirs, dict):
        assert isinstance(ours, dict) and ours.keys() == theirs.keys(), path
        for key in theirs:
            _compare(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs), path
        for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            _compare(a, b, f"{path}[{index}]")
    elif isinstance(ours, int) and not isinstance(ours, bool) and isinstance(theirs, str):
        assert str(ours) == theirs, path
    else:
        assert ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool), path


def test_written_as_protobuf_writes_but_for_64_bit_integers() -> None:
    answers = ask([("J", json_format.MessageToJson(message).encode()) for message in MESSAGES])
    for message, answer in zip(MESSAGES, answers, strict=True):
        assert answer.accepted, answer.data
        theirs = json_format.MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        _compare(_numbers(json.loads(answer.data)), _numbers(theirs), "")


def test_what_we_write_reads_back() -> None:
    written = ask([("J", json_format.MessageToJson(message).encode()) for message in MESSAGES])
    for message, answer, again in zip(MESSAGES, written, ask([("j", a.data) for a in written]), strict=True):
        expected = message.SerializeToString(deterministic=True)
        assert json_format.Parse(answer.data, ModelConfig()).SerializeToString(deterministic=True) == expected
        assert canonical(again.data) == expected


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("numbers", [True, False])
def test_read_as_protobuf_writes(names: bool, numbers: bool) -> None:
    texts = [
        json_format.MessageToJson(m, preserving_proto_field_name=names, use_integers_for_enums=numbers) for m in MESSAGES
    ]
    for message, answer in zip(MESSAGES, ask([("j", text.encode()) for text in texts]), strict=True):
        assert answer.accepted, answer.data
        assert canonical(answer.data) == message.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ('{"max_batch_size": "8"}', '{"max_batch_size": 8}'),
        ('{"maxBatchSize": 8.0}', '{"max_batch_size": 8}'),
        ('{"max_batch_size": 8e0}', '{"max_batch_size": 8}'),
        ('{"input": [{"data_type": "type_fp32"}]}', '{"input": [{"data_type": 11}]}'),
        ('{"name": null, "input": null, "metric_tags": null, "dynamic_batching": null}', "{}"),
        ('{"dynamic_batching": {"priority_queue_policy": {"1": {"max_queue_size": 2}}}}',) * 2,
        ('{"parameters": {"a": {}, "b": {"string_value": "\\u00e4\\n"}}}',) * 2,
        ('{"model_metrics": {"metric_control": [{"histogram_options": {"buckets": [1, "2.5", "Infinity", "-Infinity"]}}]}}',) * 2,
        ('{"input": [{"dims": ["-1", 9223372036854775807, -9223372036854775808]}]}',) * 2,
    ],
)
def test_forms(text: str, same_as: str) -> None:
    answer = ask([("j", text.encode())])[0]
    assert answer.accepted, answer.data
    expected = json_format.Parse(same_as, ModelConfig())
    assert canonical(answer.data) == expected.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"max_batch": 8}', 'expected a field of ModelConfig, found "max_batch"; did you mean "max_batch_size"?'),
        (
            '{"inputs": [{"name": "a", "datatype": "FP32", "shape": [1]}]}',
            'expected a field of ModelConfig, found "inputs"; did you mean "input"?',
        ),
        (
            '{"input": [{}, {"data_type": "FP32"}]}',
            'input[1].data_type: expected a value of the enum DataType, found "FP32"; did you mean "TYPE_FP32"?',
        ),
        (
            '{"max_batch_size": "eight"}',
            'max_batch_size: expected an integer from -2147483648 to 2147483647, found "eight"',
        ),
        ('{"max_batch_size": 1.5}', "max_batch_size: expected an integer from -2147483648 to 2147483647, found 1.5"),
        (
            '{"max_batch_size": 2147483648}',
            "max_batch_size: expected an integer from -2147483648 to 2147483647, found 2147483648",
        ),
        ('{"max_batch_size": true}', "max_batch_size: expected an integer from -2147483648 to 2147483647, found true"),
        (
            '{"dynamic_batching": {"priority_levels": -1}}',
            "dynamic_batching.priority_levels: expected an integer from 0 to 18446744073709551615, found -1",
        ),
        ('{"name": 3}', "name: expected a string, found 3"),
        ('{"name": "a\\u0000b"}', "name: expected a string without zero bytes"),
        ('{"input": "a"}', 'input: expected an object, found "a"'),
        ('{"input": [{}, 5]}', "input[1]: expected an object, found 5"),
        ('{"metric_tags": [1]}', "metric_tags: expected an object, found a list"),
        ('{"metric_tags": {"a": 1}}', 'metric_tags["a"].value: expected a string, found 1'),
        (
            '{"dynamic_batching": {"priority_queue_policy": {"x": {}}}}',
            'dynamic_batching.priority_queue_policy["x"].key: '
            'expected an integer from 0 to 18446744073709551615, found "x"',
        ),
        ('{"response_cache": {"enable": "yes"}}', 'response_cache.enable: expected true or false, found "yes"'),
        ('{"name": "a", "name": "b"}', "expected 'name' once, found it again"),
        (
            '{"dynamic_batching": {}, "sequenceBatching": {}}',
            "expected only one of 'dynamic_batching' and 'sequence_batching', found both",
        ),
        ("[]", "expected an object, found a list"),
    ],
)
def test_error_words(text: str, error: str) -> None:
    assert ask([("j", text.encode())])[0].error == f"model configuration: {error}"


@pytest.mark.parametrize("text", ["", "{", '{"name": "x",,}', "{name: }", '{"name": "\xff"}', '{"a": 01}', "nul", '{"name": \n\n}'])
def test_not_json(text: str) -> None:
    error = ask([("j", text.encode("latin-1"))])[0].error
    assert re.match(r"model configuration:\d+:\d+: not valid JSON: .", error), error
    if "\n" in text:
        assert error.startswith("model configuration:3:1: ")


def test_nesting_has_a_limit() -> None:
    deep = '{"a":' * 100_000
    assert not ask([("j", deep.encode())])[0].accepted
