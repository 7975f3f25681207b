"""The backend `tensorflow`, in this server and, as the same file, in the reference: GraphDef and SavedModel files, every data type, batches,
shapes, signatures, sessions, what does not load. What is right is what NumPy computes, or TensorFlow when it is called directly."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import arrays, rawgrpc, rawhttp, together
from harness.arrays import TYPES
from harness.repository import Repository, config_type
from harness.servers import KINDS, Nereid, Server
from tritonclient.grpc import service_pb2 as pb

import batches
import tensorflow_files as files
import tensorflow_oracle
from clients import PROTOCOLS, ask, at_once, config, load, loads_and_unloads, parameters, tensor

GRAPH, SAVED = 'platform: "tensorflow_graphdef"\n', 'platform: "tensorflow_savedmodel"\n'
DYNAMIC = "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 500000 }\n"
FOUR = "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 600000000 }\n"  # together, or not at all
BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
DENSE = tensor("input", "x", "FP32", [16]) + tensor("output", "logits", "FP32", [8])
OPTIONAL = tensor("input", "x", "FP32", [-1, 16], "optional: true")
X_AND_Y = tensor("input", "x", "FP32", [-1]) + tensor("output", "y", "FP32", [-1])
COUNTER = tensor("input", "x", "FP32", [1]) + tensor("output", "y", "FP32", [1])
INIT = parameters({"TF_INIT_OPS_FILE": "init_ops.json"})
TWO = "instance_group { count: 2 kind: KIND_CPU }\n"
STATES = (
    'sequence_batching {\n  max_sequence_idle_microseconds: 600000000\n  control_input { name: "start" control { kind: CONTROL_SEQUENCE_START bool_false_true: [ false, true ] } }\n'
    '  state { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 1 ] }\n}\n'
)
SETTINGS = {
    "threads": {"TF_NUM_INTRA_THREADS": "1", "TF_NUM_INTER_THREADS": "1", "TF_USE_PER_SESSION_THREADS": "yes"},
    "own": {"TF_NUM_INTRA_THREADS": "0", "TF_NUM_INTER_THREADS": "-1", "TF_USE_PER_SESSION_THREADS": "On"},
    "off": {"TF_USE_PER_SESSION_THREADS": "false", "MAX_SESSION_SHARE_COUNT": "3"},
}
LEVELS = {"level_off": -1, "level_usual": 0}


def accelerated(text: str) -> str:
    return f"optimization {{ execution_accelerators {{ {text} }} }}\n"


def typed(datatype: str) -> str:
    of = config_type(datatype).removeprefix("TYPE_")
    return tensor("input", "x", of, [-1, -1]) + tensor("output", "y", of, [-1, -1])


def ragged(datatype: str) -> str:
    text = "max_batch_size: 16\ninstance_group { count: 1 kind: KIND_CPU }\n" + FOUR
    text += tensor("input", "x", "FP32", [-1, -1], "allow_ragged_batch: true") + tensor("output", "y", "FP32", [-1, -1])
    for name, kind in files.COMPUTED.items():
        text += f'batch_input {{ kind: {kind} target_name: "{name}" data_type: TYPE_{datatype} source_input: "x" }}\n'
    text += 'batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }\n'
    text += "".join(tensor("output", f"y_{name}", datatype, [1]) for name in ("count", "sum", "before"))
    text += "".join(tensor("output", f"y_{name}", datatype, [-1]) for name in ("shape", "flat"))
    return text + tensor("output", "y_longest", "INT32", [1])


def write_types(made: Repository) -> None:
    for datatype in [*arrays.NUMPY, "BF16"]:
        graph = files.same(datatype, [-1, -1])
        files.save_graph(graph, made.model(f"graph_{datatype.lower()}", GRAPH + typed(datatype)))
        inputs, outputs = ({name: (f"{name}:0", datatype, [-1, -1])} for name in ("x", "y"))
        files.save(graph, made.model(f"saved_{datatype.lower()}", SAVED + typed(datatype)), inputs, outputs)


def write_dense(made: Repository) -> None:
    graph = files.dense_graph()
    rows = f"max_batch_size: 16\n{DENSE}"
    files.save_graph(graph, made.model("dense", GRAPH + rows + DYNAMIC))
    files.save_graph(graph, made.model("optional_input", GRAPH + OPTIONAL + tensor("output", "logits", "FP32", [-1, 8])))
    files.save_graph(graph, made.model("dense_many", GRAPH + rows + TWO))
    named = f'backend: "tensorflow"\ndefault_model_filename: "model.graphdef"\n{rows}'
    files.save_graph(graph, made.model("dense_backend", named))
    files.save_graph(graph, made.model("dense_renamed", f'{GRAPH}default_model_filename: "other.pb"\n{rows}'), "other.pb")
    files.save(graph, made.model("saved_dense", SAVED + rows + DYNAMIC), *files.DENSE)
    files.save(graph, made.model("saved_many", SAVED + rows + TWO), *files.DENSE)
    files.save(graph, made.model("placed", SAVED + rows + "instance_group { kind: KIND_MODEL }\n"), *files.DENSE)
    for name, values in SETTINGS.items():
        files.save(graph, made.model(f"with_{name}", SAVED + rows + TWO + parameters(values)), *files.DENSE)
    for name, level in LEVELS.items():
        files.save_graph(graph, made.model(name, f"{GRAPH}{rows}optimization {{ graph {{ level: {level} }} }}\n"))
    tensorrt = 'gpu_execution_accelerator { name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } }, { name: "gpu_io" }'
    files.save_graph(graph, made.model("for_gpus", GRAPH + rows + accelerated(tensorrt.replace("gpu_execution_accelerator {", "gpu_execution_accelerator: [ {") + " ]")))
    wide = tensor("input", "x", "FP32", [4, 4], "reshape: { shape: [ 16 ] }")
    wide += tensor("output", "logits", "FP32", [2, 4], "reshape: { shape: [ 8 ] }")
    files.save(graph, made.model("reshaped", f"{SAVED}max_batch_size: 4\n{wide}"), *files.DENSE)


def write_others(made: Repository) -> None:
    files.save(files.add_sub(), made.model("add_sub", None), *files.ADD_SUB)
    partly = 'instance_group { kind: KIND_CPU }\nmax_batch_size: 3\ninput { name: "b" }\noutput { name: "difference" }\n'
    files.save(files.add_sub(), made.model("partly", SAVED + partly), *files.ADD_SUB)
    whole = tensor("input", "a", "FP32", [-1, 4])
    files.save(files.add_sub(), made.model("unbatched", SAVED + whole), *files.ADD_SUB)
    files.save(files.halves(), made.model("halves", None), *files.HALVES)
    files.save(files.words(), made.model("words", SAVED + "max_batch_size: 8\n" + "dynamic_batching { max_queue_delay_microseconds: 50000 }\n"), *files.WORDS)
    files.save_graph(files.where(), made.model("where", GRAPH + tensor("input", "x", "INT32", [-1]) + tensor("output", "places", "INT64", [-1, 1])))
    scalar = {name: (f"{name}:0", "FP32", []) for name in ("x", "y")}
    files.save(files.scalars(), made.model("scalar", None), {"x": scalar["x"]}, {"y": scalar["y"]})
    called = {"x": ("serving_x:0", "FP32", [-1])}, {"y": ("StatefulPartitionedCall:0", "FP32", [-1])}
    files.save(files.in_function(), made.model("in_function", SAVED + X_AND_Y), *called)
    images = tensor("input", "image", "FP32", [12, 12, 3]) + tensor("output", "probabilities", "FP32", [5])
    files.save_graph(files.convolutions(), made.model("convolutions", f"{GRAPH}max_batch_size: 4\n{images}"))
    files.save_with_variable(made.model("variable", None), 2.5)
    for name, more in {"several": "", "threefold": "TF_SIGNATURE_DEF threefold", "negative": "TF_GRAPH_TAG negative"}.items():
        files.several(made.model(name, SAVED + X_AND_Y + parameters(dict([more.split()]) if more else {})))
    for name, share, where in (("counter", 1, "1"), ("counter_shared", 2, "")):
        more = parameters({"MAX_SESSION_SHARE_COUNT": str(share)}) + (TWO if share == 2 else "instance_group { count: 1 kind: KIND_CPU }\n")
        folder = made.model(name, GRAPH + COUNTER + INIT + more)
        files.save_graph(files.counter(), folder)
        (folder / where / "init_ops.json").write_text(json.dumps({"init_ops": ["init"]}))
    for datatype, first in (("BYTES", np.array([b"none"], object)), ("FP32", np.zeros(1, np.float32))):
        of = config_type(datatype).removeprefix("TYPE_")
        last = tensor("input", "x", of, [-1]) + tensor("output", "y", of, [-1])
        folder = made.model(f"keeps_{datatype.lower()}", GRAPH + last + INIT + "instance_group { count: 1 kind: KIND_CPU }\n")
        files.save_graph(files.keeps_last(datatype, first), folder)
        (folder / "1" / "init_ops.json").write_text(json.dumps({"init_ops": ["init"]}))
    files.save(*_reordered(files.lists_of_unknown_shape(), made.model("unknown_shape", SAVED + X_AND_Y)))
    text = tensor("input", "x", "FP32", [-1, -1, -1]) + tensor("output", "y", "INT32", [-1, -1])
    text += 'batch_input { kind: BATCH_ITEM_SHAPE target_name: "shape" data_type: TYPE_INT32 source_input: "x" }\n'
    files.save_graph(files.shapes(), made.model("shapes", GRAPH + text))
    files.save_graph(files.ragged("INT32")[0], made.model("ragged_graph", GRAPH + ragged("INT32")))
    files.save(*_reordered(files.ragged("FP32"), made.model("ragged_saved", SAVED + ragged("FP32"))))
    total = tensor("input", "x", "FP32", [1]) + tensor("output", "total", "FP32", [1])
    files.save_graph(files.sums(), made.model("sums", f"{GRAPH}max_batch_size: 4\n{total}{STATES}"))
    chain = tensor("input", "x", "FP32", [16]) + tensor("output", "y", "FP32", [16])
    files.save_graph(files.chain(), made.model("compiled", f"{GRAPH}max_batch_size: 4\n{chain}optimization {{ graph {{ level: 1 }} }}\n"))


def _reordered(made: tuple[Any, Any, Any], folder: Path) -> tuple[Any, Path, Any, Any]:
    graph, inputs, outputs = made
    return graph, folder, inputs, outputs


def _no_file(folder: Path) -> None:
    (folder / "1" / "model.graphdef").unlink()


def _content(content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "1" / "model.graphdef").write_bytes(content)

    return write


def _half(folder: Path) -> None:
    file = folder / "1" / "model.graphdef"
    file.write_bytes(file.read_bytes()[:200])


def _half_saved(folder: Path) -> None:
    file = folder / "1" / "model.savedmodel" / "saved_model.pb"
    file.write_bytes(file.read_bytes()[:200])


def _pipe(folder: Path, file: str = "saved_model.pb") -> None:
    path = folder / "1" / "model.savedmodel" / file
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)


def _no_operation(folder: Path) -> None:
    graph = files.Graph()
    graph.add("logits", "NobodyKnowsThis", [graph.input("x", "FP32", [-1, 16])])
    files.save_graph(graph, folder)


def _unknown(folder: Path) -> None:
    files.save(*_reordered(files.lists_of_unknown_shape(), folder))


def _two_names(folder: Path) -> None:
    """Of one tensor, which is written in two ways."""
    files.save(files.same("FP32", [-1]), folder, {"a": ("x:0", "FP32", [-1]), "b": ("x", "FP32", [-1])}, {"y": ("y:0", "FP32", [-1])})


def _joined(folder: Path) -> None:
    graph = files.Graph()
    graph.add("after", "StringJoin", [graph.input("before", "BYTES", [-1]), graph.input("x", "BYTES", [-1])], N=files.whole(2))
    graph.add("y", "Identity", ["after"], T=files.kind("BYTES"))
    files.save_graph(graph, folder)


def _fixed_batch(folder: Path) -> None:
    graph = files.same("FP32", [2, 4])
    files.save(graph, folder, {"x": ("x:0", "FP32", [2, 4])}, {"y": ("y:0", "FP32", [2, 4])})


def _complex(folder: Path) -> None:
    """Of a type that the protocol does not have."""
    files.save(files.dense_graph(), folder, {"x": ("x:0", "COMPLEX64", [-1, 16])}, {"logits": ("logits:0", "FP32", [-1, 8])})


def _init_ops(content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "init_ops.json").write_text(content) and None


def _climbs(folder: Path) -> None:
    """From the version's directory the name leads to the folder that holds the repository."""
    (folder.parent.parent / "outside.json").write_text('{"init_ops": ["logits"]}')


