"""A model that computes on its GPU with PyTorch or with CuPy, whichever its parameter LIBRARY names, and answers with what lies there. ASK says
what is to be done, X is given besides; OUT is the answer, TOLD what was seen on the way."""

import gc
import json

import numpy as np
import triton_python_backend_utils as pb_utils

GPU = 2  # of DLPack


class Torch:
    def __init__(self, device):
        import torch

        self.torch, self.device = torch, device
        torch.cuda.set_device(device)
        self.stream = torch.cuda.Stream()

    def late(self, size):
        """0, 1, 2, ..., of a stream that has long to do before."""
        with self.torch.cuda.stream(self.stream):
            made = self.torch.zeros(size, device="cuda")
            self.torch.cuda._sleep(200_000_000)
            return made.add_(self.torch.arange(size, device="cuda"))

    def take(self, tensor):
        return self.torch.from_dlpack(tensor)

    def take_capsule(self, tensor):
        return self.torch.utils.dlpack.from_dlpack(tensor.to_dlpack())

    def to_gpu(self, x):
        return x.cuda()

    def pointer(self, x):
        return x.data_ptr()

    def columns(self, x):
        return x.reshape(2, -1).t()

    def used(self):
        gc.collect()
        return self.torch.cuda.memory_allocated()


class Cupy:
    def __init__(self, device):
        import cupy

        self.cupy, self.device = cupy, device
        cupy.cuda.Device(device).use()
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def late(self, size):
        with self.stream:
            made, busy = self.cupy.zeros(size, np.float32), self.cupy.ones(1 << 26, np.float32)
            for _ in range(200):
                self.cupy.sin(busy, out=busy)
            made += self.cupy.arange(size, dtype=np.float32)
            return made

    def take(self, tensor):
        return self.cupy.from_dlpack(tensor)

    take_capsule = take

    def to_gpu(self, x):
        return self.cupy.asarray(np.from_dlpack(x) if not isinstance(x, np.ndarray) else x)

    def pointer(self, x):
        return x.data.ptr

    def columns(self, x):
        return x.reshape(2, -1).T

    def used(self):
        gc.collect()
        return self.cupy.get_default_memory_pool().used_bytes()


def refused(call):
    try:
        call()
    except pb_utils.TritonModelException as error:
        return str(error)
    return None


def tensor(x, name="OUT"):
    return pb_utils.Tensor.from_dlpack(name, x)


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        library = {"torch": Torch, "cupy": Cupy}[config["parameters"]["LIBRARY"]["string_value"]]
        self.library = library(int(args["model_instance_device_id"]))

    def late(self, x, more):
        """What is still on its way when execute returns."""
        return tensor(self.library.late(more["size"]))

    def says(self, x, more):
        made = self.library.late(16)
        given = tensor(made)
        back = [self.library.pointer(each(given)) - self.library.pointer(made) for each in (self.library.take, self.library.take_capsule)]
        self.told = {
            "cpu": given.is_cpu(), "device": list(given.__dlpack_device__()), "shape": given.shape(), "moved": back,
            "as_numpy": refused(given.as_numpy), "columns": refused(lambda: tensor(self.library.columns(made))),
        }  # fmt: skip
        return given

    def changed(self, x, more):
        """What somebody does to it before it is sent is sent."""
        given = tensor(self.library.late(more["size"]))
        taken = self.library.take(given)
        taken += 1
        return given

    def doubled(self, x, more):
        """An input of the request, put on the GPU, doubled there."""
        self.told = {"cpu": x.is_cpu()}
        return tensor(self.library.to_gpu(self.library.take(x) if isinstance(self.library, Torch) else x.as_numpy()) * 2)

    def given(self, x, more):
        """An input that lies on the GPU, doubled there; it is as it was afterwards."""
        taken = self.library.take(x)
        self.told = {"cpu": x.is_cpu(), "device": list(x.__dlpack_device__()), "as_numpy": refused(x.as_numpy)}
        return tensor(self.library.take_capsule(x) + taken)

    def back(self, x, more):
        """An input as it is; kept until the next one comes."""
        self.kept = x
        return tensor(x)

    def nested(self, x, more):
        request = pb_utils.InferenceRequest(
            model_name=more["model"], requested_output_names=[more["output"]], inputs=[tensor(self.library.late(more["size"]), more["input"])]
        )
        response = request.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        answer = pb_utils.get_output_tensor_by_name(response, more["output"])
        return tensor(answer.to_dlpack())

    def pinned(self, x, more):
        """Memory of the host that CUDA gave."""
        made = self.library.torch.arange(more["size"], dtype=self.library.torch.float32).pin_memory()
        return tensor(made)

    def pinned_array(self, x, more):
        made = self.library.torch.arange(more["size"], dtype=self.library.torch.float32).pin_memory()
        return pb_utils.Tensor("OUT", made.numpy())

    def used(self, x, more):
        self.told = {"used": self.library.used()}
        return tensor(self.library.late(16))

    def execute(self, requests):
        responses = []
        for request in requests:
            more = json.loads(pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0])
            self.told = {}
            answer = getattr(self, more["do"])(pb_utils.get_input_tensor_by_name(request, "X"), more)
            told = pb_utils.Tensor("TOLD", np.array([json.dumps(self.told)], dtype=object))
            responses.append(pb_utils.InferenceResponse([answer, told]))
        return responses
