"""The document that describes the HTTP interface: it is valid, names every route, and what is answered is as it says."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import rawhttp, regions
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid
from jsonschema import Draft202012Validator, ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator

Json = dict[str, Any]
REPOSITORY = "models"  # a client names it by its last folder
TENSOR = {"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1, 2.5]}
RICH = """
    dynamic_batching { preferred_batch_size: [ 2, 4 ] priority_levels: 2 default_priority_level: 1
      priority_queue_policy { key: 1 value { max_queue_size: 9 timeout_action: DELAY } } }
    instance_group { count: 2 kind: KIND_CPU }
    parameters { key: "a" value { string_value: "b" } }
    model_warmup { name: "w" batch_size: 1 inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }
    version_policy { latest { num_versions: 1 } }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nereid]:
    made = Repository(tmp_path_factory.mktemp("described") / REPOSITORY)
    made.identity("echo", dims=(2,))
    made.identity("words", "BYTES")
    made.identity("rich", dims=(2,), max_batch_size=8, extra=RICH)
    traces = ["rate=1000", f"triton,file={tmp_path_factory.mktemp('traces')}/file"]
    options = {"model-control-mode": "explicit", "load-model": "*", "allow-client-shm": "true", "trace-config": traces}
    with Nereid(made.path, options) as running:
        yield running


@pytest.fixture(scope="module")
def document(server: Nereid) -> Json:
    answer = rawhttp.get(server.http, "/v2/openapi.json")
    assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
    found: Json = answer.json()
    return found


def strict(node: Any) -> Any:
    """Objects have no members but those that are named: else a member that the document forgets would not be seen."""
    if isinstance(node, dict):
        if "properties" in node and "additionalProperties" not in node:
            node["additionalProperties"] = False
        for value in node.values():
            strict(value)
    elif isinstance(node, list):
        for value in node:
            strict(value)
    return node


class Described:
    def __init__(self, document: Json):
        self.components = strict(copy.deepcopy(document["components"]))
        self.operations: dict[str, tuple[str, str, Json]] = {}
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if method != "parameters":
                    assert operation["operationId"] not in self.operations
                    self.operations[operation["operationId"]] = (method.upper(), path, operation)

    def at(self, reference: Json) -> Json:
        _, _, kind, name = reference["$ref"].split("/")
        found: Json = self.components[kind][name]
        return found

    def check(self, schema: Json, value: Any) -> None:
        Draft202012Validator({"components": self.components, **schema}).validate(value)

    def check_answer(self, operation: Json, answer: rawhttp.Answer) -> None:
        responses = operation["responses"]
        response = self.at(responses.get(str(answer.status), responses["default"]))
        said = (answer.header("Content-Type") or "").split(";")[0]
        if not answer.body:
            assert "content" not in response
            return
        media = response["content"][said]
        if said == "application/json":
            self.check(media["schema"], answer.json())
        if (retry := answer.header("Retry-After")) is not None:
            assert int(retry) >= 1 and "Retry-After" in response["headers"]


@pytest.fixture(scope="module")
def described(document: Json) -> Described:
    return Described(document)


def test_it_is_valid(document: Json) -> None:
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_nothing_is_left_over(document: Json) -> None:
    """Every component is used, and every reference leads somewhere."""
    text = json.dumps(document)
    for kind, entries in document["components"].items():
        for name in entries:
            assert kind == "securitySchemes" or f'"#/components/{kind}/{name}"' in text, name