def _directory(folder: Path) -> None:
    _no_file(folder)
    (folder / "1" / "model.graphdef").mkdir()


def _library(folder: Path) -> None:
    (folder / "ops.so").write_bytes(b"no library")


ROWS = "max_batch_size: 4\n"
CONVERTED = tensor("input", "x", "INT32", [16]) + tensor("output", "logits", "FP32", [8])
PLACED = "instance_group { kind: KIND_MODEL }\n"
TENSORRT = 'gpu_execution_accelerator { name: "tensorrt" %s }'
# What does not load: its configuration, what happens to its files, what the error says.
BAD: dict[str, tuple[str, Any, str]] = {
    "bad_absent": (GRAPH + ROWS + DENSE, _no_file, "model.graphdef"),
    "bad_directory": (GRAPH + ROWS + DENSE, _directory, "model.graphdef' of model 'bad_directory' is not a regular file"),
    "bad_noise": (GRAPH + ROWS + DENSE, _content(b"\xff" * 100), "tensorflow error in loading model 'bad_noise': "),
    "bad_empty": (GRAPH + ROWS + DENSE, _content(b""), "model 'bad_empty' has an empty network"),
    "bad_half": (GRAPH + ROWS + DENSE, _half, "tensorflow error in loading model 'bad_half': "),
    "bad_half_saved": (SAVED + ROWS + DENSE, _half_saved, "tensorflow error in loading model 'bad_half_saved': "),
    "bad_pipe": (SAVED + ROWS + DENSE, _pipe, "/1/model.savedmodel/saved_model.pb' of model 'bad_pipe' is not a regular file"),
    "bad_pipe_below": (
        SAVED + ROWS + DENSE, lambda folder: _pipe(folder, "variables/variables.index"),
        "/1/model.savedmodel/variables/variables.index' of model 'bad_pipe_below' is not a regular file",
    ),
    "bad_operation": (GRAPH + ROWS + DENSE, _no_operation, "NobodyKnowsThis"),
    "bad_bare": (GRAPH, None, "a GraphDef does not say what its inputs and outputs are, so config.pbtxt has to list them"),
    "bad_name": (GRAPH + ROWS + DENSE.replace('"x"', '"z"'), None, "unexpected inference input 'z', allowed inputs are: x"),
    "bad_name_saved": (SAVED + ROWS + DENSE.replace('"x"', '"z"'), None, "unexpected inference input 'z', allowed inputs are: x"),
    "bad_output": (GRAPH + ROWS + DENSE.replace("logits", "q"), None, "unexpected inference output 'q', allowed outputs are: "),
    "bad_output_saved": (SAVED + ROWS + DENSE.replace("logits", "q"), None, "unexpected inference output 'q', allowed outputs are: logits"),
    "bad_count": (
        SAVED + DENSE.replace("[16]", "[-1, 16]").replace("[8]", "[-1, 8]") + tensor("input", "logits", "FP32", [1]), None,
        "unexpected inference input 'logits', allowed inputs are: x",
    ),
    "bad_type": (
        GRAPH + ROWS + CONVERTED, None,
        "unable to load model 'bad_type', configuration expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32",
    ),
    "bad_type_saved": (
        SAVED + ROWS + DENSE.replace('"logits" data_type: TYPE_FP32', '"logits" data_type: TYPE_STRING'), None,
        "unable to load model 'bad_type_saved', configuration expects datatype TYPE_STRING for output 'logits', model provides TYPE_FP32",
    ),
    "bad_dims": (
        SAVED + ROWS + DENSE.replace("[16]", "[17]"), None,
        "model 'bad_dims', tensor 'x': the model expects 2 dimensions (shape [-1,16]) but the model configuration specifies 2 "
        "dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete "
        "shape [-1,17])",
    ),
    "bad_unknown": (
        SAVED, _unknown, "Unable to autofill for 'bad_unknown': the shape of model tensor 'x' is not known and dimensions are not defined",
    ),
    "bad_batch": (
        SAVED + ROWS, _fixed_batch,
        "unable to autofill for 'bad_batch', configuration specified max-batch 4 but model signature does not support batching",
    ),
    "bad_hints": (
        SAVED + DENSE.replace("[8]", "[-1, 8]"), None,
        "unable to autofill for 'bad_hints', model tensor configurations are contradicting each other in terms of whether batching is supported",
    ),
    "bad_complex": (SAVED, _complex, "unable to process tensor 'x' for 'bad_complex', unsupported datatype: type 8 of TensorFlow"),
    "bad_control": (
        SAVED + ROWS + DENSE + STATES, None, "configuration specified sequence control 'start', but model does not provide that input",
    ),
    "bad_state": (
        GRAPH + tensor("input", "x", "STRING", [-1]) + tensor("output", "y", "STRING", [-1])
        + "sequence_batching { state { input_name: 'before' output_name: 'after' data_type: TYPE_STRING dims: [ 1 ] } }\n", _joined,
        "unable to load model 'bad_state': the state of output 'after' is TYPE_STRING, which is not supported",
    ),
    "bad_two_names": (SAVED, _two_names, "unable to load model 'bad_two_names': the inputs 'a' and 'b' are one tensor of the graph, 'x'"),
    "bad_signature": (
        SAVED + ROWS + DENSE + parameters({"TF_SIGNATURE_DEF": "none"}), None,
        "unable to load model 'bad_signature', expected 'none' signature",
    ),
    "bad_tag": (SAVED + ROWS + DENSE + parameters({"TF_GRAPH_TAG": "none"}), None, "tensorflow error in loading model 'bad_tag': "),
    "bad_share": (
        SAVED + ROWS + DENSE + parameters({"MAX_SESSION_SHARE_COUNT": "0"}), None,
        "parameter 'MAX_SESSION_SHARE_COUNT' must be positive number for TensorFlow model 'bad_share'",
    ),
    "bad_threads": (
        SAVED + ROWS + DENSE + parameters({"TF_NUM_INTRA_THREADS": "-1"}), None,
        "parameter 'TF_NUM_INTRA_THREADS' must be non-negative number for TensorFlow model 'bad_threads'",
    ),
    "bad_number": (
        SAVED + ROWS + DENSE + parameters({"TF_NUM_INTER_THREADS": "many"}), None,
        "model 'bad_number', parameter 'TF_NUM_INTER_THREADS': failed to convert 'many' to integral number",
    ),
    "bad_many_threads": (
        GRAPH + ROWS + DENSE + parameters({"TF_NUM_INTRA_THREADS": "1025"}), None,
        "model 'bad_many_threads', parameter 'TF_NUM_INTRA_THREADS': 1025 threads are asked for, at most 1024 are supported",
    ),
    "bad_own": (
        SAVED + ROWS + DENSE + parameters({"TF_USE_PER_SESSION_THREADS": "2"}), None,
        "model 'bad_own', parameter 'TF_USE_PER_SESSION_THREADS': failed to convert '2' to boolean",
    ),
    "bad_init_absent": (GRAPH + ROWS + DENSE + INIT, None, "TF_INIT_OPS_FILE '"),
    "bad_init_pipe": (
        GRAPH + ROWS + DENSE + INIT, lambda folder: os.mkfifo(folder / "init_ops.json"),
        "bad_init_pipe/init_ops.json' of model 'bad_init_pipe' is not a regular file",
    ),
    "bad_init_directory": (
        GRAPH + ROWS + DENSE + parameters({"TF_INIT_OPS_FILE": "."}), None,
        "unable to load model 'bad_init_directory', TF_INIT_OPS_FILE '.': '",
    ),
    "bad_init_climbs": (
        GRAPH + ROWS + DENSE + parameters({"TF_INIT_OPS_FILE": "../../../outside.json"}), _climbs,
        "unable to load model 'bad_init_climbs', TF_INIT_OPS_FILE '../../../outside.json': it must stay inside the model's directory",
    ),
    "bad_init_list": (GRAPH + ROWS + DENSE + INIT, _init_ops("{}"), "expected a list 'init_ops' in it"),
    "bad_init": (
        GRAPH + ROWS + DENSE + INIT, _init_ops('{"init_ops": ["begin"]}'),
        "'init_ops.json' names the operation 'begin', which the graph does not have",
    ),
    "bad_library": (
        GRAPH + ROWS + DENSE + 'model_operations { op_library_filename: "ops.so" }\n', _library,
        "tensorflow error in loading a library of operations for model 'bad_library': ",
    ),
    "bad_on_cpu": (
        GRAPH + ROWS + DENSE + accelerated('cpu_execution_accelerator { name: "openvino" }'), None,
        "CPU Execution Accelerator is not supported in TensorFlow backend",
    ),
    "bad_accelerator": (
        GRAPH + ROWS + DENSE + accelerated('gpu_execution_accelerator { name: "toaster" }'), None,
        "unknown Execution Accelerator 'toaster' is requested",
    ),
    "bad_precision": (
        GRAPH + ROWS + DENSE + accelerated(TENSORRT % 'parameters { key: "precision_mode" value: "INT4" }'), None,
        "unsupported precision mode 'INT4' is requested",
    ),
    "bad_parameter": (
        GRAPH + ROWS + DENSE + accelerated(TENSORRT % 'parameters { key: "colour" value: "red" }'), None,
        "unknown parameter 'colour' is provided for TensorRT Execution Accelerator",
    ),
    "bad_engines": (
        GRAPH + ROWS + DENSE + accelerated(TENSORRT % 'parameters { key: "max_cached_engines" value: "some" }'), None,
        "parameter 'max_cached_engines' of the TensorRT Execution Accelerator: expected a number from 0 on",
    ),
    "bad_tensorrt": (
        GRAPH + ROWS + DENSE + PLACED + accelerated(TENSORRT % ""), None,
        "the Execution Accelerator 'tensorrt' needs a TensorFlow that has TensorRT inside, which this one, 2.18.0, has not",
    ),
    "bad_ragged": (
        SAVED + ROWS + DENSE.replace("dims: [16]", "dims: [-1] allow_ragged_batch: true"), None,
        "configuration expects model provides input with shape [-1] for ragged input 'x', model provides [-1,16]",
    ),
    "bad_computed": (
        SAVED + ROWS + DENSE + 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_INT32 source_input: "x" }\n', None,
        "unable to load model 'bad_computed', batch_input names 'n', which the model does not have",
    ),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("tensorflow") / "models")
    write_types(made)
    write_dense(made)
    write_others(made)
    for name, (text, harm, _error) in BAD.items():
        folder = made.model(name, text)
        if SAVED in text:
            files.save(files.dense_graph(), folder, *files.DENSE)
        else:
            files.save_graph(files.dense_graph(), folder)
        if harm:
            harm(folder)
    return made


