"""NetDefs of Caffe2, translated to ONNX: every operator with its arguments, compared with Caffe2 itself."""

import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from harness import paths
from harness.repository import Repository
from harness.servers import Nereid, Server

import caffe2_oracle
import batches
from clients import PROTOCOLS, ask, config, load, loads_and_unloads, tensor

sys.path.insert(0, str(paths.ROOT / "tools"))
from sample_caffe2 import fill, net, operator  # noqa: E402

Shape = tuple[int, ...]
OF_NUMPY = {"float32": "FP32", "float64": "FP64", "int32": "INT32", "int64": "INT64", "bool": "BOOL", "uint8": "UINT8", "int16": "INT16"}


@dataclass
class Case:
    """Operators that compute y of x (and z) and of weights; x gets each of the shapes."""

    name: str
    operators: list[bytes]
    shapes: list[Shape]
    weights: dict[str, Shape | np.ndarray] = field(default_factory=dict)
    others: dict[str, Shape] = field(default_factory=dict)
    takes: str = "float32"
    gives: str = "float32"
    positive: bool = False
    output: str = "y"

    def draw(self, shape: Shape, what: str) -> np.ndarray:
        random = np.random.default_rng(zlib.crc32(f"{self.name} {what} {shape}".encode()))
        if self.takes != "float32" and what in ("x", "z"):
            return random.integers(1, 100, shape).astype(self.takes)
        array = random.standard_normal(shape).astype(np.float32)
        return np.abs(array) + np.float32(0.5) if self.positive or what == "variance" else array

    def constants(self) -> dict[str, np.ndarray]:
        return {name: each if isinstance(each, np.ndarray) else self.draw(each, name) for name, each in self.weights.items()}

    def inputs(self, shape: Shape) -> dict[str, np.ndarray]:
        return {"x": self.draw(shape, "x")} | {name: self.draw(each, name) for name, each in self.others.items()}


def one(kind: str, name: str, shapes: list[Shape], weights: dict[str, Shape | np.ndarray] | None = None, **more: object) -> Case:
    """A single operator of x and the weights, in their order; arguments begin with arg_."""
    arguments = {key[4:]: value for key, value in more.items() if key.startswith("arg_")}
    rest = {key: value for key, value in more.items() if not key.startswith("arg_")}
    others = rest.get("others", {})
    assert isinstance(others, dict)
    names = ["x", *others, *(weights or {})]
    outputs = ["y", "parts"] if kind == "Concat" else ["y"]
    return Case(f"{kind}-{name}", [operator(kind, names, outputs, **arguments)], shapes, weights or {}, **rest)  # type: ignore[arg-type]


IMAGES = [(1, 4, 9, 7), (3, 4, 6, 8)]
LAST = [(1, 9, 7, 4), (3, 6, 8, 4)]


def conv(name: str, filters: Shape, shapes: list[Shape] = IMAGES, bias: int = 0, kind: str = "Conv", **arguments: object) -> Case:
    weights: dict[str, Shape | np.ndarray] = {"w": filters}
    if bias:
        weights["b"] = (bias,)
    return one(kind, name, shapes, weights, **{f"arg_{key}": value for key, value in arguments.items()})


CONVOLUTIONS = [
    conv("plain", (5, 4, 3, 3), bias=5, kernel=3),
    conv("no bias", (5, 4, 3, 3), kernel=3),
    conv("padded", (5, 4, 3, 3), bias=5, kernel=3, pad=1, stride=2),
    conv("sides", (5, 4, 3, 2), bias=5, kernel_h=3, kernel_w=2, pad_t=1, pad_l=0, pad_b=2, pad_r=1, stride_h=2, stride_w=1),
    conv("lists", (5, 4, 3, 2), bias=5, kernels=[3, 2], pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2]),
    conv("groups", (8, 2, 3, 3), bias=8, kernel=3, group=2, pad=1),
    conv("depthwise", (4, 1, 3, 3), bias=4, kernel=3, group=4, pad=1),
    conv("dilated", (5, 4, 3, 3), kernel=3, dilation=2, pad=2),
    conv("same", (5, 4, 3, 3), kernel=3, stride=2, legacy_pad=2),
    conv("valid", (5, 4, 3, 3), kernel=3, stride=2, legacy_pad=1),
    conv("last", (5, 3, 3, 4), LAST, bias=5, kernel=3, pad=1, order="NHWC"),
    conv("first", (5, 4, 3, 3), bias=5, kernel=3, order="NCHW"),
    conv("one dimension", (5, 4, 3), [(2, 4, 11)], kind="Conv1D", kernels=[3], pads=[1, 0]),
    conv("three dimensions", (5, 4, 2, 3, 2), [(2, 4, 5, 6, 4)], kind="Conv3D", kernels=[2, 3, 2], pads=[1, 0, 1, 0, 1, 0]),
    conv("margins of three sides", (5, 4, 3, 3), kernel=3, pad_t=1, pad_l=2, pad_b=1),
    conv("plain", (4, 5, 3, 3), bias=5, kind="ConvTranspose", kernel=3),
    conv("strided", (4, 5, 3, 3), bias=5, kind="ConvTranspose", kernel=3, stride=2, pad=1, adj=1),
    conv("sides", (4, 5, 3, 2), kind="ConvTranspose", kernel_h=3, kernel_w=2, stride_h=2, stride_w=3, adj_h=1, adj_w=2),
    conv("groups", (4, 3, 3, 3), bias=6, kind="ConvTranspose", kernel=3, group=2, stride=2),
    conv("last", (4, 3, 3, 5), LAST, bias=5, kind="ConvTranspose", kernel=3, stride=2, order="NHWC"),
    conv("same", (4, 5, 3, 3), kind="ConvTranspose", kernel=3, stride=2, legacy_pad=2),
    conv("same, even", (4, 5, 4, 4), kind="ConvTranspose", kernel=4, legacy_pad=2),
    conv("same, apart", (4, 5, 2, 2), kind="ConvTranspose", kernel=2, stride=3, legacy_pad=2),
    conv("valid", (4, 5, 3, 3), kind="ConvTranspose", kernel=3, stride=2, legacy_pad=1),
    conv("margin of one side", (4, 5, 3, 3), kind="ConvTranspose", kernel=3, stride=2, pad_t=1),
]

