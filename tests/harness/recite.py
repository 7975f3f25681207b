"""Models of the backend `recite` (plugins/recite.c), which answers as often, and in such a way, as a request's parameters say."""

import subprocess
from functools import cache
from pathlib import Path

from . import paths
from .repository import Repository, config_type

SOURCE = Path(__file__).with_name("plugins") / "recite.c"
DECOUPLED = "model_transaction_policy { decoupled: true }"


@cache
def _library(folder: Path) -> Path:
    found = folder / "libtriton_recite.so"
    if not found.exists():
        argv = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-shared", "-Wall", "-Werror"]
        subprocess.run([*argv, f"-I{paths.ROOT / 'include'}", str(SOURCE), "-o", str(found)], check=True)
    return found


def model(
    repository: Repository,
    name: str,
    *inputs: tuple[str, str, tuple[int, ...]],
    decoupled: bool = True,
    batch: int = 0,
    index: bool = True,
    extra: str = "",
) -> None:
    """inputs: (name, datatype, dims) each; its library lies beside its configuration."""
    config = f'name: "{name}"\nbackend: "recite"\nmax_batch_size: {batch}\ninstance_group [ {{ kind: KIND_CPU }} ]\n'
    outputs = [(_renamed(each[0]), *each[1:]) for each in inputs] + ([("INDEX", "INT32", (1,))] if index else [])
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for tensor, datatype, dims in tensors:
            shape = ", ".join(str(dim) for dim in dims)
            config += f'{kind} [ {{ name: "{tensor}" data_type: {config_type(datatype)} dims: [ {shape} ] }} ]\n'
    folder = repository.model(name, config + (DECOUPLED if decoupled else "") + extra)
    (folder / SOURCE.with_suffix(".so").name.replace("recite", "libtriton_recite")).write_bytes(_library(repository.path.parent).read_bytes())


def _renamed(name: str) -> str:
    return name.replace("in", "out", 1) if "in" in name else name.replace("IN", "OUT", 1)
