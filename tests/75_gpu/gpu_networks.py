"""ONNX models for a GPU."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from harness import paths
from harness.repository import Repository
from models import onnx_models
from onnx import helper

GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"

WIDTH, HEADS, LAYERS, WORDS = 384, 12, 6, 30000  # of a small encoder of sentences


class _Graph:
    """Collects nodes; each function gives the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self._random = np.random.default_rng(7)

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights[name] = array
        return name

    def random(self, *shape: int) -> str:
        return self.constant((self._random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def linear(self, x: str, width: int, out: int) -> str:
        return self.node("Add", self.node("MatMul", x, self.random(width, out)), self.random(out))

    def norm(self, x: str) -> str:
        ones, zeros = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
        return self.node("LayerNormalization", x, self.constant(ones), self.constant(zeros), axis=-1)

    def attention(self, x: str) -> str:
        rows = self.constant(np.array([0, 0, 3, HEADS, WIDTH // HEADS], np.int64))
        split = self.node("Transpose", self.node("Reshape", self.linear(x, WIDTH, 3 * WIDTH), rows), perm=[2, 0, 3, 1, 4])
        q, k, v = (self.node("Gather", split, self.constant(np.array(i, np.int64)), axis=0) for i in range(3))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scaled = self.node("Mul", scores, self.constant(np.float32((WIDTH / HEADS) ** -0.5).reshape(())))
        seen = self.node("Transpose", self.node("MatMul", self.node("Softmax", scaled, axis=-1), v), perm=[0, 2, 1, 3])
        return self.node("Reshape", seen, self.constant(np.array([0, 0, WIDTH], np.int64)))

    def layer(self, x: str) -> str:
        x = self.norm(self.node("Add", x, self.linear(self.attention(x), WIDTH, WIDTH)))
        wide = self.node("Relu", self.linear(x, WIDTH, 4 * WIDTH))
        return self.norm(self.node("Add", x, self.linear(wide, 4 * WIDTH, WIDTH)))


def encoder() -> onnx.ModelProto:
    """embedding = a vector for each row of tokens"""
    graph = _Graph()
    x = graph.node("Gather", graph.random(WORDS, WIDTH), "tokens")
    for _ in range(LAYERS):
        x = graph.layer(x)
    graph.nodes.append(helper.make_node("ReduceMean", [x], ["embedding"], axes=[1], keepdims=0))
    return onnx_models.model(graph.nodes, [("tokens", "INT64", ["n", "length"])], [("embedding", "FP32", ["n", WIDTH])], graph.weights)


def double() -> onnx.ModelProto:
    """doubled = x + x"""
    return onnx_models.model([helper.make_node("Add", ["x", "x"], ["doubled"])], [("x", "FP32", ["k"])], [("doubled", "FP32", ["k"])])


def hungry() -> onnx.ModelProto:
    """sum = the number of MiB that x says, and so much memory is taken"""
    nodes = [
        helper.make_node("Mul", ["mib", "elements"], ["count"]),
        helper.make_node("Expand", ["one", "count"], ["taken"]),
        helper.make_node("ReduceSum", ["taken"], ["all"], keepdims=0),
        helper.make_node("Mul", ["all", "share"], ["sum"]),
    ]
    weights = {
        "elements": np.array([1 << 18], np.int64),
        "one": np.ones(1, np.float32),
        "share": np.array([1 / (1 << 18)], np.float32),
    }
    return onnx_models.model(nodes, [("mib", "INT64", [1])], [("sum", "FP32", [1])], weights)


def mixed() -> onnx.ModelProto:
    """A number on the GPU, its text on the host, and the text that was given."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["doubled"]),
        helper.make_node("Identity", ["text"], ["same"]),
    ]
    return onnx_models.model(
        nodes, [("x", "FP32", ["n", 2]), ("text", "BYTES", ["n", 1])], [("doubled", "FP32", ["n", 2]), ("same", "BYTES", ["n", 1])]
    )


def library() -> Path:
    """ONNX Runtime with CUDA, as its package brings it."""
    assert "CUDAExecutionProvider" in onnxruntime.get_available_providers(), "this Python's onnxruntime has no CUDA: pip install onnxruntime-gpu"
    return next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))


def add_digits(repository: Repository, name: str, config: str) -> Path:
    folder = repository.path / name / "1"
    repository.model(name, f'name: "{name}"\nbackend: "onnxruntime"\nmax_batch_size: 64\n{config}\n')
    folder.mkdir(parents=True, exist_ok=True)
    file = paths.need(paths.ROOT / "build" / "models" / "digits" / "1" / "model.onnx", "make samples")
    (folder / "model.onnx").write_bytes(file.read_bytes())
    return folder / "model.onnx"


def add(repository: Repository, name: str, built: onnx.ModelProto, config: str = "", group: str = GPU) -> Path:
    repository.model(name, f'name: "{name}"\nbackend: "onnxruntime"\n{config}{group}\n')
    return onnx_models.save(built, repository.path / name)


def close(found: np.ndarray, expected: np.ndarray) -> None:
    """Alike as far as TF32 goes: the tensor cores of a GPU keep 10 bits of each factor, and another kernel (for another number of rows) or a CPU keeps
    others."""
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=np.abs(expected).max(initial=0) / 1024)
