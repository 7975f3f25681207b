"""--cache-config, --cache-directory and what is left of --response-cache-byte-size; the same mistakes in both servers."""

import subprocess
from pathlib import Path

import cache_asks as asks
import pytest
from conftest import extensions
from harness import paths
from harness.repository import Repository
from harness.servers import KINDS, Nereid

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = Repository(tmp_path_factory.mktemp("options") / "models")
    repository.identity("cached", extra=asks.CACHED)
    return repository.path


def run(server: str, models: Path, *options: str) -> tuple[int, str]:
    """The status and the words of a server that does not start."""
    made = KINDS[server](models)
    argv = [*made.command(), f"--cache-directory={extensions('caches', server)}", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=180)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cache-config=local,size=1000000", "--cache-config=redis,host=here"],
         "found multiple cache configurations, but only a single cache is currently supported"),
        (["--cache-config=redis,host=here"], "unable to find 'libtritoncache_redis.so' for cache. Searched: "),
        (["--cache-config=local,other=1"],
         "Failed to initialize LocalCache: config didn't contain a valid 'size' field."),
        (["--cache-config=local,size=many"], "Failed to initialize LocalCache: "),
        (["--cache-config=local,size=0"], "Failed to initialize LocalCache: "),
        (["--cache-config=local"], "<cache"),
        (["--cache-config=size=1"], "<cache"),
        (["--cache-config=local,size="], "<cache"),
        (["--cache-config=local,=1"], "<cache"),
        (["--cache-config=local,size=1000000", "--response-cache-byte-size=1000000"], "--response-cache-byte-size and --cache-config"),
    ],
)
def test_what_does_not_work_is_said(server: str, models: Path, options: list[str], words: str) -> None:
    status, said = run(server, models, *options)
    assert status == 1
    assert words in said.replace("\n", " ")


@pytest.mark.parametrize(
    "options",
    [
        {"cache-config": ["local,size=1", "local,size=1000000"]},
        {"cache-config-json": 'local,{"size": 1000000, "unused": {"nested": [1, null]}}'},
        {"response-cache-byte-size": "1000000"},
    ],
)
def test_ways_to_configure_one(models: Path, options: dict[str, str | list[str]]) -> None:
    with Nereid(models, {"cache-directory": str(extensions("caches", "nereid")), **options}) as server:
        for _ in range(3):
            asks.infer(server, "cached", asks.tensor([1]))
        assert asks.counts(server, "cached")["cache_hit"] == 2
        log = server.process.log()
    assert ("response-cache-byte-size" in log) == ("response-cache-byte-size" in options), "the deprecated one is warned of"


@pytest.mark.parametrize("options", [{}, {"response-cache-byte-size": "0"}])
def test_a_model_that_wants_a_cache_serves_without_one(models: Path, options: dict[str, str]) -> None:
    with Nereid(models, options) as server:
        for _ in range(2):
            asks.infer(server, "cached", asks.tensor([1]))
        found = asks.counts(server, "cached")
        assert (found["cache_hit"], found["cache_miss"], found["compute_infer"]) == (0, 0, 2)
        assert "nv_cache_num_hits_per_model" not in asks.page(server)
        assert "model 'cached' asks for a response cache and the server has none: see --cache-config" in server.process.log()


def test_json_that_is_no_object_is_refused(models: Path) -> None:
    status, said = run("nereid", models, "--cache-config-json=local,[1]")
    assert status == 1
    assert "expected <cache>,<JSON object>" in said


def test_our_libraries_need_no_server_library() -> None:
    """The same files run in both servers: they leave its functions to the server that loads them."""
    for library in (extensions("caches", "nereid") / "local/libtritoncache_local.so",
                    extensions("repoagents", "nereid") / "checksum/libtritonrepoagent_checksum.so"):
        needed = subprocess.run(["readelf", "-d", str(paths.need(library))], check=True, capture_output=True, text=True)
        assert "libtritonserver" not in needed.stdout
