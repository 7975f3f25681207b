"""A real browser, as a user has it before them: Chromium without a window, asked over its own protocol by a pair of pipes."""

import base64
import contextlib
import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import paths

PATIENCE = 60.0  # of any question
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--force-color-profile=srgb", "--hide-scrollbars", "--remote-debugging-pipe"]


class Browser:
    """A context manager; `folder` is for what the browser keeps."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.log = folder.parent / f"{folder.name}.log"
        self.last = 0
        self.buffer = b""
        self.pages: dict[str, Page] = {}
        self.traced: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        to, self.to = os.pipe()
        self.since, since = os.pipe()
        theirs_in, theirs_out = (fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (to, since))  # apart from 3 and 4
        script = f'exec chromium "$@" 3<&{theirs_in} 4>&{theirs_out}'
        argv = ["bash", "-c", script, "chromium", *FLAGS, f"--user-data-dir={self.folder}", "about:blank"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(argv, pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for each in (to, since, theirs_in, theirs_out):
            os.close(each)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self.ask("Browser.close")
        os.close(self.to)
        os.close(self.since)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _read(self, until: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.since], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser did not answer in time"
            got = os.read(self.since, 1 << 20)
            assert got, f"the browser has ended: {self.log.read_text()[-2000:]}"
            self.buffer += got
        message, self.buffer = self.buffer.split(b"\0", 1)
        told = json.loads(message)
        if "method" in told and told.get("sessionId") in self.pages:
            self.pages[told["sessionId"]].told(told["method"], told["params"])
        if told.get("method") == "Tracing.dataCollected":
            self.traced += told["params"]["value"]
        return told

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """What the browser answers; what it tells meanwhile is noted by its pages."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            told = self._read(until)
            if told.get("id") == self.last:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]

    @contextlib.contextmanager
    def trace(self, *categories: str) -> Iterator[list[dict[str, Any]]]:
        """The list has the events of all processes of the browser once this is left."""
        self.traced = []
        self.ask("Tracing.start", traceConfig={"includedCategories": list(categories)}, transferMode="ReportEvents")
        yield self.traced
        self.ask("Tracing.end")
        until = time.monotonic() + PATIENCE
        while self._read(until).get("method") != "Tracing.tracingComplete":
            pass

    @contextlib.contextmanager
    def page(self, url: str, width: int = 1280, height: int = 900, dark: bool = False, touch: bool = False) -> Iterator["Page"]:
        """An open page. What it complains of fails when it is left."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, url)
        self.pages[session] = page
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            page.ask(f"{domain}.enable")
        page.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        page.dark(dark)
        page.ask("Page.navigate", url=url)
        page.until("document.readyState === 'complete'")
        yield page
        assert not page.complaints, page.complaints
        self.ask("Target.closeTarget", targetId=target)


class Page:
    def __init__(self, browser: Browser, session: str, url: str):
        self.browser, self.session, self.url = browser, session, url
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def told(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.ask(method, self.session, **params)

    def value(self, script: str) -> Any:
        """What an expression is, once it is settled."""
        got = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def tasks_ms(self, script: str) -> list[float]:
        """For how long each task of the page, and what came of it at once (microtasks), computed while an expression settled: without
        what it waited for a processor, and what a tool that looks on costs: it would have a copy of each answer, as text."""
        self.ask("Network.disable")
        with self.browser.trace("toplevel", "blink.user_timing") as events:
            self.value(f"performance.mark('traced'), ({script})")
        self.ask("Network.enable")
        page = next((each["pid"], each["tid"]) for each in events if each["name"] == "traced")
        names = ("::RunTask", "_PerformMicrotaskCheckpoint")
        tasks = [each for each in events if (each["pid"], each["tid"]) == page and each["name"].endswith(names)]
        return [each["tdur"] / 1000 for each in tasks if "tdur" in each]

    def until(self, script: str, seconds: float = 40) -> Any:
        """Waits in the page until an expression is true; returns it."""
        look = f"const value = ({script}); if (value) resolve(value instanceof Node || value); else if (performance.now() > end) resolve(null); else setTimeout(look, 20);"
        waits = f"new Promise((resolve) => {{ const end = performance.now() + {1000 * seconds}, look = () => {{ {look} }}; look(); }})"
        value = self.value(waits)
        assert value, f"it did not come to: {script}\n{self.complaints}\n{self.value('document.body.innerText')}"
        return value

    @contextlib.contextmanager
    def unanswered(self, pattern: str) -> Iterator[None]:
        """What the page asks for meanwhile, of addresses like this, stays without an answer."""
        self.ask("Fetch.enable", patterns=[{"urlPattern": pattern}])
        yield
        self.ask("Fetch.disable")

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({json.dumps(selector)}).innerText"))

    def serves_everybody(self) -> None:
        """axe finds nothing in it, and all of it is as wide as the window at most."""
        self.value(paths.need(paths.ROOT / "build" / "deps" / "npm" / "axe-core" / "axe.min.js", "tools/setup.sh test").read_text())
        found = self.value("axe.run(document).then((got) => got.violations.map((each) => [each.id, each.nodes.map((node) => node.html)]))")
        assert not found, json.dumps(found, indent=1)
        assert self.value("document.documentElement.scrollWidth <= innerWidth")

    def dark(self, dark: bool) -> None:
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def place(self, selector: str) -> tuple[float, float, float, float]:
        """Where the middle of an element is, once it is in view, and its size."""
        find = f"const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
        x, y, width, height = self.value(f"(() => {{ {find} return [b.x + b.width / 2, b.y + b.height / 2, b.width, b.height]; }})()")
        return x, y, width, height

    def mouse(self, kind: str, x: float, y: float, buttons: int) -> None:
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if kind != "mouseMoved" or buttons else "none", buttons=buttons, clickCount=1)

    def click(self, selector: str) -> None:
        x, y, _, _ = self.place(selector)
        for kind, buttons in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
            self.mouse(kind, x, y, buttons)

    def draw(self, selector: str, strokes: list[list[tuple[float, float]]]) -> None:
        """Strokes with the mouse; places are parts of the element's size."""
        x, y, width, height = self.place(selector)
        for stroke in strokes:
            points = [(x + (right - 0.5) * width, y + (down - 0.5) * height) for right, down in stroke]
            self.mouse("mousePressed", *points[0], 1)
            for point in points[1:]:
                self.mouse("mouseMoved", *point, 1)
            self.mouse("mouseReleased", *points[-1], 0)

    def key(self, name: str, shift: bool = False) -> None:
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowUp": 38, "ArrowDown": 40}
        text = {"Enter": "\r", " ": " "}.get(name, "")
        pressed: dict[str, Any] = {"key": name, "code": "Space" if name == " " else name, "windowsVirtualKeyCode": codes[name], "modifiers": 8 if shift else 0}
        self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **pressed, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def write(self, text: str) -> None:
        """Types into what has the focus."""
        self.ask("Input.insertText", text=text)

    def choose_file(self, selector: str, file: Path) -> None:
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
