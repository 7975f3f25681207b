"""Resources that instances share: --rate-limit, --rate-limit-resource and what instance groups name. Where nothing else is said, the
same in both servers."""

import itertools
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from statistics import median

import pytest
import witness
from harness import rawhttp
from harness.servers import Nereid, Reference, Server
from witness import Board, ask, ask_many, backend, board, group, kind, load, resource

EXPLICIT = {"model-control-mode": "explicit", "rate-limit": "execution_count"}


@pytest.fixture
def options(backend: Path) -> dict[str, str | list[str]]:
    return {"backend-directory": str(backend), "rate-limit": "execution_count"}


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(64) as executor:
        yield executor


def pending(server: Server) -> dict[str, int]:
    """Requests that wait in the queues, by model."""
    lines = rawhttp.get(server.metrics, "/metrics").body.decode().splitlines()
    rows = [line for line in lines if line.startswith("nv_inference_pending_request_count{")]
    return {row.split('model="')[1].split('"')[0]: int(float(row.rsplit(" ", 1)[1])) for row in rows}


def meet(board: Board, server: Server, asked: list[Future[witness.Seen]], count: int) -> int:
    """The most that ran at once of what was asked, when the gate is opened to at least so many."""
    server.process.wait_until(lambda: board.now() >= count, 60)
    board.open_gate()
    return max(one.result().most for one in asked)


def test_one_at_a_time(kind: type[Server], board: Board, options: dict[str, str | list[str]], pool: ThreadPoolExecutor) -> None:
    """Four instances of two models need the one resource that there is; without the rate limiter they meet."""
    for name in "ab":
        board.model(name, group(resource("r", 1), count=2), gated=True)
    board.open_gate()
    with kind(board.repository.path, options) as server:
        seen = [one.result() for one in ask_many(pool, server, "a", 60) + ask_many(pool, server, "b", 60)]
        assert max(one.most for one in seen) == 1
        assert sorted(one.execution for one in seen) == list(range(min(one.execution for one in seen), 120 + min(one.execution for one in seen)))
        assert [server.statistics(name)["execution_count"] for name in "ab"] == [60, 60]
    board.shut_gate()
    with kind(board.repository.path, options | {"rate-limit": "off"}) as server:
        assert meet(board, server, ask_many(pool, server, "a", 3) + ask_many(pool, server, "b", 3), 2) > 1


def test_each_device_has_its_own(kind: type[Server], board: Board, options: dict[str, str | list[str]], pool: ThreadPoolExecutor) -> None:
    """A resource that is not global is there on each device; instances of KIND_CPU and KIND_MODEL are all on device 0."""
    board.model("a", group(resource("r", 1, shared=False), count=2), gated=True)
    board.model("b", group(resource("r", 1, shared=False), kind="KIND_MODEL"), gated=True)
    board.open_gate()
    with kind(board.repository.path, options) as server:
        seen = [one.result() for one in ask_many(pool, server, "a", 40) + ask_many(pool, server, "b", 40)]
        assert max(one.most for one in seen) == 1
    board.shut_gate()
    with kind(board.repository.path, options | {"rate-limit-resource": ["r:1:7", "r:2:0"]}) as server:
        assert meet(board, server, ask_many(pool, server, "a", 40) + ask_many(pool, server, "b", 40), 2) == 2


def test_executions_go_by_priority(kind: type[Server], board: Board, options: dict[str, str | list[str]], pool: ThreadPoolExecutor) -> None:
    """Priority 2 runs half as often as priority 1 while both have work."""
    board.model("often", group(resource("r", 1), priority=1), gated=True)
    board.model("seldom", group(resource("r", 1), priority=2), gated=True)

    def often_of_thirty() -> int:
        with kind(board.repository.path, options) as server:
            asked = [one for pair in zip(ask_many(pool, server, "often", 30), ask_many(pool, server, "seldom", 30), strict=True) for one in pair]
            server.process.wait_until(lambda: sum(pending(server).values()) >= 58, 60)
            board.open_gate()
            order = [one.model for one in sorted((one.result() for one in asked), key=lambda one: one.execution)]
        board.shut_gate()
        return order[:30].count("often")

    # In one of them a busy machine may hold up one's thread, and the other goes alone.
    assert 18 <= median(often_of_thirty() for _ in range(3)) <= 22


REFUSED = {
    "more": (group(resource("s", 4)), ["s:3"]),
    "more on a device": (group(resource("d", 2, shared=False)), ["d:1", "d:2:1"]),
    "not there": (group(resource("other", 1)), ["s:3"]),
    "not in this case": (group(resource("S", 1)), ["s:3"]),
    "both kinds": (group(resource("t", 1), resource("t", 1, shared=False)), []),
    "other kind": (group(resource("there", 1, shared=False)), []),
}


