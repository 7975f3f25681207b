"""Models come, change and go while clients use them: nothing fails, nothing is wrong, memory stays."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from harness import metrics, paths, procfs, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server
from models import onnx_models
from tritonclient.grpc import service_pb2 as pb
from witness import Board, backend, board

EXPLICIT = {"model-control-mode": "explicit"}
ECHO_CLIENTS = Path(__file__).with_name("echo_clients.py")
TOLD_RELOADS = 60  # whose answers tell which load they are of
ANSWERS = 128  # of each of them, at least: two of each client
REALTIME_COARSE = 5  # what the system stamps files with
# So much memory may grow after the tenth reload. What requests and loads need at one time follows from how many of them meet, some hundred
# KB on a busy machine, so there is a real network beside, which is served; a loss of 200 bytes in each reload is seen. What the allocator
# would keep for each thread, to give it out again, is left out. Of the last reloads the median counts: now and then a version is on its
# way back to the system. Sanitizers keep what was freed: there it is not measured.
GROWTH = 1.02
BESIDE = 2300  # rows and columns of the network's weights: 20 MiB
MEASURED = paths.BUILD.name == "release"
RELOADS = 4000 if MEASURED else 250
KEEPS_NOTHING = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def post(server: Server, path: str, body: bytes = b"") -> rawhttp.Answer:
    return rawhttp.post(server.http, f"/v2/repository/{path}", body)


def rows_of(server: Server, model: str) -> list[dict[str, str]]:
    return [row for row in post(server, "index").json() if row["name"] == model]


def states(server: Server, model: str) -> dict[str, str]:
    return {row.get("version", ""): row.get("state", "") for row in rows_of(server, model)}


class Clients:
    """Those of echo_clients.py, which are told of loads."""

    def __init__(self, process: subprocess.Popen[bytes]):
        self.process = process

    def _tell(self, word: str, *numbers: int) -> None:
        """Waits until it was heard."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(" ".join([word, *map(str, numbers)]).encode() + b"\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"%d\n" % numbers[0]

    def load(self, number: int) -> None:
        """It begins."""
        self._tell("load", number)

    def loaded(self, number: int, answers: int) -> None:
        """It has ended: waits for so many answers of it to what is asked from now on."""
        self._tell("loaded", number, answers)


@contextmanager
def under_load(server: Server, model: str) -> Iterator[Clients]:
    """Clients ask for an echo again and again, from when all of them have been answered once; nothing they get is wrong."""
    argv = [sys.executable, str(ECHO_CLIENTS), server.http, server.grpc, model]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as clients:
        assert clients.stdin and clients.stdout
        try:
            assert clients.stdout.readline() == b"\n"
            yield Clients(clients)
        finally:
            clients.stdin.close()
            wrong = clients.stdout.read()
    assert json.loads(wrong) == []


class Changes:
    """What can happen to a model that serves on: each is made on the disk, or in a request."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.newest = 1
        self.text = (folder / "config.pbtxt").read_text()

    def next_version(self) -> bytes:
        """A new version directory; the one before the last goes."""
        self.newest += 1
        (self.folder / str(self.newest)).mkdir()
        shutil.rmtree(self.folder / str(self.newest - 2), ignore_errors=True)
        return b""

    def other_config(self) -> bytes:
        """The same configuration in other words: every version is loaded again."""
        (self.folder / "config.pbtxt").write_text(f"{self.text}\n# {os.urandom(8).hex()}\n")
        return b""

    def other_file(self) -> bytes:
        (self.folder / str(self.newest) / "weights").write_bytes(os.urandom(64))
        return b""

    def override(self) -> bytes:
        tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
        config = {"backend": "identity", "input": [{"name": "INPUT0"} | tensor], "output": [{"name": "OUTPUT0"} | tensor]}
        files = {f"file:{self.newest}/weights": "AAAA", f"file:{self.newest + 1}/weights": ""}
        return json.dumps({"parameters": {"config": json.dumps(config)} | files}).encode()


def test_reloads_under_load(tmp_path: Path) -> None:
    """RX-23, RX-32: no request fails, none is answered wrongly, memory does not grow."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    changes = Changes(Repository(tmp_path / "models").identity("echo"))
    kinds: list[Callable[[], bytes]] = [
        changes.next_version,
        changes.other_config,
        changes.other_file,
        changes.override,
    ]
    sizes = []
    if MEASURED:
        onnx_models.save(onnx_models.dense(BESIDE, BESIDE), tmp_path / "models" / "beside")
    with Nereid(tmp_path / "models", EXPLICIT | {"load-model": "*"}, env=KEEPS_NOTHING | {"TMPDIR": str(scratch)}) as server:
        with under_load(server, "echo"):
            for number in range(RELOADS):
                answer = post(server, "models/echo/load", kinds[number % len(kinds)]())
                assert answer.status == 200, answer.body
                sizes.append(procfs.rss_bytes(server.pid))
                assert rawhttp.get(server.http, "/v2/health/ready").status == 200
        assert sum(state == "READY" for state in states(server, "echo").values()) == 1
        server.process.wait_until(lambda: len(list(scratch.iterdir())) <= 1, 30)
    first, last = median(sizes[10:20]), median(sizes[-50:])
    assert not MEASURED or last < first * GROWTH, (first, last)


