"""PyTorch itself, in a process of its own and out of the distribution's package, whose Python this runs in: writes the TorchScript files
that the tests serve, and says what they compute.

    /usr/bin/python3 torch_peer.py

Reads questions and writes answers, pickled and behind their length, until its input ends. An array is (type, shape, bytes).
"""

import pickle
import struct
import sys
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
from torch import Tensor, nn


class Flip(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flip(-1)


class Same(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layer(x))


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, groups=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5), nn.Softmax(1),
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.layers(image)


class Perceptron(nn.Module):
    """The networks of bench_bare.py: this one, Encoder and Residual."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.takes, self.gives = nn.Linear(768, 2304), nn.Linear(768, 768)
        self.wide = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768))
        self.first, self.second = nn.LayerNorm(768), nn.LayerNorm(768)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.takes(x).reshape(64, 3, 12, 64).permute(1, 2, 0, 3)
        weights = torch.softmax(parts[0] @ parts[1].transpose(1, 2) / 8, -1)
        x = self.first(x + self.gives((weights @ parts[2]).transpose(0, 1).reshape(64, 768)))
        return self.second(x + self.wide(x))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(Attends() for _ in range(12)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Bottleneck(nn.Module):
    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, inner, 1), nn.ReLU(), nn.Conv2d(inner, inner, 3, stride, 1), nn.ReLU(), nn.Conv2d(inner, 4 * inner, 1)
        )
        self.beside = nn.Conv2d(channels, 4 * inner, 1, stride) if channels != 4 * inner else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layers(x) + self.beside(x))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: List[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for inner, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for block in range(blocks):
                layers.append(Bottleneck(channels, inner, 2 if block == 0 and inner > 64 else 1))
                channels = 4 * inner
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class AddSub(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
        return a + b, a - b


class Keyed(nn.Module):
    def forward(self, data: Dict[str, Tensor]) -> Dict[str, Tensor]:
        return {"sum": data["a"] + data["b"], "difference": data["a"] - data["b"]}


class Listed(nn.Module):
    def forward(self, parts: List[Tensor]) -> List[Tensor]:
        return [parts[1] * 2, parts[0] - parts[1]]


class Mixed(nn.Module):
    def forward(self, parts: List[Tensor], scale: Tensor, power: int = 2) -> Tuple[Tensor, List[Tensor], Dict[str, Tensor]]:
        whole = torch.cat(parts, dim=0)
        return whole * scale, [part**power for part in parts], {"mean": whole.mean(dim=0)}


class Shout(nn.Module):
    def forward(self, words: List[str]) -> List[str]:
        return [word.upper() + "!" for word in words]


class Lengths(nn.Module):
    def forward(self, words: List[str], x: Tensor) -> Tuple[List[str], Tensor]:
        return [word + word for word in words], x + torch.tensor([[len(word)] for word in words])


class Scaled(nn.Module):
    def forward(self, x: Tensor, factor: int) -> Tensor:
        return x * factor


class LoseOne(nn.Module):
    def forward(self, words: List[str]) -> List[str]:
        return words[1:]


class NonZero(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.nonzero()


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x[..., 0:2].add_(1)
        return x


class Told(nn.Module):
    """Which rows begin a sequence, and which are there."""

    def forward(self, x: Tensor, start: Tensor, ready: Tensor) -> Tensor:
        return x + 10 * start + 100 * ready


class Running(nn.Module):
    """The sum of a sequence so far, and the same as its state."""

    def forward(self, x: Tensor, so_far: Tensor) -> Tuple[Tensor, Tensor]:
        return x + so_far, x + so_far


class Keeper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(1, 4)

    def forward(self, x: Tensor) -> Tensor:
        found = self.last
        self.last = x[:, :4]
        return found


class ChangeListed(nn.Module):
    def forward(self, parts: List[Tensor]) -> Tensor:
        parts[0].add_(100)
        return parts[0] * 1


class ChangeKeyed(nn.Module):
    def forward(self, parts: Dict[str, Tensor]) -> Tensor:
        parts["x"].add_(100)
        return parts["x"] * 1


class ChangeEach(nn.Module):
    """Through a list of its own."""

    def forward(self, x: Tensor) -> Tensor:
        for each in [x]:
            each.add_(100)
        return x * 1


class ChangeOther(nn.Module):
    """Through a tensor that it makes another name of the input."""

    def forward(self, x: Tensor) -> Tensor:
        other = torch.zeros(4)
        other.set_(x)
        other.add_(100)
        return other * 1


class ChangeDropped(nn.Module):
    """Through what PyTorch says is another tensor, and is the same where nothing is dropped."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.dropout(x, 0.5, False).add_(100)


class ChangeByNorm(nn.Module):
    """By a mean that PyTorch does not say is changed."""

    def forward(self, x: Tensor) -> Tensor:
        before = x.clone()
        torch.batch_norm(torch.zeros(2, 4), None, None, x, torch.ones(4), True, 1.0, 1e-5, False)
        return before + 100


