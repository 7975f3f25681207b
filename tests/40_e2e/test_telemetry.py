"""Traces sent to an OpenTelemetry collector: read with OpenTelemetry's own messages, out of what a small HTTP server is sent."""

import http.client
import http.server
import json
import queue
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import ports, rawgrpc, rawhttp
from harness.ensembles import chain
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLER}-01"


class Collector:
    """Takes what is sent to it, and says yes to it."""

    def __init__(self) -> None:
        self.requests: queue.Queue[tuple[str, http.client.HTTPMessage, ExportTraceServiceRequest]] = queue.Queue()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                message = ExportTraceServiceRequest.FromString(body)
                collector.requests.put((self.path, self.headers, message))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = socketserver.ThreadingTCPServer((HOST, ports.free_port()), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> "Collector":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spans(self) -> list[Span]:
        """Of all requests so far; at least one has come or comes."""
        messages = [self.requests.get(timeout=60)]
        while not self.requests.empty():
            messages.append(self.requests.get())
        return [
            span for _, _, message in messages for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as made:
        yield made


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "models")
    made.identity("one")
    made.identity("id")
    made.model("two", chain("two", ["id", "id"]).config())
    return made


def _options(port: int, *more: str) -> dict[str, str | list[str]]:
    return {
        "trace-config": [
            "mode=opentelemetry",
            f"opentelemetry,url=http://{HOST}:{port}/v1/traces",
            "opentelemetry,bsp_schedule_delay=10",
            "level=TIMESTAMPS",
            "rate=1",
            *more,
        ]
    }


def _infer(server: Server, model: str = "one", headers: dict[str, str] | None = None, request_id: str = "r") -> None:
    name = "IN" if model == "two" else "INPUT0"
    sent = {"id": request_id, "inputs": [{"name": name, "datatype": "FP32", "shape": [1], "data": [1.5]}]}
    got = rawhttp.request(HOST, server.http_port, "POST", f"/v2/models/{model}/infer", json.dumps(sent).encode(), headers or {})
    assert got.status == 200


def _attributes(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def _tree(spans: list[Span]) -> dict[str, list[str]]:
    """Names of the spans by the name of their parent."""
    names = {span.span_id: span.name for span in spans}
    tree: dict[str, list[str]] = {}
    for span in spans:
        tree.setdefault(names.get(span.parent_span_id, span.parent_span_id.hex()), []).append(span.name)
    return tree


def test_spans_of_a_request(repository: Repository, collector: Collector) -> None:
    """Named as the reference names them, within each other in time, with its events and attributes; the resource too."""
    more = ["opentelemetry,resource=service.version=7", "opentelemetry,resource=service.name=mine"]
    with Nereid(repository.path, _options(collector.port, *more)) as server:
        _infer(server)
        path, headers, message = collector.requests.get(timeout=60)
    assert (path, headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
    (resource,) = message.resource_spans
    assert {each.key: each.value.string_value for each in resource.resource.attributes} == {"service.name": "mine", "service.version": "7"}
    (scope,) = resource.scope_spans
    assert scope.scope.name == "triton-server"
    root, model, compute = scope.spans
    assert _tree(list(scope.spans)) == {"": ["InferRequest"], "InferRequest": ["one"], "one": ["compute"]}
    assert len({span.trace_id for span in scope.spans}) == 1 and len(root.trace_id) == 16 and len(root.span_id) == 8
    assert [event.name for event in root.events] == [
        "HTTP_RECV_START",
        "HTTP_RECV_END",
        "INFER_RESPONSE_COMPLETE",
        "HTTP_SEND_START",
        "HTTP_SEND_END",
    ]
    assert [event.name for event in model.events] == ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
    assert [event.name for event in compute.events] == ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
    assert _attributes(model) == {
        "triton.model_name": "one",
        "triton.model_version": 1,
        "triton.trace_id": 1,
        "triton.trace_parent_id": 0,
        "triton.request_id": "r",
    }
    assert all(span.kind == Span.SPAN_KIND_SERVER for span in scope.spans)
    assert model.start_time_unix_nano <= compute.start_time_unix_nano <= compute.end_time_unix_nano <= model.end_time_unix_nano
    assert model.end_time_unix_nano <= root.end_time_unix_nano


def test_context_of_the_caller(repository: Repository, collector: Collector) -> None:
    """A request that brings one is traced whatever the rate is, over both protocols, and carries on its trace and state."""
    headers = {"traceparent": PARENT, "tracestate": "rojo=1,congo=2"}
    with Nereid(repository.path, _options(collector.port, "rate=1000000")) as server:
        _infer(server)
        _infer(server, headers={"traceparent": PARENT.upper()})  # none
        _infer(server, headers=headers)
        over_http = collector.spans()
        with rawgrpc.Channel(server.grpc) as channel:
            sent = rawgrpc.infer_request("one", [("INPUT0", "FP32", [1], np.array([3], np.float32).tobytes())])
            assert channel.call("ModelInfer", sent, metadata=list(headers.items())).code == "OK"
        over_grpc = collector.spans()
    for spans in (over_http, over_grpc):
        assert {span.trace_id.hex() for span in spans} == {TRACE}
        assert {span.trace_state for span in spans} == {"rojo=1,congo=2"}
        assert _tree(spans) == {CALLER: ["InferRequest"], "InferRequest": ["one"], "one": ["compute"]}


def test_steps_are_within_their_ensemble(repository: Repository, collector: Collector) -> None:
    with Nereid(repository.path, _options(collector.port)) as server:
        _infer(server, "two", {"traceparent": PARENT})
        spans = collector.spans()
    assert _tree(spans) == {CALLER: ["InferRequest"], "InferRequest": ["two"], "two": ["id", "id"], "id": ["compute", "compute"]}


def test_settings_are_told(repository: Repository, collector: Collector) -> None:
    """Those of the mode, with the usual ones; neither file nor frequency. Those of the environment where no option says more."""
    url = f"http://{HOST}:{collector.port}"
    options = {"trace-config": ["mode=opentelemetry", f"opentelemetry,url={url}", "opentelemetry,bsp_max_queue_size=7"]}
    expected = {
        "trace_level": ["OFF"],
        "trace_rate": "1000",
        "trace_count": "-1",
        "trace_mode": "opentelemetry",
        "url": url,
        "bsp_max_queue_size": "7",
        "bsp_schedule_delay": "5000",
        "bsp_max_export_batch_size": "3",
    }
    with Nereid(repository.path, options, env={"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "3", "OTEL_BSP_MAX_QUEUE_SIZE": "5"}) as server:
        assert rawhttp.get(server.http, "/v2/trace/setting").json() == expected


def test_a_setting_that_is_given_twice(repository: Repository, collector: Collector) -> None:
    """In JSON, where a key has one place, an array; over gRPC a setting has a list of values anyway."""
    with Nereid(repository.path, _options(collector.port, "opentelemetry,resource=a=1", "opentelemetry,resource=b=2")) as server:
        text = rawhttp.get(server.http, "/v2/trace/setting").body.decode()
        pairs: list[tuple[str, object]] = json.JSONDecoder(object_pairs_hook=list).decode(text)
        assert [value for key, value in pairs if key == "resource"] == [["a=1", "b=2"]]
        with grpcclient.InferenceServerClient(server.grpc) as client:
            assert list(client.get_trace_settings().settings["resource"].value) == ["a=1", "b=2"]


def test_what_waits_is_sent_at_the_end(repository: Repository, collector: Collector) -> None:
    with Nereid(repository.path, _options(collector.port, "opentelemetry,bsp_schedule_delay=3600000")) as server:
        for _ in range(3):
            _infer(server)
        assert collector.requests.empty()
    assert len(collector.spans()) == 9


def test_nobody_is_there(repository: Repository) -> None:
    """Requests go on, what has no place is counted in the log, and the server ends in time."""
    more = ["opentelemetry,bsp_max_queue_size=6", "opentelemetry,bsp_max_export_batch_size=1000", "opentelemetry,bsp_schedule_delay=1"]
    with Nereid(repository.path, _options(ports.free_port(), *more)) as server:
        for _ in range(30):
            _infer(server)
        server.process.wait_until(lambda: "spans are thrown away" in server.process.log(), 90)
        _infer(server)


def test_a_queue_too_small_for_a_trace(repository: Repository, collector: Collector) -> None:
    """Nothing is ever sent; the log says so."""
    with Nereid(repository.path, _options(collector.port, "opentelemetry,bsp_max_queue_size=2")) as server:
        _infer(server)
        server.process.wait_until(lambda: "3 spans are thrown away: their traces have more than 2 each" in server.process.log(), 60)
        assert collector.requests.empty()


def test_variables_of_opentelemetry(repository: Repository, collector: Collector) -> None:
    """Headers that a collector asks for, and attributes of the machine, as the reference takes them; options win over attributes."""
    env = {
        "OTEL_EXPORTER_OTLP_HEADERS": "x-team = a%20secret , x-other=o,nothing,x-bad=%0a",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=prod,team=vision,service.name=other",
    }
    with Nereid(repository.path, _options(collector.port, "opentelemetry,resource=team=speech"), env=env) as server:
        _infer(server)
        _, headers, message = collector.requests.get(timeout=60)
        log = server.process.log()
    assert (headers["x-team"], headers["x-other"], headers["x-bad"]) == ("a secret", "o", None)
    attributes = {each.key: each.value.string_value for each in message.resource_spans[0].resource.attributes}
    assert attributes == {"deployment.environment": "prod", "team": "speech", "service.name": "triton-inference-server"}
    for number in (3, 4):
        assert f"variable OTEL_EXPORTER_OTLP_HEADERS: entry {number} is left out" in log
    assert "secret" not in log


def test_who_speaks_to_the_collector(repository: Repository, collector: Collector) -> None:
    """A name and a password in the address are for the collector alone: neither clients nor the log are told."""
    address = f"{HOST}:{ports.free_port()}/v1/traces"
    options = _options(collector.port, f"opentelemetry,url=http://me:sesame@{address}")
    with Nereid(repository.path, options) as server:
        told = rawhttp.get(server.http, "/v2/trace/setting").json()
        assert told["url"] == f"http://{address}"
        _infer(server)
        server.process.wait_until(lambda: "spans are thrown away" in server.process.log(), 90)
        assert f"POST http://{address}: " in server.process.log()
        assert "sesame" not in server.process.log()
