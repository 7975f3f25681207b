"""The time to stop is over while models still work: everybody who waits is told so, and the log and the exit status say it."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import h2frames as h2
from harness import http2, metrics, rawgrpc, rawhttp, recite
from harness.repository import Repository
from harness.servers import ENDED_AT_ONCE, HOST, Nereid
from tritonclient.grpc import service_pb2 as pb

STOPPING = "the server is stopping"
REFUSED = {"error": STOPPING}
SECONDS = 12  # of which nine are left to requests
INFER, STREAM = "/v2/models/recite_once/infer", "/v2/models/recite/generate_stream"


class Cut:
    """A request that its model answers without end, or, if `quiet`, not at all."""

    def __init__(self, server: Nereid, mark: Path, quiet: bool):
        self.server, self.quiet, self.mark = server, quiet, mark
        self.parameters: dict[str, str | bool] = {"mark": str(mark), "quiet" if quiet else "slow": True}
        self.begin()

    def text(self) -> bytes:
        if not self.quiet:
            return json.dumps({"text_input": "a"} | self.parameters).encode()
        tensor = {"name": "text_input", "datatype": "BYTES", "shape": [1], "data": ["a"]}
        return json.dumps({"inputs": [tensor], "parameters": self.parameters}).encode()

    def has_begun(self) -> bool:
        return self.mark.with_name(self.mark.name + ".begun").exists()

    @property
    def path(self) -> str:
        return INFER if self.quiet else STREAM

    def begin(self) -> None:
        raise NotImplementedError

    def told(self) -> None:
        raise NotImplementedError

    def check_events(self, status: int, body: bytes) -> None:
        if self.quiet:
            assert (status, json.loads(body)) == (503, REFUSED)
            return
        events = [json.loads(each.removeprefix(b"data: ")) for each in body.split(b"\n\n") if each and each != b":"]
        assert status == 200
        assert len(events) > 1
        assert all("INDEX" in each for each in events[:-1])
        assert events[-1] == REFUSED


class HttpCut(Cut):
    def begin(self) -> None:
        self.connection = rawhttp.Connection(HOST, self.server.http_port)
        self.connection.send(rawhttp.head("POST", self.path, body=self.text()) + self.text())

    def told(self) -> None:
        with self.connection as connection:
            answer = connection.answer()
            self.check_events(answer.status, answer.body)
            assert not self.quiet or answer.header("Connection") == "close"
            assert connection.closed()


class Http2Cut(Cut):
    def begin(self) -> None:
        self.connection = http2.Connection(self.server.http)
        self.connection.begin("POST", self.path, self.text())

    def told(self) -> None:
        with self.connection as connection:
            call = connection.finish(1)
            self.check_events(int(call.headers[":status"]), call.data)


class GrpcCut(Cut):
    def begin(self) -> None:
        request = rawgrpc.infer_request("recite_once" if self.quiet else "recite", [("text_input", "BYTES", [1], b"\1\0\0\0a")])
        for name, value in self.parameters.items():
            if isinstance(value, bool):
                request.parameters[name].bool_param = value
            else:
                request.parameters[name].string_param = value
        method = "ModelInfer" if self.quiet else "ModelStreamInfer"
        block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/{method}"))
        self.connection = h2.Connection(self.server.grpc)
        flags = h2.END_STREAM if self.quiet else 0
        self.connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block), h2.frame(h2.DATA, flags, 1, h2.message(request.SerializeToString())))

    def told(self) -> None:
        with self.connection as connection:
            call = connection.finish(1)
        answers = [pb.ModelStreamInferResponse.FromString(each) for each in call.messages()]
        assert all(each.infer_response.model_name == "recite" for each in answers)
        assert bool(answers) != self.quiet
        assert (call.trailers["grpc-status"], call.trailers["grpc-message"]) == ("14", STOPPING)


@pytest.fixture
def server(tmp_path: Path) -> Nereid:
    """Not started yet."""
    repository = Repository(tmp_path / "models")
    for name, decoupled in (("recite", True), ("recite_once", False)):
        recite.model(repository, name, ("text_input", "BYTES", (1,)), decoupled=decoupled)
    return Nereid(repository.path, {"exit-timeout-secs": str(SECONDS), "access-log": str(tmp_path / "access"), "log-format": "json"}, ENDED_AT_ONCE)


def _in_flight(server: Nereid) -> float:
    found = metrics.scrape(server.metrics)["nereid_requests_in_flight"]
    return found.value(protocol="http") + found.value(protocol="grpc")


def test_who_is_cut_is_told(server: Nereid, tmp_path: Path) -> None:
    kinds: list[Callable[[Nereid, Path, bool], Cut]] = [HttpCut, Http2Cut, GrpcCut]
    server.start()
    try:
        cuts = [kind(server, tmp_path / f"mark{i}{quiet}", quiet) for i, kind in enumerate(kinds) for quiet in (True, False)]
        server.process.wait_for(lambda: _in_flight(server), len(cuts))
        server.process.wait_until(lambda: all(each.has_begun() for each in cuts if not each.quiet), 60)
        with ThreadPoolExecutor(len(cuts)) as pool:
            told = [pool.submit(each.told) for each in cuts]
            server.process.terminate()
            for each in told:
                each.result()
        server.process.ends(1)
        assert "4 over HTTP and 2 over gRPC are cut" in server.process.log()
        lines = [json.loads(each) for each in (tmp_path / "access").read_text().splitlines()]
        asked = [(each["protocol"], each["status"]) for each in lines if each.get("model", "").startswith("recite")]
        assert sorted(asked) == sorted([("http", 503)] * 4 + [("grpc", 14)] * 2)
    finally:
        server.kill()
