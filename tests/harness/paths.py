"""Where the things under test lie.

NEREID_BUILD chooses the build tree (default build/release), so that the same tests run against
build/dev (ASan + UBSan) and build/tsan. The reference is not built by us and cannot load
instrumented plug-ins: it always gets the plug-ins of build/release.
"""

import importlib.util
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("NEREID_BUILD", "build/release")).resolve()
RELEASE = ROOT / "build" / "release"
SAMPLE_MODELS = ROOT / "build" / "models"


class Missing(AssertionError):
    """Something that a test needs was not built: a failure, never a skip."""


def need(path: Path, builds: str = "make test") -> Path:
    if not path.exists():
        raise Missing(f"{path} is missing: build it first ({builds} does)")
    return path


def nereid_binary() -> Path:
    return need(BUILD / "bin" / "nereid")


def backends(reference: bool = False) -> Path:
    return need((RELEASE if reference else BUILD) / "backends")


def reference_root() -> Path:
    spec = importlib.util.find_spec("pytriton")
    if spec is None or not spec.submodule_search_locations:
        raise Missing("the reference server (package nvidia-pytriton) is not in this Python environment")
    return need(Path(spec.submodule_search_locations[0]) / "tritonserver")