@pytest.fixture(scope="module", params=BOTH)
def served(request: pytest.FixtureRequest, repository: Repository) -> Iterator[Server]:
    names = sorted(path.name for path in repository.path.iterdir() if not path.name.startswith("bad_"))
    with KINDS[request.param](repository.path, {"model-control-mode": "explicit", "load-model": names}) as server:
        yield server


# Data types


@PROTOCOLS
@pytest.mark.parametrize("datatype", TYPES)
@pytest.mark.parametrize("form", ["graph", "saved"])
def test_datatype(served: Server, protocol: str, form: str, datatype: str) -> None:
    """Each comes back as it went in."""
    data = arrays.edges(datatype).reshape(2, 3)
    found = ask(served, protocol, f"{form}_{datatype.lower()}", {"x": data})["y"]
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data)


def test_bf16(served: Server) -> None:
    raw = np.array([0, 1, -2, 0.5, 256, -0.125], np.float32).view(np.uint16)[1::2].tobytes()
    request = rawgrpc.infer_request("graph_bf16", [("x", "BF16", [2, 3], raw)])
    with rawgrpc.Channel(served.grpc) as channel:
        message = channel.call("ModelInfer", request).parse(pb.ModelInferResponse)
    assert (message.outputs[0].datatype, list(message.outputs[0].shape)) == ("BF16", [2, 3])
    assert message.raw_output_contents[0] == raw


