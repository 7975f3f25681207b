"""The examples of the two protocol documents of the specification, as bytes, to both servers: word for word as far as they can be sent, and
repaired where they are no JSON. Each row of the tables names its section; the rows of a table are asked in their order, of one server."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import BOTH
from harness import rawgrpc, rawhttp
from harness.ensembles import chain
from harness.repository import Repository
from harness.servers import HOST, KINDS, Server
from models import onnx_models
from onnx import helper

pytestmark = pytest.mark.onnx

INFER = "POST /v2/models/mymodel/infer HTTP/1.1\r\nHost: localhost:8000\r\nContent-Type: application/json\r\nContent-Length: <xx>\r\n\r\n"
LOAD = "POST /v2/repository/models/mymodel/load HTTP/1.1\r\nHost: localhost:8000\r\n"
# No comma after "parameters", one too many after "output0".
SEQUENCE = """\
{
  "parameters" : { "sequence_id" : %s }
  "inputs" : [
    {
      "name" : "input0",
      "shape" : [ 2, 2 ],
      "datatype" : "UINT32",
      "data" : [ 1, 2, 3, 4 ]
    }
  ],
  "outputs" : [
    {
      "name" : "output0",
    }
  ]
}
"""
UUID = '"e333c95a-07fc-42d2-ab16-033b1a566ed5"'
# A text with quotation marks in it, which are not escaped.
MODEL = """\
{
"parameters": {
"config": "{
"name": "mymodel",
"backend": "onnxruntime",
"inputs": [{
"name": "INPUT0",
"datatype": "FP32",
"shape": [ 1 ]
}
],
"outputs": [{
"name": "OUTPUT0",
"datatype": "FP32",
"shape": [ 1 ]
}
]
}",
"file:1/model.onnx" : "<base64-encoded-file-content>"
}
}
"""
NOT_JSON = b"failed to parse the request JSON buffer"


_NODE = helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])
MODEL_FILE = onnx_models.model([_NODE], [("INPUT0", "FP32", [1])], [("OUTPUT0", "FP32", [1])]).SerializeToString()


def _repaired(text: str) -> str:
    """The commas put right."""
    found = text.replace('}\n  "inputs"', '},\n  "inputs"').replace('"output0",', '"output0"')
    json.loads(found)
    return found


def _escaped(text: str) -> str:
    """The configuration as a string, word for word."""
    before, rest = text.split('"config": "')
    config, after = rest.split('}",\n"file')
    found = before + '"config": ' + json.dumps(config + "}") + ',\n"file' + after
    json.loads(found)
    return found


def _in_fields(text: str) -> str:
    """In the names of ModelConfig."""
    text = text.replace('"inputs"', '"input"').replace('"outputs"', '"output"').replace('"shape"', '"dims"')
    return text.replace('"datatype": "FP32"', '"data_type": "TYPE_FP32"')


def _load(text: str, content: bytes = MODEL_FILE, version: int = 1) -> str:
    text = text.replace("<base64-encoded-file-content>", base64.b64encode(content).decode())
    return text.replace("file:1/", f"file:{version}/")


TENSORS = '"name":"output0","datatype":"UINT32","shape":[2,2]'
ANSWERED = '{"model_name":"mymodel","model_version":"1","outputs":[{' + TENSORS + ',"data":[1,2,3,4]}]}'


class Asked(NamedTuple):
    section: str
    head: str  # as printed; its Content-Length is filled in, or added where there is none
    body: str
    status: int
    answer: bytes  # all of it; of an error, a part
    theirs: int | None = None  # status of the reference where it is another (docs/user/differences.md); 0: it closes the connection


def _posts(path: str) -> str:
    return f"POST /{path} HTTP/1.1\r\nHost: localhost:8000\r\n"


INDEX, UNLOAD = _posts("v2/repository/index"), _posts("v2/repository/models/${MODEL_NAME}/unload")
END = SEQUENCE.replace("%s }", '%s, "sequence_end" : true }')
START = SEQUENCE.replace("%s }", '%s, "sequence_start" : true }')
STATEFUL = json.dumps({"parameters": {"config": json.dumps({
    "name": "mymodel", "backend": "identity", "max_batch_size": 0, "sequence_batching": {"max_sequence_idle_microseconds": 60_000_000},
    "input": [{"name": "input0", "data_type": "TYPE_UINT32", "dims": [2, 2]}],
    "output": [{"name": "output0", "data_type": "TYPE_UINT32", "dims": [2, 2]}],
})}})  # fmt: skip

SEQUENCES = [
    Asked("a number, the length as printed", INFER, SEQUENCE % 42, 400, b"Invalid character in Content-Length", theirs=0),
    Asked("a number, word for word", INFER, SEQUENCE % 42, 500, NOT_JSON),
    Asked("a text, word for word", INFER, SEQUENCE % UUID, 500, NOT_JSON),
    Asked("a number, a model without sequences", INFER, _repaired(SEQUENCE % 42), 200, ANSWERED.encode()),
    Asked("a text, a model without sequences", INFER, _repaired(SEQUENCE % UUID), 200, ANSWERED.encode()),
    Asked("a model of sequences instead", LOAD, STATEFUL, 200, b""),
    Asked("a number, neither start nor end, of no sequence", INFER, _repaired(SEQUENCE % 42), 400, b"must specify the START flag on the first request"),
    Asked("a sequence_start", INFER, _repaired(START % 42), 200, ANSWERED.encode()),
    Asked("a number, neither start nor end", INFER, _repaired(SEQUENCE % 42), 200, ANSWERED.encode()),
    Asked("a sequence_end", INFER, _repaired(END % 42), 200, ANSWERED.encode()),
    Asked("a text, of another sequence", INFER, _repaired(SEQUENCE % UUID), 400, b"must specify the START flag on the first request"),
    Asked("a sequence_start, a text", INFER, _repaired(START % UUID), 200, ANSWERED.encode()),
    Asked("a text, neither start nor end", INFER, _repaired(SEQUENCE % UUID), 200, ANSWERED.encode()),
]  # fmt: skip

INDEXES = [
    Asked("index, all", INDEX, "{}", 200, b'[{"name":"mymodel","version":"1","state":"READY"},{"name":"part"},{"name":"whole"}]'),
    Asked("index, ready", INDEX, '{\n"ready" : true\n}', 200, b'[{"name":"mymodel","version":"1","state":"READY"}]'),
    Asked("index, the error object", INDEX, '{\n"ready" : $boolean #optional,\n}', 500, NOT_JSON),
]  # fmt: skip

LOADS = [
    Asked("load, word for word", LOAD, MODEL, 500, NOT_JSON),
    Asked("load, the configuration as a string", LOAD, _load(_escaped(MODEL)), 400, b"failed to load 'mymodel'", theirs=500),
    Asked("load, in the fields of ModelConfig", LOAD, _load(_escaped(_in_fields(MODEL))), 200, b""),
    Asked("load, a file of version 2", LOAD, _load(_escaped(_in_fields(MODEL)), version=2), 200, b""),
    Asked("load, a file without content", LOAD, _load(_escaped(_in_fields(MODEL)), b""), 400, b"load failed for model 'mymodel'"),
    Asked("load, a file without a configuration", LOAD, '{ "parameters" : { "file:2/model.onnx" : "" } }', 400, b"Load parameter 'config' must be specified", theirs=500),
]  # fmt: skip

UNLOADS = [
    Asked("load, no body", LOAD.replace("mymodel", "whole"), "", 200, b""),
    Asked("unload, the error object", UNLOAD.replace("${MODEL_NAME}", "part"), '{ "parameters" : $parameters #optional }', 500, NOT_JSON, theirs=200),
    Asked("unload, no body", UNLOAD.replace("${MODEL_NAME}", "mymodel"), "", 200, b""),
    Asked("unload_dependents", UNLOAD.replace("${MODEL_NAME}", "part"), '{ "parameters" : { "unload_dependents" : true } }', 200, b""),
]  # fmt: skip



def _field(number: int, value: int | str | bytes) -> bytes:
    """A field of protobuf; below 128, as all numbers and most lengths here, a varint is its byte."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    size = len(data)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([number << 3 | 2]) + length + data


