"""What --backend-config says to the python backend, and a model's parameters: what cannot be right is refused by its name."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from asks import Asker
from conftest import make_server

WRONG = {
    "shm-default-byte-size=64MB": "shm-default-byte-size is a whole number, not '64MB'",
    "shm-default-byte-size=1048575": "shm-default-byte-size can't be smaller than 1 MiB (1048576)",
    "shm-growth-byte-size=64MB": "shm-growth-byte-size is a whole number, not '64MB'",
    "stub-timeout-seconds=5m": "stub-timeout-seconds is a whole number, not '5m'",
    "thread-pool-size=": "thread-pool-size is a whole number, not ''",
}
# The reference's names, and one of ours.
RIGHT = (
    "shm-default-byte-size=1048576", "shm-growth-byte-size=65536", "shm-region-prefix-name=settings_", "stub-timeout-seconds=240",
    "thread-pool-size=2", "shm_message_queue_size=1000", "default-max-batch-size=8", "python-executable=python3",
)  # fmt: skip


@contextmanager
def serving(backends: dict[str, Path], repository: Path, settings: list[str]) -> Iterator[Asker]:
    server = make_server("nereid", backends, repository, {"model-control-mode": "explicit", "backend-config": settings})
    server.start()
    server.wait_until_ready(240)
    asker = Asker(server)
    yield asker
    asker.close()
    server.stop(seconds=150)


@pytest.mark.parametrize("setting", WRONG)
def test_a_setting_that_cannot_be_right(python_backends: dict[str, Path], repository: Path, setting: str) -> None:
    with serving(python_backends, repository, [f"python,{setting}"]) as asker:
        status, told = asker.load("state")
    assert status == 400 and WRONG[setting] in told["error"], told


def test_settings_that_nobody_reads(python_backends: dict[str, Path], repository: Path) -> None:
    """Each is told once; those of the reference's backend are not."""
    right = [f"python,{each}" for each in RIGHT]
    with serving(python_backends, repository, [*right, "python,stub-timeout-second=5"]) as asker:
        assert asker.load("state")[0] == asker.load("tell")[0] == 200
        log = asker.log_since(0)
    assert log.count("the setting 'stub-timeout-second' of backend 'python' is unknown and has no effect") == 1
    assert log.count("has no effect") == 1


def test_a_time_limit_that_is_no_number(python_backends: dict[str, Path], repository: Path) -> None:
    tensor = {"data_type": "TYPE_STRING", "dims": [1]}
    config = {
        "backend": "python", "input": [{"name": "ASK"} | tensor], "output": [{"name": "TOLD"} | tensor],
        "parameters": {"EXECUTE_TIMEOUT_SECONDS": {"string_value": "5m"}},
    }  # fmt: skip
    with serving(python_backends, repository, []) as asker:
        status, told = asker.load("state", {"config": json.dumps(config)})
    reason = "parameter 'EXECUTE_TIMEOUT_SECONDS' of model 'state': failed to convert '5m' to integral number"
    assert status == 400 and reason in told["error"], told
