"""Decoupled. Sends until the request is cancelled, which its response sender tells; then tells the next request about it."""

import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def told(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([text], dtype=object))])


class TritonPythonModel:
    def initialize(self, args):
        self.ends = []
        self.threads = []

    def execute(self, requests):
        for request in requests:
            ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0].decode()
            sender = request.get_response_sender()
            if ask == "ends":
                sender.send(told(",".join(self.ends)), FINAL)
                continue
            self.threads.append(threading.Thread(target=self.work, args=(sender,)))
            self.threads[-1].start()

    def work(self, sender):
        sender.send(told("begun"))
        until = time.monotonic() + 60
        while not sender.is_cancelled() and time.monotonic() < until:
            threading.Event().wait(0.002)  # allowed: between two looks at what tells nobody
        self.ends.append("cancelled" if sender.is_cancelled() else "in time")
        sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("gone", pb_utils.TritonError.CANCELLED)), FINAL)

    def finalize(self):
        for thread in self.threads:
            thread.join()