def _parameter(number: int, name: str, choice: bytes) -> bytes:
    return _field(number, _field(1, name) + _field(2, choice))


CONFIG = json.loads(_escaped(_in_fields(MODEL)))["parameters"]["config"]
NAMED = _field(2, "mymodel")
NAMED_FIRST = _field(1, "mymodel") + _field(2, "1")
READY = _field(1, NAMED_FIRST + _field(3, "READY"))


class Called(NamedTuple):
    section: str
    method: str
    message: bytes  # by the numbers that the document gives its fields
    code: str
    answer: bytes  # all of it; of an error, a part of its words
    theirs: str | None = None


REST = _field(1, _field(1, "part")) + _field(1, _field(1, "whole"))
LOADED = [
    Called("RepositoryIndexRequest", "RepositoryIndex", b"", "OK", READY + REST),
    Called("RepositoryIndexRequest.ready", "RepositoryIndex", _field(2, 1), "OK", READY),
    Called("RepositoryModelLoadRequest.parameters, a file alone", "RepositoryModelLoad",
           NAMED + _parameter(3, "file:1/model.onnx", _field(4, MODEL_FILE)), "INVALID_ARGUMENT", b"Load parameter 'config' must be specified", "INTERNAL"),
    Called("RepositoryModelLoadRequest.parameters", "RepositoryModelLoad",
           NAMED + _parameter(3, "config", _field(3, CONFIG)) + _parameter(3, "file:1/model.onnx", _field(4, MODEL_FILE)), "OK", b""),
    Called("RepositoryModelLoadRequest, google.rpc.Status", "RepositoryModelLoad", _field(2, "nobody"), "INTERNAL", b"failed to load 'nobody'"),
]  # fmt: skip
UNLOADED = [
    Called("RepositoryModelUnloadRequest", "RepositoryModelUnload", NAMED, "OK", b""),
    Called("RepositoryModelLoadRequest.model_name", "RepositoryModelLoad", _field(2, "whole"), "OK", b""),
    Called("RepositoryModelUnloadRequest.parameters", "RepositoryModelUnload",
           _field(2, "part") + _parameter(3, "unload_dependents", _field(1, 1)), "OK", b""),
]  # fmt: skip
# ModelInferRequest with the example's tensor, whose fields the other documents number; ModelStreamInferResponse is of this one.
TENSOR = _field(1, "input0") + _field(2, "UINT32") + _field(3, b"\2\2") + _field(5, _field(4, b"\1\2\3\4"))
STREAMED = _field(1, "mymodel") + _parameter(4, "sequence_id", _field(2, 42)) + _field(5, TENSOR) + _field(6, _field(1, "output0"))


