"""The command line as an operator meets it: what is unknown, wrong or not served ends the start and says why."""

import re
import socket
import subprocess
from pathlib import Path

import pytest
from harness import metrics, paths, rawhttp
from harness.repository import Repository
from harness.servers import Nereid


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [str(paths.nereid_binary()), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def test_help_and_version() -> None:
    for option in ("--help", "-h"):
        shown = _run(option)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "--model-repository <path>" in shown.stdout
        assert "nereid check <path>" in shown.stdout
        assert max(map(len, shown.stdout.splitlines())) <= 100
    assert re.fullmatch(r"nereid \d+\.\d+\.\d+\n", _run("--version").stdout)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_cannot_be_written_is_no_success(option: str) -> None:
    for place in ("/dev/full", "&-"):
        shown = subprocess.run(
            ["sh", "-c", f'exec "$0" "$1" >{place}', str(paths.nereid_binary()), option], stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
        assert (shown.returncode, shown.stderr) == (1, "nereid: the standard output cannot be written\n")


@pytest.mark.reference
def test_every_option_of_the_reference_is_known() -> None:
    """By its own --help; none may be taken for a slip of the hand, and none may be ignored in silence."""
    theirs = subprocess.run(
        [str(paths.reference_root() / "bin" / "tritonserver"), "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    names = set(re.findall(r"^  --([a-z0-9-]+)", theirs.stdout + theirs.stderr, re.MULTILINE)) - {"help"}
    assert len(names) > 75
    shown = set(re.findall(r"^  --([a-z0-9-]+)", _run("--help").stdout, re.MULTILINE))
    assert names - shown == set()
    for name in sorted(names):
        answer = _run(f"--{name}=?", "--model-repository=")
        assert answer.returncode == 1
        assert "unknown option" not in answer.stderr, name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--http-prt=1"], ["unknown option '--http-prt=1'", "did you mean --http-port?"]),
        (["--http-port=many"], ["--http-port", "0 to 65535", "'many'"]),
        (["--allow-vertex-ai=1"], ["environment variable AIP_PREDICT_ROUTE: expected the path of requests", "found ''"]),
        (["--allow-gpu-metrics=x"], ["option --allow-gpu-metrics: expected", "'x'"]),
        (["--trace-config=speed=1"], ["--trace-config", "level, rate, count or mode", "'speed'"]),
        (["--log-file=/nonexistent/log", "--model-repository=/"], ["--log-file", "/nonexistent/log", "No such file"]),
        (["--access-log=/nonexistent/log", "--model-repository=/"], ["--access-log", "/nonexistent/log", "No such file"]),
        ([], ["--model-repository must be specified"]),
        (["--http-address=unix:"], ["option --http-address: expected an address, or unix: and a path of 1 to 107 bytes, found 'unix:'"]),
        (["--grpc-address=unix:/" + "x" * 107], ["option --grpc-address: expected", "1 to 107 bytes"]),
        (["--loop-threads=257"], ["option --loop-threads: expected a number from 0 to 256, found '257'"]),
        (["--http-header-forward-pattern=(", "--model-repository=/"], ["option --http-header-forward-pattern: expected a regular", "'('"]),
        (["--grpc-header-forward-pattern=[", "--model-repository=/"], ["option --grpc-header-forward-pattern: expected a regular", "'['"]),
    ],
)
def test_refusals(arguments: list[str], words: list[str]) -> None:
    answer = _run(*arguments)
    assert answer.returncode == 1
    assert answer.stdout == ""
    for word in words:
        assert word in answer.stderr


@pytest.mark.parametrize("front", ["http", "grpc", "metrics"])
def test_where_it_cannot_listen(front: str, repository: Repository) -> None:
    """The option is named that says where."""
    free = ["--http-port=0", "--grpc-port=0", "--metrics-port=0", f"--model-repository={repository.path}"]
    nowhere = _run(*free, f"--{front}-address=256.0.0.1")
    assert nowhere.returncode == 1
    assert f"option --{front}-address: cannot listen on 256.0.0.1: " in nowhere.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = _run(*free, f"--{front}-address=127.0.0.1", f"--{front}-port={port}")
    assert answer.returncode == 1
    assert f"option --{front}-port: cannot listen on 127.0.0.1:{port}: Address already in use" in answer.stderr


def test_what_nobody_asked_for_is_not_in_the_table(repository: Repository) -> None:
    """As in the reference: models of mode explicit that were not loaded are no models without versions."""
    repository.identity("two")
    (repository.path / "three").mkdir()
    repository.identity("three", versions=())
    options: dict[str, str | list[str]] = {"model-control-mode": "explicit", "load-model": ["one", "three"]}
    with Nereid(repository.path, {**options, "exit-on-error": "false", "strict-readiness": "false"}) as server:
        rows = re.findall(r"^\| (\w+) +\| (\S+) +\| (.*\S) +\|$", server.process.log(), re.MULTILINE)
    rows = rows[rows.index(("Model", "Version", "Status")) :]
    assert rows[1] == ("one", "1", "READY")
    assert [row[:2] for row in rows[2:]] == [("three", "-")]


def test_a_file_of_options(repository: Repository, tmp_path: Path) -> None:
    """The names are those of the command line, which wins."""
    given = tmp_path / "options"
    given.write_text("# all of it\nid = from the file\nallow-cpu-metrics = false\nhttp-port = 1\nlog-info = false\n")
    with Nereid(repository.path, {"config": str(given)}) as server:
        assert rawhttp.get(server.http, "/v2").json()["name"] == "from the file"
        assert not [name for name in metrics.scrape(server.metrics) if name.startswith("nv_cpu_")]
        assert server.process.log() == ""
    given.write_text("id = x\n\nhttp-port = many\n")
    answer = _run(f"--config={given}")
    assert answer.returncode == 1
    assert f"{given}:3: option --http-port: expected a number" in answer.stderr


def test_a_repository_named_twice_is_one(repository: Repository) -> None:
    with Nereid([repository.path, repository.path]) as server:
        assert rawhttp.get(server.http, "/v2/models/one/ready").status == 200


def test_options_that_tune_what_is_not_here_are_told_of_once(repository: Repository) -> None:
    options: dict[str, str | list[str]] = {"http-thread-count": ["16", "32"], "cuda-virtual-address-size": "0:0"}
    with Nereid(repository.path, options) as server:
        found = re.findall(r'^W.*"option --(\S+) does nothing here: ', server.process.log(), re.MULTILINE)
    assert found == ["http-thread-count", "cuda-virtual-address-size"]


def test_deprecated_options_are_warned_of(repository: Repository) -> None:
    with Nereid(repository.path, {"strict-model-config": "false"}) as server:
        assert re.search(r'^W.*"\'--strict-model-config\' has been deprecated!', server.process.log(), re.MULTILINE)


@pytest.mark.parametrize(
    ("http", "grpc", "apart"),
    [
        ("0.0.0.0", "0.0.0.0", False),
        ("localhost", "127.0.0.1", False),
        ("0.0.0.0", "127.0.0.1", False),
        ("127.0.0.1", "::", False),
        ("::ffff:127.0.0.1", "127.0.0.1", False),
        ("", "0.0.0.0", False),
        ("127.0.0.1", "127.0.0.2", True),
        ("0.0.0.0", "::1", True),
    ],
)
def test_two_front_ends_at_one_port_are_refused(http: str, grpc: str, apart: bool) -> None:
    """Where both may share it, the kernel would hand the clients of one to the other."""
    answer = _run(
        "--model-repository=x", "--http-port=9", "--grpc-port=9", "--reuse-http-port=true", "--reuse-grpc-port=true",
        f"--http-address={http}", f"--grpc-address={grpc}", "--metrics-port=10", "--http-header-forward-pattern=(",
    )
    found = "option --http-header-forward-pattern: " if apart else "option --grpc-port: expected a port of its own, found 9, which is that of --http-port"
    assert answer.returncode == 1 and found in answer.stderr, answer.stderr
