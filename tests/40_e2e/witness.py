"""Models of the backend `witness` (plugins/witness.c), which tells what goes on around its executions."""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import BOTH
from harness import paths, rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Server


def compile_backend(folder: Path, name: str = "witness", common: tuple[str, ...] = ()) -> Path:
    """The directory to give as --backend-directory; it also has what else the tests use of the build tree.

    common: files of backends/common that it is made of
    """
    library = folder / name / f"libtriton_{name}.so"
    library.parent.mkdir(parents=True)
    argv = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Werror"]
    argv += [f"-I{paths.ROOT / 'include'}", str(Path(__file__).parent / "plugins" / f"{name}.c"), "-o", str(library)]
    argv += [str(paths.ROOT / "backends" / "common" / f"{each}.c") for each in common]
    subprocess.run(argv, check=True)
    return folder


def resource(name: str, count: int, shared: bool = True) -> str:
    return f'{{ name: "{name}" count: {count} {"global: true" if shared else ""} }}'


def group(*resources: str, count: int = 1, kind: str = "KIND_CPU", priority: int = 0, policy: str = "", more: str = "") -> str:
    limiter = f"rate_limiter {{ resources [ {', '.join(resources)} ] {f'priority: {priority}' if priority else ''} }}"
    named = f'host_policy: "{policy}"' if policy else ""
    return f"{{ kind: {kind} count: {count} {limiter if resources or priority else ''} {named} {more} }}"


@dataclass
class Seen:
    """What an answer tells."""

    model: str
    execution: int
    at_once: int
    most: int
    thread: int


class Board:
    """A repository of witnesses that look at one another."""

    def __init__(self, folder: Path):
        self.repository = Repository(folder / "models")
        self.file = folder / "board"
        self.gate, self.door, self.stay, self.exit = (folder / name for name in ("gate", "door", "stay", "exit"))
        self._opened: list[int] = []
        for each in (self.gate, self.door, self.stay, self.exit):
            os.mkfifo(each)

    def model(
        self, name: str, *groups: str, extra: str = "", batch: int = 0,
        gated: bool = False, kept_out: bool = False, stays: bool = False, kept_in: bool = False, **parameters: str,
    ) -> Path:
        """gated: executions wait while the gate is not open; kept_out: loading waits for open_door; stays: an execution
        waits for open_stay behind an answer that is alone, or not its last; kept_in: what is finalised waits for open_exit."""
        config = f'name: "{name}"\nbackend: "witness"\nmax_batch_size: {batch}\n'
        for kind, dims in (("input", 1), ("output", 4)):
            config += f'{kind} [ {{ name: "{kind.upper()}0" data_type: TYPE_INT32 dims: [ {dims} ] }} ]\n'
        if groups:
            config += f"instance_group [ {', '.join(groups)} ]\n"
        pipes = {"gate": (self.gate, gated), "door": (self.door, kept_out), "stay": (self.stay, stays), "exit": (self.exit, kept_in)}
        parameters |= {"board": str(self.file)} | {key: str(pipe) for key, (pipe, wanted) in pipes.items() if wanted}
        for key, value in parameters.items():
            config += f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        return self.repository.model(name, config + extra)

    def _open(self, pipe: Path) -> None:
        """Whoever waits at it goes on, and nobody waits any more."""
        self._opened.append(os.open(pipe, os.O_RDWR))

    def open_gate(self) -> None:
        self._open(self.gate)

    def shut_gate(self) -> None:
        os.close(self._opened.pop())

    def open_door(self) -> None:
        self._open(self.door)

    def open_stay(self) -> None:
        self._open(self.stay)

    def shut_stay(self) -> None:
        os.close(self._opened.pop())

    def open_exit(self) -> None:
        self._open(self.exit)

    def close(self) -> None:
        for each in self._opened:
            os.close(each)

    def _number(self, place: int) -> int:
        """0 while nothing was loaded."""
        return int.from_bytes(self.file.read_bytes()[4 * place : 4 * place + 4], "little") if self.file.exists() else 0

    def executions(self) -> int:
        return self._number(0)

    def now(self) -> int:
        return self._number(1)

    def finalised(self) -> int:
        return self._number(3)

    def leaving(self) -> int:
        """Those that are being finalised, or were."""
        return self._number(4)


BODY = b'{"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [7]}]}'


def try_to_ask(server: Server, model: str, body: bytes = BODY) -> rawhttp.Answer:
    with rawhttp.Connection(HOST, server.http_port, timeout=120) as connection:
        return connection.ask("POST", f"/v2/models/{model}/infer", body)


def ask(server: Server, model: str, body: bytes = BODY) -> Seen:
    got = try_to_ask(server, model, body)
    assert got.status == 200, got.body
    return Seen(model, *got.json()["outputs"][0]["data"])


def ask_many(pool: ThreadPoolExecutor, server: Server, model: str, times: int) -> list[Future[Seen]]:
    return [pool.submit(ask, server, model) for _ in range(times)]


def load(server: Server, model: str) -> rawhttp.Answer:
    return rawhttp.post(server.http, f"/v2/repository/models/{model}/load", b"")


def unload(server: Server, model: str) -> rawhttp.Answer:
    server.rest()
    return rawhttp.post(server.http, f"/v2/repository/models/{model}/unload", b"")


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> type[Server]:
    return KINDS[request.param]


@pytest.fixture(scope="session")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_backend(tmp_path_factory.mktemp("witness"))


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    made = Board(tmp_path)
    yield made
    made.close()