@PROTOCOLS
def test_strings_in_batches(served: Server, protocol: str) -> None:
    """Several clients at once, each with rows of its own; one of them sends what are no strings, and only that one is told so."""
    texts = [[b"", b"abc"], [b"\xc3\xbc", b"x" * 1000], [b"one", b"TWO"]]

    def one(index: int) -> None:
        rows = np.array(texts[: index % 3 + 1], object)
        if index == 3:
            answer = rawhttp.post(served.http, "/v2/models/words/infer", {"inputs": [
                {"name": "x", "datatype": "BYTES", "shape": [1, 2], "data": ["a"]}]})
            assert answer.status == 400
            return
        found = ask(served, protocol, "words", {"x": rows})
        assert found["upper"].tolist() == [[each.upper() for each in row] for row in rows.tolist()]
        assert found["length"].tolist() == [[len(each) for each in row] for row in rows.tolist()]

    at_once(8, one)


def test_what_a_variable_keeps(served: Server) -> None:
    """Of a request outlives it, long strings too."""
    words, numbers = [b"none"], [0]
    for index in range(6):
        for model, before, now in (
            ("keeps_bytes", words, [bytes([97 + index]) * 300, b"short"]), ("keeps_fp32", numbers, [float(index + each) for each in range(50)])
        ):
            array = np.array(now, object if model == "keeps_bytes" else np.float32)
            assert ask(served, "grpc", model, {"x": array})["y"].tolist() == before
            before[:] = now


