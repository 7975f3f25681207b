"""The example `search`, in a real browser: what is typed finds what is meant, and the vectors are those of the network itself."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from harness import paths
from harness.browser import Browser, Page
from harness.examples import Example

PACKAGES = paths.ROOT / "build" / "deps" / "example-search"
MODELS = paths.ROOT / "build" / "examples" / "search" / "models"
SENTENCES = (paths.ROOT / "examples" / "search" / "page" / "sentences.txt").read_text().split("\n")[:-1]
ASKED = {
    "why do trees lose their foliage?": "Trees drop their leaves in autumn",
    "what makes you weep in the kitchen?": "Onions make us cry",
    "protect my login": "Use a different password",
    "first woman to code": "Ada Lovelace wrote",
}
READY = f"document.querySelector('#state-text').textContent.startsWith('{len(SENTENCES)} sentences')"
FIRST = "document.querySelector('#found li span')?.textContent"


def ask(page: Page, words: str) -> None:
    page.value("(() => { const box = document.querySelector('#query'); box.value = ''; box.focus(); })()")
    page.write(words)


def test_what_is_typed_finds_what_is_meant(example: Example, browser: Browser) -> None:
    with browser.page(example.url) as page:
        page.until(READY)
        for words, found in ASKED.items():
            ask(page, words)
            page.until(f"{FIRST}?.startsWith({json.dumps(found)})")
            nearness = page.value("[...document.querySelectorAll('#found .number')].map((each) => Number(each.textContent))")
            assert len(nearness) == 8 and nearness == sorted(nearness, reverse=True)
            hinted = page.value("document.querySelector('#found li').innerText.includes('no word in common')")
            assert hinted == (words in ("protect my login", "what makes you weep in the kitchen?")), words
        hosts = {re.match(r"(?:http://[\w.:]+|data:)", each)[0] for each in page.requests}  # type: ignore[index]
        assert hosts <= {f"http://localhost:{example.page_port}", f"http://localhost:{example.http_port}", "data:"}, hosts


def test_the_vectors_are_those_of_the_network(example: Example, browser: Browser) -> None:
    """Of a batch of sentences of different lengths, and of each alone, with the network called in this process."""
    sys.path.append(str(paths.need(PACKAGES, "tools/setup.sh example-search")))
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(MODELS / "tokens" / "1" / "tokenizer.json"))
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(MODELS / "minilm" / "1" / "model.onnx", providers=["CPUExecutionProvider"])
    texts = ["Sharks are older than trees.", "ÄÖÜ – schöne Grüße", "", SENTENCES[0], "long " * 400]
    wanted = []
    for text in texts:
        found = tokenizer.encode(text)
        ids = (found.ids if len(found.ids) <= 128 else [*found.ids[:127], found.ids[-1]])[None:]
        given = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": [0] * len(ids)}
        pieces = session.run(["last_hidden_state"], {name: np.array([row], np.int64) for name, row in given.items()})[0][0]
        mean = pieces.mean(axis=0)
        wanted.append(mean / np.linalg.norm(mean))
    with browser.page(example.url) as page:
        embed = f"""(async () => {{
            const {{ infer }} = await import('./example.js');
            const texts = {json.dumps(texts)};
            const got = await infer('embedding', [{{ name: 'TEXT', datatype: 'BYTES', shape: [texts.length, 1], strings: texts }}], [{{ name: 'EMBEDDING', datatype: 'FP32' }}]);
            return got.EMBEDDING.values;
        }})()"""
        got = np.array(page.value(embed)).reshape(len(texts), -1)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-5)
    nearness = got @ np.array(wanted).T
    assert (nearness.argmax(axis=1) == np.arange(len(texts))).all()
    assert (nearness.diagonal() > 0.99).all(), nearness.diagonal()


def test_sentences_of_ones_own(example: Example, browser: Browser) -> None:
    with browser.page(example.url) as page:
        page.until(READY)
        page.value("document.querySelector('summary').click()")
        page.value("document.querySelector('#sentences').value = 'The parcel leaves on Tuesday.\\n\\nOur office is closed in August.'")
        page.click("#use")
        page.until("document.querySelector('#state-text').textContent === '2 sentences'")
        ask(page, "when do you ship?")
        page.until(f"{FIRST}?.startsWith('The parcel')")
        ask(page, "are you there in summer?")
        page.until(f"{FIRST}?.startsWith('Our office')")
        ask(page, " ")
        page.until("!document.querySelector('#found li')")


def test_by_keys_in_light_and_dark(example: Example, browser: Browser) -> None:
    """axe finds nothing, at any width."""
    for dark, width in ((False, 1280), (True, 1280), (False, 380)):
        with browser.page(example.url, width=width, dark=dark) as page:
            page.until(READY)
            page.until("document.activeElement.id === 'query'")
            page.key("Tab")
            page.key("Tab")
            page.key("Enter")
            page.until(f"{FIRST}?.startsWith('Sea water is salty')")
            page.serves_everybody()


def test_a_server_that_is_gone_is_said(example: Example, browser: Browser) -> None:
    """The last test of this file: the example does not run twice."""
    example.says("Ready.")
    with browser.page(example.url) as page:
        page.until(READY)
        example.ctrl_c()
        ask(page, "anything")
        page.until("document.querySelector('#state-text').textContent.includes('cannot be reached')")
        assert page.complaints and all("ERR_CONNECTION" in each for each in page.complaints)
        page.complaints.clear()
