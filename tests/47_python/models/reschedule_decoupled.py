"""An iterative sequence, decoupled: a response in each of N executions; below 0, one that is final from a request that is given back."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.runs = {}

    def execute(self, requests):
        for request in requests:
            wanted = int(pb_utils.get_input_tensor_by_name(request, "N").as_numpy().flatten()[0])
            done = self.runs.get(request.correlation_id(), 0) + 1
            self.runs[request.correlation_id()] = done
            response = pb_utils.InferenceResponse([pb_utils.Tensor("RUNS", np.array([[done, wanted]], dtype=np.int32))])
            sender = request.get_response_sender()
            if wanted < 0:
                del self.runs[request.correlation_id()]
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            elif done < wanted:
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                sender.send(response)
            else:
                del self.runs[request.correlation_id()]
                sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
