"""A folder as a web site of its own: an origin that is not the server's."""

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def site(host: str, folder: Path) -> Iterator[int]:
    """Its port."""
    with http.server.ThreadingHTTPServer((host, 0), functools.partial(_Quiet, directory=str(folder))) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        try:
            yield pages.server_port
        finally:
            pages.shutdown()
            thread.join()
