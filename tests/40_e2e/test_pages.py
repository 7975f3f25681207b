"""The commands of pages of docs/user, run as they stand."""

import re
import subprocess
from pathlib import Path

import pytest
from harness import paths, ports

PAGES = [
    pytest.param(path.stem, marks=[pytest.mark.onnx] if ".onnx models/" in text else [])
    for path in sorted((paths.ROOT / "docs" / "user").glob("*.md"))
    if "\n```sh\n" in (text := path.read_text())
]
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "=== end of block"
# A server started in the background ends with the shell.
PRELUDE = """\
set -e
PATH={venv}/bin:$PATH
nereid() {{
    if [ "$1" = bench ]; then {binary} "$@"; return; fi
    if [ "$1" = check ]; then {binary} "$@" --backend-directory={build}/backends; return; fi
    if [ "$1" = migrate ]; then shift; {binary} migrate --backend-directory={build}/backends "$@"; return; fi
    exec {binary} --backend-directory={build}/backends --cache-directory={build}/caches --repoagent-directory={build}/repoagents \\
        --http-port={http} --grpc-port={grpc} --metrics-port={metrics} --openai-port={openai} "$@" >log 2>&1
}}
trap 'servers=$(jobs -p); [ -z "$servers" ] || kill $servers; wait' EXIT
"""


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_print_what_the_page_says(tmp_path: Path, page: str) -> None:
    http, grpc, metrics, openai = (ports.free_port() for _ in range(4))
    listen = {"http": http, "grpc": grpc, "metrics": metrics, "openai": openai}
    script = PRELUDE.format(binary=paths.nereid_binary(), build=paths.BUILD, venv=paths.ROOT / "build" / "venv", **listen)
    expected: list[str] = []
    for kind, text in BLOCK.findall((paths.ROOT / "docs" / "user" / f"{page}.md").read_text()):
        if kind == "sh":
            text = text.replace("/opt/tritonserver/include", str(paths.ROOT / "include")).replace("cp build/", f"cp {paths.ROOT}/build/")
            script += text.replace("localhost:8000", f"127.0.0.1:{http}").replace("localhost:9000", f"127.0.0.1:{openai}") + f"echo; echo '{MARK}'\n"
            expected.append("")
        else:
            expected[-1] = text
    got = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    log = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
    assert got.returncode == 0, got.stdout + got.stderr + log
    printed = [part.split() for part in got.stdout.split(MARK)[:-1]]
    assert printed == [text.split() for text in expected], log
