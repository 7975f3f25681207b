"""Configurations of identity models put together by chance, the same ones every time: valid ones, and such with one thing wrong."""

import random

TYPES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "STRING", "BF16")
SHAPES = ("[ 4 ]", "[ -1 ]", "[ 2, 3 ]", "[ -1, 5 ]", "[ 1 ]", "[ 3, -1, 2 ]")
PARTS = {
    "instance_group": (
        "instance_group [ { kind: KIND_CPU } ]",
        "instance_group [ { count: 3 kind: KIND_CPU } ]",
        "instance_group [ { count: 2 }, { name: 'two' count: 1 kind: KIND_CPU } ]",
        "instance_group [ { kind: KIND_MODEL } ]",
        "instance_group [ { kind: KIND_CPU passive: true }, { kind: KIND_CPU } ]",
        "instance_group [ { kind: KIND_CPU host_policy: 'p' rate_limiter { priority: 2 } } ]",
    ),
    "version_policy": (
        "version_policy { all { } }",
        "version_policy { latest { num_versions: 1 } }",
        "version_policy { latest { num_versions: 2 } }",
        "version_policy { specific { versions: [ 1 ] } }",
        "version_policy { specific { versions: [ 1, 3 ] } }",
    ),
    "parameters": (
        "parameters { key: 'a' value { string_value: '1' } }",
        "parameters { key: 'a' value { string_value: '' } } parameters { key: 'b' value { string_value: 'x y' } }",
    ),
    "metric_tags": ("metric_tags { key: 'team' value: 'red' }",),
    "optimization": (
        "optimization { }",
        "optimization { priority: PRIORITY_MIN }",
        "optimization { graph { level: -1 } input_pinned_memory { enable: true } output_pinned_memory { enable: false } }",
        "optimization { gather_kernel_buffer_threshold: 7 eager_batching: true }",
    ),
    "response_cache": ("response_cache { }", "response_cache { enable: false }"),
    "default_model_filename": ("default_model_filename: 'other.bin'",),
    "model_transaction_policy": ("model_transaction_policy { }", "model_transaction_policy { decoupled: true }"),
}
SCHEDULERS = (
    "",
    "dynamic_batching { }",
    "dynamic_batching { max_queue_delay_microseconds: 50 }",
    "dynamic_batching { preserve_ordering: true }",
    "dynamic_batching { priority_levels: 3 default_priority_level: 2 }",
    "dynamic_batching { default_queue_policy { max_queue_size: 5 timeout_action: DELAY } }",
    "sequence_batching { }",
    "sequence_batching { direct { } max_sequence_idle_microseconds: 7 }",
    "sequence_batching { oldest { max_candidate_sequences: 3 max_queue_delay_microseconds: 9 } }",
)
WRONG = (
    "max_batch_size: -1",
    "dynamic_batching { preferred_batch_size: [ 1000 ] }",
    "dynamic_batching { priority_levels: 2 }",
    "dynamic_batching { priority_levels: 2 default_priority_level: 5 }",
    "sequence_batching { direct { minimum_slot_utilization: -0.5 } }",
    "sequence_batching { control_input [ { name: 'C' control [ { kind: CONTROL_SEQUENCE_START } ] } ] }",
    "instance_group [ { kind: KIND_GPU } ]",
    "instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]",
    "instance_group [ { kind: KIND_CPU profile: [ 'x' ] } ]",
    "version_policy { specific { versions: [ 9 ] } }",
    "no_such_field: 1",
    "max_batch_size: 'four'",
    "instance_group [ { kind: KIND_TPU } ]",
    "input [ { data_type: TYPE_FP32 dims: [ 1 ] } ]",
    "input [ { name: 'MORE' dims: [ 1 ] } ]",
    "input [ { name: 'MORE' data_type: TYPE_FP32 } ]",
    "input [ { name: 'MORE' data_type: TYPE_FP32 dims: [ 0 ] } ]",
    "output [ { name: 'MORE' data_type: TYPE_FP32 dims: [ -3 ] } ]",
    "batch_output [ { target_name: 'NONE' source_input: 'INPUT0' } ]",
    "max_batch_size: 2147483648",
    "response_cache { enable: true } model_transaction_policy { decoupled: true }",
    "model_warmup [ { name: 'w' batch_size: 1 inputs { key: 'INPUT0' value { data_type: TYPE_FP32 dims: [ -1 ] zero_data: true } } } ]",
)


def _base(rng: random.Random, wrong: bool) -> str:
    """Inputs and outputs in pairs, and a batch size."""
    batch = rng.choice((0, 1, 4, 16))
    text = 'backend: "identity"\n' + ("" if wrong else f"max_batch_size: {batch}\n")
    for index in range(rng.choice((1, 1, 2, 3))):
        kind, shape = rng.choice(TYPES), rng.choice(SHAPES)
        for side in ("input", "output"):
            text += f'{side} [ {{ name: "{side.upper()}{index}" data_type: TYPE_{kind} dims: {shape} }} ]\n'
    return text


def configurations(count: int = 220, seed: int = 7) -> dict[str, str]:
    rng = random.Random(seed)
    made = {}
    for number in range(count):
        wrong = number % 5 == 0
        text = _base(rng, wrong)
        for field in rng.sample(sorted(PARTS), rng.randrange(4)):
            if not wrong or field in ("parameters", "metric_tags"):
                text += rng.choice(PARTS[field]) + "\n"
        text += (WRONG[number // 5 % len(WRONG)] if wrong else rng.choice(SCHEDULERS)) + "\n"
        made[f"g{number:03}"] = text
    return made
