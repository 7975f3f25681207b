#!/usr/bin/env python3
"""Makes the pictures of examples/*/README.md: each example, started by its command and used in Chromium.

    build/venv/bin/python tools/example_pictures.py [NAME...]

For whoever changes how an example looks; it wants what `tools/setup.sh test example-search example-ocr` installs.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from harness.browser import Browser  # noqa: E402
from harness.examples import Example  # noqa: E402

PICTURES = ROOT / "docs" / "user" / "pictures"
TERMINAL = "<!doctype html><title>terminal</title><style>body { margin: 0; padding: 18px 24px; background: #14181d; color: #d7dde4; font: 15px/1.5 'DejaVu Sans Mono', monospace } pre { margin: 0; font: inherit } b { color: #56c56f; font-weight: 400 }</style><pre></pre>"


def search(browser: Browser, folder: Path) -> None:
    with Example(folder, "search") as example:
        example.says("Ready.")
        with browser.page(example.url, width=1000, height=790) as page:
            page.until("document.querySelector('#state').dataset.state === 'ready'")
            page.click("#query")
            page.write("my door makes a noise")
            page.until("document.querySelector('#found li')?.innerText.includes('squeaking')")
            page.picture(PICTURES / "example-search.png")
        example.ctrl_c()


def ocr(browser: Browser, folder: Path) -> None:
    with Example(folder, "ocr") as example:
        example.says("Ready.")
        with browser.page(example.url, width=1200, height=860) as page:
            page.until("document.querySelector('#state').dataset.state === 'ready'")
            page.value("document.querySelector('#found').replaceChildren()")
            page.click("#samples button")  # once more: the first answer takes longer
            page.until("document.querySelector('#state').dataset.state === 'ready' && document.querySelector('#found li')")
            page.click("h1")
            page.picture(PICTURES / "example-ocr.png")
        example.ctrl_c()


def speech(browser: Browser, folder: Path) -> None:
    with Example(folder, "speech", "--fast --colours") as example:
        example.process.ends(0)
        said = example.process.log()
    said = said[said.index("Listening") :].replace("\033[32m", "<b>").replace("\033[0m", "</b>")
    file = folder / "terminal.html"
    file.write_text(TERMINAL.replace("<pre>", f"<pre>$ make example EXAMPLE=speech\n{said.rstrip()}"))
    with browser.page(file.as_uri(), width=940, height=420) as page:
        height = page.value("document.body.scrollHeight")
        page.ask("Emulation.setDeviceMetricsOverride", width=940, height=height, deviceScaleFactor=1, mobile=False)
        page.picture(PICTURES / "example-speech.png")


ALL = {each.__name__: each for each in (search, ocr, speech)}


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "browser") as browser:
        for name in names or ALL:
            ALL[name](browser, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
