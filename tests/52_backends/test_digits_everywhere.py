"""The digits network in every format, all in one process: all 1,797 images get the class that the ONNX sample gives, and logits near NumPy's."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import paths
from harness.digits import load_digits
from harness.repository import Repository
from harness.servers import WITH_NUMPY, Nereid, Server

from clients import PROTOCOLS, at_once, config

MODELS = [
    "digits_openvino", "digits_openvino_auto", "digits_openvino_onnx", "digits_accelerated", "digits_pytorch", "digits_tensorflow",
    "digits_tensorflow_saved", "digits_caffe2", "digits", "digits_directory", "digits_custom", "digits_python", "digits_ensemble",
]
DIGITS = """
    max_batch_size: 64
    input [ { name: "image" data_type: TYPE_FP32 dims: [ 64 ] } ]
    output [ { name: "logits" data_type: TYPE_FP32 dims: [ 10 ] } ]
"""
IN_PYTHON = """
import os
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.weights = np.load(os.path.join(args["model_repository"], "weights.npz"))

    def execute(self, requests):
        def logits(image):
            hidden = np.maximum(image @ self.weights["w0"] + self.weights["b0"], 0)
            return hidden @ self.weights["w1"] + self.weights["b1"]
        return [pb.InferenceResponse([pb.Tensor("logits", logits(pb.get_input_tensor_by_name(each, "image").as_numpy()))]) for each in requests]
"""
# Of what the ensemble's other steps give.
STEPS = (("digits_pytorch", "logits__0", "a"), ("digits_custom", "logits", "b"), ("digits_tensorflow", "logits", "c"))
MEAN = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        def mean(request):
            return sum(pb.get_input_tensor_by_name(request, name).as_numpy() for name in ("a", "b", "c")) / 3
        return [pb.InferenceResponse([pb.Tensor("logits", mean(each))]) for each in requests]
"""


def without_samples(repository: Repository) -> None:
    """The formats that no sample has: a directory, whose configuration is made, custom.h, Python, and an ensemble over three."""
    weights = paths.need(paths.ROOT / "build" / "models-examples" / "digits_weights.npz")
    directory = repository.model("digits_directory", None) / "1" / "model.onnx"
    directory.mkdir()
    shutil.copy(paths.SAMPLE_MODELS / "digits" / "1" / "model.onnx", directory / "model.onnx")
    custom = repository.model("digits_custom", f'name: "digits_custom" platform: "custom" {DIGITS}')
    shutil.copy(paths.need(paths.BUILD / "tests" / "custom" / "libdigits.so"), custom / "1" / "libcustom.so")
    with np.load(weights) as each:
        (custom / "weights").write_bytes(b"".join(each[name].astype("<f4").tobytes() for name in ("w0", "b0", "w1", "b1")))
    python = repository.model("digits_python", f'name: "digits_python" backend: "python" {DIGITS}')
    (python / "1" / "model.py").write_text(IN_PYTHON)
    shutil.copy(weights, python / "weights.npz")
    inputs = "".join(f'input [ {{ name: "{name}" data_type: TYPE_FP32 dims: [ 10 ] }} ]\n' for name in "abc")
    mean = repository.model("digits_mean", f"""name: "digits_mean" backend: "python" max_batch_size: 64 {inputs}
        output [ {{ name: "logits" data_type: TYPE_FP32 dims: [ 10 ] }} ]""")
    (mean / "1" / "model.py").write_text(MEAN)
    steps = "".join(f"""step [ {{ model_name: "{model}" model_version: -1 input_map {{ key: "image" value: "image" }}
        output_map {{ key: "{output}" value: "{name}" }} }} ]\n""" for model, output, name in STEPS)
    repository.model("digits_ensemble", f"""name: "digits_ensemble" platform: "ensemble" {DIGITS} ensemble_scheduling {{ {steps}
        step [ {{ model_name: "digits_mean" model_version: -1 output_map {{ key: "logits" value: "logits" }}
        {" ".join(f'input_map {{ key: "{name}" value: "{name}" }}' for name in "abc")} }} ] }}""")


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    own = Repository(tmp_path_factory.mktemp("digits") / "models")
    without_samples(own)
    repositories = [paths.SAMPLE_MODELS, own.path]
    repositories += [paths.need(paths.ROOT / "build" / f"models-{name}") for name in ("caffe2", "openvino", "onnxruntime-openvino", "pytorch", "tensorflow")]
    with Nereid(repositories, env=WITH_NUMPY) as server:
        yield server


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return load_digits().data


@pytest.fixture(scope="module")
def logits(images: np.ndarray) -> np.ndarray:
    with np.load(paths.need(paths.ROOT / "build" / "models-examples" / "digits_weights.npz")) as weights:
        hidden = np.maximum(images @ weights["w0"] + weights["b0"], 0)
        return hidden @ weights["w1"] + weights["b1"]


def answers(server: Server, protocol: str, model: str, images: np.ndarray) -> np.ndarray:
    library = httpclient if protocol == "http" else grpcclient
    told = config(server, model)
    size, output = max(1, int(told["max_batch_size"])), told["output"][0]["name"]
    found = []
    with library.InferenceServerClient(getattr(server, protocol)) as client:
        for start in range(0, len(images), size):
            part = images[start : start + size]
            sent = library.InferInput("image", list(part.shape), "FP32")
            sent.set_data_from_numpy(part)
            found.append(client.infer(model, [sent]).as_numpy(output))
    return np.concatenate(found)


@PROTOCOLS
@pytest.mark.parametrize("model", MODELS)
def test_every_image(everywhere: Server, protocol: str, model: str, images: np.ndarray, logits: np.ndarray) -> None:
    found = answers(everywhere, protocol, model, images)
    assert len(found) == 1797
    np.testing.assert_allclose(found, logits, atol=1e-4)
    expected = answers(everywhere, protocol, "digits", images)
    np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))


def test_all_runtimes_at_once(everywhere: Server, images: np.ndarray, logits: np.ndarray) -> None:
    """In one process, each with threads of its own: none takes anything from another."""
    kinds = [(model, protocol) for model in MODELS for protocol in ("http", "grpc")]

    def one(index: int) -> None:
        model, protocol = kinds[index % len(kinds)]
        for start in range(0, 480, 120):
            found = answers(everywhere, protocol, model, images[start : start + 120])
            np.testing.assert_allclose(found, logits[start : start + 120], atol=1e-4)

    at_once(2 * len(kinds), one)
    maps = Path(f"/proc/{everywhere.pid}/maps").read_text()
    for library in ("libonnxruntime.so.1", "libonnxruntime_providers_openvino.so", "libopenvino_c.so", "libtorch_cpu.so", "libtensorflow_cc.so.2"):
        assert library in maps


def test_a_layout_says_that_a_model_can_batch(everywhere: Server) -> None:
    """The whole configuration of a bare IR file whose layout names the batch."""
    found = config(everywhere, "digits_openvino_auto")
    assert (found["backend"], found["max_batch_size"], "dynamic_batching" in found) == ("openvino", 4, True)
    for kind, name, dims in (("input", "image", [64]), ("output", "logits", [10])):
        (entry,) = found[kind]
        assert (entry["name"], entry["data_type"], [int(dim) for dim in entry["dims"]]) == (name, "TYPE_FP32", dims)
