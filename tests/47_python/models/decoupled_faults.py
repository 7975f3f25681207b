"""Decoupled. Breaks the rules of responses in the way that it is asked to, and tells what came of it."""

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def told(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([text], dtype=object))])


class TritonPythonModel:
    def initialize(self, args):
        self.before = ""

    def execute(self, requests):
        for request in requests:
            ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0].decode()
            sender = request.get_response_sender()
            getattr(self, ask)(sender)
        if ask == "returns":
            return [told("returned")]
        return None

    def errors(self, sender):
        sender.send(told("one"))
        sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("between", pb_utils.TritonError.NOT_FOUND)))
        sender.send(told("three"), flags=FINAL)

    def error_at_the_end(self, sender):
        sender.send(told("one"))
        sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("last")), flags=FINAL)

    def raises(self, sender):
        sender.send(told("one"))
        raise RuntimeError("in the middle")

    def raises_after_final(self, sender):
        sender.send(told("one"), flags=FINAL)
        raise RuntimeError("after the end")

    def after_final(self, sender):
        sender.send(told("one"), flags=FINAL)
        try:
            sender.send(told("two"))
            self.before = "sent"
        except Exception as error:
            self.before = str(error)

    def final_twice(self, sender):
        sender.send(told("one"), flags=FINAL)
        try:
            sender.send(flags=FINAL)
            self.before = "sent"
        except Exception as error:
            self.before = str(error)

    def wrong_flags(self, sender):
        try:
            sender.send(told("one"), flags=7)
            self.before = "sent"
        except Exception as error:
            self.before = str(error)
        sender.send(flags=FINAL)

    def nothing(self, sender):
        try:
            sender.send()
            self.before = "sent"
        except Exception as error:
            self.before = str(error)
        sender.send(flags=FINAL)

    def no_response(self, sender):
        try:
            sender.send("a string")
            self.before = "sent"
        except Exception as error:
            self.before = type(error).__name__
        sender.send(flags=FINAL)

    def what_came(self, sender):
        sender.send(told(self.before), flags=FINAL)

    def returns(self, sender):
        sender.send(told("one"))