POOLS = [
    case
    for kind in ("MaxPool", "AveragePool")
    for case in (
        one(kind, "plain", IMAGES, arg_kernel=2, arg_stride=2),
        one(kind, "padded", IMAGES, arg_kernel=3, arg_stride=2, arg_pad=1),
        one(kind, "sides", IMAGES, arg_kernel_h=3, arg_kernel_w=2, arg_pad_t=1, arg_pad_l=0, arg_pad_b=2, arg_pad_r=1),
        one(kind, "global", IMAGES, arg_global_pooling=1),
        one(kind, "ceil", [(1, 4, 6, 8), (2, 4, 7, 7)], arg_kernel=3, arg_stride=2, arg_legacy_pad=3),
        one(kind, "ceil padded", [(1, 4, 6, 8), (2, 4, 7, 7)], arg_kernel=3, arg_stride=2, arg_pad=1, arg_legacy_pad=3),
        one(kind, "ceil inside", [(1, 2, 4, 4)], arg_kernel=2, arg_stride=2, arg_pad=1, arg_legacy_pad=3),
        one(kind, "ceil, margins before", [(2, 4, 7, 6)], arg_kernel=3, arg_stride=2, arg_pad_t=1, arg_pad_l=1, arg_pad_b=0, arg_pad_r=0, arg_legacy_pad=3),
        one(kind, "ceil, margins behind", [(2, 4, 7, 6)], arg_kernel=3, arg_stride=2, arg_pad_t=0, arg_pad_l=0, arg_pad_b=1, arg_pad_r=1, arg_legacy_pad=3),
        one(kind, "global with a kernel", IMAGES, arg_global_pooling=1, arg_kernel=2, arg_stride=1, arg_pad=0),
        one(f"{kind}1D", "global", [(2, 3, 9)], arg_global_pooling=1, arg_stride=1),
        one(f"{kind}3D", "global", [(2, 3, 5, 6, 4)], arg_global_pooling=1, arg_stride=1),
        one(kind, "same", IMAGES, arg_kernel=3, arg_stride=2, arg_legacy_pad=2),
        one(kind, "last", LAST, arg_kernel=3, arg_stride=2, arg_pad=1, arg_order="NHWC"),
        one(kind, "global last", LAST, arg_global_pooling=1, arg_order="NHWC"),
        one(f"{kind}1D", "one dimension", [(2, 3, 9)], arg_kernels=[3], arg_strides=[2]),
        one(f"{kind}3D", "three dimensions", [(2, 3, 5, 6, 4)], arg_kernels=[2, 3, 2], arg_strides=[1, 2, 1]),
    )
] + [one("AveragePool", "with margin", IMAGES, arg_kernel=3, arg_stride=2, arg_pad=1, arg_count_include_pad=1)]

