"""Ends its own process when it is asked to; else tells how often this process executed."""

import os
import signal

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.count = 0

    def execute(self, requests):
        self.count += 1
        responses = []
        for request in requests:
            ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0]
            if ask == b"die":
                os.kill(os.getpid(), signal.SIGKILL)
            told = str(os.getpid() if ask == b"pid" else self.count)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([told], dtype=object))]))
        return responses
