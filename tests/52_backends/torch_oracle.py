"""Asks PyTorch in Python, in a process of its own (torch_peer.py), to write TorchScript files and to say what they compute."""

import os
import pickle
import struct
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness import paths

PEER = Path(__file__).with_name("torch_peer.py")


@cache
def _peer() -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONPATH")}
    return subprocess.Popen(
        [str(paths.need(Path("/usr/bin/python3"))), str(PEER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )


def _ask(*question: Any) -> Any:
    peer = _peer()
    assert peer.stdin and peer.stdout
    content = pickle.dumps(question, protocol=4)
    peer.stdin.write(struct.pack("<I", len(content)) + content)
    peer.stdin.flush()
    head = peer.stdout.read(4)
    assert len(head) == 4, "the process with PyTorch has ended: what it says is above"
    return pickle.loads(peer.stdout.read(struct.unpack("<I", head)[0]))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def _arrays(value: Any) -> Any:
    if isinstance(value, tuple):
        kind, shape, content = value
        return np.frombuffer(content, kind).reshape(shape)
    if isinstance(value, list):
        return [_arrays(each) for each in value]
    return {key: _arrays(each) for key, each in value.items()} if isinstance(value, dict) else value


def save(model: str, folder: Path, traced: list[np.ndarray] | None = None, file: str = "model.pt") -> Path:
    """Writes FOLDER/1/model.pt: scripted, or traced with these arguments."""
    path = folder / "1" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    _ask("save", model, str(path), None if traced is None else _plain(traced))
    return path


def answer(path: Path, *arguments: Any) -> Any:
    """What PyTorch in Python computes: arrays, in the lists and dictionaries in which the model gives them back."""
    return _arrays(_ask("answer", str(path), _plain(list(arguments))))
