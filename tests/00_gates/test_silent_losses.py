"""What pytest would lose with a warning fails the run (tests/conftest.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOST = {
    "nothing": "def test_it(): pass",
    "an exception in a thread": (
        "import threading\ndef test_it():\n    thread = threading.Thread(target=lambda: 1 / 0)\n    thread.start()\n    thread.join()"
    ),
    "an exception in __del__": "class It:\n    def __del__(self): assert False\ndef test_it(): It()",
    "an exception in __del__ behind the last test": (
        "import gc\ngc.disable()\nclass It:\n    def __init__(self): self.me = self\n"
        "    def __del__(self): assert False\ndef test_it(): It()"
    ),
    "what a test returns": "def test_it(): return False",
    "a class that is not collected": (
        "class TestIt:\n    def __init__(self): pass\n    def test_it(self): assert False\ndef test_other(): pass"
    ),
    "a coroutine that nobody awaits": "async def it(): assert False\ndef test_it(): it()",
}


@pytest.mark.parametrize("what", LOST)
def test_what_pytest_would_lose(tmp_path: Path, what: str) -> None:
    (tmp_path / "test_lost.py").write_text(LOST[what] + "\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    env = {name: value for name, value in os.environ.items() if name != "NEREID_TEST_TAKEN"} | {"PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode == 0) == (what == "nothing"), done.stdout