LAYERS = [
    one("FC", "plain", [(3, 8), (1, 8)], {"w": (5, 8), "b": (5,)}),
    one("FC", "images", [(3, 2, 2, 2)], {"w": (5, 8), "b": (5,)}),
    one("FC", "axis", [(3, 2, 8), (1, 5, 8)], {"w": (5, 8), "b": (5,)}, arg_axis=2),
    one("FC", "from the end", [(3, 2, 4, 8)], {"w": (5, 8), "b": (5,)}, arg_axis=-1),
    one("FC", "wide weights", [(3, 8)], {"w": (5, 2, 4), "b": (5,)}, arg_axis_w=1),
    one("FC", "deep weights", [(3, 4)], {"w": (5, 2, 4), "b": (10,)}, arg_axis_w=2),
    one("FCTransposed", "plain", [(3, 8)], {"w": (8, 5), "b": (5,)}),
    one("MatMul", "plain", [(3, 8)], {"w": (8, 5)}),
    one("MatMul", "turned right", [(3, 8)], {"w": (5, 8)}, arg_trans_b=1),
    one("MatMul", "turned left", [(8, 3)], {"w": (8, 5)}, arg_trans_a=1),
    one("MatMul", "both", [(8, 3)], {"w": (5, 8)}, arg_trans_a=1, arg_trans_b=1),
    one("MatMul", "axes", [(2, 3, 8)], {"w": (2, 4, 5)}, arg_axis_a=2, arg_axis_b=2),
    one("BatchMatMul", "plain", [(2, 3, 4)], others={"z": (2, 4, 5)}),
    one("BatchMatMul", "turned", [(2, 4, 3)], others={"z": (2, 5, 4)}, arg_trans_a=1, arg_trans_b=1),
    one("BatchMatMul", "broadcast", [(2, 3, 4)], {"w": (4, 5)}, arg_broadcast=1),
    one("PRelu", "channels", IMAGES, {"w": (4,)}),
    one("PRelu", "one", IMAGES, {"w": (1,)}),
    one("PRelu", "rows", [(3, 4)], {"w": (4,)}),
    one("PRelu", "last", LAST, {"w": (4,)}, arg_order="NHWC"),
    one("Softmax", "rows", [(3, 8)]),
    one("Softmax", "the rest", IMAGES),
    one("Softmax", "axis", [(2, 3, 4)], arg_axis=2),
    one("Softmax", "from the end", [(2, 3, 4)], arg_axis=-1),
    one("SpatialBN", "images", IMAGES, {name: (4,) for name in ("scale", "bias", "mean", "variance")}, arg_is_test=1),
    one("SpatialBN", "epsilon", IMAGES, {name: (4,) for name in ("scale", "bias", "mean", "variance")}, arg_is_test=1, arg_epsilon=0.01),
    one("SpatialBN", "last", LAST, {name: (4,) for name in ("scale", "bias", "mean", "variance")}, arg_is_test=1, arg_order="NHWC"),
    one("SpatialBN", "volume", [(2, 4, 3, 5, 2)], {name: (4,) for name in ("scale", "bias", "mean", "variance")}, arg_is_test=1),
    one("LRN", "plain", IMAGES, arg_size=3, arg_alpha=0.5, arg_beta=0.75),
    one("LRN", "bias", IMAGES, arg_size=5, arg_alpha=0.1, arg_beta=0.5, arg_bias=2.0),
    one("LRN", "last", LAST, arg_size=3, arg_alpha=0.5, arg_beta=0.75, arg_order="NHWC"),
    one("Dropout", "served", [(3, 8)], arg_is_test=1, arg_ratio=0.5),
    one("Clip", "both", [(3, 8)], arg_min=-0.5, arg_max=0.25),
    one("Clip", "above", [(3, 8)], arg_max=0.25),
    one("Clip", "nothing", [(3, 8)]),
    one("LeakyRelu", "usual", [(3, 8)]),
    one("LeakyRelu", "told", [(3, 8)], arg_alpha=0.3),
    one("Elu", "told", [(3, 8)], arg_alpha=0.3),
    one("Selu", "usual", [(3, 8)]),
    one("Selu", "told", [(3, 8)], arg_alpha=1.5, arg_scale=1.1),
] + [
    one(kind, "plain", [(3, 8), (1, 5)], positive=kind in ("Log", "Sqrt"))
    for kind in (
        "Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Exp", "Log", "Sqrt", "Abs", "Negative", "Floor", "Ceil", "Copy", "StopGradient",
    )
]

NUMBERS = [
    case
    for kind in ("Add", "Sub", "Mul", "Div")
    for case in (
        one(kind, "same", [(3, 4)], others={"z": (3, 4)}, positive=True),
        one(kind, "as numpy", [(2, 3, 4)], others={"z": (3, 1)}, positive=True),
        one(kind, "left is smaller", [(4,)], others={"z": (2, 3, 4)}, positive=True),
        one(kind, "at the end", [(2, 3, 4)], {"w": (3, 4)}, arg_broadcast=1, positive=True),
        one(kind, "at an axis", [(2, 3, 4, 5)], {"w": (3,)}, arg_broadcast=1, arg_axis=1, positive=True),
        one(kind, "in the middle", [(2, 3, 4, 5)], {"w": (3, 4)}, arg_broadcast=1, arg_axis=1, positive=True),
        one(kind, "at the first axis", [(2, 3)], {"w": (2,)}, arg_broadcast=1, arg_axis=0, positive=True),
        one(kind, "one number", [(2, 3)], {"w": (1,)}, arg_broadcast=1, positive=True),
        one(kind, "whole", [(2, 3)], others={"z": (2, 3)}, takes="int32", gives="int32"),
        one(kind, "long", [(2, 3)], others={"z": (2, 3)}, takes="int64", gives="int64"),
    )
] + [
    one("Sum", "one", [(2, 3)]),
    one("Sum", "two", [(2, 3)], others={"z": (2, 3)}),
    one("Sum", "three", [(2, 3)], {"w": (2, 3)}, others={"z": (2, 3)}),
]

