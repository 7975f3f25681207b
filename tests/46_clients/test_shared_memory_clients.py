"""Triton's own Python clients with their library for shared memory, as its examples use them, over both protocols, against both servers."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
import tritonclient.utils.shared_memory as shm
from harness.repository import Repository
from harness.servers import KINDS, Server
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

KEYS = (f"/tests-client-{os.getpid()}-{number}" for number in itertools.count())
PROTOCOLS = {"http": httpclient, "grpc": grpcclient}


@pytest.fixture(scope="module", params=["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def sharing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Repository(tmp_path_factory.mktemp("sharing") / "models")
    made.identity("simple", "INT32", dims=(16,), max_batch_size=8, tensors=2)
    made.identity("simple_identity", "BYTES", dims=(-1,), max_batch_size=8)
    with KINDS[request.param](made.path, {"allow-client-shm": "true"} if request.param == "nereid" else {}) as server:
        yield server


def forget(server: Server, client: Any, name: str = "") -> None:
    """The reference lets go of a region a moment after it has answered; ours before."""

    def forgotten() -> bool:
        try:
            client.unregister_system_shared_memory(name)
        except InferenceServerException as error:
            return "nregister" not in str(error)
        return True

    if server.kind == "reference":
        server.process.wait_until(forgotten, 60)
    else:
        client.unregister_system_shared_memory(name)


class Regions:
    """Shared memory by the client's library, registered; all is gone on leaving."""

    def __init__(self, server: Server, client: Any):
        self.server, self.client = server, client
        self.handles: list[Any] = []

    def add(self, name: str, size: int) -> Any:
        key = next(KEYS)
        handle = shm.create_shared_memory_region(name, key, size)
        self.handles.append(handle)
        self.client.register_system_shared_memory(name, key, size)
        return handle

    def __enter__(self) -> "Regions":
        forget(self.server, self.client)
        self.client.unregister_cuda_shared_memory()
        return self

    def __exit__(self, *_: object) -> None:
        forget(self.server, self.client)
        for handle in self.handles:
            shm.destroy_shared_memory_region(handle)
        assert not shm.mapped_shared_memory_regions()


def tensors(module: ModuleType, count: int, shape: list[int], datatype: str, size: int) -> tuple[list[Any], list[Any]]:
    """All inputs in one region, all outputs in another, one behind the other."""
    inputs, outputs = [], []
    for index in range(count):
        inputs.append(module.InferInput(f"INPUT{index}", shape, datatype))
        inputs[-1].set_shared_memory("input_data", size, offset=index * size)
        outputs.append(module.InferRequestedOutput(f"OUTPUT{index}"))
        outputs[-1].set_shared_memory("output_data", size, offset=index * size)
    return inputs, outputs


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_numbers(sharing: Server, protocol: str) -> None:
    module = PROTOCOLS[protocol]
    first, second = np.arange(16, dtype=np.int32).reshape(1, 16), np.full((1, 16), -7, dtype=np.int32)
    with module.InferenceServerClient(getattr(sharing, protocol)) as client, Regions(sharing, client) as regions:
        out = regions.add("output_data", 2 * first.nbytes)
        given = regions.add("input_data", 2 * first.nbytes)
        shm.set_shared_memory_region(given, [first, second])
        inputs, outputs = tensors(module, 2, [1, 16], "INT32", first.nbytes)
        result = client.infer("simple", inputs, outputs=outputs)
        for index, sent in enumerate((first, second)):
            assert result.get_output(f"OUTPUT{index}") is not None
            got = shm.get_contents_as_numpy(out, np.int32, [1, 16], offset=index * first.nbytes)
            np.testing.assert_array_equal(got, sent)
        told = client.get_system_shared_memory_status()
        names = [each["name"] for each in told] if protocol == "http" else sorted(told.regions)
        assert names == ["input_data", "output_data"]
        forget(sharing, client, "input_data")
        with pytest.raises(Exception, match="Unable to find shared memory region: 'input_data'"):
            client.infer("simple", inputs, outputs=outputs)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_strings(sharing: Server, protocol: str) -> None:
    module = PROTOCOLS[protocol]
    sent = np.array([str(number).encode() * number for number in range(16)], dtype=object).reshape(1, 16)
    packed = serialize_byte_tensor(sent)
    size = len(packed.item())
    with module.InferenceServerClient(getattr(sharing, protocol)) as client, Regions(sharing, client) as regions:
        out = regions.add("output_data", size)
        given = regions.add("input_data", size)
        shm.set_shared_memory_region(given, [packed])
        inputs, outputs = tensors(module, 1, [1, 16], "BYTES", size)
        client.infer("simple_identity", inputs, outputs=outputs)
        got = shm.get_contents_as_numpy(out, np.object_, [1, 16])
        np.testing.assert_array_equal(got, sent)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_input_alone_and_an_output_alone(sharing: Server, protocol: str) -> None:
    module = PROTOCOLS[protocol]
    data = np.arange(16, dtype=np.int32).reshape(1, 16)
    with module.InferenceServerClient(getattr(sharing, protocol)) as client, Regions(sharing, client) as regions:
        out = regions.add("output_data", 2 * data.nbytes)
        given = regions.add("input_data", 2 * data.nbytes)
        shm.set_shared_memory_region(given, [data, data])
        inputs, outputs = tensors(module, 2, [1, 16], "INT32", data.nbytes)
        np.testing.assert_array_equal(client.infer("simple", inputs).as_numpy("OUTPUT1"), data)
        for each in inputs:
            each.set_data_from_numpy(data + 1)
        client.infer("simple", inputs, outputs=outputs)
        np.testing.assert_array_equal(shm.get_contents_as_numpy(out, np.int32, [2, 16]), np.concatenate([data + 1] * 2))
