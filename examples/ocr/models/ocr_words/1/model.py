"""Makes text of what the reader says: for each line and each place along it, how likely each character is, or none (the first). Lines that it
is not sure of are left out, with their boxes."""

from pathlib import Path

import numpy as np
import onnx
import triton_python_backend_utils as pb_utils

SURE = 0.5


class TritonPythonModel:
    def initialize(self, args):
        reader = onnx.load(Path(args["model_repository"]).parent / "ocr_reader" / "1" / "model.onnx")
        known = {each.key: each.value for each in reader.metadata_props}["character"]
        self.characters = ["", *known.split("\n"), " "]

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        boxes, likely = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("boxes", "likely"))
        read = [(box, *self.read(line)) for box, line in zip(boxes, likely, strict=False)]  # without text there is a line and no box
        sure = [each for each in read if each[2] >= SURE]
        outputs = {
            "TEXT": np.array([text.encode() for _, text, _ in sure], object),
            "SCORE": np.array([score for *_, score in sure], np.float32),
            "BOXES": np.array([box for box, *_ in sure], np.int32).reshape(-1, 4),
        }
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, values) for name, values in outputs.items()])

    def read(self, line):
        """A character goes on over some places; the same one twice has a place with none between (CTC)."""
        best = line.argmax(axis=1)
        begins = (best != 0) & np.append(True, best[1:] != best[:-1])
        score = line.max(axis=1)[begins].mean() if begins.any() else 0
        return "".join(self.characters[at] for at in best[begins]), score
