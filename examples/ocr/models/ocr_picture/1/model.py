"""Opens an image file. Gives its pixels, and the same smaller or larger as the detector wants them: sides that are multiples of 32, blue
first, values from -1 to 1."""

import io

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image, ImageOps

MOST_PIXELS = 40_000_000
SIDE = 960  # the longer one, for the detector
LARGEST_SCALE = 2
STEP = 32


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy()[0]) for request in requests]

    def answer(self, file):
        try:
            picture = opened(file)
        except (OSError, ValueError, SyntaxError) as error:
            wrong = pb_utils.TritonError(f"the image cannot be read: {error}", pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=wrong)
        scale = min(LARGEST_SCALE, SIDE / max(picture.size))
        scaled = np.asarray(picture.resize([max(STEP, round(side * scale / STEP) * STEP) for side in picture.size]), np.float32)
        x = scaled[:, :, ::-1].transpose(2, 0, 1)[None] / 127.5 - 1
        return pb_utils.InferenceResponse([pb_utils.Tensor("pixels", np.array(picture)), pb_utils.Tensor("x", np.ascontiguousarray(x))])


def opened(file):
    """Upright as the camera says; on white where it is transparent."""
    picture = Image.open(io.BytesIO(file))
    if picture.width * picture.height > MOST_PIXELS:
        raise ValueError(f"it has {picture.width} x {picture.height} pixels; {MOST_PIXELS} are the most")
    picture = ImageOps.exif_transpose(picture).convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
