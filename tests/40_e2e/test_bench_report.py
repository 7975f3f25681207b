"""nereid bench --html: one file, opened in a real browser."""

import re
import subprocess
from pathlib import Path

import pytest
from harness import paths
from harness.load_tester import measured
from harness.repository import Repository
from harness.servers import Nereid

pytestmark = pytest.mark.once

def dom(page: Path, folder: Path) -> str:
    """What the page is once its scripts have run; what they complain of fails the test."""
    argv = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr", "--virtual-time-budget=5000"]
    argv += [f"--user-data-dir={folder}", "--dump-dom", page.as_uri()]
    got = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert got.returncode == 0 and "CONSOLE" not in got.stderr, got.stderr
    return got.stdout


def test_the_report_in_a_browser(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("plain", dims=(4,))
    page = tmp_path / "report.html"
    with Nereid(repository.path) as server:
        printed = measured("-m", "plain", "-u", server.http, "-p", "20", "--max-trials=3", "--concurrency-range", "1:5:2", "--html", str(page))
    assert not re.search(r"(?:src|href)=", page.read_text().split("<script>")[0]), "it asks for another file"
    shown = dom(page, tmp_path / "browser")
    assert shown.count("<canvas") == 4 and shown.count("<figure") == 4
    assert f"plain at {server.http}" in re.sub(r"<[^>]*>", "", shown)
    throughputs = re.findall(r"^Concurrency: (\d+), throughput: ([\d.]+)", printed, re.MULTILINE)
    client = re.search(r'<table id="client">(.*?)</table>', shown, re.DOTALL)
    assert client and len(throughputs) == 3
    rows = re.findall(r'<th scope="row">(\d+)</th><td>([\d,.]+)</td>', client[1])
    told = [(level, float(rate.replace(",", ""))) for level, rate in rows]
    assert told == [(level, pytest.approx(float(rate), abs=0.1)) for level, rate in throughputs], client[1]
    assert "p99.9, us" in client[1] and "queue" in shown
