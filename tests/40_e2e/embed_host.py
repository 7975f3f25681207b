"""A program that embeds the server through ctypes: library, repository, backends and a model's name are its arguments; `digits` of the
sample repository is asked a digit, another one for what it was sent. Run by test_embed.py.

Says what it was answered, and how many milliseconds that took from before TRITONSERVER_ServerNew was called.
"""

import ctypes as c
import os
import sys
import threading
import time
from pathlib import Path

CPU = 0
FP32 = 11
RELEASE_ALL = 1
FINAL = 1

# 8 x 8
SEVEN = [float(each) for each in bytes.fromhex(
    "00000708 0d100f01 00000707 040b0c00 00000000 080d0100 00040808 0f0f0600"
    "00020b0f 0f040000 00000010 05000000 0000090f 01000000 0000000d 05000000".replace(" ", "")
)]

ALLOC = c.CFUNCTYPE(
    c.c_void_p, c.c_void_p, c.c_char_p, c.c_size_t, c.c_int, c.c_int64, c.c_void_p, c.POINTER(c.c_void_p),
    c.POINTER(c.c_void_p), c.POINTER(c.c_int), c.POINTER(c.c_int64),
)
GIVE_BACK = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t, c.c_int, c.c_int64)
RELEASED = c.CFUNCTYPE(None, c.c_void_p, c.c_uint32, c.c_void_p)
RESPOND = c.CFUNCTYPE(None, c.c_void_p, c.c_uint32, c.c_void_p)


class Library:
    """The functions of the library; an error that one returns is raised."""

    def __init__(self, path: str):
        self.lib = c.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        self.lib.TRITONSERVER_ErrorMessage.restype = c.c_char_p

    def __getattr__(self, name: str):
        function = getattr(self.lib, f"TRITONSERVER_{name}")
        function.restype = c.c_void_p

        def call(*arguments: object) -> None:
            error = function(*arguments)
            if error:
                raise RuntimeError(self.lib.TRITONSERVER_ErrorMessage(c.c_void_p(error)).decode())

        return call


class Memory:
    """The response allocator: buffers by their address."""

    def __init__(self) -> None:
        self.buffers: dict[int, c.Array[c.c_char]] = {}
        self.alloc = ALLOC(self._alloc)
        self.give_back = GIVE_BACK(self._give_back)

    def _alloc(self, _allocator, _name, size, _kind, _device, _userp, buffer, _buffer_userp, kind, device) -> None:
        memory = c.create_string_buffer(max(size, 1))
        address = c.addressof(memory)
        self.buffers[address] = memory
        buffer[0] = address
        kind[0] = CPU
        device[0] = 0

    def _give_back(self, _allocator, buffer, _userp, _size, _kind, _device) -> None:
        del self.buffers[buffer]


def start(t: Library, repository: str, backends: str) -> c.c_void_p:
    options, server = c.c_void_p(), c.c_void_p()
    t.ServerOptionsNew(c.byref(options))
    t.ServerOptionsSetModelRepositoryPath(options, repository.encode())
    t.ServerOptionsSetBackendDirectory(options, backends.encode())
    t.ServerNew(c.byref(server), options)
    t.ServerOptionsDelete(options)
    return server


def infer(t: Library, server: c.c_void_p, model: str, name: str, shape: list[int], numbers: list[float]) -> list[float]:
    memory, done, released = Memory(), threading.Event(), threading.Event()
    answers: list[int] = []

    def on_response(response: int, flags: int, _userp: int) -> None:
        answers.append(response)
        if flags & FINAL:
            done.set()

    def on_release(_request: int, flags: int, _userp: int) -> None:
        assert flags == RELEASE_ALL
        released.set()

    respond, release = RESPOND(on_response), RELEASED(on_release)
    allocator, request = c.c_void_p(), c.c_void_p()
    t.ResponseAllocatorNew(c.byref(allocator), memory.alloc, memory.give_back, None)
    t.InferenceRequestNew(c.byref(request), server, model.encode(), c.c_int64(-1))
    t.InferenceRequestSetReleaseCallback(request, release, None)
    t.InferenceRequestSetResponseCallback(request, allocator, None, respond, None)
    data = (c.c_float * len(numbers))(*numbers)
    t.InferenceRequestAddInput(request, name.encode(), FP32, (c.c_int64 * len(shape))(*shape), c.c_uint64(len(shape)))
    t.InferenceRequestAppendInputData(request, name.encode(), data, c.c_size_t(c.sizeof(data)), CPU, c.c_int64(0))
    t.ServerInferAsync(server, request, None)
    assert done.wait(60) and released.wait(60)
    response = c.c_void_p(answers[0])
    t.InferenceResponseError(response)
    output, dims, base, userp = c.c_char_p(), c.POINTER(c.c_int64)(), c.c_void_p(), c.c_void_p()
    kind, memory_kind, device, rank, size = c.c_int(), c.c_int(), c.c_int64(), c.c_uint64(), c.c_size_t()
    t.InferenceResponseOutput(
        response, 0, c.byref(output), c.byref(kind), c.byref(dims), c.byref(rank), c.byref(base), c.byref(size),
        c.byref(memory_kind), c.byref(device), c.byref(userp),
    )
    got = list(c.cast(base, c.POINTER(c.c_float))[0 : size.value // 4])
    t.InferenceResponseDelete(response)
    assert not memory.buffers
    t.InferenceRequestDelete(request)
    t.ResponseAllocatorDelete(allocator)
    return got


class Watch:
    """How long something takes, and how much of it was another program's doing."""

    def __init__(self) -> None:
        self.begun, self.used, self.lacked = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Seconds: by the clock; computing; in which that thread which waited for the longest time was ready and had no processor."""
        lacked = max(int((task / "schedstat").read_text().split()[1]) for task in Path("/proc/self/task").iterdir()) / 1e9
        return time.monotonic(), time.process_time(), lacked

    def read(self) -> str:
        took, used, lacked = (1000 * (now - then) for now, then in zip(self._now(), (self.begun, self.used, self.lacked), strict=True))
        return f"after {took:.1f} ms, {used:.1f} of them computing, {lacked:.1f} waiting for a processor"


def main() -> None:
    path, repository, backends, model = sys.argv[1:]
    t = Library(path)
    # The names are this library's own: nothing else in the program sees them before a plug-in needs them.
    assert not hasattr(c.CDLL(None), "TRITONSERVER_ServerNew")
    asked = ("image", [1, 64], SEVEN) if model == "digits" else ("INPUT0", [3], [1.0, -2.5, 3.0])
    watch = Watch()
    server = start(t, repository, backends)
    got = infer(t, server, model, *asked)
    after = watch.read()
    t.ServerStop(server)
    t.ServerDelete(server)
    print(f"answered {got.index(max(got)) if model == 'digits' else got}")
    print(after)


if __name__ == "__main__":
    main()
