"""Writes the digits network as TorchScript (model.pt) without PyTorch being installed. The file is a zip archive with the program's text, the
weights, and a pickle that assigns the weights to the program's attributes."""

import struct
import zipfile
from pathlib import Path

import numpy as np

PROGRAM = """\
class Digits(Module):
  __parameters__ = ["w0", "b0", "w1", "b1", ]
  __buffers__ = []
  w0 : Tensor
  b0 : Tensor
  w1 : Tensor
  b1 : Tensor
  training : bool
  def forward(self: __torch__.Digits,
    image: Tensor) -> Tensor:
    hidden = torch.relu(torch.add(torch.matmul(image, self.w0), self.b0))
    return torch.add(torch.matmul(hidden, self.w1), self.b1)
"""


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _numbers(*numbers: int) -> bytes:
    """Pickles a tuple of the given values."""
    return b"(" + b"".join(b"J" + struct.pack("<i", number) for number in numbers) + b"t"


def _name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _tensor(number: int, array: np.ndarray) -> bytes:
    """Pickles the call that makes a tensor from the archive's member data/<number>, without gradients and hooks."""
    strides = [stride // array.itemsize for stride in array.strides]
    storage = b"(" + _text("storage") + _name("torch", "FloatStorage") + _text(str(number)) + _text("cpu")
    storage += b"J" + struct.pack("<i", array.size) + b"tQ"
    no_hooks = _name("collections", "OrderedDict") + b")R"
    arguments = storage + b"K\0" + _numbers(*array.shape) + _numbers(*strides) + b"\x89" + no_hooks
    return _name("torch._utils", "_rebuild_tensor_v2") + b"(" + arguments + b"tR"


def write_digits(folder: Path, weights: dict[str, np.ndarray]) -> None:
    """Writes FOLDER/model.pt: logits = relu(image @ w0 + b0) @ w1 + b1."""
    arrays = {name: np.ascontiguousarray(weights[name], "<f4") for name in ("w0", "b0", "w1", "b1")}
    state = b"".join(_text(name) + _tensor(number, array) for number, (name, array) in enumerate(arrays.items()))
    parts = {f"data/{number}": array.tobytes() for number, array in enumerate(arrays.values())}
    parts["data.pkl"] = b"\x80\x02" + _name("__torch__", "Digits") + b")\x81}(" + state + _text("training") + b"\x89ub."
    parts["code/__torch__.py"] = PROGRAM.encode()
    parts["constants.pkl"] = b"\x80\x02)."
    parts["version"] = b"3\n"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "model.pt", "w") as archive:
        for name, content in parts.items():
            # A fixed time, so that equal weights give equal files.
            archive.writestr(zipfile.ZipInfo("digits/" + name), content)
