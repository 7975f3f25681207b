"""Works until the request is cancelled; tells how requests before it ended."""

import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


def told(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([text], dtype=object))])


class TritonPythonModel:
    def initialize(self, args):
        self.ends = []

    def execute(self, requests):
        responses = []
        for request in requests:
            ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0].decode()
            if ask == "ends":
                responses.append(told(",".join(self.ends)))
                continue
            pb_utils.Logger.log_info("the model works")
            until = time.monotonic() + 60
            while not request.is_cancelled() and time.monotonic() < until:
                threading.Event().wait(0.002)  # allowed: between two looks at what tells nobody
            self.ends.append("cancelled" if request.is_cancelled() else "in time")
            responses.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("gone", pb_utils.TritonError.CANCELLED)))
        return responses
