"""ONNX models with known answers, and what ONNX Runtime in Python says to them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ELEMENT = {
    "BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16,
    "UINT32": TensorProto.UINT32, "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8,
    "INT16": TensorProto.INT16, "INT32": TensorProto.INT32, "INT64": TensorProto.INT64,
    "FP16": TensorProto.FLOAT16, "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING, "BF16": TensorProto.BFLOAT16,
}

Dims = Sequence[int | str]
Tensor = tuple[str, str, Dims]  # name, datatype as the protocols spell it, dims (a string = variable)


def _info(tensor: Tensor) -> onnx.ValueInfoProto:
    name, datatype, dims = tensor
    return helper.make_tensor_value_info(name, ELEMENT[datatype], list(dims))


def model(
    nodes: list[onnx.NodeProto], inputs: list[Tensor], outputs: list[Tensor],
    weights: dict[str, np.ndarray] | None = None, check: bool = True,
) -> onnx.ModelProto:
    constants = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", [_info(t) for t in inputs], [_info(t) for t in outputs], constants)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if check:
        onnx.checker.check_model(built)
    return built


def save(built: onnx.ModelProto, folder: Path, version: int = 1, file: str = "model.onnx") -> Path:
    """Writes FOLDER/VERSION/FILE."""
    path = folder / str(version) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save_model(built, str(path))
    return path


def save_with_external_data(built: onnx.ModelProto, folder: Path, directory: str = "model.onnx") -> Path:
    """Writes FOLDER/1/DIRECTORY/model.onnx and its weights in a file of their own beside it."""
    path = folder / "1" / directory / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save_model(
        built, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location="weights.bin",
        size_threshold=0,
    )
    assert (path.parent / "weights.bin").stat().st_size > 0
    return path


def answers(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX Runtime in Python computes."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def identity(datatype: str, dims: Dims) -> onnx.ModelProto:
    """y = x"""
    return model(
        [helper.make_node("Identity", ["x"], ["y"])], [("x", datatype, dims)], [("y", datatype, dims)]
    )


def add_sub(datatype: str = "FP32", batch: int | str = "n", width: int | str = 4) -> onnx.ModelProto:
    """sum = a + b, difference = a - b"""
    dims = [batch, width]
    return model(
        [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])],
        [("a", datatype, dims), ("b", datatype, dims)],
        [("sum", datatype, dims), ("difference", datatype, dims)],
    )


def adds(number: int) -> onnx.ModelProto:
    """OUTPUT0 = INPUT0 + number"""
    return model(
        [helper.make_node("Add", ["INPUT0", "number"], ["OUTPUT0"])],
        [("INPUT0", "FP32", [2])], [("OUTPUT0", "FP32", [2])], {"number": np.array([number], dtype=np.float32)},
    )


def dense(rows: int = 16, columns: int = 8) -> onnx.ModelProto:
    """logits = x * w + c, with weights of its own"""
    random = np.random.default_rng(7)
    weights = {
        "w": random.standard_normal((rows, columns)).astype(np.float32),
        "c": random.standard_normal(columns).astype(np.float32),
    }
    return model(
        [helper.make_node("Gemm", ["x", "w", "c"], ["logits"])],
        [("x", "FP32", ["n", rows])], [("logits", "FP32", ["n", columns])], weights,
    )


def non_zero() -> onnx.ModelProto:
    """where = the positions of x that are not 0: a shape that only the contents decide"""
    return model(
        [helper.make_node("NonZero", ["x"], ["where"])], [("x", "INT32", ["n"])], [("where", "INT64", [1, "k"])]
    )


def scalar() -> onnx.ModelProto:
    """y = 2 x, without dimensions"""
    return model(
        [helper.make_node("Add", ["x", "x"], ["y"])], [("x", "FP32", [])], [("y", "FP32", [])]
    )


def one_per_row() -> onnx.ModelProto:
    """y = x + x, where the batch is the only dimension"""
    return model(
        [helper.make_node("Add", ["x", "x"], ["y"])], [("x", "FP32", ["n"])], [("y", "FP32", ["n"])]
    )


def gather() -> onnx.ModelProto:
    """y = table[index]; an index beyond 3 is an error while running"""
    return model(
        [helper.make_node("Gather", ["table", "index"], ["y"])],
        [("index", "INT64", ["n", 1])], [("y", "FP32", ["n", 1])],
        {"table": np.array([0, 10, 20, 30], dtype=np.float32)},
    )


def with_default() -> onnx.ModelProto:
    """y = x + offset; offset is 5 where the caller gives none"""
    return model(
        [helper.make_node("Add", ["x", "offset"], ["y"])],
        [("x", "FP32", [2]), ("offset", "FP32", [2])], [("y", "FP32", [2])],
        {"offset": np.array([5, 5], dtype=np.float32)},
    )


def unknown_operator() -> onnx.ModelProto:
    """calls an operator that no library has"""
    return model(
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        [("x", "FP32", ["n"])], [("y", "FP32", ["n"])], check=False,
    )


def breaks_its_promise() -> onnx.ModelProto:
    """y = x in the shape that the second input gives, though [ 4 ] is what the model declares"""
    return model(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        [("x", "FP32", ["k"]), ("shape", "INT64", ["r"])], [("y", "FP32", [4])],
    )


def keeps_one_row() -> onnx.ModelProto:
    """y = the first row of x, declared as if it had the batch dimension"""
    return model(
        [helper.make_node("Compress", ["x", "first"], ["y"], axis=0)],
        [("x", "FP32", ["n", 2])], [("y", "FP32", ["m", 2])], {"first": np.array([True])},
    )


def keeps_flagged() -> onnx.ModelProto:
    """y = the rows of x whose flag is set, declared as if it had the batch dimension"""
    return model(
        [
            helper.make_node("Reshape", ["flag", "flat"], ["flags"]),
            helper.make_node("Compress", ["x", "flags"], ["y"], axis=0),
        ],
        [("x", "FP32", ["n", 2]), ("flag", "BOOL", ["n", 1])], [("y", "FP32", ["m", 2])], {"flat": np.array([-1])},
    )


def accumulator() -> onnx.ModelProto:
    """total = x, at the start, or else x + total_in: for sequences with a state. At the start the state may be anything, also what is no
    number: the reference hands out memory as it is."""
    dims = ["n", 1]
    return model(
        [
            helper.make_node("Cast", ["start"], ["starts"], to=onnx.TensorProto.BOOL),
            helper.make_node("Where", ["starts", "zero", "total_in"], ["kept"]),
            helper.make_node("Add", ["x", "kept"], ["total"]),
            helper.make_node("Identity", ["total"], ["total_out"]),
        ],
        [("x", "FP32", dims), ("start", "FP32", dims), ("total_in", "FP32", dims)],
        [("total", "FP32", dims), ("total_out", "FP32", dims)],
        {"zero": np.array([[0]], dtype=np.float32)},
    )


def sums(datatype: str, dims: Dims) -> onnx.ModelProto:
    """total = x + total_in, as an output and as a state, which are one tensor"""
    return model(
        [helper.make_node("Add", ["x", "total_in"], ["total"])],
        [("x", datatype, dims), ("total_in", datatype, dims)], [("total", datatype, dims)],
    )


def remembers(datatype: str, dims: Dims) -> onnx.ModelProto:
    """former = kept_in, kept_out = x"""
    return model(
        [helper.make_node("Identity", ["kept_in"], ["former"]), helper.make_node("Identity", ["x"], ["kept_out"])],
        [("x", datatype, dims), ("kept_in", datatype, dims)], [("former", datatype, dims), ("kept_out", datatype, dims)],
    )


def collects() -> onnx.ModelProto:
    """all = kept_in and behind it x, in each row; kept_out = all: a state that grows"""
    return model(
        [
            helper.make_node("Concat", ["kept_in", "x"], ["all"], axis=1),
            helper.make_node("Identity", ["all"], ["kept_out"]),
        ],
        [("x", "FP32", ["n", "new"]), ("kept_in", "FP32", ["n", "old"])],
        [("all", "FP32", ["n", "a"]), ("kept_out", "FP32", ["n", "b"])],
    )
