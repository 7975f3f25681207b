"""Python functions as models, over HTTP, gRPC and in the process."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from conftest import Packaged
from harness import rawhttp
from harness.repository import Repository

TEN_LINES = """
import nereid
import numpy as np


@nereid.model(inputs={"a": (np.float32, [-1]), "b": ("FP32", [-1])}, outputs={"sum": (np.float32, [-1])})
def add(a, b):
    return {"sum": a + b}
"""
SERVE = """
import sys

options = {}
for each in sys.argv[1:]:
    name, _, value = each[2:].partition("=")
    options.setdefault(name.replace("-", "_"), []).append(value)
nereid.serve(*[each for each in list(vars().values()) if isinstance(each, nereid.Function)], **options)
"""
MORE = """
@nereid.batch(inputs={"x": (np.int64, [2])}, outputs={"y": (np.int64, [2]), "rows": (np.int32, [1])}, max_batch_size=8)
def twice(x):
    return {"y": 2 * x, "rows": np.full((len(x), 1), len(x), np.int32)}


@nereid.model(inputs={"n": ("INT32", [1])}, outputs={"i": ("INT32", [1])})
def count(n):
    for i in range(n[0]):
        yield {"i": [i]}
    if n[0] == 3:
        raise nereid.Error("three is too many", nereid.Code.UNAVAILABLE)


@nereid.model(inputs={"text": (str, [-1])}, outputs={"upper": (str, [-1])})
def upper(text):
    return {"upper": [each.decode().upper() for each in text]}


@nereid.model(name="half", inputs={"x": ("BF16", [-1])}, outputs={"y": ("BF16", [-1])})
def halve(x):
    return {"y": x / 2}
"""


@pytest.fixture(scope="module")
def served(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packaged]:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "served.py").write_text(TEN_LINES + MORE + SERVE)
    repository = Repository(folder / "models")
    repository.identity("copy")
    with Packaged(python, folder / "served.py", repository.path) as server:
        yield server


def ask_http(server: Packaged, model: str, **arrays: np.ndarray) -> tritonclient.http.InferResult:
    with tritonclient.http.InferenceServerClient(server.http) as client:
        return client.infer(model, [made(tritonclient.http, name, array) for name, array in arrays.items()])


def ask_grpc(server: Packaged, model: str, **arrays: np.ndarray) -> tritonclient.grpc.InferResult:
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        return client.infer(model, [made(tritonclient.grpc, name, array) for name, array in arrays.items()])


def made(client: object, name: str, array: np.ndarray) -> object:
    given = client.InferInput(name, list(array.shape), tritonclient.utils.np_to_triton_dtype(array.dtype))
    given.set_data_from_numpy(array)
    return given


def test_function_over_both_protocols(served: Packaged) -> None:
    a = np.arange(5, dtype=np.float32)
    for ask in (ask_http, ask_grpc):
        assert ask(served, "add", a=a, b=a[::-1].copy()).as_numpy("sum").tolist() == [4.0] * 5
        assert ask(served, "twice", x=np.array([[1, 2], [3, 4]])).as_numpy("y").tolist() == [[2, 4], [6, 8]]
        assert ask(served, "upper", text=np.array(["a", "ß"], object)).as_numpy("upper").tolist() == [b"A", b"SS"]


def test_function_beside_a_repository(served: Packaged) -> None:
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1.5, 2]}]}
    answer = rawhttp.post(served.http, "/v2/models/copy/infer", json.dumps(body).encode())
    assert answer.json()["outputs"][0]["data"] == [1.5, 2.0]
