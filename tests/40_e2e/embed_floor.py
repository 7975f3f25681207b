"""ONNX Runtime by itself in a new process: the library and a model's file are the arguments. Run by test_embed.py.

Says how many milliseconds the library, its environment and a session of the model took.
"""

import ctypes as c
import sys

from embed_host import Watch

# Places in struct OrtApi of onnxruntime_c_api.h, which never change.
CREATE_ENV, CREATE_SESSION, CREATE_SESSION_OPTIONS = 3, 7, 10
OF_EVERY_VERSION, ERRORS = 1, 3


class Base(c.Structure):
    _fields_ = (("GetApi", c.CFUNCTYPE(c.POINTER(c.c_void_p), c.c_uint32)), ("GetVersionString", c.c_void_p))


def main() -> None:
    library, model = sys.argv[1:]
    watch = Watch()
    get_base = c.CDLL(library).OrtGetApiBase
    get_base.restype = c.POINTER(Base)
    api = get_base()[0].GetApi(OF_EVERY_VERSION)
    env, options, session = c.c_void_p(), c.c_void_p(), c.c_void_p()

    def call(place: int, *arguments: object) -> None:
        assert c.CFUNCTYPE(c.c_void_p)(api[place])(*arguments) is None

    call(CREATE_ENV, ERRORS, b"floor", c.byref(env))
    call(CREATE_SESSION_OPTIONS, c.byref(options))
    call(CREATE_SESSION, env, model.encode(), options, c.byref(session))
    print(watch.read())


if __name__ == "__main__":
    main()
