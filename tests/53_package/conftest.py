"""The package for Python as its users have it: a wheel of this build tree, installed by pip into an empty environment of its own."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from harness import paths, sanitizer
from harness.servers import Nereid

PACKAGE = paths.ROOT / "bindings" / "python"
PYTHON = Path(sys.executable)


def run(*argv: object, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(each) for each in argv], capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of the tree that is tested as pip makes it, by the same tool as `make wheel`."""
    folder = tmp_path_factory.mktemp("dist")
    run(PYTHON, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-cache-dir", "-w", folder, PACKAGE, env={"NEREID_BUILD": str(paths.BUILD)})
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the package and numpy, and nothing else."""
    environment = tmp_path_factory.mktemp("environment") / "venv"
    run(PYTHON, "-m", "venv", "--without-pip", environment)
    site = next(environment.glob("lib/python*/site-packages"))
    for part in Path(numpy.__file__).parents[1].glob("numpy*"):
        (site / part.name).symlink_to(part)
    run(PYTHON, "-m", "pip", "--python", environment / "bin" / "python", "install", "--no-index", wheel)
    return environment / "bin" / "python"


Script = Callable[..., Any]


@pytest.fixture(scope="session")
def script(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Script:
    """Runs lines of Python with the package; what they assign to `told` comes back. Its output is in an error of the test."""
    folder = tmp_path_factory.mktemp("scripts")

    def call(lines: str, *arguments: object) -> Any:
        path, told = folder / "script.py", folder / "told.json"
        told.unlink(missing_ok=True)
        path.write_text(
            f"import json, sys, numpy as np, nereid\n{textwrap.dedent(lines)}\njson.dump(told, open({str(told)!r}, 'w'))\n"
        )
        run(python, path, *arguments, env=sanitizer.runtime())
        return json.loads(told.read_text())

    return call


class Packaged(Nereid):
    """A server that a program of Python is: its functions come from a file, the rest are options."""

    kind = "package"

    def __init__(self, python: Path, file: Path, *arguments: Any, **settings: Any):
        settings["env"] = {**sanitizer.runtime(), **settings.get("env", {})}
        super().__init__(*arguments, **settings)
        self.python, self.file = python, file

    def program(self) -> list[str]:
        return [str(self.python), str(self.file)]


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("digits") / "models"
    shutil.copytree(paths.need(paths.SAMPLE_MODELS / "digits"), repository / "digits")
    return repository
