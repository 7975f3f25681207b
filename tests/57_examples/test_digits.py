"""The example `digits`: one command, then a digit that is drawn in the browser."""

from pathlib import Path

import pytest
from harness import paths
from harness.browser import Browser
from harness.examples import Example

SEVEN = [[(0.3, 0.2), (0.7, 0.2), (0.6, 0.4), (0.5, 0.6), (0.42, 0.85)]]
THREE = [[(0.32, 0.2), (0.5, 0.13), (0.65, 0.25), (0.6, 0.4), (0.45, 0.48), (0.62, 0.55), (0.66, 0.72), (0.52, 0.86), (0.33, 0.8)]]


@pytest.mark.onnx
def test_a_digit_is_drawn(tmp_path: Path) -> None:
    with Example(tmp_path, "digits") as example, Browser(tmp_path / "browser") as browser:
        said = example.says("in a browser")
        assert f"http://localhost:{example.http_port}/" in said
        with browser.page(f"http://localhost:{example.http_port}/") as page:
            page.until("[...document.querySelectorAll('#rows button')].find((each) => each.textContent === 'digits' && (each.id = 'digits'))")
            page.click("#digits")
            for name, strokes in (("seven", SEVEN), ("three", THREE)):
                page.until("document.querySelector('.drop canvas')")
                page.draw(".drop canvas", strokes)
                page.value("document.querySelector('#said').textContent = ''")
                page.click("#detail form button.main")
                assert page.until("document.querySelector('#said').textContent").startswith(f"logits: {name}, ")
                page.click(".side button")
        example.ctrl_c()


def test_a_name_that_is_none_is_said(tmp_path: Path) -> None:
    known = sorted(path.parent.name for path in (paths.ROOT / "examples").glob("*/README.md"))
    assert {"digits", "speech", "search", "ocr"} == set(known)
    for name in ("", "digit", "page"):
        with Example(tmp_path, name) as example:
            example.process.ends(2)
            assert f"EXAMPLE names '{name}'; there are: {' '.join(known)}" in example.process.log()