SHAPES = [
    one("Concat", "channels", IMAGES[:1], {"w": (1, 3, 9, 7)}),
    one("Concat", "axis", [(2, 3)], others={"z": (4, 3)}, arg_axis=0),
    one("Concat", "from the end", [(2, 3)], others={"z": (2, 5)}, arg_axis=-1),
    one("Concat", "last", LAST[:1], {"w": (1, 9, 7, 3)}, arg_order="NHWC"),
    one("Concat", "new axis", [(2, 3)], others={"z": (2, 3)}, arg_axis=1, arg_add_axis=1),
    Case("Split-even", [operator("Split", ["x"], ["a", "y"])], [(2, 4, 3)]),
    Case("Split-axis", [operator("Split", ["x"], ["a", "y", "b"], axis=2)], [(2, 4, 6)]),
    Case("Split-told", [operator("Split", ["x"], ["a", "y"], axis=1, split=[1, 4])], [(2, 5)]),
    Case("Split-input", [operator("Split", ["x", "parts"], ["a", "y"], axis=1)], [(2, 5)], {"parts": np.array([2, 3], np.int32)}),
    Case("Split-many", [operator("Split", ["x"], [*(f"a{i}" for i in range(69)), "y"], axis=1)], [(2, 140)]),
    Case("Split-last", [operator("Split", ["x"], ["a", "y"], order="NHWC")], [(2, 3, 3, 4)]),
    Case("Reshape-told", [operator("Reshape", ["x"], ["y", "old"], shape=[0, -1])], [(2, 3, 4)]),
    Case("Reshape-input", [operator("Reshape", ["x", "s"], ["y", "old"])], [(2, 3, 4)], {"s": np.array([4, -1], np.int64)}),
    Case("Reshape-short", [operator("Reshape", ["x", "s"], ["y", "old"])], [(2, 3, 4)], {"s": np.array([4, 0, 2], np.int32)}),
    Case("Reshape-back", [
        operator("Reshape", ["x"], ["flat", "old"], shape=[-1]), operator("Relu", ["flat"], ["flat"]), operator("Reshape", ["flat", "old"], ["y", "o"]),
    ], [(2, 3, 4), (5, 1, 2)]),
    one("Transpose", "reverse", [(2, 3, 4)]),
    one("Transpose", "told", [(2, 3, 4)], arg_axes=[1, 2, 0]),
    one("NCHW2NHWC", "images", IMAGES),
    one("NHWC2NCHW", "images", LAST),
    one("NCHW2NHWC", "volume", [(2, 3, 4, 5, 6)]),
    one("Flatten", "usual", [(2, 3, 4)]),
    one("Flatten", "axis", [(2, 3, 4)], arg_axis=2),
    one("Flatten", "front", [(2, 3, 4)], arg_axis=0),
    one("FlattenToVec", "all", [(2, 3, 4)]),
    one("Squeeze", "two", [(2, 1, 3, 1)], arg_dims=[1, 3]),
    one("ExpandDims", "two", [(2, 3)], arg_dims=[0, 3]),
    one("ExpandDims", "beside", [(2, 3)], arg_dims=[2, 1]),
    one("Slice", "part", [(5, 6)], arg_starts=[0, 2], arg_ends=[-1, 4]),
    one("Slice", "from the end", [(5, 6)], arg_starts=[0, -4], arg_ends=[-1, -2]),
    one("Slice", "first axis", [(5, 6)], arg_starts=[1], arg_ends=[3]),
    Case("Slice-inputs", [operator("Slice", ["x", "s", "e"], ["y"])], [(5, 6)], {"s": np.array([1, 0], np.int32), "e": np.array([3, -1], np.int32)}),
    Case("Gather-rows", [operator("Gather", ["x", "i"], ["y"])], [(5, 6)], {"i": np.array([[4, 0], [2, 2]], np.int32)}),
    Case("Gather-long", [operator("Gather", ["x", "i"], ["y"])], [(5, 6)], {"i": np.array([1, 3], np.int64)}),
    Case("Gather-axis", [operator("Gather", ["x", "i"], ["y"], axis=1)], [(5, 6, 2)], {"i": np.array([4, 0, 2], np.int32)}),
    one("ResizeNearest", "twice", IMAGES, arg_width_scale=2.0, arg_height_scale=2.0),
    one("ResizeNearest", "uneven", IMAGES, arg_width_scale=1.5, arg_height_scale=2.25),
    one("ResizeNearest", "smaller", IMAGES, arg_width_scale=0.5, arg_height_scale=0.75),
]

TO = {"int32": 2, "bool": 5, "uint8": 6, "int16": 9, "int64": 10, "float64": 13, "float32": 1}
CASTS = [one("Cast", f"to {name}", [(3, 4)], arg_to=number, gives=name, positive=True) for name, number in TO.items()]
CASTS += [one("Cast", f"named {name}", [(3, 4)], arg_to=name, gives=kind, positive=True) for name, kind in (("int32", "int32"), ("DOUBLE", "float64"))]
CASTS += [one("Cast", f"from {kind}", [(3, 4)], arg_to=1, takes=kind) for kind in ("int32", "int64", "uint8", "int16", "float64")]
CASTS += [one("Copy", kind, [(3, 4)], takes=kind, gives=kind) for kind in ("int32", "int64", "bool", "uint8")]


def filled(name: str, makes: list[bytes], answer: str = "float32") -> Case:
    return Case(name, makes, [(2, 3)], gives=answer)


