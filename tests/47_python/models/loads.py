"""Loads and unloads other models."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def attempt(call, *args, **named):
    try:
        return call(*args, **named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            ask = json.loads(pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0])
            files = {path: text.encode() for path, text in ask.pop("files", {}).items()}
            call = getattr(pb_utils, ask.pop("call"))
            if files:
                ask["files"] = files
            told = json.dumps(attempt(call, **ask))
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([told], dtype=object))]))
        return responses
