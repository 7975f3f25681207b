"""Tells what it is asked."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        asks = [pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", ask)]) for ask in asks]
