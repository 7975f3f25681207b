"""Custom batching strategies: one library (plugins/strategy.c) in both servers makes the same batches."""

import base64
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc
from conftest import BOTH
from harness import paths, rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Server
from witness import Board, backend, board, load, unload

__all__ = ["backend", "board"]

SOURCE = Path(__file__).parent / "plugins" / "strategy.c"
NUMBERS = [3, 4, 3, 5, 6, 1, 1, 1, 9, 2]
BATCHES = [[3, 4, 3], [5], [6, 1, 1, 1], [9], [2]]
ONE = "{ count: 1 kind: KIND_CPU }"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_strategy(tmp_path_factory.mktemp("strategy") / "strategy.so")


def compile_strategy(to: Path, *options: str) -> Path:
    argv = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Werror", *options]
    subprocess.run([*argv, f"-I{paths.ROOT / 'include'}", str(SOURCE), "-o", str(to)], check=True)
    return to


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Journal:
    def __init__(self, file: Path):
        self.file = file

    def text(self) -> str:
        return self.file.read_text() if self.file.exists() else ""

    def batches(self) -> list[str]:
        """What it was asked for each batch of which it was asked anything, and which is over."""
        return re.findall(r"\[([yn]+)\]", self.text())


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def model(board: Board, journal: Journal, name: str = "m", batching: str = "dynamic_batching { }", **parameters: str) -> Path:
    return board.model(name, ONE, batch=8, extra=batching, journal=str(journal.file), **parameters)


@contextmanager
def serving(kind: str, board: Board, backend: Path, held: int = 0, stop: bool = False) -> Iterator[Server]:
    """held: so many requests wait before any is executed; stop: how it ends is looked at, too."""
    options: dict[str, str | list[str]] = {"model-control-mode": "explicit", "backend-directory": str(backend)}
    server = KINDS[kind](board.repository.path, options, env={"TRITONSERVER_DELAY_SCHEDULER": str(held)} if held else None).start()
    try:
        yield server
    except BaseException:
        server.kill()
        raise
    if stop and kind == "nereid":
        server.stop()
    else:
        server.kill()


def batches(server: Server, numbers: list[int], name: str = "m") -> list[list[int]]:
    """Which of the numbers, sent one after the other, were executed together."""
    seen: dict[int, int] = {}
    everything = threading.Event()

    def answered(result: grpc.InferResult | None, error: Exception | None) -> None:
        if error is None and result is not None:
            seen[int(result.get_response().id)] = int(result.as_numpy("OUTPUT0")[0][0])
        if error is not None or len(seen) == len(numbers):
            everything.set()

    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(answered)
        for index, number in enumerate(numbers):
            tensor = grpc.InferInput("INPUT0", [1, 1], "INT32")
            tensor.set_data_from_numpy(np.array([[number]], np.int32))
            client.async_stream_infer(name, [tensor], request_id=str(index))
        assert everything.wait(60)
        client.stop_stream()
    assert len(seen) == len(numbers)
    together: dict[int, list[int]] = {}
    for index in sorted(seen):
        together.setdefault(seen[index], []).append(numbers[index])
    return list(together.values())


def put(library: Path, folder: Path, name: str = "batchstrategy.so") -> Path:
    return Path(shutil.copy(library, folder / name))


@pytest.mark.parametrize("place", ["version", "model", "backend", "parameter"])
def test_it_makes_the_batches(kind: str, board: Board, backend: Path, journal: Journal, library: Path, place: str, tmp_path: Path) -> None:
    """Beside the version, the model or the backend, or named: the library decides, and is asked once for a request while a batch grows."""
    own = tmp_path / "backends"
    shutil.copytree(backend, own)
    folder = board.repository.path / "m"
    model(board, journal, **({"TRITON_BATCH_STRATEGY_PATH": str(folder / "mine.so")} if place == "parameter" else {}))
    if place == "parameter":
        put(library, folder, "mine.so")
    else:
        put(library, {"version": folder / "1", "model": folder, "backend": own / "witness"}[place])
    with serving(kind, board, own, held=len(NUMBERS), stop=True) as server:
        assert load(server, "m").status == 200
        assert batches(server, NUMBERS) == BATCHES
        assert journal.batches() == ["yyyn", "yn", "yyyyn", "yn", "y"]
        words = "Loading custom batching strategy library .*(batchstrategy|mine).so for model m"
        assert re.search(words, server.process.log())
    if kind == "nereid":
        assert journal.text() == "B[yyyn][yn][yyyyn][yn][y]b"