# Batches


@PROTOCOLS
@pytest.mark.parametrize("model", ["dense_many", "saved_many", "dense_backend", "dense_renamed", "placed", "for_gpus", *(f"with_{name}" for name in SETTINGS), *LEVELS])
def test_batches_of_every_size(served: Server, protocol: str, model: str) -> None:
    """MR-30, MR-31, MR-41, MR-42, MR-43: both formats by their usual names and by others; whatever the settings say."""
    batches.are_right_in_every_size(served, protocol, model, "logits", files.dense_answers)


def test_an_optional_input(served: Server) -> None:
    batches.need_an_optional_input(served, "tensorflow", "optional_input", "logits", files.dense_answers)


@pytest.mark.parametrize("model", ["dense", "dense_many", "saved_dense"])
def test_each_request_gets_its_rows(served: Server, model: str) -> None:
    batches.give_each_request_its_rows(served, model, "logits", files.dense_answers, model != "dense_many")


@PROTOCOLS
def test_a_network_computes_what_tensorflow_computes(served: Server, protocol: str) -> None:
    images = np.random.default_rng(6).standard_normal((4, 12, 12, 3)).astype(np.float32)
    (expected,) = tensorflow_oracle.run(files.convolutions().definition(), {"image": images}, ["probabilities"])
    found = ask(served, protocol, "convolutions", {"image": images})["probabilities"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("model", ["ragged_graph", "ragged_saved"])
def test_shapes_that_differ_in_a_batch(served: Server, model: str) -> None:
    """MC-110, PB-39: one execution for four requests of different shapes, each gets its own part."""
    shapes = [(2, 3), (1, 5), (4, 1), (3, 3)]
    data = [np.arange(a * b, dtype=np.float32).reshape(1, a, b) + 100 * a for a, b in shapes]
    answers: dict[int, dict[str, np.ndarray]] = {}
    at_once(4, lambda index: answers.update({index: ask(served, "http", model, {"x": data[index]})}))
    found = [answers[index] for index in range(4)]
    for x, got in zip(data, found, strict=True):
        np.testing.assert_array_equal(got["y"], x + x)
        assert got["y_count"].item() == got["y_sum"].item() - got["y_before"].item() == x.size
        assert got["y_shape"].tolist() == got["y_flat"].tolist() == [list(x.shape[1:])]
    assert [got["y_longest"].item() for got in found] == [9] * 4
    assert max(got["y_sum"].item() for got in found) == sum(x.size for x in data)
    assert served.statistics(model)["execution_count"] == 1


@pytest.mark.parametrize(("part", "found"), [("", 10), ("half", 2)])
def test_a_divided_output_that_does_not_add_up(tmp_path: Path, part: str, found: int) -> None:
    """Whose elements are too many or too few nobody knows: no request of the batch gets another's."""
    repository = Repository(tmp_path / "models")
    graph = files.Graph()
    x = graph.input("x", "FP32", [-1])
    if part:
        begin, size = (graph.constant(name, np.array([value], np.int32)) for name, value in (("begin", 0), ("size", 2)))
        graph.add("y", "Slice", [x, begin, size], T=files.FP32, Index=files.kind("INT32"))
    else:
        graph.add("y", "ConcatV2", [x, x, graph.constant("axis", np.array(0, np.int32))], N=files.whole(2), T=files.FP32, Tidx=files.kind("INT32"))
    text = GRAPH + "max_batch_size: 4\n" + FOUR.replace("[ 4 ]", "[ 2 ]")
    text += tensor("input", "x", "FP32", [-1], "allow_ragged_batch: true") + tensor("output", "y", "FP32", [-1])
    text += 'batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }\n'
    files.save_graph(graph, repository.model("x", text))
    bodies = [json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, n], "data": [n] * n}]}).encode() for n in (2, 3)]
    with Nereid(repository.path) as server:
        said = together.ask(server, "/v2/models/x/infer", bodies)
    assert [each.status for each in said] == [500] * 2, said[0].body
    expected = f"failed to split the output tensor 'y' in responses: it has {found} elements, the shapes of input 'x' ask for 5"
    assert [each.json()["error"] for each in said] == [expected] * 2


