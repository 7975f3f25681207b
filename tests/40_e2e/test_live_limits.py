"""The live page, where something has no end: questions without an answer, streams that nobody sees, tensors that are too large to be shown."""

import json
from pathlib import Path

import pytest
from harness import rawhttp
from harness.browser import Browser
from harness.live_page import NOTICED_MS, WITH_NUMPY, choose, counts_words, give, row, run, tile, url, wrong
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


def test_a_stream_that_nobody_sees_ends(browser: Browser, tmp_path: Path) -> None:
    """Another model was chosen, of which nobody is told as of a failure; or an error came. The server sees the connection close."""
    repository = Repository(tmp_path / "models")
    counts_words(repository)
    repository.identity("other")
    with Nereid(repository.path, env=WITH_NUMPY) as server, browser.page(url(server)) as page:
        choose(page, "counts")
        give(page, "for ever")
        page.click("#detail form button.main")
        page.until("document.querySelectorAll('.responses li').length > 3")
        page.value("document.querySelector('#said').textContent = ''")
        choose(page, "other")
        page.click("#all-models")
        page.until(f"{tile('Waiting')} === '0' && {tile('Busy instances')} === '0 of 2'")
        assert page.text("#said") == ""
        choose(page, "counts")
        give(page, "right wrong for ever")
        assert run(page) == "Failed: it is wrong"
        page.click("#all-models")
        page.until(f"{tile('Waiting')} === '0' && {tile('Busy instances')} === '0 of 2'")


def test_shapes_too_large_for_a_picture(browser: Browser, tmp_path: Path) -> None:
    """The form says so, and is there at once."""
    repository = Repository(tmp_path / "models")
    repository.identity("small", dims=(3, 640, 640))
    repository.identity("large", dims=(2, 4000, 1000))
    repository.identity("picture", dims=(1, 4000, 2000))
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        choose(page, "small")
        page.until("document.querySelector('#detail .picture')")
        form = "document.querySelector('#detail form')"
        look = f"const look = () => {form} ? done() : setTimeout(look, 20);"
        begin = f"{row('picture')}.querySelector('button').click()"
        tasks = page.tasks_ms(f"{begin}, new Promise((done) => {{ {look} look(); }})")
        assert "too large to be drawn here" in page.text("#detail .field") and page.value("document.querySelector('#detail .picture') === null")
        assert max(tasks) < NOTICED_MS
        choose(page, "large")
        page.until("document.querySelector('#detail textarea')")
        assert "too large" not in page.text("#detail .field")


MANY_NUMBERS = """
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        def answer(request):
            count = int(pb.get_input_tensor_by_name(request, "count").as_numpy()[0])
            values, text = np.arange(count), np.full(count // 64, b"text", object)
            return pb.InferenceResponse([pb.Tensor("real", values.astype(np.float32)), pb.Tensor("whole", values[: count // 64]), pb.Tensor("text", text)])
        if not DECOUPLED:
            return [answer(request) for request in requests]
        for request in requests:
            sender = request.get_response_sender()
            sender.send(answer(request))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.mark.parametrize(("decoupled", "counts"), [(False, (4_000_000,)), (True, (20_000, 2_000_000))], ids=["answer", "stream"])
def test_large_outputs_are_cut(browser: Browser, tmp_path: Path, decoupled: bool, counts: tuple[int, ...]) -> None:
    """The page computes for no longer than with small ones, as people notice it."""
    repository = Repository(tmp_path / "models")
    names = {"real": "FP32", "whole": "INT64", "text": "STRING"}
    outputs = "\n".join(f'output [ {{ name: "{name}" data_type: TYPE_{datatype} dims: [ -1 ] }} ]' for name, datatype in names.items())
    folder = repository.model("large", f"""
        name: "large" backend: "python" max_batch_size: 0
        input [ {{ name: "count" data_type: TYPE_INT32 dims: [ 1 ] }} ] {outputs}
        model_transaction_policy {{ decoupled: {json.dumps(decoupled)} }}""")
    (folder / "1" / "model.py").write_text(f"DECOUPLED = {decoupled}\n{MANY_NUMBERS}")
    with Nereid(repository.path, env=WITH_NUMPY) as server, browser.page(url(server)) as page:
        choose(page, "large")
        said = "document.querySelector('#said').textContent"
        settled = f"new Promise((done) => {{ const look = () => {said} ? done() : setTimeout(look, 20); look(); }})"
        for count in counts:
            give(page, f"{count}")
            tasks = page.tasks_ms(f"{said} = '', document.querySelector('#detail form button.main').click(), {settled}")
            shown = page.text("#detail [role=region]")
            wanted = ["characters, too many to be shown here"] if count == 2_000_000 else [f"{each - 200} more" for each in (count, count // 64)]
            assert all(each in shown for each in wanted), shown
            assert max(tasks) < NOTICED_MS
