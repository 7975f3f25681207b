"""Two replicas in a Ray cluster of two nodes on this machine (`make test-long`): Ray has an environment of its own (tools/setup_ray.sh)."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness import paths

PYTHON = paths.ROOT / "build" / "ray" / "bin" / "python"
REQUESTS = 1000


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("ray")
    subprocess.run([PYTHON, paths.ROOT / "bindings" / "python" / "build_wheel.py", folder], check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall", wheel], check=True)
    shutil.copytree(paths.need(paths.SAMPLE_MODELS / "digits"), folder / "models" / "digits")
    # Ray keeps a token in the home of its user, and waits for its parts as long as a busy machine needs.
    env = {**os.environ, "HOME": str(folder), "RAY_AUTH_MODE": "disabled", "RAY_DEDUP_LOGS": "0"}
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("cluster.py"), folder / "models"], capture_output=True, text=True, timeout=1200, check=False, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"spread"')))


def test_requests_are_spread_over_two_replicas(told: dict[str, Any]) -> None:
    spread = told["spread"]
    assert not spread["failed"] and spread["same"]
    assert len(spread["by_process"]) == 2 and sum(spread["by_process"].values()) == REQUESTS
    assert min(spread["by_process"].values()) > REQUESTS / 10


def test_killed_replica_costs_what_is_under_way_on_it(told: dict[str, Any]) -> None:
    killed = told["killed"]
    assert killed["replaced"]
    assert len(killed["failed"]) <= killed["most"]
    assert all("ActorDied" in each for each in killed["failed"]), killed["failed"]
