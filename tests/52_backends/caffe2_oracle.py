"""Asks Caffe2 itself, in a process of its own (caffe2_peer.cc), what a NetDef computes."""

import atexit
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from harness import paths

sys.path.insert(0, str(paths.ROOT / "tools"))
from sample_caffe2 import fill, net  # noqa: E402

LIBRARIES = paths.ROOT / "build" / "deps" / "test.maven" / "native" / "lib"
PEER = Path(__file__).with_name("caffe2_peer.cc")
TYPES = {1: ("<f4", 3), 2: ("<i4", 4), 5: ("?", 4), 6: ("u1", 4), 7: ("i1", 4), 8: ("<u2", 4), 9: ("<i2", 4), 10: ("<i8", 10), 13: ("<f8", 9)}


class Refused(Exception):
    """Caffe2 does not compute this."""


@cache
def _peer() -> subprocess.Popen[bytes]:
    paths.need(LIBRARIES / "libtorch_cpu.so")
    folder = tempfile.mkdtemp(prefix="caffe2-peer-")
    atexit.register(shutil.rmtree, folder)
    program = Path(folder) / "peer"
    compiler = os.environ.get("CXX", "g++")
    libraries = [f"-L{LIBRARIES}", "-l:libtorch_cpu.so", "-l:libc10.so", f"-Wl,-rpath,{LIBRARIES}", "-Wl,--allow-shlib-undefined"]
    subprocess.run([compiler, "-std=c++17", str(PEER), "-o", str(program), *libraries], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 128:
            return value, at


def _fields(content: bytes) -> list[tuple[int, int | bytes]]:
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        value: int | bytes
        if key & 7 == 0:
            value, at = _varint(content, at)
        else:
            size, at = _varint(content, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = content[at : at + size], at + size
        found.append((key >> 3, value))
    return found


def _numbers(content: list[int | bytes]) -> list[int]:
    """Whole numbers one by one, or packed."""
    found: list[int] = []
    for each in content:
        if isinstance(each, int):
            found.append(each)
            continue
        at = 0
        while at < len(each):
            value, at = _varint(each, at)
            found.append(value)
    return found


def _array(blob: bytes) -> np.ndarray:
    """A BlobProto with a TensorProto."""
    (tensor,) = [value for field, value in _fields(blob) if field == 3 and isinstance(value, bytes)]
    fields = _fields(tensor)
    shape = _numbers([value for field, value in fields if field == 1])
    (number,) = [value for field, value in fields if field == 2] or [1]
    assert isinstance(number, int)
    kind, field = TYPES[number]
    content = [value for each, value in fields if each == field]
    if kind[-2:] in ("f4", "f8"):
        return np.frombuffer(b"".join(each for each in content if isinstance(each, bytes)), kind).reshape(shape)
    if number == 6 and not content:
        content = [value for each, value in fields if each == 5]
        return np.frombuffer(b"".join(each for each in content if isinstance(each, bytes)), kind).reshape(shape)
    numbers = np.array(_numbers(content), np.uint64).astype(np.int64)
    return numbers.astype(kind).reshape(shape)


def answer(operators: list[bytes], inputs: dict[str, np.ndarray], output: str) -> np.ndarray:
    """What the operators make of the inputs, by Caffe2.

    Raises Refused, with Caffe2's own words.
    """
    question = net("question", [*(fill(name, array) for name, array in inputs.items()), *operators], [], [output])
    peer = _peer()
    assert peer.stdin and peer.stdout
    for part in (question, output.encode()):
        peer.stdin.write(struct.pack("<I", len(part)) + part)
    peer.stdin.flush()
    head = peer.stdout.read(5)
    assert len(head) == 5, "the process with Caffe2 has ended: what it says is above"
    content = peer.stdout.read(struct.unpack("<I", head[:4])[0])
    if head[4]:
        raise Refused(content.decode(errors="replace"))
    return _array(content)