FILLERS = [
    filled(f"Given-{kind}", [fill("y", np.array([[0, 1, 2], [3, 4, 5]]).astype(kind))], kind)
    for kind in ("float32", "float64", "int32", "int64", "bool", "int16", "uint8")
] + [
    filled("ConstantFill-float", [operator("ConstantFill", [], ["y"], shape=[2, 3], value=1.5)]),
    filled("ConstantFill-whole", [operator("ConstantFill", [], ["y"], shape=[2, 3], value=7)], "int64"),
    filled("ConstantFill-nothing", [operator("ConstantFill", [], ["y"], shape=[4])]),
    filled("ConstantFill-typed", [operator("ConstantFill", [], ["y"], shape=[4], value=7, dtype=2)], "int32"),
    filled("ConstantFill-truth", [operator("ConstantFill", [], ["y"], shape=[4], value=1, dtype=5)], "bool"),
    filled("ConstantFill-byte", [operator("ConstantFill", [], ["y"], shape=[4], value=200, dtype=6)], "uint8"),
    filled("ConstantFill-like", [operator("ConstantFill", ["x"], ["y"], value=2.5)]),
    filled("ConstantFill-like and more", [operator("ConstantFill", ["x"], ["y"], value=2.5, extra_shape=[4, 2])]),
    filled("ConstantFill-shape", [fill("s", np.array([3, 2], np.int64)), operator("ConstantFill", ["s"], ["y"], value=0.5, input_as_shape=1)]),
]

NETWORKS = [
    Case("Network-in place", [operator("Relu", ["x"], ["h"]), operator("Mul", ["h", "h"], ["h"]), operator("Add", ["h", "x"], ["y"])], [(3, 4)]),
    Case("Network-written twice", [
        operator("Relu", ["x"], ["y"]), operator("Copy", ["y"], ["kept"]), operator("Negative", ["x"], ["y"]), operator("Add", ["y", "kept"], ["y"]),
    ], [(3, 4)]),
    Case("Network-images", [
        operator("Conv", ["x", "w1", "b1"], ["c"], kernel=3, pad=1), operator("SpatialBN", ["c", "s", "b", "m", "variance"], ["c"], is_test=1),
        operator("Relu", ["c"], ["c"]), operator("MaxPool", ["c"], ["p"], kernel=2, stride=2), operator("Dropout", ["p"], ["p", "mask"], is_test=1),
        operator("AveragePool", ["p"], ["g"], global_pooling=1), operator("FC", ["g", "w2", "b2"], ["f"]), operator("Softmax", ["f"], ["y"]),
    ], IMAGES, {"w1": (6, 4, 3, 3), "b1": (6,), "s": (6,), "b": (6,), "m": (6,), "variance": (6,), "w2": (5, 6), "b2": (5,)}),
]

CASES = CONVOLUTIONS + POOLS + LAYERS + NUMBERS + SHAPES + CASTS + FILLERS + NETWORKS


def write(repository: Repository, name: str, tensors: str, content: bytes, init: bytes | None = None, batch: int = 0) -> Path:
    folder = repository.model(name, f'platform: "caffe2_netdef"\nmax_batch_size: {batch}\n{tensors}')
    (folder / "1" / "model.netdef").write_bytes(content)
    if init is not None:
        (folder / "1" / "init_model.netdef").write_bytes(init)
    return folder


# What Caffe2 refuses too, when it loads or runs, and what the error says here.
WRONG = [
    (one(kind, "wrong type", [(3, 8)], **{f"arg_{name}": value for name, value in arguments.items()}), f"the argument '{said}' has to be {what}")
    for kind, arguments, said, what in (
        ("LeakyRelu", {"alpha": 1}, "alpha", "a floating-point number"),
        ("Elu", {"alpha": 2}, "alpha", "a floating-point number"),
        ("Clip", {"min": 0, "max": 1}, "min", "a floating-point number"),
        ("Softmax", {"axis": 1.0}, "axis", "an integer"),
        ("ConstantFill", {"value": 1, "dtype": 1}, "value", "a floating-point number"),
        ("ConstantFill", {"value": 1.0, "dtype": 5}, "value", "an integer"),
    )
] + [
    (one("ResizeNearest", "wrong type", IMAGES, arg_width_scale=2, arg_height_scale=2.0), "the argument 'width_scale' has to be a floating-point number"),
    (one("MaxPool", "wrong type", IMAGES, arg_kernel=2, arg_stride=2.0), "the argument 'stride' has to be an integer"),
    (one("MaxPool", "wrong order", IMAGES, arg_kernel=2, arg_order=1), "the argument 'order' has to be a string"),
    (
        one("SpatialBN", "wrong type", IMAGES, {name: (4,) for name in ("scale", "bias", "mean", "variance")}, arg_is_test=1, arg_epsilon=1),
        "the argument 'epsilon' has to be a floating-point number",
    ),
    (conv("both", (5, 4, 3, 3), kernel=3, kernels=[2, 2]), "both 'kernels' and 'kernel' are given"),
    (conv("both", (5, 4, 3, 3), kernels=[3, 3], kernel_h=3, kernel_w=3), "both 'kernels' and 'kernel_h' are given"),
    (one("MaxPool", "global with a stride", IMAGES, arg_global_pooling=1, arg_stride=2), "global_pooling takes no stride, dilation or margins"),
    (one("MaxPool", "global with margins", IMAGES, arg_global_pooling=1, arg_pad=1), "global_pooling takes no stride, dilation or margins"),
    (one("Sum", "broadcast", [(2, 3)], {"w": (3,)}), "'w' has 1 dimensions, 'x' has 2"),
    (one("FC", "wide bias", [(3, 8)], {"w": (5, 8), "b": (1, 5)}), "'b' has 2 dimensions, 1 is needed"),
    (one("Slice", "nothing", [(5, 6)], arg_starts=[4, 0], arg_ends=[2, 3]), "starts has 4 where ends has 2"),
    (one("Slice", "nothing", [(5,)], arg_starts=[-2], arg_ends=[-4]), "starts has -2 where ends has -4"),
]


