"""Folders for the models of functions. Each is locked while its server lives, so that one which a killed process left is known."""

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "nereid-functions-"
LOCK = ".nereid-lock"  # names its folder, so that a copy of it is no folder of ours


class Folder:
    """A folder of its own in the temporary directory."""

    def __init__(self) -> None:
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        os.write(self._fd, os.fsencode(self.path))  # from now on it is one that others may sweep away

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """For a child of fork: the folder is its parent's."""
        os.close(self._fd)


def sweep() -> None:
    """Removes the folders of processes that were killed: the kernel has taken their locks."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        with suppress(OSError):  # it is in use, gone, or somebody else's
            fd = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                    continue
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.read(fd, 4096) == os.fsencode(path):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(fd)
