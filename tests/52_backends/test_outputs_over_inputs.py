"""Outputs that a client wants where its inputs lie in shared memory, in part or whole: a runtime that wrote there while it computes would
change what it still reads. Each is asked until the server knows the output's shape and would let the runtime write there directly."""

from collections.abc import Iterator

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness.regions import Memory, register, unregister
from harness.repository import Repository
from harness.servers import Nereid, Server
from models import onnx_models
from onnx import helper

BACKENDS = ["onnxruntime", "openvino"]
WEIGHTS = (np.arange(64 * 64, dtype=np.float32) % 7 - 3).reshape(64, 64)
ROWS, BYTES = 4, 4 * 64 * 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("models"))
    product = onnx_models.model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", "FP32", [ROWS, 64])], [("y", "FP32", [ROWS, 64])], {"w": WEIGHTS})
    for backend in BACKENDS:
        onnx_models.save(product, repository.model(backend, f'backend: "{backend}"\ndefault_model_filename: "model.onnx"\n'))
    with Nereid(repository.path, {"allow-client-shm": "true"}) as server:
        yield server


@pytest.mark.parametrize("apart", [0, 64, BYTES - 64, BYTES], ids=lambda apart: f"{apart}_bytes_apart")
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_input_is_read_before_it_is_written_over(server: Server, backend: str, apart: int) -> None:
    x = np.random.default_rng(1).integers(-5, 5, (ROWS, 64)).astype(np.float32)
    with Memory(2 * BYTES) as memory, httpclient.InferenceServerClient(server.http) as client:
        unregister(server)
        assert register(server, "both", memory.key, 2 * BYTES).status == 200
        given = httpclient.InferInput("x", [ROWS, 64], "FP32")
        given.set_shared_memory("both", BYTES)
        wanted = httpclient.InferRequestedOutput("y")
        wanted.set_shared_memory("both", BYTES, offset=apart)
        for _ in range(3):
            memory.write(x.tobytes())
            client.infer(backend, [given], outputs=[wanted])
            np.testing.assert_array_equal(np.frombuffer(memory.read(BYTES, apart), np.float32).reshape(ROWS, 64), x @ WEIGHTS)