BODIES: dict[str, Any] = {
    "infer": {"id": "a", "inputs": [TENSOR], "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 1}}], "parameters": {"timeout": 5000000}},
    "generate": {"INPUT0": [1, 2], "parameters": {"x": 1}},
    "generateStream": {"INPUT0": [1, 2]},
    "index": {"ready": True},
    "indexOfRepository": {},
    "load": {"parameters": {"config": '{"backend": "identity"}'}},
    "loadFromRepository": {},
    "unload": {"parameters": {"unload_dependents": False}},
    "unloadOfRepository": {},
    "changeTraceSetting": {"trace_level": ["TIMESTAMPS"], "trace_rate": "7"},
    "changeModelTraceSetting": {"trace_count": "5", "trace_rate": None},
    "changeLogging": {"log_verbose_level": 0, "log_info": True},
    "registerSystemRegion": {"offset": 0, "byte_size": 64},  # and its key
    "registerCudaRegion": {"raw_handle": {"b64": "AAAA"}, "device_id": 0, "byte_size": 64},
}


def ask(server: Nereid, described: Described, operation: str, model: str, body: Any) -> rawhttp.Answer:
    method, path, _ = described.operations[operation]
    parts = {"model": model, "version": "1", "repository": REPOSITORY, "region": "r"}
    data = json.dumps(body).encode() if body is not None else b"" if method == "POST" else None
    return rawhttp.request(HOST, server.http_port, method, path.format(**parts), data)


def body_of(operation: str, memory: regions.Memory) -> Any:
    body = BODIES.get(operation.removesuffix("OfVersion"))
    return body | {"key": memory.key} if operation == "registerSystemRegion" else body


def test_every_operation(server: Nereid, described: Described) -> None:
    """Asked as the document says, answered as it says. What undoes something comes last."""
    refused = {}
    with regions.Memory(64) as memory:
        for operation in sorted(described.operations, key=lambda name: 2 if name.startswith("un") else name == "systemRegion"):
            said = described.operations[operation][2]
            body = body_of(operation, memory)
            if "requestBody" in said:
                described.check(described.at(said["requestBody"])["content"]["application/json"]["schema"], body)
            answer = ask(server, described, operation, "echo", body)
            described.check_answer(said, answer)
            if answer.status != 200:
                refused[operation] = answer.json()["error"]
        assert list(refused) == ["cudaRegion", "registerCudaRegion"], refused  # there is no device here
    assert rawhttp.post(server.http, "/v2/repository/models/echo/load", b"").status == 200


def test_answers_with_much_in_them(server: Nereid, described: Described) -> None:
    """A region that is there, a configuration, counts, strings that are no UTF-8."""
    with regions.Memory(64) as memory:
        assert ask(server, described, "registerSystemRegion", "", body_of("registerSystemRegion", memory)).status == 200
        for operation in ("systemRegions", "systemRegion"):
            answer = ask(server, described, operation, "", None)
            assert len(answer.json()) == 1
            described.check_answer(described.operations[operation][2], answer)
        assert ask(server, described, "unregisterSystemRegion", "", None).status == 200
    rows = {"inputs": [TENSOR | {"shape": [1, 2]}]}
    assert ask(server, described, "infer", "rich", rows).status == 200
    for operation in ("modelConfig", "modelMetadata", "modelStatistics", "statistics"):
        answer = ask(server, described, operation, "rich", None)
        assert answer.status == 200
        described.check_answer(described.operations[operation][2], answer)
    strings = {
        "inputs": [{"name": "INPUT0", "datatype": "BYTES", "shape": [2], "data": ["a", {"b64": "/w=="}]}],
        "outputs": [{"name": "OUTPUT0", "parameters": {"b64": True}}],
    }
    described.check({"$ref": "#/components/schemas/InferRequest"}, strings)
    answer = ask(server, described, "infer", "words", strings)
    assert answer.json()["outputs"][0]["data"] == ["a", {"b64": "/w=="}]
    described.check_answer(described.operations["infer"][2], answer)
    binary = {"inputs": [TENSOR], "parameters": {"binary_data_output": True}}
    answer = ask(server, described, "infer", "echo", binary)
    assert answer.header("Content-Type") == "application/octet-stream"
    described.check_answer(described.operations["infer"][2], answer)
    length = int(answer.header("Inference-Header-Content-Length") or 0)
    described.check({"$ref": "#/components/schemas/InferResponse"}, json.loads(answer.body[:length]))


@pytest.mark.parametrize("body", [b"{", b"[]", b"null"])
def test_errors(server: Nereid, described: Described, body: bytes) -> None:
    """Whatever is wrong is said in one form; over a model that is not there, too."""
    for operation, (method, path, said) in described.operations.items():
        parts = {"model": "nobody", "version": "9", "repository": "none", "region": "none"}
        answer = rawhttp.request(HOST, server.http_port, method, path.format(**parts), body if method == "POST" else None)
        described.check_answer(said, answer)
        assert (answer.status == 200) != (b'{"error":"' in answer.body), (operation, answer)


def test_the_check_sees_what_is_missing(described: Described) -> None:
    """Else it would prove nothing."""
    for value in ({"name": "a", "more": 1}, {"name": 1}, [], {"versions": [1]}):
        with pytest.raises(ValidationError):
            described.check({"$ref": "#/components/schemas/ModelMetadataResponse"}, value)


@pytest.mark.reference
def test_the_reference_has_none(tmp_path: Path) -> None:
    """404, as for every path that it does not know."""
    made = Repository(tmp_path / "models")
    made.identity("echo")
    with KINDS["reference"](made.path) as server:
        assert rawhttp.get(server.http, "/v2/openapi.json").status == 404
