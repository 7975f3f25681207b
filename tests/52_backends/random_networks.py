"""A small perceptron, an encoder of BERT's size and a ResNet-50, with random weights, for each runtime: what bench_bare.py asks.

Input x and output y are FP32; PyTorch's are without names, TensorFlow's images have their colours last."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from models import onnx_models
from onnx import helper

import tensorflow_files as files
import torch_oracle

DIMS = {"perceptron": [1, 64], "encoder": [64, 768], "residual": [1, 3, 224, 224]}
RESULTS = {"perceptron": [1, 10], "encoder": [64, 768], "residual": [1, 1000]}
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # of the ResNet: inner channels, blocks
Layer = tuple[np.ndarray, np.ndarray]


class Weights:
    def __init__(self) -> None:
        self.random = np.random.default_rng(21)

    def dense(self, rows: int, columns: int) -> Layer:
        scale = np.float32(1 / np.sqrt(rows))
        return self.random.standard_normal((rows, columns), np.float32) * scale, self.random.standard_normal(columns, np.float32) * scale

    def convolution(self, channels: int, to: int, size: int) -> Layer:
        """In ONNX's order: to, channels, height, width."""
        scale = np.float32(1 / np.sqrt(channels * size * size))
        return self.random.standard_normal((to, channels, size, size), np.float32) * scale, self.random.standard_normal(to, np.float32) * scale


class Network:
    """One under construction; each method returns the name of what it computes."""

    def one(self, operator: str, *inputs: str) -> str:
        raise NotImplementedError

    def dense(self, x: str, rows: int, columns: int) -> str:
        raise NotImplementedError

    def convolution(self, x: str, channels: int, to: int, size: int, stride: int = 1) -> str:
        raise NotImplementedError

    def perceptron(self, x: str) -> str:
        return self.dense(self.one("Relu", self.dense(x, 64, 128)), 128, 10)

    def bottlenecks(self, x: str) -> str:
        channels = 64
        for inner, count in STAGES:
            for block in range(count):
                x = self.bottleneck(x, channels, inner, 2 if block == 0 and inner > 64 else 1)
                channels = 4 * inner
        return x

    def bottleneck(self, x: str, channels: int, inner: int, stride: int) -> str:
        y = self.one("Relu", self.convolution(x, channels, inner, 1))
        y = self.one("Relu", self.convolution(y, inner, inner, 3, stride))
        y = self.convolution(y, inner, 4 * inner, 1)
        return self.one("Relu", self.one("Add", y, x if channels == 4 * inner else self.convolution(x, channels, 4 * inner, 1, stride)))


