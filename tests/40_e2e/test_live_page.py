"""The live page, opened in a real browser and used as people do: with a mouse, with keys, with a program that reads the screen."""

import base64
import contextlib
import json
import queue
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import paths, procfs, rawhttp
from harness.browser import Browser, Page
from harness.live_page import NOTICED_MS, choose, counts_words, give, row, row_of, run, tile, url, wrong
from harness.repository import Repository, config_type
from harness.servers import WITH_NUMPY, HOST, Nereid, Reference, Server
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.once

MANY = 500
PERIOD_S = 2  # between two looks of the page
SHARE = 0.005  # of a processor, at most, for a page that is open

# What somebody draws for these digits, in parts of the pad.
SEVEN = [[(0.3, 0.2), (0.7, 0.2), (0.6, 0.4), (0.5, 0.6), (0.42, 0.85)]]
ONE = [[(0.5, 0.15), (0.5, 0.85)]]
ZERO = [[(0.5, 0.12), (0.36, 0.2), (0.3, 0.5), (0.36, 0.8), (0.5, 0.88), (0.64, 0.8), (0.7, 0.5), (0.64, 0.2), (0.5, 0.12)]]


# Says its inputs back.
SAYS_BACK = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(pb.InferenceResponse([pb.Tensor(f"{each.name()}_back", each.as_numpy()) for each in request.inputs()]))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def asked_no_stranger(page: Page, server: Server) -> None:
    own = url(server)
    assert page.requests and all(each.startswith((own, "data:")) for each in page.requests), page.requests


@pytest.mark.onnx
def test_from_opening_the_page_to_a_digit(browser: Browser) -> None:
    """Nothing is given to the server but its repository; nothing is read but what stands on the page."""
    with Nereid(paths.need(paths.SAMPLE_MODELS)) as server, browser.page(url(server)) as page:
        page.until("document.querySelector('#state').dataset.state === 'ready'")
        page.click(row_of(page, "digits"))
        for name, strokes in (("one", ONE), ("zero", ZERO), ("seven", SEVEN)):
            page.until("document.querySelector('.drop canvas')")
            page.draw(".drop canvas", strokes)
            said = run(page)
            assert said.startswith(f"logits: {name}, "), said
            bars = page.value("[...document.querySelectorAll('.classes')[0].children].map((each) => each.innerText)")
            assert len(bars) == 10 and bars[0].startswith(name), bars
            page.click(".side button")
        page.until("document.querySelector('#detail').innerText.includes('Where its')")
        page.until("[...document.querySelectorAll('#tiles div')].find((each) => each.innerText.includes('Answered')).innerText.includes('3')")
        assert page.value("document.querySelectorAll('.uplot canvas').length") == 4
        asked_no_stranger(page, server)


@pytest.mark.onnx
def test_a_picture_that_is_dropped_in(browser: Browser, tmp_path: Path) -> None:
    """Dark on light, as digits stand on paper: the page turns it around. What is no picture is said."""
    with Nereid(paths.need(paths.SAMPLE_MODELS)) as server, browser.page(url(server)) as page:
        draw = "const c = document.createElement('canvas'); c.width = 300; c.height = 400; const p = c.getContext('2d'); p.fillStyle = '#fff';"
        draw += " p.fillRect(0, 0, 300, 400); p.strokeStyle = '#111'; p.lineWidth = 50; p.beginPath(); p.ellipse(150, 200, 80, 140, 0, 0, 7); p.stroke();"
        png = page.value(f"(() => {{ {draw} return c.toDataURL('image/png').split(',')[1]; }})()")
        picture, text = tmp_path / "zero.png", tmp_path / "text.png"
        picture.write_bytes(base64.b64decode(png))
        text.write_text("no picture")
        choose(page, "digits")
        page.until("document.querySelector('#detail input[type=file]')")
        page.choose_file("#detail input[type=file]", text)
        page.until("document.querySelector('#detail .field [role=status]').textContent.includes('no picture')")
        page.choose_file("#detail input[type=file]", picture)
        page.until("document.querySelector('#detail .field input[type=checkbox]').checked")
        assert run(page).startswith("logits: zero, ")


