"""TensorFlow graphs for a GPU."""

import sys

import numpy as np
from harness import paths

sys.path += [str(paths.ROOT / "tools"), str(paths.ROOT / "tests" / "52_backends")]
from sample_tensorflow import Graph, dense, kind, truth, whole  # noqa: E402

FP32, INT32 = kind("FP32"), kind("INT32")
WIDTH, HEADS, LAYERS, WORDS = 384, 12, 6, 30000  # of a small encoder of sentences


class _Encoder:
    """Adds operations; each function gives the name of its result."""

    def __init__(self) -> None:
        self.graph = Graph()
        self._count = 0
        self._random = np.random.default_rng(7)

    def name(self, kind_of: str) -> str:
        self._count += 1
        return f"{kind_of}_{self._count}"

    def add(self, operation: str, *inputs: str, **attributes: bytes) -> str:
        return self.graph.add(self.name(operation), operation, inputs, T=FP32, **attributes)

    def integers(self, *values: int) -> str:
        return self.graph.constant(self.name("whole"), np.array(values, np.int32))

    def real(self, value: float) -> str:
        return self.graph.constant(self.name("real"), np.array(value, np.float32))

    def random(self, *shape: int) -> np.ndarray:
        return (self._random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def reshaped(self, x: str, *dims: int) -> str:
        return self.add("Reshape", x, self.integers(*dims), Tshape=INT32)

    def linear(self, x: str, width: int, out: int) -> str:
        """x has two dimensions."""
        return dense(self.graph, self.name("linear"), x, self.random(width, out), self.random(out))

    def mean(self, x: str) -> str:
        return self.add("Mean", x, self.integers(-1), Tidx=INT32, keep_dims=truth(True))

    def norm(self, x: str) -> str:
        away = self.add("Sub", x, self.mean(x))
        return self.add("Mul", away, self.add("Rsqrt", self.add("AddV2", self.mean(self.add("Square", away)), self.real(1e-5))))

    def attention(self, x: str, words: int) -> str:
        split = self.reshaped(self.linear(x, WIDTH, 3 * WIDTH), -1, words, 3, HEADS, WIDTH // HEADS)
        turned = self.add("Transpose", split, self.integers(2, 0, 3, 1, 4), Tperm=INT32)
        q, k, v = (
            self.graph.add(self.name("part"), "GatherV2", [turned, self.integer(i), self.integer(0)], Tparams=FP32, Tindices=INT32, Taxis=INT32)
            for i in range(3)
        )
        scores = self.add("Mul", self.add("BatchMatMulV2", q, k, adj_y=truth(True)), self.real((WIDTH / HEADS) ** -0.5))
        seen = self.add("BatchMatMulV2", self.add("Softmax", scores), v)
        return self.reshaped(self.add("Transpose", seen, self.integers(0, 2, 1, 3), Tperm=INT32), -1, WIDTH)

    def integer(self, value: int) -> str:
        return self.graph.constant(self.name("whole"), np.array(value, np.int32))

    def layer(self, x: str, words: int) -> str:
        x = self.norm(self.add("AddV2", x, self.linear(self.attention(x, words), WIDTH, WIDTH)))
        wide = self.add("Relu", self.linear(x, WIDTH, 4 * WIDTH))
        return self.norm(self.add("AddV2", x, self.linear(wide, 4 * WIDTH, WIDTH)))


def encoder(words: int) -> Graph:
    """embedding = a vector for each row of so many tokens"""
    built = _Encoder()
    table = built.graph.constant("table", built.random(WORDS, WIDTH))
    tokens = built.graph.input("tokens", "INT32", [-1, words])
    rows = built.graph.add("rows", "GatherV2", [table, tokens, built.integer(0)], Tparams=FP32, Tindices=INT32, Taxis=INT32)
    x = built.reshaped(rows, -1, WIDTH)
    for _ in range(LAYERS):
        x = built.layer(x, words)
    built.graph.add("embedding", "Mean", [built.reshaped(x, -1, words, WIDTH), built.integer(1)], T=FP32, Tidx=INT32)
    return built.graph


def double() -> Graph:
    """doubled = x + x"""
    graph = Graph()
    x = graph.input("x", "FP32", [-1])
    graph.add("doubled", "AddV2", [x, x], T=FP32)
    return graph


def hungry() -> Graph:
    """sum = the number of MiB that mib says, and so much memory is taken"""
    graph = Graph()
    mib = graph.input("mib", "INT32", [1])
    parts = [mib, graph.constant("elements", np.array([1 << 18], np.int32)), graph.constant("axis", np.array(0, np.int32))]
    dims = graph.add("dims", "ConcatV2", parts, T=INT32, N=whole(2), Tidx=INT32)
    ones = graph.add("ones", "Fill", [dims, graph.constant("one", np.array(1, np.float32))], T=FP32, index_type=INT32)
    total = graph.add("total", "Sum", [ones, graph.constant("axes", np.array([0, 1], np.int32))], T=FP32, Tidx=INT32)
    graph.add("sum", "Mul", [total, graph.constant("share", np.array([1 / (1 << 18)], np.float32))], T=FP32)
    return graph


def mixed() -> Graph:
    """A number on the GPU, and texts, which TensorFlow has on the host alone."""
    graph = Graph()
    x = graph.input("x", "FP32", [-1, 2])
    graph.add("doubled", "AddV2", [x, x], T=FP32)
    graph.add("upper", "StringUpper", [graph.input("text", "BYTES", [-1, 1])])
    return graph
