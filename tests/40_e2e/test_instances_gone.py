"""What a load takes out is finalised when it returns, where the reference has it so."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import rawhttp
from harness.servers import Nereid, Server
from witness import Board, ask, ask_many, backend, board, group, kind, load

__all__ = ["backend", "board", "kind"]  # fixtures


def options(backend: Path) -> dict[str, str | list[str]]:
    return {"model-control-mode": "explicit", "load-model": "*", "backend-directory": str(backend)}


def test_removed_instances_are_finalised(kind: type[Server], backend: Path, board: Board) -> None:
    """PB-149, PB-182: whoever asked for fewer instances has the room of the others when the answer comes: it waits for them."""
    board.model("one", group(count=3), kept_in=True)
    board.model("two")
    with ThreadPoolExecutor(1) as pool, kind(board.repository.path, options(backend)) as server:
        board.model("one", group(count=1), kept_in=True)
        loading = pool.submit(load, server, "one")
        server.process.wait_until(lambda: board.leaving() > 0, 60)
        for _ in range(3):  # an answer that does not wait would be there before these
            assert rawhttp.get(server.http, "/v2/health/ready").status == 200
            ask(server, "two")
        assert not loading.done()
        board.open_exit()
        assert loading.result().status == 200
        assert board.finalised() == 2
        ask(server, "one")


def test_one_that_executes_does_not_hold_up_the_load(backend: Path, board: Board) -> None:
    """It may execute the very request that asked for the load: the reference waits for ever then. It is finalised when it has ended."""
    board.model("one", group(count=2), gated=True, kept_in=True)
    board.open_exit()
    with ThreadPoolExecutor(2) as pool, Nereid(board.repository.path, options(backend)) as server:
        busy = ask_many(pool, server, "one", 2)
        server.process.wait_until(lambda: board.now() == 2, 60)
        board.model("one", group(count=1), gated=True, kept_in=True)
        assert load(server, "one").status == 200
        assert board.finalised() == 0
        board.open_gate()
        for each in busy:
            each.result()
        server.process.wait_until(lambda: board.finalised() == 1, 60)
