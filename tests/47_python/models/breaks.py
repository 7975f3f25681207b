"""Ends, or hangs, in the way that it is asked to; else tells its process. What it starts beside it lives as long as it is let."""

import ctypes
import os
import signal
import subprocess
import threading

import numpy as np
import triton_python_backend_utils as pb_utils

# Where the shared memory says how far a ring was read: that to the process, and that to the server.
READ = {"read down": 64, "read up": 256}


def write_over(offset):
    with open("/proc/self/maps") as maps:
        base = next(int(line.split("-")[0], 16) for line in maps if "memfd:triton_python_backend" in line)
    ctypes.c_uint64.from_address(base + offset).value = 1 << 63


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0].decode()
            if ask == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif ask == "segv":
                ctypes.string_at(0)
            elif ask == "exit":
                os._exit(7)
            elif ask == "memory":
                bytes(1 << 62)
            elif ask == "hang":
                threading.Event().wait()
            elif ask == "tell":
                while True:
                    pb_utils.Logger.log_verbose("on and on")
            elif ask == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            elif ask == "exec":
                os.execv("/bin/sleep", ["sleep", "1000"])
            elif ask in READ:
                write_over(READ[ask])
            elif ask == "child":
                subprocess.Popen(["sleep", "1000"])
            told = np.array([str(os.getpid())], dtype=object)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", told)]))
        return responses
