"""The live page, where something has no end: questions without an answer."""

from pathlib import Path

import pytest
from harness import rawhttp
from harness.browser import Browser
from harness.live_page import choose, row, url, wrong
from harness.repository import Repository
from harness.servers import Nereid

pytestmark = pytest.mark.once


@pytest.mark.parametrize("path", ["/v2/*", "/nereid/errors", "/nereid/live*"])
def test_questions_that_are_never_answered(browser: Browser, tmp_path: Path, path: str) -> None:
    """Others are answered. The page says so in time, goes on asking, and has all of it once there is an answer."""
    repository = Repository(tmp_path / "models")
    for name in ("here", "later"):
        repository.identity(name)
    state = "document.querySelector('#state-text').textContent"
    with Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "here"}) as server, browser.page(url(server)) as page:
        page.until(f"{state} === 'Ready' && {row('later')}?.children[2].textContent === 'not loaded'")
        with page.unanswered(f"{url(server)[:-1]}{path}"):
            assert rawhttp.post(server.http, "/v2/repository/models/later/load", {}).status == 200
            wrong(server, "later", "http")
            choose(page, "here")
            page.until(f"{state} === 'The server does not answer'")
            if path == "/v2/*":
                page.until("document.querySelector('#detail .problem')?.textContent === 'The server does not answer'")
        page.until(f"{state} === 'Ready' && {row('later')}?.children[2].textContent === 'ready' && document.querySelectorAll('#error-rows tr').length === 1")
