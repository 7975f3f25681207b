"""A program that embeds the server through ctypes: library, repository and backends are its arguments. Run by test_embed.py."""

import ctypes as c
import os
import sys
import threading

CPU = 0
FP32 = 11
RELEASE_ALL = 1
FINAL = 1

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


def infer(t: Library, server: c.c_void_p, numbers: list[float]) -> list[float]:
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
    t.InferenceRequestNew(c.byref(request), server, b"id_fp32", c.c_int64(-1))
    t.InferenceRequestSetReleaseCallback(request, release, None)
    t.InferenceRequestSetResponseCallback(request, allocator, None, respond, None)
    data = (c.c_float * len(numbers))(*numbers)
    t.InferenceRequestAddInput(request, b"INPUT0", FP32, (c.c_int64 * 1)(len(numbers)), c.c_uint64(1))
    t.InferenceRequestAppendInputData(request, b"INPUT0", data, c.c_size_t(c.sizeof(data)), CPU, c.c_int64(0))
    t.ServerInferAsync(server, request, None)
    assert done.wait(60) and released.wait(60)
    response = c.c_void_p(answers[0])
    t.InferenceResponseError(response)
    name, shape, base, userp = c.c_char_p(), c.POINTER(c.c_int64)(), c.c_void_p(), c.c_void_p()
    kind, memory_kind, device, rank, size = c.c_int(), c.c_int(), c.c_int64(), c.c_uint64(), c.c_size_t()
    t.InferenceResponseOutput(
        response, 0, c.byref(name), c.byref(kind), c.byref(shape), c.byref(rank), c.byref(base), c.byref(size),
        c.byref(memory_kind), c.byref(device), c.byref(userp),
    )
    got = list(c.cast(base, c.POINTER(c.c_float))[0 : size.value // 4])
    t.InferenceResponseDelete(response)
    assert not memory.buffers
    t.InferenceRequestDelete(request)
    t.ResponseAllocatorDelete(allocator)
    return got


def main() -> None:
    path, repository, backends = sys.argv[1:]
    t = Library(path)
    # The names are this library's own: nothing else in the program sees them before a plug-in needs them.
    assert not hasattr(c.CDLL(None), "TRITONSERVER_ServerNew")
    server = start(t, repository, backends)
    got = infer(t, server, [1.0, -2.5, 3.0])
    t.ServerStop(server)
    t.ServerDelete(server)
    print(f"answered {got}")


if __name__ == "__main__":
    main()
