"""The GraphDef and SavedModel files that test_tensorflow.py serves."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
from harness import paths

import tensorflow_oracle

sys.path.append(str(paths.ROOT / "tools"))
from sample_tensorflow import (  # noqa: E402
    Graph, Info, asset, dense, function, kind, message, kinds, meta_graph, node, shape, signature, tensor, text, truth, whole, wholes, write_saved_model,
)

FP32 = kind("FP32")


def save_graph(graph: Graph, folder: Path, file: str = "model.graphdef") -> Path:
    path = folder / "1" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph.definition())
    return path


def save(graph: Graph, folder: Path, inputs: dict[str, Info], outputs: dict[str, Info], file: str = "model.savedmodel") -> Path:
    return write_saved_model(folder / "1" / file, meta_graph(graph, {"serving_default": signature(inputs, outputs)}))


def same(datatype: str, dims: list[int]) -> Graph:
    graph = Graph()
    graph.add("y", "Identity", [graph.input("x", datatype, dims)], T=kind(datatype))
    return graph


@cache
def layers() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(11)
    return random.standard_normal((16, 8)).astype(np.float32), random.standard_normal(8).astype(np.float32)


def dense_graph() -> Graph:
    """logits = tanh(x @ weights + bias), 16 numbers to 8"""
    graph = Graph()
    graph.add("logits", "Tanh", [dense(graph, "sum", graph.input("x", "FP32", [-1, 16]), *layers())], T=FP32)
    return graph


def dense_answers(rows: np.ndarray) -> np.ndarray:
    weights, bias = layers()
    return np.tanh(rows @ weights + bias)


DENSE = ({"x": ("x:0", "FP32", [-1, 16])}, {"logits": ("logits:0", "FP32", [-1, 8])})


def convolutions() -> Graph:
    """A small network for images: convolution, normalisation, pooling, softmax."""
    random, graph = np.random.default_rng(12), Graph()
    window = {"strides": wholes(1, 1, 1, 1), "padding": text("SAME"), "T": FP32}
    first = graph.constant("filters", random.standard_normal((3, 3, 3, 8)).astype(np.float32))
    at = graph.add("conv", "Conv2D", [graph.input("image", "FP32", [-1, 12, 12, 3]), first], **window)
    of = [graph.constant(name, random.random(8).astype(np.float32) + 0.5) for name in ("scale", "offset", "mean", "variance")]
    at = graph.add("norm", "FusedBatchNormV3", [at, *of], T=FP32, U=FP32, is_training=truth(False))
    at = graph.add("pool", "MaxPool", [graph.add("relu", "Relu", [at], T=FP32)], **{**window, "ksize": wholes(1, 2, 2, 1), "strides": wholes(1, 2, 2, 1)})
    at = graph.add("mean_of", "Mean", [at, graph.constant("axes", np.array([1, 2], np.int32))], T=FP32, Tidx=kind("INT32"))
    graph.add("probabilities", "Softmax", [dense(graph, "sum", at, random.standard_normal((8, 5)).astype(np.float32), np.zeros(5, np.float32))], T=FP32)
    return graph


def add_sub() -> Graph:
    graph = Graph()
    inputs = [graph.input(name, "FP32", [-1, 4]) for name in ("a", "b")]
    graph.add("plus", "AddV2", inputs, T=FP32)
    graph.add("minus", "Sub", inputs, T=FP32)
    return graph


ADD_SUB = (
    {name: (f"{name}:0", "FP32", [-1, 4]) for name in ("b", "a")},
    {"sum": ("plus:0", "FP32", [-1, 4]), "difference": ("minus:0", "FP32", [-1, 4])},
)


def words() -> Graph:
    """Strings in capitals, and how long they are."""
    graph = Graph()
    x = graph.input("x", "BYTES", [-1, -1])
    graph.add("upper", "StringUpper", [x])
    graph.add("length", "StringLength", [x])
    return graph


WORDS = ({"x": ("x:0", "BYTES", [-1, -1])}, {"upper": ("upper:0", "BYTES", [-1, -1]), "length": ("length:0", "INT32", [-1, -1])})


def halves() -> Graph:
    """An operation with two results."""
    graph = Graph()
    axis = graph.constant("axis", np.array(1, np.int32))
    graph.add("parts", "Split", [axis, graph.input("x", "FP32", [-1, 4])], T=FP32, num_split=whole(2))
    return graph


HALVES = ({"x": ("x:0", "FP32", [-1, 4])}, {"left": ("parts", "FP32", [-1, 2]), "right": ("parts:1", "FP32", [-1, 2])})


def where() -> Graph:
    """The places of what is not zero: as many rows as the contents say."""
    graph = Graph()
    graph.add("places", "Where", [graph.input("x", "INT32", [-1])], T=kind("INT32"))
    return graph


def scalars() -> Graph:
    graph = Graph()
    x = graph.input("x", "FP32", [])
    graph.add("y", "AddV2", [x, x], T=FP32)
    return graph


def in_function() -> Graph:
    """A function of a library, as TensorFlow 2 writes models: 3 x + 1."""
    graph = Graph()
    nodes = [
        node("three", "Const", dtype=FP32, value=tensor(np.float32(3))), node("one", "Const", dtype=FP32, value=tensor(np.float32(1))),
        node("product", "Mul", ["x", "three:output:0"], T=FP32), node("sum", "AddV2", ["product:z:0", "one:output:0"], T=FP32),
    ]
    graph.function("serve", {"x": "FP32"}, {"y": ("FP32", "sum:z:0")}, nodes)
    x = graph.input("serving_x", "FP32", [-1])
    graph.add("StatefulPartitionedCall", "StatefulPartitionedCall", [x], Tin=kinds(["FP32"]), Tout=kinds(["FP32"]), f=function("serve"))
    return graph


def with_variable(operation: str, inputs: list[str] | None = None) -> Graph:
    """y = x * (a variable), which TensorFlow reads from a file; `operation` writes or reads that file."""
    graph = Graph()
    x = graph.input("x", "FP32", [-1])
    variable = graph.add("scale", "VarHandleOp", dtype=FP32, shape=shape([]), shared_name=text("scale"))
    value = graph.add("value", "ReadVariableOp", [variable], dtype=FP32)
    graph.add("y", "Mul", [x, value], T=FP32)
    file = graph.input("file", "BYTES", [])
    names, slices = graph.constant("names", np.array([b"scale"], object)), graph.constant("slices", np.array([b""], object))
    graph.add("save", "SaveV2", [file, names, slices, value], dtypes=kinds(["FP32"]))
    read = graph.add("read", "RestoreV2", [file, names, slices], dtypes=kinds(["FP32"]))
    restored = graph.add("restored", "AssignVariableOp", [variable, read], dtype=FP32)
    graph.add("restore_all", "NoOp", [f"^{restored}"])
    return graph


def save_with_variable(folder: Path, value: float) -> None:
    """A SavedModel with a file of variables, which TensorFlow writes."""
    graph = with_variable("read")
    saved = folder / "1" / "model.savedmodel"
    meta = meta_graph(
        graph, {"serving_default": signature({"x": ("x:0", "FP32", [-1])}, {"y": ("y:0", "FP32", [-1])})}, restores=("file:0", "restore_all")
    )
    write_saved_model(saved, meta)
    (saved / "variables").mkdir(exist_ok=True)
    writer = Graph()
    inputs = [writer.constant("file", np.array(str(saved / "variables" / "variables").encode(), object))]
    inputs += [writer.constant("names", np.array([b"scale"], object)), writer.constant("slices", np.array([b""], object))]
    writer.add("save", "SaveV2", [*inputs, writer.constant("value", np.array(value, np.float32))], dtypes=kinds(["FP32"]))
    tensorflow_oracle.run(writer.definition(), {}, targets=["save"])


READS = {"x": ("x:0", "FP32", [-1])}, {"y": ("y:0", "FP32", [-1]), "words": ("words:0", "BYTES", [])}


def reads_file(folder: Path, content: bytes, old: bool, unknown: bytes = b"") -> None:
    """A SavedModel with a file of its own, which an operation reads into a variable when it is loaded. old: as TensorFlow 1 writes it.
    unknown: a field that comes before what says so."""
    graph = Graph()
    path = graph.constant("path", np.array(b"nowhere", object))
    variable = graph.add("kept", "VarHandleOp", dtype=kind("BYTES"), shape=shape([]), shared_name=text("kept"))
    graph.add("init", "AssignVariableOp", [variable, graph.add("read", "ReadFile", [path])], dtype=kind("BYTES"))
    graph.add("words", "ReadVariableOp", [variable], dtype=kind("BYTES"))
    graph.add("y", "Identity", [graph.input("x", "FP32", [-1])], T=FP32)
    init_name = "__saved_model_init_op"
    init = message(2, message(1, init_name) + message(2, message(1, "init")))
    meta = meta_graph(graph, {"serving_default": signature(*READS)}) + unknown
    of = asset("path:0", "words.txt")
    if old:
        collections = {"saved_model_assets": message(5, message(1, message(1, "type.googleapis.com/tensorflow.AssetFileDef") + message(2, of))), "legacy_init_op": message(1, message(1, "init"))}
        meta += b"".join(message(4, message(1, key) + message(2, value)) for key, value in collections.items())
    else:
        meta += message(5, message(1, init_name) + message(2, init)) + message(6, of)
    saved = write_saved_model(folder / "1" / "model.savedmodel", meta)
    (saved / "assets").mkdir(exist_ok=True)
    (saved / "assets" / "words.txt").write_bytes(content)


def counter() -> Graph:
    """Each run adds x to a variable of its session, which the operation `init` sets to 100."""
    graph = Graph()
    x = graph.input("x", "FP32", [1])
    variable = graph.add("total", "VarHandleOp", dtype=FP32, shape=shape([1]), shared_name=text("total"))
    graph.add("init", "AssignVariableOp", [variable, graph.constant("hundred", np.array([100], np.float32))], dtype=FP32)
    added = graph.add("added", "AssignAddVariableOp", [variable, x], dtype=FP32)
    graph.add("y", "ReadVariableOp", [variable, f"^{added}"], dtype=FP32)
    return graph


def keeps_last(datatype: str, first: np.ndarray) -> Graph:
    """Gives back what came in the run before: a variable keeps what an input held."""
    graph = Graph()
    x = graph.input("x", datatype, [-1])
    of = kind(datatype)
    variable = graph.add("kept", "VarHandleOp", dtype=of, shape=shape(None), shared_name=text("kept"))
    graph.add("init", "AssignVariableOp", [variable, graph.constant("first", first)], dtype=of)
    before = graph.add("before", "ReadVariableOp", [variable], dtype=of)
    after = graph.add("after", "AssignVariableOp", [variable, x, f"^{before}"], dtype=of)
    graph.add("y", "Identity", [before, f"^{after}"], T=of)
    return graph


def lists_of_unknown_shape() -> tuple[Graph, dict[str, Info], dict[str, Info]]:
    graph = Graph()
    graph.add("y", "Identity", [graph.input("x", "FP32", None)], T=FP32)
    return graph, {"x": ("x:0", "FP32", None)}, {"y": ("y:0", "FP32", None)}


COMPUTED = {
    "count": "BATCH_ELEMENT_COUNT", "sum": "BATCH_ACCUMULATED_ELEMENT_COUNT", "from_zero": "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    "longest": "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "shape": "BATCH_ITEM_SHAPE", "flat": "BATCH_ITEM_SHAPE_FLATTEN",
}


def ragged(datatype: str) -> tuple[Graph, dict[str, Info], dict[str, Info]]:
    """Doubles x, and shows what it was told about the batch, a row a request."""
    graph, of, index = Graph(), kind(datatype), kind("INT32")
    x = graph.input("x", "FP32", [-1])
    graph.add("y", "AddV2", [x, x], T=FP32)
    for name in COMPUTED:
        graph.input(name, datatype, [-1, -1] if name == "shape" else [-1])
    one, zero = graph.constant("one", np.array(1, np.int32)), graph.constant("zero", np.array([0], np.int32))
    requests = graph.add("requests", "Shape", ["count"], T=of)
    length = graph.add("length", "Reshape", [graph.add("lengths", "Shape", ["longest"], T=of), graph.constant("scalar", np.array([], np.int32))], T=index)
    graph.add("before", "Slice", ["from_zero", zero, requests], T=of, Index=index)
    graph.add("all_lengths", "Fill", [requests, length], T=index)
    for name, source, of_source in (("count", "count", of), ("sum", "sum", of), ("before", "before", of), ("longest", "all_lengths", index)):
        graph.add(f"y_{name}", "ExpandDims", [source, one], T=of_source, Tdim=index)
    graph.add("y_shape", "Identity", ["shape"], T=of)
    graph.add("y_flat", "Reshape", ["flat", graph.add("table", "Shape", ["shape"], T=of)], T=of)
    inputs = {name: (f"{name}:0", datatype, [-1, -1] if name == "shape" else [-1]) for name in COMPUTED}
    outputs = {f"y_{name}": (f"y_{name}:0", datatype, [-1, 1]) for name in ("count", "sum", "before")}
    outputs |= {"y_longest": ("y_longest:0", "INT32", [-1, 1])} | {f"y_{name}": (f"y_{name}:0", datatype, [-1, -1]) for name in ("shape", "flat")}
    return graph, {"x": ("x:0", "FP32", [-1]), **inputs}, {"y": ("y:0", "FP32", [-1]), **outputs}


def shapes() -> Graph:
    """y = what it was told of the shape of x"""
    graph = Graph()
    graph.input("x", "FP32", [-1, -1, -1])
    graph.add("y", "Identity", [graph.input("shape", "INT32", [-1, -1])], T=kind("INT32"))
    return graph


def sums() -> Graph:
    """total = x where a sequence starts, else x + what the server keeps of the last request."""
    graph = Graph()
    x, before = (graph.input(name, "FP32", [-1, 1]) for name in ("x", "before"))
    start = graph.input("start", "BOOL", [-1, 1])
    plus = graph.add("plus", "AddV2", [x, before], T=FP32)
    graph.add("total", "SelectV2", [start, x, plus], T=FP32)
    graph.add("after", "Identity", ["total"], T=FP32)
    return graph


def chain() -> Graph:
    """Operations enough for a compiler to make one of."""
    graph = Graph()
    at = graph.input("x", "FP32", [-1, 16])
    for index in range(4):
        at = graph.add(f"tanh{index}", "Tanh", [at], T=FP32)
        at = graph.add(f"square{index}", "Mul", [at, at], T=FP32)
    graph.add("y", "Sqrt", [at], T=FP32)
    return graph


def several(folder: Path) -> None:
    """Two graphs under tags of their own; the first with signatures that multiply by 2, 3 and 4."""
    graph, other = Graph(), Graph()
    x = graph.input("x", "FP32", [-1])
    signatures = {}
    for name, factor in {"serving_default": 2, "threefold": 3, "__saved_model_init_op": 4}.items():
        graph.add(f"y{factor}", "Mul", [x, graph.constant(f"c{factor}", np.array(factor, np.float32))], T=FP32)
        signatures[name] = signature({"x": ("x:0", "FP32", [-1])}, {"y": (f"y{factor}:0", "FP32", [-1])})
    signatures.pop("__saved_model_init_op")
    other.add("y", "Neg", [other.input("x", "FP32", [-1])], T=FP32)
    negative = {"only_this": signature({"x": ("x:0", "FP32", [-1])}, {"y": ("y:0", "FP32", [-1])})}
    write_saved_model(folder / "1" / "model.savedmodel", meta_graph(graph, signatures), meta_graph(other, negative, tags=["negative"]))
