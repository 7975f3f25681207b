"""Output buffers that a backend asks for and does not fill: what other clients left in that memory is nobody's business."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import paths, rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server

pytestmark = pytest.mark.threadless

CONFIG = """
name: "{name}"
backend: "miser"
input [ {{ name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "OUT" data_type: TYPE_UINT8 dims: [ -1 ] }} ]
"""
ISOLATED = 'parameters { key: "ISOLATION" value { string_value: "process" } }'
# In the answer's own memory, on the heap, in mapped memory of small and of huge pages; larger and smaller than what was there before.
SIZES = [64, 4096, 4098, 20000, 40000, 131072, 1 << 20, 3 << 20, 4 << 20]
SECRET = 0xAA


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("unwritten") / "models")
    repository.identity("echo", datatype="UINT8")
    library = paths.need(paths.BUILD / "tests" / "backends" / "miser" / "libtriton_miser.so")
    for name, extra in (("miser", ""), ("miser_apart", ISOLATED)):
        shutil.copy(library, repository.model(name, CONFIG.format(name=name) + extra) / library.name)
    with Nereid(repository.path, {"backend-directory": str(paths.backends())}) as running:
        yield running


def _ask(server: Server, model: str, tensor: str, datatype: str, count: int, data: bytes) -> bytes:
    text = json.dumps(
        {
            "inputs": [
                {"name": tensor, "datatype": datatype, "shape": [count], "parameters": {"binary_data_size": len(data)}}
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}
    got = rawhttp.request(HOST, server.http_port, "POST", f"/v2/models/{model}/infer", text + data, headers)
    assert got.status == 200, got.body
    return got.body[int(got.header("Inference-Header-Content-Length") or "0") :]


def _miser(server: Server, model: str, size: int) -> bytes:
    return _ask(server, model, "IN", "INT32", 1, size.to_bytes(4, "little"))


@pytest.mark.parametrize("size", SIZES)
def test_what_others_left(server: Server, size: int) -> None:
    for before in (size, size * 2, size // 2 + 1):
        for _ in range(3):
            secret = bytes([SECRET]) * before
            assert _ask(server, "echo", "INPUT0", "UINT8", before, secret) == secret
        assert _miser(server, "miser", size) == b"\1" * (size // 2) + bytes(size - size // 2)


@pytest.mark.parametrize("size", SIZES)
def test_in_a_process_of_its_own(server: Server, size: int) -> None:
    """The larger answer of a moment ago lay in the same memory."""
    for before in (2 * size, 2 * size, size):
        assert _miser(server, "miser_apart", before) == b"\1" * (before // 2) + bytes(before - before // 2)
