"""Inference over HTTP with the real client: JSON and binary tensors in every mixture."""

import itertools

import numpy as np
import pytest
import tritonclient.http as httpclient
from harness import rawhttp
from harness.servers import Server

MIXTURES = list(itertools.product([False, True], repeat=2))


def _input(name: str, data: np.ndarray, binary: bool, datatype: str = "FP32") -> httpclient.InferInput:
    made = httpclient.InferInput(name, list(data.shape), datatype)
    made.set_data_from_numpy(data, binary_data=binary)
    return made


@pytest.mark.parametrize(("first", "second"), MIXTURES)
@pytest.mark.parametrize(("out_first", "out_second"), MIXTURES)
def test_mixtures(server: Server, first: bool, second: bool, out_first: bool, out_second: bool) -> None:
    one = np.arange(12, dtype=np.float32).reshape(3, 4)
    two = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer(
            "id_two",
            [_input("INPUT0", one, first), _input("INPUT1", two, second)],
            outputs=[
                httpclient.InferRequestedOutput("OUTPUT0", binary_data=out_first),
                httpclient.InferRequestedOutput("OUTPUT1", binary_data=out_second),
            ],
        )
    for name, sent, binary in (("OUTPUT0", one, out_first), ("OUTPUT1", two, out_second)):
        np.testing.assert_array_equal(result.as_numpy(name), sent)
        described = result.get_output(name)
        assert ("data" in described) == (not binary)
        assert ("binary_data_size" in described.get("parameters", {})) == binary


@pytest.mark.parametrize("binary", [False, True])
def test_without_requested_outputs_all_come(server: Server, binary: bool) -> None:
    data = np.ones((2, 3), dtype=np.float32)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer("id_two", [_input("INPUT0", data, binary), _input("INPUT1", data * 2, binary)])
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), data * 2)


def test_only_the_requested_output(server: Server) -> None:
    data = np.ones((2, 3), dtype=np.float32)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer(
            "id_two",
            [_input("INPUT0", data, True), _input("INPUT1", data * 2, True)],
            outputs=[httpclient.InferRequestedOutput("OUTPUT1")],
        )
    assert [each["name"] for each in result.get_response()["outputs"]] == ["OUTPUT1"]
    assert result.as_numpy("OUTPUT0") is None


def test_id_and_version(server: Server) -> None:
    """MC-79, MC-84."""
    data = np.ones(1, dtype=np.float32)
    with httpclient.InferenceServerClient(server.http) as client:
        named = client.infer(
            "id_specific", [_input("INPUT0", data, True)], model_version="1", request_id="abc-1"
        )
        plain = client.infer("id_all", [_input("INPUT0", data, True)])
    assert (named.get_response()["id"], named.get_response()["model_version"]) == ("abc-1", "1")
    # No id in, none out; the greatest number is the latest.
    assert "id" not in plain.get_response()
    assert plain.get_response()["model_version"] == "10"


def test_binary_output_for_the_whole_request(server: Server) -> None:
    request = {
        "parameters": {"binary_data_output": True},
        "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2]}],
    }
    answer = rawhttp.post(server.http, "/v2/models/id_fp32/infer", request)
    assert answer.status == 200
    assert answer.header("Content-Type") == "application/octet-stream"
    length = int(answer.header("Inference-Header-Content-Length") or 0)
    assert answer.body[length:] == np.array([1, 2], dtype="<f4").tobytes()


def test_nested_data(server: Server) -> None:
    data = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]
    request = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2, 3, 2], "data": data}]}
    answer = rawhttp.post(server.http, "/v2/models/id_cube/infer", request)
    output = answer.json()["outputs"][0]
    assert (output["shape"], output["data"]) == ([2, 3, 2], list(range(1, 13)))


@pytest.mark.parametrize("shape", [(0,), (1,), (1000,)])
@pytest.mark.parametrize("binary", [False, True])
def test_any_length(server: Server, shape: tuple[int, ...], binary: bool) -> None:
    """MC-29: a variable dimension takes any size, 0 too."""
    data = np.arange(shape[0], dtype=np.float32)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer(
            "id_fp32",
            [_input("INPUT0", data, binary)],
            outputs=[httpclient.InferRequestedOutput("OUTPUT0", binary_data=binary)],
        )
    assert result.get_output("OUTPUT0")["shape"] == list(shape)
    if shape[0]:
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)


@pytest.mark.parametrize("batch", [1, 5, 8])
def test_batches(server: Server, batch: int) -> None:
    data = np.random.default_rng(batch).standard_normal((batch, 16)).astype(np.float32)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer("id_batch", [_input("INPUT0", data, True)])
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)


def test_large(server: Server) -> None:
    """16 MiB in one tensor: the buffers beyond the usual ones."""
    data = np.arange(4 << 20, dtype=np.float32)
    with httpclient.InferenceServerClient(server.http, network_timeout=120) as client:
        result = client.infer("id_fp32", [_input("INPUT0", data, True)])
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)
