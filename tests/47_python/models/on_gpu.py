"""Answers with tensors in the memory of a GPU, which it takes from CUDA's driver and hands over by DLPack. ASK says in JSON which:

values  the elements of OUT, float32; they are on their way there, by a stream that nobody has waited for
device  the GPU that DLPack is told (0)
shape   the shape that it is told, and `strides`
plan    calls of the stand-in of the driver that fail from then on
as      "object" (which has __dlpack__), "capsule", "secret": in memory of the host that no other process can read
ask     ask this model first, with the tensor as INPUT0, and answer with what it answers
tell    answer with what the tensor says of itself instead
input   answer with input X (or S) of the request, and tell of it: "echo"; "hold": and keep it until a "drop", which tells the first
        elements of those that are kept; "numpy": as an array of the host;
        "open": tell why it cannot be handed on; "die"
alone   a decoupled model sends this as its only response, and where that fails: "tell": the error that it saw; "leave": nothing at all
share   "first": make a response of the tensor and a text, TOLD, that a thread sends; "second": send that one again
take    answer with what is found of it once it was handed on, to a stream of this number, or by to_dlpack
"""

import ctypes
import json
import mmap
import os
import threading

import numpy as np
import triton_python_backend_utils as pb_utils

GPU, FLOAT = 2, 2
NON_BLOCKING = 1
MEMFD_SECRET = 447  # of Linux
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", ctypes.c_uint(0))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), ctypes.c_int(0))
        self.within("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(NON_BLOCKING))

    def call(self, name, *values):
        result = getattr(self.library, name)(*values)
        if result:
            raise RuntimeError(f"the model's own {name}: {result}")

    def within(self, name, *values):
        self.call("cuCtxPushCurrent_v2", self.context)
        self.call(name, *values)
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def end(self):
        self.within("cuStreamDestroy_v2", self.stream)
        self.call("cuDevicePrimaryCtxRelease_v2", ctypes.c_int(0))


class OnGpu:
    """A tensor for DLPack; its memory lives as long as whoever took it, and begins with an element that is not of it."""

    all = []  # those that are over too, for a while: what is called to end one may not end with it

    def __init__(self, driver, values, device, shape=None, strides=None):
        self.driver, self.place, self.host = driver, ctypes.c_uint64(), np.array([7.0, *values], np.float32)
        driver.within("cuMemAlloc_v2", ctypes.byref(self.place), ctypes.c_size_t(self.host.nbytes))
        source = ctypes.c_uint64(self.host.ctypes.data)
        driver.within("cuMemcpyAsync", self.place, source, ctypes.c_size_t(self.host.nbytes), driver.stream)
        shape = shape or [len(values)]
        self.shape, self.deleter = (ctypes.c_int64 * len(shape))(*shape), Deleter(self.delete)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.managed = Managed(
            self.place.value, GPU, device, len(shape), FLOAT, 32, 1, self.shape, self.strides, 4, None,
            ctypes.cast(self.deleter, ctypes.c_void_p).value,
        )  # fmt: skip
        OnGpu.all = [each for each in OnGpu.all if each.place] + [self]

    def __dlpack_device__(self):
        return GPU, self.managed.device

    def __dlpack__(self, stream=None):
        assert stream is None
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def delete(self, managed):
        self.driver.within("cuStreamSynchronize", self.driver.stream)  # nothing may be on its way to it any more
        self.driver.within("cuMemFree_v2", self.place)
        self.place.value = 0


def read(capsule):
    """What a capsule says of its tensor, which goes with it."""
    managed = Managed.from_address(capsule_pointer(capsule, b"dltensor"))
    shape = [managed.shape[i] for i in range(managed.rank)]
    return [managed.data, managed.device_type, managed.device, shape, managed.code, managed.bits, managed.lanes, managed.offset]


def secret(values):
    """An array in such memory."""
    file = ctypes.CDLL(None).syscall(MEMFD_SECRET, 0)
    os.ftruncate(file, 4 * len(values))
    array = np.frombuffer(mmap.mmap(file, 4 * len(values)), np.float32)
    os.close(file)
    array[:] = values
    return array


def refused(call):
    try:
        call()
    except pb_utils.TritonModelException as error:
        return str(error)
    return None


class TritonPythonModel:
    def initialize(self, args):
        self.decoupled = pb_utils.using_decoupled_model_transaction_policy(json.loads(args["model_config"]))
        self.driver, self.held, self.shared = Driver(), [], None

    def plan(self, asked):
        if "plan" in asked:
            self.driver.library.nereid_standin_plan(asked["plan"].encode())

    def tell(self, tensor, made):
        place = made.place.value
        told = {
            "cpu": tensor.is_cpu(),
            "device": tensor.__dlpack_device__(),
            "in place": [read(capsule)[0] - place for capsule in (tensor.to_dlpack(), tensor.__dlpack__(stream=-1))],
            "capsule": read(tensor.__dlpack__(stream=1))[1:],
            "again": pb_utils.Tensor.from_dlpack("OUT", tensor).to_dlpack() is not None,
            "as_numpy": refused(tensor.as_numpy),
            "array": hasattr(tensor, "__array_struct__"),
            "shape": tensor.shape(),
        }
        return pb_utils.Tensor("TOLD", np.array([json.dumps(told)], dtype=object))

    def take(self, tensor, made, how):
        """Reads its elements, waiting for no stream, or says why it could not be handed on."""
        found = np.zeros(made.shape[0], np.float32)
        error = refused(tensor.to_dlpack if how == "to_dlpack" else lambda: tensor.__dlpack__(stream=how))
        place = ctypes.c_uint64(made.place.value + 4)
        self.driver.within("cuMemcpyDtoH_v2", ctypes.c_void_p(found.ctypes.data), place, ctypes.c_size_t(found.nbytes))
        return pb_utils.Tensor("TOLD", np.array([error or json.dumps(found.tolist() == made.host[1:].tolist())], dtype=object))

    def first(self, x):
        """The first element, read from where it lies."""
        found = ctypes.c_float()
        self.driver.within("cuMemcpyDtoH_v2", ctypes.byref(found), ctypes.c_uint64(read(x.to_dlpack())[0]), ctypes.c_size_t(4))
        return found.value

    def input(self, x, how):
        told = {"cpu": x.is_cpu(), "device": list(x.__dlpack_device__()), "shape": x.shape()}
        if how == "die":
            x.to_dlpack()
            os._exit(1)
        if how == "open":
            told["error"] = refused(x.to_dlpack)
        self.held += [x] if how == "hold" else []
        if how == "drop":
            told["held"] = [self.first(each) for each in self.held]
            self.held = []
        out = pb_utils.Tensor("OUT", x.as_numpy()) if how == "numpy" else pb_utils.Tensor.from_dlpack("OUT", x)
        return [out, pb_utils.Tensor("TOLD", np.array([json.dumps(told)], dtype=object))]

    def answer(self, asked, request):
        if "input" in asked:
            self.plan(asked)
            return self.input(pb_utils.get_input_tensor_by_name(request, "X"), asked["input"])
        if asked.get("as") == "secret":
            return [pb_utils.Tensor("OUT", secret(asked["values"]))]
        made = OnGpu(self.driver, asked["values"], asked.get("device", 0), asked.get("shape"), asked.get("strides"))
        given = made.__dlpack__() if asked.get("as") == "capsule" else made
        try:
            tensor = pb_utils.Tensor.from_dlpack("INPUT0" if "ask" in asked else "OUT", given)
        except pb_utils.TritonModelException:
            made.delete(None)  # nobody took it
            raise
        if "tell" in asked:
            return [self.tell(tensor, made)]
        self.plan(asked)
        if "take" in asked:
            return [self.take(tensor, made, asked["take"])]
        if "ask" not in asked:
            return [tensor]
        nested = pb_utils.InferenceRequest(model_name=asked["ask"], requested_output_names=["OUTPUT0"], inputs=[tensor]).exec()
        if nested.has_error():
            raise pb_utils.TritonModelException(nested.error().message())
        return [pb_utils.Tensor("OUT", pb_utils.get_output_tensor_by_name(nested, "OUTPUT0").as_numpy())]

    def alone(self, asked, request):
        sender = request.get_response_sender()
        try:
            sender.send(pb_utils.InferenceResponse(self.answer(asked, request)), flags=FINAL)
        except Exception as error:
            if asked["alone"] == "tell":
                said = pb_utils.TritonError(f"{type(error).__name__}: {error}")
                sender.send(pb_utils.InferenceResponse(error=said), flags=FINAL)

    def share(self, asked, request):
        sender = request.get_response_sender()
        if asked["share"] == "second":
            sender.send(self.shared, flags=FINAL)
            return
        told = pb_utils.Tensor("TOLD", np.array(["a text"], dtype=object))
        self.shared = pb_utils.InferenceResponse([*self.answer(asked, request), told])
        threading.Thread(target=sender.send, args=(self.shared, FINAL)).start()

    def execute(self, requests):
        responses = []
        for request in requests:
            asked = json.loads(pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy().ravel()[0])
            if "alone" in asked:
                self.alone(asked, request)
                continue
            if "share" in asked:
                self.share(asked, request)
                responses.append(None)
                continue
            response = pb_utils.InferenceResponse(self.answer(asked, request))
            if self.decoupled:
                sender = request.get_response_sender()
                sender.send(response)
                sender.send(pb_utils.InferenceResponse(self.answer({"values": [2.5]}, request)), flags=FINAL)
            responses.append(response)
        return None if self.decoupled else responses

    def finalize(self):
        self.held, self.shared = [], None
        self.driver.end()
