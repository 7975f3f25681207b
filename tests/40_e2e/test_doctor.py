"""nereid doctor, and what the log says of a start that is mistaken: the machine, what would be refused, what to do."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from harness import paths, ports
from harness.gpus import Gpus
from harness.process import ServerFailed
from harness.repository import Repository
from harness.servers import HOST, Nereid


def doctor(*options: str, files: int = 4096) -> tuple[int, str]:
    argv = ["/bin/sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", str(paths.nereid_binary()), "doctor", *options]
    got = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    return got.returncode, got.stdout + got.stderr


def empty(folder: Path) -> str:
    folder.mkdir()
    return str(folder)


def plain(tmp_path: Path) -> list[str]:
    """Options with which nothing is wrong."""
    backends = tmp_path / "backends" / "identity"
    backends.mkdir(parents=True)
    (backends / "libtriton_identity.so").symlink_to(paths.need(paths.BUILD / "backends" / "identity" / "libtriton_identity.so"))
    return [f"--backend-directory={backends.parent}", "--http-port=0", "--grpc-port=0", "--metrics-port=0"]


def test_a_machine_that_has_all_it_takes(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    status, text = doctor(*plain(tmp_path), f"--model-repository={repository.path}")
    assert (status, text.splitlines()[-1]) == (0, "0 problems"), text
    facts = {line.split()[0]: line for line in text.splitlines() if line}
    assert f"{tmp_path}/backends: identity" in facts["backends"]
    assert "1 directories of models" in facts["repository"] and "at most 4096" in text
    assert facts["cores"].split()[1].isdigit() and "GiB for this process" in facts["memory"]


def test_what_would_be_refused_is_told_with_its_mend(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    folder = repository.identity("one")
    broken = tmp_path / "broken" / "bad"
    broken.mkdir(parents=True)
    (broken / "libtriton_bad.so").write_bytes(b"\x7fELF")
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        status, text = doctor(
            f"--backend-directory={broken.parent}", "--grpc-port=0", "--metrics-port=0", f"--http-address={HOST}", f"--http-port={port}",
            f"--model-repository={folder}", f"--model-repository={tmp_path}/nowhere", f"--model-repository={empty(tmp_path / 'empty')}",
            "--http-use-ssl=true", f"--http-server-cert={tmp_path}/no.pem", f"--http-server-key={tmp_path}/no.key", files=200,
        )
    assert status == 1
    for told in (
        f"{HOST}:{port}: Address already in use", "libtriton_bad.so", "no backend was found", "looks like the directory of one model",
        f"{tmp_path}/nowhere", f"'{tmp_path}/empty' has no model", f"{tmp_path}/no.pem", "the limit of open files is low",
    ):
        assert told in text, (told, text)
    assert text.splitlines()[-1] == "8 problems" and text.count("\n    mend: ") == 8


def test_names_of_plugins_are_no_commands_for_the_terminal(tmp_path: Path) -> None:
    told = [*plain(tmp_path), f"--model-repository={Repository(tmp_path / 'models').identity('one').parent}"]
    good, bad = (tmp_path / "backends" / f"{name}\x1b[31m" for name in ("good", "bad"))
    for folder in (good, bad):
        folder.mkdir()
    library = tmp_path / "backends" / "identity" / "libtriton_identity.so"
    (good / f"libtriton_{good.name}.so").symlink_to(library.resolve())
    (bad / f"libtriton_{bad.name}.so").write_bytes(b"\x7fELF")
    status, text = doctor(*told)
    assert (status, text.splitlines()[-1]) == (1, "1 problems") and all(line.isprintable() for line in text.splitlines()), text
    assert "good [31m, identity" in text and "libtriton_bad [31m.so" in text


def test_front_ends_in_each_others_way(tmp_path: Path) -> None:
    models = Repository(tmp_path / "models")
    models.identity("one")
    port = ports.free_port()
    told = [*plain(tmp_path)[:1], f"--model-repository={models.path}"]
    for address in ("0.0.0.0", HOST):
        status, text = doctor(*told, f"--http-port={port}", f"--grpc-port={port}", f"--grpc-address={address}", "--metrics-port=0")
        assert (status, text.splitlines()[-1]) == (1, "1 problems"), text
        assert f"gRPC         {address}:{port} cannot be used: it is that of HTTP" in text and "in use" not in text
        assert f"option --grpc-port: expected a port of its own, found {port}, which is that of --http-port" in text
    status, text = doctor(*told, f"--http-address=unix:{tmp_path}/door", "--grpc-port=0")
    assert (status, text.splitlines()[-1]) == (1, "1 problems"), text
    assert f"option --metrics-address: expected an address of its own, found 'unix:{tmp_path}/door'" in text
    _, text = doctor(*told, "--http-address=::1", "--http-port=0", "--grpc-port=0", "--metrics-port=0")
    assert "[::1]:0 " in text and " ::1:0 " not in text, text


def test_unix_sockets_and_files_of_the_log(tmp_path: Path) -> None:
    """Looked at without making or removing any."""
    models = Repository(tmp_path / "models")
    models.identity("one")
    told = [*plain(tmp_path), f"--model-repository={models.path}"]
    door, file, stale = tmp_path / "door", tmp_path / "file", tmp_path / "stale"
    file.touch()
    with socket.socket(socket.AF_UNIX) as s, socket.socket(socket.AF_UNIX) as gone:
        s.bind(str(door))
        s.listen()
        gone.bind(str(stale))
        gone.close()
        before = sorted(tmp_path.iterdir())
        status, text = doctor(
            *told, f"--http-address=unix:{tmp_path}/no/door", f"--grpc-address=unix:{door}", f"--metrics-address=unix:{file}",
            f"--log-file={tmp_path}/no/log", f"--access-log={tmp_path}", "--cache-config=nothere,size=1",
        )
        assert (status, text.splitlines()[-1]) == (1, "6 problems"), text
        for words in (
            f"unix:{tmp_path}/no/door: No such file or directory", f"unix:{door}: Address already in use", f"unix:{file}: something lies there",
            f"option --log-file: opening '{tmp_path}/no/log': No such file", f"option --access-log: opening '{tmp_path}': Is a directory",
            "unable to find 'libtritoncache_nothere.so'",
        ):
            assert words in text, (words, text)
        status, text = doctor(
            *told, f"--http-address=unix:{stale}", f"--grpc-address=unix:{tmp_path}/new", "--metrics-address=0.0.0.0",
            f"--log-file={tmp_path}/log", "--access-log=-",
        )
        assert (status, text.splitlines()[-1]) == (0, "0 problems"), text
        assert sorted(tmp_path.iterdir()) == before


def test_a_command_line_without_a_repository(tmp_path: Path) -> None:
    status, text = doctor(*plain(tmp_path))
    assert (status, text.splitlines()[-1]) == (1, "1 problems"), text
    assert "--model-repository must be specified" in text


def test_a_budget_that_counts_no_gib(tmp_path: Path) -> None:
    """A server with it starts, and refuses nearly everything."""
    models = Repository(tmp_path / "models")
    models.identity("one")
    told = [*plain(tmp_path), f"--model-repository={models.path}"]
    for budget, count in ((str((1 << 20) - 1), 1), (str(1 << 20), 0)):
        status, text = doctor(*told, f"--memory-budget={budget}")
        assert (status, text.splitlines()[-1]) == (count, f"{count} problems"), text
        assert text.count("--memory-budget is less than 1 MiB: larger requests are refused") == count


def test_what_the_server_opens_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused in the server's own words: settings of caches, places where no file can be, variables of exporters."""
    models = Repository(tmp_path / "models")
    models.identity("one")
    told = [*plain(tmp_path), f"--model-repository={models.path}"]
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "many")
    fine = [f"--access-log={tmp_path}/new", "--cache-config=local,size=1048576", f"--log-file={os.devnull}"]
    before = sorted(tmp_path.iterdir())
    status, text = doctor(*told, *fine)
    assert (status, text.splitlines()[-1]) == (0, "0 problems"), text
    assert sorted(tmp_path.iterdir()) == before
    for option in ("--cache-config=local,size=abc", "--access-log=/proc/x", f"--log-file={os.devnull}/x", "--trace-config=mode=opentelemetry"):
        status, text = doctor(*told, option)
        assert (status, text.splitlines()[-1]) == (1, "1 problems"), text
        with pytest.raises(ServerFailed) as failed, Nereid(models.path, dict([option.removeprefix("--").split("=", 1)])):
            pass
        problem = text.splitlines()[-3]
        assert problem in str(failed.value), (problem, str(failed.value))


