"""Three servers with the same model.py files, asked the same: ours with our python backend and with the reference's, and the reference."""

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import catalog
import environments
import pytest
from asks import Asker
from harness import paths
from harness.servers import KINDS, WITH_NUMPY, Nereid, Reference, Server

Answer = TypeVar("Answer")
# Who answers: this server with its own backend, this server with the compiled one, the reference with that. Where the compiled one lies:
PLACES = {"compiled": "served", "reference": "reference"}
ALL = ("nereid", *PLACES)
READY_WITHIN = 240  # seconds
# Seconds to stop in. The reference uses up its time where the backend has forgotten response factories.
EXIT_WITHIN = {"nereid": "120", "compiled": "120", "reference": "10"}


STUB_WITHOUT_A_TURN = "boost::interprocess::lock_exception"  # of the compiled backend, some of the times when a stub had none


class Compiled(Nereid):
    kind = "compiled"
    aborts_with = (STUB_WITHOUT_A_TURN,)


def _backends(kind: str, folder: Path) -> Path:
    """A directory of backends: the python backend of this kind, and our identity backend."""
    folder.mkdir()
    if kind in PLACES:
        prepared = paths.need(paths.ROOT / "build" / "python-backend" / PLACES[kind] / "python")
    else:
        prepared = paths.need(paths.backends() / "python")
    (folder / "python").symlink_to(prepared)
    (folder / "identity").symlink_to(paths.backends(reference=kind == "reference") / "identity")
    return folder


@pytest.fixture(scope="session")
def python_backends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    subprocess.run([paths.ROOT / "tools" / "python_backend.sh"], check=True)
    root = tmp_path_factory.mktemp("backends")
    return {kind: _backends(kind, root / kind) for kind in ALL}


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = catalog.write(tmp_path_factory.mktemp("python") / "models")
    environments.folder(made / "environment_folder" / "env", "from a folder")
    environments.archive(made / "environment" / "env.tar.gz", "from an archive", tmp_path_factory.mktemp("env"))
    return made


def environment() -> dict[str, str]:
    """What the backend leaks is known."""
    leaks = Path(__file__).with_name("leaks.supp")
    return WITH_NUMPY | {"LSAN_OPTIONS": f"suppressions={leaks}:print_suppressions=0"}


def make_server(kind: str, backends: dict[str, Path], models: Path, options: dict[str, Any] | None = None) -> Server:
    """A model that does not load when the server starts does not end it: it is loaded again (ready_with)."""
    usual = {
        "backend-directory": str(backends[kind]), "log-verbose": "1", "exit-timeout-secs": EXIT_WITHIN[kind],
        "exit-on-error": "false", "strict-readiness": "false",
        "model-load-thread-count": "1",  # a crowd of stubs that start at once leaves some of them without a turn (asks.py)
    }
    made = KINDS.get(kind, Compiled)
    server = made(models, {**usual, **(options or {})}, env=environment(), wait_ready=False)
    if isinstance(server, Reference):
        server.aborts_with += (STUB_WITHOUT_A_TURN,)
    return server


class Both:
    """Asks all servers at the same time and compares."""

    def __init__(self, servers: dict[str, Server]):
        self.servers = servers
        self.askers = {kind: Asker(server) for kind, server in servers.items()}
        self._pool = ThreadPoolExecutor(len(servers))

    def each(self, ask: Callable[[Asker], Answer]) -> dict[str, Answer]:
        asked = {kind: self._pool.submit(ask, asker) for kind, asker in self.askers.items()}
        return {kind: future.result() for kind, future in asked.items()}

    def same(self, ask: Callable[[Asker], Answer]) -> Answer:
        """The answer that all give."""
        return self.agreed(self.each(ask))

    @staticmethod
    def agreed(answers: dict[str, Answer]) -> Answer:
        for kind, answer in answers.items():
            assert answer == answers["nereid"], f"{kind} and nereid differ"
        return answers["nereid"]

    def close(self) -> None:
        for asker in self.askers.values():
            asker.close()
        self._pool.shutdown()


def kinds_of(config: pytest.Config) -> list[str]:
    """`-m "not reference"` leaves the reference out, e.g. under a sanitizer; `-m "not compiled"` its backend, wherever that runs."""
    marks = config.getoption("-m") or ""
    if "not compiled" in marks:
        return ["nereid"]
    return ["nereid", "compiled"] if "not reference" in marks else list(ALL)


def ready_with(server: Server, names: list[str]) -> None:
    """Waits for the server and for these models; those whose stub did not have its turn (asks.py) are loaded once more."""
    server.wait_until_ready(READY_WITHIN, 0.05)
    asker = Asker(server)
    for name in names:
        asker.until(lambda name=name: asker.ready(name) == 200 or asker.load(name)[0] == 200)
    asker.close()


def begin(servers: dict[str, Server], names: list[str]) -> Both:
    for server in servers.values():
        server.start()
    for server in servers.values():
        ready_with(server, names)
    return Both(servers)


def end(both: Both) -> None:
    both.close()
    with ThreadPoolExecutor(len(both.servers)) as pool:
        # The backend forgets response factories where a model raised and where a stub has died: the reference waits until its time-out.
        status = {"nereid": 0, "compiled": 0, "reference": None}
        list(pool.map(lambda kind: both.servers[kind].stop(seconds=150, status=status[kind]), both.servers))


@pytest.fixture(scope="session")
def both(request: pytest.FixtureRequest, python_backends: dict[str, Path], repository: Path) -> Iterator[Both]:
    names = [name for name, model in catalog.MODELS.items() if model.at_start]
    options = {"model-control-mode": "explicit", "load-model": names}
    kinds = kinds_of(request.config)
    made = begin({kind: make_server(kind, python_backends, repository, options) for kind in kinds}, names)
    yield made
    end(made)
