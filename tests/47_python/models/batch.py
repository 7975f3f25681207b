"""Tells for each request how many requests and rows were in its batch."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        rows = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy().shape[0] for request in requests]
        responses = []
        for own in rows:
            told = np.tile(np.array([[len(requests), sum(rows)]], dtype=np.int32), (own, 1))
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("BATCH", told)]))
        return responses
