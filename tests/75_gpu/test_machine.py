"""What else a machine with a GPU shows: which GPUs are used, what is refused, models in processes of their own, compiled packages. Needs a GPU:
tools/gpu_proof.py runs it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch_models as models
import tritonclient.http as httpclient
from figures import images
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.gpu

ON_GPU = models.GPU
ALONE = 'parameters { key: "ISOLATION" value { string_value: "process" } }\n'


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "models")


def refused(repository: Repository, env: dict[str, str] | None = None, **options: str) -> str:
    server = Nereid(repository.path, {name.replace("_", "-"): value for name, value in options.items()}, env=env, wait_ready=False).start()
    server.process.ends(1)
    text = server.process.log()
    server.kill()
    return text


def ask(server: Server, model: str, given: dict[str, np.ndarray], wanted: str) -> Any:
    inputs = []
    for name, data in given.items():
        inputs.append(httpclient.InferInput(name, list(data.shape), "FP32"))
        inputs[-1].set_data_from_numpy(data)
    with httpclient.InferenceServerClient(server.http) as client:
        return client.infer(model, inputs).as_numpy(wanted)


DATA = np.arange(1000, dtype=np.float32)


def test_no_gpu_is_shown(repository: Repository) -> None:
    """CUDA_VISIBLE_DEVICES hides it: who asks for one is refused, the others are on the CPU."""
    env = {"CUDA_VISIBLE_DEVICES": ""}
    repository.identity("m", extra=ON_GPU)
    assert "CUDA" in refused(repository, env) or "GPU" in refused(repository, env)
    repository.identity("m")
    network = models.add_digits(repository, "digits", "")
    pictures, _ = images()
    with Nereid(repository.path, env=env) as server:
        assert (ask(server, "m", {"INPUT0": DATA}, "OUTPUT0") == DATA).all()
        np.testing.assert_allclose(
            ask(server, "digits", {"image": pictures[:8]}, "logits__0"), models.answer(network, pictures[:8]), rtol=1e-3, atol=1e-4
        )


def test_it_is_shown_by_its_name(repository: Repository) -> None:
    """CUDA_VISIBLE_DEVICES may have its UUID: it is GPU 0, also of the metrics."""
    uuid = f"GPU-{models.torch.cuda.get_device_properties(0).uuid}"
    repository.identity("m", extra=ON_GPU)
    with Nereid(repository.path, env={"CUDA_VISIBLE_DEVICES": uuid}) as server:
        assert (ask(server, "m", {"INPUT0": DATA}, "OUTPUT0") == DATA).all()
        assert f'nv_gpu_memory_total_bytes{{gpu_uuid="{uuid}"}}' in rawhttp.get(server.metrics, "/metrics").body.decode()


def test_what_is_refused(repository: Repository) -> None:
    repository.identity("m", extra=ON_GPU)
    assert "GPU" in refused(repository, min_supported_compute_capability="99.0")
    assert "memory limit set for GPU 0 has exceeded" in refused(repository, model_load_gpu_limit="0:0")
    repository.identity("m", extra="instance_group [ { kind: KIND_GPU gpus: [ 9 ] } ]")
    assert "invalid or unsupported gpu id 9" in refused(repository)


def test_a_pool_that_is_spent(repository: Repository) -> None:
    """What does not fit is an error of that request."""
    repository.identity("m", extra=ON_GPU)
    with Nereid(repository.path, {"cuda-memory-pool-byte-size": "0:65536"}) as server:
        for _ in range(3):
            assert (ask(server, "m", {"INPUT0": DATA}, "OUTPUT0") == DATA).all()
            with pytest.raises(InferenceServerException, match="GPU 0"):
                ask(server, "m", {"INPUT0": np.zeros(1 << 20, np.float32)}, "OUTPUT0")


@pytest.mark.parametrize("framework", ["identity", "pytorch"])
def test_models_in_processes_of_their_own(repository: Repository, framework: str) -> None:
    pictures, _ = images()
    repository.identity("m", extra=f"{ON_GPU}\n{ALONE}")
    network = models.add_digits(repository, "digits", more=ALONE)
    with Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "m" if framework == "identity" else "digits"}) as server:
        if framework == "identity":
            assert (ask(server, "m", {"INPUT0": DATA}, "OUTPUT0") == DATA).all()
        else:
            found = ask(server, "digits", {"image": pictures[:8]}, "logits__0")
            np.testing.assert_allclose(found, models.answer(network, pictures[:8]), rtol=1e-3, atol=1e-4)


class Small(models.torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = models.torch.nn.Linear(16, 32), models.torch.nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        return self.second(models.torch.relu(self.first(x)))


def compiled(repository: Repository, name: str, group: str, device: str) -> Callable[..., Any]:
    """A package of AOTInductor for a device."""
    torch = models.torch
    torch.manual_seed(3)
    network = Small().eval().to(device)
    rows = torch.export.Dim("rows", min=1, max=32)
    config = models.tensors("input", x="FP32 [ 16 ]").replace('"x"', '"ARGS[0]"') + models.tensors("output", y="FP32 [ 4 ]").replace('"y"', '"RESULT"')
    repository.model(name, f'name: "{name}"\nbackend: "pytorch"\nplatform: "torch_aoti"\nmax_batch_size: 32\n{config}{group}\n')
    with torch.no_grad():
        program = torch.export.export(network, (torch.randn(4, 16, device=device),), dynamic_shapes=({0: rows},))
        torch._inductor.aoti_compile_and_package(program, package_path=str(repository.path / name / "1" / "model.pt2"))
    return network


def test_compiled_packages(repository: Repository) -> None:
    """Where they were compiled for; elsewhere the model does not load, and it is said why."""
    network = compiled(repository, "package", ON_GPU, "cuda")
    data = np.random.default_rng(5).random((8, 16), dtype=np.float32)
    with Nereid(repository.path) as server:
        for rows in (1, 3, 8):
            expected = models.answer(network, data[:rows])
            np.testing.assert_allclose(ask(server, "package", {"ARGS[0]": data[:rows]}, "RESULT"), expected, rtol=1e-2, atol=1e-3)
    config = repository.path / "package" / "config.pbtxt"
    config.write_text(config.read_text().replace("KIND_GPU gpus: [ 0 ]", "KIND_CPU"))
    assert "the package was compiled for cuda" in refused(repository)
