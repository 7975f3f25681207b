"""Writes model repositories on disk."""

import textwrap
from pathlib import Path

DATATYPES = (
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BYTES",
    "BF16",
)


def config_type(datatype: str) -> str:
    """The name in config.pbtxt of a datatype named as the protocols do."""
    return "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"


class Repository:
    def __init__(self, path: Path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def model(self, name: str, config: str | None, versions: tuple[int | str, ...] = (1,)) -> Path:
        """A model directory with its configuration (None = without) and empty versions."""
        folder = self.path / name
        for version in versions:
            (folder / str(version)).mkdir(parents=True, exist_ok=True)
        if config is not None:
            (folder / "config.pbtxt").write_text(textwrap.dedent(config))
        return folder

    def identity(
        self,
        name: str,
        datatype: str = "FP32",
        dims: tuple[int, ...] = (-1,),
        max_batch_size: int = 0,
        tensors: int = 1,
        extra: str = "",
        versions: tuple[int | str, ...] = (1,),
    ) -> Path:
        """An identity model: INPUT0 .. to OUTPUT0 .., all of one type and shape."""
        shape = ", ".join(str(dim) for dim in dims)
        config = f'name: "{name}"\nbackend: "identity"\nmax_batch_size: {max_batch_size}\n'
        for kind in ("input", "output"):
            for index in range(tensors):
                name_and_type = f'name: "{kind.upper()}{index}" data_type: {config_type(datatype)}'
                config += f"{kind} [ {{ {name_and_type} dims: [ {shape} ] }} ]\n"
        return self.model(name, config + textwrap.dedent(extra), versions)
