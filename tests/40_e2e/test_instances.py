"""The number of instances changes while a model serves: no reload, no lost request."""

import json
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness import paths, procfs, rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
EXPLICIT = {"model-control-mode": "explicit", "load-model": "*"}
CLIENTS = 64
CHANGES = 120
# So much memory may grow after the tenth change, of a server that serves a real model besides, without what the allocator would keep for
# each thread (test_repository_load.py).
GROWTH = 1.02
KEEPS_NOTHING = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> type[Server]:
    return KINDS[request.param]


class Model:
    """An identity model whose instance groups are written anew."""

    def __init__(self, repository: Repository, name: str, more: str = ""):
        self.name = name
        self.folder = repository.identity(name, extra=more)
        self.text = (self.folder / "config.pbtxt").read_text()
        self.time = time.time_ns()
        self.write(1)

    def write(self, count: int, more: str = "") -> None:
        """In one go for who polls, and with a time of its own: the clock of a file system is coarse."""
        groups = f"instance_group [ {{ count: {count} kind: KIND_CPU }} ]\n"
        fresh = self.folder.parent.parent / "fresh"
        fresh.write_text(self.text + groups + more)
        self.time += 10**9
        os.utime(fresh, ns=(self.time, self.time))
        fresh.replace(self.folder / "config.pbtxt")


def load(server: Server, model: str, config: dict[str, Any] | None = None) -> rawhttp.Answer:
    body = json.dumps({"parameters": {"config": json.dumps(config)}}).encode() if config else b""
    return rawhttp.post(server.http, f"/v2/repository/models/{model}/load", body)


def groups(server: Server, model: str) -> list[dict[str, Any]]:
    return rawhttp.get(server.http, f"/v2/models/{model}/config").json()["instance_group"]


def count(server: Server, model: str) -> int:
    return sum(group["count"] for group in groups(server, model))


def answered(server: Server, model: str) -> int:
    return server.statistics(model)["inference_count"]


def body(value: float) -> bytes:
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [value]}
    return json.dumps({"inputs": [tensor]}).encode()


def ask(server: Server, model: str, value: float = 1.0) -> None:
    got = rawhttp.post(server.http, f"/v2/models/{model}/infer", body(value))
    assert got.status == 200, got.body
    assert got.json()["outputs"][0]["data"] == [value]


def test_more_and_fewer(kind: type[Server], tmp_path: Path) -> None:
    """PB-16: the same version serves on, its statistics go on, its configuration shows what is now."""
    model = Model(Repository(tmp_path / "models"), "echo")
    with kind(tmp_path / "models", EXPLICIT) as server:
        for number, wanted in enumerate((1, 3, 2, 4, 1), 1):
            model.write(wanted)
            assert load(server, "echo").status == 200
            ask(server, "echo")
            assert count(server, "echo") == wanted
            assert answered(server, "echo") == number


@pytest.mark.reference
def test_groups_are_shown_as_by_the_reference(tmp_path: Path) -> None:
    told = []
    for kind in KINDS.values():
        model = Model(Repository(tmp_path / kind.kind / "models"), "echo")
        shown = []
        with kind(tmp_path / kind.kind / "models", EXPLICIT) as server:
            for more in ("", "instance_group [ { name: 'more' count: 2 kind: KIND_CPU } ]\n", "instance_group [ { kind: KIND_CPU passive: true } ]\n"):
                model.write(2, more)
                assert load(server, "echo").status == 200
                ask(server, "echo")
                shown.append(groups(server, "echo"))
            shown.append(answered(server, "echo"))
        told.append(shown)
    assert told[0] == told[1]


def test_anything_else_is_a_reload(kind: type[Server], tmp_path: Path) -> None:
    """Another change beside the instances makes a new version, whose statistics begin anew."""
    model = Model(Repository(tmp_path / "models"), "echo")
    with kind(tmp_path / "models", EXPLICIT) as server:
        ask(server, "echo")
        model.write(2, "parameters { key: 'a' value { string_value: 'b' } }\n")
        assert load(server, "echo").status == 200
        assert answered(server, "echo") == 0
        assert count(server, "echo") == 2
        ask(server, "echo")
        (model.folder / "1" / "weights").write_bytes(b"new")
        model.write(3)
        assert load(server, "echo").status == 200
        assert answered(server, "echo") == 0


def test_by_a_configuration_of_the_client(kind: type[Server], tmp_path: Path) -> None:
    """RX-27, RX-30: a configuration in the request that only changes the instances does so too."""
    Model(Repository(tmp_path / "models"), "echo")
    tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
    config = {
        "name": "echo", "backend": "identity", "max_batch_size": 0,
        "input": [{"name": "INPUT0"} | tensor], "output": [{"name": "OUTPUT0"} | tensor],
    }  # fmt: skip
    with kind(tmp_path / "models", EXPLICIT) as server:
        ask(server, "echo")
        for wanted in (3, 2):
            group = [{"count": wanted, "kind": "KIND_CPU"}]
            assert load(server, "echo", config | {"instance_group": group}).status == 200
            assert count(server, "echo") == wanted
            assert answered(server, "echo") == 1