def write_case(repository: Repository, case: Case, name: str, rank: int) -> None:
    constants = case.constants()
    inputs = case.inputs(case.shapes[0])
    tensors = "".join(tensor("input", each, OF_NUMPY[array.dtype.name], [-1] * array.ndim) for each, array in inputs.items())
    tensors += tensor("output", case.output, OF_NUMPY[case.gives], [-1] * rank)
    content = net("case", case.operators, [*inputs, *constants], [case.output])
    init = net("init", [fill(each, array) for each, array in constants.items()], [], list(constants)) if constants else None
    write(repository, name, tensors, content, init)


# Models as they are served: eight numbers of sixteen, and what is wrong with some.

DENSE = [operator("FC", ["x", "w", "b"], ["h"]), operator("Tanh", ["h"], ["logits"])]
DENSE_TENSORS = tensor("input", "x", "FP32", [16]) + tensor("output", "logits", "FP32", [8])
IMAGE_TENSORS = DENSE_TENSORS.replace("[16]", "[4, 9, 7]").replace("[8]", "[-1, -1, -1]")
WEIGHTS = {name: np.random.default_rng(1).standard_normal(shape).astype(np.float32) for name, shape in (("w", (8, 16)), ("b", (8,)))}
FILLED = [fill(name, array) for name, array in WEIGHTS.items()]
INIT = net("init", FILLED, [], list(WEIGHTS))


def dense(operators: list[bytes] | None = None, outputs: tuple[str, ...] = ("logits",)) -> bytes:
    return net("dense", operators or DENSE, ["x", *WEIGHTS], outputs)


def answers(rows: np.ndarray) -> np.ndarray:
    return caffe2_oracle.answer(DENSE, {"x": rows} | WEIGHTS, "logits")


TRAINING = [operator("FC", ["x", "w", "b"], ["h"]), operator("Dropout", ["h"], ["logits", "mask"], ratio=0.5)]
MASK = [operator("FC", ["x", "w", "b"], ["h"]), operator("Dropout", ["h"], ["h", "mask"], is_test=1), operator("Mul", ["h", "mask"], ["logits"])]