class Numbered:
    """A model that adds the number of its newest load to what it gets, and the ways in which it becomes the next one."""

    def __init__(self, path: Path):
        self.folder = path / "numbered"
        self.version, self.file = 1, "model.onnx"
        self._put(0)
        self._configure()

    def _built(self, number: int) -> bytes:
        return onnx_models.adds(number).SerializeToString()

    def _put(self, number: int) -> None:
        place = self.folder / str(self.version)
        place.mkdir(parents=True, exist_ok=True)
        (place / "new").write_bytes(self._built(number))
        (place / "new").rename(place / self.file)

    def _configure(self) -> None:
        text = f'platform: "onnxruntime_onnx"\nmax_batch_size: 0\ndefault_model_filename: "{self.file}"\n'
        (self.folder / "config.pbtxt").write_text(text)

    def next_version(self, number: int) -> bytes:
        self.version += 1
        self._put(number)
        shutil.rmtree(self.folder / str(self.version - 2), ignore_errors=True)
        return b""

    def other_config(self, number: int) -> bytes:
        """It names another file of the same version."""
        self.file = f"other{number}.onnx"
        self._put(number)
        self._configure()
        return b""

    def other_file(self, number: int) -> bytes:
        self._put(number)
        return b""

    def override(self, number: int) -> bytes:
        """The client brings the configuration and the file."""
        config = {"platform": "onnxruntime_onnx", "max_batch_size": 0}
        file = base64.b64encode(self._built(number)).decode()
        return json.dumps({"parameters": {"config": json.dumps(config), "file:1/model.onnx": file}}).encode()


@pytest.mark.onnx
def test_each_load_is_the_one_that_answers(tmp_path: Path) -> None:
    """RX-23, RX-31: what is asked after a load was answered is answered by it, as often as wanted, and by none before it; what is
    asked while it runs by it or by the one before."""
    made = Numbered(tmp_path)
    kinds = [made.next_version, made.other_config, made.other_file, made.override]
    with Nereid(tmp_path, EXPLICIT | {"load-model": "numbered"}) as server, under_load(server, "numbered") as clients:
        for number in range(1, TOLD_RELOADS + 1):
            body = kinds[number % len(kinds)](number)
            clients.load(number)
            answer = post(server, "models/numbered/load", body)
            assert answer.status == 200, answer.body
            clients.loaded(number, ANSWERS)


def test_unload_gives_memory_back(tmp_path: Path) -> None:
    """Measured with models of a few thousand instances in all."""
    repository = Repository(tmp_path / "models")
    for number in range(20):
        repository.identity(f"m{number}", extra="instance_group [{ count: 100 }]")
    with Nereid(repository.path, EXPLICIT) as server:
        names = [f"m{number}" for number in range(20)]

        def all_of(action: str) -> None:
            for name in names:
                assert post(server, f"models/{name}/{action}").status == 200

        def gone() -> bool:
            return all(set(states(server, name).values()) == {"UNAVAILABLE"} for name in names)

        empty = procfs.anonymous_bytes(server.pid)
        all_of("load")
        all_of("unload")
        server.process.wait_until(gone, 60)
        before = procfs.anonymous_bytes(server.pid)
        all_of("load")
        full = procfs.anonymous_bytes(server.pid)
        all_of("unload")
        server.process.wait_until(gone, 60)
        assert full > empty
        if paths.BUILD.name == "release":
            server.process.wait_until(lambda: procfs.anonymous_bytes(server.pid) < before + (1 << 20), 60)


