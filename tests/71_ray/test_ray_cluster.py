"""Two replicas in a Ray cluster of two nodes on this machine, and one that Ray multiplies while requests wait (`make test-long`): Ray has an
environment of its own (tools/setup_ray.sh)."""

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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what the clusters need; the package is in Ray's environment."""
    folder = tmp_path_factory.mktemp("ray")
    subprocess.run([PYTHON, paths.ROOT / "bindings" / "python" / "build_wheel.py", folder], check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall", wheel], check=True)
    return folder


def run(folder: Path, program: str, argument: Path) -> dict[str, Any]:
    """What a program tells that makes a cluster."""
    # Ray keeps a token in the home of its user, and waits for its parts as long as a busy machine needs.
    env = {**os.environ, "HOME": str(folder), "RAY_AUTH_MODE": "disabled", "RAY_DEDUP_LOGS": "0",
           "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5"}  # fmt: skip
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name(program), argument], capture_output=True, text=True, timeout=1200, check=False, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"')))


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    shutil.copytree(paths.need(paths.SAMPLE_MODELS / "digits"), folder / "models" / "digits")
    return run(folder, "cluster.py", folder / "models")


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


def test_replicas_grow_while_requests_wait_and_shrink_again(folder: Path) -> None:
    gate = folder / "gate"
    os.mkfifo(gate)
    told = run(folder, "scaling.py", gate)
    assert told["first"] == 1
    assert told["grows"][-1] == 3, told
    assert told["right"], told
    assert told["batches"][-1] > 1, told
    assert told["shrinks"][0] == 3 and told["shrinks"][-1] == 1, told
    assert told["last"] == 7
