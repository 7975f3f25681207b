"""The backend `openvino`, in this server and, as the same file, in the reference: IR and ONNX files, every data type, batches, shapes,
parameters, what does not load. What is right is what OpenVINO says when it is called directly from Python."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import arrays, rawgrpc
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from models import onnx_models
from tritonclient.grpc import service_pb2 as pb

import batches
import openvino_oracle
from clients import PROTOCOLS, ask, config, load, loads_and_unloads, parameters, tensor

OPENVINO = 'backend: "openvino"\n'
AS_ONNX = OPENVINO + 'default_model_filename: "model.onnx"\n'
DYNAMIC = "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 500000 }\n"
BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
NUMBERS = [name for name in arrays.NUMPY if name != "BYTES"]
SETTINGS = {
    "threads": {"INFERENCE_NUM_THREADS": "1", "COMPILATION_NUM_THREADS": "1", "NUM_STREAMS": "1"},
    "hints": {"PERFORMANCE_HINT": "throughput", "TARGET_DEVICE": "cpu", "SKIP_OV_DYNAMIC_BATCHSIZE": "no"},
    "streams": {"NUM_STREAMS": "auto", "PERFORMANCE_HINT": "LATENCY"},
    "device": {"TARGET_DEVICE": "HETERO:CPU"},
}
BATCH = OPENVINO + "max_batch_size: 4\n"
DENSE = tensor("input", "x", "FP32", [16]) + tensor("output", "logits", "FP32", [8])
OPTIONAL = tensor("input", "x", "FP32", [-1, 16], "optional: true")
LAYOUTS = {"layout_batch": ("NC", "N..."), "layout_half": ("NC", None), "layout_last": ("CN", "NC"), "layout_none": ("HW", "HW")}
FIXED = {"SKIP_OV_DYNAMIC_BATCHSIZE": "YES"}


def write_models(made: Repository) -> None:
    for datatype in NUMBERS + ["BF16"]:
        onnx_models.save(onnx_models.identity(datatype, ["n", "m"]), made.model(f"type_{datatype.lower()}", AS_ONNX))
    dense = onnx_models.dense()
    for name, more in {
        "dense": DYNAMIC, "dense_many": "instance_group { count: 2 kind: KIND_CPU }\n", "fixed": parameters(FIXED),
        "padded": parameters({**FIXED, "ENABLE_BATCH_PADDING": "true"}),
        **{f"with_{name}": parameters(values) for name, values in SETTINGS.items()},
    }.items():
        openvino_oracle.save_ir(dense, made.model(name, f"{OPENVINO}max_batch_size: 16\n{more}"))
    openvino_oracle.save_ir(dense, made.model("bare", None))
    openvino_oracle.save_ir(dense, made.model("optional_input", OPENVINO + OPTIONAL + tensor("output", "logits", "FP32", [-1, 8])))
    openvino_oracle.save_ir(onnx_models.add_sub(), made.model("add_sub", None))
    for name, layouts in LAYOUTS.items():
        openvino_oracle.save_ir(onnx_models.add_sub(), made.model(name, None), *layouts)
    openvino_oracle.save_ir(onnx_models.add_sub(batch=2, width=3), made.model("unbatched", None))
    openvino_oracle.save_ir(onnx_models.add_sub(batch=1, width=3), made.model("rebatched", OPENVINO + "max_batch_size: 4\n"))
    openvino_oracle.save_ir(onnx_models.non_zero(), made.model("non_zero", None))
    openvino_oracle.save_counter(made.model("counter", None))
    openvino_oracle.save_counter(made.model("counter_many", OPENVINO + "instance_group { count: 2 kind: KIND_CPU }\n"))
    misnamed = made.model("counter_misnamed", AS_ONNX)
    openvino_oracle.save_counter(misnamed)
    (misnamed / "1" / "model.xml").rename(misnamed / "1" / "model.onnx")
    openvino_oracle.save_ir(onnx_models.scalar(), made.model("scalar", None))
    openvino_oracle.save_ir(onnx_models.keeps_flagged(), made.model("keeps_flagged", OPENVINO + "max_batch_size: 4\n"))
    wide = tensor("input", "x", "FP32", [4, 4], "reshape: { shape: [ 16 ] }")
    openvino_oracle.save_ir(
        dense, made.model("reshaped", OPENVINO + "max_batch_size: 4\n" + wide + tensor("output", "logits", "FP32", [2, 4], "reshape: { shape: [ 8 ] }"))
    )
    shaped = tensor("input", "a", "FP32", [-1, 5]) + tensor("input", "b", "FP32", [-1, 5])
    shaped += tensor("output", "sum", "FP32", [-1, 5]) + tensor("output", "difference", "FP32", [-1, 5])
    openvino_oracle.save_ir(
        onnx_models.add_sub(batch=2, width=3), made.model("new_shapes", OPENVINO + shaped + parameters({"RESHAPE_IO_LAYERS": "yes"}))
    )
    converted = tensor("input", "x", "INT32", [-1, 16]) + tensor("output", "logits", "FP16", [-1, 8])
    openvino_oracle.save_ir(dense, made.model("converted", OPENVINO + converted))


def _no_file(folder: Path) -> None:
    (folder / "1" / "model.xml").unlink()


def _half_the_xml(folder: Path) -> None:
    file = folder / "1" / "model.xml"
    file.write_text(file.read_text()[:700])


def _short_weights(folder: Path) -> None:
    (folder / "1" / "model.bin").write_bytes(b"short")


def _pipe(folder: Path) -> None:
    (folder / "1" / "model.bin").unlink()
    os.mkfifo(folder / "1" / "model.bin")


# What does not load: its configuration, what happens to its files, what the error says.
BAD: dict[str, tuple[str, Any, str]] = {
    "bad_absent": (OPENVINO + DENSE, _no_file, "/1/model.xml' for model 'bad_absent'"),
    "bad_xml": (OPENVINO, _half_the_xml, "openvino error in reading model : "),
    "bad_weights": (OPENVINO, _short_weights, "openvino error in reading model : "),
    "bad_pipe": (OPENVINO, _pipe, "/1/model.bin' of model 'bad_pipe' is not a regular file"),
    "bad_name": (
        OPENVINO + "max_batch_size: 4\n" + DENSE.replace('"x"', '"z"'), None,
        "unexpected inference input 'z', allowed inputs are: x",
    ),
    "bad_output": (
        OPENVINO + "max_batch_size: 4\n" + DENSE.replace("logits", "q"), None,
        "unexpected inference output 'q', allowed outputs are: logits",
    ),
    "bad_count": (
        OPENVINO + "max_batch_size: 4\n" + DENSE + tensor("input", "more", "FP32", [1]), None,
        "unable to load model 'bad_count', configuration expects 2 inputs, model provides 1",
    ),
    "bad_strings": (
        OPENVINO + "max_batch_size: 4\n" + DENSE.replace("FP32", "STRING", 1), None,
        "unsupported datatype TYPE_STRING for input 'x' for model 'bad_strings'",
    ),
    "bad_dims": (
        OPENVINO + "max_batch_size: 4\n" + DENSE.replace("[16]", "[17]"), None,
        "model 'bad_dims', tensor 'x': the model expects 2 dimensions (shape [-1,16]) but the model configuration specifies 2 "
        "dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete "
        "shape [4,17])",
    ),
    "bad_rank": (
        OPENVINO + DENSE, None,
        "model 'bad_rank', tensor 'x': the model expects 2 dimensions (shape [-1,16]) but the model configuration specifies 1 "
        "dimensions (shape [16])",
    ),
    "bad_threads": (
        OPENVINO + parameters({"INFERENCE_NUM_THREADS": "Many"}), None,
        "expected the parameter 'INFERENCE_NUM_THREADS' to be a non-negative number, got many",
    ),
    "bad_streams": (
        OPENVINO + parameters({"NUM_STREAMS": "-2"}), None,
        "expected the parameter 'NUM_STREAMS' to be either AUTO/NUMA/<int_value>, got -2",
    ),
    "bad_hint": (
        OPENVINO + parameters({"PERFORMANCE_HINT": "speed"}), None,
        "expected the parameter 'PERFORMANCE_HINT' to be LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT, got speed",
    ),
    "bad_precision": (
        OPENVINO + parameters({"HINT_BF16": "no"}), None, "expected the parameter 'HINT_BF16' to be YES, got no",
    ),
    "bad_device": (OPENVINO + parameters({"TARGET_DEVICE": "TOASTER"}), None, "openvino error in loading model : "),
    "bad_extension": (
        OPENVINO + parameters({"CPU_EXTENSION_PATH": "/bin/sh"}), None,
        "the library '/bin/sh' of CPU_EXTENSION_PATH has to lie in the model's directory",
    ),
    "bad_extension_absent": (
        OPENVINO + parameters({"CPU_EXTENSION_PATH": "1/none.so"}), None,
        "/bad_extension_absent/1/none.so' of CPU_EXTENSION_PATH cannot be opened: No such file or directory",
    ),
    "bad_extension_elsewhere": (
        OPENVINO + parameters({"CPU_EXTENSION_PATH": "../dense/1/model.bin"}), None,
        "the library '../dense/1/model.bin' of CPU_EXTENSION_PATH has to lie in the model's directory",
    ),
    "bad_extension_inside": (
        OPENVINO + parameters({"CPU_EXTENSION_PATH": "1/model.bin"}), None, "openvino error in loading custom CPU extensions : ",
    ),
    "bad_switch": (
        OPENVINO + parameters({"SKIP_OV_DYNAMIC_BATCHSIZE": "maybe"}), None,
        "expected the parameter 'SKIP_OV_DYNAMIC_BATCHSIZE' to be YES or NO, got maybe",
    ),
    "bad_ragged": (
        BATCH + DENSE.replace("dims: [16]", "dims: [16] allow_ragged_batch: true"), None,
        "unable to load model 'bad_ragged', input 'x': the backend 'openvino' does not support allow_ragged_batch",
    ),
    "bad_batch_input": (
        BATCH + DENSE + 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 source_input: "x" }\n', None,
        "unable to load model 'bad_batch_input': the backend 'openvino' does not support batch_input",
    ),
    "bad_batch_output": (
        BATCH + DENSE + 'batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "logits" source_input: "x" }\n', None,
        "unable to load model 'bad_batch_output': the backend 'openvino' does not support batch_output",
    ),
    "bad_controls": (
        BATCH + DENSE + 'sequence_batching { control_input { name: "start" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } } }\n', None,
        "unable to load model 'bad_controls': the backend 'openvino' does not support control_input",
    ),
    "bad_states": (
        BATCH + DENSE + 'sequence_batching { state { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: [ 1 ] } }\n', None,
        "unable to load model 'bad_states': the backend 'openvino' does not support state",
    ),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("openvino") / "models")
    write_models(made)
    onnx_models.save(onnx_models.identity("BYTES", ["n"]), made.model("bad_onnx_strings", AS_ONNX))
    for name, (text, harm, _error) in BAD.items():
        folder = made.model(name, text)
        openvino_oracle.save_ir(onnx_models.dense(), folder)
        if harm:
            harm(folder)
    return made


@pytest.fixture(scope="module", params=BOTH)
def served(request: pytest.FixtureRequest, repository: Repository) -> Iterator[Server]:
    names = sorted(path.name for path in repository.path.iterdir() if not path.name.startswith("bad_"))
    with KINDS[request.param](repository.path, {"model-control-mode": "explicit", "load-model": names}) as server:
        yield server


def dense_answers(repository: Repository, rows: np.ndarray) -> np.ndarray:
    return openvino_oracle.answers(repository.path / "dense" / "1" / "model.xml", {"x": rows})["logits"]


# Data types


@PROTOCOLS
@pytest.mark.parametrize("datatype", NUMBERS)
def test_datatype(served: Server, protocol: str, datatype: str) -> None:
    data = arrays.edges(datatype).reshape(2, 3)
    if datatype == "INT64":  # which OpenVINO computes with 32 bits on CPU, called directly too
        data = arrays.edges("INT32").reshape(2, 3).astype(np.int64)
    found = ask(served, protocol, f"type_{datatype.lower()}", {"x": data})["y"]
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data)


@pytest.mark.parametrize(("datatype", "computed"), [("INT64", "INT32"), ("UINT32", "INT32"), ("UINT64", "INT32"), ("FP64", "FP32")])
def test_a_data_type_that_is_computed_as_a_smaller_one_is_named_in_the_log(served: Server, datatype: str, computed: str) -> None:
    for kind, name in (("input", "x"), ("output", "y")):
        said = f"model 'type_{datatype.lower()}', {kind} '{name}': OpenVINO computes TYPE_{datatype} as {computed}, values that do not fit come out wrong"
        assert served.process.log().count(said) == 1
    assert "model 'type_fp32', " not in served.process.log()


def test_bf16(served: Server) -> None:
    raw = np.array([0, 1, -2, 0.5, 256, -0.125], np.float32).view(np.uint16)[1::2].tobytes()
    request = rawgrpc.infer_request("type_bf16", [("x", "BF16", [2, 3], raw)])
    with rawgrpc.Channel(served.grpc) as channel:
        message = channel.call("ModelInfer", request).parse(pb.ModelInferResponse)
    assert (message.outputs[0].datatype, list(message.outputs[0].shape)) == ("BF16", [2, 3])
    assert message.raw_output_contents[0] == raw


def test_strings_are_refused(served: Server) -> None:
    status, error = load(served, "bad_onnx_strings")
    assert status == 400
    assert "unsupported datatype" in error and "'x'" in error


@PROTOCOLS
def test_the_runtime_converts_between_types(served: Server, repository: Repository, protocol: str) -> None:
    rows = np.random.default_rng(1).integers(-5, 5, (3, 16), dtype=np.int32)
    found = ask(served, protocol, "converted", {"x": rows})["logits"]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, dense_answers(repository, rows.astype(np.float32)), rtol=2e-3, atol=2e-3)


# Batches


@PROTOCOLS
@pytest.mark.parametrize("model", ["dense_many", *(f"with_{name}" for name in SETTINGS)])
def test_batches_of_every_size(served: Server, repository: Repository, protocol: str, model: str) -> None:
    batches.are_right_in_every_size(served, protocol, model, "logits", lambda rows: dense_answers(repository, rows))


def test_an_optional_input(served: Server, repository: Repository) -> None:
    batches.need_an_optional_input(served, "openvino", "optional_input", "logits", lambda rows: dense_answers(repository, rows))


@pytest.mark.parametrize("model", ["dense", "dense_many"])
def test_each_request_gets_its_rows(served: Server, repository: Repository, model: str) -> None:
    batches.give_each_request_its_rows(served, model, "logits", lambda rows: dense_answers(repository, rows), model == "dense")


def test_a_fixed_batch_wants_all_its_rows(served: Server, repository: Repository) -> None:
    rows = np.random.default_rng(7).standard_normal((16, 16)).astype(np.float32)
    np.testing.assert_allclose(ask(served, "grpc", "fixed", {"x": rows})["logits"], dense_answers(repository, rows), atol=1e-5)
    with pytest.raises(grpcclient.InferenceServerException) as refused:
        ask(served, "grpc", "fixed", {"x": rows[:3]})
    assert refused.value.message() == (
        "expected requests with batch size '16', got '3'... this error can be avoided by setting 'ENABLE_BATCH_PADDING' parameter in "
        "model configuration to 'YES' at a performance cost."
    )


@PROTOCOLS
def test_a_fixed_batch_is_padded_where_allowed(served: Server, repository: Repository, protocol: str) -> None:
    rows = np.random.default_rng(9).standard_normal((16, 16)).astype(np.float32)
    for size in (3, 16, 1):
        found = ask(served, protocol, "padded", {"x": rows[:size]})["logits"]
        np.testing.assert_allclose(found, dense_answers(repository, rows[:size]), atol=1e-5)


def test_a_batch_of_one_in_the_file_becomes_any(served: Server) -> None:
    for size in (1, 4, 2):
        inputs = {name: np.full((size, 3), value, np.float32) for name, value in (("a", 5), ("b", 2))}
        found = ask(served, "grpc", "rebatched", inputs)
        assert found["difference"].tolist() == [[3, 3, 3]] * size


# Shapes


@PROTOCOLS
def test_several_inputs_and_outputs(served: Server, protocol: str) -> None:
    inputs = {"b": np.array([[1, 2, 3, 4]], np.float32), "a": np.array([[10, 20, 30, 40]], np.float32)}
    for _ in range(3):  # the second time the runtime writes into the response itself
        found = ask(served, protocol, "add_sub", inputs)
        assert found["sum"].tolist() == [[11, 22, 33, 44]]
        assert found["difference"].tolist() == [[9, 18, 27, 36]]
        assert list(ask(served, protocol, "add_sub", inputs, outputs=["difference"])) == ["difference"]


@PROTOCOLS
@pytest.mark.parametrize("values", [[0, 1, 0, 2, 3], [0, 0], [4]])
def test_a_shape_that_the_contents_decide(served: Server, protocol: str, values: list[int]) -> None:
    found = ask(served, protocol, "non_zero", {"x": np.array(values, np.int32)})["where"]
    expected = np.flatnonzero(values).reshape(1, -1)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@PROTOCOLS
def test_scalar(served: Server, protocol: str) -> None:
    for _ in range(2):
        assert ask(served, protocol, "scalar", {"x": np.array([21], np.float32)})["y"].tolist() == [42]


@PROTOCOLS
def test_empty_tensor(served: Server, protocol: str) -> None:
    assert ask(served, protocol, "type_fp32", {"x": np.zeros((2, 0), np.float32)})["y"].shape == (2, 0)


@PROTOCOLS
def test_16_mib(served: Server, protocol: str) -> None:
    data = np.random.default_rng(2).standard_normal((1, 1 << 22)).astype(np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(ask(served, protocol, "type_fp32", {"x": data})["y"], data)


@PROTOCOLS
def test_reshape(served: Server, repository: Repository, protocol: str) -> None:
    rows = np.random.default_rng(4).standard_normal((3, 16)).astype(np.float32)
    found = ask(served, protocol, "reshaped", {"x": rows.reshape(3, 4, 4)})["logits"]
    np.testing.assert_allclose(found, dense_answers(repository, rows).reshape(3, 2, 4), atol=1e-5)


def test_shapes_of_the_configuration(served: Server) -> None:
    for count in (1, 3):
        inputs = {name: np.full((count, 5), value, np.float32) for name, value in (("a", 5), ("b", 2))}
        assert ask(served, "grpc", "new_shapes", inputs)["sum"].tolist() == [[7] * 5] * count


def test_an_output_without_its_rows(served: Server) -> None:
    """Runs that keep the declared shape make the backend rely on it; then come runs that do not."""
    x = np.array([[1, 2], [3, 4]], np.float32)
    whole, part = ({"x": x, "flag": np.array([[True], [last]])} for last in (True, False))
    for _ in range(2):
        for _ in range(3):
            assert ask(served, "grpc", "keeps_flagged", whole)["y"].tolist() == x.tolist()
        with pytest.raises(grpcclient.InferenceServerException, match="expected batch size of 2 in model output, got 1"):
            ask(served, "grpc", "keeps_flagged", part)


@PROTOCOLS
@pytest.mark.parametrize("model", ["counter", "counter_many", "counter_misnamed"])
def test_no_request_sees_the_state_that_another_left(served: Server, protocol: str, model: str) -> None:
    for value in (1000, 0, 0, 5, 0):
        assert ask(served, protocol, model, {"x": np.array([[value]], np.float32)})["y"].tolist() == [[value]]
    assert f"model '{model}' has a state: each run begins with the one that the file has" in served.process.log()


# Configurations


def _tensors(found: dict[str, Any], kind: str) -> list[tuple[str, str, list[int]]]:
    return [(each["name"], each["data_type"], [int(dim) for dim in each["dims"]]) for each in found[kind]]


def test_a_bare_file_serves(served: Server) -> None:
    """MC-36: names, data types and shapes are the file's; without a layout nothing says that it can batch."""
    found = config(served, "bare")
    assert (found["backend"], found["max_batch_size"]) == ("openvino", 0)
    assert _tensors(found, "input") == [("x", "TYPE_FP32", [-1, 16])]
    assert _tensors(found, "output") == [("logits", "TYPE_FP32", [-1, 8])]
    assert "dynamic_batching" not in found
    assert _tensors(config(served, "unbatched"), "output") == [
        ("sum", "TYPE_FP32", [2, 3]), ("difference", "TYPE_FP32", [2, 3]),
    ]
    assert _tensors(config(served, "dense"), "input") == [("x", "TYPE_FP32", [16])]


