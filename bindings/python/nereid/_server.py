"""The server in this process."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import signal
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays, _core, _functions
from ._errors import Error
from ._folders import Folder
from ._functions import Function
from ._model import Model
from ._options import FLAGS, NAMES

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from ._options import Options

_core.adopt(Error, np.asarray, _arrays.plain, _arrays.texts, _arrays.from_bfloat16, _functions.find)
_running: weakref.WeakSet[Server] = weakref.WeakSet()


def _forked() -> None:
    """A child of fork has none of the server's threads: its servers, and their folders, are the parent's to end."""
    for server in list(_running):
        if server._folder:
            server._folder.leave()
        server._folder, server._lock = None, threading.RLock()
    _running.clear()


os.register_at_fork(after_in_child=_forked)


def arguments(options: dict[str, Any]) -> list[str]:
    """Options as the command line writes them."""
    argv = []
    for key, value in options.items():
        name = key.replace("_", "-")
        if name not in NAMES:
            raise TypeError(f"there is no option {key!r}: see docs/user/command-line.md, with _ for -")
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if name in FLAGS:
                argv += [f"--{name}"] if each else []
            elif each is not None:
                argv.append(f"--{name}={str(each).lower() if isinstance(each, bool) else os.fspath(each) if isinstance(each, os.PathLike) else each}")
    return argv


class Server:
    """A server in this process, running inside `with` or between start() and stop().

    functions  of @nereid.model and @nereid.batch; each becomes a model under its name
    options    those of the command line, with `_` for `-`: http_port=0, model_repository="models", load_model=["a", "b"]. Their
               defaults are those of the command line, but lines of level info are not logged unless log_info=True

    Models are loaded when start() returns; one that cannot be loaded is an Error (exit_on_error). The log belongs to the process: the
    first server sets it up. Signals stay the program's.
    """

    def __init__(self, *functions: Function, **options: Unpack[Options]):
        for each in functions:
            if not isinstance(each, Function):
                raise TypeError(
                    f"expected functions of @nereid.model or @nereid.batch (a repository is model_repository=...), found {each!r}"
                )
        self._functions = functions
        self._options = arguments({"log_info": False, **options})
        self._handle: _core.Server | None = None
        self._folder: Folder | None = None
        self._keys: list[str] = []
        self._stopped = threading.Event()
        self._lock = threading.RLock()  # of what follows from start() and stop(), but for the end of the server itself
        names = [each.name for each in functions]
        if len(set(names)) != len(names):
            raise ValueError(f"two functions have the same name: {sorted(names)}")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> Self:
        """Opens the ports and loads the models; returns when they are ready."""
        with self._lock:
            if self._handle is not None:
                raise RuntimeError("the server runs already")
            try:
                self._write()
                names = [each.name for each in self._functions]
                repository = str(self._folder.path) if self._folder else None
                # This Python, which has the program's packages, runs models in Python where the options name no other.
                self._handle = _core.Server(["nereid", *self._options], repository, names, sys.executable or None)
            except BaseException:
                forget(*self._let_go())
                raise
            self._stopped = threading.Event()
            _running.add(self)
        return self

    def stop(self) -> None:
        """Answers the requests under way, unloads the models and closes the ports. Without effect when it does not run.

        Raises Error after exit_timeout_secs, when a model does not end: what it holds is lost then.
        """
        with self._lock:
            handle, self._handle, stopped = self._handle, None, self._stopped
            if handle is None:
                return
            keys, folder = self._let_go()
            _running.discard(self)
        try:  # without the lock: a function may stop its server, too
            handle.close()
        finally:
            forget(keys, folder)
            stopped.set()

    def wait(self) -> None:
        """Until another thread stops the server, or KeyboardInterrupt."""
        stopped = self._stopped
        while self._handle is not None and not stopped.wait(3600):
            continue

    @property
    def _core(self) -> _core.Server:
        if self._handle is None:
            raise RuntimeError("the server does not run: call start(), or use it in a with statement")
        return self._handle

    @property
    def http_port(self) -> int:
        """The port of HTTP; 0 = not served. The same for the others."""
        return self._core.ports()[0]

    @property
    def grpc_port(self) -> int:
        return self._core.ports()[1]

    @property
    def metrics_port(self) -> int:
        return self._core.ports()[2]

    def model(self, name: str, version: int = -1) -> Model:
        """A model that is ready, to ask it; version -1 = the one that its policy prefers. Raises Error NOT_FOUND, UNAVAILABLE."""
        return Model(self, name, version)

    def ready(self) -> bool:
        return self._core.ready("", -1)

    def metadata(self) -> dict[str, Any]:
        """Name, version and extensions of the server."""
        found: dict[str, Any] = json.loads(self._core.ask("server", "", -1))
        return found

    def models(self) -> list[dict[str, Any]]:
        """Name, version and state of every model of the repositories."""
        found: list[dict[str, Any]] = json.loads(self._core.ask("index", "", -1))
        return found

    def metrics(self) -> str:
        """All metrics, in the text format of Prometheus."""
        return self._core.ask("metrics", "", -1)

    def load(self, name: str) -> None:
        """Loads or reloads a model (model_control_mode="explicit"), and waits for it."""
        self._core.load(name, True)

    def unload(self, name: str) -> None:
        self._core.load(name, False)

    def _write(self) -> None:
        """Makes a repository of the functions."""
        if not self._functions:
            return
        self._folder = Folder()
        for each in self._functions:
            key = secrets.token_hex(16)
            self._keys.append(key)
            _functions.bind([(key, each)])
            folder = self._folder.path / each.name
            (folder / "1").mkdir(parents=True)
            (folder / "config.pbtxt").write_text(each.config(key))
            (folder / "libtriton_function.so").symlink_to(_core.__file__)

    def _let_go(self) -> tuple[list[str], Folder | None]:
        """What _write made, for forget()."""
        keys, folder, self._keys, self._folder = self._keys, self._folder, [], None
        return keys, folder


def forget(keys: list[str], folder: Folder | None) -> None:
    _functions.release(keys)
    if folder:
        folder.remove()


class _Ended(BaseException):
    """A signal has come."""


def _end(_number: int, _frame: object) -> None:
    _hear_no_more()
    raise _Ended


def _hear_no_more() -> None:
    """Stopping is no Python: a handler of Python's would wait for its end."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)


def serve(*functions: Function, **options: Unpack[Options]) -> None:
    """Serves functions, and the models of a repository if one is named, until SIGINT (Ctrl-C) or SIGTERM: a second one ends at once.

    In the main thread, which handles signals. One that comes while models are loaded is heard when they are.
    """
    server = Server(*functions, **options)
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        try:
            signal.signal(signal.SIGTERM, _end)
            if before[signal.SIGINT] is signal.default_int_handler:
                signal.signal(signal.SIGINT, _end)
            # Loading is no Python either: another thread waits for its end, so that this one takes signals meanwhile.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(server.start).result()
            server.wait()
        except (KeyboardInterrupt, _Ended):  # the first of a program's own handler of SIGINT
            _hear_no_more()
        finally:
            server.stop()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@atexit.register
def _stop_all() -> None:
    """Threads of the server that run Python end before the interpreter does."""
    for server in list(_running):
        try:
            server.stop()
        except Error:
            pass
