"""Decoupled. IN holds numbers; each is answered in a response of its own, by a thread that outlives execute where WHERE says so."""

import threading

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def response(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([value], dtype=np.int32))])


class TritonPythonModel:
    def initialize(self, args):
        self.threads = []

    def execute(self, requests):
        for request in requests:
            values = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy().tolist()
            where = pb_utils.get_input_tensor_by_name(request, "WHERE").as_numpy()[0].decode()
            sender = request.get_response_sender()
            if where.startswith("thread"):
                self.threads.append(threading.Thread(target=self.send, args=(sender, values, where)))
                self.threads[-1].start()
            else:
                self.send(sender, values, where)

    def send(self, sender, values, where):
        joined = where.endswith("joined")
        for i, value in enumerate(values):
            sender.send(response(value), flags=FINAL if joined and i == len(values) - 1 else 0)
        if not joined or not values:
            sender.send(flags=FINAL)

    def finalize(self):
        for thread in self.threads:
            thread.join()
