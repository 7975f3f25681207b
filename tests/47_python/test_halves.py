"""Requests without an instance thread: a loop of the server gives them to the model's process and ends them (docs/decisions/0132). What a loop
must not wait for, it leaves to such a thread."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from asks import Asker
from conftest import make_server, ready_with
from harness.procfs import children, names_of_threads
from harness.repository import Repository

MODELS = Path(__file__).parent / "models"
IO = "input { name: 'ASK' data_type: TYPE_STRING dims: [ 1 ] } output { name: 'TOLD' data_type: TYPE_STRING dims: [ 1 ] }"
TRIES = 40  # a loop waits for 100 ms; a busy machine may keep a process longer than that, now and then
LARGE = 1 << 20


@pytest.fixture(scope="module")
def asker(python_backends: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    made = Repository(tmp_path_factory.mktemp("halves") / "models")
    for name in ("echo", "shuts", "breaks"):
        folder = made.model(name, f"name: '{name}' backend: 'python' {IO}")
        # Imported with the model, not by its first request: that would take as long as a loop waits.
        (folder / "1" / "model.py").write_text("import numpy\n" + (MODELS / f"{name}.py").read_text())
    server = make_server("nereid", python_backends, made.path, {"model-control-mode": "explicit", "load-model": "echo", "log-verbose": "0"})
    server.start()
    ready_with(server, ["echo"])
    made_asker = Asker(server)
    yield made_asker
    made_asker.close()
    server.stop(seconds=150)


def threads(asker: Asker) -> int:
    return names_of_threads(asker.server.pid).count("instance")


def afresh(asker: Asker, model: str) -> None:
    """Loaded anew: its instance has no thread, and nothing is known of it."""
    asker.unload(model)
    asker.until(lambda: threads(asker) == 0)
    assert asker.load(model)[0] == 200


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("model", ["echo", "shuts"])
def test_a_loop_ends_what_it_has_begun(asker: Asker, model: str, protocol: str) -> None:
    """Also that of a model that has closed the descriptor by which its process rings."""
    for _ in range(TRIES):
        afresh(asker, model)
        assert asker.told(model, "well", protocol=protocol) == "well"
        assert asker.told(model, "once more", protocol=protocol) == "once more"
        if threads(asker) == 0:
            return
    raise AssertionError(f"{TRIES} times a request of {model} took an instance thread")


def test_large_tensors_are_left_to_a_thread(asker: Asker) -> None:
    afresh(asker, "echo")
    for size in (16, 9000, 16, 60000, 16, LARGE, 16):  # small again in between; above 64 KiB none is begun
        assert asker.told("echo", "x" * size) == "x" * size
    assert threads(asker) == 1


def test_a_process_that_ends_while_a_loop_waits_for_it(asker: Asker) -> None:
    """The request gets its error, the next one a new process."""
    afresh(asker, "breaks")
    for _ in range(3):
        first = int(asker.told("breaks", "pid"))
        assert "'breaks_0'" in asker.told("breaks", "kill")["message"]
        assert int(asker.told("breaks", "pid")) != first
    assert asker.unload("breaks")[0] == 200
    asker.until(lambda: len(children(asker.server.pid)) <= 2)
