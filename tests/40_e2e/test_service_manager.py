"""What the service manager is told that started the process (systemd, Type=notify)."""

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.repository import Repository
from harness.servers import Nereid


@pytest.fixture(params=["a path", "an abstract name"])
def manager(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:  # names are short
        told.bind(f"{folder}/notify" if request.param == "a path" else f"\0nereid-{folder}")
        told.settimeout(60)
        yield told


def environment(manager: socket.socket) -> dict[str, str]:
    name = manager.getsockname()
    return {"NOTIFY_SOCKET": name if isinstance(name, str) else name.decode().replace("\0", "@", 1)}


def test_ready_when_the_models_are_loaded_and_stopping_before_the_end(manager: socket.socket, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    with Nereid(repository.path, env=environment(manager)) as server:
        assert manager.recv(100) == b"READY=1"
        assert server.process.log().count("server is ready") == 1
    assert manager.recv(100) == b"STOPPING=1"


def test_a_start_that_failed_is_never_ready(manager: socket.socket, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.model("broken", 'backend: "no_such"')
    server = Nereid(repository.path, env=environment(manager), wait_ready=False).start()
    server.process.ends(1)
    assert manager.recv(100) == b"STOPPING=1"


def test_a_manager_that_is_busy_is_told_when_it_reads_again(manager: socket.socket, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others:
        others.setblocking(False)
        others.connect(manager.getsockname())
        with contextlib.suppress(BlockingIOError):
            while True:
                others.send(b"WATCHDOG=1")
    with Nereid(repository.path, env=environment(manager)) as server:
        server.process.wait_until(lambda: "server is ready" in server.process.log(), 60)
        while (told := manager.recv(100)) == b"WATCHDOG=1":
            pass
        assert told == b"READY=1"


@pytest.mark.parametrize("name", ["", "@", "relative", "/" + "x" * 200, "/nowhere/socket"])
def test_a_manager_that_is_not_there_is_no_error(name: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    with Nereid(repository.path, env={"NOTIFY_SOCKET": name}):
        pass
