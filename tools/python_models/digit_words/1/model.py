"""Says in words which digit the model `digits` sees in an image, and how sure it is."""

import numpy as np
import triton_python_backend_utils as pb_utils

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "image")) for request in requests]

    def answer(self, image):
        request = pb_utils.InferenceRequest(model_name="digits", inputs=[image], requested_output_names=["logits"])
        response = request.exec()
        if response.has_error():
            return pb_utils.InferenceResponse(error=response.error())
        logits = pb_utils.get_output_tensor_by_name(response, "logits").as_numpy()[0]
        share = np.exp(logits - logits.max())
        share /= share.sum()
        best = int(share.argmax())
        words = np.array([f"{WORDS[best]}, {100 * share[best]:.0f} %"], dtype=object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("words", words)])
