"""Folders for the models of functions. Each is locked while its server lives, so that one which a killed process left is known."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "nereid-functions-"


class Folder:
    """A folder of its own in the temporary directory."""

    def __init__(self) -> None:
        sweep()
        while True:  # another process may sweep it away before it is locked
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if os.fstat(self._fd).st_nlink:
                break
            os.close(self._fd)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._fd)


def sweep() -> None:
    """Removes the folders of processes that were killed: the kernel has taken their locks."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(fd).st_uid == os.geteuid():
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(fd)
