"""Writes the sample model repository and example requests.

    python tools/sample_repository.py MODELS EXAMPLES

MODELS gets three models:
    digits         a small network for handwritten digits (ONNX), with a configuration and labels
    digits_auto    the same file without a configuration, which the server then fills in
    identity_fp32  returns its input vector

MODELS-caffe2, a directory next to MODELS, gets the same network as NetDef:
    digits_caffe2  model.netdef with init_model.netdef, with a configuration

MODELS-<backend> gets the same network for each backend that is built only on request. MODELS-openvino:
    digits_openvino       as OpenVINO IR, with a configuration
    digits_openvino_auto  the same files without a configuration
    digits_openvino_onnx  the ONNX file
MODELS-onnxruntime-openvino:
    digits_accelerated    the ONNX file, for ONNX Runtime with OpenVINO as accelerator
MODELS-pytorch:
    digits_pytorch        as TorchScript
MODELS-tensorflow:
    digits_tensorflow       as GraphDef, with a configuration
    digits_tensorflow_saved as SavedModel, without one

EXAMPLES gets request bodies for curl, the real images with the answers that ONNX Runtime in Python
gives for them (digits.npz), and the weights of the network in a neutral form (digits_weights.npz).

The network is trained here, on the 1,797 images of 8x8 pixels that come with scikit-learn, with a
fixed seed.
"""

import json
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import sample_caffe2
import sample_openvino
import sample_tensorflow
import sample_torchscript
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

SEED = 7
HIDDEN = 32
BRIGHTEST = 16.0
LABELS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

DIGITS_CONFIG = """\
name: "digits"
backend: "onnxruntime"
max_batch_size: 64
input [
  {
    name: "image"
    data_type: TYPE_FP32
    dims: [ 64 ]
  }
]
output [
  {
    name: "logits"
    data_type: TYPE_FP32
    dims: [ 10 ]
    label_filename: "digits_labels.txt"
  }
]
dynamic_batching {
  max_queue_delay_microseconds: 500
}
"""

OPENVINO_CONFIGS = {
    "digits_openvino": DIGITS_CONFIG.replace("onnxruntime", "openvino").replace('"digits"', '"digits_openvino"'),
    "digits_openvino_auto": None,
    "digits_openvino_onnx": 'backend: "openvino"\ndefault_model_filename: "model.onnx"\nmax_batch_size: 64\n',
}

ACCELERATED_CONFIG = """\
backend: "onnxruntime"
max_batch_size: 64
optimization { execution_accelerators { cpu_execution_accelerator: [ { name: "openvino" } ] } }
"""

# Outputs of TorchScript have no names; the configuration names them by position.
PYTORCH_CONFIG = (
    DIGITS_CONFIG.replace("onnxruntime", "pytorch").replace('"digits"', '"digits_pytorch"').replace('"logits"', '"logits__0"')
)

TENSORFLOW_CONFIG = DIGITS_CONFIG.replace('backend: "onnxruntime"', 'platform: "tensorflow_graphdef"').replace('"digits"', '"digits_tensorflow"')

CAFFE2_CONFIG = DIGITS_CONFIG.replace('backend: "onnxruntime"', 'platform: "caffe2_netdef"').replace('"digits"', '"digits_caffe2"')

IDENTITY_CONFIG = """\
name: "identity_fp32"
backend: "identity"
max_batch_size: 0
input [
  {
    name: "INPUT0"
    data_type: TYPE_FP32
    dims: [ -1 ]
  }
]
output [
  {
    name: "OUTPUT0"
    data_type: TYPE_FP32
    dims: [ -1 ]
  }
]
"""