# Shapes


@PROTOCOLS
def test_several_inputs_and_outputs(served: Server, protocol: str) -> None:
    inputs = {"b": np.array([[1, 2, 3, 4]], np.float32), "a": np.array([[10, 20, 30, 40]], np.float32)}
    found = ask(served, protocol, "add_sub", inputs)
    assert (found["sum"].tolist(), found["difference"].tolist()) == ([[11, 22, 33, 44]], [[9, 18, 27, 36]])
    assert list(ask(served, protocol, "add_sub", inputs, outputs=["difference"])) == ["difference"]
    assert ask(served, protocol, "partly", inputs)["difference"].tolist() == [[9, 18, 27, 36]]
    parts = ask(served, protocol, "halves", {"x": inputs["a"]})
    assert (parts["left"].tolist(), parts["right"].tolist()) == ([[10, 20]], [[30, 40]])


@PROTOCOLS
@pytest.mark.parametrize("values", [[0, 1, 0, 2, 3], [0, 0], [4]])
def test_a_shape_that_the_contents_decide(served: Server, protocol: str, values: list[int]) -> None:
    found = ask(served, protocol, "where", {"x": np.array(values, np.int32)})["places"]
    np.testing.assert_array_equal(found, np.flatnonzero(values).reshape(-1, 1))


@PROTOCOLS
def test_scalar(served: Server, protocol: str) -> None:
    assert ask(served, protocol, "scalar", {"x": np.array([21], np.float32)})["y"].tolist() == [42]


@PROTOCOLS
def test_empty_tensor(served: Server, protocol: str) -> None:
    assert ask(served, protocol, "graph_fp32", {"x": np.zeros((2, 0), np.float32)})["y"].shape == (2, 0)
    assert ask(served, protocol, "graph_bytes", {"x": np.zeros((2, 0), object)})["y"].shape == (2, 0)


