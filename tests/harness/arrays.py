"""Test data: arrays of each datatype that both ends can hold, with their edges."""

import numpy as np

NUMPY = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": np.object_,
}
TYPES = {  # and what the specification says of each
    "BOOL": "MC-48",
    "UINT8": "MC-49",
    "UINT16": "MC-50",
    "UINT32": "MC-51",
    "UINT64": "MC-52",
    "INT8": "MC-53",
    "INT16": "MC-54",
    "INT32": "MC-55",
    "INT64": "MC-56",
    "FP16": "MC-57",
    "FP32": "MC-58",
    "FP64": "MC-59",
    "BYTES": "MC-60",
}
JSON_TYPES = tuple(name for name in NUMPY if name != "FP16")


def edges(datatype: str) -> np.ndarray:
    """Six values of the type, its least and greatest among them."""
    kind = NUMPY[datatype]
    if datatype == "BOOL":
        return np.array([True, False, True, True, False, False])
    if datatype == "BYTES":
        words = ["", "a", "two words", "\u00fcml\u00e4ut", 'quote " and \\ back', "x" * 1000]
        return np.array([word.encode() for word in words], dtype=np.object_)
    if np.issubdtype(kind, np.floating):
        info = np.finfo(kind)
        return np.array([info.min, info.max, info.tiny, 0, -1.5, 1 / 3], dtype=kind)
    limits = np.iinfo(kind)
    return np.array([limits.min, limits.max, 0, 1, 2, 3], dtype=kind)
