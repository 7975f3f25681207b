"""Hand-overs and restarts of the package's service: whatever becomes of them, one server is left, and it has the models that the old one had."""

import contextlib
from collections.abc import Iterator

import pytest
from harness.repository import Repository
from machine import Machine

ONE_LEFT = ["active", "inactive"]


def states(machine: Machine) -> list[str]:
    """Those of the service and of the second one."""
    return machine.run("systemctl", "show", "-P", "ActiveState", "nereid", "nereid-next").split()


def none_left(machine: Machine) -> bool:
    return set(states(machine)) <= {"inactive", "failed"}


def start_number(machine: Machine, unit: str = "nereid") -> str:
    return machine.run("systemctl", "show", "-P", "InvocationID", unit).strip()


def ended(machine: Machine, unit: str) -> None:
    """What runs as this unit is over, and so is what it left to systemd."""
    machine.until(lambda: machine.ask("systemctl", "is-active", unit).stdout.strip() in ("inactive", "failed"), f"the end of {unit}")
    machine.until(lambda: "nereid" not in machine.run("systemctl", "list-jobs", "--no-legend"), "the end of the jobs")


def configure(machine: Machine, *lines: str) -> None:
    """The configuration of the package, and these lines."""
    conf = machine.root / "etc" / "nereid" / "nereid.conf"
    kept = conf.with_suffix(".kept")
    if not kept.exists():
        kept.write_text(conf.read_text())
    conf.write_text(kept.read_text() + "".join(f"{line}\n" for line in lines))


def drop_in(machine: Machine, unit: str, line: str) -> None:
    folder = machine.root / "etc" / "systemd" / "system" / f"{unit}.service.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test.conf").write_text(f"[Service]\n{line}\n")
    machine.run("systemctl", "daemon-reload")


@contextlib.contextmanager
def held(machine: Machine, unit: str, *starting: str) -> Iterator[None]:
    """The unit as it starts, by this command: its program comes when the block is left, unless the start is given up."""
    machine.run("mkfifo", "/srv/reached", "/srv/gate")
    drop_in(machine, unit, "ExecStartPre=+/bin/sh -c 'echo >/srv/reached; read word </srv/gate'")
    try:
        machine.run(*starting)
        machine.run("timeout", "60", "cat", "/srv/reached")
        (machine.root / "etc" / "systemd" / "system" / f"{unit}.service.d" / "test.conf").unlink()
        yield
    finally:
        machine.ask("timeout", "5", "sh", "-c", "echo >/srv/gate")
        machine.run("rm", "/srv/reached", "/srv/gate")


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_a_killed_command_leaves_one_server(installed: Machine, signal: str) -> None:
    before = start_number(installed)
    with held(installed, "nereid-next", "systemd-run", f"--unit=hand-over-{signal}", "--property=SendSIGKILL=no", "nereid-handover"):
        installed.run("systemctl", "kill", f"--signal={signal}", f"hand-over-{signal}")
    installed.until(lambda: states(installed) == ONE_LEFT and start_number(installed) != before, "a server")


@pytest.mark.parametrize("command", [["nereid-handover"], ["dpkg", "-i", "/srv/0.1.1"]], ids=["hand-over", "upgrade"])
@pytest.mark.parametrize("unit", ["nereid-next", "nereid"])
def test_a_stop_meanwhile_ends_both(installed: Machine, command: list[str], unit: str) -> None:
    """While either of them starts; nothing starts one again, also not in a hand-over that comes later."""
    with held(installed, unit, "systemd-run", "--collect", f"--unit=stopped-{unit}", *command):
        installed.run("systemctl", "disable", "--now", "nereid")
        assert none_left(installed)
    ended(installed, f"stopped-{unit}")
    assert none_left(installed)
    done = installed.ask("nereid-handover")
    assert done.returncode == 1 and "systemctl start nereid" in done.stderr and none_left(installed), done
    assert installed.run("dpkg-query", "-W", "-f", "${Status}", "nereid") == "install ok installed"


def test_a_restart_meanwhile_ends_the_hand_over(installed: Machine) -> None:
    """It brings what the hand-over was for."""
    before = start_number(installed)
    with held(installed, "nereid-next", "systemd-run", "--unit=restarted", "nereid-handover"):
        installed.run("systemctl", "restart", "nereid")
    ended(installed, "restarted")
    assert installed.ask("systemctl", "is-failed", "restarted").stdout == "inactive\n", installed.journal()
    assert states(installed)[0] == "active" and start_number(installed) != before