class KeepListed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(4))

    def forward(self, parts: List[Tensor]) -> Tensor:
        found = self.last.clone()
        self.last.set_(parts[0])
        return found


class KeepBySet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        found = self.last.clone()
        self.last.set_(x)
        return found


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return self.count + torch.zeros_like(x)


class Sum(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


class Number(nn.Module):
    def forward(self, x: Tensor) -> int:
        return x.size(0)


class Negated(nn.Module):
    """An imaginary part that PyTorch only notes is negated."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.imag(torch.conj(torch.complex(x, x)))


class Nothing(nn.Module):
    """Zeros that have no memory."""

    def forward(self, x: Tensor) -> Tensor:
        return torch._efficientzerotensor(x.shape, dtype=torch.float32)


class Complex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.complex(x, x)


class Endless(nn.Module):
    """A list that contains itself."""

    def forward(self, x: Tensor) -> Any:
        found: List[Any] = []
        for _ in range(x.size(0)):
            found.append(found)
        return found


class EndlessKeys(nn.Module):
    """A dictionary that contains itself."""

    def forward(self, x: Tensor) -> Any:
        found: Dict[str, Any] = {}
        found["x"] = x
        found["found"] = found
        return found


class Doubled(nn.Module):
    """Few lists, and many ways through them to no tensor at all."""

    def forward(self, x: Tensor) -> Any:
        found: List[Any] = []
        for _ in range(30 * x.size(0)):  # PyTorch does not know how often, and so does not compute it ahead
            twice: List[Any] = []
            twice.append(found)
            twice.append(found)
            found = twice
        return found


class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Dict[str, Tensor], Dict[str, Tensor]]:
        return {"y": x}, {"y": 2 * x}


class Indexed(nn.Module):
    """Keys that look as if they counted."""

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        return {"score__1": x + 1, "score__0": x + 1000}


class Half(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[: x.size(0) // 2]


class Refuses(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool((x < 0).any()):
            raise ValueError("nothing negative")
        return x


class Heavy(nn.Module):
    """Enough work for all threads that there may be."""

    def forward(self, x: Tensor) -> Tensor:
        wide = x.expand(512, 512)
        for _ in range(4):
            wide = (wide @ wide).tanh()
        return wide[:1, :1]


class Big(nn.Module):
    """64 MiB of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1 << 24))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[:4]


class Grad(nn.Module):
    """Whether gradients are recorded, and whether inference mode is on."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tensor([torch.is_grad_enabled(), torch.empty(1).is_inference()])


MODELS = {
    each.__name__: each
    for each in (
        Flip, Same, Dense, Convolutions, AddSub, Keyed, Listed, Mixed, Shout, Lengths, LoseOne, NonZero, InPlace, Told, Running, Keeper, Counter, Sum,
        Number, Half, Refuses, Heavy, Big, Grad, Negated, Nothing, Complex, Scaled, Endless, EndlessKeys, Doubled, Twice,
        ChangeListed, ChangeKeyed, ChangeEach, ChangeOther, ChangeDropped, ChangeByNorm, KeepListed, KeepBySet, Indexed,
        Perceptron, Encoder, Residual,
    )
}


def save(model: str, path: str, traced: Any = None) -> None:
    torch.manual_seed(7)
    module = MODELS[model]().eval()
    if traced is None:
        torch.jit.script(module).save(path)
    else:
        torch.jit.trace(module, tuple(to_torch(each) for each in traced)).save(path)


def to_torch(value: Any) -> Any:
    """Tuples are arrays; everything else is what it is, and what it contains."""
    if isinstance(value, tuple):
        kind, shape, content = value
        return torch.from_numpy(np.frombuffer(content, kind).reshape(shape).copy())
    if isinstance(value, list):
        return [to_torch(each) for each in value]
    return {key: to_torch(each) for key, each in value.items()} if isinstance(value, dict) else value


def from_torch(value: Any) -> Any:
    if isinstance(value, Tensor):
        array = value.detach().contiguous().numpy()
        return array.dtype.str, array.shape, array.tobytes()
    if isinstance(value, (list, tuple)):
        return [from_torch(each) for each in value]
    return {key: from_torch(each) for key, each in value.items()} if isinstance(value, dict) else value


def answer(path: str, arguments: List[Any]) -> Any:
    with torch.no_grad():
        return from_torch(torch.jit.load(path)(*(to_torch(each) for each in arguments)))


def main() -> None:
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while head := questions.read(4):
        name, *arguments = pickle.loads(questions.read(struct.unpack("<I", head)[0]))
        content = pickle.dumps({"save": save, "answer": answer}[name](*arguments), protocol=4)
        answers.write(struct.pack("<I", len(content)) + content)
        answers.flush()


main()
