"""Configurations of identity models, which both servers are asked about: name -> config.pbtxt."""

from harness.cases import claims

_IO = """
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""


def _identity(extra: str = "", max_batch_size: int = 8, io: str = _IO) -> str:
    return f'backend: "identity"\nmax_batch_size: {max_batch_size}\n{io}{extra}\n'


def _input(text: str, max_batch_size: int = 8, output: str = "dims: [ 4 ]") -> str:
    return _identity(
        max_batch_size=max_batch_size,
        io=f'input [ {{ {text} }} ]\noutput [ {{ name: "OUTPUT0" data_type: TYPE_FP32 {output} }} ]\n',
    )


def _output(text: str) -> str:
    return _identity(io=f'input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] }} ]\noutput [ {{ {text} }} ]\n')


def _dynamic(text: str) -> str:
    return _identity(f"dynamic_batching {{ {text} }}")


def _sequence(text: str) -> str:
    return _identity(f"sequence_batching {{ {text} }}")


def _control(text: str) -> str:
    return _sequence(f"control_input [ {{ name: 'C' control [ {{ {text} }} ] }} ]")


# Accepted by both: what the server fills in.
ACCEPTED = {
    "plain": claims("PB-36", _identity()),
    "no_batch": _identity(max_batch_size=0),
    "named": claims("PB-164", 'name: "named"\n' + _identity()),
    "dynamic": _dynamic(""),
    "dynamic_no_batch": _identity("dynamic_batching { }", max_batch_size=0),
    "dynamic_full": _dynamic(
        "preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 priority_levels: 2 default_priority_level: 1 "
        "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 allow_timeout_override: true "
        "max_queue_size: 7 } priority_queue_policy { key: 2 value { max_queue_size: 3 } }"
    ),
    "dynamic_ordered": _dynamic("preserve_ordering: true"),
    "sequence": _sequence(""),
    "sequence_direct": _sequence("direct { max_queue_delay_microseconds: 5 minimum_slot_utilization: 0.5 }"),
    "sequence_oldest": _sequence("oldest { max_candidate_sequences: 4 } max_sequence_idle_microseconds: 5000000"),
    "sequence_controls": _sequence(
        "control_input [ { name: 'START' control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] }, "
        "{ name: 'READY' control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] }, "
        "{ name: 'END' control [ { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } ] }, "
        "{ name: 'CORRID' control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] } ]"
    ),
    "groups": _identity("instance_group [ { count: 2 kind: KIND_CPU }, { name: 'mine' kind: KIND_CPU } ]"),
    "group_empty": _identity("instance_group [ { } ]"),
    "group_model": claims("reads PB-09", _identity("instance_group [ { kind: KIND_MODEL } ]")),
    "group_rate": _identity(
        "instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: 'R' count: 2 } ] priority: 3 } host_policy: 'h' } ]"
    ),
    "policy_all": _identity("version_policy: { all { }}"),
    "policy_latest": _identity("version_policy: { latest { num_versions: 3 }}"),
    "policy_specific": _identity("version_policy: { specific { versions: [ 1 ] }}"),
    "optimized": _identity(
        "optimization { graph { level: 1 } priority: PRIORITY_MAX cuda { graphs: true graph_spec [ { batch_size: 1 input { "
        "key: 'i' value { dim: [ 1, 2 ] } } } ] } execution_accelerators { cpu_execution_accelerator [ { name: 'openvino' "
        "parameters { key: 'k' value: 'v' } } ] } input_pinned_memory { enable: false } eager_batching: true }"
    ),
    "parameters": _identity("parameters { key: 'a' value { string_value: 'b' } } parameters { key: 'c' value { } }"),
    "tags": _identity("metric_tags { key: 'a' value: 'b' } cc_model_filenames { key: '7.5' value: 'f' }"),
    "filename": _identity("default_model_filename: 'x.bin'"),
    "decoupled": _identity("model_transaction_policy { decoupled: true }"),
    "cache": _identity("response_cache { enable: true }"),
    "unicode": _identity("parameters { key: '\u00e4\u20ac' value { string_value: 'a\\\"b\\\\c\\n\\t\\001\\177/' } }"),
    "batch_io": _identity(
        "batch_input [ { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: 'COUNT' data_type: TYPE_FP32 source_input: "
        "'INPUT0' } ] batch_output [ { target_name: 'OUTPUT0' kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: 'INPUT0' } ]"
    ),
    "ragged": claims("reads PB-40", _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 4 ] allow_ragged_batch: true")),
    "optional": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 4 ] optional: true"),
    "reshape": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] }",
                      output="dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] }"),
    "reshape_empty": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 1 ] reshape: { shape: [ ] }",
                            output="dims: [ 1 ] reshape: { shape: [ ] }"),
    "format": claims(
        "PB-29", _input("name: 'INPUT0' data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 4, 4 ]", output="dims: [ 3, 4, 4 ]")
    ),
    "warm": _identity(
        "model_warmup [ { name: 'w' batch_size: 1 count: 2 inputs { key: 'INPUT0' value { data_type: TYPE_FP32 "
        "dims: [ 4 ] zero_data: true } } } ]"
    ),
    "custom.identity": "max_batch_size: 8\n" + _IO,
    "ensemble": "platform: 'ensemble'\nmax_batch_size: 8\n"
    + _IO
    + "ensemble_scheduling { step [ { model_name: 'plain' model_version: -1 input_map { key: 'INPUT0' value: 'INPUT0' } "
    "output_map { key: 'OUTPUT0' value: 'OUTPUT0' } } ] }",
    "policy_empty": _identity("version_policy { }"),
}

# Refused by both.
REFUSED = {
    "bad_text": "max_batch: 8",
    "bad_name": claims("MC-08, PB-164", 'name: "other"\n' + _identity()),
    "bad_batch": claims("MC-15", _identity(max_batch_size=-1)),
    "bad_platform": claims("MC-10", "platform: 'none_such'\n" + _IO),
    "bad_pair": "platform: 'onnxruntime_onnx' backend: 'tensorflow'\n" + _IO,
    "bad_nothing": claims("MC-04", _IO),
    "bad_ensemble_backend": "platform: 'ensemble' backend: 'identity'\n" + _IO,
    "bad_ensemble_bare": claims("MC-129", "platform: 'ensemble'\n" + _IO),
    "bad_ensemble_platform": claims("MC-129", _identity("ensemble_scheduling { }")),
    "bad_preferred": claims("MC-13", _dynamic("preferred_batch_size: [ 4, 9 ]")),
    "bad_preferred_zero": _dynamic("preferred_batch_size: [ 0 ]"),
    "bad_priority": claims("PB-101", _dynamic("priority_levels: 2")),
    "bad_priority_over": claims("PB-101", _dynamic("priority_levels: 2 default_priority_level: 3")),
    "bad_priority_policy": _dynamic(
        "priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value { } }"
    ),
    "bad_order": _dynamic("preserve_ordering: true priority_levels: 2 default_priority_level: 1"),
    "bad_order_delay": _dynamic(
        "preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 }"
    ),
    "bad_order_delay_level": _dynamic(
        "preserve_ordering: true priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 1 value { "
        "timeout_action: DELAY default_timeout_microseconds: 1 } }"
    ),
    "bad_oldest": _sequence("oldest { preferred_batch_size: [ 9 ] }"),
    "bad_oldest_zero": _sequence("oldest { preferred_batch_size: [ 0 ] }"),
    "bad_slots": _sequence("direct { minimum_slot_utilization: 1.5 }"),
    "bad_control_nameless": _sequence("control_input [ { } ]"),
    "bad_control_twice": _sequence("control_input [ { name: 'A' }, { name: 'A' } ]"),
    "bad_control_kind_twice": _sequence(
        "control_input [ { name: 'A' control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] }, "
        "{ name: 'B' control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] } ]"
    ),
    "bad_control_none": claims("PB-110", _control("kind: CONTROL_SEQUENCE_START")),
    "bad_control_both": claims("PB-110", _control("kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ]")),
    "bad_control_three": claims("PB-115", _control("kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1, 2 ]")),
    "bad_control_one": claims("PB-116", _control("kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0 ]")),
    "bad_corrid_type": claims("PB-112", _control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32")),
    "bad_corrid_none": claims("PB-112", _control("kind: CONTROL_SEQUENCE_CORRID")),
    "bad_corrid_values": _control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 int32_false_true: [ 0, 1 ]"),
    "bad_cache_sequence": _identity("response_cache { enable: true } sequence_batching { }"),
    "bad_cache_decoupled": _identity("response_cache { enable: true } model_transaction_policy { decoupled: true }"),
    "bad_group_gpu": claims("PB-06", _identity("instance_group [ { kind: KIND_GPU } ]")),
    "bad_group_gpu_id": claims("PB-06", _identity("instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")),
    "bad_group_cpu_gpus": claims("PB-15", _identity("instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]")),
    "bad_group_model_gpus": claims("PB-15", _identity("instance_group [ { kind: KIND_MODEL gpus: [ 0 ] } ]")),
    "bad_group_profile": claims("PB-23", _identity("instance_group [ { kind: KIND_CPU profile: [ '1' ] } ]")),
    "bad_input_nameless": claims("MC-16", _input("data_type: TYPE_FP32 dims: [ 4 ]")),
    "bad_input_type": claims("MC-16, PB-03", _input("name: 'INPUT0' dims: [ 4 ]")),
    "bad_input_dims": claims("MC-16", _input("name: 'INPUT0' data_type: TYPE_FP32")),
    "bad_input_dims_empty": claims("MC-23", _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ ]")),
    "bad_output_nameless": claims("MC-16", _output("data_type: TYPE_FP32 dims: [ 4 ]")),
    "bad_output_type": claims("MC-16, PB-03", _output("name: 'OUTPUT0' dims: [ 4 ]")),
    "bad_output_dims": claims("MC-16", _output("name: 'OUTPUT0' data_type: TYPE_FP32")),
    "bad_input_zero": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 0 ]"),
    "bad_input_negative": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ -2 ]"),
    "bad_reshape_zero": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 0 ] }"),
    "bad_reshape_size": claims("PB-35", _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 5 ] }")),
    "bad_reshape_variable": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ -1 ] reshape { shape: [ 4 ] }"),
    "bad_reshape_number": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: [ -1 ] }"),
    "bad_reshape_chunk": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 2, -1, 4 ] reshape { shape: [ 4, -1, 2 ] }"),
    "bad_reshape_empty": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 1 ] reshape { }", max_batch_size=0),
    "bad_reshape_empty_size": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 2 ] reshape { }"),
    "bad_output_dims_empty": claims("MC-23", _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 4 ]", output="dims: [ ]")),
    "bad_output_reshape_size": claims(
        "PB-45", _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 4 ]", output="dims: [ 4 ] reshape { shape: [ 5 ] }")
    ),
    "bad_format": claims("PB-29", _input("name: 'INPUT0' data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 4, 4 ]")),
    "bad_format_rows": claims(
        "PB-29", _input("name: 'INPUT0' data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 1, 3, 4, 4 ]", 0, "dims: [ 1, 3, 4, 4 ]")
    ),
    "bad_shape_tensor": claims("PB-36", _input("name: 'INPUT0' data_type: TYPE_INT32 dims: [ 4 ] is_shape_tensor: true")),
    "bad_non_linear": _input("name: 'INPUT0' data_type: TYPE_FP32 dims: [ 4 ] is_non_linear_format_io: true"),
    "bad_batch_input": _identity("batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: 'C' data_type: TYPE_FP32 } ]"),
    "two_batch_sources": _identity(
        "batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: 'C' data_type: TYPE_FP32 source_input: [ 'INPUT0', 'INPUT0' ] } ]"
    ),
    "two_scatter_sources": _identity("batch_output [ { target_name: 'OUTPUT0' source_input: [ 'INPUT0', 'INPUT0' ] } ]"),
    "bad_batch_type": _identity("batch_input [ { target_name: 'C' data_type: TYPE_FP64 source_input: 'INPUT0' } ]"),
    "bad_batch_source": _identity("batch_input [ { target_name: 'C' data_type: TYPE_FP32 source_input: 'NONE' } ]"),
    "bad_batch_target": _identity("batch_output [ { target_name: 'NONE' source_input: 'INPUT0' } ]"),
    "bad_batch_target_twice": _identity(
        "batch_output [ { target_name: [ 'OUTPUT0', 'OUTPUT0' ] source_input: 'INPUT0' } ]"
    ),
    "bad_two_schedulers": claims("PB-173", _identity("dynamic_batching { } sequence_batching { }")),
    "bad_warm_input": _identity(
        "model_warmup [ { name: 'w' batch_size: 1 inputs { key: 'INPUT0' value { data_type: TYPE_FP32 dims: [ 4 ] } } } ]"
    ),
    "bad_warm_dims": _identity(
        "model_warmup [ { name: 'w' batch_size: 1 inputs { key: 'INPUT0' value { data_type: TYPE_FP32 dims: [ -1 ] "
        "zero_data: true } } } ]"
    ),
}

# Accepted by ours alone: newer than the reference; needs the version directories; the specification's default; the backend refuses it.
OURS_ACCEPTS = {
    "metrics": _identity(
        "model_metrics { metric_control [ { metric_identifier { family: 'nv_inference_first_response_histogram_ms' } "
        "histogram_options { buckets: [ 0.1, 1, 2.5 ] } } ] }"
    ),
    "bad_specific_none": _identity("version_policy { specific { versions: [ 9 ] } }"),
    "latest_empty": _identity("version_policy { latest { } }"),
    "no_output": _identity(io='input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'),
}
# Accepted by the reference alone: the specification says at least 1.
OURS_REFUSES = {
    "warm_zero": _identity("model_warmup [ { name: 'w' inputs { key: 'INPUT0' value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } } ]"),
}


def _ensemble(steps: str, io: str = _IO, extra: str = "") -> str:
    return f"platform: 'ensemble'\nmax_batch_size: 8\n{io}ensemble_scheduling {{ step [ {steps} ] }}\n{extra}"


def _step(inputs: str, outputs: str) -> str:
    maps = "".join(f" {kind}_map {{ key: '{kind.upper()}0' value: '{name}' }}" for kind, names in
                   (("input", inputs), ("output", outputs)) for name in names.split())
    return f"{{ model_name: 'plain' model_version: -1{maps} }}"


REFUSED |= {
    "bad_ensemble_group": _ensemble(_step("INPUT0", "OUTPUT0"), extra="instance_group [ { kind: KIND_CPU } ]"),
    "bad_ensemble_optimized": _ensemble(_step("INPUT0", "OUTPUT0"), extra="optimization { }"),
    "bad_ensemble_warm": claims("PB-184", _ensemble(_step("INPUT0", "OUTPUT0"), extra="model_warmup [ { name: 'w' batch_size: 1 } ]")),
    "bad_ensemble_no_step": _ensemble(""),
    "bad_ensemble_no_model": _ensemble("{ input_map { key: 'a' value: 'INPUT0' } output_map { key: 'b' value: 'OUTPUT0' } }"),
    "bad_ensemble_no_input": _ensemble(_step("", "OUTPUT0")),
    "bad_ensemble_no_output": _ensemble(_step("INPUT0", "")),
    "bad_ensemble_twice": claims("PB-148", _ensemble(_step("INPUT0", "OUTPUT0") + ", " + _step("INPUT0", "OUTPUT0"))),
    "bad_ensemble_unused_input": _ensemble(_step("x", "OUTPUT0")),
    "bad_ensemble_unused_output": _ensemble(_step("INPUT0", "x")),
    "bad_ensemble_unwritten": _ensemble(_step("INPUT0", "a") + ", " + _step("b", "OUTPUT0")),
    "bad_ensemble_circle": _ensemble(
        _step("INPUT0", "a") + ", " + _step("b", "c") + ", " + _step("c", "b") + ", "
        "{ model_name: 'plain' model_version: -1 input_map [ { key: 'INPUT0' value: 'a' }, { key: 'INPUT1' value: 'b' } ] "
        "output_map { key: 'OUTPUT0' value: 'OUTPUT0' } }"
    ),
    "bad_ensemble_unused_tensor": _ensemble(_step("INPUT0", "OUTPUT0") + ", " + _step("OUTPUT0", "spare")),
}

CASES = ACCEPTED | REFUSED | OURS_ACCEPTS | OURS_REFUSES