@PROTOCOLS
def test_16_mib(served: Server, protocol: str) -> None:
    data = np.random.default_rng(2).standard_normal((1, 1 << 22)).astype(np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(ask(served, protocol, "graph_fp32", {"x": data})["y"], data)


@PROTOCOLS
def test_reshape(served: Server, protocol: str) -> None:
    rows = np.random.default_rng(4).standard_normal((3, 16)).astype(np.float32)
    found = ask(served, protocol, "reshaped", {"x": rows.reshape(3, 4, 4)})["logits"]
    np.testing.assert_allclose(found, files.dense_answers(rows).reshape(3, 2, 4), atol=1e-5)


# What a SavedModel says


def _tensors(found: dict[str, Any], kind: str) -> list[tuple[str, str, list[int]]]:
    return [(each["name"], each["data_type"], [int(dim) for dim in each["dims"]]) for each in found[kind]]


def test_a_saved_model_fills_its_configuration(served: Server) -> None:
    """MR-44, MC-38: without config.pbtxt all of it; with one, what is left out."""
    found = config(served, "add_sub")
    assert (found["platform"], found["max_batch_size"], "dynamic_batching" in found) == ("tensorflow_savedmodel", 4, True)
    assert _tensors(found, "input") == [("a", "TYPE_FP32", [4]), ("b", "TYPE_FP32", [4])]
    assert _tensors(found, "output") == [("difference", "TYPE_FP32", [4]), ("sum", "TYPE_FP32", [4])]
    found = config(served, "partly")
    assert (found["max_batch_size"], "dynamic_batching" in found) == (3, True)
    assert _tensors(found, "input") == [("b", "TYPE_FP32", [4]), ("a", "TYPE_FP32", [4])]
    assert _tensors(found, "output") == [("difference", "TYPE_FP32", [4])]
    assert [each["count"] for each in found["instance_group"]] == [2], "as many as the reference makes of this backend on the CPU"
    found = config(served, "unbatched")
    assert (found["max_batch_size"], "dynamic_batching" in found) == (0, False)
    assert _tensors(found, "input") == [("a", "TYPE_FP32", [-1, 4]), ("b", "TYPE_FP32", [-1, 4])]
    found = config(served, "scalar")
    assert (found["max_batch_size"], _tensors(found, "input")) == (0, [("x", "TYPE_FP32", [1])])


@pytest.mark.parametrize(("model", "factor"), [("several", 2), ("threefold", 3), ("negative", -1), ("in_function", 0)])
def test_signatures_tags_and_functions(served: Server, model: str, factor: int) -> None:
    """MR-45: whoever has built it, the graph and the signature are those that were asked for, or the usual ones."""
    x = np.array([1, -2], np.float32)
    expected = x * factor if factor else 3 * x + 1
    assert ask(served, "grpc", model, {"x": x})["y"].tolist() == expected.tolist()


def test_a_shape_that_only_the_configuration_knows(served: Server) -> None:
    for count in (1, 3):
        x = np.arange(count, dtype=np.float32)
        assert ask(served, "http", "unknown_shape", {"x": x})["y"].tolist() == x.tolist()


def test_files_for_gpus_are_not_used(served: Server, repository: Repository) -> None:
    """What a configuration names for a GPU has to be there, and the file for the processor is served."""
    folder = repository.model("for_turing", GRAPH + ROWS + DENSE + 'cc_model_filenames { key: "7.5" value: "turing.graphdef" }\n')
    files.save_graph(files.dense_graph(), folder)
    (folder / "1" / "turing.graphdef").write_bytes(b"for a GPU")
    assert load(served, "for_turing") == (200, "")
    rows = np.ones((1, 16), np.float32)
    np.testing.assert_allclose(ask(served, "grpc", "for_turing", {"x": rows})["logits"], files.dense_answers(rows), atol=1e-5)
    if served.kind == "nereid":
        assert "for_turing: settings without effect here: cc_model_filenames" in served.process.log()


def test_what_has_no_effect_is_logged_once(served: Server, repository: Repository) -> None:
    """The configuration of a SavedModel is read again once the file has filled it in."""
    folder = repository.model("mixed_precision", SAVED + accelerated('gpu_execution_accelerator { name: "auto_mixed_precision" }'))
    files.save(files.dense_graph(), folder, *files.DENSE)
    assert load(served, "mixed_precision") == (200, "")
    if served.kind == "nereid":
        assert served.process.log().count("model 'mixed_precision': GPU Execution Accelerator will be ignored for model instance on CPU") == 1


def test_variables_of_a_saved_model(served: Server) -> None:
    """MR-45: they come out of its files; what has no dimension but the batch has one element in a configuration."""
    assert ask(served, "grpc", "variable", {"x": np.array([[2], [4]], np.float32)})["y"].tolist() == [[5], [10]]


# Sessions


def test_initial_operations_and_variables(served: Server) -> None:
    """They run once for each session, from the version's directory or the model's."""
    one = np.ones(1, np.float32)
    assert [ask(served, "grpc", "counter", {"x": one})["y"].tolist() for _ in range(3)] == [[101], [102], [103]]


def test_instances_share_a_session(served: Server) -> None:
    """All of 40 requests to two instances count in one variable."""
    one, seen = np.ones(1, np.float32), []
    at_once(8, lambda _: [seen.append(float(ask(served, "grpc", "counter_shared", {"x": one})["y"][0])) for _ in range(5)] and None)
    assert max(seen) == 140


def test_states_of_sequences(served: Server) -> None:
    def told(value: float, **more: Any) -> float:
        return float(ask(served, "grpc", "sums", {"x": np.array([[value]], np.float32)}, **more)["total"][0, 0])

    assert told(5, sequence_id=7, sequence_start=True) == 5
    assert told(3, sequence_id=8, sequence_start=True) == 3
    assert told(1, sequence_id=7) == 6
    assert told(2, sequence_id=8, sequence_end=True) == 5
    assert told(4, sequence_id=7, sequence_end=True) == 10


def test_the_graph_level_switches_the_compiler_on(served: Server) -> None:
    """PB-55, PB-57: XLA compiles what level 1 asks it to, which it says once; the numbers stay."""
    x = np.random.default_rng(8).standard_normal((4, 16)).astype(np.float32)
    expected = x.astype(np.float64)
    for _ in range(4):
        expected = np.tanh(expected) ** 2
    for _ in range(2):
        np.testing.assert_allclose(ask(served, "grpc", "compiled", {"x": x})["y"], np.sqrt(expected), atol=1e-5)
    assert "Compiled cluster using XLA" in served.process.log()


# What does not work


@pytest.mark.parametrize("name", BAD)
def test_refuses_and_says_why(served: Server, name: str) -> None:
    """MR-30, PB-62, PB-69, PB-70: and the server goes on."""
    status, error = load(served, name)
    assert status == 400
    assert BAD[name][2] in error


@pytest.mark.parametrize("before", range(4))
def test_names_that_are_listed_are_cut_between_characters(served: Server, repository: Repository, before: int) -> None:
    """Anything else would be no UTF-8, and neither HTTP nor gRPC could list the repository any more."""
    name = "e" * before + "\U0001d11e" * 400
    folder = repository.model(f"bad_long_{before}", SAVED + 'input { name: "z" data_type: TYPE_FP32 dims: [ 1 ] }\n')
    files.save(files.same("FP32", [-1]), folder, {name: ("x:0", "FP32", [-1])}, {"y": ("y:0", "FP32", [-1])})
    status, error = load(served, folder.name)
    assert status == 400
    assert f"unexpected inference input 'z', allowed inputs are: {name[:100]}" in error
    assert folder.name in [each["name"] for each in rawhttp.post(served.http, "/v2/repository/index", b"{}").json()]
    with grpcclient.InferenceServerClient(served.grpc) as client:
        assert folder.name in [each.name for each in client.get_model_repository_index().models]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("allow-soft-placement=maybe", "failed to convert 'maybe' to boolean"),
        ("default-max-batch-size=x", "failed to convert 'x' to integral number"),
        ("gpu-memory-fraction=half", "expected a finite number from 0 on, got 'half'"),
        ("gpu-memory-fraction=inf", "expected a finite number from 0 on, got 'inf'"),
        ("gpu-memory-fraction=1e999", "expected a finite number from 0 on, got '1e999'"),
        ("gpu-memory-fraction=-1", "expected a finite number from 0 on, got '-1'"),
    ],
)
def test_a_setting_of_the_command_line_that_is_wrong_is_named(repository: Repository, setting: str, says: str) -> None:
    with Nereid(repository.path, {"model-control-mode": "explicit", "backend-config": f"tensorflow,{setting}"}) as server:
        status, error = load(server, "dense")
        assert status == 400
        assert f"setting '{setting.split('=')[0]}': {says}" in error


