"""Large tensors: bytes back as they are, or as many as asked for."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            data = pb_utils.get_input_tensor_by_name(request, "DATA").as_numpy()
            size = pb_utils.get_input_tensor_by_name(request, "SIZE")
            if size is not None:
                data = np.arange(int(size.as_numpy()[0]), dtype=np.uint8)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("BACK", data)]))
        return responses
