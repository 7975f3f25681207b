"""What the process of an isolated model gets of the server, and what it may do; plugins/hostile.c tries it."""

import base64
import errno
import json
import os
import shutil
from pathlib import Path

from harness import paths, rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid
from isolated import ISOLATED, QUIET_CRASHES, body, parameters, process_of, ready, until

PROBE = -4
SECRETS = {"AWS_SECRET_ACCESS_KEY": "hush", "HF_TOKEN": "hush", "NVIDIA_API_KEY": "hush", "TEAM_A": "one", "TEAM_B": "two"}
NOBODY = 65534
REFUSED = errno.EACCES
# A sanitizer looks for leaks by tracing its own process, which may not be.
ENV = {name: f"{options}:detect_leaks=0" for name, options in QUIET_CRASHES.items()} | SECRETS
SOME_FAIL = {"exit-on-error": "false", "strict-readiness": "false"}


def hostile(repository: Repository, name: str, **more: str) -> Path:
    """The library is a file of the model's own: a link would lead out of what it may read."""
    tensors = 'input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]\n'
    tensors += 'output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]\n'
    values = parameters(ISOLATED | {f"ISOLATION_{key.upper()}": value for key, value in more.items()})
    model = repository.model(name, f'name: "{name}"\nbackend: "hostile"\nmax_batch_size: 0\n{tensors}{values}')
    library = paths.need(paths.BUILD / "tests" / "backends" / "hostile" / "libtriton_hostile.so")
    shutil.copy(library, model / library.name)
    return model


def probe(server: Nereid, model: str, **what: str) -> dict[str, object]:
    """What the backend found: numbers of errors, 0 = it may; and its environment."""
    answer = rawhttp.request(
        HOST, server.http_port, "POST", f"/v2/models/{model}/infer", body=body([PROBE], parameters=what), timeout=120
    )
    assert answer.status == 200, answer.body
    found: dict[str, object] = answer.json()["parameters"]
    return found


def environment(found: dict[str, object]) -> dict[str, object]:
    return {name.removeprefix("env."): value for name, value in found.items() if name.startswith("env.")}


def why(server: Nereid) -> dict[str, str]:
    index = rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/index", body=b"{}").json()
    return {each["name"]: each.get("reason", "") for each in index}


def test_credentials_of_the_server_stay_with_it(repository: Repository) -> None:
    hostile(repository, "plain")
    hostile(repository, "named", environment="TEAM_A, HF_*")
    hostile(repository, "all", environment="*")
    with Nereid(repository.path, env=ENV) as server:
        plain = environment(probe(server, "plain"))
        assert not set(plain) & set(SECRETS) and "hush" not in plain.values()
        assert plain["PATH"] == os.environ["PATH"]
        named = environment(probe(server, "named"))
        assert set(named) & set(SECRETS) == {"TEAM_A", "HF_TOKEN"}
        assert set(SECRETS) <= set(environment(probe(server, "all")))


def test_what_a_process_may_do_where_nothing_is_said(repository: Repository) -> None:
    hostile(repository, "plain")
    with Nereid(repository.path, env=ENV) as server:
        found = probe(server, "plain", read="/etc/hostname")
        assert found["no_new_privs"] == 1
        assert found["uid"] == os.getuid()
        assert [found[what] for what in ("inet", "unix", "pair", "program", "read", "signal", "leave")] == [0] * 7


def test_no_network(repository: Repository) -> None:
    hostile(repository, "alone", deny="network")
    with Nereid(repository.path, env=ENV) as server:
        found = probe(server, "alone", read="/etc/hostname")
        assert [found[what] for what in ("inet", "unix", "datagram pair", "leave")] == [REFUSED] * 4
        until(lambda: "all is lost" in server.process.log())  # it tried to forge a line
        (line,) = [line for line in server.process.log().splitlines() if "all is lost" in line]
        assert "isolate_log.c" in line and "model 'alone' version 1: E0101" in line
        assert [found[what] for what in ("pair", "program", "read")] == [0] * 3


def test_no_other_programs(repository: Repository) -> None:
    hostile(repository, "alone", deny="programs")
    with Nereid(repository.path, env=ENV) as server:
        found = probe(server, "alone")
        assert found["program"] == REFUSED
        assert found["inet"] == 0


