"""A process that shares memory of a GPU: harness/cuda.py says on its standard input what it is to do.

    cuda_client.py DEVICE
"""

import base64
import ctypes
import json
import sys
from typing import Any


class Driver:
    """CUDA's driver, in the context of one device. Each method answers one line."""

    def __init__(self, device: int) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._stream = ctypes.c_void_p()
        context = ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(device))
        self._call("cuCtxPushCurrent_v2", context)
        self._call("cuStreamCreate", ctypes.byref(self._stream), ctypes.c_uint(1))

    def _call(self, name: str, *values: Any) -> None:
        result = getattr(self._library, name)(*values)
        if result:
            raise RuntimeError(f"{name}: CUDA says {result}")

    def new(self, size: int) -> tuple[int, str]:
        address, handle = ctypes.c_uint64(), ctypes.create_string_buffer(64)
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self._call("cuIpcGetMemHandle", handle, address)
        return address.value, base64.b64encode(handle.raw).decode()

    def _copy(self, to: int, source: int, size: int) -> None:
        self._call("cuMemcpyAsync", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size), self._stream)
        self._call("cuStreamSynchronize", self._stream)

    def write(self, address: int, content: str) -> None:
        data = bytes.fromhex(content)
        kept = ctypes.create_string_buffer(data, len(data))
        self._copy(address, ctypes.addressof(kept), len(data))

    def read(self, address: int, size: int) -> str:
        data = ctypes.create_string_buffer(size)
        self._copy(ctypes.addressof(data), address, size)
        return data.raw.hex()

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", ctypes.c_uint64(address))


def main() -> None:
    driver = Driver(int(sys.argv[1]))
    for line in sys.stdin:
        what, *values = json.loads(line)
        print(json.dumps(getattr(driver, what)(*values)), flush=True)


if __name__ == "__main__":
    main()
