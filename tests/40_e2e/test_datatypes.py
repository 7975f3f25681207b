"""Every datatype through the identity model, least and greatest values included."""

import json

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import arrays, rawgrpc, rawhttp
from harness.servers import Server
from tritonclient.grpc import service_pb2 as pb


@pytest.mark.parametrize("datatype", arrays.NUMPY)
def test_http_binary(server: Server, datatype: str) -> None:
    """PB-01, PB-03."""
    data = arrays.edges(datatype)
    sent = httpclient.InferInput("INPUT0", list(data.shape), datatype)
    sent.set_data_from_numpy(data, binary_data=True)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer(f"id_{datatype.lower()}", [sent])
    assert result.get_output("OUTPUT0")["datatype"] == datatype
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)


@pytest.mark.parametrize("datatype", arrays.JSON_TYPES)
def test_http_json(server: Server, datatype: str) -> None:
    data = arrays.edges(datatype)
    values = [each.decode() for each in data] if datatype == "BYTES" else data.tolist()
    request = {"inputs": [{"name": "INPUT0", "datatype": datatype, "shape": [len(values)], "data": values}]}
    answer = rawhttp.post(server.http, f"/v2/models/id_{datatype.lower()}/infer", request)
    assert answer.status == 200, answer.body
    output = answer.json()["outputs"][0]
    assert output["datatype"] == datatype
    if datatype in ("FP32", "FP64"):
        assert np.array(output["data"], dtype=data.dtype).tolist() == values
    else:
        assert output["data"] == values


@pytest.mark.parametrize("datatype", arrays.NUMPY)
def test_grpc(server: Server, datatype: str) -> None:
    data = arrays.edges(datatype)
    sent = grpcclient.InferInput("INPUT0", list(data.shape), datatype)
    sent.set_data_from_numpy(data)
    with grpcclient.InferenceServerClient(server.grpc) as client:
        result = client.infer(f"id_{datatype.lower()}", [sent])
    assert result.get_output("OUTPUT0").datatype == datatype
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)


def test_bf16(server: Server) -> None:
    """X-17: Today's type beyond the specification's thirteen: two bytes an element."""
    raw = bytes(range(8))
    request = rawgrpc.infer_request("id_bf16", [("INPUT0", "BF16", [4], raw)])
    with rawgrpc.Channel(server.grpc) as channel:
        message = channel.call("ModelInfer", request).parse(pb.ModelInferResponse)
    assert (message.outputs[0].datatype, message.raw_output_contents[0]) == ("BF16", raw)


def _ask(server: Server, datatype: str, data: str, outputs: str = "") -> rawhttp.Answer:
    tensor = f'{{"name":"INPUT0","datatype":"{datatype}","shape":[{len(json.loads(data))}],"data":{data}}}'
    body = f'{{"inputs":[{tensor}]{outputs}}}'.encode("latin-1")
    return rawhttp.post(server.http, f"/v2/models/id_{datatype.lower()}/infer", body)


def _told(answer: rawhttp.Answer) -> list[object]:
    assert answer.status == 200, answer.body
    return list(answer.json()["outputs"][0]["data"])


BINARY = ',"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]'
BASE64 = ',"outputs":[{"name":"OUTPUT0","parameters":{"b64":true}}]'


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_halves_in_json(nereid: Server, datatype: str) -> None:
    """Read to the nearest value, of two the even one; written as the doubles that they are."""
    assert _told(_ask(nereid, datatype, "[1, -2.5, 0, 65280]")) == [1.0, -2.5, 0.0, 65280.0]
    answer = _ask(nereid, datatype, "[1e-30, 0.1, 2049, 2051, NaN, -Infinity]", BINARY)
    raw = answer.body[int(answer.header("Inference-Header-Content-Length") or 0) :]
    numbers = np.array([1e-30, 0.1, 2049, 2051, np.nan, -np.inf], np.float32)
    if datatype == "FP16":
        assert raw == numbers.astype(np.float16).tobytes()
        assert _told(_ask(nereid, datatype, "[0.1]")) == [0.0999755859375]
    else:
        bits = numbers.view(np.uint32)
        assert raw == ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()


@pytest.mark.parametrize(("datatype", "number"), [("FP16", "65520"), ("FP16", "-1e300"), ("BF16", "3.4e38")])
def test_halves_that_are_too_large(nereid: Server, datatype: str, number: str) -> None:
    """A number that became infinite would come as a surprise so early; who wants that says Infinity."""
    answer = _ask(nereid, datatype, f"[1, {number}]")
    assert answer.status == 400
    assert answer.json()["error"] == "Unable to parse 'data': a number is out of the range of the datatype"
    assert np.isinf(_told(_ask(nereid, datatype, "[Infinity]"))[0])


def test_strings_in_base64(nereid: Server) -> None:
    """Any element may be written so; those that are not UTF-8 come back so where that is asked for."""
    data = '["a", {"b64": "/wA="}, {"b64": "YQ"}, {"b64": ""}]'
    assert _told(_ask(nereid, "BYTES", data, BASE64)) == ["a", {"b64": "/wA="}, "a", ""]
    plain = _ask(nereid, "BYTES", data)
    assert plain.status == 200
    assert b'"data":["a","\xff\\u0000","a",""]' in plain.body


@pytest.mark.parametrize(
    ("element", "error"),
    [
        ('{"b64": "A"}', (400, 'the string of {"b64": ...} is not base64')),
        ('{"b64": "QQ==QQ=="}', (400, 'the string of {"b64": ...} is not base64')),
        ('{"b64": 1}', (500, "attempt to access JSON non-string as string")),
        ('{"b64": "", "x": 1}', (500, "attempt to access JSON non-string as string")),
        ('{"B64": ""}', (500, "attempt to access JSON non-string as string")),
    ],
)
def test_what_is_no_base64(nereid: Server, element: str, error: tuple[int, str]) -> None:
    answer = _ask(nereid, "BYTES", f"[{element}]")
    assert (answer.status, answer.json()["error"].split(": ", 1)[1]) == error
    wrong = _ask(nereid, "BYTES", '["a"]', BASE64.replace("true", "1"))
    assert wrong.json()["error"] == "Unable to parse 'b64': attempt to access JSON non-boolean as boolean"


def test_generate_with_base64(nereid: Server) -> None:
    answer = rawhttp.post(nereid.http, "/v2/models/id_bytes/generate", {"INPUT0": [{"b64": "eA=="}, "y"]})
    assert answer.json()["OUTPUT0"] == ["x", "y"]
    assert rawhttp.post(nereid.http, "/v2/models/id_bytes/generate", {"INPUT0": {"b64": "eA=="}}).json()["OUTPUT0"] == "x"


def test_strings_keep_their_nul(server: Server) -> None:
    data = np.array([b"a\0b", b"\0", b"end\0"], dtype=np.object_)
    sent = httpclient.InferInput("INPUT0", [3], "BYTES")
    sent.set_data_from_numpy(data)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer("id_bytes", [sent])
    assert result.as_numpy("OUTPUT0").tolist() == data.tolist()
