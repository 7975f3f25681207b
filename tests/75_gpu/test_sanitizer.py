"""A server under NVIDIA's compute-sanitizer: nothing is read or written where it should not be, no call of CUDA fails, and without PyTorch nothing of the
GPU is left at the end. Needs a GPU: tools/gpu_proof.py runs it."""

from pathlib import Path

import gpu_networks as networks
import numpy as np
import pytest
import torch_models as models
import tritonclient.grpc as grpcclient
from figures import images
from harness import cuda, rawhttp
from harness.gpus import Gpus
from harness.regions import body, part
from harness.repository import Repository
from sanitized import Sanitized

pytestmark = pytest.mark.gpu


class Leaks(Sanitized):
    extra = ("--leak-check", "full")


def test_memory_of_the_server(tmp_path: Path) -> None:
    """Copies of requests, pools, shared memory: clean, and all given back."""
    repository = Repository(tmp_path / "models")
    repository.identity("gpu", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    repository.identity("cpu", extra="instance_group [ { kind: KIND_CPU } ]")
    with Leaks(repository.path, {"allow-client-shm": "true"}, ready_within=300) as server, cuda.Client(Gpus(tmp_path)) as client:
        memory = client.memory(8192, bytes(range(256)) * 32)
        assert cuda.register(server, "r", memory).status == 200
        for model in ("gpu", "cpu"):
            for elements in (1, 1000):
                answer = rawhttp.post(server.http, f"/v2/models/{model}/infer", body([elements], part("r", 4 * elements), part("r", 4 * elements, 4096)))
                assert answer.status == 200, answer.body
                assert memory.read(4 * elements, 4096) == memory.read(4 * elements)
        data = np.arange(1 << 16, dtype=np.float32)
        given = grpcclient.InferInput("INPUT0", [data.size], "FP32")
        given.set_data_from_numpy(data)
        with grpcclient.InferenceServerClient(server.grpc) as asks:
            assert (asks.infer("gpu", [given]).as_numpy("OUTPUT0") == data).all()
        assert cuda.unregister(server).status == 200


def test_pytorch(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    network = models.add_digits(repository, "digits", "instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] } ]", "dynamic_batching { }\n")
    pictures, _ = images()
    with Sanitized(repository.path, ready_within=300) as server:
        for rows in (1, 7, 64):
            given = grpcclient.InferInput("image", [rows, 64], "FP32")
            given.set_data_from_numpy(pictures[:rows])
            with grpcclient.InferenceServerClient(server.grpc) as asks:
                found = asks.infer("digits", [given]).as_numpy("logits__0")
            np.testing.assert_allclose(found, models.answer(network, pictures[:rows]), rtol=1e-3, atol=1e-4)


def test_onnxruntime(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    networks.add_digits(repository, "digits", "dynamic_batching { } instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] } ]")
    networks.add_digits(repository, "on_cpu", "instance_group [ { kind: KIND_CPU } ]")
    pictures, _ = images()
    with Sanitized(repository.path, {"backend-config": f"onnxruntime,library={networks.library()}"}, ready_within=300) as server:
        with grpcclient.InferenceServerClient(server.grpc) as asks:
            tensors = asks.get_model_metadata("digits")
            for rows in (1, 7, 64):
                given = grpcclient.InferInput(tensors.inputs[0].name, [rows, 64], "FP32")
                given.set_data_from_numpy(pictures[:rows])
                found, expected = (asks.infer(model, [given]).as_numpy(tensors.outputs[0].name) for model in ("digits", "on_cpu"))
                networks.close(found, expected)
