"""Writes files of Caffe2 (NetDefs) without Caffe2 being installed. A NetDef is a protocol buffer; this module writes only the fields that it
needs. The digits network is a pair of such files."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sample_tensorflow import message, number

FILLERS = {
    "float32": "GivenTensorFill", "float64": "GivenTensorDoubleFill", "int32": "GivenTensorIntFill", "int64": "GivenTensorInt64Fill",
    "bool": "GivenTensorBoolFill", "int16": "GivenTensorInt16Fill", "uint8": "GivenTensorByteStringToUInt8Fill",
}

Value = int | float | str | bytes | Sequence[int] | Sequence[float] | np.ndarray


def _float(field: int, value: float) -> bytes:
    return bytes([field << 3 | 5]) + struct.pack("<f", value)


def argument(name: str, value: Value) -> bytes:
    """An Argument. The Python types of numbers decide between integer and floating-point; lists are written without packing."""
    head = message(1, name)
    if isinstance(value, float):
        return head + _float(2, value)
    if isinstance(value, int):
        return head + number(3, value)
    if isinstance(value, (str, bytes)):
        return head + message(4, value)
    if isinstance(value, np.ndarray) and value.dtype == np.uint8:
        return head + message(7, value.tobytes())
    values = value.ravel().tolist() if isinstance(value, np.ndarray) else list(value)
    if values and isinstance(values[0], float):
        return head + b"".join(_float(5, each) for each in values)
    return head + b"".join(number(6, int(each)) for each in values)


def operator(kind: str, inputs: Sequence[str], outputs: Sequence[str], **arguments: Value) -> bytes:
    content = b"".join(message(1, each) for each in inputs) + b"".join(message(2, each) for each in outputs)
    return content + message(4, kind) + b"".join(message(5, argument(name, value)) for name, value in arguments.items())


def fill(name: str, array: np.ndarray) -> bytes:
    return operator(FILLERS[array.dtype.name], [], [name], shape=list(array.shape), values=array)


def net(name: str, operators: Sequence[bytes], inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    content = message(1, name) + b"".join(message(2, each) for each in operators)
    return content + b"".join(message(7, each) for each in inputs) + b"".join(message(8, each) for each in outputs)


def write_digits(folder: Path, weights: dict[str, np.ndarray]) -> None:
    """Writes FOLDER/model.netdef and FOLDER/init_model.netdef. Caffe2 stores the weights of its layers transposed."""
    operators = [
        operator("FC", ["image", "w0", "b0"], ["hidden"]),
        operator("Relu", ["hidden"], ["hidden"]),
        operator("FC", ["hidden", "w1", "b1"], ["logits"]),
    ]
    arrays = {name: np.ascontiguousarray(array.T, np.float32) for name, array in weights.items()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.netdef").write_bytes(net("digits", operators, ["image", *arrays], ["logits"]))
    (folder / "init_model.netdef").write_bytes(net("digits_init", [fill(name, array) for name, array in arrays.items()], [], list(arrays)))
