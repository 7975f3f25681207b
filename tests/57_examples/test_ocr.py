"""The example `ocr`, in a real browser: words that a test draws are read back, with boxes where they were drawn."""

import io
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import paths
from harness.browser import Browser, Page
from harness.examples import Example

PACKAGES = paths.ROOT / "build" / "deps" / "example-ocr"
WORDS = "anchor basket candle dragon eleven forest garden hammer island jacket kitten ladder market needle orange pepper quarter river silver tunnel umbrella valley window yellow".split()
RECEIPT = ["CORNER CAFE", "12 Harbour Street", "2 Cappuccino", "7.60", "1 Apple cake", "4.20", "1 Lemonade", "3.90", "Total", "15.70", "Thank you, come again!"]
POSTER = ["SUMMER CONCERT", "in the old town square", "Saturday 12 July", "doors open at 19:30", "Free entry"]
TEXTS = "[...document.querySelectorAll('#found button > span:first-child')].map((each) => each.textContent)"
READ = "document.querySelector('#state').dataset.state === 'ready' && document.querySelector('#state-text').textContent"


def plain(text: str) -> str:
    """Without blanks: where they stand the network often does not see."""
    return "".join(text.split())


def drawn(lines: list[str], kind: str) -> tuple[bytes, list[tuple[int, int, int, int]]]:
    """A picture of lines, as a file, and where each stands."""
    sys.path.append(str(paths.need(PACKAGES, "tools/setup.sh example-ocr")))
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (900, 80 + 90 * len(lines)), "#f4efe2")
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(44)
    boxes = []
    for at, text in enumerate(lines):
        place = (60 + 40 * (at % 3), 50 + 90 * at)
        pen.text(place, text, "#20303c", font)
        boxes.append(pen.textbbox(place, text, font))
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue(), boxes


def read(page: Page, file: Path) -> list[str]:
    page.value("document.querySelector('#state').dataset.state = 'waiting'")
    page.choose_file("#file", file)
    page.until(READ)
    return list(page.value(TEXTS))


def boxes(page: Page, file: Path, name: str) -> Any:
    """The boxes of the answer itself."""
    page.choose_file("#file", file)
    ask = f"""(async () => {{
        const {{ infer }} = await import('./example.js'), {{ lengthAndBytes }} = await import('./tensor.js');
        const bytes = lengthAndBytes(new Uint8Array(await document.querySelector('#file').files[0].arrayBuffer()));
        return (await infer('ocr', [{{ name: 'IMAGE', datatype: 'BYTES', shape: [1], bytes }}], [{{ name: '{name}', datatype: 'INT32' }}])).{name};
    }})()"""
    return page.value(ask)


def test_what_the_page_draws_is_read(example: Example, browser: Browser) -> None:
    with browser.page(example.url) as page:
        page.until(f"{READ}.includes('{len(RECEIPT)} lines')")
        assert [plain(text) for text in page.value(TEXTS)] == [plain(text) for text in RECEIPT]
        page.value("[...document.querySelectorAll('#samples button')][1].click()")
        page.until("document.querySelector('#found')?.innerText.includes('SUMMER')")
        assert [plain(text) for text in page.value(TEXTS)] == [plain(text) for text in POSTER]


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_words_that_nobody_knew_before(example: Example, browser: Browser, tmp_path: Path, kind: str) -> None:
    chosen = random.Random(kind).sample(WORDS, 12)
    lines = [" ".join(chosen[at : at + 2]) for at in range(0, 12, 2)]
    data, places = drawn(lines, kind)
    file = tmp_path / "words"
    file.write_bytes(data)
    with browser.page(example.url) as page:
        page.until(READ)
        got = read(page, file)
        assert [plain(text) for text in got] == [plain(text) for text in lines]
        answer = boxes(page, file, "BOXES")
        assert answer["shape"] == [len(lines), 4]
        for at, place in enumerate(places):
            box = answer["values"][4 * at : 4 * at + 4]
            assert all(abs(a - b) < 20 for a, b in zip(box, place, strict=True)), (box, place)


def test_without_text_and_without_a_picture(example: Example, browser: Browser, tmp_path: Path) -> None:
    from PIL import Image

    empty, text, huge = (tmp_path / name for name in ("empty.png", "text.png", "huge.png"))
    Image.new("RGB", (300, 200), "white").save(empty)
    text.write_text("no picture")
    with browser.page(example.url) as page:
        page.until(READ)
        assert read(page, empty) == []
        assert page.text("#state-text") == "No text was found"
        page.choose_file("#file", text)
        page.until("document.querySelector('#state-text').textContent === 'text.png is no picture that the browser can show'")
        Image.new("1", (8000, 6000)).save(huge)
        page.choose_file("#file", huge)
        page.until("document.querySelector('#state-text').textContent.includes('the image cannot be read: it has 8000 x 6000 pixels; 40000000 are the most')")
        assert page.complaints and all("400" in each for each in page.complaints)
        page.complaints.clear()


def test_by_keys_in_light_and_dark(example: Example, browser: Browser) -> None:
    """axe finds nothing, at any width; a line that has the focus is marked in the picture."""
    pixels = "document.querySelector('#picture').toDataURL()"
    for dark, width in ((False, 1280), (True, 1280), (False, 380)):
        with browser.page(example.url, width=width, dark=dark) as page:
            page.until(READ)
            before = page.value(pixels)
            for _ in range(6):
                page.key("Tab")
                if page.value("document.activeElement.closest('#found') !== null"):
                    break
            assert page.value("document.activeElement.innerText.startsWith('CORNER')")
            assert page.value(pixels) != before
            page.serves_everybody()
