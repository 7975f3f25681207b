"""gRPC clients of other languages, made from our proto files with their unmodified libraries, against our server."""

import re
import subprocess
from pathlib import Path

import pytest

from harness import paths
from harness.servers import Server

FOLDER = Path(__file__).parent
BUILT = paths.ROOT / "build" / "clients"
CHECKS = re.findall(r"^\| ([a-z]+(?:-[a-z]+)?) \| [^|]+ \|", (FOLDER / "checks.md").read_text(), re.MULTILINE)[1:]
CLIENTS = ["cpp", "go", "java", "node"]


@pytest.mark.parametrize("language", CLIENTS)
def test_client(nereid: Server, language: str) -> None:
    program = paths.need(BUILT / language / "client")
    run = subprocess.run([program, nereid.grpc], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    passed = [line.removeprefix("ok ") for line in run.stdout.splitlines()]
    assert passed == CHECKS


@pytest.mark.parametrize("language", CLIENTS)
def test_client_notices_a_server_that_is_not_there(language: str) -> None:
    program = paths.need(BUILT / language / "client")
    run = subprocess.run([program, "127.0.0.1:9"], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode != 0 and "ok " not in run.stdout
