"""Writes files of TensorFlow (GraphDef and SavedModel) without TensorFlow being installed. Both are protocol buffers; this module writes only
the fields that it needs. The digits network is one such file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

TYPES = {
    "FP32": 1, "FP64": 2, "INT32": 3, "UINT8": 4, "INT16": 5, "INT8": 6, "BYTES": 7, "COMPLEX64": 8, "INT64": 9, "BOOL": 10, "BF16": 14, "UINT16": 17,
    "FP16": 19, "RESOURCE": 20, "UINT32": 22, "UINT64": 23,
}
OF_NUMPY = {
    "float32": "FP32", "float64": "FP64", "int32": "INT32", "uint8": "UINT8", "int16": "INT16", "int8": "INT8", "int64": "INT64",
    "bool": "BOOL", "uint16": "UINT16", "float16": "FP16", "uint32": "UINT32", "uint64": "UINT64", "object": "BYTES",
}
PRODUCER = 1800  # the graph version that has this format

Shape = Sequence[int] | None  # -1 = any size; None = unknown number of dimensions
Info = tuple[str, str, Shape]  # name of the tensor in the graph, type, shape


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def message(field: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _entry(field: int, key: str, value: bytes) -> bytes:
    return message(field, message(1, key) + message(2, value))


def _shape(dims: Shape) -> bytes:
    return number(3, 1) if dims is None else b"".join(message(2, number(1, dim)) for dim in dims)


# Values of attributes.


def text(value: str) -> bytes:
    return message(2, value)


def whole(value: int) -> bytes:
    return number(3, value)


def truth(value: bool) -> bytes:
    return number(5, value)


def kind(datatype: str) -> bytes:
    return number(6, TYPES[datatype])


def shape(dims: Shape) -> bytes:
    return message(7, _shape(dims))


def tensor(array: np.ndarray | np.generic) -> bytes:
    head = number(1, TYPES[OF_NUMPY[array.dtype.name]]) + message(2, _shape(array.shape))
    if array.dtype == object:
        return message(8, head + b"".join(message(8, each) for each in array.flat))
    return message(8, head + message(4, array.tobytes()))


def function(name: str) -> bytes:
    return message(10, message(1, name))


def wholes(*values: int) -> bytes:
    return message(1, b"".join(number(3, each) for each in values))


def kinds(datatypes: Sequence[str]) -> bytes:
    return message(1, b"".join(number(6, TYPES[each]) for each in datatypes))


def node(name: str, operation: str, inputs: Sequence[str] = (), **attributes: bytes) -> bytes:
    content = message(1, name) + message(2, operation) + b"".join(message(3, each) for each in inputs)
    return content + b"".join(_entry(5, key, value) for key, value in attributes.items())


class Graph:
    """A GraphDef. Each call of a method adds an operation and returns its name."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._functions = bytearray()

    def add(self, name: str, operation: str, inputs: Sequence[str] = (), **attributes: bytes) -> str:
        self._content += message(1, node(name, operation, inputs, **attributes))
        return name

    def input(self, name: str, datatype: str, dims: Shape) -> str:
        return self.add(name, "Place" "holder", dtype=kind(datatype), shape=shape(dims))

    def constant(self, name: str, array: np.ndarray) -> str:
        return self.add(name, "Const", dtype=kind(OF_NUMPY[array.dtype.name]), value=tensor(array))

    def function(self, name: str, inputs: Mapping[str, str], outputs: Mapping[str, tuple[str, str]], nodes: Sequence[bytes]) -> None:
        """Adds a function. inputs: name -> type; outputs: name -> (type, tensor "node:result:0")."""
        described = message(1, name)
        described += b"".join(message(2, message(1, key) + number(3, TYPES[of])) for key, of in inputs.items())
        described += b"".join(message(3, message(1, key) + number(3, TYPES[of])) for key, (of, _) in outputs.items())
        content = message(1, described) + b"".join(message(3, each) for each in nodes)
        self._functions += message(1, content + b"".join(_entry(4, key, at.encode()) for key, (_, at) in outputs.items()))

    def definition(self) -> bytes:
        return bytes(self._content) + message(2, bytes(self._functions)) + message(4, number(1, PRODUCER))


def asset(source: str, file: str) -> bytes:
    """A file of the model, and the tensor that has its path when the model is read."""
    return message(1, message(1, source)) + message(2, file)


def _info(info: Info) -> bytes:
    source, datatype, dims = info
    return message(1, source) + number(2, TYPES[datatype]) + message(3, _shape(dims))


def signature(inputs: Mapping[str, Info], outputs: Mapping[str, Info]) -> bytes:
    content = b"".join(_entry(1, name, _info(info)) for name, info in inputs.items())
    content += b"".join(_entry(2, name, _info(info)) for name, info in outputs.items())
    return content + message(3, "tensorflow/serving/predict")


def meta_graph(graph: Graph, signatures: Mapping[str, bytes], tags: Sequence[str] = ("serve",), restores: tuple[str, str] | None = None) -> bytes:
    """restores: the tensor for the path of the files with variables, and the operation that reads these files."""
    content = message(1, b"".join(message(4, tag) for tag in tags)) + message(2, graph.definition())
    if restores:
        content += message(3, message(1, restores[0]) + message(3, restores[1]) + number(7, 2))
    return content + b"".join(_entry(5, name, content) for name, content in signatures.items())


def write_saved_model(folder: Path, *meta_graphs: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(number(1, 1) + b"".join(message(2, each) for each in meta_graphs))
    return folder


def dense(graph: Graph, name: str, x: str, weights: np.ndarray, bias: np.ndarray) -> str:
    """The tensor x @ weights + bias."""
    of = kind("FP32")
    product = graph.add(f"{name}_product", "MatMul", [x, graph.constant(f"{name}_weights", weights)], T=of)
    return graph.add(name, "BiasAdd", [product, graph.constant(f"{name}_bias", bias)], T=of)


def digits(weights: dict[str, np.ndarray]) -> Graph:
    """logits = relu(image @ w0 + b0) @ w1 + b1"""
    graph = Graph()
    hidden = dense(graph, "hidden", graph.input("image", "FP32", [-1, 64]), weights["w0"], weights["b0"])
    dense(graph, "logits", graph.add("active", "Relu", [hidden], T=kind("FP32")), weights["w1"], weights["b1"])
    return graph


def write_digits_graph(folder: Path, weights: dict[str, np.ndarray]) -> None:
    """Writes FOLDER/model.graphdef."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.graphdef").write_bytes(digits(weights).definition())


def write_digits_saved(folder: Path, weights: dict[str, np.ndarray]) -> None:
    """Writes FOLDER/model.savedmodel."""
    image, logits = {"image": ("image:0", "FP32", [-1, 64])}, {"logits": ("logits:0", "FP32", [-1, 10])}
    write_saved_model(folder / "model.savedmodel", meta_graph(digits(weights), {"serving_default": signature(image, logits)}))
