"""Tells what it is asked, and closes every descriptor that it finds before."""

import os

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        os.closerange(3, 1024)
        asks = [pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", ask)]) for ask in asks]
