"""Arrays: datatypes by name, and what the extension module leaves to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._types import Array

BF16 = 14
# The datatypes of tensors by the names of the protocol.
DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_), "UINT8": np.dtype(np.uint8), "UINT16": np.dtype(np.uint16), "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64), "INT8": np.dtype(np.int8), "INT16": np.dtype(np.int16), "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64), "FP16": np.dtype(np.float16), "FP32": np.dtype(np.float32), "FP64": np.dtype(np.float64),
    "BYTES": np.dtype(np.object_), "BF16": np.dtype(np.float32),
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items() if name != "BF16"}


def name_of(datatype: Any) -> str:
    """The protocol's name of a datatype: "FP32", or what NumPy takes as a dtype. str, bytes and object are BYTES."""
    if isinstance(datatype, str) and datatype.upper() in DTYPES:
        return datatype.upper()
    if datatype in (str, bytes):
        return "BYTES"
    try:
        return NAMES[np.dtype(datatype)]
    except (KeyError, TypeError):
        raise ValueError(f"datatype: expected one of {', '.join(DTYPES)}, or one of NumPy's, found {datatype!r}") from None


def plain(array: Array) -> Array:
    """The array in one piece, in the machine's order of bytes, texts as objects."""
    if array.dtype.kind in "US":
        array = array.astype(np.object_)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape)


def texts(items: list[bytes], shape: tuple[int, ...]) -> Array:
    made = np.empty(len(items), dtype=np.object_)
    made[:] = items
    return made.reshape(shape)


def from_bfloat16(array: Array) -> Array:
    return (array.astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(array: Array) -> tuple[int, Array]:
    """Rounded to the nearest, as what the extension module takes for a tensor of type BF16."""
    bits = np.ascontiguousarray(array, dtype=np.float32).reshape(array.shape).view(np.uint32)
    rounded = np.where(np.isnan(array), bits | 0x400000, bits + 0x7FFF + ((bits >> 16) & 1))
    return BF16, (rounded >> 16).astype(np.uint16)


def as_array(value: Any, datatype: str) -> Array:
    """What is no array yet: by DLPack, which copies nothing, else as NumPy makes one of the model's datatype.

    Raises ValueError for numbers that the datatype does not hold; a real one may be rounded.
    """
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    wanted = DTYPES[datatype]
    if wanted.kind == "O":
        return np.asarray(value, dtype=wanted)
    given = np.asarray(value)
    if given.dtype.kind not in ("biuf" if wanted.kind == "f" else "biu"):
        given = np.asarray(value, dtype=object)  # each as it is: NumPy rounds whole numbers that stand beside real ones
    try:
        with np.errstate(all="ignore"):
            made = given.astype(wanted)
            held = from_bfloat16(to_bfloat16(made)[1]) if datatype == "BF16" else made
            lost = np.isinf(held) & ~np.isinf(given.astype(np.float64)) if wanted.kind == "f" else made != given
    except OverflowError as error:
        raise ValueError(f"{datatype} does not hold a number: {error}") from error
    if lost.any():
        raise ValueError(f"{datatype} does not hold {given[lost][0]}")
    return made