@pytest.mark.parametrize("model", LAYOUTS)
def test_the_layout_says_whether_a_model_can_batch(served: Server, model: str) -> None:
    """Every input and output has to have the batch first."""
    found = config(served, model)
    batches = model == "layout_batch"
    assert (found["max_batch_size"], "dynamic_batching" in found) == ((4, True) if batches else (0, False))
    assert _tensors(found, "input")[0] == ("a", "TYPE_FP32", [4] if batches else [-1, 4])


@pytest.mark.parametrize("name", BAD)
def test_refuses_and_says_why(served: Server, name: str) -> None:
    status, error = load(served, name)
    assert status == 400
    assert BAD[name][2] in error


def test_a_batch_dimension_that_is_listed_beside_one_that_is_filled_in(served: Server, repository: Repository) -> None:
    folder = repository.model("bad_filled_in", OPENVINO + tensor("output", "logits", "FP32", [-1, 8]))
    openvino_oracle.save_ir(onnx_models.dense(), folder, "NC", "NC")
    status, error = load(served, "bad_filled_in")
    assert status == 400
    assert "an initial batch dimension because max_batch_size was not given and has been filled in" in error
    assert "leave the batch dimension out of dims, or list inputs and outputs both" in error


def test_a_setting_of_the_command_line_that_is_wrong_is_named(repository: Repository) -> None:
    options = {"model-control-mode": "explicit", "backend-config": "openvino,default-max-batch-size=two"}
    with Nereid(repository.path, options) as server:
        status, error = load(server, "dense")
    assert status == 400
    assert "backend 'openvino', setting 'default-max-batch-size': failed to convert 'two' to integral number" in error


