"""Every datatype through the identity model, least and greatest values included."""

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
    """X-17: Today's type beyond the specification's thirteen: two bytes an element, binary only."""
    raw = bytes(range(8))
    request = rawgrpc.infer_request("id_bf16", [("INPUT0", "BF16", [4], raw)])
    with rawgrpc.Channel(server.grpc) as channel:
        message = channel.call("ModelInfer", request).parse(pb.ModelInferResponse)
    assert (message.outputs[0].datatype, message.raw_output_contents[0]) == ("BF16", raw)


def test_strings_keep_their_nul(server: Server) -> None:
    data = np.array([b"a\0b", b"\0", b"end\0"], dtype=np.object_)
    sent = httpclient.InferInput("INPUT0", [3], "BYTES")
    sent.set_data_from_numpy(data)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer("id_bytes", [sent])
    assert result.as_numpy("OUTPUT0").tolist() == data.tolist()
