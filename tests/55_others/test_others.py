"""Models that others made, out of packages of the Python registry (tools/packages/others.lock): served, and asked beside the runtime itself."""

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from harness import paths
from harness.repository import Repository
from harness.servers import Nereid, Server

sys.path.append(str(paths.ROOT / "tests" / "52_backends"))
import tensorflow_oracle  # noqa: E402
import torch_oracle  # noqa: E402
from clients import PROTOCOLS, ask, load, unload  # noqa: E402

FILES = paths.ROOT / "build" / "deps" / "others"
EXPLICIT: dict[str, str | list[str]] = {"model-control-mode": "explicit"}


@dataclass
class Other:
    """A model: its file, what it is asked, and its configuration where the file does not say enough."""

    file: str
    inputs: Callable[[np.random.Generator], dict[str, np.ndarray]]
    config: str | None = None
    batches: bool = True
    keeps: bool = False  # what it heard before; a model that is loaded again has forgotten it
    named: dict[str, str] = field(default_factory=dict)  # of a SavedModel: where a tensor stands in the graph
    tolerance: float = 1e-5

    @property
    def usual(self) -> str:
        return {".onnx": "model.onnx", ".jit": "model.pt"}.get(Path(self.file).suffix, "model.savedmodel")


def images(*shape: int) -> Callable[[np.random.Generator], dict[str, np.ndarray]]:
    return lambda random: {"x": random.random((1, 3, *shape), np.float32)}


def sound(name: str, *shape: int) -> Callable[[np.random.Generator], dict[str, np.ndarray]]:
    """A tone with noise."""
    wave = np.sin(2 * np.pi * 220 * np.arange(np.prod(shape)) / 16000).astype(np.float32).reshape(shape)
    return lambda random: {name: 0.3 * wave + 0.01 * random.standard_normal(shape).astype(np.float32)}


def program(_random: np.random.Generator) -> dict[str, np.ndarray]:
    text = b"import os\n\n\ndef main(path):\n    for name in os.listdir(path):\n        print(name)\n"
    return {"inputs": np.array([[text]], object)}


PITCH = "basic_pitch/saved_models/icassp_2022/nmp"
OCR = "rapidocr_onnxruntime/models"
JIT = """backend: "pytorch"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1, 512 ] }, { name: "sr" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "speech__0" data_type: TYPE_FP32 dims: [ 1, 1 ] } ]
"""
OTHERS = {
    "file_type": Other("magika/models/standard_v3_3/model.onnx", lambda random: {"bytes": random.integers(0, 256, (1, 2048), np.int32)}),
    "objects": Other("nudenet/320n.onnx", lambda random: {"images": random.random((1, 3, 320, 320), np.float32)}, tolerance=1e-3),
    "text_places": Other(f"{OCR}/ch_PP-OCRv4_det_infer.onnx", images(96, 160)),
    "text": Other(f"{OCR}/ch_PP-OCRv4_rec_infer.onnx", images(48, 160)),
    "text_turned": Other(f"{OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", images(48, 192)),
    "speech": Other(
        "silero_vad/data/silero_vad.onnx",
        lambda random: sound("input", 1, 512)(random) | {"state": np.zeros((2, 1, 128), np.float32), "sr": np.array([16000], np.int64)},
        batches=False,
    ),
    "speech_torchscript": Other(
        "silero_vad/data/silero_vad.jit", lambda random: sound("x", 1, 512)(random) | {"sr": np.array([16000], np.int64)}, JIT, batches=False, keeps=True,
    ),
    "speech_quality": Other("speechmos/dnsmos_models/sig_bak_ovr.onnx", sound("input_1", 1, 144160)),
    "pitch": Other(
        "swift_f0/model.onnx",
        lambda random: sound("audio", 1, 16000)(random) | {"fmin": np.array([46], np.float32), "fmax": np.array([2000], np.float32)},
        batches=False, tolerance=1e-3,
    ),
    "notes": Other(f"{PITCH}.onnx", sound("serving_default_input_2:0", 1, 43844, 1)),
    "notes_savedmodel": Other(
        PITCH, sound("input_2", 1, 43844, 1),
        named={
            "input_2": "serving_default_input_2:0", "contour": "StatefulPartitionedCall:0", "note": "StatefulPartitionedCall:1",
            "onset": "StatefulPartitionedCall:2",
        },
    ),
    "language_savedmodel": Other(
        "guesslang/data/model", program, named={"inputs": "Place" "holder:0", "classes": "head/Tile:0", "scores": "head/predictions/probabilities:0"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    paths.need(FILES, "tools/setup.sh others")
    made = Repository(tmp_path_factory.mktemp("others"))
    for name, other in OTHERS.items():
        place = made.model(name, other.config) / "1" / other.usual
        (shutil.copytree if (FILES / other.file).is_dir() else shutil.copy)(FILES / other.file, place)
    with Nereid(made.path, EXPLICIT) as server:
        for name in OTHERS:
            assert load(server, name) == (200, ""), name
        yield server


def from_onnxruntime(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ranks = {each.name: len(each.shape) for each in session.get_inputs()}
    given = {name: array.reshape(()) if ranks[name] == 0 else array for name, array in inputs.items()}
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, given), strict=True))


def directly(other: Other, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the runtime says without a server between."""
    path = FILES / other.file
    if other.usual == "model.onnx":
        return from_onnxruntime(path, inputs)
    if other.usual == "model.pt":
        return {"speech__0": torch_oracle.answer(path, inputs["x"], 16000)}
    outputs = [name for name in other.named if name not in inputs]
    flat = {other.named[name]: array.reshape(-1) if array.dtype == object else array for name, array in inputs.items()}
    return dict(zip(outputs, tensorflow_oracle.run(str(path), flat, [other.named[name] for name in outputs]), strict=True))


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        if array.dtype == object:
            assert found[name].tolist() == array.tolist()
        else:
            np.testing.assert_allclose(found[name].reshape(array.shape), array, rtol=tolerance, atol=tolerance)


@PROTOCOLS
@pytest.mark.parametrize("name", OTHERS)
def test_the_answers_of_the_runtime(served: Server, protocol: str, name: str) -> None:
    other = OTHERS[name]
    inputs = other.inputs(np.random.default_rng(7))
    if other.keeps:
        assert unload(served, name) == 200 and load(served, name) == (200, "")
    same(ask(served, protocol, name, inputs), directly(other, inputs), other.tolerance)


@pytest.mark.parametrize("name", [name for name, other in OTHERS.items() if other.batches])
def test_rows_of_a_batch_are_answered_each(served: Server, name: str) -> None:
    """Two requests' worth of rows in one: each row has the answer that it has alone."""
    other = OTHERS[name]
    rows = [other.inputs(np.random.default_rng(seed)) for seed in (1, 2)]
    sent = {key: np.concatenate([row[key] for row in rows]) for key in rows[0]}
    found = ask(served, "grpc", name, sent)
    for index, row in enumerate(rows):
        same({key: array[index : index + 1] for key, array in found.items()}, directly(other, row), max(other.tolerance, 1e-4))


def test_it_knows_a_language(served: Server) -> None:
    """What a person would ask: a program in Python is one."""
    found = ask(served, "http", "language_savedmodel", program(np.random.default_rng(0)))
    assert found["classes"].reshape(-1)[int(np.argmax(found["scores"]))] == b"py"
