#!/usr/bin/env python3
"""Makes the pictures of docs/user/live-page.md: the page with the sample models, somebody at work on it, in Chromium.

    build/venv/bin/python tools/live_pictures.py

For whoever changes how the page looks; it wants a build, the sample repository and Chromium, as the tests do.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from harness import paths, rawhttp  # noqa: E402
from harness.browser import Browser, Page  # noqa: E402
from harness.servers import Nereid  # noqa: E402

PICTURES = ROOT / "docs" / "user" / "pictures"
SEVEN = [[(0.3, 0.2), (0.7, 0.2), (0.6, 0.4), (0.5, 0.6), (0.42, 0.85)]]
BUSY_SECONDS = 70


def load(server: Nereid, model: str, concurrency: int, *more: str) -> subprocess.Popen[bytes]:
    argv = [str(paths.nereid_binary()), "bench", "-m", model, "-u", server.http, f"--concurrency-range={concurrency}", "-p", "1000", "--max-trials=1000", "-s", "0.01", *more]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def classify(page: Page) -> None:
    page.until("[...document.querySelectorAll('#rows button')].find((each) => each.textContent === 'digits' && (each.id = 'digits'))")
    page.click("#digits")
    page.until("document.querySelector('.drop canvas')")
    page.draw(".drop canvas", SEVEN)
    page.click("#detail form button.main")
    page.until("document.querySelector('.classes')")


def window(page: Page, height: int, first: str) -> None:
    """So high, with this element at its upper edge."""
    page.ask("Emulation.setDeviceMetricsOverride", width=1280, height=height, deviceScaleFactor=1, mobile=False)
    page.value(f"document.querySelector('{first}').scrollIntoView()")


def fail(server: Nereid) -> None:
    """Three requests, two of them in the same way, and a model that does not load."""
    short = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
    for model in ("digits", "digits", "faces"):
        rawhttp.post(server.http, f"/v2/models/{model}/infer", short)
    broken = {"parameters": {"config": '{"backend": "onnxruntime", "max_batch_size": 8, "instance_group": [{"kind": "KIND_GPU"}]}'}}
    rawhttp.post(server.http, "/v2/repository/models/digits_auto/load", broken)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "browser") as browser:
        options: dict[str, str | list[str]] = {"model-control-mode": "explicit", "load-model": ["digits", "identity_fp32"]}
        with Nereid(paths.need(paths.SAMPLE_MODELS), options) as server, browser.page(f"http://{server.http}/", height=700) as page:
            loads = [load(server, "digits", 8), load(server, "identity_fp32", 1, "--shape", "INPUT0:16")]
            time.sleep(BUSY_SECONDS)
            page.click("#now-title")
            page.value("scrollTo(0, 0)")
            page.picture(PICTURES / "live-page.png")
            for each in loads:
                each.terminate()
                each.wait()
            classify(page)
            page.dark(True)
            window(page, 1000, "#columns")
            page.picture(PICTURES / "live-page-try.png")
            page.dark(False)
            fail(server)
            page.until("document.querySelectorAll('#errors tbody tr').length === 3")
            window(page, 260, "#errors")
            page.picture(PICTURES / "live-page-errors.png")


if __name__ == "__main__":
    main()
