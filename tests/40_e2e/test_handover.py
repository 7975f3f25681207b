"""A server takes the place of another one on the same ports, while clients ask: every request has its answer."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import ports, rawhttp
from harness.askers import Client, crowd
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server
from witness import Board, backend, board  # noqa: F401

# Loading takes a second: the backend is asked once before.
WARM = """
    parameters [ { key: "execute_delay_ms" value: { string_value: "1000" } } ]
    model_warmup [ { name: "first" batch_size: 1 inputs { key: "INPUT0" value: { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } } ]
"""


class Shared(Nereid):
    """One of several servers on the same ports; its metrics are its own."""

    shared_http = shared_grpc = shared_openai = 0

    def __init__(self, repository: Path, wait_ready: bool = True, backends: Path | None = None):
        options: dict[str, str | list[str]] = {"reuse-http-port": "true", "reuse-grpc-port": "true", "allow-openai": "true"}
        if backends:
            options["backend-directory"] = str(backends)
        super().__init__(repository, options, wait_ready=wait_ready)
        self.http_port, self.grpc_port = Shared.shared_http, Shared.shared_grpc
        options["openai-port"] = str(Shared.shared_openai)
        self.ready_when_it_says("server is ready")


@pytest.fixture
def shared_ports() -> None:
    Shared.shared_http, Shared.shared_grpc, Shared.shared_openai = (ports.free_port() for _ in range(3))


@pytest.fixture
def repository(tmp_path: Path, shared_ports: None) -> Repository:
    made = Repository(tmp_path / "models")
    made.identity("one")
    made.identity("slow", extra=WARM)
    return made


@pytest.fixture
def loading(shared_ports: None, board: Board, backend: Path) -> Shared:  # noqa: F811
    """Not started yet; its model is loaded when the door is opened."""
    board.model("late", kept_out=True)
    return Shared(board.repository.path, wait_ready=False, backends=backend)


def loads(server: Server) -> None:
    server.process.wait_until(lambda: "loading: late:1" in server.process.log(), 60)


@contextlib.contextmanager
def asked(*clients: Client) -> Iterator[None]:
    for client in clients:
        client.start()
    try:
        yield
    finally:
        for client in clients:
            client.over.set()
        for client in clients:
            client.join()
    assert [client.lost for client in clients] == [[]] * len(clients)


def goes_on(server: Nereid, *clients: Client) -> None:
    """Waits until each has had more answers."""
    before = [client.answered for client in clients]
    server.process.wait_until(lambda: all(c.answered > b + 20 for c, b in zip(clients, before, strict=True)), 120)


def test_every_request_is_answered_while_servers_take_turns(repository: Repository) -> None:
    first = Shared(repository.path).start()
    clients = crowd(Shared.shared_http, Shared.shared_grpc)
    with asked(*clients):
        goes_on(first, *clients)
        for _ in range(3):
            second = Shared(repository.path).start()
            goes_on(first, *clients)
            first.stop()
            goes_on(second, *clients)
            first = second
    first.stop()


def test_a_shared_port_is_open_when_the_models_are_loaded(loading: Shared, board: Board) -> None:  # noqa: F811
    """Its page of metrics is before; another server may serve on the ports meanwhile."""
    with loading as server:
        loads(server)
        assert rawhttp.get(server.metrics, "/metrics").status == 200
        for port in (Shared.shared_http, Shared.shared_grpc, Shared.shared_openai):
            with pytest.raises(ConnectionRefusedError):
                rawhttp.Connection(HOST, port)
        board.open_door()
        server.wait_until_ready(60)
        log = server.process.log()
        assert log.index("Started HTTPService") > log.index("successfully loaded 'late'")
        assert rawhttp.get(f"{HOST}:{Shared.shared_http}", "/v2/health/ready").status == 200
        assert rawhttp.get(f"{HOST}:{Shared.shared_openai}", "/health/ready").status == 200


@pytest.mark.parametrize("which", ["http", "grpc", "openai"])
def test_a_port_that_another_program_took_meanwhile_is_named(which: str, loading: Shared, board: Board) -> None:  # noqa: F811
    """One that does not share it may take the port until it is listened on."""
    port: int = getattr(Shared, f"shared_{which}")
    with socket.socket() as taker:
        server = loading.start()
        loads(server)
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind((HOST, port))
        taker.listen()
        board.open_door()
        server.process.ends(1)
        assert f"option --{which}-port: cannot listen on {HOST}:{port}: Address already in use" in server.process.log()


def test_one_that_is_ended_while_it_loads_never_opens_the_port(loading: Shared, board: Board) -> None:  # noqa: F811
    with loading as server:
        loads(server)
        server.process.terminate()
        server.process.wait_until(lambda: "received, stopping" in server.process.log(), 60)
        board.open_door()
        server.process.ends(0)
        assert "Started HTTPService" not in server.process.log()
    with pytest.raises(ConnectionRefusedError):
        rawhttp.Connection(HOST, Shared.shared_http)
