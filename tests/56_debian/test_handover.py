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


def start_number(machine: Machine) -> str:
    return machine.run("systemctl", "show", "-P", "InvocationID", "nereid").strip()


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
    machine.run(*starting)
    machine.run("timeout", "60", "cat", "/srv/reached")
    (machine.root / "etc" / "systemd" / "system" / f"{unit}.service.d" / "test.conf").unlink()
    yield
    machine.ask("timeout", "5", "sh", "-c", "echo >/srv/gate")
    machine.run("rm", "/srv/reached", "/srv/gate")


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_a_killed_command_leaves_one_server(installed: Machine, signal: str) -> None:
    before = start_number(installed)
    with held(installed, "nereid-next", "systemd-run", f"--unit=hand-over-{signal}", "--property=SendSIGKILL=no", "nereid-handover"):
        installed.run("systemctl", "kill", f"--signal={signal}", f"hand-over-{signal}")
    installed.until(lambda: states(installed) == ONE_LEFT and start_number(installed) != before, "a server")


def test_the_second_one_serves_until_the_first_does(installed: Machine) -> None:
    """The second one opens no port for metrics, so it starts where the first does not."""
    Repository(installed.root / "var" / "lib" / "nereid" / "models").identity("one")
    installed.run("systemctl", "restart", "nereid")
    with installed.load() as asking:
        assert asking.stdout
        configure(installed, "metrics-address = 192.0.2.1")
        done = installed.ask("nereid-handover")
        assert done.returncode == 1 and "nereid-next.service serves" in done.stderr, done
        assert states(installed)[1] == "active"
        assert asking.stdout.readline() == ".\n"
        configure(installed)
        installed.until(lambda: states(installed) == ONE_LEFT, "the first server")
        assert asking.stdout.readline() == ".\n"


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
