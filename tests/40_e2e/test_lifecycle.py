"""The process: its command line, its start, its end."""

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import metrics, rawhttp
from harness.process import ServerFailed
from harness.repository import Repository
from harness.servers import KINDS, Server, listens

Make = Callable[..., Server]
BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> type[Server]:
    return KINDS[request.param]


def test_says_where_it_serves_and_ends_on_sigterm(kind: type[Server], repository: Repository) -> None:
    server = kind(repository.path).start()
    for port in (server.http_port, server.grpc_port, server.metrics_port):
        assert str(port) in server.process.log()
    server.stop()


def test_ends_at_once_when_idle(repository: Repository) -> None:
    """The reference looks every two seconds whether it may. What waits for a clock takes so long whenever it is tried, what waits for
    the machine does not."""

    def took() -> float:
        server = KINDS["nereid"](repository.path).start()
        assert rawhttp.get(server.http, "/v2").status == 200
        return server.stop(status=0)

    assert any(took() < 1.5 for _ in range(10))


def test_empty_repository(kind: type[Server], tmp_path: Path) -> None:
    """MR-14, RX-16: starts and serves nothing."""
    with kind(Repository(tmp_path / "nothing").path) as server:
        assert rawhttp.post(server.http, "/v2/repository/index", b"").json() == []


def test_two_repositories(kind: type[Server], repository: Repository, tmp_path: Path) -> None:
    """MR-01, MR-05: the models of all repositories are served together."""
    second = Repository(tmp_path / "second")
    second.identity("two")
    with kind([repository.path, second.path]) as server:
        for name in ("one", "two"):
            assert rawhttp.get(server.http, f"/v2/models/{name}/ready").status == 200


@pytest.mark.parametrize("front", ["grpc", "metrics"])
def test_a_front_end_can_be_off(kind: type[Server], repository: Repository, front: str) -> None:
    server = kind(repository.path, {f"allow-{front}": "false"}, wait_ready=False).start()
    try:
        server.process.wait_until(lambda: listens(server.http_port), 180)
        server.process.wait_until(lambda: rawhttp.get(server.http, "/v2/health/ready").status == 200, 180)
        assert not listens(server.grpc_port if front == "grpc" else server.metrics_port)
        server.stop()
    finally:
        server.kill()


def test_http_can_be_off(kind: type[Server], repository: Repository) -> None:
    server = kind(repository.path, {"allow-http": "false"}, wait_ready=False).start()
    try:
        server.process.wait_until(lambda: listens(server.metrics_port), 180)
        assert metrics.scrape(server.metrics)
        assert not listens(server.http_port)
        server.stop()
    finally:
        server.kill()


@pytest.mark.parametrize(
    "options",
    [{"no-such-option": "1"}, {"http-port": "many"}, {"model-control-mode": "sometimes"}],
    ids=["unknown option", "not a number", "not a mode"],
)
def test_wrong_command_lines_are_refused(
    kind: type[Server], repository: Repository, options: dict[str, str]
) -> None:
    server = kind(repository.path, options, wait_ready=False).start()
    try:
        server.process.ends(1)
    finally:
        server.kill()


def test_a_missing_repository_is_refused(kind: type[Server], tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="(?s)ended with status 1 before it was ready.*nowhere"):
        kind(tmp_path / "nowhere").start()


BROKEN = 'name: "broken"\nbackend: "identity"\nmax_batch_size: 0\nno_such_field: 1\n'


def test_a_broken_model_ends_the_start(kind: type[Server], repository: Repository) -> None:
    """--exit-on-error is true when it is not given."""
    repository.model("broken", BROKEN)
    with pytest.raises(ServerFailed, match="(?s)ended with status 1 before it was ready.*no_such_field"):
        kind(repository.path).start()


def test_a_broken_model_is_told_of(kind: type[Server], repository: Repository) -> None:
    """MC-08: With --exit-on-error=false the others are served, the index says why. One whose configuration cannot be read holds up no
    readiness."""
    repository.model("misnamed", 'name: "other"\nbackend: "identity"\n')
    server = kind(repository.path, {"exit-on-error": "false"}, wait_ready=False).start()
    try:
        server.process.wait_until(
            lambda: listens(server.http_port) and rawhttp.get(server.http, "/v2/health/ready").status == 200,
            180,
        )
        assert rawhttp.get(server.http, "/v2/models/one/ready").status == 200
        assert rawhttp.get(server.http, "/v2/models/misnamed/ready").status == 400
        rows = {row["name"]: row for row in rawhttp.post(server.http, "/v2/repository/index", b"").json()}
        assert rows["one"]["state"] == "READY"
        assert rows["misnamed"].get("state") != "READY"
        server.stop(status=None)
    finally:
        server.kill()


def test_verbose_log_says_more(kind: type[Server], repository: Repository) -> None:
    sizes = []
    for level in ("0", "1"):
        with kind(repository.path, {"log-verbose": level}) as server:
            rawhttp.get(server.http, "/v2/models/one")
            sizes.append(len(server.process.log()))
    assert sizes[1] > sizes[0]