def test_without_dynamic_batching_nobody_is_asked(kind: str, board: Board, backend: Path, journal: Journal, library: Path) -> None:
    """The library makes its batcher, and hears of no batch."""
    put(library, model(board, journal, batching=""))
    with serving(kind, board, backend) as server:
        assert load(server, "m").status == 200
        assert batches(server, NUMBERS) == [[number] for number in NUMBERS]
        assert journal.text() == "B"


def test_a_request_that_it_never_wants(board: Board, backend: Path, journal: Journal, library: Path) -> None:
    """It runs alone. (The reference asks for ever and never runs it.)"""
    put(library, model(board, journal, never="yes"))
    with serving("nereid", board, backend, held=3) as server:
        assert load(server, "m").status == 200
        assert batches(server, [1, 2, 3]) == [[1], [2], [3]]
        assert journal.batches() == ["n", "n", "n"]


WORDS = {"begin": "batching initialization function", "include": "batching include function", "finish": "batching finalization function"}


@pytest.mark.parametrize("fails", WORDS)
def test_errors_about_a_batch_are_logged(kind: str, board: Board, backend: Path, journal: Journal, library: Path, fails: str) -> None:
    """Nothing else comes of them: what the library wrote before it failed counts."""
    put(library, model(board, journal, fails=fails))
    words = f"Custom {WORDS[fails]} failed for model m: {fails} fails on purpose"
    with serving(kind, board, backend, held=len(NUMBERS)) as server:
        assert load(server, "m").status == 200
        assert batches(server, NUMBERS) == BATCHES
        server.process.wait_until(lambda: words in server.process.log(), 60)


def test_a_batcher_that_cannot_be_made(kind: str, board: Board, backend: Path, journal: Journal, library: Path) -> None:
    """The model does not load, and what was made of the batcher is finalized all the same."""
    put(library, model(board, journal, fails="batcher"))
    with serving(kind, board, backend) as server:
        answer = load(server, "m")
        assert answer.status != 200 and "batcher fails on purpose" in answer.json()["error"], answer.body
        assert journal.text() == "Bb"


def test_a_batcher_that_ends_badly(kind: str, board: Board, backend: Path, journal: Journal, library: Path) -> None:
    put(library, model(board, journal, fails="end"))
    words = "Custom batcher finalization failed for model m: end fails on purpose"
    with serving(kind, board, backend) as server:
        assert load(server, "m").status == 200
        assert unload(server, "m").status == 200
        server.process.wait_until(lambda: words in server.process.log(), 60)
        assert journal.text().endswith("b")


def test_a_library_that_lacks_a_function(board: Board, backend: Path, journal: Journal) -> None:
    """All five are needed, and what is missing is named. (The reference has the same words and says them to nobody: its load hangs.)"""
    compile_strategy(model(board, journal) / "batchstrategy.so", "-DWITHOUT_FINALIZE")
    with serving("nereid", board, backend) as server:
        answer = load(server, "m")
        words = "does not define all required custom batching functions for model m: it has no TRITONBACKEND_ModelBatcherFinalize"
        assert answer.status == 400 and words in answer.json()["error"], answer.body
        assert journal.text() == ""


def test_a_library_with_none_of_them(kind: str, board: Board, backend: Path, journal: Journal) -> None:
    """The model goes without."""
    library = model(board, journal) / "batchstrategy.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", str(library)], check=True)
    with serving(kind, board, backend, held=8) as server:
        assert load(server, "m").status == 200
        assert batches(server, [9] * 8) == [[9] * 8]