def test_cores_of_host_policies(tmp_path: Path) -> None:
    """Those that are not there are left out; a policy that has no other is refused."""
    told = [*plain(tmp_path), f"--model-repository={Repository(tmp_path / 'models').identity('one').parent}"]
    one = min(os.sched_getaffinity(0))
    status, text = doctor(*told, "--host-policy=cpu,cpu-cores=1022-1023", f"--host-policy=cpu,cpu-cores={one}-{one},1022-1023")
    assert (status, text.splitlines()[-1]) == (0, "0 problems"), text
    assert [line for line in text.splitlines() if line.startswith("host")] == ["host policy  cpu: 1 cores"]
    status, text = doctor(*told, "--host-policy=far,cpu-cores=1022-1023", "--host-policy=odd,cpu-cores=5")
    assert (status, text.splitlines()[-1]) == (1, "2 problems"), text
    assert "option --host-policy=far: cpu-cores=1022-1023 of host policy 'far': Unable to set NUMA thread affinity: Invalid argument" in text
    assert "option --host-policy=odd: host policy setting 'cpu-cores' format is" in text


def test_files_of_traces(tmp_path: Path) -> None:
    told = [*plain(tmp_path), f"--model-repository={Repository(tmp_path / 'models').identity('one').parent}"]
    (tmp_path / "dir.0").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    for options, words in (
        ([f"file={tmp_path}/no/out"], f"option --trace-config: opening '{tmp_path}/no/out': No such file or directory"),
        ([f"file={tmp_path}/pipe"], f"option --trace-config: '{tmp_path}/pipe' is not a regular file"),
        ([f"file={tmp_path}/dir", "log-frequency=5"], f"option --trace-config: opening '{tmp_path}/dir.0': Is a directory"),
    ):
        status, text = doctor(*told, *(f"--trace-config=triton,{each}" for each in options))
        assert (status, text.splitlines()[-1]) == (1, "1 problems") and words in text, text
    for mode, file in (("triton", f"{tmp_path}/out"), ("opentelemetry", f"{tmp_path}/no/out")):
        status, text = doctor(*told, f"--trace-config=mode={mode}", f"--trace-config=triton,file={file}")
        assert (status, text.splitlines()[-1]) == (0, "0 problems"), text
    assert sorted(tmp_path.iterdir()) == before


