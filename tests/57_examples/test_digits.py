"""The example `digits`: one command, then a digit that is drawn in the browser."""

import http.server
import threading
from pathlib import Path

import pytest
from harness import paths, ports
from harness.browser import Browser
from harness.examples import PATIENCE, Example
from harness.process import Process

SEVEN = [[(0.3, 0.2), (0.7, 0.2), (0.6, 0.4), (0.5, 0.6), (0.42, 0.85)]]
THREE = [[(0.32, 0.2), (0.5, 0.13), (0.65, 0.25), (0.6, 0.4), (0.45, 0.48), (0.62, 0.55), (0.66, 0.72), (0.52, 0.86), (0.33, 0.8)]]


@pytest.mark.onnx
def test_a_digit_is_drawn(tmp_path: Path) -> None:
    with Example(tmp_path, "digits") as example, Browser(tmp_path / "browser") as browser:
        said = example.says("in a browser")
        assert f"http://localhost:{example.http_port}/" in said
        assert [listens_at(port) for port in (example.http_port, example.grpc_port, example.metrics_port)] == [{"0100007F"}] * 3
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


def listens_at(port: int) -> set[str]:
    """Addresses of this machine, as the kernel writes them."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {address.split(":")[0] for _, address, _, state, *_ in rows if state == "0A" and int(address.split(":")[1], 16) == port}


class _Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("command", ["run", "example EXAMPLE=digits"])
def test_another_server_is_not_taken_for_this_one(tmp_path: Path, command: str) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Ready) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        try:
            taken = f"HTTP_PORT={other.server_port}"
            free = [f"{name}={ports.free_port()}" for name in ("GRPC_PORT", "METRICS_PORT")]
            process = Process("make", ["make", "--no-print-directory", "-C", str(paths.ROOT), *command.split(), taken, *free], tmp_path / "log")
            process.ends(2, PATIENCE)
        finally:
            other.shutdown()
            thread.join()
    assert f"port {other.server_port} of this machine is taken" in process.log()
    assert f"make {command} HTTP_PORT={other.server_port + 1000}" in process.log()
    assert "Ready" not in process.log()


def test_a_name_that_is_none_is_said(tmp_path: Path) -> None:
    known = sorted(path.parent.name for path in (paths.ROOT / "examples").glob("*/README.md"))
    assert {"digits", "speech", "search", "ocr"} == set(known)
    for name in ("", "digit", "page"):
        with Example(tmp_path, name) as example:
            example.process.ends(2, PATIENCE)
            assert f"EXAMPLE names '{name}'; there are: {' '.join(known)}" in example.process.log()
