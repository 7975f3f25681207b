"""Makes one vector of a sentence out of those of its word pieces: their mean without the padding, scaled to length 1."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        pieces, mask = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("pieces", "attention_mask"))
        sums = np.einsum("bpd,bp->bd", pieces, mask.astype(np.float32))
        vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return pb_utils.InferenceResponse([pb_utils.Tensor("EMBEDDING", vectors)])