def test_nothing_takes_the_place_of_a_stopped_one(installed: Machine) -> None:
    installed.run("systemctl", "stop", "nereid")
    assert installed.ask("systemctl", "start", "nereid-next").returncode != 0
    assert none_left(installed)


def test_the_second_one_serves_until_the_first_does(installed: Machine) -> None:
    """The second one opens no port for metrics, so it starts where the first does not."""
    Repository(installed.root / "var" / "lib" / "nereid" / "models").identity("one")
    installed.run("systemctl", "restart", "nereid")
    with installed.load() as asking:
        assert asking.stdout
        configure(installed, "metrics-address = 192.0.2.1")
        done = installed.ask("nereid-handover")
        assert done.returncode == 1 and "nereid-next.service serves" in done.stderr, done
        second = start_number(installed, "nereid-next")
        number = installed.run("systemctl", "show", "-P", "NRestarts", "nereid")
        installed.until(lambda: installed.run("systemctl", "show", "-P", "NRestarts", "nereid") != number, "another start")
        assert states(installed)[1] == "active" and start_number(installed, "nereid-next") == second
        assert asking.stdout.readline() == ".\n"
        configure(installed)
        installed.until(lambda: states(installed) == ONE_LEFT, "the first server")
        assert asking.stdout.readline() == ".\n"
    # A stop while the first one waits for its next start ends the one that serves.
    configure(installed, "metrics-address = 192.0.2.1")
    assert installed.ask("nereid-handover").returncode == 1
    installed.until(lambda: states(installed) == ["activating", "active"], "the second server alone")
    installed.run("systemctl", "stop", "nereid")
    assert none_left(installed)


def test_it_is_started_again_however_often_it_fails(installed: Machine) -> None:
    usual = installed.run("systemctl", "show", "-P", "RestartUSec", "nereid")
    drop_in(installed, "nereid", "RestartSec=50ms")
    configure(installed, "no-such-option = 1")
    assert installed.ask("systemctl", "restart", "nereid").returncode != 0
    installed.until(lambda: int(installed.run("systemctl", "show", "-P", "NRestarts", "nereid")) > 10, "restarts")
    configure(installed)
    installed.until(lambda: states(installed) == ONE_LEFT, "a server")
    assert usual == "5s\n"


def test_an_upgrade_while_it_loads_ends_with_the_new_one(installed: Machine) -> None:
    with held(installed, "nereid", "systemctl", "--no-block", "restart", "nereid"):
        before = start_number(installed)
        installed.run("dpkg", "-i", "/srv/0.1.1")
        assert states(installed) == ONE_LEFT and start_number(installed) != before


def test_an_upgrade_starts_nothing_that_was_stopped(installed: Machine) -> None:
    installed.run("systemctl", "stop", "nereid")
    installed.run("dpkg", "-i", "/srv/0.1.1")
    assert states(installed) == ["inactive", "inactive"]


@pytest.mark.parametrize("line", ["grpc-address = unix:/var/lib/nereid/grpc.sock", "allow-sagemaker = Yes", "allow-vertex-ai=1"])
def test_ports_that_cannot_be_shared(installed: Machine, line: str) -> None:
    Repository(installed.root / "var" / "lib" / "nereid" / "models").identity("one")
    (installed.root / "etc" / "nereid" / "environment").write_text("AIP_PREDICT_ROUTE=/predict\nAIP_HEALTH_ROUTE=/health\n")
    configure(installed, line)
    installed.run("systemctl", "restart", "nereid")
    before = start_number(installed)
    done = installed.ask("nereid-handover")
    assert done.returncode == 0 and f"{line.split('=')[0].strip()}: no two servers can share it, so the service is restarted" in done.stderr, done
    assert states(installed) == ONE_LEFT and start_number(installed) != before
    # Who loads models on request decides when they are lost.
    configure(installed, line, "model-control-mode = explicit", "load-model = one")
    installed.run("systemctl", "restart", "nereid")
    before = start_number(installed)
    done = installed.ask("nereid-handover")
    assert done.returncode == 1 and "the old one goes on" in done.stderr and "systemctl restart nereid" in done.stderr, done
    assert states(installed) == ONE_LEFT and start_number(installed) == before


