"""The live page, where something has no end: questions without an answer, streams that nobody sees, tensors that are too large to be shown."""

import json
from pathlib import Path

import pytest
from harness import rawhttp
from harness.browser import Browser, Page
from harness.live_page import NOTICED_MS, choose, counts_words, give, row, run, tile, url, wrong
from harness.repository import Repository
from harness.servers import WITH_NUMPY, Nereid

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


def run_large(page: Page) -> str:
    """Presses Run; what is shown then. The page computes for no longer than with small outputs, as people notice it."""
    said = "document.querySelector('#said').textContent"
    settled = f"new Promise((done) => {{ const look = () => {said} ? done() : setTimeout(look, 20); look(); }})"
    button = "document.querySelector('#detail form button.main')"
    page.until(button)
    tasks = page.tasks_ms(f"{said} = '', {button}.click(), {settled}")
    assert max(tasks) < NOTICED_MS
    return page.text("#detail [role=region]")


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
        for count in counts:
            give(page, f"{count}")
            shown = run_large(page)
            wanted = ["characters, too many to be shown here"] if count == 2_000_000 else [f"{each - 200} more" for each in (count, count // 64)]
            assert all(each in shown for each in wanted), shown


LONG_STRINGS = """
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        one, many = np.full(1, b"y" * 40_000_000, object), np.full(300, "\u00e9".encode() * 100_000, object)
        return [pb.InferenceResponse([pb.Tensor("one", one), pb.Tensor("many", many)]) for _ in requests]
"""


def test_long_strings_are_cut(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    outputs = "\n".join(f'output [ {{ name: "{name}" data_type: TYPE_STRING dims: [ -1 ] }} ]' for name in ("one", "many"))
    folder = repository.model("long", f"""
        name: "long" backend: "python" max_batch_size: 0
        input [ {{ name: "count" data_type: TYPE_INT32 dims: [ 1 ] }} ] {outputs}""")
    (folder / "1" / "model.py").write_text(LONG_STRINGS)
    with Nereid(repository.path, env=WITH_NUMPY) as server, browser.page(url(server)) as page:
        choose(page, "long")
        shown = run_large(page)
        given = 10_000 - 4  # bytes of the first one; before them stands their number
        accented = "\u00e9" * (given // 2)
        assert f"{'y' * given}… {40_000_000 - given} more bytes" in shown
        assert f'"{accented}… {200_000 - given} more bytes", … 299 more' in shown


def test_a_body_that_is_there_is_given_at_once(browser: Browser, tmp_path: Path) -> None:
    """Nobody can end the question between its last byte and its answer."""
    with Nereid(Repository(tmp_path / "models").path) as server, browser.page(url(server)) as page:
        assert page.value("""import('/nereid/body.js').then(async ({ Body }) => {
            let giver, ended = false;
            const answered = new Body({ body: new ReadableStream({ start: (given) => { giver = given; } }) }).take(2).then(() => ended ? 'late' : 'at once');
            giver.enqueue(new Uint8Array(1));
            await new Promise((later) => setTimeout(later, 20)); // the browser has had its turn
            setTimeout(() => { ended = true; });
            giver.enqueue(new Uint8Array(1));
            giver.close();
            return answered;
        })""") == "at once"


def test_a_long_event_whose_end_is_cut(browser: Browser, tmp_path: Path) -> None:
    with Nereid(Repository(tmp_path / "models").path) as server, browser.page(url(server)) as page:
        for length in (999_999, 1_000_000, 1_000_001):
            got = page.value(f"""import('/nereid/body.js').then(async ({{ events }}) => {{
                const parts = [`data:${{'7'.repeat({length} - 5)}}\\n`, '\\ndata:{{}}\\n\\n'], found = [];
                const stream = new ReadableStream({{ pull: (giver) => parts.length ? giver.enqueue(new TextEncoder().encode(parts.shift())) : giver.close() }});
                for await (const {{ length }} of events(stream)) found.push(length ?? 0);
                return found.join(' ');
            }})""")
            assert got == (f"{length} 0" if length >= 1_000_000 else "0 0")
