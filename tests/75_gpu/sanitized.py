"""A server under NVIDIA's compute-sanitizer."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from figures import note
from harness.servers import Nereid

ERRORS = 9  # the exit status if the sanitizer found something


class Sanitized(Nereid):
    """extra: options of the sanitizer."""

    extra: tuple[str, ...] = ()

    def program(self) -> list[str]:
        tool = shutil.which("compute-sanitizer")
        assert tool, "compute-sanitizer of CUDA's toolkit is not in PATH"
        return [tool, "--tool", "memcheck", "--error-exitcode", str(ERRORS), *self.extra, *super().program()]

    def stop(self, **expected: float | int | None) -> float:
        """The sanitizer ends with the server, which is what gets the signal."""
        for pid in children(self.process.pid):
            if b"nereid" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                os.kill(pid, signal.SIGTERM)
        self.process.ends(None, 300)
        self.said = self.process.log()
        status = self.process.exit_status
        note(next(line for line in self.said.splitlines()[::-1] if "SUMMARY" in line).strip("= "))
        self._scratch.cleanup()
        assert status == 0, self.said[-6000:]
        return 0


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, check=False).stdout.split()
    return [int(each) for each in found] + [below for each in found for below in children(int(each))]
