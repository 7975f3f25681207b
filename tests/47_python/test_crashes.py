"""Models whose processes end or hang while others work: each costs its own requests alone, comes back, and leaves nothing behind.

NEREID_CRASHES is how often each way is gone."""

import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from asks import Asker, words
from conftest import make_server, ready_with
from harness.procfs import all_sleep, children, has_ended, memory
from harness.repository import Repository
from harness.servers import Server

MODELS = Path(__file__).parent / "models"
IO = "input { name: 'ASK' data_type: TYPE_STRING dims: [ 1 ] } output { name: 'TOLD' data_type: TYPE_STRING dims: [ 1 ] }"
TIMES = int(os.environ.get("NEREID_CRASHES", "3"))
# Long enough for any machine to answer what does not hang.
LIMIT = "parameters { key: 'EXECUTE_TIMEOUT_SECONDS' value { string_value: '5' } }"
DECOUPLED = "model_transaction_policy { decoupled: true }"
SOURCES = {
    "breaks": ("breaks", ""),
    "hangs": ("breaks", LIMIT),
    "stops": ("breaks", ""),
    "careless": ("careless", ""),
    "limited": ("careless", LIMIT),
    "closes": ("closes", DECOUPLED),
    "ends_loop": ("ends_loop", ""),
    "ends_loop_decoupled": ("ends_loop", DECOUPLED),
    "wordy": ("wordy", ""),
    "wordy_at_start": ("wordy", ""),
    "works": ("state", ""),
}


