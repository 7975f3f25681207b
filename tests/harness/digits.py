"""The digits that come with scikit-learn, without its import, which takes seconds of a processor in each process that collects tests."""

import gzip
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Digits:
    data: np.ndarray  # FP32 [1797, 64]: an image of 8 x 8 pixels of 0 to 16 each
    target: np.ndarray  # INT64 [1797]: which digit each image shows


@cache
def load_digits() -> Digits:
    spec = find_spec("sklearn")
    assert spec and spec.submodule_search_locations, "scikit-learn is not installed"
    with gzip.open(Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz", "rt") as table:
        rows = np.loadtxt(table, delimiter=",", dtype=np.float32)
    assert rows.shape == (1797, 65)
    return Digits(np.ascontiguousarray(rows[:, :-1]), rows[:, -1].astype(np.int64))
