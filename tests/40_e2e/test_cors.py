"""Pages of other origins (CORS): what a browser may ask for them, and may show them, where the command line names their origin; and what
the pages of all others do not reach, since browsers send simple requests unasked."""

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import http2, ports, rawhttp
from harness.browser import Browser
from harness.repository import Repository
from harness.servers import HOST, Nereid
from harness.site import site

GOOD, OTHER, BAD = "https://app.example", "http://localhost:3000", "https://evil.example"
LONGEST = "https://" + "a" * 272
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,inference-header-content-length"}
INFER = "/v2/models/echo/infer"
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[7]}]}'
EXPOSED = "Inference-Header-Content-Length, Retry-After"


def _serve(folder: Path, *origins: str) -> Iterator[Nereid]:
    """Asks for keys, too: a preflight has none."""
    made = Repository(folder / "models")
    made.identity("echo")
    keys = folder / "keys"
    keys.write_text("sesame all\n- health\n")
    with Nereid(made.path, {"api-keys": str(keys), "http-cors-origin": list(origins)}) as server:
        yield server


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nereid]:
    yield from _serve(tmp_path_factory.mktemp("listed"), GOOD, OTHER, LONGEST)


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nereid]:
    yield from _serve(tmp_path_factory.mktemp("all"), GOOD, "*")


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nereid]:
    yield from _serve(tmp_path_factory.mktemp("closed"))


def ask(server: Nereid, method: str, path: str, origin: str | None, headers: dict[str, str] | None = None, body: bytes | None = None) -> rawhttp.Answer:
    more = ({"Origin": origin} if origin else {}) | (headers or {})
    return rawhttp.request(HOST, server.http_port, method, path, body, more)


def cors(answer: rawhttp.Answer) -> dict[str, str]:
    """What an answer says to browsers; none of it twice."""
    found = [(name, value) for name, value in answer.headers if name.lower().startswith("access-control-") or name == "Vary"]
    assert len(dict(found)) == len(found)
    return dict(found)


def test_off_by_default(closed: Nereid) -> None:
    for method, status in (("OPTIONS", 401), ("GET", 401)):
        answer = ask(closed, method, "/v2", GOOD, PREFLIGHT)
        assert (answer.status, cors(answer)) == (status, {})


@pytest.mark.parametrize("origin", [GOOD, OTHER, LONGEST])
@pytest.mark.parametrize("path", ["/v2", INFER, "/v2/nothing"])
def test_preflight(listed: Nereid, origin: str, path: str) -> None:
    """Before who asks is looked at: browsers show nobody's key then. Credentials of the browser's own are never allowed."""
    answer = ask(listed, "OPTIONS", path, origin, PREFLIGHT)
    assert (answer.status, answer.body) == (200, b"")
    assert cors(answer) == {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": EXPOSED,
        "Access-Control-Allow-Methods": "GET, HEAD, POST",
        "Access-Control-Allow-Headers": "*, Authorization",
        "Access-Control-Max-Age": "7200",
        "Vary": "Origin",
    }


def test_preflight_keeps_the_connection(listed: Nereid) -> None:
    with rawhttp.Connection(HOST, listed.http_port) as connection:
        assert connection.ask("OPTIONS", INFER, b"12345", {"Origin": GOOD, **PREFLIGHT}).status == 200
        answer = connection.ask("POST", INFER, BODY, {"Origin": GOOD, "Authorization": "Bearer sesame"})
        assert (answer.status, answer.json()["outputs"][0]["data"]) == (200, [7.0])


@pytest.mark.parametrize("origin", [BAD, "null", GOOD + ".evil.example", GOOD + ":443", GOOD.upper(), "https://app.exampl", "", None])
def test_other_origins(listed: Nereid, origin: str | None) -> None:
    """As without the option; caches are told that it would differ."""
    answer = ask(listed, "OPTIONS", INFER, origin, PREFLIGHT)
    assert (answer.status, cors(answer)) == (401, {"Vary": "Origin"})
    allowed = ask(listed, "OPTIONS", INFER, origin, PREFLIGHT | {"x-api-key": "sesame"})
    assert (allowed.status, cors(allowed)) == (405, {"Vary": "Origin"})
    answer = ask(listed, "GET", "/v2/health/live", origin)
    assert (answer.status, cors(answer)) == (200, {"Vary": "Origin"})


