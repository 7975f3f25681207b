"""Bodies that are never finished: what came of them is held out of a server's memory budget."""

from . import h2frames as h2
from . import http2


class Bodies:
    """Those of one connection, over HTTP/2, which tells when the server has taken what was sent."""

    def __init__(self, address: str, model: str):
        self.path = f"/v2/models/{model}/infer"
        self.connection = http2.Connection(address)
        self.stream = -1

    def __enter__(self) -> "Bodies":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def announce(self, size: int) -> bool:
        """A body of that size of which nothing comes yet; False if the server has no room for it."""
        self.stream += 2
        headers = {"content-length": str(size), "inference-header-content-length": "100", "expect": "100-continue"}
        self.connection.send(http2.head(self.stream, http2.fields("POST", self.path, headers)))
        call = self.connection.calls.setdefault(self.stream, h2.Call())
        while not call.blocks:
            self.connection.read()
        status = call.headers[":status"]
        assert status in ("100", "503"), status  # allowed: who calls is told which of them it is
        return status == "100"

    def hold(self, size: int) -> bool:
        """The same, and all of it comes but for a byte."""
        if not self.announce(size):
            return False
        body = bytes(size - 1)
        self.connection.send(*(h2.frame(h2.DATA, 0, self.stream, body[at : at + 16384]) for at in range(0, len(body), 16384)))
        self.connection.settle()
        return True