@pytest.mark.parametrize("datatype", ["FP32", "FP64", "FP16", "BF16", "INT8", "INT64", "UINT64", "BOOL", "BYTES"])
def test_every_kind_of_number_comes_back(browser: Browser, tmp_path: Path, datatype: str) -> None:
    values = {"BOOL": "true false true", "BYTES": "ä\n\n<b>x</b>", "INT8": "-128 0 127", "INT64": "-9223372036854775808 0 9223372036854775807", "UINT64": "0 1 18446744073709551615"}
    typed = values.get(datatype, "-1.5 0 0.25")
    repository = Repository(tmp_path / "models")
    repository.identity("same", datatype)
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        choose(page, "same")
        page.until("document.querySelector('#detail textarea')")
        page.value("document.querySelector('#detail textarea').select()")
        page.click("#detail textarea")
        page.value("document.querySelector('#detail textarea').value = ''")
        page.write(typed)
        run(page)
        shown = page.text("#detail [role=region]") if datatype in ("BYTES", "BOOL") else page.value("document.querySelector('#detail [role=region] pre').textContent")
        if datatype == "BYTES":
            assert json.dumps(typed.split("\n"), ensure_ascii=False)[1:-1] in shown
            assert not page.value("document.querySelector('#detail b')")
        else:
            assert typed.replace(" ", ", ") in shown


@pytest.mark.parametrize("datatype", ["FP16", "BF16", "FP32", "FP64"])
def test_what_is_no_finite_number_comes_back(browser: Browser, tmp_path: Path, datatype: str) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("same", datatype)
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        choose(page, "same")
        give(page, "nan inf -Infinity 1")
        assert run(page).startswith("1 outputs, after ")
        assert page.text("#detail [role=region] pre") == "NaN, Infinity, -Infinity, 1"


# The largest finite number of each datatype, as people write it, and the smallest one that is rounded to infinity.
TOO_LARGE = {"FP16": ("65519.99", "-65520"), "BF16": ("3.3895e38", "3.3962e38"), "FP32": ("-3.4028235e38", "3.4028236e38"), "FP64": ("1.7976931348623157e308", "-1e400")}


@pytest.mark.parametrize("datatype", TOO_LARGE)
def test_numbers_that_would_be_sent_as_infinity_are_refused(browser: Browser, tmp_path: Path, datatype: str) -> None:
    fits, too_large = TOO_LARGE[datatype]
    repository = Repository(tmp_path / "models")
    repository.identity("same", datatype)
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        choose(page, "same")
        give(page, f"{fits} {too_large}")
        assert run(page) == f"Failed: Input INPUT0: {too_large} does not fit into {datatype}"
        give(page, fits)
        assert run(page).startswith("1 outputs, after ")
        assert "Infinity" not in page.text("#detail [role=region] pre")


