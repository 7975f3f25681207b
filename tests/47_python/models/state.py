"""Counts its executions and keeps what it was told."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.seen = []

    def execute(self, requests):
        responses = []
        for request in requests:
            self.seen.append(pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0])
            told = np.array([b",".join(self.seen)], dtype=object)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", told)]))
        return responses
