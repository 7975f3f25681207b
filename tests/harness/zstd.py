"""Zstandard by the system's library, which this Python does not wrap."""

import ctypes
import struct
from typing import Any

_LIBRARY = ctypes.CDLL("libzstd.so.1")
SKIPPABLE = 0x184D2A50


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_LIBRARY, name)
    function.restype, function.argtypes = result, arguments
    return function


_size, _pointer, _bytes = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_bound = _function("ZSTD_compressBound", _size, _size)
_is_error = _function("ZSTD_isError", ctypes.c_uint, _size)
_error = _function("ZSTD_getErrorName", _bytes, _size)
_new = _function("ZSTD_createCCtx", _pointer)
_free = _function("ZSTD_freeCCtx", _size, _pointer)
_set = _function("ZSTD_CCtx_setParameter", _size, _pointer, ctypes.c_int, ctypes.c_int)
_compress = _function("ZSTD_compress2", _size, _pointer, _bytes, _size, _bytes, _size)
_decompress = _function("ZSTD_decompress", _size, _bytes, _size, _bytes, _size)


class Failed(Exception):
    pass


def _checked(result: int) -> int:
    if _is_error(result):
        raise Failed(_error(result).decode())
    return result


def compress(data: bytes, **settings: int) -> bytes:
    """settings: level, size (0: the frame does not say how large it is), sum (1: it has a checksum)."""
    numbers = {"level": 100, "size": 200, "sum": 201}
    context = _new()
    try:
        for name, value in settings.items():
            _checked(_set(context, numbers[name], value))
        room = _bound(len(data))
        to = ctypes.create_string_buffer(room)
        made = _checked(_compress(context, to, room, data, len(data)))
        return to.raw[:made]
    finally:
        _free(context)


def decompress(data: bytes, room: int = 1 << 24) -> bytes:
    to = ctypes.create_string_buffer(room)
    made = _checked(_decompress(to, room, data, len(data)))
    return to.raw[:made]


def skippable(data: bytes) -> bytes:
    return struct.pack("<II", SKIPPABLE, len(data)) + data


def windowed(frame: bytes, log: int, eighths: int = 0) -> bytes:
    """The same frame, of unknown size, that says that it needs another window: 2 to the power of log, and so many eighths of it more."""
    assert frame[4] & 0xE0 == 0, "it has no window"
    return frame[:5] + bytes([(log - 10) << 3 | eighths]) + frame[6:]
