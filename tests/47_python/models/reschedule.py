"""An iterative sequence, not decoupled: a request is executed N times, then answered with how often, and with which flags."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.runs = {}

    def execute(self, requests):
        responses = []
        for request in requests:
            wanted = int(pb_utils.get_input_tensor_by_name(request, "N").as_numpy().flatten()[0])
            runs = self.runs.setdefault(request.correlation_id(), [])
            runs.append(request.flags())
            if len(runs) < wanted:
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                responses.append(None)
                continue
            told = np.array([[len(runs), sum(runs)]], dtype=np.int32)
            del self.runs[request.correlation_id()]
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("RUNS", told)]))
        return responses