def test_every_answer_can_be_read(listed: Nereid) -> None:
    """Errors as well, and streams, and what is no preflight for want of the method that it asks about."""
    shown = {"Access-Control-Allow-Origin": GOOD, "Access-Control-Expose-Headers": EXPOSED, "Vary": "Origin"}
    key = {"Authorization": "Bearer sesame"}
    asked = [
        (200, ask(listed, "POST", INFER, GOOD, key, BODY)),
        (400, ask(listed, "POST", INFER, GOOD, key, b'{"inputs":[]}')),
        (401, ask(listed, "POST", INFER, GOOD, None, BODY)),
        (404, ask(listed, "GET", "/v2/nothing", GOOD, key)),
        (405, ask(listed, "OPTIONS", INFER, GOOD, key)),
        (200, ask(listed, "GET", "/v2/health/live", GOOD)),
        (200, ask(listed, "HEAD", "/v2/health/live", GOOD)),
        (200, ask(listed, "POST", "/v2/models/echo/generate_stream", GOOD, key, b'{"INPUT0":[1]}')),
    ]
    for status, answer in asked:
        assert (answer.status, cors(answer)) == (status, shown), answer.body
    binary = ask(listed, "POST", INFER, GOOD, key, BODY[:-1] + b',"parameters":{"binary_data_output":true}}')
    assert binary.header("Inference-Header-Content-Length") and cors(binary) == shown


def test_all_origins(open_to_all: Nereid) -> None:
    """One answer for all of them, so it varies with none."""
    shown = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": EXPOSED}
    for origin in (GOOD, BAD, "null", None):
        answer = ask(open_to_all, "GET", "/v2/health/live", origin)
        assert (answer.status, cors(answer)) == (200, shown)
    answer = ask(open_to_all, "OPTIONS", INFER, BAD, PREFLIGHT)
    assert answer.status == 200
    assert cors(answer)["Access-Control-Allow-Origin"] == "*"


def test_metrics_are_not_shown(open_to_all: Nereid) -> None:
    answer = rawhttp.request(HOST, open_to_all.metrics_port, "GET", "/metrics", None, {"Origin": GOOD, "x-api-key": "sesame"})
    assert (answer.status, cors(answer)) == (200, {})


MODEL = """
import pathlib
pathlib.Path({mark!r}).touch()
class TritonPythonModel:
    def execute(self, requests):
        return []
"""


def load_of(mark: Path) -> str:
    """A load with a model whose code leaves a mark."""
    tensor = {"name": "a", "data_type": "TYPE_FP32", "dims": [1]}
    config = {"backend": "python", "input": [tensor], "output": [tensor | {"name": "b"}]}
    code = base64.b64encode(MODEL.format(mark=str(mark)).encode()).decode()
    return json.dumps({"parameters": {"config": json.dumps(config), "file:1/model.py": code}})


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nereid]:
    """Every port of HTTP, whoever asks, and no option about pages."""
    made = Repository(tmp_path_factory.mktemp("keyless"))
    made.identity("echo")
    clouds = {f"{name}-port": str(ports.free_port()) for name in ("openai", "sagemaker", "vertex-ai")}
    options = {"model-control-mode": "explicit", "load-model": "*", "vertex-ai-default-model": "echo"}
    allowed = {f"allow-{name.removesuffix('-port')}": "true" for name in clouds}
    env = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "echo", "AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health"}
    with Nereid(made.path, options | clouds | allowed, env=os.environ | env) as server:
        yield server


FOREIGN: list[dict[str, str]] = [
    {"Origin": BAD},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Origin": BAD, "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
]


