"""Requests with two faults: the one that is named is the one that the reference names."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness.compare import Grpc, Http, Question, compare
from harness.repository import Repository
from harness.servers import KINDS, Server
from tritonclient.grpc import service_pb2 as pb

Request = dict[str, Any]
Fault = Callable[[Request, int], None]
TENSORS = 3
SHAPES = {"batched": [1, 2], "plain": [2]}


def _datatype(request: Request, i: int) -> None:
    request["inputs"][i] |= {"datatype": "INT32", "data": [1, 2]}


def _shape(request: Request, i: int) -> None:
    request["inputs"][i] |= {"shape": [*request["inputs"][i]["shape"][:-1], 3], "data": [1.0] * 3}


def _rank(request: Request, i: int) -> None:
    request["inputs"][i]["shape"].append(1)


def _no_shape(request: Request, i: int) -> None:
    request["inputs"][i]["shape"] = []


def _batch(request: Request, i: int) -> None:
    shape = request["inputs"][i]["shape"]
    request["inputs"][i] |= {"shape": [9, *shape[1:]], "data": [1.0] * 9 * (shape[-1] if shape[1:] else 1)}


def _few(request: Request, i: int) -> None:
    request["inputs"][i]["data"] = [1.0]


def _many(request: Request, i: int) -> None:
    request["inputs"][i]["data"] = [1.0] * 5


def _twice(request: Request, i: int) -> None:
    request["inputs"].append(copy.deepcopy(request["inputs"][i]))


def _missing(request: Request, i: int) -> None:
    request["inputs"][i]["missing"] = True


def _unknown(request: Request, i: int) -> None:
    request["inputs"][i]["name"] = f"STRANGE{i}"


def _surplus(request: Request, i: int) -> None:
    request["inputs"].append({"name": "SURPLUS", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]})


def _output(request: Request, i: int) -> None:
    request["outputs"] = [{"name": f"STRANGE{i}"}]


FAULTS: list[Fault] = [
    _datatype, _shape, _rank, _no_shape, _batch, _few, _many, _twice, _missing, _unknown, _surplus, _output,
]  # fmt: skip


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    repository = Repository(tmp_path_factory.mktemp("faults") / "models")
    repository.identity("batched", max_batch_size=4, dims=(2,), tensors=TENSORS)
    repository.identity("plain", dims=(2,), tensors=TENSORS)
    made = [kind(repository.path) for kind in KINDS.values()]
    with made[0], made[1]:
        yield made


def _request(model: str, *faults: tuple[Fault, int]) -> Request:
    shape = SHAPES[model]
    inputs = [
        {"name": f"INPUT{i}", "datatype": "FP32", "shape": list(shape), "data": [1.0, 2.0]} for i in range(TENSORS)
    ]
    request: Request = {"inputs": inputs}
    for fault, i in faults:
        fault(request, i)
    request["inputs"] = [each for each in request["inputs"] if not each.pop("missing", False)]
    return request


def _typed(model: str, request: Request) -> pb.ModelInferRequest:
    message = pb.ModelInferRequest(model_name=model)
    for each in request["inputs"]:
        tensor = message.inputs.add(name=each["name"], datatype=each["datatype"], shape=each["shape"])
        if each["datatype"] == "FP32":
            tensor.contents.fp32_contents.extend(each["data"])
        else:
            tensor.contents.int_contents.extend(int(value) for value in each["data"])
    for each in request.get("outputs", []):
        message.outputs.add(name=each["name"])
    return message


def _questions(model: str, first: Fault) -> Iterator[Question]:
    for second in FAULTS:
        for places in ((0, 1), (1, 0), (0, 2), (1, 1)):
            request = _request(model, (first, places[0]), (second, places[1]))
            name = f"{model}: {first.__name__} at {places[0]}, {second.__name__} at {places[1]}"
            yield Http(name, "POST", f"/v2/models/{model}/infer", json.dumps(request).encode())
            yield Grpc(f"{name} (gRPC)", "ModelInfer", _typed(model, request), pb.ModelInferResponse)


@pytest.mark.reference
@pytest.mark.parametrize("first", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("model", SHAPES)
def test_the_same_fault_is_named(servers: list[Server], model: str, first: Fault) -> None:
    for question in _questions(model, first):
        assert not compare(question, *servers), question.name
