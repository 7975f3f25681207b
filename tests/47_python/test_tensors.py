"""Tensors through python models: every datatype, strings, empty and large ones, batches; the same as from the reference."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from asks import Asker, words
from catalog import DATATYPES
from conftest import Both
from harness import arrays

NUMPY = {"STRING" if name == "BYTES" else name: kind for name, kind in arrays.NUMPY.items()}
ODD_STRINGS = [b"", b"\0", b"a\0b", "\u00fcml\u00e4ut".encode(), "\u4e16\u754c \U0001f600".encode(), b"\xff\xfe\x00", b"x" * 100_000]


def edges(datatype: str) -> np.ndarray:
    return arrays.edges("BYTES" if datatype == "STRING" else datatype).reshape(2, 3)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("datatype", DATATYPES)
def test_identity(both: Both, datatype: str, protocol: str) -> None:
    data = edges(datatype)
    answer = both.same(lambda asker: asker.infer("identity", {f"IN_{datatype}": data}, [f"OUT_{datatype}"], protocol))
    kind, shape, content = answer[f"OUT_{datatype}"]
    assert shape == (2, 3)
    assert content == (data.tolist() if datatype == "STRING" else data.tobytes())


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_all_datatypes_at_once(both: Both, protocol: str) -> None:
    inputs = {f"IN_{datatype}": edges(datatype) for datatype in DATATYPES}
    answer = both.same(lambda asker: asker.infer("identity", inputs, protocol=protocol))
    assert sorted(answer) == sorted(f"OUT_{datatype}" for datatype in DATATYPES)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("datatype", ["FP32", "INT8", "BOOL", "STRING"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 0), (0, 0)])
def test_empty_tensors(both: Both, datatype: str, shape: tuple[int, int], protocol: str) -> None:
    data = np.empty(shape, dtype=NUMPY[datatype])
    both.same(lambda asker: asker.infer("identity", {f"IN_{datatype}": data}, [f"OUT_{datatype}"], protocol))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_strings_of_any_bytes(both: Both, protocol: str) -> None:
    data = words(*ODD_STRINGS).reshape(1, -1)
    answer = both.same(lambda asker: asker.infer("identity", {"IN_STRING": data}, ["OUT_STRING"], protocol))
    assert answer["OUT_STRING"][2] == [ODD_STRINGS]


@pytest.mark.parametrize("name, kind", [("FP32", np.float32), ("INT64", np.int64)])
def test_dlpack(both: Both, name: str, kind: type) -> None:
    data = np.arange(12, dtype=kind).reshape(3, 4)
    answer = both.same(lambda asker: asker.infer("dlpack", {f"IN_{name}": data}, [f"OUT_{name}"]))
    assert answer[f"OUT_{name}"][2] == data.tobytes()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("mib", [1, 64])
def test_large_tensors(both: Both, mib: int, protocol: str) -> None:
    data = np.arange(mib << 20, dtype=np.uint64).astype(np.uint8)
    for asker in both.askers.values():  # one after the other: gigabytes at once prove no more
        answer = asker.infer("large", {"DATA": data}, ["BACK"], protocol)
        assert answer["BACK"][2] == data.tobytes()


def test_large_output_of_a_small_request(both: Both) -> None:
    inputs = {"DATA": np.zeros(1, np.uint8), "SIZE": np.array([8 << 20], np.int64)}
    answer = both.same(lambda asker: asker.infer("large", inputs, ["BACK"]))
    assert answer["BACK"][1] == (8 << 20,)


@pytest.mark.parametrize("outputs", [["SUM"], ["DIFF"], ["DIFF", "SUM"], None])
def test_requested_outputs(both: Both, outputs: list[str] | None) -> None:
    inputs = {"A": np.array([[1, 2, 3, 4]], np.int32), "B": np.array([[4, 3, 2, 1]], np.int32)}
    answer = both.same(lambda asker: asker.infer("add_sub", inputs, outputs))
    assert sorted(answer) == sorted(outputs or ["DIFF", "SUM"])


def test_wrong_requests(both: Both) -> None:
    right = np.array([[1, 2, 3, 4]], np.int32)
    for inputs in (
        {"A": right},
        {"A": right[:, :3], "B": right},
        {"A": right.astype(np.int64), "B": right},
        {"A": right.repeat(9, axis=0), "B": right.repeat(9, axis=0)},
    ):
        assert "message" in both.same(lambda asker, inputs=inputs: asker.infer("add_sub", inputs))


def test_a_batch_is_made(both: Both) -> None:
    """Six requests make the preferred batch of six rows, in one execute."""

    def ask(asker: Asker) -> list[Any]:
        with ThreadPoolExecutor(6) as pool:
            data = np.array([[1]], np.int32)
            asked = [pool.submit(asker.infer, "batch", {"X": data}) for _ in range(6)]
            return [future.result()["BATCH"] for future in asked]

    for _, shape, content in both.same(ask):
        assert shape == (1, 2)
        assert np.frombuffer(content, np.int32).tolist() == [6, 6]


def test_rows_of_several_requests(both: Both) -> None:
    def ask(asker: Asker) -> list[Any]:
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(asker.infer, "batch", {"X": np.ones((rows, 1), np.int32)}) for rows in (4, 2)]
            return [future.result()["BATCH"] for future in asked]

    shapes = [shape for _, shape, _ in both.same(ask)]
    assert shapes == [(4, 2), (2, 2)]