def test_it_is_not_asked_within_an_execution(tmp_path: Path, journal: Journal, library: Path) -> None:
    """It may wait for what its backend's Execute holds. A backend that answers last has its next batch taken there otherwise."""
    config = 'name: "m" backend: "identity" max_batch_size: 8 dynamic_batching { } instance_group [ { kind: KIND_CPU } ]'
    for kind in ("input", "output"):
        config += f' {kind} [ {{ name: "{kind.upper()}0" data_type: TYPE_INT32 dims: [ 1 ] }} ]'
    for key, value in {"journal": str(journal.file), "execute_delay_ms": "3"}.items():
        config += f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
    models = Repository(tmp_path / "models")
    put(library, models.model("m", config) / "1")
    env = {"TRITONSERVER_DELAY_SCHEDULER": str(len(NUMBERS))}
    with KINDS["nereid"](models.path, {"model-control-mode": "explicit", "load-model": "m"}, env=env) as server:
        batches(server, NUMBERS)
        assert len(journal.batches()) == len(BATCHES)
        assert "!" not in journal.text()


def test_requests_stay_with_the_server(board: Board, backend: Path, journal: Journal, library: Path) -> None:
    """What a strategy is only asked about is not its to answer or to release: the reference does not look."""
    put(library, model(board, journal, meddles="1") / "1")
    with serving("nereid", board, backend, held=len(NUMBERS)) as server:
        assert load(server, "m").status == 200
        assert batches(server, NUMBERS) == BATCHES
        assert journal.text().count("r") == 3 * len(re.findall("[yn]", journal.text()))
        rule = "the request was not given to the backend to execute it, so it still belongs to the server"
        for call in ("ResponseNew", "ResponseFactoryNew", "RequestRelease"):
            assert f"broke a rule: TRITONBACKEND_{call}: {rule}" in server.process.log()


@pytest.mark.parametrize("path", ["{outside}", "../../outside/strategy.so", "door.so"])
def test_only_what_lies_with_the_model(board: Board, backend: Path, journal: Journal, library: Path, tmp_path: Path, path: str) -> None:
    """As newer ones of the reference, not 2.51: by an absolute name, climbing, by a link that leads out."""
    (tmp_path / "outside").mkdir()
    outside = put(library, tmp_path / "outside", "strategy.so")
    folder = model(board, journal, TRITON_BATCH_STRATEGY_PATH=path.format(outside=outside))
    (folder / "door.so").symlink_to(outside)
    with serving("nereid", board, backend) as server:
        answer = load(server, "m")
        assert answer.status == 400 and "Batching library path escapes model repository" in answer.json()["error"], answer.body
        assert journal.text() == ""


def test_a_load_request_brings_none(board: Board, backend: Path, journal: Journal, library: Path) -> None:
    """No library among its files, whatever its name, and no name that leads elsewhere."""
    config = {"backend": "witness", "max_batch_size": 8, "dynamic_batching": {}}
    parameters = {"config": json.dumps(config), "file:1/batchstrategy.so": base64.b64encode(library.read_bytes()).decode()}
    named = {"config": json.dumps(config | {"parameters": {"TRITON_BATCH_STRATEGY_PATH": {"string_value": str(library)}}})}
    model(board, journal)
    with serving("nereid", board, backend) as server:
        for each, why in ((parameters, "shared library"), (named, "escapes model repository")):
            answer = rawhttp.post(server.http, "/v2/repository/models/m/load", json.dumps({"parameters": each}).encode())
            assert answer.status == 400 and why in answer.json()["error"], answer.body


def test_not_for_a_model_in_its_own_process(board: Board, backend: Path, journal: Journal, library: Path) -> None:
    """The library would run in the server, which the model is to be kept out of."""
    put(library, model(board, journal, ISOLATION="process"))
    with serving("nereid", board, backend) as server:
        answer = load(server, "m")
        assert answer.status != 200 and "would run in the server" in answer.json()["error"], answer.body
        assert journal.text() == ""
