"""Decoupled. Ends the first request of a batch itself, then raises: the backend takes all of them for ended, and forgets the others."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        senders = [request.get_response_sender() for request in requests]
        told = pb_utils.Tensor("TOLD", np.array([["ended"]], dtype=object))
        senders[0].send(pb_utils.InferenceResponse([told]), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        raise RuntimeError("after the end of one")
