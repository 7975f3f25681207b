"""KServe's own client, unmodified, against our server."""

import subprocess

from harness import paths
from harness.servers import Server

REST = ["live", "ready", "model", "no-model", "infer", "binary"]
GRPC = ["live", "ready", "model", "no-model", "metadata", "model-metadata", "infer", "binary"]


def test_kserve(nereid: Server) -> None:
    """Health, metadata, inference in JSON, in binary and over gRPC."""
    program = paths.need(paths.ROOT / "build" / "clients" / "kserve" / "client")
    run = subprocess.run([program, nereid.http, nereid.grpc], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    passed = [line.removeprefix("ok ") for line in run.stdout.splitlines()]
    assert passed == [f"rest-{each}" for each in REST] + [f"grpc-{each}" for each in GRPC]
