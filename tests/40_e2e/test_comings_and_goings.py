"""Versions and models that come and go, hundreds of them: what a client is shown, and what the server keeps, stays bounded."""

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import paths, procfs, rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server

ROUNDS = 400
OLD = 64  # versions that are gone of which a model tells
MORE_THAN_OLD = OLD + 16  # so many the reference goes through: it does not live through hundreds
NAMES = 256  # names that once meant a model of which a server tells
MORE = 64  # models that are gone, besides as many as there are, that may be kept for a while
SANITIZED = any(mark in paths.nereid_binary().read_bytes() for mark in (b"__asan_init", b"__tsan_init"))
EXPLICIT: dict[str, str | list[str]] = {"model-control-mode": "explicit", "log-info": "false", "exit-on-error": "false"}


def index(server: Server) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = rawhttp.post(server.http, "/v2/repository/index", b"{}").json()
    return rows


def settled(server: Server) -> list[dict[str, Any]]:
    """The index once nothing is on its way."""
    server.process.wait_until(lambda: all(row.get("state") not in ("LOADING", "UNLOADING") for row in index(server)), 60)
    return index(server)


def states(rows: list[dict[str, Any]], name: str) -> dict[int, str]:
    return {int(row["version"]): row["state"] for row in rows if row["name"] == name and "version" in row}


def load(server: Server, name: str, parameters: dict[str, Any] | None = None) -> None:
    server.rest()  # the version before goes by this
    got = rawhttp.post(server.http, f"/v2/repository/models/{name}/load", {"parameters": parameters} if parameters else {})
    assert got.status == 200, got.body


def unload(server: Server, name: str) -> None:
    server.rest()
    got = rawhttp.post(server.http, f"/v2/repository/models/{name}/unload", {})
    assert got.status == 200, got.body


def unknown(server: Server, name: str, status: int = 404) -> str:
    got = rawhttp.post(server.http, f"/v2/models/{name}/infer", b"{}")
    assert got.status == status, got.body
    return str(got.json()["error"])


def pages(server: Server) -> int:
    """Lines of the page of metrics, and rows of the statistics, that a server shows."""
    stats = rawhttp.get(server.http, "/v2/models/stats").json()["model_stats"]
    return len(stats) + len(rawhttp.get(server.metrics, "/metrics").body.splitlines())


class Growth:
    """What a server keeps after the first rounds is no less than what it keeps after all of them. Pages of its files come and go as the machine likes, and
    so do threads that load and retire models: they are there for a second behind the last work."""

    def __init__(self, server: Server):
        self.server = server
        self.memory, self.rows = self._anonymous_bytes(), pages(server)

    def _anonymous_bytes(self) -> int:
        self.server.process.wait_until(lambda: not {"loader", "retirer"} & set(procfs.names_of_threads(self.server.pid)), 60)
        return procfs.anonymous_bytes(self.server.pid)

    def check(self) -> None:
        assert pages(self.server) <= self.rows + 20
        if not SANITIZED:  # which keep what was freed
            grown = self._anonymous_bytes() - self.memory
            assert grown <= 1 << 20, f"{grown >> 10} KiB more than after the first rounds"


def serving(kind: str, repository: Repository, options: Mapping[str, str | list[str]]) -> Server:
    """With one network thread, and one arena of malloc: others would keep memory of their own from the moment at which the machine is busy enough for them."""
    if kind != "nereid":
        return KINDS[kind](repository.path, options)
    return Nereid(repository.path, {**options, "loop-threads": "1"}, env={"MALLOC_ARENA_MAX": "1"})


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "models")


def _next_version(repository: Repository, number: int) -> None:
    (repository.path / "one" / str(number)).mkdir()
    shutil.rmtree(repository.path / "one" / str(number - 1))


@pytest.mark.reference
def test_versions_in_mode_explicit(repository: Repository) -> None:
    """Each load brings the next version and takes the one before: both servers tell of the last ones the same."""
    repository.identity("one")
    servers: list[Server] = [serving(kind, repository, EXPLICIT | {"load-model": "one"}) for kind in KINDS]
    with servers[0] as ours, servers[1] as theirs:
        growth = None
        for number in range(2, ROUNDS + 2):
            _next_version(repository, number)
            if number == ROUNDS + 1:
                settled(ours)  # a load counts what is gone, not what is on its way
            for server in servers if number > ROUNDS - MORE_THAN_OLD else servers[:1]:
                load(server, "one")
            if number == 100:
                settled(ours)
                growth = Growth(ours)
        shown, reference = (states(settled(server), "one") for server in servers)
        assert len(reference) > len(shown)  # all that there were
        assert len(shown) == OLD + 2 and max(shown) == ROUNDS + 1  # what serves, and what went when it came
        assert shown == {number: state for number, state in reference.items() if number in shown}
        assert min(shown) == max(shown) - len(shown) + 1  # the latest
        assert growth is not None
        growth.check()


