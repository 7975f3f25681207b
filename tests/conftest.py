"""Servers shared by the Python tests. A missing program fails a test; nothing is skipped."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest import threadexception, unraisableexception

from harness import again, models, paths, sharing
from harness.browser import Browser
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Reference, Server

_running: dict[str, Server] = {}
_log_sizes: dict[str, int] = {}

# pytest only warns about what gets lost: exceptions in threads of a test and in __del__, what a test returns, classes that it does not
# collect, coroutines that nobody awaits. As an error, the warning fails the test.
LOST = [
    *(f":pytest.Pytest{what}Warning" for what in ("UnhandledThreadException", "UnraisableException", "ReturnNotNone", "Collection")),
    "coroutine .* was never awaited:RuntimeWarning",
]
BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what runs in its background with SIGINT ignored, and so would every process be that the tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # gRPC's library, curl and urllib would ask a proxy for 127.0.0.1.
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    # What the runner has said of bytecode is for pytest itself. Models' folders stay as tests make them.
    os.environ.pop("PYTHONPYCACHEPREFIX", None)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.umask(0o022)  # other users read what some tests write
    config.addinivalue_line("markers", "reference: asks the reference server too")
    config.addinivalue_line("markers", "promise: an attack of those that the server is promised to bear")
    config.addinivalue_line("markers", "gpu: holds with the driver of a real GPU too (tools/gpu_proof.py)")
    config.addinivalue_line("markers", "once: asked of the release build alone: a sanitizer would hear nothing that it does not hear from others")
    config.addinivalue_line("markers", "threadless: what it asks of threads, others ask for less: not asked under the thread sanitizer")
    config.addinivalue_line("markers", "onnx: needs the ONNX Runtime backend and the sample repository")
    for lost in LOST:
        config.addinivalue_line("filterwarnings", f"error:{lost}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    return sharing.run(session)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """What the last tests left is looked at too. pytest does so by itself only when its exit status is decided."""
    gc.collect()
    for collect in (threadexception.collect_thread_exception, unraisableexception.collect_unraisable):
        try:
            collect(session.config)
        except Exception as lost:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            sys.stderr.write(f"after the last test: {lost}\n")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    return again.run(item, nextitem)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for name, server in _running.items():
        _log_sizes[name] = server.process.log_path.stat().st_size


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if not report.failed:
        return
    for name, server in _running.items():
        since = server.process.log(offset=_log_sizes.get(name, 0))
        if since.strip():
            report.sections.append((f"log of {name} during this test", "\n".join(since.splitlines()[-60:])))


def _serve(name: str, server: Server) -> Iterator[Server]:
    with server:
        _running[name] = server
        yield server
        del _running[name]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter. They may not enter pytest's own: each session that begins closes it to them."""
    with tempfile.TemporaryDirectory(prefix="nereid-open-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """With one identity model, `one`; a file that needs others has a fixture of its own."""
    made = Repository(tmp_path / "models")
    made.identity("one")
    return made


@pytest.fixture(scope="session")
def identity_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.identity_repository(Repository(tmp_path_factory.mktemp("identity") / "models"))


@pytest.fixture(scope="session")
def nereid(identity_repository: Path) -> Iterator[Server]:
    yield from _serve("nereid", Nereid(identity_repository))


@pytest.fixture(scope="session")
def reference(identity_repository: Path) -> Iterator[Server]:
    yield from _serve("reference", Reference(identity_repository))


@pytest.fixture(scope="session", params=BOTH)
def server(request: pytest.FixtureRequest) -> Server:
    """Each server in turn, with the identity models: what our server does, the reference does too."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session", params=BOTH)
def sample_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each server in turn, with the sample repository (the digits)."""
    sample = paths.need(paths.SAMPLE_MODELS)
    yield from _serve(f"{request.param} (samples)", KINDS[request.param](sample))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as browser:
        yield browser
