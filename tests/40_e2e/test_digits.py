"""The main job on real input: all 1,797 handwritten digits get the class that ONNX Runtime gives."""

from dataclasses import dataclass

import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import paths, rawgrpc, rawhttp
from harness.digits import load_digits
from harness.servers import Server
from tritonclient.grpc import service_pb2 as pb

pytestmark = pytest.mark.onnx

TOLERANCE = 1e-5
MODELS = ("digits", "digits_auto")


@dataclass(frozen=True)
class Digits:
    images: np.ndarray
    logits: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        return self.logits.argmax(axis=1)


@pytest.fixture(scope="module")
def digits() -> Digits:
    images = load_digits().data
    assert len(images) == 1797
    model = paths.need(paths.SAMPLE_MODELS / "digits" / "1" / "model.onnx")
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {session.get_inputs()[0].name: images})
    return Digits(images, logits)


def _same(digits: Digits, got: np.ndarray, start: int = 0) -> None:
    wanted = digits.logits[start : start + len(got)]
    np.testing.assert_allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_array_equal(got.argmax(axis=1), wanted.argmax(axis=1))


def test_the_network_is_right(digits: Digits) -> None:
    """The sample model reads digits at all: else equal answers would prove little."""
    assert (digits.classes == load_digits().target).mean() > 0.95


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
def test_http_one_by_one(sample_server: Server, digits: Digits, binary: bool) -> None:
    got = []
    with httpclient.InferenceServerClient(sample_server.http) as client:
        for image in digits.images:
            sent = httpclient.InferInput("image", [1, 64], "FP32")
            sent.set_data_from_numpy(image[None], binary_data=binary)
            outputs = [httpclient.InferRequestedOutput("logits", binary_data=binary)]
            got.append(client.infer("digits", [sent], outputs=outputs).as_numpy("logits")[0])
    assert len(got) == 1797
    _same(digits, np.stack(got))


def test_grpc_at_once(sample_server: Server, digits: Digits) -> None:
    """One call a digit, 64 under way: answers come from batches that the server made."""
    got = np.empty_like(digits.logits)
    with rawgrpc.Channel(sample_server.grpc) as channel:
        stub = channel.channel.unary_unary(f"/{rawgrpc.SERVICE}/ModelInfer")
        for start in range(0, len(got), 64):
            calls = [
                (at, stub.future(_request(digits.images[at : at + 1]), timeout=60))
                for at in range(start, min(start + 64, len(got)))
            ]
            for at, call in calls:
                message = pb.ModelInferResponse.FromString(call.result())
                got[at] = np.frombuffer(message.raw_output_contents[0], dtype="<f4")
    _same(digits, got)


def _request(images: np.ndarray) -> bytes:
    tensor = ("image", "FP32", list(images.shape), images.tobytes())
    return rawgrpc.infer_request("digits", [tensor]).SerializeToString()


@pytest.mark.parametrize("model", MODELS)
def test_batches(sample_server: Server, digits: Digits, model: str) -> None:
    """MR-56, MC-39, MC-40: Batches of the client's own making; digits_auto has no config.pbtxt."""
    with grpcclient.InferenceServerClient(sample_server.grpc) as client:
        size = min(32, client.get_model_config(model).config.max_batch_size)
        assert size > 1
        for start in range(0, len(digits.images), size):
            part = digits.images[start : start + size]
            sent = grpcclient.InferInput("image", list(part.shape), "FP32")
            sent.set_data_from_numpy(part)
            _same(digits, client.infer(model, [sent]).as_numpy("logits"), start)


def test_generated_configuration(sample_server: Server) -> None:
    """MC-36, MC-39, MC-43: the required part is read from the ONNX file and shown."""
    config = rawhttp.get(sample_server.http, "/v2/models/digits_auto/config").json()
    assert (config["name"], config["backend"], config["platform"]) == (
        "digits_auto",
        "onnxruntime",
        "onnxruntime_onnx",
    )
    assert config["max_batch_size"] == 4  # the default where the model can batch
    assert [(each["name"], each["data_type"], each["dims"]) for each in config["input"]] == [
        ("image", "TYPE_FP32", [64])
    ]
    assert [(each["name"], each["data_type"], each["dims"]) for each in config["output"]] == [
        ("logits", "TYPE_FP32", [10])
    ]


def test_wrong_questions(sample_server: Server) -> None:
    data = [0.0] * 64
    tensor = {"name": "image", "datatype": "FP32", "shape": [1, 64], "data": data}
    for wrong in (
        {"shape": [1, 63], "data": data[1:]},
        {"datatype": "INT32", "data": [0] * 64},
        {"name": "picture"},
    ):
        answer = rawhttp.post(
            sample_server.http, "/v2/models/digits/infer", {"inputs": [{**tensor, **wrong}]}
        )
        assert answer.status == 400, answer.body
        assert answer.json()["error"]
