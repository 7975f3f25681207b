"""The commands of docs/user/caches.md and agents.md, run as they stand."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import extensions
from harness import paths, ports

BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "=== end of block"
# A server started in the background ends with the shell.
PRELUDE = """\
set -e
nereid() {{
    exec {binary} --backend-directory={backends} --cache-directory={caches} --repoagent-directory={agents} \\
        --http-port={http} --grpc-port={grpc} --metrics-port={metrics} "$@" >log 2>&1
}}
trap 'kill $(jobs -p); wait' EXIT
"""


@pytest.mark.parametrize("page", ["caches", "agents"])
def test_the_commands_print_what_the_page_says(tmp_path: Path, page: str) -> None:
    http, grpc, metrics = (ports.free_port() for _ in range(3))
    script = PRELUDE.format(
        binary=paths.nereid_binary(), backends=paths.backends(), http=http, grpc=grpc, metrics=metrics,
        caches=extensions("caches", "nereid"), agents=extensions("repoagents", "nereid"),
    )
    expected: list[str] = []
    for kind, text in BLOCK.findall((paths.ROOT / "docs" / "user" / f"{page}.md").read_text()):
        if kind == "sh":
            script += text.replace("localhost:8000", f"127.0.0.1:{http}") + f"echo; echo '{MARK}'\n"
            expected.append("")
        else:
            expected[-1] = text
    got = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    log = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
    assert got.returncode == 0, got.stdout + got.stderr + log
    printed = [part.split() for part in got.stdout.split(MARK)[:-1]]
    assert printed == [text.split() for text in expected], log