def post(server: Nereid, port: int, path: str, body: bytes, headers: dict[str, str], h2: bool) -> tuple[int, bytes]:
    """Twice on one connection, since heads that come again are remembered: both answers are the same."""
    if h2:
        with http2.Connection(f"{HOST}:{port}") as frames:
            calls = [frames.ask("POST", path, body, headers) for _ in range(2)]
        said = [(int(each.headers[":status"]), each.data) for each in calls]
    else:
        with rawhttp.Connection(HOST, port) as lines:
            answers = [lines.ask("POST", path, body, headers) for _ in range(2)]
        said = [(each.status, each.body) for each in answers]
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize("h2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("headers", FOREIGN, ids=[" ".join(each.values()) for each in FOREIGN])
def test_pages_of_others_change_nothing(keyless: Nereid, headers: dict[str, str], h2: bool, tmp_path: Path) -> None:
    port = {name: int(str(keyless.options[f"{name}-port"])) for name in ("openai", "sagemaker", "vertex-ai")}
    load = load_of(tmp_path / "mark").encode()
    for at, path, body in [
        (keyless.http_port, "/v2/repository/models/evil/load", load),
        (keyless.http_port, "/v2/repository/models/echo/unload", b"{}"),
        (keyless.http_port, INFER, BODY),
        (keyless.http_port, "/v2/logging", b'{"log_info":false}'),
        (keyless.http_port, "/nothing", b""),
        (keyless.metrics_port, "/metrics", b""),
        (port["openai"], "/v1/completions", b'{"model":"echo","prompt":"x"}'),
        (port["sagemaker"], "/models", b'{"model_name":"evil","url":"/tmp"}'),
        (port["sagemaker"], "/invocations", BODY),
        (port["vertex-ai"], "/predict", BODY),
    ]:
        status, text = post(keyless, at, path, body, headers | {"Content-Type": "text/plain"}, h2)
        assert status == 403, (path, text)
        error = json.loads(text)["error"]
        message = error["message"] if isinstance(error, dict) else error
        assert f"a page of another origin ({headers.get('Origin', 'null')})" in message and "--http-cors-origin" in message
    assert keyless.process.log().count(f"a page of another origin ({headers.get('Origin', 'null')})") >= 20
    index = rawhttp.request(HOST, keyless.http_port, "POST", "/v2/repository/index").json()
    assert [(each["name"], each["state"]) for each in index] == [("echo", "READY")]
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("h2", [False, True], ids=["http1", "http2"])
def test_who_may_ask(keyless: Nereid, h2: bool) -> None:
    """Programs, the server's own pages, and what the user typed."""
    own = "localhost" if h2 else f"localhost:{keyless.http_port}"
    host = {} if h2 else {"Host": own}
    for headers in (
        {},
        {"Origin": f"http://{own}"},
        {"Origin": f"https://{own}"},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ):
        status, text = post(keyless, keyless.http_port, INFER, BODY, host | headers, h2)
        assert (status, json.loads(text)["outputs"][0]["data"]) == (200, [7.0])


@pytest.mark.parametrize("h2", [False, True], ids=["http1", "http2"])
def test_whose_pages_may_where_some_are_named(listed: Nereid, open_to_all: Nereid, h2: bool) -> None:
    """A key lets no page in that may not ask."""
    key = {"Authorization": "Bearer sesame"}
    for headers in ({"Origin": GOOD}, {"Origin": GOOD, "Sec-Fetch-Site": "cross-site"}, {"Origin": LONGEST}):
        assert post(listed, listed.http_port, INFER, BODY, key | headers, h2)[0] == 200
    for headers in FOREIGN:
        assert post(listed, listed.http_port, INFER, BODY, key | headers, h2)[0] == 403
        assert post(open_to_all, open_to_all.http_port, INFER, BODY, key | headers, h2)[0] == 200


def test_a_refused_body_is_not_awaited(keyless: Nereid) -> None:
    """Nothing is kept of it: the answer comes before it does."""
    with rawhttp.Connection(HOST, keyless.http_port) as connection:
        connection.send(rawhttp.head("POST", INFER, {"Origin": BAD, "Content-Length": str(1 << 30)}))
        answer = connection.answer()
    assert (answer.status, answer.header("Connection")) == (403, "close")


@pytest.mark.once
def test_a_page_that_somebody_visits(browser: Browser, keyless: Nereid, tmp_path: Path) -> None:
    """What a browser sends of itself, from another host, another port and a form; and that the page which the server shows is none of these."""
    load = load_of(tmp_path / "mark")
    to = f"http://localhost:{keyless.http_port}/v2/repository/models/"
    script = f"for (const path of ['echo/unload', 'evil/load']) await fetch({json.dumps(to)} + path, {{method: 'POST', mode: 'no-cors', body: {json.dumps(load)}}});"
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "fetch.html").write_text(f"<!doctype html><script type=module>{script} window.sent = true;</script>")
    form = f"<form method=post enctype=text/plain target=answer action='{to}evil/load'><input name='{{\"a\":\"' value='\",{load[1:]}'></form><iframe name=answer></iframe>"
    submit = "document.querySelector('iframe').onload = () => { window.answered = true; }; document.querySelector('form').submit();"
    (folder / "form.html").write_text(f"<!doctype html>{form}<script>onload = () => {{ {submit} }};</script>")
    with site(HOST, folder) as port:
        for host in (HOST, "localhost"):
            with browser.page(f"http://{host}:{port}/fetch.html") as page:
                page.until("window.sent")
                page.complaints.clear()
            with browser.page(f"http://{host}:{port}/form.html") as page:
                page.until("window.answered")
                assert f"{to}evil/load" in page.requests
                page.complaints.clear()
    index = rawhttp.request(HOST, keyless.http_port, "POST", "/v2/repository/index").json()
    assert [(each["name"], each["state"]) for each in index] == [("echo", "READY")]
    assert not (tmp_path / "mark").exists()
    with browser.page(f"http://localhost:{keyless.http_port}/") as page:
        own = f"fetch('{INFER}', {{method: 'POST', body: {json.dumps(BODY.decode())}}})"
        assert page.value(f"{own}.then((answer) => answer.status)") == 200