@pytest.mark.reference
def test_models_in_mode_explicit(repository: Repository) -> None:
    """Each is loaded, unloaded and removed, and nobody asks for the index meanwhile; both servers tell of the last ones the same."""
    repository.identity("stays")
    ours, reference_server = (serving(kind, repository, EXPLICIT | {"load-model": "stays"}) for kind in KINDS)
    with ours:
        growth = None
        for number in range(ROUNDS):
            folder = repository.identity(f"m{number}")
            load(ours, f"m{number}")
            unload(ours, f"m{number}")
            shutil.rmtree(folder)
            if number == 150:
                growth = Growth(ours)
        # Which are known is seen without an index: a model that is forgotten has another answer than one that is unloaded.
        said = [unknown(ours, f"m{number}") for number in range(ROUNDS)]
        kept = [text for text in said if "is not found" not in text]
        assert len(kept) <= 2 + 2 * MORE, len(kept)
        assert growth is not None
        growth.check()
        with reference_server:  # it does not live through hundreds of them
            folder = repository.identity("last")
            for server in (ours, reference_server):
                load(server, "last")
                unload(server, "last")
                settled(server)
            shutil.rmtree(folder)
            shown, reference = (settled(server) for server in (ours, reference_server))
        assert shown == reference == [{"name": "stays", "version": "1", "state": "READY"}]
        assert all("is not found" in unknown(ours, f"m{number}") for number in range(ROUNDS))


def _poll(server: Server, wanted: dict[int, str], name: str) -> None:
    server.process.wait_until(lambda: {n: s for n, s in states(index(server), name).items() if s == "READY"} == wanted, 60)


@pytest.mark.parametrize(
    ("kinds", "turns", "models"),
    [
        pytest.param(["nereid"], 4, ROUNDS // 4, id="many"),
        pytest.param(["nereid", "reference"], 1, 3, id="few", marks=pytest.mark.reference),
    ],
)
def test_models_and_versions_in_mode_poll(repository: Repository, kinds: list[str], turns: int, models: int) -> None:
    """Many at a time, since each look takes a second to come; few of them beside the reference, which does not live through hundreds."""
    repository.identity("one")
    options: dict[str, str | list[str]] = {
        "model-control-mode": "poll", "repository-poll-secs": "1", "log-info": "false", "exit-on-error": "false", "strict-readiness": "false"
    }
    with contextlib.ExitStack() as stack:
        servers: list[Server] = [stack.enter_context(serving(kind, repository, options)) for kind in kinds]
        growth = None
        for turn in range(turns):
            names = [f"t{turn}_{number}" for number in range(models)]
            _next_version(repository, turn + 2)
            folders = [repository.identity(name) for name in names]
            for server in servers:
                _poll(server, {turn + 2: "READY"}, "one")
                _poll(server, {1: "READY"}, names[-1])
            for folder in folders:
                shutil.rmtree(folder)
            for server in servers:
                server.process.wait_until(lambda server=server: {row["name"] for row in index(server)} == {"one"}, 60)  # type: ignore[misc]
            if turn == 1:
                settled(servers[0])
                growth = Growth(servers[0])
        shown = [states(settled(server), "one") for server in servers]
        assert shown[0] == shown[-1]
        assert all("is not found" in unknown(servers[0], f"t{turn}_{number}") for turn in range(turns) for number in range(0, models, 10))
        if growth:
            growth.check()


@pytest.mark.reference
def test_directories_in_mode_none(repository: Repository) -> None:
    """Nothing is loaded or unloaded after the start; the index goes by the directories that there are."""
    repository.identity("one")
    servers: list[Server] = [serving(kind, repository, {"log-info": "false"}) for kind in KINDS]
    with servers[0] as ours, servers[1]:
        growth = None
        for turn in range(8):
            folders = [repository.identity(f"t{turn}_{number}") for number in range(ROUNDS // 8)]
            shown, reference = (index(server) for server in servers)
            assert sorted(map(json.dumps, shown)) == sorted(map(json.dumps, reference)) and len(shown) == len(folders) + 1
            for folder in folders:
                shutil.rmtree(folder)
            if turn == 3:
                growth = Growth(ours)
        assert index(ours) == index(servers[1]) == [{"name": "one", "version": "1", "state": "READY"}]
        assert growth is not None
        growth.check()


@pytest.fixture
def apart(repository: Repository) -> Iterator[Server]:
    with serving("nereid", repository, EXPLICIT | {"model-namespacing": "true"}) as server:
        yield server


def test_names_that_once_meant_a_model(apart: Server, repository: Repository) -> None:
    """The last 256 are told of in the reference's words, the others are as if they had never been."""
    count = NAMES + 200
    growth = None
    for number in range(count):
        folder = repository.identity(f"m{number}")
        load(apart, f"m{number}")
        unload(apart, f"m{number}")
        shutil.rmtree(folder)
        # The index gives up what is not there any more, but a version may go a moment after the answer to who unloads it.
        apart.process.wait_until(lambda: not index(apart), 60)
        if number == NAMES + 100:
            growth = Growth(apart)
    for number in range(count):
        if number < count - NAMES:
            assert unknown(apart, f"m{number}", 400) == f"Request for unknown model: 'm{number}' is not found"
        else:
            assert unknown(apart, f"m{number}") == f"Identifier of model 'm{number}' is not found in global map"
    assert growth is not None
    growth.check()
