"""Fails in finalize."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def finalize(self):
        raise RuntimeError("this finalize fails")

    def execute(self, requests):
        told = pb_utils.Tensor("TOLD", np.array(["well"], dtype=object))
        return [pb_utils.InferenceResponse([told]) for _ in requests]
