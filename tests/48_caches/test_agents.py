"""Repository agents: our checksum agent and a probe that writes down what it hears, in both servers."""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cache_asks as asks
import pytest
from conftest import extensions
from harness import rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Server

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
WITHIN = 120  # seconds


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "models")


@pytest.fixture
def agents(compiled: Callable[..., Path]) -> Path:
    return compiled("probe_agent", "libtritonrepoagent", "probe")


def serve(kind: str, repository: Repository, agents: Path, env: dict[str, str] | None = None, **more: Any) -> Server:
    options = {"repoagent-directory": str(agents), "model-control-mode": "explicit", "exit-on-error": "false"}
    return KINDS[kind](repository.path, {**options, **{k.replace("_", "-"): v for k, v in more.items()}}, env)


def agent(name: str, **parameters: str) -> str:
    pairs = "".join(f'parameters {{ key: "{key}" value: "{value}" }} ' for key, value in parameters.items())
    return f'agents {{ name: "{name}" {pairs}}}\n'


def add(repository: Repository, name: str, *agents_: str, versions: tuple[int, ...] = (1,)) -> Path:
    return repository.identity(name, extra=f"model_repository_agents {{ {''.join(agents_)} }}\n", versions=versions)


def ask(server: Server, what: str, model: str, expected: int = 200) -> str:
    if what == "unload":
        server.rest()
    answer = rawhttp.post(server.http, f"/v2/repository/models/{model}/{what}", b"{}")
    assert answer.status == expected, answer.body
    return answer.body.decode()


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def wait_for(server: Server, log: Path, expected: list[str]) -> None:
    """The last calls come after the answer: from the thread that lets the versions go."""
    try:
        server.process.wait_until(lambda: lines(log) == expected, WITHIN)
    except AssertionError:
        assert lines(log) == expected
        raise


# What the agents hear


