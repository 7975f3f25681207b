"""OpenVINO in Python, out of the package whose libraries the backend runs on: writes IR files, and says what they compute."""

import sys
from pathlib import Path

import numpy as np
import onnx
from harness import paths

# Behind everything else: the package that lies beside it is another ONNX Runtime.
sys.path.append(str(paths.need(paths.ROOT / "build" / "deps" / "openvino")))
import openvino  # noqa: E402
import openvino.opset13  # noqa: E402

CORE = openvino.Core()


def save_ir(built: onnx.ModelProto, folder: Path, inputs: str | None = None, outputs: str | None = None) -> Path:
    """Writes FOLDER/1/model.xml and model.bin; inputs and outputs get these layouts."""
    path = folder / "1" / "model.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    model = CORE.read_model(built.SerializeToString())
    for ports, layout in ((model.inputs, inputs), (model.outputs, outputs)):
        for port in ports if layout else []:
            openvino.layout_helpers.set_layout(port, openvino.Layout(layout))
    openvino.save_model(model, path, compress_to_fp16=False)
    return path


def save_counter(folder: Path) -> None:
    """Writes FOLDER/1/model.xml: y is the sum of all x that the infer request got."""
    operators = openvino.opset13
    x = operators.parameter([1, 1], np.float32, name="x")
    read = operators.read_value(operators.constant(np.zeros((1, 1), np.float32)), "sum", np.float32, [1, 1])
    total = operators.add(read, x)
    total.output(0).set_names({"y"})
    (folder / "1").mkdir(parents=True, exist_ok=True)
    built = openvino.Model([operators.result(total)], [operators.assign(total, "sum")], [x], "counter")
    openvino.save_model(built, folder / "1" / "model.xml")


def answers(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What OpenVINO in Python computes."""
    compiled = CORE.compile_model(str(path), "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"})
    found = compiled(inputs)
    return {port.get_any_name(): found[port] for port in compiled.outputs}
