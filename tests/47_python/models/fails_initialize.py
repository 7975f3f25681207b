"""Fails in initialize."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        raise RuntimeError("this initialize fails")

    def execute(self, requests):
        told = pb_utils.Tensor("TOLD", np.array(["well"], dtype=object))
        return [pb_utils.InferenceResponse([told]) for _ in requests]
