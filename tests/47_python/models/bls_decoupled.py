"""Decoupled. Hands the responses of a decoupled model on as they come, by its own response sender; stops where STOP says."""

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            stop = int(pb_utils.get_input_tensor_by_name(request, "STOP").as_numpy()[0])
            inner = pb_utils.InferenceRequest(
                model_name="repeat",
                inputs=[
                    pb_utils.get_input_tensor_by_name(request, "IN"),
                    pb_utils.Tensor("WHERE", np.array(["thread"], dtype=object)),
                ],
                requested_output_names=["OUT"],
            )
            for i, response in enumerate(inner.exec(decoupled=True)):
                if i == stop:
                    break
                if response.has_error():
                    sender.send(pb_utils.InferenceResponse(error=response.error()))
                elif response.output_tensors():
                    sender.send(pb_utils.InferenceResponse(response.output_tensors()))
            sender.send(flags=FINAL)
