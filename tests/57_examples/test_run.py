"""examples/run.sh: what it starts and waits for, of an example that is made for it, with a server that is none."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import paths, ports
from harness.process import Process

SERVER = """#!/usr/bin/env python3
import http.server, sys
port = int(next(each for each in sys.argv if each.startswith("--http-port=")).split("=")[1])
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", port), Ready).serve_forever()
"""
CLIENT = """
import signal
print("asks", flush=True)
signal.pause()
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one example, of which nothing is to be installed or built."""
    for name in ("examples/run.sh", "tools/say.sh", "tools/ports.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(paths.ROOT / name, tmp_path / name)
    programs = {"build/release/bin/nereid": SERVER, "tools/setup.sh": "#!/bin/sh\n", "tools/build.sh": "#!/bin/sh\n"}
    files = {"README.md": "# One\n", "client.py": CLIENT, "files.list": "", "models/one/config.pbtxt": ""}
    for name, text in {**programs, **{f"examples/one/{name}": text for name, text in files.items()}}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in programs:
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.fixture
def first(tree: Path) -> Iterator[Process]:
    """It runs, where a proxy is named that is nobody's."""
    nobody = f"http://127.0.0.1:{ports.free_port()}"
    run = start(tree, "first", {"http_proxy": nobody, "no_proxy": "", "NO_PROXY": ""})
    try:
        run.wait_until(lambda: "asks" in run.log(), 60)
        yield run
    finally:
        run.stop(status=143)


def start(tree: Path, name: str, env: dict[str, str]) -> Process:
    given = {f"{each}_PORT": str(ports.free_port()) for each in ("HTTP", "GRPC", "METRICS", "PAGE")}
    return Process(name, [str(tree / "examples" / "run.sh"), "one"], tree / f"{name}.log", env=given | env)


def test_a_proxy_is_not_asked_for_what_is_on_this_machine(first: Process) -> None:
    assert first.running()


def test_what_another_run_serves_stays(tree: Path, first: Process) -> None:
    kept = tree / "build" / "examples" / "one" / "kept"
    kept.touch()
    second = start(tree, "second", {})
    second.ends(1)
    assert "the example 'one' runs already" in second.log() and kept.exists() and first.running()
    first.stop(status=143)
    third = start(tree, "third", {})
    third.wait_until(lambda: "asks" in third.log(), 60)
    assert not kept.exists() and os.listdir(kept.parent / "models") == ["one"]
    third.stop(status=143)
