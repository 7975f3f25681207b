"""Pages of other origins (CORS): what a browser may ask for them, and may show them, where the command line names their origin."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid

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