def test_a_setting_of_the_command_line_that_nobody_reads_is_told(repository: Repository) -> None:
    with Nereid(repository.path, {"model-control-mode": "explicit", "backend-config": "openvino,default-max-batchsize=2"}) as server:
        assert load(server, "dense") == (200, "")
        assert "the setting 'default-max-batchsize' of backend 'openvino' is unknown and has no effect" in server.process.log()


def test_a_parameter_without_effect_is_told_once_with_its_model(repository: Repository) -> None:
    with Nereid(repository.path, {"model-control-mode": "explicit"}) as server:
        assert load(server, "with_threads") == (200, "")
        told = [line for line in server.process.log().splitlines() if "COMPILATION_NUM_THREADS has no effect" in line]
    assert len(told) == 1 and "model 'with_threads'" in told[0], told


def test_a_gpu_instance_is_refused(served: Server, repository: Repository) -> None:
    folder = repository.model("bad_gpu", OPENVINO + "max_batch_size: 4\ninstance_group { kind: KIND_MODEL }\n" + DENSE)
    openvino_oracle.save_ir(onnx_models.dense(), folder)
    status, error = load(served, "bad_gpu")
    assert status == 400
    assert "unable to load model 'bad_gpu', Triton OpenVINO backend supports only Kind CPU and AUTO" in error


# Life


def test_loading_and_unloading_leaves_nothing(repository: Repository) -> None:
    loads_and_unloads(repository.path, "dense_many", {"x": np.ones((2, 16), np.float32)})
