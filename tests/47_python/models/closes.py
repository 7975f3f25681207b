"""Closes every descriptor that it finds, opens a file in their place, and answers from a thread once the pipe beside that file is open."""

import os
import threading

import numpy as np
import triton_python_backend_utils as pb_utils

NUMBERS = 16  # of descriptors, all of which are the file's then


class TritonPythonModel:
    def execute(self, requests):
        path = pb_utils.get_input_tensor_by_name(requests[0], "ASK").as_numpy()[0].decode()
        os.closerange(3, 1024)
        opened = [os.open(path, os.O_WRONLY | os.O_CREAT) for _ in range(NUMBERS)]
        threading.Thread(target=self.tell, args=(requests[0].get_response_sender(), opened, path + ".go")).start()

    def tell(self, sender, opened, pipe):
        os.open(pipe, os.O_RDONLY)
        told = np.array([str(opened)], dtype=object)
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", told)]), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
