"""Texts of ModelConfig, right and wrong, on which every parser must agree; and a generator of more."""

import random
import re

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from tritonclient.grpc.model_config_pb2 import ModelConfig

# Each is a text by itself. Whether it is valid, and what it means, is what protobuf's parser says.
TEXTS = [
    "",
    "   \t\r\n\v\f ",
    "# only a comment",
    "# a comment\nname: 'x' # another\n",
    "#\u00e4\u00f6 bytes over 127 in a comment\nname: 'x'",
    # separators and lists
    "name: 'x', platform: 'y'; backend: 'z'",
    "name: 'x',, platform: 'y'",
    "name: 'x',; platform: 'y'",
    ", name: 'x'",
    "name: 'x' ;",
    "input [ { name: 'a' }, { name: 'b' } ]",
    "input: [ { name: 'a' } , { name: 'b' } ]",
    "input: [ { name: 'a' } { name: 'b' } ]",
    "input: [ { name: 'a' }, ]",
    "input: [ , ]",
    "input: []",
    "input []",
    "input: [ [ { name: 'a' } ] ]",
    "input { name: 'a' } input { name: 'b' }",
    "input: { name: 'a' } input [ { name: 'b' } ]",
    "input: < name: 'a' dims: [ 1, 2 ] >",
    "input < name: 'a' }",
    "input { name: 'a' >",
    "input [ < name: 'a' >, { name: 'b' } ]",
    "input { dims: 1 dims: 2 dims: [ 3, 4 ] dims: [] }",
    "input { dims [ 1 ] }",
    "input { dims: [ 1 2 ] }",
    "input { dims: [ 1; 2 ] }",
    "input { dims: [ 1, 2 }",
    "input { dims: { 1 } }",
    "input { dims: }",
    "input { dims: [ ], }",
    "input { reshape { shape: [ ] } }",
    "input { reshape: { } }",
    "input { reshape }",
    "input { reshape: [ { } ] }",
    "max_batch_size: [ 1 ]",
    "max_batch_size 1",
    "max_batch_size: 8input { }",
    "max_batch_size:8 name:'x'",
    "name 'x'",
    "name: x",
    "name: [ 'x' ]",
    "instance_group { count: 2 kind: KIND_GPU }",
    "instance_group [ { count: 1 kind: KIND_GPU gpus: [ 0 ] }, { count: 2 kind: KIND_GPU gpus: [ 1, 2 ] } ]",
    "instance_group [ { count: 1 KIND_GPU gpus [ 0 ] } ]",
    "version_policy: { all { }}",
    "version_policy: { latest { num_versions: 2 }}",
    "version_policy: { specific: { versions: [1, 3, 10] } }",
    "version_policy { latest { } all { } }",
    "version_policy { latest { } latest { } }",
    "version_policy { } version_policy { }",
    "dynamic_batching { }",
    "dynamic_batching { } sequence_batching { }",
    "dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }",
    "dynamic_batching: < >",
    "dynamic_batching",
    "dynamic_batching {",
    "dynamic_batching }",
    "}",
    "{ name: 'x' }",
    # integers
    "max_batch_size: 0x10",
    "max_batch_size: 0X1f",
    "max_batch_size: 010",
    "max_batch_size: 08",
    "max_batch_size: 0x",
    "max_batch_size: 0xg",
    "max_batch_size: -1",
    "max_batch_size: - 1",
    "max_batch_size: -#sign\n1",
    "max_batch_size: --1",
    "max_batch_size: +1",
    "max_batch_size: 00",
    "max_batch_size: -0",
    "max_batch_size: 2147483647",
    "max_batch_size: 2147483648",
    "max_batch_size: -2147483648",
    "max_batch_size: -2147483649",
    "max_batch_size: -0x80000000",
    "max_batch_size: 1.0",
    "max_batch_size: 1e2",
    "max_batch_size: 1f",
    "max_batch_size: '1'",
    "max_batch_size: true",
    "max_batch_size: 99999999999999999999999",
    "input { dims: 9223372036854775807 }",
    "input { dims: 9223372036854775808 }",
    "input { dims: -9223372036854775808 }",
    "input { dims: -9223372036854775809 }",
    "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }",
    "dynamic_batching { max_queue_delay_microseconds: 18446744073709551616 }",
    "dynamic_batching { max_queue_delay_microseconds: 0xFFFFFFFFFFFFFFFF }",
    "dynamic_batching { max_queue_delay_microseconds: -1 }",
    "dynamic_batching { max_queue_delay_microseconds: -0 }",
    "dynamic_batching { default_queue_policy { max_queue_size: 4294967295 } }",
    "dynamic_batching { default_queue_policy { max_queue_size: 4294967296 } }",
    # floats
    *[
        f"sequence_batching {{ direct {{ minimum_slot_utilization: {v} }} }}"
        for v in (
            "0.5 .5 5. 5.e1 5e-1 5E+1 1.5f 1.5F 1f 3 -2.5 - 2.5 inf -inf Infinity INF nan NaN -nan infinit 1e 1e+ "
            "0x10 010 0 1..2 1.2.3 1e5.5 3.4028235e38 3.5e38 1e400 -1e400 1e-50 0.1 16777217 true '1' inff e5 .e5 . -"
        ).split()
    ],
    "model_metrics { metric_control { histogram_options { buckets: [ 0.1, 1, 1e300, 1e400, -inf ] } } }",
    "sequence_batching { direct { max_queue_delay_microseconds: 1.5 } }",
    # bools
    *[
        f"response_cache {{ enable: {v} }}"
        for v in "true True t 1 false False f 0 TRUE FALSE T F yes 2 -1 0x1 0x0 01 00 1.0 'true' tru".split()
    ],
    # enums
    *[
        f"input {{ data_type: {v} }}"
        for v in "TYPE_FP32 11 0 -1 99 2147483647 2147483648 type_fp32 FP32 0xB 013 'TYPE_FP32' TYPE_FP32x - 1.0".split()
    ],
    "input { data_type: TYPE_FP32 data_type: TYPE_FP64 }",
    "input { data_type: TYPE_INVALID data_type: TYPE_FP64 }",
    "instance_group { kind: DataType.TYPE_FP32 }",
    # repeated singular fields: allowed while the value is the default
    "name: 'x' name: 'y'",
    "name: '' name: 'y'",
    "max_batch_size: 0 max_batch_size: 8",
    "max_batch_size: 8 max_batch_size: 8",
    "optimization { } optimization { }",
    "response_cache { enable: false enable: true }",
    # oneofs of scalars
    "model_warmup { inputs { key: 'a' value { zero_data: false } } }",
    "model_warmup { inputs { key: 'a' value { zero_data: true random_data: true } } }",
    "model_warmup { inputs { key: 'a' value { zero_data: false zero_data: false } } }",
    "model_warmup { inputs { key: 'a' value { input_data_file: '' random_data: false } } }",
    "model_warmup { inputs { key: 'a' value { input_data_file: 'f' } } }",
    # maps
    "metric_tags { key: 'a' value: '1' }",
    "metric_tags { key: 'a' value: '1' } metric_tags { key: 'a' value: '2' }",
    "metric_tags [ { key: 'a' value: '1' }, { key: 'b' value: '2' }, { key: 'a' value: '3' } ]",
    "metric_tags { key: 'a' }",
    "metric_tags { value: 'a' }",
    "metric_tags { }",
    "metric_tags { value: 'v' key: 'k' }",
    "metric_tags { key: 'a' key: 'b' value: '1' }",
    "metric_tags { key: 'a', value: '1', }",
    "metric_tags < key: 'a'; value: '1' >",
    "metric_tags { 'a': '1' }",
    "metric_tags: 'a'",
    "parameters { key: 'a' value { string_value: 'v' } }",
    "parameters { key: 'a' value: { string_value: 'v' } }",
    "parameters { key: 'a' }",
    "parameters { key: 'a' value { } } parameters { key: 'a' value { string_value: 'w' } }",
    "parameters: [ { key: 'a' value: { string_value: 'v' } } ]",
    "dynamic_batching { priority_queue_policy { key: 1 value { max_queue_size: 3 } } }",
    "dynamic_batching { priority_queue_policy { key: 1 value { } } priority_queue_policy { key: 1 value { max_queue_size: 3 } } }",
    "dynamic_batching { priority_queue_policy { key: -1 value { } } }",
    "dynamic_batching { priority_queue_policy { key: 'a' value { } } }",
    # strings
    'name: "x"',
    "name: 'a' 'b' \"c\"",
    "name: 'a' # comment\n 'b'",
    "name: 'a' + 'b'",
    "name: 'it\\'s \"quoted\"'",
    'name: "a\\"b\'c"',
    "name: '\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\'\\\"'",
    "name: '\\101\\x41\\u0041\\U00000041'",
    "name: '\\1\\12\\1234'",
    "name: '\\xA\\x4a1'",
    "name: '\\x'",
    "name: '\\xg'",
    "name: '\\X41'",
    "name: '\\u12'",
    "name: '\\u00e4\\u20ac\\U0001F600'",
    "name: '\\ud83d\\ude00'",
    "name: '\\U0010FFFF'",
    "name: '\\q'",
    "name: '\\",
    "name: '\\'",
    "name: 'open",
    "name: 'open\"",
    "name: '\t'",
    "name: '\u00e4\u20ac\U0001f600'",
    "name: '\\303\\244'",
    "name: ''",
    "name: '' ''",
    "name:",
    "name",
    "name: 'x' 'y",
    # names
    "unknown_field: 1",
    "max_batch: 8",
    "Name: 'x'",
    "NAME: 'x'",
    "maxBatchSize: 8",
    "1: 'x'",
    "4: 8",
    "[name]: 'x'",
    "[inference.ext]: 1",
    "[type.googleapis.com/inference.ModelConfig] { }",
    "name.first: 'x'",
    "na me: 'x'",
    "name : 'x'",
    "name\n:\n'x'",
    "input.name: 'a'",
    "'name': 'x'",
    "\"name\": \"x\"",
    "name = 'x'",
    "name: 'x' @",
    "name: 'x' \\",
    "name: 'x' /* no */",
    "name: 'x' // no",
    "name: 'x' \u00e4",
    "name: 'x' \x01",
    "\ufeffname: 'x'",
    "x.5",
    "name: 'x' platform: .5",
    "input { name: 'a' } }",
    "input { { } }",
    "ensemble_scheduling { step [ { model_name: 'a' model_version: -1 input_map { key: 'i' value: 't' } "
    "output_map { key: 'o' value: 'u' } }, { model_name: 'b' model_version: 1 } ] }",
    "sequence_batching { max_sequence_idle_microseconds: 5000000 control_input [ { name: 'START' control [ "
    "{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] }, { name: 'READY' control [ "
    "{ kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] } ] }",
    "optimization { execution_accelerators { gpu_execution_accelerator : [ { name : 'tensorrt' "
    "parameters { key: 'precision_mode' value: 'FP16' } } ] } graph { level: -1 } priority: PRIORITY_MAX "
    "cuda { graphs: true } input_pinned_memory { enable: false } }",
]

