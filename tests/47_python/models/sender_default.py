"""Not decoupled, but answers through a response sender, some requests by a thread."""

import threading

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def told(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([text], dtype=object))])


class TritonPythonModel:
    def initialize(self, args):
        self.threads = []

    def execute(self, requests):
        responses = []
        for request in requests:
            ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0].decode()
            if ask == "return":
                responses.append(told("returned"))
                continue
            responses.append(None)
            sender = request.get_response_sender()
            if ask == "thread":
                self.threads.append(threading.Thread(target=sender.send, args=(told("by a thread"), FINAL)))
                self.threads[-1].start()
            elif ask == "two":
                sender.send(told("one"), FINAL)
                try:
                    sender.send(told("two"), FINAL)
                except Exception:
                    pass
            else:
                sender.send(told("sent"), FINAL)
        return responses

    def finalize(self):
        for thread in self.threads:
            thread.join()