@pytest.fixture(params=BOTH)
def explicit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """mymodel as the sequence extension asks it, and an ensemble `whole` of two steps of `part`."""
    repository = Repository(tmp_path / "models")
    repository.model("mymodel", """\
        name: "mymodel"
        backend: "identity"
        input { name: "input0" data_type: TYPE_UINT32 dims: [ 2, 2 ] }
        output { name: "output0" data_type: TYPE_UINT32 dims: [ 2, 2 ] }
        """)  # fmt: skip
    repository.identity("part")
    repository.model("whole", chain("whole", ["part", "part"]).config())
    with KINDS[request.param](repository.path, {"model-control-mode": "explicit", "load-model": "mymodel"}) as server:
        yield server


def _bytes_of(asked: Asked) -> bytes:
    body = asked.body.encode()
    if asked.section.endswith("as printed"):
        return asked.head.encode() + body
    head = asked.head.replace("<xx>", str(len(body)))
    return (head if head.endswith("\r\n\r\n") else f"{head}Content-Length: {len(body)}\r\n\r\n").encode() + body


def _answered(server: Server, asked: Asked) -> None:
    differs = server.kind == "reference" and asked.theirs is not None
    with rawhttp.Connection(HOST, server.http_port) as connection:
        connection.send(_bytes_of(asked))
        if differs and asked.theirs == 0:
            assert connection.closed(), asked.section
            return
        answer = connection.answer()
    assert answer.status == (asked.theirs if differs else asked.status), f"{asked.section}: {answer}"
    if differs:
        return
    if asked.status == 200:
        assert answer.body == asked.answer, asked.section
    else:
        assert asked.answer in answer.body, f"{asked.section}: {answer}"
        assert list(answer.json()) == ["error"], asked.section


