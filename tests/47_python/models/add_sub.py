"""The sum and the difference of two inputs; only those outputs that were asked for."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            a = pb_utils.get_input_tensor_by_name(request, "A").as_numpy()
            b = pb_utils.get_input_tensor_by_name(request, "B").as_numpy()
            outputs = [pb_utils.Tensor("SUM", a + b), pb_utils.Tensor("DIFF", a - b)]
            outputs = [tensor for tensor in outputs if tensor.name() in request.requested_output_names()]
            responses.append(pb_utils.InferenceResponse(output_tensors=outputs))
        return responses
