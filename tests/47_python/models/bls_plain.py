"""Asks the model that ASK names first, with the rest of ASK; so requests nest as deep as there are names: "a/b/c"."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0].decode()
            name, _, rest = ask.partition("/")
            inner = pb_utils.InferenceRequest(
                model_name=name,
                request_id=request.request_id(),
                correlation_id=request.correlation_id(),
                inputs=[pb_utils.Tensor("ASK", np.array([rest], dtype=object))],
                requested_output_names=["TOLD"],
                trace=request.trace(),
                timeout=request.timeout(),
                parameters={"depth": len(ask.split("/"))},
            ).exec()
            if inner.has_error():
                responses.append(pb_utils.InferenceResponse(error=inner.error()))
                continue
            told = pb_utils.get_output_tensor_by_name(inner, "TOLD").as_numpy()[0].decode()
            outer = np.array([f"{name}({told})"], dtype=object)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", outer)]))
        return responses