def test_a_failed_reload_leaves_the_old_version(tmp_path: Path) -> None:
    folder = Repository(tmp_path / "models").identity("echo")
    good = (folder / "config.pbtxt").read_text()
    with (
        Nereid(tmp_path / "models", EXPLICIT | {"load-model": "echo"}) as server,
        under_load(server, "echo"),
    ):
        for bad, status in (("nonsense", 500), (good.replace("identity", "nowhere"), 400), (good + "max_queue_size: 1", 500)):
            (folder / "config.pbtxt").write_text(bad)
            assert post(server, "models/echo/load").status == status
            assert states(server, "echo") == {"1": "READY"}
        (folder / "config.pbtxt").write_text(good)
        (folder / "2").mkdir()
        (folder / "2" / "libtriton_identity.so").write_text("no library")
        answer = post(server, "models/echo/load")
        assert answer.status == 400
        assert states(server, "echo") == {"1": "READY", "2": "UNAVAILABLE"}
        shutil.rmtree(folder)
        assert post(server, "models/echo/load").status == 500
        assert states(server, "echo")["1"] == "READY"


def test_two_loads_of_one_model(tmp_path: Path) -> None:
    """They run one after the other; the second finds nothing to do."""
    Repository(tmp_path / "models").identity("echo")
    with Nereid(tmp_path / "models", EXPLICIT) as server, ThreadPoolExecutor(16) as pool:
        for _ in range(10):
            asked = [pool.submit(post, server, "models/echo/load") for _ in range(16)]
            assert [one.result().status for one in asked] == [200] * 16
            assert states(server, "echo") == {"1": "READY"}
            assert post(server, "models/echo/unload").status == 200
        assert server.process.log().count("successfully loaded 'echo' version 1") == 10


