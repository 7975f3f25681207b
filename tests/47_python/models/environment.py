"""Runs in an environment of its own: tells what a module says that only this environment has."""

import numpy as np
import only_there
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        told = np.array([only_there.WORDS], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", told)]) for _ in requests]