class Onnx(Network):
    def __init__(self) -> None:
        self.weights, self.nodes, self.constants = Weights(), list[onnx.NodeProto](), dict[str, np.ndarray]()

    def constant(self, array: np.ndarray | np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def one(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.add(operator, *inputs, **attributes)[0]

    def dense(self, x: str, rows: int, columns: int) -> str:
        matrix, bias = map(self.constant, self.weights.dense(rows, columns))
        return self.one("Add", self.one("MatMul", x, matrix), bias)

    def shaped(self, x: str, shape: list[int], order: list[int]) -> str:
        return self.one("Transpose", self.one("Reshape", x, self.constant(np.array(shape))), perm=order)

    def normal(self, x: str) -> str:
        return self.one("LayerNormalization", x, self.constant(np.ones(768, np.float32)), self.constant(np.zeros(768, np.float32)))

    def gelu(self, x: str) -> str:
        half, one, root = (self.constant(np.float32(value)) for value in (0.5, 1, np.sqrt(2)))
        return self.one("Mul", self.one("Mul", x, half), self.one("Add", self.one("Erf", self.one("Div", x, root)), one))

    def encoder(self, x: str) -> str:
        for _ in range(12):
            q, k, v = self.add("Split", self.dense(x, 768, 2304), self.constant(np.array([768] * 3)), outputs=3, axis=1)
            products = self.one("MatMul", self.shaped(q, [64, 12, 64], [1, 0, 2]), self.shaped(k, [64, 12, 64], [1, 2, 0]))
            weights = self.one("Softmax", self.one("Div", products, self.constant(np.float32(8))), axis=-1)
            mixed = self.one("Transpose", self.one("MatMul", weights, self.shaped(v, [64, 12, 64], [1, 0, 2])), perm=[1, 0, 2])
            mixed = self.one("Reshape", mixed, self.constant(np.array([64, 768])))
            x = self.normal(self.one("Add", x, self.dense(mixed, 768, 768)))
            x = self.normal(self.one("Add", x, self.dense(self.gelu(self.dense(x, 768, 3072)), 3072, 768)))
        return x

    def convolution(self, x: str, channels: int, to: int, size: int, stride: int = 1) -> str:
        return self.one("Conv", x, *map(self.constant, self.weights.convolution(channels, to, size)), strides=[stride] * 2, pads=[size // 2] * 4)

    def residual(self, x: str) -> str:
        x = self.one("MaxPool", self.one("Relu", self.convolution(x, 3, 64, 7, 2)), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        return self.dense(self.one("Flatten", self.one("GlobalAveragePool", self.bottlenecks(x))), 2048, 1000)


class TensorFlow(Network):
    def __init__(self) -> None:
        self.weights, self.graph, self.count = Weights(), files.Graph(), 0

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def constant(self, array: np.ndarray) -> str:
        return self.graph.constant(self.name(), array)

    def one(self, operator: str, *inputs: str, **attributes: bytes) -> str:
        return self.graph.add(self.name(), operator, inputs, T=files.FP32, **attributes)

    def dense(self, x: str, rows: int, columns: int) -> str:
        return files.dense(self.graph, self.name(), x, *self.weights.dense(rows, columns))

    def shaped(self, x: str, shape: list[int], order: list[int] | None = None) -> str:
        indices = files.kind("INT32")
        x = self.one("Reshape", x, self.constant(np.array(shape, np.int32)), Tshape=indices)
        return self.one("Transpose", x, self.constant(np.array(order, np.int32)), Tperm=indices) if order else x

    def mean(self, x: str) -> str:
        return self.one("Mean", x, self.constant(np.array([-1], np.int32)), Tidx=files.kind("INT32"), keep_dims=files.truth(True))

    def normal(self, x: str) -> str:
        middle = self.mean(x)
        spread = self.one("AddV2", self.mean(self.one("SquaredDifference", x, middle)), self.constant(np.array(1e-5, np.float32)))
        return self.one("Mul", self.one("Sub", x, middle), self.one("Rsqrt", spread))

    def gelu(self, x: str) -> str:
        half, one, root = (self.constant(np.array(value, np.float32)) for value in (0.5, 1, np.sqrt(0.5)))
        return self.one("Mul", self.one("Mul", x, half), self.one("AddV2", self.one("Erf", self.one("Mul", x, root)), one))

    def encoder(self, x: str) -> str:
        for _ in range(12):
            q, k, v = (self.shaped(self.dense(x, 768, 768), [64, 12, 64], order) for order in ([1, 0, 2], [1, 2, 0], [1, 0, 2]))
            weights = self.one("Softmax", self.one("Mul", self.one("BatchMatMulV2", q, k), self.constant(np.array(0.125, np.float32))))
            mixed = self.one("BatchMatMulV2", weights, v)
            mixed = self.one("Transpose", mixed, self.constant(np.array([1, 0, 2], np.int32)), Tperm=files.kind("INT32"))
            x = self.normal(self.one("AddV2", x, self.dense(self.shaped(mixed, [64, 768]), 768, 768)))
            x = self.normal(self.one("AddV2", x, self.dense(self.gelu(self.dense(x, 768, 3072)), 3072, 768)))
        return x

    def convolution(self, x: str, channels: int, to: int, size: int, stride: int = 1) -> str:
        weights, bias = self.weights.convolution(channels, to, size)
        kernel = self.constant(np.ascontiguousarray(weights.transpose(2, 3, 1, 0)))
        x = self.one("Conv2D", x, kernel, strides=files.wholes(1, stride, stride, 1), padding=files.text("SAME"))
        return self.one("BiasAdd", x, self.constant(bias))

    def residual(self, x: str) -> str:
        x = self.one("Relu", self.convolution(x, 3, 64, 7, 2))
        x = self.one("MaxPool", x, ksize=files.wholes(1, 3, 3, 1), strides=files.wholes(1, 2, 2, 1), padding=files.text("SAME"))
        x = self.bottlenecks(x)
        x = self.one("Mean", x, self.constant(np.array([1, 2], np.int32)), Tidx=files.kind("INT32"))
        return self.dense(x, 2048, 1000)


def save_onnx(name: str, folder: Path) -> Path:
    network = Onnx()
    network.nodes.append(helper.make_node("Identity", [getattr(network, name)("x")], ["y"]))
    built = onnx_models.model(network.nodes, [("x", "FP32", DIMS[name])], [("y", "FP32", RESULTS[name])], network.constants)
    return onnx_models.save(built, folder)


def save_graph(name: str, folder: Path) -> Path:
    network = TensorFlow()
    dims = DIMS[name] if name != "residual" else [1, 224, 224, 3]
    network.graph.add("y", "Identity", [getattr(network, name)(network.graph.input("x", "FP32", dims))], T=files.FP32)
    return files.save_graph(network.graph, folder)


def save_script(name: str, folder: Path) -> Path:
    return torch_oracle.save(name.capitalize(), folder)