def test_named_pipes_are_told_of_and_not_waited_for(tmp_path: Path) -> None:
    models = Repository(tmp_path / "models")
    models.identity("one")
    log, library = tmp_path / "log", tmp_path / "backends" / "slow" / "libtriton_slow.so"
    told = [*plain(tmp_path), f"--model-repository={models.path}", f"--log-file={log}"]
    library.parent.mkdir()
    for each in (log, library):
        os.mkfifo(each)
    status, text = doctor(*told)
    assert (status, text.splitlines()[-1]) == (1, "1 problems"), text
    assert f"'{library}' is not a regular file" in text
    assert f"'{log}' is a named pipe: the server starts only while somebody reads it" in text


def test_wrong_options_are_refused() -> None:
    status, text = doctor("--no-such-option")
    assert status == 2 and "unknown option '--no-such-option'" in text
    status, text = doctor("--help")
    assert status == 0 and text.startswith("usage: nereid doctor")


class Narrow(Nereid):
    """May open few descriptors."""

    def program(self) -> list[str]:
        return ["/bin/sh", "-c", 'ulimit -n 200 && exec "$@"', "sh", *super().program()]


def test_a_start_says_what_is_probably_mistaken(tmp_path: Path) -> None:
    """Few descriptors; a model's own directory given as the repository; one without models; a budget that counts no GiB."""
    folder = Repository(tmp_path / "models").identity("one")
    log = tmp_path / "log"
    options = {"exit-on-error": "false", "strict-readiness": "false", "model-repository": [str(folder), empty(tmp_path / "empty")], "log-file": str(log), "memory-budget": "8"}
    with Narrow(tmp_path / "models", options):
        text = log.read_text()
    assert f"'{tmp_path}/empty' has no model: it expects a directory for each" in text
    assert f"'{folder}' looks like the directory of one model: --model-repository expects the directory above it" in text
    assert "this process may open 200 files, so at most " in text and "ulimit -n 65536" in text
    assert "--memory-budget=8 counts bytes: requests that need more are refused; 1073741824 is 1 GiB" in text


@pytest.mark.parametrize("mode", ["explicit", "poll"])
def test_a_server_without_a_model_says_how_to_come_by_one(tmp_path: Path, mode: str) -> None:
    """It is ready: a line of the log says that nothing is served, and what to do."""
    log = tmp_path / "log"
    options = {"model-control-mode": mode, "log-file": str(log)}
    with Nereid(empty(tmp_path / "empty"), options) as server:
        assert server.ready()
    with Nereid(Repository(tmp_path / "models").identity("one").parent, options | ({"load-model": "one"} if mode == "explicit" else {})):
        pass
    text = log.read_text()
    told = {"explicit": "no model is loaded: --load-model=NAME loads one at the start", "poll": f"'{tmp_path}/empty' has no model"}
    assert text.count(told[mode]) == 1, text


@pytest.mark.parametrize(("devices", "found"), [("", False), ("5.0:64", False), ("5.0:64,8.0:64", True)])
def test_the_proof_on_gpus_needs_one(devices: str, found: bool, tmp_path: Path) -> None:
    """tools/gpu_proof.py: a machine without a GPU that the server can use is no success."""
    argv = [sys.executable, str(paths.ROOT / "tools" / "gpu_proof.py"), "--only", "found", "--report", str(tmp_path / "proof.md")]
    env = os.environ | Gpus(tmp_path, devices).env | {"NEREID_BUILD": str(paths.BUILD)}
    got = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (got.returncode == 0, "the server finds no GPU that it can use" in got.stdout) == (found, not found), got.stdout + got.stderr
