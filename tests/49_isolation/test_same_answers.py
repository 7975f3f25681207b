"""What an isolated model answers is what the same model answers in the server's own process."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import paths, rawhttp
from harness.digits import load_digits
from harness.repository import DATATYPES, Repository
from harness.servers import HOST, Nereid
from tritonclient.utils import triton_to_np_dtype

from isolated import FAIL, ISOLATED, LATER, OUTPUT_ERROR, PARAMETERS, REPEAT, RESCHEDULE, TELL_IDS, ask, parameters, process_of

CLIENTS = {"http": httpclient, "grpc": grpcclient}
NUMPY_TYPES = [datatype for datatype in DATATYPES if datatype != "BF16"]


def values(datatype: str, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    if datatype == "BYTES":
        texts = [(b"\x00\xff" + str(i).encode()) * (i % 7) for i in range(count)]
        return np.array(texts, dtype=np.object_).reshape(shape)
    if datatype == "BOOL":
        return (np.arange(count) % 3 == 0).reshape(shape)
    return (np.arange(count) % 100).astype(triton_to_np_dtype(datatype)).reshape(shape)


def answers(server: Nereid, protocol: str, model: str, tensors: dict[str, np.ndarray], types: list[str]) -> dict:
    module = CLIENTS[protocol]
    client = module.InferenceServerClient(getattr(server, protocol))
    inputs = []
    for (name, value), datatype in zip(tensors.items(), types, strict=True):
        inputs.append(module.InferInput(name, list(value.shape), datatype))
        inputs[-1].set_data_from_numpy(value)
    result = client.infer(model, inputs, request_id="an id")
    client.close()
    response = result.get_response() if protocol == "http" else result.get_response(as_json=True)
    response = {key: value for key, value in response.items() if key not in ("model_name", "raw_output_contents")}
    return {"response": response, **{name: result.as_numpy(name.replace("IN", "OUT")) for name in tensors}}


def same(server: Nereid, protocol: str, model: str, tensors: dict[str, np.ndarray], types: list[str]) -> None:
    plain = answers(server, protocol, model, tensors, types)
    isolated = answers(server, protocol, f"iso_{model}", tensors, types)
    assert plain["response"] == isolated["response"]
    for name, value in tensors.items():
        np.testing.assert_array_equal(plain[name], value)
        np.testing.assert_array_equal(isolated[name], value)


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize("datatype", NUMPY_TYPES)
def test_every_datatype_and_size(pairs: Nereid, protocol: str, datatype: str) -> None:
    for count in (0, 1, 17, 4096, 4097, 100_000):
        same(pairs, protocol, f"id_{datatype.lower()}", {"INPUT0": values(datatype, (count,))}, [datatype])


@pytest.mark.parametrize("protocol", CLIENTS)
def test_shapes(pairs: Nereid, protocol: str) -> None:
    for shape in ((2, 3, 4), (0, 3, 5), (1, 3, 1), (50, 3, 40)):
        same(pairs, protocol, "id_cube", {"INPUT0": values("FP32", shape)}, ["FP32"])
    for rows in (1, 3):
        same(pairs, protocol, "id_reshape", {"INPUT0": values("FP32", (rows, 16))}, ["FP32"])


@pytest.mark.parametrize("protocol", CLIENTS)
def test_several_tensors_small_and_large_in_a_batch(pairs: Nereid, protocol: str) -> None:
    tensors = {"INPUT0": values("FP32", (8, 3)), "INPUT1": values("FP32", (8, 30_000))}
    same(pairs, protocol, "id_two", tensors, ["FP32", "FP32"])


@pytest.mark.parametrize("protocol", CLIENTS)
def test_16_mib(pairs: Nereid, protocol: str) -> None:
    same(pairs, protocol, "id_fp32", {"INPUT0": values("FP32", (4 << 20,))}, ["FP32"])


def test_bfloat16_as_bytes(pairs: Nereid) -> None:
    raw = bytes(range(256)) * 40
    head = b'{"inputs":[{"name":"INPUT0","datatype":"BF16","shape":[5120],"parameters":{"binary_data_size":10240}}],'
    head += b'"parameters":{"binary_data_output":true}}'
    found = []
    for model in ("id_bf16", "iso_id_bf16"):
        answer = rawhttp.request(
            HOST, pairs.http_port, "POST", f"/v2/models/{model}/infer", head + raw,
            {"Inference-Header-Content-Length": str(len(head))},
        )
        assert answer.status == 200
        found.append(answer.body[-10240:])
    assert found == [raw, raw]


def test_numbers_and_strings_in_json(pairs: Nereid) -> None:
    for datatype, data in (("FP64", [1.5, -2.25, 1e300]), ("BYTES", ["", "ä", "x" * 5000]), ("INT8", [-128, 127])):
        tensor = {"name": "INPUT0", "datatype": datatype, "shape": [len(data)], "data": data}
        found = [
            rawhttp.request(
                HOST, pairs.http_port, "POST", f"/v2/models/{model}id_{datatype.lower()}/infer",
                body=json.dumps({"inputs": [tensor]}).encode(),
            ).json()
            for model in ("", "iso_")
        ]
        assert found[0]["outputs"] == found[1]["outputs"]
        assert found[0]["outputs"][0]["data"] == data


def test_parameters_ids_and_flags_travel(pairs: Nereid) -> None:
    given = {"text": "ä \" \\", "whole": -(2**40), "yes": True, "real": 0.25}
    plain, isolated = (
        ask(pairs, model, [PARAMETERS], parameters=given).json() for model in ("crasher", "iso_crasher")
    )
    assert isolated["parameters"] == plain["parameters"] == given
    more = {"sequence_id": 42, "sequence_start": True, "timeout": 5_000_000}
    plain, isolated = (
        ask(pairs, model, [TELL_IDS], id="the id", parameters=more).json() for model in ("crasher", "iso_crasher")
    )
    assert isolated["parameters"] == plain["parameters"]
    assert isolated["id"] == "the id"


@pytest.mark.parametrize("deed", [FAIL, OUTPUT_ERROR, LATER])
def test_errors_and_late_answers(pairs: Nereid, deed: int) -> None:
    plain, isolated = (ask(pairs, model, [deed, 3]) for model in ("crasher", "iso_crasher"))
    assert (isolated.status, isolated.json() | {"model_name": ""}) == (plain.status, plain.json() | {"model_name": ""})


def test_a_request_that_is_given_back_is_executed_again(pairs: Nereid) -> None:
    for numbers in ([RESCHEDULE, 5], [RESCHEDULE, *range(5000)]):
        plain, isolated = (ask(pairs, model, numbers, rows=True) for model in ("again", "iso_again"))
        assert plain.status == isolated.status == 200
        assert plain.json()["outputs"] == isolated.json()["outputs"]
        assert isolated.json()["outputs"][0]["data"] == numbers


@pytest.mark.parametrize("model", ["many", "iso_many"])
@pytest.mark.parametrize("times", [0, 1, 500])
def test_decoupled_responses_in_order(pairs: Nereid, model: str, times: int) -> None:
    client = grpcclient.InferenceServerClient(pairs.grpc)
    results: list = []
    final = threading.Event()

    def on_response(result: grpcclient.InferResult | None, error: Exception | None) -> None:
        assert error is None and result is not None
        response = result.get_response()
        if response.parameters["triton_final_response"].bool_param:
            final.set()
        else:
            results.append(int(result.as_numpy("OUTPUT0")[0]))

    client.start_stream(on_response)
    number = grpcclient.InferInput("INPUT0", [1], "INT32")
    number.set_data_from_numpy(np.array([REPEAT - times], dtype=np.int32))
    client.async_stream_infer(model, [number], enable_empty_final_response=True)
    assert final.wait(120)
    client.stop_stream()
    client.close()
    assert results == list(range(times))


def test_statistics_are_those_of_the_backend(pairs: Nereid) -> None:
    before = pairs.statistics("iso_id_int8")
    same(pairs, "http", "id_int8", {"INPUT0": values("INT8", (3,))}, ["INT8"])
    after = pairs.statistics("iso_id_int8")
    assert after["inference_count"] == before["inference_count"] + 1
    assert after["execution_count"] == before["execution_count"] + 1
    assert after["inference_stats"]["success"]["count"] == before["inference_stats"]["success"]["count"] + 1
    assert after["last_inference"] >= before["last_inference"] > 0 or before["last_inference"] == 0
    failed = pairs.statistics("iso_crasher")["inference_stats"]["fail"]["count"]
    assert ask(pairs, "iso_crasher", [FAIL]).status == 400
    assert pairs.statistics("iso_crasher")["inference_stats"]["fail"]["count"] == failed + 1


def test_the_models_run_elsewhere(pairs: Nereid) -> None:
    child = process_of(pairs, "iso_id_fp32")
    maps = Path(f"/proc/{child}/maps").read_text()
    assert "libtriton_identity.so" in maps
    with pytest.raises(AssertionError):
        process_of(pairs, "id_fp32")


@pytest.mark.onnx
def test_all_digits_get_the_same_classes(tmp_path: Path) -> None:
    """The isolated copy of the sample model, without a configuration: the backend completes it in its process."""
    images = load_digits().data
    sample = paths.need(paths.SAMPLE_MODELS / "digits" / "1" / "model.onnx")
    repository = Repository(tmp_path / "models")
    for name, values in (("plain", {}), ("isolated", ISOLATED)):
        extra = f"max_batch_size: 64\ndynamic_batching {{ }}\ninstance_group {{ count: 2 }}\n{parameters(values)}"
        folder = repository.model(name, f'backend: "onnxruntime"\n{extra}')
        (folder / "1" / "model.onnx").symlink_to(sample)
    with Nereid(repository.path) as server, httpclient.InferenceServerClient(server.http) as client:
        found = {}
        for name in ("plain", "isolated"):
            rows = []
            for begin in range(0, len(images), 37):
                part = images[begin : begin + 37]
                sent = httpclient.InferInput("image", list(part.shape), "FP32")
                sent.set_data_from_numpy(part)
                rows.append(client.infer(name, [sent]).as_numpy("logits"))
            found[name] = np.concatenate(rows)
        assert client.get_model_metadata("isolated")["inputs"] == client.get_model_metadata("plain")["inputs"]
        assert process_of(server, "isolated")
    np.testing.assert_array_equal(found["isolated"].argmax(axis=1), found["plain"].argmax(axis=1))
    np.testing.assert_allclose(found["isolated"], found["plain"], rtol=1e-5, atol=1e-5)
    assert (found["isolated"].argmax(axis=1) == load_digits().target).mean() > 0.95


@pytest.mark.parametrize("prefix", ["", "iso_"])
def test_rows_that_only_fill_gaps_do_not_count(pairs: Nereid, prefix: str) -> None:
    """The second sequence goes on while the slot before its own has nothing to do."""
    model = f"{prefix}slots"
    for sequence in (1, 2):
        answer = ask(pairs, model, [7], rows=True, parameters={"sequence_id": sequence, "sequence_start": True})
        assert answer.status == 200, answer.body
    for _ in range(3):
        assert ask(pairs, model, [7], rows=True, parameters={"sequence_id": 2}).status == 200
    stats = pairs.statistics(model)
    assert stats["inference_stats"]["success"]["count"] == stats["inference_count"] == 5
    assert stats["inference_stats"]["fail"]["count"] == 0