def test_sequence_extension(explicit: Server) -> None:
    """SX-05, SX-09, SX-10, SX-13, SX-19, SX-20, SX-21, SX-22, SX-23, X-22, X-25: both examples, by a model without sequences and by one of them."""
    for asked in SEQUENCES:
        _answered(explicit, asked)


def test_index(explicit: Server) -> None:
    """RX-05, RX-11, RX-12, RX-15, RX-22."""
    for asked in INDEXES:
        _answered(explicit, asked)


def test_load(explicit: Server) -> None:
    """RX-06, RX-24, RX-33, RX-34, RX-35, RX-36, RX-43, RX-44, X-07, X-08."""
    for asked in LOADS:
        _answered(explicit, asked)


def test_unload(explicit: Server) -> None:
    """RX-07, RX-50, X-09: the parts of an ensemble go, and it with them."""
    for asked in UNLOADS:
        if asked.section.startswith("unload"):
            explicit.rest()
        _answered(explicit, asked)
    explicit.process.wait_until(lambda: rawhttp.get(explicit.http, "/v2/models/whole/ready").status != 200, 60)


def _called(server: Server, called: list[Called]) -> None:
    with rawgrpc.Channel(server.grpc) as channel:
        for each in called:
            if each.method == "RepositoryModelUnload":
                server.rest()
            answer = channel.call(each.method, each.message)
            if each.theirs and server.kind == "reference":
                assert answer.code == each.theirs, each.section
                continue
            assert answer.code == each.code, f"{each.section}: {answer}"
            if answer.code == "OK":
                assert answer.body == each.answer, each.section
            else:
                assert each.answer.decode() in answer.details, each.section


def test_messages_of_index_and_load(explicit: Server) -> None:
    """RX-55, RX-56, RX-58, RX-59, RX-60, RX-62, RX-63, RX-65, RX-69, RX-71, RX-72, X-10: the answer to a load is an empty message."""
    _called(explicit, LOADED)


def test_messages_of_index_and_unload(explicit: Server) -> None:
    """RX-57, RX-64, RX-75, RX-76, RX-77, RX-78: all four fields of a ModelIndex come once there is a reason."""
    _called(explicit, UNLOADED[:1])
    gone = _field(1, NAMED_FIRST + _field(3, "UNAVAILABLE") + _field(4, "unloaded")) + REST
    with rawgrpc.Channel(explicit.grpc) as channel:
        explicit.process.wait_for(lambda: channel.call("RepositoryIndex").body, gone)
    _called(explicit, UNLOADED[1:])
    explicit.process.wait_until(lambda: rawhttp.get(explicit.http, "/v2/models/whole/ready").status != 200, 60)


def test_sequence_messages(explicit: Server) -> None:
    """SX-24, SX-25, SX-26, SX-29, SX-30, SX-31, SX-32, X-26: an error between two answers."""
    asked = [STREAMED, STREAMED.replace(b"mymodel", b"nobody1"), STREAMED]
    with rawgrpc.Channel(explicit.grpc) as channel:
        stream = channel.channel.stream_stream(f"/{rawgrpc.SERVICE}/ModelStreamInfer")(iter(asked), timeout=60)
        answers = list(stream)
    final = _parameter(4, "triton_final_response", _field(1, 1))
    output = _field(5, _field(1, "output0") + _field(2, "UINT32") + _field(3, b"\2\2"))
    raw = _field(6, b"".join(bytes([value, 0, 0, 0]) for value in (1, 2, 3, 4)))
    good = _field(2, NAMED_FIRST + final + output + raw)
    error = _field(1, "Request for unknown model: 'nobody1' is not found")
    assert (answers[0], answers[1][: len(error)], answers[2]) == (good, error, good)
