"""Does, when it is asked to, what no model should do to the process that it runs in; tells its process."""

import json
import multiprocessing
import os
import signal
import sys
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


FORKED = 100  # some of them get their signal at each place that they pass on their way
ASKING = 400  # some of them are forked while another thread holds what is asked with

MADE = (1 << 16) + 2  # metrics, one after the other; there may be 65,536 at once


class Unsayable(Exception):
    def __str__(self):
        raise KeyboardInterrupt


def mapped():
    """What two processes make of numbers; they are told to end by a signal."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(abs, [1, -2])


def ended_by():
    """The signals by which processes ended that were told to end before they had a turn."""
    statuses = []
    for _ in range(FORKED):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        os.kill(pid, signal.SIGTERM)
        statuses.append(os.waitpid(pid, 0)[1])
    return [os.WTERMSIG(status) for status in statuses]


def asks(ends):
    """Asks the server again and again."""
    while not ends.is_set():
        pb_utils.is_model_ready("works")


def asked_by_children():
    """How processes ended that ask the server, which they cannot; other threads ask it while they are forked."""
    ends = threading.Event()
    threads = [threading.Thread(target=asks, args=(ends,)) for _ in range(4)]
    for each in threads:
        each.start()
    statuses = []
    for _ in range(ASKING):
        pid = os.fork()
        if pid == 0:
            try:
                pb_utils.is_model_ready("works")
            except pb_utils.TritonModelException:
                os._exit(5)
            os._exit(6)
        statuses.append(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
    ends.set()
    for each in threads:
        each.join()
    return statuses


def make_metrics():
    """More metrics and families than there can be at once; of every other one the family goes first."""
    for i in range(MADE):
        family = pb_utils.MetricFamily(name="careless", description="comes and goes", kind=pb_utils.MetricFamily.GAUGE)
        metric = family.Metric(labels={"a": "b"})
        if i % 2:
            del family
            del metric
        else:
            del metric
            del family


def refused_labels():
    """What is said of labels that are none."""
    family = pb_utils.MetricFamily(name="labels", description="of all kinds", kind=pb_utils.MetricFamily.GAUGE)
    said = []
    for labels in ({"a": 1}, {"a": None}, {1: "a"}, {"a": "b\0c"}, {"a\0b": "c"}):
        try:
            family.Metric(labels=labels)
        except pb_utils.TritonModelException as error:
            said.append(str(error))
    return said


def load_with_files(count):
    """Loads a model like this one with as many files as a load over the network may have, less one for the configuration."""
    asks = {"name": "ASK", "data_type": "TYPE_STRING", "dims": [1]}
    config = {"name": "made", "backend": "python", "input": [asks], "output": [{**asks, "name": "TOLD"}]}
    files = {f"file:1/{i}": b"" for i in range(count - 1)}
    with open(__file__, "rb") as source:
        files["file:1/model.py"] = source.read()
    pb_utils.load_model("made", config=json.dumps(config), files=files)
    assert pb_utils.is_model_ready("made")
    pb_utils.unload_model("made")


class TritonPythonModel:
    def execute(self, requests):
        asks = [pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0].decode() for request in requests]
        parameters = {}
        for ask in asks:
            if ask == "pop":
                while requests:
                    requests.pop()
            elif ask == "replace":
                requests[:] = [5] * len(requests)
            elif ask == "pop and raise":
                requests.clear()
                raise ValueError("none are left")
            elif ask == "replace and raise":
                requests[:] = [5] * len(requests)
                raise ValueError("other things")
            elif ask == "name":
                raise ValueError(os.fsdecode(b"file-\xff"))
            elif ask == "error":
                return [pb_utils.InferenceResponse(error=pb_utils.TritonError(os.fsdecode(b"file-\xff")))]
            elif ask == "error with a zero byte":
                return [pb_utils.InferenceResponse(error=pb_utils.TritonError("before\0behind"))]
            elif ask == "raise with a zero byte":
                raise ValueError("before\0behind")
            elif ask == "unsayable":
                raise Unsayable
            elif ask == "large parameter":
                parameters = {"large": 1 << 63}
            elif ask == "parameter with a zero byte":
                parameters = {"cut": "x\0y"}
            elif ask == "surrogate parameter":
                parameters = {"number": 1, "text\udc00": "\ud800"}
            elif ask == "many files":
                load_with_files(9999)
            elif ask == "large file":
                pb_utils.load_model("made", files={"file:1/large": bytes(1 << 30)})
            elif ask == "metrics":
                make_metrics()
            elif ask == "labels":
                raise ValueError(refused_labels())
            elif ask == "pool":
                assert mapped() == [1, 2]
            elif ask == "end":
                assert ended_by() == [signal.SIGTERM] * FORKED
            elif ask == "ask in children":
                assert asked_by_children() == [5] * ASKING
            elif ask == "no stderr":
                sys.stderr.close()
                raise SystemExit
            elif ask == "close":
                os.closerange(3, 1024)
            elif ask == "group":
                os.setpgid(0, os.getpgid(os.getppid()))
                threading.Event().wait()
        told = np.array([str(os.getpid())], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", told)], parameters=parameters) for _ in asks]
