"""TensorFlow itself, in a process of its own: the runtime's C interface called with ctypes, without anything of the backend.

    python tensorflow_peer.py LIBRARY

Reads questions and writes answers, pickled and behind their length, until its input ends. A question is (graph, feeds, fetches, targets,
times): a GraphDef, arrays by the name of an operation, names of operations whose first result is wanted, names of operations to run, and
0 or how often to repeat it. The answer is a list of arrays (of repetitions: what each took, in seconds and in seconds of a processor), or
the text of an error.
"""

import ctypes
import pickle
import struct
import sys
import time
from typing import Any

import numpy as np

TYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "object": 7, "int64": 9, "bool": 10, "uint16": 17, "float16": 19,
    "uint32": 22, "uint64": 23,
}
STRING_SIZE = 24


class Output(ctypes.Structure):
    _fields_ = (("operation", ctypes.c_void_p), ("index", ctypes.c_int))


class Failed(Exception):
    pass


def index_of(name: str) -> int:
    return int(name.partition(":")[2] or 0)


class TensorFlow:
    def __init__(self, library: str):
        self.library = ctypes.CDLL(library)
        self.status = self.new("TF_NewStatus")
        self.library.TF_Message.restype = ctypes.c_char_p

    def new(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        found = getattr(self.library, function)
        found.restype = ctypes.c_void_p
        return ctypes.c_void_p(found(*arguments))

    def check(self) -> None:
        if self.library.TF_GetCode(self.status) != 0:
            raise Failed(self.library.TF_Message(self.status).decode())

    def tensor(self, array: np.ndarray) -> ctypes.c_void_p:
        strings = array.dtype == object
        size = array.size * STRING_SIZE if strings else array.nbytes
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        made = self.new("TF_AllocateTensor", TYPES[array.dtype.name], dims, array.ndim, ctypes.c_size_t(size))
        data = self.new("TF_TensorData", made).value or 0
        if strings:
            for index, each in enumerate(array.flat):
                at = ctypes.c_void_p(data + index * STRING_SIZE)
                self.library.TF_StringInit(at)
                self.library.TF_StringCopy(at, each, ctypes.c_size_t(len(each)))
        elif size:
            ctypes.memmove(data, np.ascontiguousarray(array).ctypes.data, size)
        return made

    def array(self, tensor: ctypes.c_void_p) -> np.ndarray:
        self.library.TF_Dim.restype = ctypes.c_int64
        dims = [self.library.TF_Dim(tensor, i) for i in range(self.library.TF_NumDims(tensor))]
        kind = next(name for name, number in TYPES.items() if number == self.library.TF_TensorType(tensor))
        data, count = self.new("TF_TensorData", tensor).value or 0, int(np.prod(dims, dtype=int))
        if kind != "object":
            return np.frombuffer(ctypes.string_at(data, count * np.dtype(kind).itemsize), kind).reshape(dims)
        found = []
        for index in range(count):
            at = ctypes.c_void_p(data + index * STRING_SIZE)
            self.library.TF_StringGetSize.restype = ctypes.c_size_t
            found.append(ctypes.string_at(self.new("TF_StringGetDataPointer", at), self.library.TF_StringGetSize(at)))
        return np.array(found, object).reshape(dims)

    def open(self, of: bytes | str, graph: ctypes.c_void_p) -> ctypes.c_void_p:
        options = self.new("TF_NewSessionOptions")
        if isinstance(of, str):
            tags = (ctypes.c_char_p * 1)(b"serve")
            session = self.new("TF_LoadSessionFromSavedModel", options, None, of.encode(), tags, 1, graph, None, self.status)
            self.check()
            return session
        content = self.new("TF_NewBufferFromString", of, ctypes.c_size_t(len(of)))
        self.library.TF_GraphImportGraphDef(graph, content, self.new("TF_NewImportGraphDefOptions"), self.status)
        self.check()
        session = self.new("TF_NewSession", graph, options, self.status)
        self.check()
        return session

    def run(self, of: bytes | str, feeds: dict[str, np.ndarray], fetches: list[str], targets: list[str], times: int) -> list[np.ndarray]:
        graph = self.new("TF_NewGraph")
        session = self.open(of, graph)
        try:
            return self.run_in(graph, session, feeds, fetches, targets, times)
        finally:
            ended = self.new("TF_NewStatus")
            self.library.TF_DeleteSession(session, ended)
            self.library.TF_DeleteGraph(graph)
            self.library.TF_DeleteStatus(ended)

    def run_in(
        self, graph: ctypes.c_void_p, session: ctypes.c_void_p, feeds: dict[str, np.ndarray], fetches: list[str], targets: list[str], times: int
    ) -> list[np.ndarray]:
        operations = {name: self.new("TF_GraphOperationByName", graph, name.split(":")[0].encode()) for name in [*feeds, *fetches, *targets]}
        missing = [name for name, operation in operations.items() if not operation]
        if missing:
            raise Failed(f"the graph has no {missing}")
        given = (ctypes.c_void_p * len(feeds))(*(self.tensor(array) for array in feeds.values()))
        made = (ctypes.c_void_p * len(fetches))()
        sources = (Output * len(feeds))(*(Output(operations[name].value, index_of(name)) for name in feeds))
        wanted = (Output * len(fetches))(*(Output(operations[name].value, index_of(name)) for name in fetches))
        along = (ctypes.c_void_p * len(targets))(*(operations[name].value for name in targets))

        def once() -> None:
            self.library.TF_SessionRun(
                session, None, sources, given, len(feeds), wanted, made, len(fetches), along, len(targets), None, self.status
            )
            self.check()

        once()
        if not times:
            return [self.array(ctypes.c_void_p(tensor)) for tensor in made]
        began, used = time.monotonic(), time.process_time()
        for _ in range(times):
            for tensor in made:
                self.library.TF_DeleteTensor(ctypes.c_void_p(tensor))
            once()
        return [np.array([time.monotonic() - began, time.process_time() - used]) / times]


def main() -> None:
    tensorflow = TensorFlow(sys.argv[1])
    while head := sys.stdin.buffer.read(4):
        question = pickle.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
        try:
            answer: Any = tensorflow.run(*question)
        except Failed as failed:
            answer = str(failed)
        content = pickle.dumps(answer)
        sys.stdout.buffer.write(struct.pack("<I", len(content)) + content)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