def train(images: np.ndarray, classes: np.ndarray) -> dict[str, np.ndarray]:
    """Weights of logits = relu(image / 16 @ w0 + b0) @ w1 + b1."""
    network = MLPClassifier((HIDDEN,), random_state=SEED, max_iter=80, learning_rate_init=0.005)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(images / BRIGHTEST, classes)
    (w0, w1), (b0, b1) = network.coefs_, network.intercepts_
    arrays = {"w0": w0 / BRIGHTEST, "b0": b0, "w1": w1, "b1": b1}
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def onnx_model(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gemm", ["image", "w0", "b0"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "w1", "b1"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    # All versions of ONNX Runtime in use support this version.
    model = helper.make_model(
        graph, producer_name="nereid", ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )
    onnx.checker.check_model(model)
    return model


def write_repository(models: Path, model: onnx.ModelProto) -> None:
    for name in ("digits", "digits_auto", "identity_fp32"):
        (models / name / "1").mkdir(parents=True)
    for name in ("digits", "digits_auto"):
        onnx.save(model, models / name / "1" / "model.onnx")
    (models / "digits" / "config.pbtxt").write_text(DIGITS_CONFIG)
    (models / "digits" / "digits_labels.txt").write_text("\n".join(LABELS) + "\n")
    (models / "identity_fp32" / "config.pbtxt").write_text(IDENTITY_CONFIG)


def write_openvino(models: Path, weights: dict[str, np.ndarray], model: onnx.ModelProto) -> None:
    for name, config in OPENVINO_CONFIGS.items():
        sample_openvino.write_digits(models / name / "1", weights)
        if config:
            (models / name / "config.pbtxt").write_text(config)
    (models / "digits_openvino" / "digits_labels.txt").write_text("\n".join(LABELS) + "\n")
    onnx_folder = models / "digits_openvino_onnx" / "1"
    for file in onnx_folder.iterdir():
        file.unlink()
    onnx.save(model, onnx_folder / "model.onnx")


def write_accelerated(models: Path, model: onnx.ModelProto) -> None:
    folder = models / "digits_accelerated"
    (folder / "1").mkdir(parents=True)
    onnx.save(model, folder / "1" / "model.onnx")
    (folder / "config.pbtxt").write_text(ACCELERATED_CONFIG)


def write_pytorch(models: Path, weights: dict[str, np.ndarray]) -> None:
    folder = models / "digits_pytorch"
    sample_torchscript.write_digits(folder / "1", weights)
    (folder / "config.pbtxt").write_text(PYTORCH_CONFIG)
    (folder / "digits_labels.txt").write_text("\n".join(LABELS) + "\n")


def write_tensorflow(models: Path, weights: dict[str, np.ndarray]) -> None:
    folder = models / "digits_tensorflow"
    sample_tensorflow.write_digits_graph(folder / "1", weights)
    (folder / "config.pbtxt").write_text(TENSORFLOW_CONFIG)
    (folder / "digits_labels.txt").write_text("\n".join(LABELS) + "\n")
    sample_tensorflow.write_digits_saved(models / "digits_tensorflow_saved" / "1", weights)


def write_caffe2(models: Path, weights: dict[str, np.ndarray]) -> None:
    folder = models / "digits_caffe2"
    sample_caffe2.write_digits(folder / "1", weights)
    (folder / "config.pbtxt").write_text(CAFFE2_CONFIG)
    (folder / "digits_labels.txt").write_text("\n".join(LABELS) + "\n")


def request_body(name: str, shape: list[int], data: list[float], outputs: list[dict]) -> str:
    body = {
        "inputs": [{"name": name, "datatype": "FP32", "shape": shape, "data": data}],
        "outputs": outputs,
    }
    return json.dumps(body) + "\n"


def write_examples(
    examples: Path, images: np.ndarray, classes: np.ndarray, weights: dict[str, np.ndarray], model: onnx.ModelProto
) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"image": images})
    right = float(np.mean(logits.argmax(axis=1) == classes))
    if right < 0.98:
        raise SystemExit(f"the network learned badly: {right:.1%} of the images right")

    image = [float(pixel) for pixel in images[7]]
    best = {"name": "logits", "parameters": {"classification": 1}}
    (examples / "digit.json").write_text(request_body("image", [1, 64], image, [best]))
    (examples / "digit_logits.json").write_text(request_body("image", [1, 64], image, [{"name": "logits"}]))
    (examples / "identity.json").write_text(
        request_body("INPUT0", [4], [1.0, 2.0, 3.0, 4.0], [{"name": "OUTPUT0"}])
    )
    np.savez(examples / "digits.npz", images=images, classes=classes, logits=logits)
    np.savez(examples / "digits_weights.npz", **weights)
    print(f"sample repository: {len(images)} images, {right:.1%} of them classified right")


def replace(new: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    new.rename(target)


def main() -> None:
    models, examples = Path(sys.argv[1]), Path(sys.argv[2])
    digits = load_digits()
    images = digits.data.astype(np.float32)
    weights = train(images, digits.target)
    model = onnx_model(weights)
    # Write to another place, then rename: the directory is complete at every moment.
    caffe2, openvino, accelerated, pytorch, tensorflow = (
        models.with_name(models.name + name) for name in ("-caffe2", "-openvino", "-onnxruntime-openvino", "-pytorch", "-tensorflow")
    )
    targets = (models, caffe2, openvino, accelerated, pytorch, tensorflow, examples)
    fresh = {target: target.with_name(target.name + ".new") for target in targets}
    for new in fresh.values():
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
    write_repository(fresh[models], model)
    write_caffe2(fresh[caffe2], weights)
    write_openvino(fresh[openvino], weights, model)
    write_accelerated(fresh[accelerated], model)
    write_pytorch(fresh[pytorch], weights)
    write_tensorflow(fresh[tensorflow], weights)
    write_examples(fresh[examples], images, digits.target, weights, model)
    for target, new in fresh.items():
        replace(new, target)


if __name__ == "__main__":
    main()