def test_halves_are_rounded_once(browser: Browser, crowd: Server) -> None:
    """As numpy does: each half, the middle between it and the next, and the doubles on either side of that. BF16 likewise."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = np.append((halves[:-1] + halves[1:]) / 2, 65520)
    values = np.concatenate([halves, middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf), -middles[:5], [1e300]])
    middle = 1 + 2**-8
    brains = [np.nextafter(middle, 0), middle, np.nextafter(middle, 2), -middle, -0.0]
    encoded = "async (datatype, values) => [...new Uint16Array((await import('/nereid/tensor.js')).encode(values, datatype).buffer)]"
    with browser.page(url(crowd)) as page, np.errstate(over="ignore"):
        assert page.value(f"({encoded})('FP16', {values.tolist()})") == values.astype(np.float16).view(np.uint16).tolist()
        assert page.value(f"({encoded})('BF16', {[float(each) for each in brains]})") == [0x3F80, 0x3F80, 0x3F81, 0xBF80, 0x8000]


def test_percentages_are_of_all_classes(browser: Browser, tmp_path: Path) -> None:
    """Not of those that are shown. What is no distribution has none."""
    repository = Repository(tmp_path / "models")
    config = 'name: "thousand" backend: "identity" max_batch_size: 0\ninput [ { name: "scores" data_type: TYPE_FP32 dims: [ 1000 ] } ]\n'
    folder = repository.model("thousand", config + 'output [ { name: "classes" data_type: TYPE_FP32 dims: [ 1000 ] label_filename: "labels.txt" } ]\n')
    (folder / "labels.txt").write_text("".join(f"class {at}\n" for at in range(1000)))
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        choose(page, "thousand")
        give(page, "0 5 " + "0 " * 998)
        assert run(page).startswith("classes: class 1, 12.9 percent, ")
        assert page.value("document.querySelectorAll('.classes')[0].children.length") == 10
        assert "the best 10 of 1000 classes" in page.text("#detail [role=region]")
        give(page, "0 inf " + "0 " * 998)
        assert run(page).startswith("1 outputs, ")
        assert page.value("document.querySelectorAll('#detail [role=region] > .classes').length") == 0 and "class 1" in page.text("#detail [role=region] pre")


def test_what_is_typed_wrong_is_said(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("pair", "INT8", (2,))
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        choose(page, "pair")
        for typed, told in (("1 200", "200 does not fit into INT8"), ("1", "expected 2 values, found 1"), ("1 a", "found “a”")):
            page.until("document.querySelector('#detail textarea')")
            page.value(f"document.querySelector('#detail textarea').value = {json.dumps(typed)}")
            said = run(page)
            assert said.startswith("Failed: Input INPUT0: ") and told in said


def test_markup_in_names_and_errors_stays_text(browser: Browser, tmp_path: Path) -> None:
    """Of models, of their tensors, of the server, and in what went wrong."""
    repository = Repository(tmp_path / "models")
    mark = "<img src=x onerror=document.title=1>"
    repository.identity(mark)
    config = f'name: "tensors" backend: "identity" max_batch_size: 0\ninput [ {{ name: "{mark}" data_type: TYPE_FP32 dims: [ 2 ] }} ]\n'
    repository.model("tensors", config + f'output [ {{ name: "{mark}out" data_type: TYPE_FP32 dims: [ 2 ] }} ]\n')
    repository.model("broken", f'name: "broken" backend: "{mark}"\n')
    options = {"id": mark, "exit-on-error": "false", "strict-readiness": "false"}
    with Nereid(repository.path, options) as server, browser.page(url(server)) as page:
        page.until(f"document.querySelector('#server-id').textContent.includes({json.dumps(mark)})")
        choose(page, mark)
        page.until("document.querySelector('#detail').innerText.includes('cannot ask for a model of this name')")
        choose(page, "broken")
        page.until("document.querySelector('#detail .problem')")
        assert mark in page.text("#detail .problem")
        choose(page, "tensors")
        said = run(page)
        assert mark in page.text("#detail fieldset"), said
        page.until("document.querySelector('#detail').innerText.length > 20")
        assert page.value("document.querySelectorAll('img, script:not([src]), [onerror]').length") == 0
        assert page.value("document.title") == f"{mark} – Nereid"


def test_the_browser_is_told_to_trust_nothing_else(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    with Nereid(repository.path) as server:
        page = rawhttp.get(server.http, "/")
        policy = page.header("Content-Security-Policy") or ""
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"):
            assert part in policy
        assert "unsafe" not in policy and "*" not in policy
        assert page.header("X-Content-Type-Options") == "nosniff"
        text = page.body.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|style=|https?:", text)
        for path in re.findall(r'(?:src|href)="(/[^"]*)"', text):
            assert rawhttp.get(server.http, path).status == 200, path
        assert rawhttp.request(HOST, server.http_port, "HEAD", "/").status == 200
        assert rawhttp.post(server.http, "/", {}).status == 405
        for path in ("/nereid/", "/nereid/../../bin/nereid", "/nereid/live.html", "/index.html", "/nereid/live.js/"):
            assert rawhttp.get(server.http, path).status == 404, path


def test_targets_as_proxies_send_them(tmp_path: Path) -> None:
    """The absolute form means what its path means, also on the port of the metrics."""
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    with Nereid(repository.path) as server:
        asked = [(server.http, path) for path in ("/", "/nereid/live.js", "/nereid/errors", "/v2/models/plain")]
        for address, path in [*asked, (server.metrics, "/metrics")]:
            plain = rawhttp.get(address, path)
            assert plain.status == 200
            for form in (f"http://{address}{path}", f"HTTP://proxy.example{path}?x=http://y/z"):
                answer = rawhttp.get(address, form)
                assert (answer.status, answer.header("Content-Type")) == (200, plain.header("Content-Type")), form
        assert rawhttp.get(server.http, f"http://{server.http}").body == rawhttp.get(server.http, "/").body
        live = rawhttp.get(server.http, f"http://{server.http}/nereid/live?model=plain").json()
        assert live["versions"] == rawhttp.get(server.http, "/nereid/live?model=plain").json()["versions"]


@pytest.mark.parametrize("protocol", [["--h1"], []], ids=["http1", "http2"])
def test_files_asked_for_at_once(crowd: Server, protocol: list[str]) -> None:
    """A connection has one of them at a time; none is forgotten."""
    argv = ["h2load", *protocol, "-t1", "-c2", "-m20", "-n200", f"http://{crowd.http}/nereid/uPlot.js"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert "status codes: 200 2xx, 0 3xx, 0 4xx, 0 5xx" in done.stdout, done.stdout


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    with Nereid(repository.path, {"web": "false"}) as server:
        for path in ("/", "/nereid/live", "/nereid/errors", "/nereid/live.js"):
            assert rawhttp.get(server.http, path).status == 404
        assert rawhttp.get(server.http, "/v2/models/plain").status == 200


@pytest.mark.reference
def test_the_reference_has_none(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    with Reference(repository.path) as server:
        for path in ("/", "/nereid/live"):
            assert rawhttp.get(server.http, path).status == 404


def test_keys_are_asked_for(browser: Browser, tmp_path: Path) -> None:
    """The page says nothing of the server, so it needs no key; what it asks for does."""
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    keys = tmp_path / "keys"
    keys.write_text("key-of-alice all\n")
    server = Nereid(repository.path, {"api-keys": str(keys)}).ready_when_it_says("Started Metrics Service")
    with server:
        assert rawhttp.get(server.http, "/").status == 200
        assert rawhttp.get(server.http, "/nereid/live").status == 401
        with browser.page(url(server)) as page:
            page.until("document.querySelector('#problem').innerText.includes('needs a key')")
            assert page.complaints and all("401" in each for each in page.complaints)
            page.click("#access")
            page.until("document.querySelector('#access-dialog').open")
            page.click("#key")
            page.write("key-of-alice")
            page.key("Enter")
            row_of(page, "plain")
            page.until("document.querySelector('#problem').hidden")
            page.complaints.clear()


def test_a_header_is_asked_for(browser: Browser, tmp_path: Path) -> None:
    """Where statistics alone are restricted, the models are there once it is given."""
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    with Nereid(repository.path, {"http-restricted-api": "statistics:x-admin=secret"}) as server, browser.page(url(server)) as page:
        page.until("document.querySelector('#problem').innerText.includes('restricted')")
        assert page.complaints and all("403" in each for each in page.complaints)
        page.click("#access")
        page.click("#header-name")
        page.write("x-admin")
        page.click("#header-value")
        page.write("secret")
        page.click("#access-dialog .main")
        row_of(page, "plain")
        page.until("document.querySelector('#problem').hidden")
        page.complaints.clear()


def _errors(server: Server) -> list[list[str]]:
    """Kind, model, how often and reason of each, as the page gets them."""
    return [[kind, model, times, reason] for _, _, times, kind, model, reason in rawhttp.get(server.http, "/nereid/errors").json()["errors"]]


def test_recent_errors(browser: Browser, tmp_path: Path) -> None:
    """Of both ports and of loading, what came last first, each once with its number; no more of one model than eight."""
    repository = Repository(tmp_path / "models")
    repository.identity("plain", dims=(2,))
    repository.identity("other", dims=(2,))
    repository.model("broken", 'name: "broken" backend: "<b>none</b>"\n')
    with Nereid(repository.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server, browser.page(url(server)) as page:
        cells = "[...document.querySelectorAll('#error-rows tr')].map((line) => [...line.children].slice(1).map((cell) => cell.textContent))"
        page.until(f"{cells}.length === 1")
        (times, model, reason), = page.value(cells)
        assert (times, model) == ("1", "broken") and reason.startswith("Not loaded: ") and "<b>none</b>" in reason
        told = wrong(server, "plain", "http")
        assert wrong(server, "plain", "grpc") == told == wrong(server, "plain", "http")
        unknown = rawhttp.post(server.http, "/v2/models/nowhere/infer", {}).json()["error"]
        page.until(f"{cells}.length === 3")
        assert page.value(cells)[:2] == [["1", "–", unknown], ["3", "plain", told]]
        assert page.value("document.querySelectorAll('#error-rows b').length") == 0
        for at in range(20):
            rawhttp.post(server.http, f"/v2/models/nowhere{at}/infer", {})
        rawhttp.get(server.http, "/v2/models/nowhere")  # no inference
        assert [model for _, model, *_ in _errors(server)] == [""] * 8 + ["plain", "broken"]
        page.until(f"{cells}.length === 10")


def test_names_that_clients_make_up_crowd_out_no_model(tmp_path: Path) -> None:
    """Loads of models that no repository has, and of such that clients bring, share the eight places of what is not there."""
    repository = Repository(tmp_path / "models")
    repository.identity("plain", dims=(2,))
    with Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "plain"}) as server:
        told = wrong(server, "plain", "http")
        brought = {"parameters": {"config": '{"backend": "none"}', "file:1/x": ""}}
        for at in range(70):
            load = f"/v2/repository/models/nowhere{at}/load"
            assert rawhttp.post(server.http, load, brought if at % 2 else {}).status == (400 if at % 2 else 500)
        errors = _errors(server)
        assert [(kind, model) for kind, model, *_ in errors] == [("load", "")] * 8 + [("request", "plain")]
        assert errors[-1][3] == told and "model 'nowhere69': " in errors[0][3]


def test_errors_of_streams(tmp_path: Path) -> None:
    """What a stream tells of a request that failed, while its call goes on."""
    repository = Repository(tmp_path / "models")
    repository.identity("plain", dims=(2,))
    with Nereid(repository.path) as server, grpcclient.InferenceServerClient(server.grpc) as client:
        assert _errors(server) == [] and rawhttp.get(server.http, "/nereid/live").json()["errors"] == 0
        told: queue.Queue[object] = queue.Queue()
        client.start_stream(lambda result, error: told.put(error))
        wrong = grpcclient.InferInput("OTHER", [2], "FP32").set_data_from_numpy(np.zeros(2, np.float32))
        for _ in range(2):
            client.async_stream_infer("plain", [wrong])
            error = told.get(timeout=60)
        client.stop_stream()
        assert isinstance(error, InferenceServerException)
        assert _errors(server) == [["request", "plain", 2, error.message()]]
        answer = rawhttp.post(server.http, "/v2/models/plain/generate_stream", {"OTHER": 1})
        assert [kind_and_model for *kind_and_model, _, _ in _errors(server)][0] == ["request", "plain"], answer.body
        assert rawhttp.get(server.http, "/nereid/live").json()["errors"] == 3


HOLDS_THE_FIRST_LOOK_AT_ERRORS = """(() => {
    const sent = window.fetch, until = new Promise((go) => { window.letGo = go; });
    window.fetch = async (...what) => {
        const answer = await sent(...what);
        if (String(what[0]).endsWith("/nereid/errors") && !window.heldBack) {
            window.heldBack = true;
            await until;
        }
        return answer;
    };
})()"""


def _use_key(page: Page, key: str) -> None:
    page.click("#access")
    page.until("document.querySelector('#access-dialog').open")
    page.value("document.querySelector('#key').value = ''")
    page.click("#key")
    page.write(key)
    page.key("Enter")


def test_recent_errors_are_for_who_may_see_the_log(browser: Browser, tmp_path: Path) -> None:
    """They quote what clients sent: who may see the numbers of the models does not see them for that."""
    repository = Repository(tmp_path / "models")
    repository.identity("plain", dims=(2,))
    keys = tmp_path / "keys"
    keys.write_text("- health,inference\nkey-of-alice statistics,model-repository,metadata\nkey-of-bob all\n")
    with Nereid(repository.path, {"api-keys": str(keys)}) as server:
        wrong(server, "plain", "http")

        def status(path: str, key: str) -> int:
            return rawhttp.request(HOST, server.http_port, "GET", path, None, {"X-API-Key": key}).status

        assert [status("/nereid/live", key) for key in ("", "key-of-alice", "key-of-bob")] == [401, 200, 200]
        assert [status("/nereid/errors", key) for key in ("", "key-of-alice", "key-of-bob")] == [401, 403, 200]
        with browser.page(url(server)) as page:
            for key, seen in (("key-of-alice", False), ("key-of-bob", True)):
                _use_key(page, key)
                row_of(page, "plain")
                page.until(f"document.querySelector('#errors').hidden === {json.dumps(not seen)}")
            page.complaints.clear()
        with browser.page(url(server)) as page:
            # The refusal of the first key comes when the second is there already.
            page.value(HOLDS_THE_FIRST_LOOK_AT_ERRORS)
            _use_key(page, "key-of-alice")
            page.until("window.heldBack")
            _use_key(page, "key-of-bob")
            page.value("window.letGo()")
            page.until("!document.querySelector('#errors').hidden")
            page.complaints.clear()
    with Nereid(repository.path, {"http-restricted-api": "logging:x-admin=secret"}) as server:
        assert (rawhttp.get(server.http, "/nereid/live").status, rawhttp.get(server.http, "/nereid/errors").status) == (200, 403)


def test_load_and_unload(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    for name in ("here", "later"):
        repository.identity(name)
    with Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "here"}) as server, browser.page(url(server)) as page:
        state = f"{row('later')}?.children[2].textContent"
        choose(page, "later")
        assert page.value(state) == "not loaded"
        page.until("document.querySelector('#detail .bar button:enabled')")
        page.click("#detail .bar button")
        page.until("document.querySelector('#said').textContent === 'later is loaded'")
        assert rawhttp.get(server.http, "/v2/models/later/ready").status == 200
        page.until(f"{state} === 'ready' && document.querySelector('#detail form')")
        page.click("#detail .bar button + button")
        page.until("document.querySelector('#confirm-dialog').open")
        page.key("Escape")  # it was not meant
        page.until("!document.querySelector('#confirm-dialog').open")
        assert rawhttp.get(server.http, "/v2/models/later/ready").status == 200
        page.click("#detail .bar button + button")
        page.until("document.querySelector('#confirm-dialog').open")
        page.click("#confirm-dialog .main")
        page.until("document.querySelector('#said').textContent === 'later is unloaded'")
        assert rawhttp.get(server.http, "/v2/models/later/ready").status == 400
        page.until(f"{state} === 'unavailable' && document.querySelector('#detail').innerText.includes('unloaded')")
        page.until(f"{tile('Answered')} === '–' && {tile('Busy instances')} === '–'")
        assert rawhttp.post(server.http, "/v2/repository/models/later/load", {}).status == 200  # by somebody else
        page.until(f"{state} === 'ready' && document.querySelector('#detail form')")
        assert rawhttp.post(server.http, "/v2/repository/models/later/unload", {}).status == 200
        page.until(f"{state} === 'unavailable' && !document.querySelector('#detail form')")
        shutil.rmtree(repository.path / "later")
        page.click("#detail .bar button")
        page.until("document.querySelector('#problem').innerText.includes('failed')")
        page.complaints.clear()  # the browser notes each answer that is an error


def test_it_says_why_models_are_not_loaded_here(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        choose(page, "plain")
        page.until("document.querySelector('#detail .bar').innerText.includes('--model-control-mode=explicit')")
        assert page.value("[...document.querySelectorAll('#detail .bar:first-child button')].every((each) => each.disabled)")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = Repository(tmp_path_factory.mktemp("crowd") / "models")
    for at in range(MANY):
        repository.identity(f"model_{at:03}")
    with Nereid(repository.path) as server:
        yield server


def test_many_models(browser: Browser, crowd: Server) -> None:
    """Only rows that can be seen are in the page, wherever it is scrolled to; the focus goes from one to the next by the arrows."""
    with browser.page(url(crowd)) as page:
        page.until(f"document.querySelector('#model-count').textContent === '{MANY}'")
        rows = "document.querySelectorAll('#rows tr[data-index]').length"
        assert page.value("document.querySelector('#models').getAttribute('aria-rowcount')") == str(MANY + 1)
        assert 10 < page.value(rows) < 50
        page.value("document.querySelector('#scroll').scrollTop = 1e9")
        row_of(page, f"model_{MANY - 1}")
        assert 10 < page.value(rows) < 50
        page.value("document.querySelector('#scroll').scrollTop = 0")
        page.value("document.getElementById('chosen-by-test')?.removeAttribute('id')")
        page.value(f"document.querySelector('{row_of(page, 'model_000')}').focus()")
        for _ in range(40):
            page.key("ArrowDown")
        assert page.value("document.activeElement.textContent") == "model_040"
        page.click("#filter")
        page.write("_123")
        page.until(f"document.querySelector('#model-count').textContent === '1 of {MANY}'")
        assert page.value(rows) == 1


def test_many_models_scroll_smoothly(browser: Browser, crowd: Server) -> None:
    """From end to end in a hundred steps, while the numbers come in: no task of the page computes for as long as people notice."""
    with browser.page(url(crowd)) as page:
        page.until(f"document.querySelector('#model-count').textContent === '{MANY}'")
        scroll = "const s = document.querySelector('#scroll'), frame = () => new Promise(requestAnimationFrame);"
        steps = "for (let i = 0; i <= 100; i++) { s.scrollTop = i / 100 * s.scrollHeight; await frame(); await frame(); }"
        tasks = page.tasks_ms(f"(async () => {{ {scroll} {steps} }})()")
        assert len(tasks) > 200
        assert max(tasks) < NOTICED_MS


def test_the_numbers_move(browser: Browser, tmp_path: Path) -> None:
    """Three requests wait for a batch of four; when the fourth comes all are answered at once."""
    repository = Repository(tmp_path / "models")
    batching = "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 600000000 }"
    repository.identity("batched", dims=(1,), max_batch_size=4, extra=batching)
    repository.identity("other")
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}).encode()
    ask = rawhttp.head("POST", "/v2/models/batched/infer", {}, body) + body
    with Nereid(repository.path) as server, browser.page(url(server)) as page, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(rawhttp.Connection(HOST, server.http_port)) for _ in range(4)]
        for client in clients[:3]:
            client.send(ask)
        page.until(f"{tile('Waiting')} === '3'")
        clients[3].send(ask)
        assert all(client.answer().status == 200 for client in clients)
        label = "document.querySelectorAll('#charts [role=img]')[2].getAttribute('aria-label')"
        page.until(  # until its next look
            f"{tile('Answered')} === '4' && Number({tile('Requests/s')}) > 0 && {tile('Batch size')} === '4'"
            f" && !['–', '0 µs'].includes({tile('Latency, half')}) && {tile('Waiting')} === '0'"
            f" && {label} === 'Batch size, mean, chart of the last minutes; now rows 4'"
            f" && {row('batched')}.children[6].textContent === '4'"
        )
        choose(page, "other")
        page.until(f"{tile('Answered')} === '0' && document.querySelector('#scope').textContent === 'of other'")
        page.click("#all-models")
        page.until(f"{tile('Answered')} === '4'")


def test_a_server_that_goes_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    """With another model, and as many errors as before."""
    state = "document.querySelector('#state-text').textContent"
    cells = "[...document.querySelectorAll('#error-rows td:nth-child(3)')].map((cell) => cell.textContent).join()"
    models = "[...document.querySelectorAll('#rows button')].map((button) => button.textContent).join()"

    def shown(page: Page, server: Server, model: str) -> None:
        wrong(server, model, "http")
        page.until(f"{state} === 'Ready' && {models} === {json.dumps(model)} && {cells} === {json.dumps(model)}")

    for name in ("before", "after"):
        Repository(tmp_path / name).identity(name)
    with Nereid(tmp_path / "before") as server:
        port = server.http_port
        with contextlib.ExitStack() as stack:
            page = stack.enter_context(browser.page(url(server)))
            shown(page, server, "before")
            server.stop()
            page.until(f"{state} === 'The server cannot be reached'")
            server = Nereid(tmp_path / "after")
            server.http_port = port
            shown(page, stack.enter_context(server), "after")
            assert page.complaints and all("ERR_" in each or "503" in each for each in page.complaints)
            page.complaints.clear()


ROWS = 2000


def test_the_model_that_is_looked_at_is_never_left_out(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("crowd", extra="version_policy { all { } }", versions=tuple(range(1, ROWS + 1)))
    repository.identity("last")
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}]}
        assert [rawhttp.post(server.http, "/v2/models/last/infer", body).status for _ in range(5)] == [200] * 5
        page.until(f"document.querySelector('#left-out').textContent.startsWith('The numbers of 1 more versions') && {tile('Answered')} === '5'")
        page.click("#filter")
        page.write("last")
        choose(page, "last")
        page.until(f"{tile('Answered')} === '5' && {tile('Busy instances')} === '0 of 1' && document.querySelector('#left-out').hidden")


def test_a_sequence_is_given_its_number(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("steps", "INT32", (1,), max_batch_size=4, extra="sequence_batching { }")
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        choose(page, "steps")
        assert run(page).startswith("OUTPUT0: ") or "outputs" in page.text("#said")
        page.value("[...document.querySelectorAll('fieldset input[type=checkbox]')].forEach((each) => { each.checked = false; })")
        said = run(page)
        assert said.startswith("Failed: ") and "sequence 1" in said, said
        page.complaints.clear()  # the browser notes each answer that is an error


def test_a_model_that_answers_many_times(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    counts_words(repository)
    with Nereid(repository.path, env=WITH_NUMPY) as server, browser.page(url(server)) as page:
        choose(page, "counts")
        page.until("document.querySelector('#detail textarea')")
        page.value("document.querySelector('#detail textarea').value = '<i>one</i> two three'")
        assert run(page).startswith("3 responses, after ")
        assert page.value("[...document.querySelectorAll('.responses li')].map((each) => each.textContent)") == ["word: <i>one</i>", "word: two", "word: three"]
        page.value("document.querySelector('#detail textarea').value = 'for ever'")
        page.click("#detail form button.main")
        page.until("document.querySelectorAll('.responses li').length > 3")
        page.click("#detail form button.main + button")
        page.until("document.querySelector('#said').textContent === 'Failed: stopped'")
        page.until(f"{tile('Waiting')} === '0' && {tile('Busy instances')}.startsWith('0')")


def test_a_stream_takes_and_shows_what_is_typed(browser: Browser, tmp_path: Path) -> None:
    """Numbers that JSON's cannot tell, texts that look like some; no sequence, where streams have no number for one."""
    repository = Repository(tmp_path / "models")
    types = {"whole": "INT64", "real": "FP32", "mark": "BOOL", "text": "BYTES"}
    for name, size, extra in (("one", 1, ""), ("two", 2, ""), ("steps", 1, "sequence_batching { }"), ("turns", 1, "sequence_batching { iterative_sequence: true }")):
        tensors = [f'{kind} [ {{ name: "{each}{"_back" * (kind == "output")}" data_type: {config_type(types[each])} dims: [ {size} ] }} ]' for each in types for kind in ("input", "output")]
        batch = "max_batch_size: 1" if extra else ""
        folder = repository.model(name, "\n".join([f'name: "{name}" backend: "python" {batch} model_transaction_policy {{ decoupled: true }} {extra}', *tensors]))
        (folder / "1" / "model.py").write_text(SAYS_BACK)
    said = "document.querySelector('.responses li').textContent.split('   ')"
    with Nereid(repository.path, env=WITH_NUMPY) as server, browser.page(url(server)) as page:
        choose(page, "one")
        give(page, "9007199254740993", "nan", "true", 'NaN "1')
        assert run(page).startswith("1 response, ")
        assert page.value(said) == ["mark_back: true", "real_back: NaN", 'text_back: NaN "1', "whole_back: 9007199254740993"]
        choose(page, "two")
        give(page, "-9007199254740993 1", "-inf 1e-7", "0 1", "1\ntrue")
        assert run(page).startswith("1 response, ")
        assert page.value(said) == ["mark_back: [false,true]", "real_back: [-Infinity,1.0000000116860974e-7]", 'text_back: ["1","true"]', "whole_back: [-9007199254740993,1]"]
        choose(page, "turns")
        page.until("document.querySelectorAll('#detail fieldset').length === 4")
        assert run(page).startswith("1 response, ")
        choose(page, "steps")
        page.until("document.querySelector('#facts')")
        assert "Only clients of gRPC can try it" in page.text("#detail") and not page.value("document.querySelector('#detail form')")