def test_when_polled(tmp_path: Path) -> None:
    """The poll changes them too."""
    model = Model(Repository(tmp_path / "models"), "echo")
    with Nereid(tmp_path / "models", {"model-control-mode": "poll", "repository-poll-secs": "1"}) as server:
        ask(server, "echo")
        for wanted in (4, 2):
            model.write(wanted)
            server.process.wait_until(lambda wanted=wanted: count(server, "echo") == wanted, 60)
        assert answered(server, "echo") == 1
        assert "loading: echo:1" not in server.process.log().split("changing instances", 1)[1]


def test_groups_that_cannot_be_leave_the_old_ones(tmp_path: Path) -> None:
    """PB-06: an instance that cannot be made changes nothing."""
    model = Model(Repository(tmp_path / "models"), "echo")
    with Nereid(tmp_path / "models", EXPLICIT) as server:
        ask(server, "echo")
        model.write(1, "instance_group [ { count: 1 kind: KIND_GPU gpus: [ 64 ] } ]\n")
        got = load(server, "echo")
        assert got.status == 400
        assert "GPU" in got.json()["error"]
        ask(server, "echo")
        assert (count(server, "echo"), answered(server, "echo")) == (1, 2)


def test_what_leaves_finishes_first(tmp_path: Path) -> None:
    """Both instances are busy when one of them goes: each request is answered, and no further one waits for it."""
    delay = "parameters { key: 'execute_delay_ms' value { string_value: '700' } }\n"
    model = Model(Repository(tmp_path / "models"), "slow", delay)
    model.write(2)
    with Nereid(tmp_path / "models", EXPLICIT) as server, ThreadPoolExecutor(8) as pool:
        busy = [pool.submit(ask, server, "slow", float(i)) for i in range(4)]
        page = "/v2/models/slow/stats"
        server.process.wait_until(lambda: rawhttp.get(server.http, page).json()["model_stats"][0]["execution_count"] > 0, 30)
        model.write(1)
        assert load(server, "slow").status == 200
        busy += [pool.submit(ask, server, "slow", 9.0)]
        for one in busy:
            one.result()
        assert (count(server, "slow"), answered(server, "slow")) == (1, 5)


def change_under_load(server: Nereid, model: Model, changes: range) -> int:
    """The number of instances goes up and down while clients ask; how many answers they got. All of them were good ones."""
    stop = threading.Event()
    wrong: list[str] = []
    done = [0] * CLIENTS

    def client(me: int) -> None:
        try:
            with rawhttp.Connection(HOST, server.http_port) as connection:
                while not stop.is_set():
                    got = connection.ask("POST", "/v2/models/echo/infer", body(float(me)))
                    if got.status != 200 or got.json()["outputs"][0]["data"] != [float(me)]:
                        wrong.append(f"{got.status} {got.body[:200]!r}")
                    done[me] += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, the test fails with it
            wrong.append(repr(error))

    def all_go_on() -> None:
        before = list(done)
        server.process.wait_until(lambda: wrong != [] or all(now > old for now, old in zip(done, before, strict=True)), 60)

    threads = [threading.Thread(target=client, args=(me,)) for me in range(CLIENTS)]
    for thread in threads:
        thread.start()
    all_go_on()
    for number in changes:
        model.write((2, 5, 1, 3, 8, 4)[number % 6])
        assert load(server, "echo").status == 200
    all_go_on()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    return sum(done)


@pytest.mark.parametrize("more", ["", "parameters { key: 'execute_delay_us' value { string_value: '300' } }\n"], ids=["inline", "threads"])
def test_under_load(tmp_path: Path, more: str) -> None:
    """No request of 64 clients fails or waits for ever while the number goes up and down; what the server keeps of that does not grow."""
    model = Model(Repository(tmp_path / "models"), "echo", more)
    measured = paths.BUILD.name == "release"  # sanitizers keep what was freed
    if measured:
        shutil.copytree(paths.need(paths.SAMPLE_MODELS / "digits"), tmp_path / "models" / "digits")
    with Nereid(tmp_path / "models", EXPLICIT, env=KEEPS_NOTHING) as server:
        got = change_under_load(server, model, range(10))
        server.process.wait_until(lambda: procfs.all_sleep(server.pid), 60)
        settled = procfs.rss_bytes(server.pid)
        got += change_under_load(server, model, range(10, CHANGES))
        assert answered(server, "echo") == got
        if measured:
            server.process.wait_until(lambda: procfs.rss_bytes(server.pid) < settled * GROWTH, 120)
