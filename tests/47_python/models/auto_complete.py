"""Completes the whole configuration itself."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "X", "data_type": "TYPE_INT32", "dims": [-1]})
        config.add_input({"name": "MORE", "data_type": "TYPE_INT32", "dims": [-1], "optional": True})
        config.add_output({"name": "Y", "data_type": "TYPE_INT32", "dims": [-1]})
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        return config

    def execute(self, requests):
        responses = []
        for request in requests:
            y = pb_utils.get_input_tensor_by_name(request, "X").as_numpy() * 2
            more = pb_utils.get_input_tensor_by_name(request, "MORE")
            if more is not None:
                y = y + more.as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y.astype(np.int32))]))
        return responses
