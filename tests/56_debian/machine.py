"""A clean Debian in a directory, made of the archive's packages, and started with its own systemd."""

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from harness import askers, paths

HERE = Path(__file__).resolve().parent
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_prctl = ctypes.CDLL(None).prctl


def run(*argv: object, within: float = 300, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(each) for each in argv], capture_output=True, text=True, check=False, timeout=within, env={**os.environ, **(env or {})})
    assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def archive() -> str:
    """The Debian archive that this machine is configured with."""
    found = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(path.read_text() for path in found if path.is_file())
    places = re.findall(r"^(?:deb (?:\[.*?\] )?|URIs: *)(\S+/debian/?)(?:\s|$)", text, re.MULTILINE)
    assert places, "no Debian archive in /etc/apt"
    return places[0]


def suite() -> str:
    return re.findall(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE)[0]


def make(root: Path, packages: list[str]) -> None:
    """Debian's packages of priority required, apt, and these."""
    source = f"deb [signed-by={KEYRING}] {archive()} {suite()} main"
    paths.need(Path("/usr/bin/mmdebstrap"), "tools/setup.sh debian")
    run("mmdebstrap", "--mode=root", "--variant=apt", f"--include={','.join(packages)}", suite(), root, source, within=600, env={"LC_ALL": "C"})


def _ends_with_parent() -> None:
    _prctl(1, signal.SIGKILL)


class Machine:
    """Started on entering, killed on leaving."""

    def __init__(self, root: Path):
        self.root = root

    def __enter__(self) -> Self:
        argv = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--net", "--cgroup", "--kill-child", "bash", str(HERE / "machine.sh"), str(self.root)]
        self.console = self.root.with_suffix(".console")
        with self.console.open("wb") as log:
            self.outer = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_ends_with_parent)
        self.until(lambda: self._first() != 0, "the first process")
        self.until(lambda: self.ask("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"), "systemd")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if first := self._first():
            os.kill(first, signal.SIGKILL)  # the whole of it ends with its first process
        self.outer.wait(60)

    def until(self, there: Callable[[], bool], what: str) -> None:
        for _ in range(600):
            if there():
                return
            assert self.outer.poll() is None, self.console.read_text()
            time.sleep(0.1)  # allowed: another system does something, and tells nobody
        raise AssertionError(f"not seen: {what}\n{self.console.read_text()}")

    def _first(self) -> int:
        """Its process 1, once that is systemd."""
        try:
            children = Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children").read_text().split()
            name = Path(f"/proc/{children[0]}/comm").read_text().strip() if children else ""
        except FileNotFoundError:
            return 0
        return int(children[0]) if name == "systemd" else 0

    def _enter(self) -> list[str]:
        return ["nsenter", "-t", str(self._first())]

    def ask(self, *argv: object) -> subprocess.CompletedProcess[str]:
        """Runs a command in it."""
        whole = [*self._enter(), "-m", "-p", "-n", "-u", "-i", "-C", "-r", "-w", "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"]
        whole += ["DEBIAN_FRONTEND=noninteractive", "SYSTEMD_PAGER=", *map(str, argv)]
        return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL)

    def run(self, *argv: object) -> str:
        done = self.ask(*argv)
        assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout}{done.stderr}\n{self.journal()}"
        return done.stdout

    def journal(self) -> str:
        return self.ask("systemctl", "status", "--no-pager", "-n", "40", "nereid", "nereid-next").stdout

    def neighbour(self, *argv: object) -> "subprocess.Popen[str]":
        """A program of this machine in the network of that one."""
        whole = [*self._enter(), "-n", sys.executable, *map(str, argv)]
        return subprocess.Popen(whole, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=_ends_with_parent)

    def post(self, path: str, body: bytes = askers.BODY) -> tuple[int, str]:
        """What the server of that machine answers: status and text."""
        script = "import sys; sys.path.insert(0, sys.argv[1]); from harness import rawhttp\n"
        script += "answer = rawhttp.post('127.0.0.1:8000', sys.argv[2], sys.argv[3].encode()); print(answer.status, answer.body.decode())"
        told = self.neighbour("-c", script, HERE.parent, path, body.decode()).communicate(timeout=60)[0]
        assert told, self.journal()
        status, text = told.split(" ", 1)
        return int(status), text

    @contextlib.contextmanager
    def load(self) -> Iterator["subprocess.Popen[str]"]:
        """Clients that ask while the block runs; then each has been answered, and nothing was lost."""
        asking = self.neighbour(HERE / "ask_until_told.py", 8000, 8001)
        assert asking.stdout and asking.stdin
        assert asking.stdout.readline() == ".\n"
        try:
            yield asking
        finally:
            asking.stdin.close()
            told = asking.stdout.read().splitlines()[-1]
            asking.wait(60)
        result = json.loads(told)
        assert result["lost"] == [[], [], [], []], self.journal()
        print("answered", result["answered"])
