"""Models of other backends are loaded while one backend makes itself ready, however many models wait for that one; others are answered while
a model waits."""

import errno
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import witness
from harness import metrics, paths, rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid
from witness import Board, backend, board

WAITING = 40  # several times as many as there are loaders
OTHERS = 40


def backends(folder: Path) -> Path:
    library = folder / "slow_start" / "libtriton_slow_start.so"
    library.parent.mkdir(parents=True)
    argv = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Werror"]
    argv += [f"-I{paths.ROOT / 'include'}", str(Path(__file__).parent / "plugins" / "slow_start.c"), "-o", str(library)]
    subprocess.run(argv, check=True)
    (folder / "identity").symlink_to(paths.backends() / "identity")
    return folder


def ready(server: Nereid) -> set[str]:
    try:
        answer = rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/index", body=b'{"ready":true}')
    except ConnectionError:
        return set()  # it does not listen yet
    assert answer.status == 200, answer.body
    return {entry["name"] for entry in json.loads(answer.body)}


def opened(door: Path) -> bool:
    """False while nobody stands in front of it."""
    try:
        os.close(os.open(door, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        assert error.errno == errno.ENXIO
        return False
    return True


@pytest.mark.parametrize("loaders", [1, 4])
def test_others_go_first(tmp_path: Path, loaders: int) -> None:
    made = Repository(tmp_path / "models")
    tensor = "[ {{ name: '{}' data_type: TYPE_FP32 dims: [ 1 ] }} ]"
    waiting = {f"waits_{index}" for index in range(WAITING)}
    others = {f"other_{index}" for index in range(OTHERS)}
    for name in waiting:
        made.model(name, f'backend: "slow_start"\ninput {tensor.format("I")}\noutput {tensor.format("O")}\n')
    for name in others:
        made.identity(name)
    door = tmp_path / "door"
    os.mkfifo(door)
    server = Nereid(
        made.path,
        {"backend-directory": str(backends(tmp_path / "backends")), "model-load-thread-count": str(loaders)},
        env={"SLOW_START_DOOR": str(door)},
        wait_ready=False,
    )
    server.start()
    try:
        if loaders > 1:
            server.process.wait_until(lambda: ready(server) == others, 60)
        server.process.wait_until(lambda: opened(door), 60)
        server.process.wait_until(lambda: ready(server) == others | waiting, 60)
        server.process.wait_until(server.ready, 60)
        for name in waiting:
            assert server.process.log().count(f"loading: {name}:1") == 1
        server.stop()
    except BaseException:
        server.kill()
        raise


def test_a_model_that_waits_has_its_own_thread(board: Board, backend: Path) -> None:
    """Every network thread answers others while a model waits in Execute, from its first request on."""
    board.model("slow", gated=True)
    with Nereid(board.repository.path, {"backend-directory": str(backend)}) as server, ThreadPoolExecutor(16) as pool:
        slow = [pool.submit(rawhttp.post, server.http, "/v2/models/slow/infer", witness.BODY) for _ in range(4)]
        try:
            server.process.wait_for(lambda: metrics.scrape(server.metrics)["nereid_requests_in_flight"].value(protocol="http"), len(slow))
            server.process.wait_for(board.executions, 1)
            assert {rawhttp.get(server.http, "/v2/health/live").status for _ in range(32)} == {200}
            assert not any(each.done() for each in slow)
        finally:
            board.open_gate()
        assert all(each.result().status == 200 for each in slow)


def test_a_delay_of_identity_holds_no_network_thread(tmp_path: Path) -> None:
    """Though its models run on network threads otherwise. Where this machine takes as long as the delay itself it is asked once more."""
    made = Repository(tmp_path / "models")
    made.identity("waits", "INT32", extra='parameters { key: "execute_delay_ms" value { string_value: "3000" } }\n')
    with Nereid(made.path) as server, ThreadPoolExecutor(4) as pool:

        def in_flight() -> float:
            return metrics.scrape(server.metrics)["nereid_requests_in_flight"].value(protocol="http")

        for _ in range(4):
            slow = [pool.submit(rawhttp.post, server.http, "/v2/models/waits/infer", witness.BODY) for _ in range(4)]
            server.process.wait_until(lambda slow=slow: in_flight() == len(slow) or any(each.done() for each in slow), 60)
            assert {rawhttp.get(server.http, "/v2/health/live").status for _ in range(32)} == {200}
            before = not any(each.done() for each in slow)
            assert all(each.result().status == 200 for each in slow)
            if before:
                return
        raise AssertionError("health waits for a model that waits")