# name: the model, its tensors, how the error ends
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "bad_operator": (
        dense([operator("FC", ["x", "w", "b"], ["h"]), operator("RoIAlign", ["h"], ["logits"])]), DENSE_TENSORS,
        "operator 'RoIAlign' that computes 'logits': operators of this type are not supported",
    ),
    "bad_random": (
        dense([operator("XavierFill", [], ["w2"], shape=[8, 16]), *DENSE]), DENSE_TENSORS,
        "operator 'XavierFill' that computes 'w2': operators of this type are not supported",
    ),
    "bad_argument": (
        dense([operator("FC", ["x", "w", "b"], ["h"]), operator("Tanh", ["h"], ["logits"], slope=2)]), DENSE_TENSORS,
        "operator 'Tanh' that computes 'logits': the argument 'slope' is not supported",
    ),
    "bad_inputs": (
        dense([operator("FC", ["x", "w"], ["logits"])]), DENSE_TENSORS,
        "operator 'FC' that computes 'logits': it has 2 inputs, 3 to 3 are supported",
    ),
    "bad_training": (
        dense(TRAINING), DENSE_TENSORS,
        "operator 'Dropout' that computes 'logits': it is set up for training: the argument is_test has to be 1",
    ),
    "bad_mask": (
        dense(MASK), DENSE_TENSORS, "operator 'Mul' that computes 'logits': its input 'mask' is an output that is not translated",
    ),
    "bad_blob": (
        dense([operator("FC", ["x", "w", "lost"], ["logits"])]), DENSE_TENSORS,
        "its input 'lost' is computed by no operator before it, and is no input of the configuration",
    ),
    "bad_input": (
        dense(), DENSE_TENSORS.replace('"x"', '"image"'),
        "the configuration has the input 'image', which is no external input of the network",
    ),
    "bad_output": (
        dense(), DENSE_TENSORS.replace('"logits"', '"h"'),
        "the configuration has the output 'h', which is no external output that the network computes",
    ),
    "bad_dims": (dense(), DENSE_TENSORS.replace("[8]", "[9]"), ""),
    "bad_type": (dense(), DENSE_TENSORS.replace("FP32", "INT32", 1), ""),
    "bad_string": (dense(), DENSE_TENSORS.replace("FP32", "STRING", 1), "tensor 'x': Caffe2 has no TYPE_BYTES"),
    "bad_file": (dense()[:-20], DENSE_TENSORS, "model.netdef' is no NetDef: it breaks off, or is something else"),
    "bad_text": (b"name: 'text'", DENSE_TENSORS, "model.netdef' is no NetDef: it breaks off, or is something else"),
    "bad_order": (
        dense([operator("LRN", ["x"], ["logits"], size=3, order="CHWN")]), DENSE_TENSORS, "order is neither NCHW nor NHWC",
    ),
    "bad_axis": (dense([operator("Softmax", ["x"], ["logits"], axis=2)]), DENSE_TENSORS, "axis is 2, of 2 dimensions"),
    "bad_rank": (
        dense([operator("Concat", ["x"] if step == 0 else [f"h{step}"], [f"h{step + 1}", "parts"], add_axis=1, axis=0) for step in range(31)]
              + [operator("NCHW2NHWC", ["h31"], ["logits"])]), DENSE_TENSORS, "'h31' has 33 dimensions, at most 32 are supported",
    ),
    "bad_shape": (
        dense([operator("GivenTensorFill", [], ["y"], shape=[1 << 40], values=[1.0]), *DENSE]), DENSE_TENSORS,
        "shape has a negative dimension, or is larger than 2 GiB",
    ),
    "bad_doubles": (
        dense([operator("ConstantFill", [], ["y"], shape=[(1 << 31) - 1], dtype=13), *DENSE]), DENSE_TENSORS,
        "operator 'ConstantFill' that computes 'y': shape has a negative dimension, or is larger than 2 GiB",
    ),
    "bad_empty": (b"", DENSE_TENSORS, "model.netdef' is no NetDef: it has neither operators nor external inputs"),
    "bad_made_name": (
        dense([operator("FC", ["x", "w", "b"], ["nereid:0"])], ("nereid:0",)), DENSE_TENSORS.replace("logits", "nereid:0"),
        "tensor 'nereid:0': names that begin with 'nereid:' are those of the translation: give it another",
    ),
    "bad_utf8": (
        dense([operator("FC", ["x", "w", "b"], ["h"]), operator("Tan\u00ff", ["h"], ["logits"])]).replace("\u00ff".encode(), b"h\xff"), DENSE_TENSORS,
        "operator 'Tanh\\xff' that computes 'logits': operators of this type are not supported",
    ),
    "bad_caffe_padding": (
        dense([operator("ConvTranspose", ["x", "w"], ["logits"], kernel=3, legacy_pad=3)]), IMAGE_TENSORS,
        "operator 'ConvTranspose' that computes 'logits': legacy_pad 3 is for pooling",
    ),
    "bad_two_paddings": (
        dense([operator("MaxPool", ["x"], ["logits"], kernel=3, pad=1, pads=[0, 0, 0, 0])]), IMAGE_TENSORS,
        "operator 'MaxPool' that computes 'logits': both 'pads' and 'pad' are given",
    ),
    "bad_values": (
        dense([operator("GivenTensorFill", [], ["y"], shape=[3], values=[1.0]), *DENSE]), DENSE_TENSORS,
        "values has 1 elements for a shape of 3",
    ),
}


def write_models(repository: Repository) -> None:
    for number, case in enumerate(CASES):
        expected = caffe2_oracle.answer(case.operators, case.inputs(case.shapes[0]) | case.constants(), case.output)
        write_case(repository, case, f"case{number}", expected.ndim)
    for number, (case, _said) in enumerate(WRONG):
        write_case(repository, case, f"wrong{number}", 1)
    write(repository, "dense", DENSE_TENSORS, dense(), INIT, 16)
    batching = "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 500000 }\ninstance_group { count: 2 kind: KIND_CPU }\n"
    write(repository, "dense_many", DENSE_TENSORS + batching, dense(), INIT, 16)
    write(repository, "one_file", DENSE_TENSORS, dense(FILLED + DENSE), None, 16)
    named = write(repository, "named", DENSE_TENSORS + 'default_model_filename: "net.pb"\n', dense(), INIT, 16)
    (named / "1" / "model.netdef").rename(named / "1" / "net.pb")
    (named / "1" / "init_model.netdef").rename(named / "1" / "init_net.pb")
    example = [*FILLED, operator("ConstantFill", [], ["x"], shape=[1], value=0.0)]
    write(repository, "example", DENSE_TENSORS, dense(), net("init", example, [], [*WEIGHTS, "x"]), 16)
    write(repository, "open", DENSE_TENSORS.replace("[8]", "[-1]"), dense(), INIT, 16)
    write(repository, "both", DENSE_TENSORS + tensor("output", "h", "FP32", [8]), dense(outputs=("h", "logits")), INIT, 16)
    shaped = tensor("input", "x", "FP32", [4, 4], "reshape { shape: [16] }") + tensor("output", "logits", "FP32", [2, 4], "reshape { shape: [8] }")
    write(repository, "reshaped", shaped, dense(), INIT, 16)
    summed = 'sequence_batching { max_sequence_idle_microseconds: 600000000 state { input_name: "x_state" output_name: "y" data_type: TYPE_FP32 dims: [1] ' \
        'initial_state { name: "zero" data_type: TYPE_FP32 dims: [1] zero_data: true } } ' \
        'control_input { name: "start" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } } }\n'
    adds = [operator("Add", ["x", "x_state"], ["h"]), operator("Add", ["h", "start"], ["y"])]
    state = tensor("input", "x", "FP32", [1]) + tensor("output", "y", "FP32", [1])
    write(repository, "state", state + summed, net("state", adds, ["x", "x_state", "start"], ["y"]), None, 4)
    for name, (content, tensors, _) in REFUSED.items():
        write(repository, name, tensors, content, INIT, 16)
    write(repository, "bad_init", DENSE_TENSORS, dense(), INIT[:-9], 16)
    (write(repository, "bad_missing", DENSE_TENSORS, dense(), INIT, 16) / "1" / "model.netdef").unlink()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("caffe2") / "models")
    write_models(made)
    return made