def test_no_files_but_its_own(repository: Repository, tmp_path: Path) -> None:
    (shared := tmp_path / "shared").mkdir()
    (tmp_path / "secret").write_text("hush")
    (shared / "weights").write_text("many")
    other = hostile(repository, "other")
    model = hostile(repository, "alone", deny="files, network programs", files=f"{shared}")
    hostile(repository, "writer", deny="files", files=f"{shared}:rw")
    with Nereid(repository.path, env=ENV) as server:
        for denied in (tmp_path / "secret", other / "config.pbtxt", tmp_path, Path("/etc/hostname"), Path("/proc/1/status")):
            assert probe(server, "alone", read=str(denied))["read"] == REFUSED, denied
        for allowed in (model / "config.pbtxt", shared / "weights", shared, Path("/dev/urandom")):
            assert probe(server, "alone", read=str(allowed))["read"] == 0, allowed
        for denied in (model / "config.pbtxt", shared / "weights", shared / "new", Path(f"/tmp/{tmp_path.name}-new")):
            assert probe(server, "alone", write=str(denied))["write"] == REFUSED, denied
        found = probe(server, "alone")
        assert found["environment of the server"] == REFUSED and found["itself"] == 0
        assert found["inet"] == found["program"] == REFUSED
        assert found["signal"] in (0, errno.EPERM)  # newer kernels keep signals within, too
        assert probe(server, "writer", write=str(shared / "new"))["write"] == 0
        assert probe(server, "writer", write=str(tmp_path / "new"))["write"] == REFUSED


def test_another_user(open_folder: Path) -> None:
    repository, secret = Repository(open_folder / "models"), open_folder / "secret"
    secret.write_text("hush")
    secret.chmod(0o600)
    hostile(repository, "nobodys", user="nobody")
    hostile(repository, "numbers", user=f"{NOBODY}:{NOBODY - 1}")
    hostile(repository, "mine", user=f"{os.getuid()}:{os.getgid()}")
    with Nereid(repository.path, SOME_FAIL, env=ENV) as server:
        if os.getuid() != 0:
            assert "becoming user" in why(server)["nobodys"] and "CAP_SETUID" in why(server)["nobodys"]
            return
        found = probe(server, "nobodys", read=str(secret))
        assert found["uid"] == NOBODY and found["read"] == REFUSED
        assert found["environment of the server"] == REFUSED and found["signal"] == errno.EPERM
        assert found["itself"] == 0
        found = probe(server, "numbers")
        assert (found["uid"], found["gid"]) == (NOBODY, NOBODY - 1)
        assert probe(server, "mine")["uid"] == os.getuid()
        old = process_of(server, "nobodys")
    assert not Path(f"/proc/{old}").exists()


def test_another_user_reads_what_a_load_brought(repository: Repository, open_folder: Path) -> None:
    """The model's library is a file of the request: it loads where the user may read it. Who is not of its group may not."""
    library = paths.need(paths.BUILD / "tests" / "backends" / "hostile" / "libtriton_hostile.so").read_bytes()
    tensor = {"data_type": "TYPE_INT32", "dims": [-1]}
    values = ISOLATED | {"ISOLATION_USER": f"nobody:{NOBODY - 1}"}
    config = {
        "backend": "hostile",
        "input": [{"name": "INPUT0", **tensor}],
        "output": [{"name": "OUTPUT0", **tensor, "data_type": "TYPE_STRING"}],
        "parameters": {key: {"string_value": value} for key, value in values.items()},
    }
    brought = {"config": json.dumps(config), "file:1/libtriton_hostile.so": base64.b64encode(library).decode()}
    options = {"model-control-mode": "explicit", "allow-library-upload": "true"}
    with Nereid(repository.path, options, env=ENV | {"TMPDIR": str(open_folder)}) as server:
        load = json.dumps({"parameters": brought}).encode()
        answer = rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/models/up/load", body=load, timeout=120)
        if os.getuid() != 0:
            assert answer.status >= 400 and b"CAP_CHOWN" in answer.body, answer
            return
        assert answer.status == 200, answer
        found = probe(server, "up")
        assert (found["uid"], found["gid"]) == (NOBODY, NOBODY - 1)
        made = [path for path in open_folder.rglob("*") if path.is_relative_to(next(open_folder.glob("nereid-upload*")))]
        assert made
        for path in made:
            state = path.stat()
            assert (state.st_uid, state.st_gid, state.st_mode & 0o777) == (0, NOBODY - 1, 0o750 if path.is_dir() else 0o640), path