@pytest.mark.reference
@pytest.mark.parametrize("case", REFUSED)
def test_load_is_refused_as_by_the_reference(board: Board, backend: Path, case: str) -> None:
    groups, supplies = REFUSED[case]
    board.model("there", group(resource("there", 1)))
    board.model("fits", group(resource("s", 0)))
    board.model("bad", groups)
    told = []
    for server_kind in (Nereid, Reference):
        more: dict[str, str | list[str]] = {"backend-directory": str(backend)}
        more |= {"rate-limit-resource": [*supplies, "there:1"]} if supplies else {}
        with server_kind(board.repository.path, EXPLICIT | more) as server:
            assert load(server, "there").status == 200
            got = load(server, "bad")
            assert load(server, "fits").status == 200
            told.append((got.status, got.body))
            ask(server, "there")
    assert told[0] == told[1]
    assert told[0][0] == 400


def test_second_group_is_refused(board: Board, backend: Path) -> None:
    """The first group's instances are there already then. The reference was seen to end."""
    board.model("bad", group(resource("s", 1), count=2), group(resource("s", 9)))
    board.model("good", group(resource("s", 3)))
    with Nereid(board.repository.path, EXPLICIT | {"rate-limit-resource": ["s:3"], "backend-directory": str(backend)}) as server:
        for _ in range(2):
            got = load(server, "bad")
            assert (got.status, "the minimum required count is 9" in got.json()["error"]) == (400, True), got.body
        assert load(server, "good").status == 200
        ask(server, "good")


def test_unloading_gives_room(kind: type[Server], board: Board, backend: Path, pool: ThreadPoolExecutor) -> None:
    """There is as much as the largest instance that is loaded asks for, at every moment."""
    board.model("small", group(resource("r", 1), count=3), gated=True)
    board.model("large", group(resource("r", 2)))
    with kind(board.repository.path, EXPLICIT | {"backend-directory": str(backend)}) as server:
        for change, model, most in ((load, "small", 1), (load, "large", 2), (witness.unload, "large", 1)):
            assert change(server, model).status == 200
            server.process.wait_until(lambda: "large" not in unloading(server), 60)
            board.file.write_bytes(bytes(12))
            assert meet(board, server, ask_many(pool, server, "small", 60), most) == most
            board.shut_gate()


def test_polled_changes_give_room(board: Board, backend: Path, pool: ThreadPoolExecutor) -> None:
    """A group that asks for more from now on: the instances are made anew, and there is more of it for all."""
    board.model("small", group(resource("r", 1), count=3), gated=True)
    large = board.model("large", group(resource("r", 1)))
    text = (large / "config.pbtxt").read_text()
    polled: dict[str, str | list[str]] = {"model-control-mode": "poll", "repository-poll-secs": "1"}
    polled |= {"rate-limit": "execution_count", "backend-directory": str(backend)}
    with Nereid(board.repository.path, polled) as server:
        assert meet(board, server, ask_many(pool, server, "small", 60), 1) == 1
        board.shut_gate()
        (large / "config.pbtxt").write_text(text.replace("count: 1 global", "count: 2 global"))
        page = "/v2/models/large/config"
        server.process.wait_until(
            lambda: rawhttp.get(server.http, page).json()["instance_group"][0]["rate_limiter"]["resources"][0]["count"] == 2, 60
        )
        ask(server, "large")
        assert meet(board, server, ask_many(pool, server, "small", 60), 2) == 2


def unloading(server: Server) -> list[str]:
    rows = rawhttp.post(server.http, "/v2/repository/index", b"").json()
    over = (None, "READY", "UNAVAILABLE")  # None: never loaded
    return [row["name"] for row in rows if row.get("state") not in over]


def test_off_looks_at_nothing(kind: type[Server], board: Board, backend: Path) -> None:
    board.model("a", group(resource("r", 5)))
    off: dict[str, str | list[str]] = {"rate-limit": "off", "rate-limit-resource": ["r:1"], "backend-directory": str(backend)}
    with kind(board.repository.path, off) as server:
        ask(server, "a")


# -- what the reference does differently, or not at all --


def test_strangers_are_not_held_up(board: Board, options: dict[str, str | list[str]], pool: ThreadPoolExecutor) -> None:
    """While one holds a resource and another waits for it, models that need none of it run. In the reference they wait."""
    board.model("holds", group(resource("r", 1)), gated=True)
    board.model("waits", group(resource("r", 1)))
    board.model("free")
    board.model("other", group(resource("s", 1), priority=9))
    with Nereid(board.repository.path, options) as server:
        held = pool.submit(ask, server, "holds")
        server.process.wait_until(lambda: board.now() == 1, 60)
        waits = pool.submit(ask, server, "waits")
        server.process.wait_until(lambda: pending(server)["waits"] == 1, 60)
        for _ in range(3):
            ask(server, "free")
            ask(server, "other")
        assert not held.done()
        assert not waits.done()
        board.open_gate()
        assert waits.result().execution > held.result().execution


