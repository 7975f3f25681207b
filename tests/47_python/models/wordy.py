"""Says more than anyone reads: 48 MiB of it."""

import numpy as np
import triton_python_backend_utils as pb_utils

WORDS = "\u00e4" * (24 << 20)


class TritonPythonModel:
    def initialize(self, args):
        if args["model_name"] == "wordy_at_start":
            raise ValueError(WORDS)

    def execute(self, requests):
        ask = pb_utils.get_input_tensor_by_name(requests[0], "ASK").as_numpy()[0].decode()
        if ask == "raise":
            raise ValueError(WORDS)
        if ask == "error":
            return [pb_utils.InferenceResponse(error=pb_utils.TritonError(WORDS, pb_utils.TritonError.NOT_FOUND))]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array(["well"], dtype=object))])]