@pytest.fixture(scope="module")
def served(repository: Repository) -> Iterator[Server]:
    with Nereid(repository.path, {"model-control-mode": "explicit"}) as server:
        yield server


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_each_operator(served: Server, number: int) -> None:
    """MR-34, MR-62: as Caffe2 computes it."""
    case = CASES[number]
    assert load(served, f"case{number}") == (200, "")
    for shape in case.shapes:
        inputs = case.inputs(shape)
        expected = caffe2_oracle.answer(case.operators, inputs | case.constants(), case.output)
        found = ask(served, "grpc", f"case{number}", inputs)[case.output]
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("number", range(len(WRONG)), ids=[case.name for case, _ in WRONG])
def test_refuses_what_caffe2_refuses(served: Server, number: int) -> None:
    case, said = WRONG[number]
    with pytest.raises(caffe2_oracle.Refused):
        caffe2_oracle.answer(case.operators, case.inputs(case.shapes[0]) | case.constants(), case.output)
    status, error = load(served, f"wrong{number}")
    assert status == 400
    assert f"operator '{case.name.split('-')[0]}' that computes 'y': {said}" in error


# Models


@PROTOCOLS
@pytest.mark.parametrize("model", ["dense", "dense_many", "one_file", "named", "example", "open"])
def test_batches_of_every_size(served: Server, protocol: str, model: str) -> None:
    """MR-34, MR-35, X-02: two files of the usual names or of others, one file that has everything, an input that the weights' file fills too."""
    assert load(served, model) == (200, "")
    batches.are_right_in_every_size(served, protocol, model, "logits", answers)
    assert config(served, model)["platform"] == "caffe2_netdef"


def test_each_request_gets_its_rows(served: Server) -> None:
    assert load(served, "dense_many") == (200, "")
    batches.give_each_request_its_rows(served, "dense_many", "logits", answers, together=True)


@PROTOCOLS
def test_several_outputs(served: Server, protocol: str) -> None:
    assert load(served, "both") == (200, "")
    found = ask(served, protocol, "both", {"x": np.ones((2, 16), np.float32)})
    np.testing.assert_allclose(np.tanh(found["h"]), found["logits"], atol=1e-6)
    assert list(ask(served, protocol, "both", {"x": np.ones((2, 16), np.float32)}, ["h"])) == ["h"]


@PROTOCOLS
def test_reshape(served: Server, protocol: str) -> None:
    assert load(served, "reshaped") == (200, "")
    rows = np.random.default_rng(9).standard_normal((3, 4, 4)).astype(np.float32)
    found = ask(served, protocol, "reshaped", {"x": rows})["logits"]
    np.testing.assert_allclose(found, answers(rows.reshape(3, 16)).reshape(3, 2, 4), atol=1e-5)


def test_states_and_controls_of_sequences(served: Server) -> None:
    """A network may take both."""
    assert load(served, "state") == (200, "")
    found = []
    for step in range(3):
        row = {"x": np.full((1, 1), 10.0, np.float32)}
        found.append(float(ask(served, "grpc", "state", row, sequence_id=7, sequence_start=step == 0, sequence_end=step == 2)["y"][0, 0]))
    assert found == [11.0, 21.0, 31.0]


@pytest.mark.parametrize("name", list(REFUSED))
def test_refuses_and_says_why(served: Server, name: str) -> None:
    """What is not translated is named, with the operator."""
    status, error = load(served, name)
    assert status == 400
    assert REFUSED[name][2] in error, error


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bad_init", "init_model.netdef' is no NetDef: it breaks off, or is something else"),
        ("bad_missing", "model.netdef' for model 'bad_missing': No such file or directory"),
    ],
)
def test_refuses_files(served: Server, name: str, said: str) -> None:
    status, error = load(served, name)
    assert status == 400
    assert said in error, error


def test_a_wrong_input_is_the_request_s(served: Server) -> None:
    assert load(served, "dense") == (200, "")
    for wrong in (np.ones((1, 17), np.float32), np.ones((1, 16), np.float64)):
        with pytest.raises(Exception, match="input 'x'"):
            ask(served, "grpc", "dense", {"x": wrong})
    assert ask(served, "grpc", "dense", {"x": np.ones((1, 16), np.float32)})["logits"].shape == (1, 8)


def test_loading_and_unloading_leaves_nothing(repository: Repository) -> None:
    loads_and_unloads(repository.path, "dense_many", {"x": np.ones((2, 16), np.float32)})