@pytest.fixture(scope="module")
def server(python_backends: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Repository(tmp_path_factory.mktemp("crashes") / "models")
    for name, (source, more) in SOURCES.items():
        folder = made.model(name, f"name: '{name}' backend: 'python' {IO} {more}")
        shutil.copy(MODELS / f"{source}.py", folder / "1" / "model.py")
    options = {"model-control-mode": "explicit", "load-model": "works", "log-verbose": "0"}
    server = make_server("nereid", python_backends, made.path, options)
    server.start()
    ready_with(server, ["works"])
    yield server
    server.stop(seconds=150)


@pytest.fixture
def asker(server: Server) -> Iterator[Asker]:
    made = Asker(server)
    yield made
    made.close()


@contextmanager
def loaded(asker: Asker, model: str) -> Iterator[str]:
    """The model's process; the model is unloaded whatever becomes of the test, since others count the processes."""
    assert asker.load(model)[0] == 200
    try:
        yield asker.told(model, "")
    finally:
        assert asker.unload(model)[0] == 200


def held(pid: int) -> tuple[int, int]:
    """How many descriptors a process has, and how many pieces of memory that it shares by descriptor."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return len(os.listdir(f"/proc/{pid}/fd")), maps.count("memfd:triton_python_backend")


class Load:
    """Somebody who asks another model all the time."""

    def __init__(self, server: Server):
        self.answers: list[object] = []
        self._ends = threading.Event()
        self._server = server
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        asker = Asker(self._server)
        while not self.answers or not self._ends.is_set():
            self.answers.append(asker.told("works", ""))
        asker.close()

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


def breaks(server: Server, asker: Asker, model: str, ways: list[str]) -> None:
    asker.told("works", "")  # its connection is there
    server.settle()  # those of others are gone
    before = held(server.pid)
    with loaded(asker, model) as pid, Load(server) as load:
        for way in ways:
            failed = asker.told(model, way)
            assert f"'{model}_0'" in failed["message"], failed
            after = asker.told(model, "")
            assert isinstance(after, str), after
            assert (after == pid) == (way == "memory")
            pid = after
    assert load.answers and all(isinstance(each, str) for each in load.answers)
    asker.until(lambda: len(children(server.pid)) == 1 and held(server.pid) == before)


def test_processes_that_end(server: Server, asker: Asker) -> None:
    breaks(server, asker, "breaks", ["kill", "segv", "exit", "memory"] * TIMES)


def test_executions_that_never_end(server: Server, asker: Asker) -> None:
    breaks(server, asker, "hangs", ["hang"] * max(1, TIMES // 5))


def test_an_execution_that_tells_without_end(server: Server, asker: Asker) -> None:
    breaks(server, asker, "hangs", ["tell"])


def test_a_process_that_is_stopped(server: Server, asker: Asker) -> None:
    breaks(server, asker, "stops", ["stop"])


def test_a_model_that_writes_into_the_link(asker: Asker) -> None:
    """It has no limit of time: nobody waits for room that never comes."""
    with loaded(asker, "breaks") as pid:
        assert "'breaks_0'" in asker.told("breaks", "read up")["message"]
        after = asker.told("breaks", "")
        assert isinstance(after, str) and after != pid
        assert asker.told("breaks", "read down") == after
        asker.until(lambda: isinstance(last := asker.told("breaks", ""), str) and last != after)


def test_a_model_that_changes_its_list_of_requests(asker: Asker) -> None:
    with loaded(asker, "careless") as pid:
        assert asker.told("careless", "pop") == pid
        assert asker.told("careless", "replace") == pid
        assert "ValueError: none are left" in asker.told("careless", "pop and raise")["message"]
        assert "ValueError: other things" in asker.told("careless", "replace and raise")["message"]
        assert asker.told("careless", "") == pid


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("name", "ValueError: file-\\udcff"),
        ("error", "file-\\udcff"),
        ("error with a zero byte", "before\\x00behind"),
        ("raise with a zero byte", "ValueError: before\\x00behind"),
        ("unsayable", "Unsayable: <MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>"),
        ("large parameter", "to have 64 bits at most, found 9223372036854775808"),
        ("parameter with a zero byte", "Expect texts without a zero byte, found 'x\\x00y'"),
        ("large file", "may have 1 GiB at most"),
        ("no stderr", "SystemExit"),
    ],
)
def test_what_cannot_be_said_costs_no_process(asker: Asker, way: str, said: str) -> None:
    with loaded(asker, "careless") as pid:
        assert said in asker.told("careless", way)["message"]
        assert asker.told("careless", "") == pid


def test_parameters_of_a_response_with_lone_surrogates(asker: Asker) -> None:
    """They are escaped, as in errors, and the others come with them."""
    with loaded(asker, "careless"):
        body = {"inputs": [{"name": "ASK", "datatype": "BYTES", "shape": [1], "data": ["surrogate parameter"]}]}
        status, answer = asker.ask("POST", "/v2/models/careless/infer", body)
        assert status == 200 and answer["parameters"] == {"number": 1, "text\\udc00": "\\ud800"}


def test_a_load_with_many_files(asker: Asker) -> None:
    with loaded(asker, "careless") as pid:
        assert asker.told("careless", "many files") == pid


def test_metrics_without_end(asker: Asker) -> None:
    """As many as there may be at once, and more, one after the other."""
    with loaded(asker, "careless") as pid:
        assert asker.told("careless", "metrics") == pid


def test_labels_that_are_no_texts(asker: Asker) -> None:
    """They are refused: two that differ would be one metric."""
    with loaded(asker, "careless"):
        said = asker.told("careless", "labels")["message"]
        assert said.count("Labels must be of type str, found type <class ") == 3
        assert said.count("Expect texts without a zero byte") == 2


def test_processes_that_a_model_forks_can_be_ended(asker: Asker) -> None:
    """Also those that had no turn yet when they are told to end."""
    with loaded(asker, "careless") as pid:
        assert [asker.told("careless", ask) for ask in ("pool", "end", "pool")] == [pid] * 3


def test_processes_that_a_model_forks_cannot_ask(asker: Asker) -> None:
    """They are told so, whatever other threads did when they were forked: none waits for what only those could give."""
    with loaded(asker, "careless") as pid:
        assert asker.told("careless", "ask in children") == pid


LOOP_ENDS = {"exit": "SystemExit: 3", "exit in a task": "SystemExit: 3", "exit in a callback": "", "stop": "", "cancel": "CancelledError"}


@pytest.mark.parametrize("way", LOOP_ENDS)
def test_a_coroutine_that_ends_its_loop(asker: Asker, way: str) -> None:
    """It fails itself, or goes on; those after it are answered."""
    with loaded(asker, "ends_loop") as pid:
        told = asker.told("ends_loop", way)
        assert LOOP_ENDS[way] in told["message"] if LOOP_ENDS[way] else told == pid
        assert asker.told("ends_loop", "") == pid


@pytest.mark.parametrize("way", LOOP_ENDS)
def test_a_decoupled_coroutine_that_ends_its_loop(asker: Asker, way: str) -> None:
    assert asker.load("ends_loop_decoupled")[0] == 200
    try:
        (told,) = asker.stream("ends_loop_decoupled", {"ASK": words(way)})
        assert "without a final response" in told["error"] if LOOP_ENDS[way] else told["final"]
        (after,) = asker.stream("ends_loop_decoupled", {"ASK": words("")})
        assert after["final"] and "TOLD" in after
    finally:
        assert asker.unload("ends_loop_decoupled")[0] == 200


def test_a_model_that_executes_another_program(server: Server, asker: Asker) -> None:
    """It has no limit of time: the server sees that its process is another program."""
    with loaded(asker, "breaks") as pid:
        assert "'breaks_0'" in asker.told("breaks", "exec")["message"]
        after = asker.told("breaks", "")
        assert isinstance(after, str) and after != pid
    asker.until(lambda: len(children(server.pid)) == 1)


def test_a_process_that_joins_the_server_s_group(server: Server, asker: Asker) -> None:
    with loaded(asker, "limited") as pid:
        assert "EXECUTE_TIMEOUT_SECONDS" in asker.told("limited", "group")["message"]
        after = asker.told("limited", "")
        assert isinstance(after, str) and after != pid
    asker.until(lambda: len(children(server.pid)) == 1)


@pytest.mark.parametrize("way", ["raise", "error", "at start"])
def test_what_a_model_says_of_errors_is_cut(server: Server, asker: Asker, way: str) -> None:
    """It costs neither the server's memory nor its log."""
    asker.told("works", "")  # its connection is there
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak begins anew
    before, log = memory(server.pid).rss, asker.log_size()
    if way == "at start":
        status, told = asker.load("wordy_at_start")
        assert status == 400
        said = told["error"]
    else:
        with loaded(asker, "wordy"):
            said = asker.told("wordy", way, protocol="http")["message"]
    assert said.count("\u00e4") == (16384 if way == "error" else 8192)  # of two bytes
    assert ("\n\nAt:\n" in said) == (way != "error")
    assert asker.log_size() - log < 1 << 20
    assert memory(server.pid).peak - before < 24 << 20


def test_a_model_that_closes_descriptors_that_are_not_its_own(asker: Asker, tmp_path: Path) -> None:
    """Its answers come, and nothing is written into the files that it opens then."""
    file, pipe = tmp_path / "file", tmp_path / "file.go"
    os.mkfifo(pipe)
    assert asker.load("closes")[0] == 200
    try:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(asker.stream, "closes", {"ASK": words(str(file))})
            asker.until(lambda: file.exists() and all(map(all_sleep, [asker.server.pid, *children(asker.server.pid)])))
            with open(pipe, "r+b", buffering=0):  # the execution is over: the model may answer
                came = asked.result()
    finally:
        assert asker.unload("closes")[0] == 200
    assert came[0]["TOLD"][2] == [str(list(range(3, 19))).encode()]
    assert file.read_bytes() == b""


def test_what_a_model_started_goes_with_it(asker: Asker) -> None:
    with loaded(asker, "breaks"):
        pid = int(asker.told("breaks", "child"))
        started = children(pid)
        assert len(started) == 1
        assert "'breaks_0'" in asker.told("breaks", "kill")["message"]
        asker.until(lambda: has_ended(started[0]))


def test_nothing_is_left_when_the_server_is_killed(python_backends: dict[str, Path], server: Server) -> None:
    """Nor is the process of a model that has closed all its descriptors."""
    options = {"model-control-mode": "explicit", "load-model": ["works", "careless"]}
    other = make_server("nereid", python_backends, Path(server.repositories[0]), options)
    other.start()
    ready_with(other, ["works", "careless"])
    stubs = children(other.pid)
    assert len(stubs) == 2
    asker = Asker(other)
    assert int(asker.told("careless", "close")) in stubs
    asker.close()
    other.kill()
    Asker.until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in stubs))


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("kill", "was ended by signal 9 (Killed)"),
        ("segv", "was ended by signal 11 (Segmentation fault)"),
        ("exit", "has ended by itself with status 7"),
    ],
)
def test_the_log_says_how_a_process_ended(server: Server, asker: Asker, way: str, said: str) -> None:
    """Once, before the request is answered; and nothing of one that the server ends."""
    before = asker.log_size()
    with loaded(asker, "breaks"):
        assert "'breaks_0'" in asker.told("breaks", way)["message"]
        assert server.process.log(before).count(f"python: the process of 'breaks_0' {said}") == 1
        assert isinstance(asker.told("breaks", ""), str)
    assert server.process.log(before).count("the process of ") == 1


def test_the_log_says_why_a_process_was_ended(server: Server, asker: Asker) -> None:
    before = asker.log_size()
    with loaded(asker, "hangs"):
        assert "'hangs_0'" in asker.told("hangs", "hang")["message"]
    log = server.process.log(before)
    assert log.count("Stub process 'hangs_0' is not healthy. It took longer than the model's EXECUTE_TIMEOUT_SECONDS.") == 1
    assert "the process of " not in log