def test_a_setting_of_the_command_line_that_nobody_reads_is_told(repository: Repository) -> None:
    known = ["allow-soft-placement=false", "gpu-memory-fraction=0.5", "default-max-batch-size=2"]
    unknown = ["allow_soft_placement=false", "gpu-memory-fracton=0.5"]
    with Nereid(repository.path, {"model-control-mode": "explicit", "backend-config": [f"tensorflow,{each}" for each in known + unknown]}) as server:
        assert load(server, "dense") == (200, "")
        told = re.findall(r"the setting '(.*)' of backend 'tensorflow' is unknown and has no effect", server.process.log())
    assert sorted(told) == [each.split("=")[0] for each in unknown]


def test_an_error_of_a_run_is_the_request_s(served: Server) -> None:
    with pytest.raises(grpcclient.InferenceServerException) as refused:
        ask(served, "grpc", "in_function", {"x": np.zeros((2,), np.int32)})
    assert "INT32" in str(refused.value)
    rows = np.zeros((5, 12, 12, 3), np.float32)
    with pytest.raises(grpcclient.InferenceServerException):
        ask(served, "grpc", "convolutions", {"image": rows})
    ask(served, "grpc", "convolutions", {"image": rows[:1]})


def test_a_shape_that_no_batch_input_can_tell_of(served: Server) -> None:
    """An empty tensor may have any other dimension: as many rows as there are cannot be written down."""
    request = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1 << 60, 0, 0], "data": []}]}
    answer = rawhttp.post(served.http, "/v2/models/shapes/infer", json.dumps(request).encode())
    assert answer.status == 400
    assert "the shape of input 'x' is too large" in answer.json()["error"]
    assert ask(served, "grpc", "shapes", {"x": np.empty((2, 0, 3), np.float32)})["y"].tolist() == [[0, 3], [0, 3]]


# Life


@pytest.mark.parametrize("model", ["dense_many", "saved_many"])
def test_loading_and_unloading_leaves_nothing(repository: Repository, model: str) -> None:
    loads_and_unloads(repository.path, model, {"x": np.ones((2, 16), np.float32)})


@pytest.mark.parametrize("datatype", ["UINT8", "BOOL", "STRING", "FP32"])
def test_shapes_that_are_too_large_together(tmp_path: Path, datatype: str) -> None:
    """Without elements each is possible, and the batch of them is not: TensorFlow ends the process of whoever asks it."""
    repository = Repository(tmp_path / "models")
    of = "".join(tensor(way, name, datatype, [-1, -1]) for way, name in (("input", "x"), ("output", "y")))
    files.save_graph(files.same("BYTES" if datatype == "STRING" else datatype, [-1, -1, -1]), repository.model("x", GRAPH + "max_batch_size: 4\n" + of + FOUR))
    shape = [1, 1 << (59 if datatype == "FP32" else 61), 0]
    said: list[rawhttp.Answer] = []
    with Nereid(repository.path) as server:
        asked = {"inputs": [{"name": "x", "datatype": "BYTES" if datatype == "STRING" else datatype, "shape": shape, "data": []}]}
        at_once(4, lambda _: said.append(rawhttp.post(server.http, "/v2/models/x/infer", asked)))
        assert [each.status for each in said] == [400] * 4, said[0].body
        assert {each.json()["error"] for each in said} == {"input 'x' has an impossible shape"}
        assert rawhttp.get(server.http, "/v2/health/live").status == 200


def test_a_computed_input_that_its_file_calls_a_reference(tmp_path: Path) -> None:
    """A type that no tensor can be made of."""
    repository = Repository(tmp_path / "models")
    graph, fp32 = files.Graph(), files.FP32
    graph.add("y", "AddV2", [graph.input("x", "FP32", [-1]), graph.input("n", "FP32", [-1])], T=fp32)
    text = "max_batch_size: 4\n" + tensor("input", "x", "FP32", [-1], "allow_ragged_batch: true") + tensor("output", "y", "FP32", [-1])
    text += 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 source_input: "x" }\n'
    text += 'batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }\n'
    folder = repository.model("x", SAVED + text)
    files.save(graph, folder, {"x": ("x:0", "FP32", [-1]), "n": ("n:0", "FP32", [-1])}, {"y": ("y:0", "FP32", [-1])})
    file = folder / "1" / "model.savedmodel" / "saved_model.pb"
    content = file.read_bytes()
    told, lie = (files.message(1, "n:0") + b"\x10" + bytes([number]) for number in (1, 101))  # the signature's DT_FLOAT, and DT_FLOAT_REF
    assert content.count(told) == 1
    file.write_bytes(content.replace(told, lie))
    with Nereid(repository.path) as server:
        assert ask(server, "grpc", "x", {"x": np.array([[2]], np.float32)})["y"].tolist() == [[3]]
