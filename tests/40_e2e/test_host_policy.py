"""Host policies: on which cores instances run, with memory of which NUMA node. Where nothing else is said, the same in both servers."""

import os
from pathlib import Path

import pytest
import witness
from harness import procfs
from harness.servers import Nereid, Reference, Server
from witness import Board, ask, backend, board, group, kind, load

FIRST, LAST = (f"{core}-{core}" for core in (min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))))
EXPLICIT = {"model-control-mode": "explicit"}


def policies(backend: Path, *values: str) -> dict[str, str | list[str]]:
    return EXPLICIT | {"backend-directory": str(backend), "host-policy": list(values)}


def cores(thread: int) -> str:
    return field(Path(f"/proc/{thread}/status"), "Cpus_allowed_list")


def field(path: Path, name: str) -> str:
    return next(line.split(":")[1].strip() for line in path.read_text().splitlines() if line.startswith(name))


def names_and_cores(server: Server) -> list[tuple[str, str]]:
    """Their names and cores."""
    found = []
    for path in Path(f"/proc/{server.pid}/task").iterdir():
        try:
            found.append((field(path / "status", "Name"), field(path / "status", "Cpus_allowed_list")))
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    return found


@pytest.fixture
def all_cores() -> str:
    return field(Path("/proc/self/status"), "Cpus_allowed_list")


def test_instances_run_on_their_cores(kind: type[Server], board: Board, backend: Path, all_cores: str) -> None:
    """The policy that the group names, else that of its kind; what has no policy runs anywhere."""
    board.model("plain", group())
    board.model("named", group(policy="mine", count=2))
    board.model("model", group(kind="KIND_MODEL"))
    board.model("other", group(policy="unknown"))
    with kind(board.repository.path, policies(backend, f"cpu,cpu-cores={FIRST}", f"mine,cpu-cores=1000-1001,{LAST}", "mine,numa-node=0")) as server:
        for model, expected in (("plain", FIRST.split("-")[0]), ("named", LAST.split("-")[0]), ("model", all_cores), ("other", all_cores)):
            if kind is Reference and expected == all_cores:
                continue  # its loading threads stay where the model before was bound to
            assert load(server, model).status == 200
            assert cores(ask(server, model).thread) == expected
        if kind is Nereid:
            assert {name for name, allowed in names_and_cores(server) if allowed != all_cores} == {"instance"}


def test_a_bound_instance_has_a_thread_of_its_own(board: Board) -> None:
    """What could run on a network thread does not where a policy binds it, however often it is asked."""
    board.repository.identity("bound", extra='instance_group [ { kind: KIND_CPU host_policy: "mine" } ]')
    board.repository.identity("free")
    tensor = b'{"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1.5]}]}'
    with Nereid(board.repository.path, {"host-policy": f"mine,cpu-cores={FIRST}"}) as server:
        for model, asked, threads in (("free", 1, 0), ("bound", 5, 1)):  # once: a model gets threads when some runs of it are slow
            for _ in range(asked):
                assert witness.try_to_ask(server, model, tensor).status == 200
            assert procfs.names_of_threads(server.pid).count("instance") == threads


def test_a_process_of_its_own_is_bound_too(board: Board, backend: Path) -> None:
    board.model("apart", group(policy="mine"), ISOLATION="process")
    with Nereid(board.repository.path, policies(backend, f"mine,cpu-cores={LAST}")) as server:
        assert load(server, "apart").status == 200
        seen = ask(server, "apart")
        assert not Path(f"/proc/{server.pid}/task/{seen.thread}").exists()
        assert cores(seen.thread) == LAST.split("-")[0]


SAID = ["cpu,numa-node=0", "cpu,cpu-cores=0-1023", "mine,cpu-cores=0-0", "mine,cpu-cores=0-1023"]
TOLD = {
    group(): '{"cpu":{"cpu-cores":"0-1023","numa-node":"0"}}',
    group(kind="KIND_MODEL"): '{"model":{}}',
    group(policy="mine"): '{"mine":{"cpu-cores":"0-1023"}}',
    group(policy="unknown"): '{"unknown":{}}',
    group(policy=r'a \"b\"'): r'{"a \"b\"":{}}',
}


def test_what_backends_are_told(kind: type[Server], board: Board, backend: Path) -> None:
    """TRITONBACKEND_ModelInstanceHostPolicy: the name, and what the command line says of it."""
    for number, one in enumerate(TOLD):
        board.model(f"m{number}", one, tell="yes")
    with kind(board.repository.path, policies(backend, *SAID)) as server:
        for number, expected in enumerate(TOLD.values()):
            got = load(server, f"m{number}")
            assert got.status == 400
            assert f": policy {expected};" in got.json()["error"]


WRONG = {
    "no range": ["cpu-cores=0"],
    "half a list": ["cpu-cores=0-0,1"],
    "empty range": ["cpu-cores=0-0,"],
    "no number": ["cpu-cores=0-x"],
    "negative": ["cpu-cores=-1-0"],
    "node is no number": ["numa-node=x"],
    "no such node": ["numa-node=63"],
    "negative node": ["numa-node=-1"],
    "both": [f"cpu-cores={FIRST}", "numa-node=x"],
}


@pytest.mark.reference
@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_refused_as_by_the_reference(board: Board, backend: Path, case: str) -> None:
    """They are looked at when an instance is made, and only then: nothing else is disturbed."""
    board.model("bad", group())
    board.model("good", group(policy="another"))
    told = []
    for server_kind in (Nereid, Reference):
        with server_kind(board.repository.path, policies(backend, *(f"cpu,{value}" for value in WRONG[case]))) as server:
            got = load(server, "bad")
            told.append((got.status, got.body))
            assert load(server, "good").status == 200
            ask(server, "good")
    assert told[0] == told[1]
    assert told[0][0] == 400


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("cpu-cores=1-0", "cpu-cores=1-0 of host policy 'cpu': Unable to set NUMA thread affinity: Invalid argument"),
        ("cpu-cores=1000-1001", "Unable to set NUMA thread affinity: Invalid argument"),
        ("cpu-cores=0-99999999999", "Parsing 'cpu-cores' value: Can't parse '99999999999' to integer"),
        ("cpu-cores=0-1-2", "Parsing 'cpu-cores' value: Can't parse '1-2' to integer"),
        ("numa-node=0x", "Parsing 'numa-node' value: Can't parse '0x' to integer"),
        ("numa-node=64000", "Unable to set NUMA memory policy: Invalid argument"),
    ],
)
def test_more_wrong_values(board: Board, backend: Path, value: str, message: str) -> None:
    """Here the reference ends, names another reason ("Success"), or takes the value for something else."""
    board.model("bad", group())
    with Nereid(board.repository.path, policies(backend, f"cpu,{value}")) as server:
        got = load(server, "bad")
        assert got.status == 400
        assert message in got.json()["error"]


def test_its_memory_comes_from_the_node(board: Board, backend: Path) -> None:
    """Of the threads of the server, only those of the instance under the policy are bound to the node."""
    board.model("near", group(policy="near"))
    with Nereid(board.repository.path, policies(backend, "near,numa-node=0")) as server:
        assert load(server, "near").status == 200
        thread = ask(server, "near").thread
        maps = Path(f"/proc/{server.pid}/task/{thread}/numa_maps").read_text()
        assert "bind:0" in maps
        assert "bind:0" not in Path(f"/proc/{server.pid}/numa_maps").read_text()