# Where Python's parser does something else than the C++ one, which is the reference's and ours.
PYTHON_DIFFERS = {
    "max_batch_size: - 1": "no blank after a sign",
    "max_batch_size: -#sign\n1": "no blank after a sign",
    "max_batch_size: +1": "takes a plus sign",
    "dynamic_batching { max_queue_delay_microseconds: -0 }": "takes -0 for an unsigned number",
    "sequence_batching { direct { minimum_slot_utilization: inff } }": "takes an f after inf",
    "response_cache { enable: 0x1 }": "no hexadecimal bools",
    "response_cache { enable: 0x0 }": "no hexadecimal bools",
    "response_cache { enable: 01 }": "no octal bools",
    "response_cache { enable: 00 }": "no octal bools",
    "input { data_type: 013 }": "no octal enum numbers",
    "name: '\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\'\\\"'": "keeps the backslash of an escaped question mark",
    "name: '\\X41'": "keeps unknown escapes",
    "name: '\\q'": "keeps unknown escapes",
    "name: '\\ud83d\\ude00'": "does not join surrogates",
}

# What the C++ parser takes and we refuse: a string must be UTF-8 without zero bytes, as JSON and C strings need it.
OURS_REFUSES = [
    b"name: '\\U00110000'",
    b"name: '\\377'",
    b"name: '\xff'",
    b"name: 'a\\000b'",
    b"name: '\\400'",
    b"name: '\\777'",
    b"name: '\\ud800'",
    b"metric_tags { key: '\\xc0\\x80' }",
]

