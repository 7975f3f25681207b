"""What the compiled backend forgets when a model raises: where one request of a batch had its final response, the backend of 2.51 does not delete
the response factories of the others. The reference then holds the model until its exit time-out; this server deletes them in the
backend's place, so that the model's process goes when it is unloaded, and the server stops in time."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asks import Asker, words
from conftest import make_server, ready_with
from harness.procfs import children
from harness.repository import Repository
from harness.servers import Server

MODELS = Path(__file__).parent / "models"
IO = "input { name: 'ASK' data_type: TYPE_STRING dims: [ 1 ] } output { name: 'TOLD' data_type: TYPE_STRING dims: [ 1 ] }"
# Two requests are executed together, however long the second one takes to come.
PAIRS = "max_batch_size: 2 dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 600000000 }"
FORGOTTEN = "backend 'python' of model 'forgets' broke a rule: it did not delete the response factory"
UNLOADED = "successfully unloaded 'forgets' version 1"

Start = Callable[[str, str], Server]


@pytest.fixture
def start(python_backends: dict[str, Path], tmp_path: Path) -> Iterator[Start]:
    """A server of a kind, with an exit time-out in seconds, whose model has forgotten a request."""
    made = Repository(tmp_path / "models")
    folder = made.model("forgets", f"name: 'forgets' backend: 'python' {IO} {PAIRS} model_transaction_policy {{ decoupled: true }}")
    shutil.copy(MODELS / "forgets.py", folder / "1" / "model.py")
    started: list[Server] = []

    def start(kind: str, exit_timeout: str) -> Server:
        options = {"model-control-mode": "explicit", "load-model": "forgets", "exit-timeout-secs": exit_timeout}
        server = make_server(kind, python_backends, made.path, options)
        started.append(server)
        server.start()
        ready_with(server, ["forgets"])
        asker = Asker(server)
        came = asker.at_once(lambda _: asker.stream("forgets", {"ASK": words("").reshape(1, 1)}), 2)
        asker.close()
        assert sorted("error" in each[-1] for each in came) == [False, True]
        return server

    yield start
    for server in started:
        server.kill()


def test_the_server_stops(start: Start) -> None:
    server = start("compiled", "100")
    server.process.stop(seconds=120)
    log = server.process.log()
    assert FORGOTTEN in log and UNLOADED in log


def test_the_process_of_the_model_goes(start: Start) -> None:
    server = start("compiled", "100")
    asker = Asker(server)
    asker.until(lambda: len(children(server.pid)) == 1)
    assert asker.unload("forgets")[0] == 200
    asker.until(lambda: not children(server.pid))
    assert FORGOTTEN in server.process.log()
    asker.close()
    server.process.stop(seconds=120)


@pytest.mark.reference
def test_the_reference_keeps_it(start: Start) -> None:
    server = start("reference", "5")
    server.process.stop(seconds=120, status=None)
    log = server.process.log()
    assert "Exit timeout expired" in log and UNLOADED not in log