def test_loads_and_unloads_at_random(tmp_path: Path) -> None:
    """Every operation is answered, and what was asked for last holds."""
    repository = Repository(tmp_path / "models")
    names = [f"m{number}" for number in range(6)]
    for name in names:
        repository.identity(name, versions=(1, 2), extra="version_policy { all { } }")

    def work(server: Server, seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(40):
            action = "load" if random.random() < 0.6 else "unload"
            assert post(server, f"models/{names[random.integers(6)]}/{action}").status == 200
            assert post(server, "index").status == 200

    with Nereid(repository.path, EXPLICIT) as server, ThreadPoolExecutor(8) as pool:
        for one in [pool.submit(work, server, seed) for seed in range(8)]:
            one.result()
        for name in names:
            assert post(server, f"models/{name}/load").status == 200
            assert states(server, name) == {"1": "READY", "2": "READY"}


def test_unload_during_a_load(board: Board, backend: Path) -> None:
    """It runs after it; nothing else waits meanwhile."""
    board.model("slow", kept_out=True)
    board.model("quick")
    with Nereid(board.repository.path, EXPLICIT | {"backend-directory": str(backend)}) as server, ThreadPoolExecutor(2) as pool:
        loading = pool.submit(post, server, "models/slow/load")
        server.process.wait_until(lambda: states(server, "slow") == {"1": "LOADING"}, 30)
        assert rawhttp.get(server.http, "/v2/health/ready").status == 400
        unloading = pool.submit(post, server, "models/slow/unload")
        assert post(server, "models/quick/load").status == 200
        assert post(server, "models/quick/unload").status == 200
        assert not loading.done() and not unloading.done()
        assert rawhttp.get(server.http, "/v2/models/slow/versions/1").status == 503
        board.open_door()
        assert loading.result().status == 200
        assert unloading.result().status == 200
        server.process.wait_until(lambda: states(server, "slow") == {"1": "UNAVAILABLE"}, 30)


def test_stop_during_a_load(board: Board, backend: Path) -> None:
    """What runs ends and is answered; what waits is refused; clients that left do no harm."""
    board.model("slow", kept_out=True)
    server = Nereid(board.repository.path, EXPLICIT | {"backend-directory": str(backend)}).start()
    with ThreadPoolExecutor(3) as pool:
        gone = rawhttp.Connection(HOST, server.http_port)
        gone.send(rawhttp.head("POST", "/v2/repository/models/slow/load", body=b""))
        server.process.wait_until(lambda: states(server, "slow") == {"1": "LOADING"}, 30)
        waiting = [pool.submit(post, server, f"models/slow/{action}") for action in ("load", "unload")]
        server.process.wait_for(lambda: metrics.scrape(server.metrics)["nereid_requests_in_flight"].value(protocol="http"), 3)
        with rawgrpc.Channel(server.grpc) as channel:
            request = pb.RepositoryModelLoadRequest(model_name="slow")
            assert channel.call("RepositoryModelLoad", request, timeout=0.2).code == "DEADLINE_EXCEEDED"
        gone.close()
        server.process.wait_until(lambda: states(server, "slow") == {"1": "LOADING"}, 30)
        server.process.terminate()
        server.process.wait_until(lambda: "stopping" in server.process.log(), 30)
        board.open_door()
        server.process.ends(0)
        assert [(each.status, each.json()["error"]) for each in (one.result() for one in waiting)] == [(503, "Server exiting")] * 2


@pytest.mark.parametrize("secs", ["1"])
def test_poll(tmp_path: Path, secs: str) -> None:
    """New models and versions are loaded, changed ones again, those that are gone go; what fails leaves the old one."""
    repository = Repository(tmp_path / "models")
    folder = repository.identity("echo")
    options = {"model-control-mode": "poll", "repository-poll-secs": secs}

    def becomes(model: str, expected: dict[str, str]) -> None:
        server.process.wait_until(lambda: states(server, model) == expected, 30)

    with Nereid(repository.path, options) as server, under_load(server, "echo"):
        becomes("echo", {"1": "READY"})
        repository.identity("late")
        becomes("late", {"1": "READY"})
        (folder / "2").mkdir()
        becomes("echo", {"1": "UNAVAILABLE", "2": "READY"})
        shutil.rmtree(folder / "1")
        text = (folder / "config.pbtxt").read_text()
        (folder / "config.pbtxt").write_text("nonsense")
        server.process.wait_until(lambda: "failed to load 'echo'" in server.process.log(), 30)
        assert states(server, "echo")["2"] == "READY"
        (folder / "config.pbtxt").write_text(text)
        (folder / "3").mkdir()
        server.process.wait_until(lambda: states(server, "echo").get("3") == "READY", 30)
        shutil.rmtree(repository.path / "late")
        becomes("late", {})
        assert rawhttp.get(server.http, "/v2/health/ready").status == 200


def test_poll_finds_a_name_twice(tmp_path: Path) -> None:
    """What serves stays; when the second one is gone again, changes count again."""
    first, second = Repository(tmp_path / "first"), Repository(tmp_path / "second")
    folder = first.identity("echo")
    second.identity("other")
    options = {"model-control-mode": "poll", "repository-poll-secs": "1"}
    with Nereid([first.path, second.path], options) as server:
        second.identity("echo", dims=(3,))
        server.process.wait_until(lambda: "two or more repositories" in server.process.log(), 30)
        assert states(server, "echo") == {"1": "READY"}
        shutil.rmtree(second.path / "echo")
        (folder / "2").mkdir()
        server.process.wait_until(lambda: states(server, "echo").get("2") == "READY", 30)


def test_retries(tmp_path: Path) -> None:
    folder = Repository(tmp_path / "models").identity("echo")
    (folder / "1" / "libtriton_identity.so").write_text("no library")
    options = EXPLICIT | {"model-load-retry-count": "3"}
    with Nereid(tmp_path / "models", options) as server:
        assert post(server, "models/echo/load").status == 400
        assert server.process.log().count("failed to load 'echo' version 1") == 4


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.reference] * (kind == "reference")) for kind in KINDS])
def test_what_a_load_keeps(kind: str, tmp_path: Path) -> None:
    """What serves goes on, with its statistics, where a configuration means the same or only instances change, and where a load without
    one follows one that gave a configuration."""
    made = Repository(tmp_path / "models")
    folder = made.identity("m", max_batch_size=4, extra="instance_group { count: 1 kind: KIND_CPU }\n")
    config = folder / "config.pbtxt"
    with KINDS[kind](made.path, {"model-control-mode": "explicit"}) as server:

        def load(given: dict[str, Any] | None = None) -> tuple[int, int, int]:
            """The batch size, the instances and the requests that are counted, after a request more than before."""
            body = {"parameters": {"config": json.dumps(given)}} if given else {}
            answer = rawhttp.post(server.http, "/v2/repository/models/m/load", body)
            assert answer.status == 200, answer
            asked = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
            assert rawhttp.post(server.http, "/v2/models/m/infer", asked).status == 200
            shown = rawhttp.get(server.http, "/v2/models/m/config").json()
            told = server.statistics("m")
            return (
                shown["max_batch_size"],
                sum(group["count"] for group in shown["instance_group"]),
                told["inference_stats"]["success"]["count"],
            )

        def later() -> None:
            """Until a file that is written is newer than all that happened: the system's clock of files goes in steps."""
            now = time.time_ns()
            while time.clock_gettime_ns(REALTIME_COARSE) <= now:
                pass

        assert load() == (4, 1, 1)
        given = rawhttp.get(server.http, "/v2/models/m/config").json()
        assert load(given) == (4, 1, 2), "as the server says it"
        given["instance_group"][0]["count"] = 3
        assert load(given) == (4, 3, 3), "only instances"
        tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
        short: dict[str, Any] = {
            "backend": "identity",
            "max_batch_size": 4,
            "input": [{"name": "INPUT0", **tensor}],
            "output": [{"name": "OUTPUT0", **tensor}],
            "instance_group": [{"count": 2, "kind": "KIND_CPU"}],
        }
        short["name"] = "m"
        assert load(short) == (4, 2, 4), "in other words"
        assert load() == (4, 2, 5), "nothing changed since"
        short["max_batch_size"] = 8
        assert load(short) == (8, 2, 1)
        assert load() == (8, 2, 2), "nothing changed since"
        assert load(short) == (8, 2, 3)
        later()
        os.utime(config)
        assert load() == (4, 1, 1), "the directory changed"
        later()
        os.utime(config)
        assert load() == (4, 1, 2), "the same, written anew"
        later()
        config.write_text(config.read_text() + "# a comment\n")
        assert load() == (4, 1, 3)
        short["max_batch_size"] = 4
        assert load(short) == (4, 2, 4)
        later()
        (folder / "2").mkdir()
        assert load() == (4, 1, 1), "a new version: the directory's own configuration"


@pytest.mark.onnx
def test_a_load_that_fails_tells_of_no_version_as_loaded(tmp_path: Path) -> None:
    """The first of its versions can be loaded, the second cannot: none is served."""
    made = Repository(tmp_path / "models")
    folder = made.model("m", 'backend: "onnxruntime"\nversion_policy { all { } }\n')
    whole = paths.need(paths.ROOT / "build" / "models" / "digits" / "1" / "model.onnx").read_bytes()
    for version, content in (("1", whole), ("2", whole[:3000]), ("3", whole)):
        (folder / version).mkdir(exist_ok=True)
        (folder / version / "model.onnx").write_bytes(content)
    with Nereid(made.path, {"model-control-mode": "explicit"}) as server:
        assert rawhttp.post(server.http, "/v2/repository/models/m/load", {}).status == 400
        assert "successfully loaded" not in server.process.log()
        (folder / "2" / "model.onnx").write_bytes(whole)
        assert rawhttp.post(server.http, "/v2/repository/models/m/load", {}).status == 200
        assert [server.process.log().count(f"successfully loaded 'm' version {version}") for version in (1, 2, 3)] == [1, 1, 1]