# Not text, or not valid in a source of this test.
RAW = [
    b"name: '\n'",
    b"name: 'a\\\nb'",
    b'name: "x" \0',
    b"name: 'x'\xff",
    b"\xc3\xa4: 'x'",
]


def _random_value(rng: random.Random, field: FieldDescriptor) -> object:
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_STRING:
        return "".join(rng.choice("abcXYZ_ 019'\"\\\n\t\u00e4\u20ac{}[]#") for _ in range(rng.randint(0, 8)))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice([0.5, 1.0, -2.25, 1e10, 1e-10, 3.0e38, 0.1, float("inf")])
    bits = 64 if field.cpp_type in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64) else 32
    signed = field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return rng.choice([0, 1, low, high, rng.randint(low, high), rng.randint(0, 100)])


def _fill(rng: random.Random, message: Message, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if rng.random() > 0.45 or depth > 5:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key_field, value_field = field.message_type.fields
            for _ in range(rng.randint(1, 3)):
                key = _random_value(rng, key_field)
                if value_field.message_type is not None:
                    _fill(rng, getattr(message, field.name)[key], depth + 1)
                else:
                    getattr(message, field.name)[key] = _random_value(rng, value_field)
        elif field.is_repeated:
            for _ in range(rng.randint(1, 3)):
                if field.message_type is not None:
                    _fill(rng, getattr(message, field.name).add(), depth + 1)
                else:
                    getattr(message, field.name).append(_random_value(rng, field))
        elif field.message_type is not None:
            getattr(message, field.name).SetInParent()
            _fill(rng, getattr(message, field.name), depth + 1)
        else:
            setattr(message, field.name, _random_value(rng, field))


def random_messages(seed: int, count: int) -> list[ModelConfig]:
    rng = random.Random(seed)
    messages = [ModelConfig() for _ in range(count)]
    for message in messages:
        _fill(rng, message, 0)
    return messages


def random_texts(seed: int, count: int) -> list[str]:
    """Texts that protobuf printed, in each of its styles."""
    rng = random.Random(seed + 1)
    return [
        text_format.MessageToString(
            message,
            as_utf8=rng.random() < 0.5,
            as_one_line=rng.random() < 0.3,
            use_short_repeated_primitives=rng.random() < 0.5,
            pointy_brackets=rng.random() < 0.3,
            use_index_order=rng.random() < 0.5,
        )
        for message in random_messages(seed, count)
    ]


def mutated_texts(seed: int, count: int) -> list[str]:
    """Valid texts with a few tokens dropped, doubled, exchanged or replaced: mostly wrong, now and then right."""
    rng = random.Random(seed + 2)
    bases = [t for t in TEXTS if 10 < len(t) < 400] + [t for t in random_texts(seed + 3, 40) if len(t) < 2000]
    spare = ["{", "}", "<", ">", "[", "]", ":", ",", ";", "-", "'", '"', "1", "0x1", "1.5", "name", "true", "TYPE_INT8", "\n", "#"]
    texts = []
    for _ in range(count):
        tokens = re.findall(r"\s+|[A-Za-z_]\w*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[\d.]+|.", rng.choice(bases), re.S)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(tokens))
            action = rng.randrange(4)
            if action == 0 and len(tokens) > 1:
                del tokens[at]
            elif action == 1:
                tokens.insert(at, tokens[at])
            elif action == 2:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            else:
                tokens[at] = rng.choice(spare)
        texts.append("".join(tokens))
    return texts