def test_life_of_a_model(kind: str, repository: Repository, agents: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    add(repository, "model", agent("probe", log=str(log)), versions=(1, 2))
    with serve(kind, repository, agents) as server:
        ask(server, "load", "model")
        loaded = ["MODEL_INITIALIZE", "LOAD", "LOAD_COMPLETE"]
        assert lines(log) == loaded
        ask(server, "load", "model")
        assert lines(log) == loaded, "nothing changed: nobody is asked"
        assert asks.infer(server, "model", asks.tensor([1])) == {"OUTPUT0": ([1], [1])}
        ask(server, "unload", "model")
        wait_for(server, log, [*loaded, "UNLOAD", "UNLOAD_COMPLETE", "MODEL_FINALIZE"])


def test_the_agent_itself_lives_as_long_as_its_models(
    kind: str, repository: Repository, agents: Path, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    for name in ("one", "two"):
        add(repository, name, agent("probe"))
    with serve(kind, repository, agents, {"PROBE_AGENT_LOG": str(log)}) as server:
        for name in ("one", "two"):
            ask(server, "load", name)
        ask(server, "unload", "one")
        assert lines(log) == ["INITIALIZE"]
        ask(server, "unload", "two")
        wait_for(server, log, ["INITIALIZE", "FINALIZE"])
        ask(server, "load", "one")
        assert lines(log) == ["INITIALIZE", "FINALIZE", "INITIALIZE"]
        server.stop()
    assert lines(log) == ["INITIALIZE", "FINALIZE"] * 2


def test_the_table_of_agents(kind: str, repository: Repository, agents: Path) -> None:
    """Where the server has started it says which agents it has, and where from, above the backends."""
    add(repository, "model", agent("probe"))
    with serve(kind, repository, agents, **{"load-model": "model"}) as server:
        log = server.process.log()
    rows = re.search(r"^\| Repository Agent +\| Path +\|\n\+-+\+-+\+\n((?:\|.*\n)*)\+-+\+-+\+\n", log, re.MULTILINE)
    assert rows, log
    library = agents / "probe" / "libtritonrepoagent_probe.so"
    assert re.fullmatch(rf"\| probe +\| {re.escape(str(library))} +\|\n", rows[1]), rows[1]
    assert rows.end() < log.index("| Backend ")


def test_several_agents_in_order(kind: str, repository: Repository, agents: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    add(repository, "model", *(agent("probe", log=str(log), who=who) for who in "ab"))
    with serve(kind, repository, agents) as server:
        ask(server, "load", "model")
        loaded = ["MODEL_INITIALIZE a", "LOAD a", "MODEL_INITIALIZE b", "LOAD b", "LOAD_COMPLETE b", "LOAD_COMPLETE a"]
        assert lines(log) == loaded
        ask(server, "unload", "model")
        ends = ["UNLOAD a", "UNLOAD b", "UNLOAD_COMPLETE b", "UNLOAD_COMPLETE a", "MODEL_FINALIZE a", "MODEL_FINALIZE b"]
        wait_for(server, log, loaded + ends)


def test_a_reload_is_a_second_life(kind: str, repository: Repository, agents: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    folder = add(repository, "model", agent("probe", log=str(log)))
    with serve(kind, repository, agents) as server:
        ask(server, "load", "model")
        (folder / "1" / "file").write_text("new")
        os.utime(folder / "config.pbtxt")
        ask(server, "load", "model")
        first, second = ["MODEL_INITIALIZE", "LOAD", "LOAD_COMPLETE"], ["UNLOAD", "UNLOAD_COMPLETE", "MODEL_FINALIZE"]
        server.process.wait_until(lambda: sorted(lines(log)) == sorted(first * 2 + second), WITHIN)
        found = lines(log)
        # The new one is complete before the old one goes, but for the two calls that belong together.
        assert found[:5] == [*first, "MODEL_INITIALIZE", "LOAD"]
        assert [line for line in found[5:] if line != "LOAD_COMPLETE"] == second
        assert asks.infer(server, "model", asks.tensor([1])) == {"OUTPUT0": ([1], [1])}


def test_stopping_ends_every_life(kind: str, repository: Repository, agents: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    add(repository, "model", agent("probe", log=str(log)))
    with serve(kind, repository, agents) as server:
        ask(server, "load", "model")
        server.stop()
    assert lines(log) == [
        "MODEL_INITIALIZE", "LOAD", "LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE", "MODEL_FINALIZE"
    ]


def test_a_model_that_does_not_load(kind: str, repository: Repository, agents: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    folder = add(repository, "model", agent("probe", log=str(log)))
    text = (folder / "config.pbtxt").read_text().replace('output [ { name: "OUTPUT0" data_type: TYPE_FP32',
                                                        'output [ { name: "OUTPUT0" data_type: TYPE_INT8')
    (folder / "config.pbtxt").write_text(text)
    with serve(kind, repository, agents) as server:
        ask(server, "load", "model", 400)
        heard = ["MODEL_INITIALIZE", "LOAD", "LOAD_FAIL"]
        # The reference keeps what it knows of the model until the next load.
        wait_for(server, log, [*heard, "MODEL_FINALIZE"] if kind == "nereid" else heard)


def test_an_agent_moves_the_model(kind: str, repository: Repository, agents: Path, tmp_path: Path) -> None:
    """What is served is the agent's copy: version 1 of two; the directory goes with the model."""
    log, scratch = tmp_path / "calls", tmp_path / "scratch"
    scratch.mkdir()
    add(repository, "model", agent("probe", log=str(log), move="yes"), versions=(1, 2))
    folders: list[Path] = []
    with serve(kind, repository, agents, {"TMPDIR": str(scratch)}) as server:
        ask(server, "load", "model")
        assert lines(log) == ["MODEL_INITIALIZE", "LOAD", "MOVED", "LOAD_COMPLETE"]
        if kind == "nereid":  # the reference makes its directories in /tmp whatever the environment says
            folders = list(scratch.iterdir())
            assert len(folders) == 1
            assert sorted(path.name for path in folders[0].iterdir()) == ["1", "config.pbtxt"]
        answer = rawhttp.request(*server.http.split(":"), "GET", "/v2/models/model").json()
        assert answer["versions"] == ["1"]
        assert asks.infer(server, "model", asks.tensor([1])) == {"OUTPUT0": ([1], [1])}
        ask(server, "unload", "model")
        server.process.wait_until(lambda: lines(log)[-1] == "MODEL_FINALIZE", WITHIN)
        server.process.wait_until(lambda: not any(path.exists() for path in folders), WITHIN)


def test_an_agent_behind_one_that_leaves_no_configuration(
    kind: str, repository: Repository, agents: Path, tmp_path: Path
) -> None:
    """Where the directory has no config.pbtxt there is no error, and no configuration (the reference's header says so, its code fails)."""
    log = tmp_path / "calls"
    first = agent("probe", log=str(log), config="yes", move="bare", who="a")
    add(repository, "model", first, agent("probe", log=str(log), config="yes", who="b"))
    with serve(kind, repository, agents) as server:
        ask(server, "load", "model")
        told = [line for line in lines(log) if line.startswith("CONFIG")]
        assert told[0] == "CONFIG there"
        if kind == "nereid":
            assert told[1] == "CONFIG none"
        assert asks.infer(server, "model", asks.tensor([1])) == {"OUTPUT0": ([1], [1])}


# What refuses harms its model only, and is named


@pytest.mark.parametrize("call", ["MODEL_INITIALIZE", "LOAD"])
def test_a_refusal_before_loading(
    kind: str, repository: Repository, agents: Path, tmp_path: Path, call: str
) -> None:
    log = tmp_path / "calls"
    add(repository, "model", agent("probe", log=str(log), fail=call))
    repository.identity("other")
    with serve(kind, repository, agents) as server:
        said = ask(server, "load", "model", 500)
        assert "failed to load 'model', failed to poll from model repository" in said
        assert f"probe agent: refused {call}" in server.process.log()
        asked = [] if call == "MODEL_INITIALIZE" else ["LOAD", "LOAD_FAIL"]
        wait_for(server, log, ["MODEL_INITIALIZE", *asked, "MODEL_FINALIZE"])
        ask(server, "load", "other")
        assert asks.infer(server, "other", asks.tensor([1])) == {"OUTPUT0": ([1], [1])}
        if kind == "nereid":
            assert f"repository agent 'probe': probe agent: refused {call}" in said


def test_a_configuration_that_is_refused_after_the_agents(kind: str, repository: Repository, agents: Path, tmp_path: Path) -> None:
    """It was loaded by them, and they hear that nothing came of it."""
    log = tmp_path / "calls"
    folder = add(repository, "model", agent("probe", log=str(log)))
    with (folder / "config.pbtxt").open("a") as config:
        config.write("dynamic_batching { preferred_batch_size: [ 4 ] }")
    with serve(kind, repository, agents) as server:
        assert "failed to load 'model', failed to poll from model repository" in ask(server, "load", "model", 500)
        wait_for(server, log, ["MODEL_INITIALIZE", "LOAD", "LOAD_FAIL", "MODEL_FINALIZE"])


@pytest.mark.parametrize("call", ["LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE", "MODEL_FINALIZE"])
def test_a_refusal_too_late(kind: str, repository: Repository, agents: Path, tmp_path: Path, call: str) -> None:
    """What cannot be undone is logged, and goes on."""
    log = tmp_path / "calls"
    add(repository, "model", agent("probe", log=str(log), fail=call))
    with serve(kind, repository, agents) as server:
        ask(server, "load", "model")
        assert asks.infer(server, "model", asks.tensor([1])) == {"OUTPUT0": ([1], [1])}
        ask(server, "unload", "model")
        server.process.wait_until(lambda: "MODEL_FINALIZE" in lines(log), WITHIN)
        if kind == "nereid" or call != "UNLOAD_COMPLETE":  # which the reference keeps to itself
            server.process.wait_until(lambda: f"probe agent: refused {call}" in server.process.log(), WITHIN)
        if kind == "nereid":
            found = [line for line in server.process.log().splitlines() if f"refused {call}" in line]
            assert "repository agent 'probe'" in found[0]


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"PROBE_AGENT_FAIL": "INITIALIZE"}, "probe agent: refused INITIALIZE"),
        ({"PROBE_AGENT_NEWER": "1"}, "probe agent: the agent API of the server is too old for it"),
    ],
)
def test_an_agent_that_does_not_start(
    kind: str, repository: Repository, agents: Path, env: dict[str, str], words: str
) -> None:
    add(repository, "model", agent("probe"))
    repository.identity("other")
    with serve(kind, repository, agents, env) as server:
        said = ask(server, "load", "model", 500)
        assert words in server.process.log()
        if kind == "nereid":
            assert f"repository agent 'probe': {words}" in said
        ask(server, "load", "other")


def test_an_agent_that_does_not_end(kind: str, repository: Repository, agents: Path) -> None:
    add(repository, "model", agent("probe"))
    with serve(kind, repository, agents, {"PROBE_AGENT_FAIL": "FINALIZE"}) as server:
        ask(server, "load", "model")
        ask(server, "unload", "model")
        server.process.wait_until(lambda: "probe agent: refused FINALIZE" in server.process.log(), WITHIN)
        ask(server, "load", "model")


def test_agents_that_are_none(kind: str, repository: Repository, compiled: Callable[..., Path], tmp_path: Path) -> None:
    agents = compiled("probe_agent", "libtritonrepoagent", "deaf", "-DTRITONREPOAGENT_ModelAction=deaf")
    for name in ("deaf", "missing", "text"):
        add(repository, name, agent(name))
    (agents / "text").mkdir()
    (agents / "text/libtritonrepoagent_text.so").write_text("no library")
    with serve(kind, repository, agents) as server:
        for name in ("deaf", "missing", "text"):
            ask(server, "load", name, 500)
        log = server.process.log()
    assert "unable to find required entrypoint 'TRITONREPOAGENT_ModelAction' in shared library" in log
    assert f"unable to find 'libtritonrepoagent_missing.so' for repo agent 'missing', searched: {agents}" in log
    assert "unable to load shared library" in log


@pytest.mark.parametrize("name", ["../probe", ".probe", ""])
def test_names_that_leave_the_directory(repository: Repository, agents: Path, name: str) -> None:
    add(repository, "model", agent(name))
    with serve("nereid", repository, agents) as server:
        assert f"invalid repository agent name '{name}'" in ask(server, "load", "model", 500)


# Other ways to load


def test_at_the_start_and_in_poll_mode(kind: str, repository: Repository, agents: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    folder = add(repository, "model", agent("probe", log=str(log)))
    with serve(kind, repository, agents, model_control_mode="poll", repository_poll_secs="1") as server:
        wait_for(server, log, ["MODEL_INITIALIZE", "LOAD", "LOAD_COMPLETE"])
        (folder / "1" / "file").touch()  # one change: no poll sees a half of it
        server.process.wait_until(lambda: lines(log).count("LOAD_COMPLETE") == 2, WITHIN)
        server.process.wait_until(lambda: lines(log).count("MODEL_FINALIZE") == 1, WITHIN)


def test_agents_of_a_configuration_that_the_client_sends(
    kind: str, repository: Repository, agents: Path, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    repository.identity("model")
    text = (
        '{"parameters":{"config":"{\\"backend\\":\\"identity\\",'
        '\\"input\\":[{\\"name\\":\\"INPUT0\\",\\"data_type\\":\\"TYPE_FP32\\",\\"dims\\":[-1]}],'
        '\\"output\\":[{\\"name\\":\\"OUTPUT0\\",\\"data_type\\":\\"TYPE_FP32\\",\\"dims\\":[-1]}],'
        '\\"model_repository_agents\\":{\\"agents\\":[{\\"name\\":\\"probe\\",'
        f'\\"parameters\\":{{\\"log\\":\\"{log}\\"}}}}]}}}}"}}}}'
    )
    with serve(kind, repository, agents) as server:
        answer = rawhttp.post(server.http, "/v2/repository/models/model/load", text.encode())
        assert answer.status == 200, answer.body
        assert lines(log) == ["MODEL_INITIALIZE", "LOAD", "LOAD_COMPLETE"]
        if kind == "reference":
            return  # the plain load that follows does nothing there
        ask(server, "load", "model")  # as it lies in the repository: without agents
        wait_for(server, log, ["MODEL_INITIALIZE", "LOAD", "LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE", "MODEL_FINALIZE"])


# Our checksum agent

CONTENT = b"weights\0" * 100_000
MD5, SHA256 = hashlib.md5(CONTENT).hexdigest(), hashlib.sha256(CONTENT).hexdigest()
REFUSED = {
    "MD5:1/file": ("0123", f"Mismatched MD5 hash for file 1/file, expect: 0123, got: {MD5}"),
    "sha256:1/file": (MD5, f"Mismatched SHA256 hash for file 1/file, expect: {MD5}, got: {SHA256}"),
    "MD5:1/none": (MD5, "failed to open text file for read 1/none: No such file or directory"),
    "MD5": (MD5, "failed to parse key: MD5"),
    "CRC:1/file": (MD5, "Unsupported checksum algorithm: CRC"),
    "MD5:1": (MD5, "failed to read 1: Is a directory"),
}


def checked(repository: Repository, **parameters: str) -> Path:
    folder = add(repository, "model", agent("checksum", **parameters))
    (folder / "1" / "file").write_bytes(CONTENT)
    return folder


@pytest.mark.parametrize("key", ["MD5:1/file", "md5:1/file", "SHA256:1/file"])
def test_checksums_that_hold(kind: str, repository: Repository, key: str) -> None:
    folder = checked(repository, **{key: MD5 if "5:" in key else SHA256})
    with serve(kind, repository, extensions("repoagents", kind)) as server:
        ask(server, "load", "model")
        assert asks.infer(server, "model", asks.tensor([1])) == {"OUTPUT0": ([1], [1])}
        (folder / "1" / "file").write_bytes(CONTENT[1:])
        os.utime(folder / "config.pbtxt")
        ask(server, "load", "model", 500)
        assert asks.infer(server, "model", asks.tensor([1])) == {"OUTPUT0": ([1], [1])}, "what served before still does"


@pytest.mark.parametrize("key", REFUSED)
def test_checksums_that_do_not_hold(kind: str, repository: Repository, key: str) -> None:
    value, words = REFUSED[key]
    checked(repository, **{key: value})
    with serve(kind, repository, extensions("repoagents", kind)) as server:
        said = ask(server, "load", "model", 500)
        assert words in server.process.log()
        if kind == "nereid":
            assert f"repository agent 'checksum': {words}" in said


def test_a_pipe_has_no_checksum(repository: Repository) -> None:
    """Nobody writes into it: an agent that opened it would not come back."""
    os.mkfifo(checked(repository, **{"MD5:1/pipe": MD5}) / "1" / "pipe")
    with serve("nereid", repository, extensions("repoagents", "nereid")) as server:
        assert "failed to read 1/pipe: not a regular file" in ask(server, "load", "model", 500)


def test_a_bad_checksum_at_the_start_ends_the_server(kind: str, repository: Repository) -> None:
    checked(repository, **{"MD5:1/file": "0123"})
    server = serve(kind, repository, extensions("repoagents", kind), model_control_mode="none", exit_on_error="true")
    server.wait_ready = False
    server.start()
    server.process.ends(1, WITHIN)
    assert "Mismatched MD5 hash for file 1/file" in server.process.log()
    server.kill()
