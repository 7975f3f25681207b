"""The digits network in every format: all 1,797 images get the class that the ONNX sample gives, and logits near NumPy's."""

from collections.abc import Iterator

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import paths
from harness.servers import Nereid, Server
from sklearn.datasets import load_digits

from clients import PROTOCOLS, config

MODELS = ["digits_openvino", "digits_openvino_auto", "digits_openvino_onnx", "digits_accelerated"]


@pytest.fixture(scope="module")
def everywhere() -> Iterator[Server]:
    repositories = [paths.SAMPLE_MODELS]
    repositories += [paths.need(paths.ROOT / "build" / f"models-{name}") for name in ("openvino", "onnxruntime-openvino")]
    with Nereid(repositories) as server:
        yield server


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return load_digits().data.astype(np.float32)


@pytest.fixture(scope="module")
def logits(images: np.ndarray) -> np.ndarray:
    with np.load(paths.need(paths.ROOT / "build" / "models-examples" / "digits_weights.npz")) as weights:
        hidden = np.maximum(images @ weights["w0"] + weights["b0"], 0)
        return hidden @ weights["w1"] + weights["b1"]


def answers(server: Server, protocol: str, model: str, images: np.ndarray) -> np.ndarray:
    library = httpclient if protocol == "http" else grpcclient
    size = max(1, int(config(server, model)["max_batch_size"]))
    found = []
    with library.InferenceServerClient(getattr(server, protocol)) as client:
        for start in range(0, len(images), size):
            part = images[start : start + size]
            sent = library.InferInput("image", list(part.shape), "FP32")
            sent.set_data_from_numpy(part)
            found.append(client.infer(model, [sent]).as_numpy("logits"))
    return np.concatenate(found)


@PROTOCOLS
@pytest.mark.parametrize("model", MODELS)
def test_every_image(everywhere: Server, protocol: str, model: str, images: np.ndarray, logits: np.ndarray) -> None:
    found = answers(everywhere, protocol, model, images)
    assert len(found) == 1797
    np.testing.assert_allclose(found, logits, atol=1e-4)
    expected = answers(everywhere, protocol, "digits", images)
    np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))


def test_a_layout_says_that_a_model_can_batch(everywhere: Server) -> None:
    """The whole configuration of a bare IR file whose layout names the batch."""
    found = config(everywhere, "digits_openvino_auto")
    assert (found["backend"], found["max_batch_size"], "dynamic_batching" in found) == ("openvino", 4, True)
    for kind, name, dims in (("input", "image", [64]), ("output", "logits", [10])):
        (entry,) = found[kind]
        assert (entry["name"], entry["data_type"], [int(dim) for dim in entry["dims"]]) == (name, "TYPE_FP32", dims)
