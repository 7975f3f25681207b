"""Response caches and repository agents: ours and the reference's, in both servers, and some that break rules."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import paths

PLUGINS = Path(__file__).parent / "plugins"


def plain_build() -> Path:
    """A build tree without sanitizers, whose libraries the reference can load."""
    cache = paths.BUILD / "CMakeCache.txt"
    plain = cache.exists() and "NEREID_SANITIZE:STRING=\n" in cache.read_text()
    return paths.BUILD if plain else paths.RELEASE


def extensions(kind: str, server: str) -> Path:
    """Our caches or repoagents, for one of the servers."""
    return paths.need((plain_build() if server == "reference" else paths.BUILD) / kind)


@pytest.fixture(scope="session")
def reference_cache() -> Path:
    """The reference's local cache, unmodified but for the name of the server library that it needs."""
    subprocess.run([paths.ROOT / "tools" / "reference_cache.sh"], check=True)
    return paths.ROOT / "build" / "reference-cache"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles plugins/SOURCE.c as PREFIX_NAME.so in a directory NAME; returns the directory around that."""

    def compile_plugin(source: str, prefix: str, name: str, *flags: str) -> Path:
        folder = tmp_path_factory.mktemp(prefix)
        (folder / name).mkdir()
        library = folder / name / f"{prefix}_{name}.so"
        argv = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", *flags]
        argv += [f"-I{paths.ROOT / 'include'}", str(PLUGINS / f"{source}.c"), "-o", str(library)]
        subprocess.run(argv, check=True)
        return folder

    return compile_plugin
