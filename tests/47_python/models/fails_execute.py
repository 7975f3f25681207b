"""Fails in execute in the way that it is asked to."""

import os

import numpy as np
import triton_python_backend_utils as pb_utils


def told(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([text], dtype=object))])


class TritonPythonModel:
    def execute(self, requests):
        ask = pb_utils.get_input_tensor_by_name(requests[0], "ASK").as_numpy()[0].decode()
        if ask == "raise":
            raise ValueError("this execute fails: \u00fc \u4e16")
        if ask == "model exception":
            raise pb_utils.TritonModelException("a model's own exception")
        if ask == "none":
            return None
        if ask == "no list":
            return told("no list")
        if ask == "too many":
            return [told("one"), told("two")]
        if ask == "too few":
            return []
        if ask == "wrong thing":
            return ["a string"]
        if ask == "a none":
            return [None]
        if ask == "unknown output":
            return [pb_utils.InferenceResponse([pb_utils.Tensor("OTHER", np.array([1], dtype=np.int32))])]
        if ask == "wrong type":
            return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([1], dtype=np.int32))])]
        if ask == "no output":
            return [pb_utils.InferenceResponse([])]
        if ask == "error and outputs":
            tensor = pb_utils.Tensor("TOLD", np.array(["lost"], dtype=object))
            return [pb_utils.InferenceResponse(output_tensors=[tensor], error=pb_utils.TritonError("both"))]
        if ask.startswith("error "):
            code = getattr(pb_utils.TritonError, ask.split()[1]) if ask != "error plain" else None
            error = pb_utils.TritonError("it says " + ask, code) if code else pb_utils.TritonError("it says plain")
            return [pb_utils.InferenceResponse(error=error)]
        if ask == "code":
            return [told(self.seen(pb_utils.TritonError("", pb_utils.TritonError.UNKNOWN).code()))]
        if ask == "die":
            os._exit(3)
        return [told("well")]

    @staticmethod
    def seen(code):
        """What Python sees of an error's code."""
        numbers = int(code), code == 0, code == pb_utils.TritonError.UNKNOWN, code == pb_utils.TritonError.INTERNAL, hash(code)
        return repr((str(code), repr(code), code.name, code.value, *numbers, bool(code), isinstance(code, int), {0: "it"}.get(code)))