def test_models_loaded_on_request_are_loaded_in_the_new_one(installed: Machine) -> None:
    repository = Repository(installed.root / "var" / "lib" / "nereid" / "models")
    for name in ("one", "named", "idle"):
        repository.identity(name)
    configure(installed, "model-control-mode = explicit", "load-model = named")
    installed.run("systemctl", "restart", "nereid")
    assert installed.post("/v2/repository/models/one/load", b"{}")[0] == 200
    with installed.load() as asking:
        assert asking.stdout
        installed.run("nereid-handover")
        assert asking.stdout.readline() == ".\n"
    assert [installed.post(f"/v2/models/{name}/infer")[0] for name in ("one", "named", "idle")] == [200, 200, 404]
    # No later start has them.
    installed.run("systemctl", "restart", "nereid")
    assert [installed.post(f"/v2/models/{name}/infer")[0] for name in ("one", "named")] == [404, 200]
    # All of the repository are loaded at the start anyway.
    configure(installed, "model-control-mode = EXPLICIT", "load-model = *")
    installed.run("nereid-handover")
    assert installed.post("/v2/models/idle/infer")[0] == 200


def test_models_that_cannot_be_asked_for(installed: Machine) -> None:
    Repository(installed.root / "var" / "lib" / "nereid" / "models").identity("one")
    configure(installed, "model-control-mode = explicit", "load-model = one", "http-restricted-api = model-repository:key=secret")
    installed.run("systemctl", "restart", "nereid")
    before = start_number(installed)
    done = installed.ask("nereid-handover")
    assert done.returncode == 1 and "the old one goes on" in done.stderr and "systemctl restart nereid" in done.stderr, done
    assert states(installed) == ONE_LEFT and start_number(installed) == before


def load(machine: Machine, name: str, verb: str = "load") -> tuple[int, str]:
    return machine.post(f"/v2/repository/models/{name}/{verb}", b"{}")


@pytest.fixture
def on_request(installed: Machine) -> Machine:
    """With a model `one` that was loaded on request, and one that was not."""
    repository = Repository(installed.root / "var" / "lib" / "nereid" / "models")
    for name in ("one", "idle"):
        repository.identity(name)
    configure(installed, "model-control-mode = explicit")
    installed.run("systemctl", "restart", "nereid")
    assert load(installed, "one")[0] == 200
    return installed


@pytest.mark.parametrize(("name", "verb"), [("idle", "load"), ("one", "unload")])
def test_a_load_while_the_second_one_starts_is_not_lost(on_request: Machine, name: str, verb: str) -> None:
    before = start_number(on_request)
    with held(on_request, "nereid-next", "systemd-run", "--collect", f"--unit=during-{verb}", "nereid-handover"):
        assert load(on_request, name, verb)[0] == 200
    ended(on_request, f"during-{verb}")
    assert states(on_request) == ["active", "failed"] and start_number(on_request) == before
    assert "loaded or unloaded" in on_request.run("journalctl", "--no-pager", "-u", "nereid-next")
    assert on_request.post(f"/v2/models/{name}/infer")[0] == (200 if verb == "load" else 404)
    on_request.run("nereid-handover")
    assert states(on_request) == ONE_LEFT and start_number(on_request) != before
    assert on_request.post(f"/v2/models/{name}/infer")[0] == (200 if verb == "load" else 404)


GRPC_LOAD = """
import sys, tritonclient.grpc as grpc
try:
    print(grpc.InferenceServerClient("127.0.0.1:8001").load_model("idle"))
except Exception as error:
    print(error)
"""


def test_the_second_one_loads_nothing_on_request(on_request: Machine) -> None:
    """It would end with it."""
    with held(on_request, "nereid", "systemd-run", "--collect", "--unit=during-second", "nereid-handover"):
        assert on_request.post("/v2/models/one/infer")[0] == 200
        status, text = load(on_request, "idle")
        assert status == 403 and "nereid-hand-over-is-under-way" in text, text
        told = on_request.neighbour("-c", GRPC_LOAD).communicate(timeout=60)[0]
        assert "nereid-hand-over-is-under-way" in told, told
    ended(on_request, "during-second")
    assert states(on_request) == ONE_LEFT
    assert [load(on_request, "idle")[0], on_request.post("/v2/models/one/infer")[0]] == [200, 200]


def test_a_second_one_that_cannot_start_leaves_no_list_of_models(on_request: Machine) -> None:
    on_request.run("systemctl", "mask", "--runtime", "nereid-next")
    done = on_request.ask("nereid-handover")
    on_request.run("systemctl", "unmask", "--runtime", "nereid-next")
    assert done.returncode == 1 and "the old one goes on" in done.stderr, done
    on_request.run("systemctl", "restart", "nereid")
    assert on_request.post("/v2/models/one/infer")[0] == 404
