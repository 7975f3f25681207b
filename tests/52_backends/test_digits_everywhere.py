"""The digits network in every format, all in one process: all 1,797 images get the class that the ONNX sample gives, and logits near NumPy's."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import paths
from harness.digits import load_digits
from harness.servers import Nereid, Server

from clients import PROTOCOLS, at_once, config

MODELS = [
    "digits_openvino", "digits_openvino_auto", "digits_openvino_onnx", "digits_accelerated", "digits_pytorch", "digits_tensorflow",
    "digits_tensorflow_saved", "digits_caffe2",
]


@pytest.fixture(scope="module")
def everywhere() -> Iterator[Server]:
    repositories = [paths.SAMPLE_MODELS]
    repositories += [paths.need(paths.ROOT / "build" / f"models-{name}") for name in ("caffe2", "openvino", "onnxruntime-openvino", "pytorch", "tensorflow")]
    with Nereid(repositories) as server:
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
    kinds = [(model, protocol) for model in ["digits", *MODELS] for protocol in ("http", "grpc")]

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
