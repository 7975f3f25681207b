"""Another file name than model.py; imports a module that lies beside it."""

import helper
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        told = np.array([helper.words()], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", told)]) for _ in requests]