def test_what_cannot_be_done_is_refused(repository: Repository) -> None:
    hostile(repository, "word", deny="network, sleep")
    hostile(repository, "person", user="who is that")
    hostile(repository, "path", files="weights")
    hostile(repository, "good")
    with Nereid(repository.path, SOME_FAIL, env=ENV) as server:
        until(lambda: ready(server, "good"))
        reasons = why(server)
    assert "'ISOLATION_DENY': expected 'network', 'programs' or 'files', found 'sleep'" in reasons["word"]
    assert "'ISOLATION_USER': expected a user" in reasons["person"] and "'who is that'" in reasons["person"]
    assert "'ISOLATION_FILES': expected paths from the root on, found 'weights'" in reasons["path"]


def test_a_slip_in_a_name_leaves_no_rights(repository: Repository) -> None:
    hostile(repository, "slip", denny="network")
    alone = hostile(repository, "alone", deny="network") / "config.pbtxt"
    alone.write_text(alone.read_text().replace(parameters(ISOLATED), ""))
    off = hostile(repository, "off", deny="network") / "config.pbtxt"
    off.write_text(off.read_text().replace('"process"', '"none"'))
    with Nereid(repository.path, SOME_FAIL, env=ENV) as server:
        until(lambda: ready(server, "off"))
        reasons = why(server)
    assert "there is no parameter 'ISOLATION_DENNY'" in reasons["slip"]
    assert "'ISOLATION_DENY' does nothing without parameter 'ISOLATION'" in reasons["alone"]


TENSORS = {
    "input": [{"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [-1]}],
    "output": [{"name": "OUTPUT0", "data_type": "TYPE_STRING", "dims": [-1]}],
}
STEP = {"step": [{"model_name": "good", "model_version": -1, "input_map": {"INPUT0": "INPUT0"}, "output_map": {"OUTPUT0": "OUTPUT0"}}]}
COMPLETED = {  # by the process, and what becomes of the model
    "other": ({"name": "good", "backend": "identity", "parameters": {"ISOLATION": {"string_value": "none"}}}, ""),
    "groups": ({"instance_group": [{"count": 100000}], "model_warmup": [{"name": "w", "batch_size": 1}]}, ""),
    "ensemble": ({"ensemble_scheduling": STEP}, "'ensemble_scheduling', which a model with ISOLATION cannot have"),
    "states": (
        {"sequence_batching": {"state": [{"input_name": "a", "output_name": "b", "data_type": "TYPE_INT32", "dims": [1]}]}},
        "'sequence_batching.state', which is not kept",
    ),
    "sequences": ({"sequence_batching": {"oldest": {"max_candidate_sequences": 2000000000}}}, "'max_candidate_sequences' with 2000000000"),
    "batch": ({"max_batch_size": 2000000000}, "'max_batch_size' with 2000000000"),
    "batching": ({"max_batch_size": 4, "dynamic_batching": {}}, ""),
}


def test_what_a_process_may_complete(repository: Repository) -> None:
    """Inputs, outputs and batching, as the reference takes from a backend; nothing else of the configuration is the process's."""
    hostile(repository, "good")
    for name, (more, _) in COMPLETED.items():
        model = hostile(repository, f"{name}_")
        text = json.dumps(TENSORS | more).replace('"', "~")
        parameter = f'parameters {{ key: "completes" value {{ string_value: "{text}" }} }}\n'
        written = f'name: "{name}_"\nbackend: "hostile"\n{parameters(ISOLATED)}{parameter}'
        (model / "config.pbtxt").write_text(written)
    with Nereid(repository.path, SOME_FAIL, env=ENV) as server:
        until(lambda: ready(server, "good"))
        reasons = why(server)
        for name, (_, refused) in COMPLETED.items():
            assert refused in reasons[f"{name}_"] and bool(refused) == bool(reasons[f"{name}_"]), reasons[f"{name}_"]
        for name in ("other_", "groups_", "batching_"):
            config = rawhttp.request(HOST, server.http_port, "GET", f"/v2/models/{name}/config").json()
            assert (config["name"], config["backend"]) == (name, "hostile")
            assert config["parameters"]["ISOLATION"]["string_value"] == "process"
            assert sum(group["count"] for group in config["instance_group"]) <= 2 and not config["model_warmup"]
        assert config["max_batch_size"] == 4 and "dynamic_batching" in config
