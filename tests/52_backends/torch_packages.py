"""Packages of AOTInductor: torch_package.c in the form that PyTorch's compiler gives to a model. The compiler itself comes only with a
PyTorch that is much newer than the distribution's."""

import subprocess
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import paths

SOURCE = Path(__file__).with_name("torch_package.c")
BUILT = TemporaryDirectory(prefix="packages")  # gone when the tests end


@cache
def _library(least: int, most: int, keywords: str, scale: str) -> Path:
    runtime = paths.need(paths.RELEASE / "backends" / "pytorch")
    library = Path(BUILT.name) / f"{least}-{most}-{keywords}-{scale}.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", f"-DLEAST={least}", f"-DMOST={most}", f'-DKEYWORDS="{keywords}"', f"-DSCALES={int(scale == 'each')}", str(SOURCE), "-o", str(library),
         "-Wl,--no-as-needed", *[str(runtime / name) for name in ("libtorch.so", "libtorch_cpu.so")], "-Wl,--allow-shlib-undefined"],
        check=True,
    )  # fmt: skip
    return library


def save(folder: Path, least: int = 2, most: int = 64, keywords: str = "builtins.dict", scale: str = "one") -> Path:
    """A model that takes from `least` to `most` rows; `keywords` is the type of its keyword arguments; `scale` has "one" number, or one for
    "each" row."""
    place = "data/aotinductor/model/abc.wrapper"
    file = folder / "1" / "model.pt2"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("version", "0")
        made.writestr("archive_format", "pt2")
        made.writestr(f"{place}.cpp", "// what the library was made of\n")
        made.writestr(f"{place}_metadata.json", '{"AOTI_DEVICE_KEY": "cpu"}')
        made.write(_library(least, most, keywords, scale), f"{place}.so")
    return file
