"""The Debian package removed, installed again and purged, where something of the machine's or of the operator's is in its way."""

import re

from harness.repository import Repository
from machine import Machine, run


def state(machine: Machine) -> list[str]:
    return [machine.ask("systemctl", each, "nereid").stdout.strip() for each in ("is-enabled", "is-active")]


def test_installed_again_it_is_enabled_unless_it_was_not(installed: Machine) -> None:
    installed.run("dpkg", "-r", "nereid")
    installed.run("dpkg", "-i", "/srv/0.1.1")
    assert state(installed) == ["enabled", "active"]
    installed.run("systemctl", "disable", "--now", "nereid")
    installed.run("dpkg", "-i", "/srv/0.1.2")
    assert state(installed) == ["disabled", "inactive"]
    installed.run("dpkg", "-r", "nereid")
    installed.run("dpkg", "-i", "/srv/0.1.2")
    assert state(installed) == ["disabled", "inactive"]


def accounts(machine: Machine) -> list[int]:
    """0 = there."""
    return [machine.ask("getent", kind, "nereid").returncode for kind in ("passwd", "group")]


def test_purged_it_leaves_models_alone_and_as_roots(installed: Machine) -> None:
    state = installed.root / "var" / "lib" / "nereid"
    kept = Repository(state / "models").identity("one") / "config.pbtxt"
    configuration = kept.read_text()
    (state / "elsewhere").mkdir()
    for name in ("server.log", ".cache", "elsewhere/model.onnx"):
        (state / name).write_text("")
    (state / "outside").symlink_to("/srv/0.1.0")
    installed.run("chown", "-hR", "nereid:nereid", "/var/lib/nereid")
    (installed.root / "etc" / "nereid" / "environment").write_text("AWS_SECRET_ACCESS_KEY=secret\n")
    number = installed.run("id", "-u", "nereid").strip()
    installed.run("chmod", "600", "/var/lib/nereid/models/one/config.pbtxt")
    done = installed.ask("dpkg", "--purge", "nereid")
    assert done.returncode == 0 and "/var/lib/nereid" in done.stderr, done
    assert kept.read_text() == configuration
    assert sorted(each.name for each in state.iterdir()) == ["elsewhere", "models"]
    assert not (installed.root / "etc" / "nereid").exists()
    assert accounts(installed) == [2, 2]
    assert installed.run("find", "/etc", "/var", "/srv", "(", "-uid", number, "-o", "-nouser", "-o", "-nogroup", ")") == ""


def test_files_of_the_operator_stay_the_operators(installed: Machine) -> None:
    state = installed.root / "var" / "lib" / "nereid"
    Repository(state / "models").identity("one")
    installed.run("chown", "-R", "games:games", "/var/lib/nereid/models/one")
    installed.run("dpkg", "--purge", "nereid")
    assert installed.run("stat", "-c", "%U:%G", "/var/lib/nereid/models/one/config.pbtxt") == "games:games\n"


def test_purged_it_leaves_what_the_service_did_not_write(installed: Machine) -> None:
    state = installed.root / "var" / "lib" / "nereid"
    (state / ".models-staging" / "m1").mkdir(parents=True)
    (state / ".cache").mkdir()
    for name in (".models-staging/m1/model.onnx", "tls.key", ".cache/written", ".cache/roots"):
        (state / name).write_text(name)
    installed.run("chown", "nereid:nereid", "/var/lib/nereid/.cache", "/var/lib/nereid/.cache/written")
    done = installed.ask("dpkg", "--purge", "nereid")
    assert done.returncode == 0 and re.findall(r"left in /var/lib/nereid: (.*)", done.stderr) == [".cache .models-staging tls.key "], done
    assert sorted(str(each.relative_to(state)) for each in state.rglob("*") if each.is_file()) == [".cache/roots", ".models-staging/m1/model.onnx", "tls.key"]
    assert accounts(installed) == [2, 2]


def test_upgraded_while_the_models_are_out_of_reach(installed: Machine) -> None:
    """A link to a disk of the network that is not there; who removed the directory wants none."""
    models = installed.root / "var" / "lib" / "nereid" / "models"
    models.rmdir()
    models.symlink_to("/srv/not-mounted/models")
    installed.run("dpkg", "-i", "/srv/0.1.1")
    assert models.readlink().as_posix() == "/srv/not-mounted/models" and not (installed.root / "srv" / "not-mounted").exists()
    installed.run("dpkg", "--purge", "nereid")
    models.parent.mkdir(exist_ok=True)
    models.unlink(missing_ok=True)
    models.symlink_to("/srv/not-mounted/models")
    done = installed.ask("dpkg", "-i", "/srv/0.1.1")
    assert done.returncode == 0 and models.is_symlink(), done
    models.unlink()
    installed.run("dpkg", "-i", "/srv/0.1.2")
    assert not models.exists()


def test_a_group_that_was_there(machine: Machine) -> None:
    machine.run("groupadd", "nereid")
    machine.run("usermod", "-aG", "nereid", "games")
    machine.run("dpkg", "-i", "/srv/0.1.0")
    assert state(machine) == ["enabled", "active"] and machine.run("id", "-gn", "nereid") == "nereid\n"
    machine.run("dpkg", "--purge", "nereid")
    assert accounts(machine) == [2, 2]


def test_purged_while_a_process_of_its_user_lives(installed: Machine) -> None:
    installed.run("systemd-run", "--unit=left", "--uid=nereid", "sleep", "infinity")
    done = installed.ask("dpkg", "--purge", "nereid")
    assert done.returncode == 0 and "the user nereid is left" in done.stderr, done
    assert installed.ask("dpkg-query", "-s", "nereid").returncode != 0
    installed.run("systemctl", "stop", "left")
    installed.run("userdel", "nereid")
    assert accounts(installed) == [2, 2]


def test_an_account_of_another_kind_is_left(machine: Machine) -> None:
    machine.run("useradd", "--create-home", "nereid")
    machine.run("dpkg", "-i", "/srv/0.1.0")
    machine.run("dpkg", "--purge", "nereid")
    assert accounts(machine) == [0, 0]
    machine.run("userdel", "--remove", "nereid")
    run("test", "!", "-e", machine.root / "home" / "nereid")
