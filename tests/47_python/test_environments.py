"""An unpacked environment lives as long as a model that uses it; nothing of it outlives the server, or the next one if it was killed."""

import os
import secrets
import shutil
from pathlib import Path

import environments
import pytest
from asks import Asker
from conftest import make_server
from harness.repository import Repository
from harness.servers import Server

ENVIRONMENT = "parameters { key: 'EXECUTION_ENV_PATH' value { string_value: '$$TRITON_MODEL_DIRECTORY/env.tar.gz' } }"
MODEL = "backend: 'python' input { name: 'ASK' data_type: TYPE_STRING dims: [ 1 ] } output { name: 'TOLD' data_type: TYPE_STRING dims: [ 1 ] }"


def unpacked(mark: str) -> list[Path]:
    """The folders of environments that have a file of this name."""
    return [each.parent for each in Path("/tmp").glob(f"nereid-python-env-*/*/{mark}")]


class Place:
    """A repository of models, each with an archive in its folder."""

    def __init__(self, tmp_path: Path) -> None:
        self.made = Repository(tmp_path / "models")
        self.scratch = tmp_path
        self.mark = f"mark_{os.getpid()}"

    def archive(self, words: str) -> Path:
        place = self.scratch / words
        return environments.archive(self.scratch / f"{words}.tar.gz", words, place, {self.mark: os.urandom(1 << 20)})

    def model(self, name: str, path: str = "$$TRITON_MODEL_DIRECTORY/env.tar.gz") -> Path:
        folder = self.made.model(name, MODEL + ENVIRONMENT.replace("$$TRITON_MODEL_DIRECTORY/env.tar.gz", path))
        shutil.copy(Path(__file__).parent / "models" / "environment.py", folder / "1" / "model.py")
        return folder

    def serve(self, backends: dict[str, Path]) -> tuple[Server, Asker]:
        server = make_server("nereid", backends, self.made.path, {"model-control-mode": "explicit"})
        server.start()
        server.wait_until_ready(60, 0.05)
        return server, Asker(server)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_is_left_of_environments(python_backends: dict[str, Path], place: Place) -> None:
    whole = place.archive("whole")
    for name in ("whole", "broken"):
        archive = place.model(name) / "env.tar.gz"
        shutil.copy(whole, archive)
        if name == "broken":
            os.truncate(archive, archive.stat().st_size - 1000)
    server, asker = place.serve(python_backends)
    for _ in range(2):
        status, told = asker.load("broken")
        assert status == 400 and "cannot unpack the Python environment" in told["error"]
        assert unpacked(place.mark) == []
    assert asker.load("whole")[0] == 200
    places = unpacked(place.mark)
    assert len(places) == 1
    asker.close()
    server.stop(seconds=150)
    assert not places[0].parent.exists()


def test_an_environment_goes_with_the_last_model_that_uses_it(python_backends: dict[str, Path], place: Place) -> None:
    shared = place.archive("first")
    for name in ("one", "two"):
        place.model(name, str(shared))
    server, asker = place.serve(python_backends)
    for name in ("one", "two"):
        assert asker.load(name)[0] == 200
    places = unpacked(place.mark)
    assert len(places) == 1
    # Another archive in its place, of the same time: what is loaded now uses that one.
    new, times = place.archive("other"), shared.stat()
    os.utime(new, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(new, shared)
    asker.unload("two")
    assert asker.load("two")[0] == 200 and len(unpacked(place.mark)) == 2
    assert (asker.told("one", ""), asker.told("two", "")) == ("first", "other")
    asker.unload("one")
    server.process.wait_until(lambda: places[0] not in unpacked(place.mark), 60)  # an unload returns before the model has ended
    assert len(unpacked(place.mark)) == 1
    assert asker.told("two", "") == "other"
    asker.unload("two")
    server.process.wait_until(lambda: not places[0].parent.exists(), 60)
    asker.close()
    server.stop(seconds=150)


def test_environments_of_a_server_that_was_killed(python_backends: dict[str, Path], place: Place) -> None:
    """The next server that unpacks one deletes them, and leaves those of servers that run."""
    place.model("one", str(place.archive("words")))
    servers, left = [], []
    for _ in range(2):
        server, asker = place.serve(python_backends)
        assert asker.load("one")[0] == 200
        left += [each for each in unpacked(place.mark) if each not in left]
        servers.append((server, asker, left[-1]))
    assert len(left) == 2
    servers[0][1].close()
    servers[0][0].process.kill()
    assert sorted(unpacked(place.mark)) == sorted(left)
    copied = Path(f"/tmp/nereid-python-env-{secrets.token_hex(3)}")  # by somebody who wants to look at it
    shutil.copytree(servers[0][2].parent, copied, symlinks=True)
    third, asker = place.serve(python_backends)
    assert asker.load("one")[0] == 200
    assert (copied / left[0].name / place.mark).exists()
    shutil.rmtree(copied)
    now = unpacked(place.mark)
    assert len(now) == 2 and set(now) & set(left) == {left[1]}
    assert servers[1][1].told("one", "") == asker.told("one", "") == "words"
    for each in (asker, servers[1][1]):
        each.close()
    for server in (third, servers[1][0]):
        server.stop(seconds=150)
    assert unpacked(place.mark) == []


def test_a_script_that_fails_is_named(python_backends: dict[str, Path], place: Place) -> None:
    folder = place.model("failing", "$$TRITON_MODEL_DIRECTORY/env")
    environments.folder(folder / "env", "words")
    with open(folder / "env" / "bin" / "activate", "a", encoding="ascii") as script:
        script.write("(exit 3)\n")
    server, asker = place.serve(python_backends)
    assert asker.ask("POST", "/v2/repository/models/failing/load", {})[0] == 400
    assert f"'{folder}/env/bin/activate' failed: status 3" in server.process.log()
    asker.close()
    server.stop(seconds=150)
