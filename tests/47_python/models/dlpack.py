"""Hands tensors on by DLPack, which knows BF16 too."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            outputs = [
                pb_utils.Tensor.from_dlpack("OUT" + tensor.name()[2:], tensor.to_dlpack())
                for tensor in request.inputs()
            ]
            responses.append(pb_utils.InferenceResponse(output_tensors=outputs))
        return responses
