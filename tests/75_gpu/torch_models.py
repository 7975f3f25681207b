"""TorchScript models for a GPU, and what PyTorch itself computes with them there."""

from typing import Any

import numpy as np
import torch
from harness import paths
from harness.repository import Repository

GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"
WIDTH, HEADS, LAYERS, WORDS = 384, 12, 6, 30000  # of a small encoder of sentences


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.mixed = torch.nn.Linear(WIDTH, WIDTH)
        self.wide = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = torch.nn.Linear(4 * WIDTH, WIDTH)
        self.first, self.second = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length = x.shape[0], x.shape[1]
        split = self.attention(x).reshape(rows, length, 3, 12, 32).permute(2, 0, 3, 1, 4)
        seen = torch.nn.functional.scaled_dot_product_attention(split[0], split[1], split[2])
        x = self.first(x + self.mixed(seen.transpose(1, 2).reshape(rows, length, 384)))
        return self.second(x + self.narrow(torch.nn.functional.gelu(self.wide(x))))


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.layers = torch.nn.ModuleList([Layer() for _ in range(LAYERS)])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x)
        return torch.nn.functional.normalize(x.mean(dim=1), dim=-1)


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Hungry(torch.nn.Module):
    """Takes as many MiB of the GPU as it is told."""

    def forward(self, mib: torch.Tensor) -> torch.Tensor:
        taken = torch.zeros(int(mib[0, 0].item()) * 1048576, dtype=torch.uint8, device=mib.device)
        return mib + taken[:1].to(mib.dtype)


class Elsewhere(torch.nn.Module):
    """One result on the GPU and one on the host."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, (x + 2).cpu()


class Remembers(torch.nn.Module):
    """A sum over a sequence; keeps the tensors that it is given."""

    def forward(self, x: torch.Tensor, so_far: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return so_far + x, so_far + x


def tensors(way: str, **named: str) -> str:
    """named: "FP32 [ 4 ]" each."""
    parts = []
    for name, said in named.items():
        datatype, _, dims = said.partition(" ")
        parts.append(f'{{ name: "{name}" data_type: TYPE_{datatype} dims: {dims} }}')
    return f"{way} [ {', '.join(parts)} ]\n"


def add(repository: Repository, name: str, module: torch.nn.Module, config: str, group: str = GPU) -> torch.nn.Module:
    """Writes a model; returns it as PyTorch runs it on the GPU."""
    repository.model(name, f'name: "{name}"\nbackend: "pytorch"\n{config}{group}\n')
    folder = repository.path / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    torch.jit.save(torch.jit.script(module.eval()), str(folder / "model.pt"))
    return module.to("cuda")


def add_digits(repository: Repository, name: str, group: str = GPU, more: str = "") -> torch.nn.Module:
    """The network that the project trains on handwritten digits."""
    file = paths.need(paths.ROOT / "build" / "models-pytorch" / "digits_pytorch" / "1" / "model.pt", "tools/setup.sh pytorch")
    config = "max_batch_size: 64\n" + tensors("input", image="FP32 [ 64 ]") + tensors("output", logits__0="FP32 [ 10 ]") + more
    repository.model(name, f'name: "{name}"\nbackend: "pytorch"\n{config}{group}\n')
    folder = repository.path / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pt").write_bytes(file.read_bytes())
    return torch.jit.load(str(file), map_location="cuda")


def add_encoder(repository: Repository, name: str = "encoder", group: str = GPU) -> torch.nn.Module:
    torch.manual_seed(7)
    config = "max_batch_size: 32\ndynamic_batching { }\n" + tensors("input", tokens="INT64 [ -1 ]") + tensors("output", embedding__0="FP32 [ 384 ]")
    return add(repository, name, Encoder(), config, group)


def answer(module: torch.nn.Module, *given: np.ndarray) -> Any:
    with torch.inference_mode():
        found = module(*(torch.from_numpy(each).to("cuda") for each in given))
    return [each.cpu().numpy() for each in found] if isinstance(found, tuple) else found.cpu().numpy()