def test_looking_costs_next_to_nothing(crowd: Server) -> None:
    """What an open page costs the server with many models, each of which was asked before."""
    assert f"PERIOD_MS = {1000 * PERIOD_S}," in rawhttp.get(crowd.http, "/nereid/live.js").body.decode()
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
    with rawhttp.Connection(HOST, crowd.http_port) as connection:
        for at in range(MANY):
            assert connection.ask("POST", f"/v2/models/model_{at:03}/infer", json.dumps(body).encode()).status == 200
        looks, least = 20, float("inf")
        for _ in range(5):
            before = procfs.cpu_ns(crowd.pid)
            for _ in range(looks):
                answer = connection.ask("GET", "/nereid/live")
                assert answer.status == 200
            least = min(least, (procfs.cpu_ns(crowd.pid) - before) / looks / 1e9 / PERIOD_S)
    numbers = answer.json()
    assert len(numbers["versions"]) == MANY and numbers["total"][3] >= MANY and len(answer.body) < 64 << 10
    # sanitizers cost what they cost
    assert least < SHARE or paths.BUILD.name != "release", f"{100 * least:.2f} % of a processor"


def test_without_a_mouse_and_without_sight(browser: Browser, tmp_path: Path) -> None:
    """By keys alone to an answer; axe finds nothing, in light and in dark, at any width."""
    repository = Repository(tmp_path / "models")
    repository.identity("first", dims=(3,))
    repository.identity("second", "BYTES")
    with Nereid(repository.path) as server:
        wrong(server, "first", "http")
        for dark, width in ((False, 1280), (True, 1280), (False, 380)):
            with browser.page(url(server), width=width, dark=dark) as page:
                row_of(page, "first")
                for _ in range(40):
                    page.key("Tab")
                    if page.value("document.activeElement.textContent") == "first":
                        break
                page.key("Enter")
                page.until("document.activeElement.id === 'detail-title' && document.querySelector('#detail textarea')")
                for _ in range(10):
                    page.key("Tab")
                    if page.value("document.activeElement.matches('textarea')"):
                        break
                page.write(" ")
                page.key("Tab")
                page.key("Enter")
                page.until("document.querySelector('#said').textContent.startsWith('OUTPUT0: 0, ')")
                page.until("!document.querySelector('#errors').hidden")
                page.serves_everybody()


def test_colours_follow_the_system_and_the_choice(browser: Browser, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("plain")
    paper = "getComputedStyle(document.body).backgroundColor"
    with Nereid(repository.path) as server, browser.page(url(server)) as page:
        light = page.value(paper)
        page.dark(True)
        dark = page.until(f"{paper} !== {json.dumps(light)} && {paper}")
        choose_theme = "(theme) => { const e = document.querySelector('#theme'); e.value = theme; e.dispatchEvent(new Event('change')); }"
        page.value(f"({choose_theme})('light')")
        assert page.value(paper) == light
        page.dark(False)
        page.value(f"({choose_theme})('dark')")
        assert page.value(paper) == dark
        page.value(f"({choose_theme})('auto')")
        assert page.value(paper) == light