def test_waiting_ends(board: Board, backend: Path, pool: ThreadPoolExecutor) -> None:
    """What waits for a resource can time out; then its model unloads, though the resource is held still."""
    board.model("holds", group(resource("r", 1)), gated=True)
    board.model("waits", group(resource("r", 1)))
    timed = witness.BODY.replace(b'{"inputs"', b'{"parameters": {"timeout": 20000}, "inputs"')
    with Nereid(board.repository.path, EXPLICIT | {"backend-directory": str(backend)}) as server:
        for name in ("holds", "waits"):
            assert load(server, name).status == 200
        held = pool.submit(ask, server, "holds")
        server.process.wait_until(lambda: board.now() == 1, 60)
        got = witness.try_to_ask(server, "waits", timed)
        assert (got.status, "timeout" in got.json()["error"]) == (503, True), got.body
        assert witness.unload(server, "waits").status == 200
        server.process.wait_until(lambda: unloading(server) == [], 60)
        assert not held.done()
        assert load(server, "waits").status == 200
        board.open_gate()
        held.result()
        ask(server, "waits")


def test_loaded_and_unloaded_under_load(board: Board, backend: Path, pool: ThreadPoolExecutor) -> None:
    """Models and instances come and go while others wait: each request is answered, never two at once."""
    steady, guest = board.model("steady", group(resource("r", 1), count=2)), board.model("guest", group(resource("r", 1), priority=3))
    text = (steady / "config.pbtxt").read_text()
    with Nereid(board.repository.path, EXPLICIT | {"backend-directory": str(backend)}) as server:
        assert load(server, "steady").status == 200
        seen = []
        for number in range(20):
            asked = ask_many(pool, server, "steady", 12)
            assert load(server, "guest").status == 200
            asked += ask_many(pool, server, "guest", 4)
            (steady / "config.pbtxt").write_text(text.replace("count: 2", f"count: {1 + number % 3}"))
            assert load(server, "steady").status == 200
            seen += [one.result() for one in asked]
            assert witness.unload(server, "guest").status == 200
        assert guest.exists()
        assert max(one.most for one in seen) == 1
        assert len({one.execution for one in seen}) == len(seen) == 320


def test_warm_ups_and_sequences_and_batches(board: Board, options: dict[str, str | list[str]], pool: ThreadPoolExecutor) -> None:
    """Whatever executes holds what it needs: samples of a warm-up while others serve, sequences, ensembles' steps."""
    warm = 'model_warmup { name: "w" batch_size: 1 count: 20 inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } }\n'
    board.model("plain", group(resource("r", 1), count=2))
    board.model("warm", group(resource("r", 1), count=2), extra=warm)
    board.model("sequence", group(resource("r", 1), count=2), extra="sequence_batching { }\n")
    step = 'input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" }'
    both = f'ensemble_scheduling {{ step [ {{ model_name: "plain" model_version: -1 {step} }} ] }}\n'
    io = "".join(f'{side} [ {{ name: "{side.upper()}0" data_type: TYPE_INT32 dims: [ {dims} ] }} ]\n' for side, dims in (("input", 1), ("output", 4)))
    board.repository.model("ensemble", f'name: "ensemble"\nplatform: "ensemble"\nmax_batch_size: 0\n{io}{both}')
    with Nereid(board.repository.path, options | {"model-control-mode": "explicit", "load-model": ["plain", "sequence", "ensemble"]}) as server:
        def sequence(number: int) -> int:
            most = 0
            for start, end in ((True, False), (False, False), (False, True)):
                said = f'{{"parameters": {{"sequence_id": {number}, "sequence_start": {str(start).lower()}, "sequence_end": {str(end).lower()}}}, '
                most = max(most, ask(server, "sequence", witness.BODY.replace(b"{", said.encode(), 1)).most)
            return most

        runs = [pool.submit(sequence, number) for number in range(1, 13)]
        asked = ask_many(pool, server, "plain", 30) + ask_many(pool, server, "ensemble", 30)
        assert load(server, "warm").status == 200
        asked += ask_many(pool, server, "warm", 20)
        assert {one.result() for one in runs} == {1}
        assert max(one.result().most for one in asked) == 1
        assert board.executions() == 80 + 36 + 40


@pytest.mark.parametrize("both", [True, False], ids=["two processes", "one of them"])
def test_processes_of_their_own(board: Board, options: dict[str, str | list[str]], pool: ThreadPoolExecutor, both: bool) -> None:
    board.model("a", group(resource("r", 1), count=2), ISOLATION="process")
    board.model("b", group(resource("r", 1)), **({"ISOLATION": "process"} if both else {}))
    with Nereid(board.repository.path, options) as server:
        seen = [one.result() for one in ask_many(pool, server, "a", 40) + ask_many(pool, server, "b", 40)]
        assert max(one.most for one in seen) == 1
        assert len({one.execution for one in seen}) == 80


def test_stops_while_something_waits(board: Board, options: dict[str, str | list[str]], pool: ThreadPoolExecutor) -> None:
    board.model("holds", group(resource("r", 1)), gated=True)
    board.model("waits", group(resource("r", 1), count=3))
    server = Nereid(board.repository.path, options).start()
    try:
        held = pool.submit(ask, server, "holds")
        server.process.wait_until(lambda: board.now() == 1, 60)
        waits = ask_many(pool, server, "waits", 5)
        server.process.wait_until(lambda: pending(server)["waits"] == 5, 60)
        server.process.terminate()
        board.open_gate()
        assert [one.result().most for one in itertools.chain([held], waits)] == [1] * 6
        server.process.ends(0)
    finally:
        server.stop()
