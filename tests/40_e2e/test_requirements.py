"""What the specification asks of repositories and configurations and no other test is about."""

import json
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import witness
from harness import metrics, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import FLAG, KINDS, Nereid, Server
from models import onnx_models
from onnx import helper
from tritonclient.grpc import model_config_pb2, service_pb2
from witness import Board, backend, board

pytestmark = pytest.mark.onnx  # most of them look at a model of the runtime

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
QUIET = {"exit-on-error": "false", "strict-readiness": "false"}
EXPLICIT = QUIET | {"model-control-mode": "explicit"}
CPU = "instance_group { count: 1 kind: KIND_CPU }\n"


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> type[Server]:
    return KINDS[request.param]


def ready(server: Server, model: str) -> bool:
    return rawhttp.get(server.http, f"/v2/models/{model}/ready").status == 200


def config(server: Server, model: str) -> dict[str, Any]:
    return rawhttp.get(server.http, f"/v2/models/{model}/config").json()


def grpc_config(server: Server, model: str) -> model_config_pb2.ModelConfig:
    """As a client reads it that was made from the public schema."""
    with rawgrpc.Channel(server.grpc) as channel:
        answer = channel.call("ModelConfig", service_pb2.ModelConfigRequest(name=model))
    return answer.parse(service_pb2.ModelConfigResponse).config


def body_of(inputs: dict[str, np.ndarray], datatype: str = "FP32", **more: Any) -> bytes:
    tensors = [{"name": name, "datatype": datatype, "shape": list(array.shape), "data": array.tolist()} for name, array in inputs.items()]
    return json.dumps({"inputs": tensors} | more).encode()


def infer(server: Server, model: str, inputs: dict[str, np.ndarray], datatype: str = "FP32") -> dict[str, Any]:
    got = rawhttp.post(server.http, f"/v2/models/{model}/infer", body_of(inputs, datatype))
    assert got.status == 200, got.body
    return got.json()


def reason(server: Server, model: str) -> str:
    rows = rawhttp.post(server.http, "/v2/repository/index", b"").json()
    return next(row.get("reason", "") for row in rows if row["name"] == model)


def test_a_repository_may_be_named_by_any_path(kind: type[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MR-01, MR-03, MR-04, MR-06: absolute; a relative one counts from where the server was started."""
    Repository(tmp_path / "some" / "models").identity("one")
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "some" / "models", Path("some/models"), Path("./some/../some/models/")):
        with kind(path) as server:
            assert ready(server, "one")


def test_the_layout_of_a_repository(kind: type[Server], tmp_path: Path) -> None:
    """MR-13, MR-17, MR-20, MR-21, MR-22, MR-28, MR-32, MR-55, MR-56, MR-59, MC-01, MC-03: with and without configuration; no
    version and no definition are errors of that model alone."""
    repository = Repository(tmp_path / "models")
    given = 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n' + CPU
    for name, text in (("given", given), ("generated", None)):
        onnx_models.save(onnx_models.add_sub(), repository.model(name, text))
    onnx_models.save_with_external_data(onnx_models.dense(), repository.model("directory", given))
    repository.identity("custom")
    repository.model("no_definition", given)
    shutil.rmtree(repository.model("no_version", given) / "1")
    repository.model("no_number", given, versions=("one", "01"))
    with kind(repository.path, QUIET) as server:
        for name in ("given", "generated", "directory", "custom"):
            assert ready(server, name), name
        for name in ("no_definition", "no_version", "no_number"):
            assert not ready(server, name)
        a, b = np.ones((2, 4), np.float32), np.full((2, 4), 2, np.float32)
        for name in ("given", "generated"):
            outputs = {one["name"]: one["data"] for one in infer(server, name, {"a": a, "b": b})["outputs"]}
            assert outputs == {"sum": [3.0] * 8, "difference": [-1.0] * 8}
        assert {one["name"] for one in config(server, "generated")["input"]} == {"a", "b"}


def test_operators_that_the_runtime_lacks(kind: type[Server], tmp_path: Path) -> None:
    """MR-50: an error of that model; the server goes on, on the runtime's default provider."""
    repository = Repository(tmp_path / "models")
    built = onnx_models.add_sub()
    onnx_models.save(built, repository.model("good", None))
    built.opset_import[0].version = 9999
    onnx_models.save(built, repository.model("opset", None))
    unknown = onnx_models.model([helper.make_node("NoSuchOperator", ["x"], ["y"])], [("x", "FP32", [2])], [("y", "FP32", [2])], check=False)
    onnx_models.save(unknown, repository.model("operator", None))
    (repository.model("garbage", None) / "1" / "model.onnx").write_bytes(os.urandom(4096))
    with kind(repository.path, QUIET) as server:
        for name, words in (("opset", "opset"), ("operator", "NoSuchOperator"), ("garbage", "Protobuf parsing failed")):
            assert not ready(server, name)
            assert words in reason(server, name)
        infer(server, "good", {name: np.ones((1, 4), np.float32) for name in ("a", "b")})


def test_a_partial_configuration_is_completed(kind: type[Server], tmp_path: Path) -> None:
    """MR-16, MC-45, MC-46: what the model does not tell comes from the file, the rest from the model."""
    repository = Repository(tmp_path / "models")
    text = 'backend: "onnxruntime"\nmax_batch_size: 7\ndynamic_batching { max_queue_delay_microseconds: 5 }\nversion_policy { all { } }\n'
    folder = repository.model("partial", text + CPU)
    for version in (1, 3):
        onnx_models.save(onnx_models.add_sub(), folder, version)
    with kind(repository.path) as server:
        found = config(server, "partial")
        assert [one["name"] for one in found["output"]] == ["sum", "difference"]
        assert [one["dims"] for one in found["input"]] == [[4], [4]]
        assert [one["label_filename"] for one in found["output"]] == ["", ""]
        assert found["dynamic_batching"]["max_queue_delay_microseconds"] == 5
        assert found["max_batch_size"] == 7
        assert rawhttp.get(server.http, "/v2/models/partial").json()["versions"] == ["1", "3"]


STRICT = [
    {"strict-model-config": "true"}, {"disable-auto-complete-config": FLAG},
    {"disable-auto-complete-config": FLAG, "strict-model-config": "false"},
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"strict-model-config": "false"}, *STRICT], ids=" ".join)
def test_what_is_left_out_is_completed_or_not(kind: type[Server], tmp_path: Path, options: dict[str, str | list[str]]) -> None:
    """MC-35, MC-36, MC-39: without a configuration, or with one that leaves out what only the model can tell, nothing is served where
    completing is switched off, by either option. The backend is found by the file in both cases."""
    repository = Repository(tmp_path / "models")
    tensors = "".join(f'{way} {{ name: "{name}" data_type: TYPE_FP32 dims: [ 4 ] }}\n' for way, names in ADD_SUB.items() for name in names)
    given = {"whole": f'backend: "onnxruntime"\n{tensors}', "no_backend": tensors, "no_tensors": 'backend: "onnxruntime"\n'}
    for name, text in given.items():
        onnx_models.save(onnx_models.add_sub(), repository.model(name, f"max_batch_size: 4\n{text}{CPU}"))
    onnx_models.save(onnx_models.add_sub(), repository.model("no_configuration", None))
    served = {"whole", "no_backend"} if options in STRICT else {"whole", "no_backend", "no_tensors", "no_configuration"}
    with kind(repository.path, QUIET | options) as server:
        assert {name for name in (*given, "no_configuration") if ready(server, name)} == served
        told = "false" if options in STRICT else "true"
        assert set(re.findall(r'"auto-complete-config":"(\w+)"', server.process.log())) == {told}


ADD_SUB = {"input": ("a", "b"), "output": ("sum", "difference")}


@pytest.mark.parametrize("datatype", sorted(set(onnx_models.ELEMENT) - {"BF16"}))
def test_names_of_datatypes(onnx_types: Server, datatype: str) -> None:
    """MC-61, MC-62, PB-31, PB-42: each type of ONNX has one of the configuration."""
    found = config(onnx_types, f"type_{datatype.lower()}")
    wanted = "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"
    assert found["input"][0]["data_type"] == found["output"][0]["data_type"] == wanted


@pytest.fixture(scope="module", params=BOTH)
def onnx_types(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    repository = Repository(tmp_path_factory.mktemp("types") / "models")
    for datatype in onnx_models.ELEMENT:
        if datatype != "BF16":
            onnx_models.save(onnx_models.identity(datatype, ["n", "m"]), repository.model(f"type_{datatype.lower()}", None))
    with KINDS[request.param](repository.path) as server:
        yield server


RESHAPED = """\
backend: "identity"
max_batch_size: {batch}
input {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] reshape: {{ shape: [ {shape} ] }} }}
output {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] reshape: {{ shape: [ {shape} ] }} }}
"""


def test_reshape_of_outputs(kind: type[Server], tmp_path: Path) -> None:
    """MC-65, MC-69, PB-24, PB-34, PB-44: the answer has the shape of dims, whatever the model made."""
    repository = Repository(tmp_path / "models")
    repository.model("empty", RESHAPED.format(batch=4, shape="") + CPU)
    repository.model("longer", RESHAPED.format(batch=0, shape="1, 1, 1") + CPU)
    with kind(repository.path) as server:
        assert infer(server, "empty", {"INPUT0": np.ones((3, 1), np.float32)})["outputs"][0]["shape"] == [3, 1]
        assert infer(server, "longer", {"INPUT0": np.ones(1, np.float32)})["outputs"][0]["shape"] == [1]


def test_versions_come_and_go(kind: type[Server], tmp_path: Path) -> None:
    """MR-24, MC-82: a directory more or less changes which version answers later requests."""
    folder = Repository(tmp_path / "models").identity("echo")
    with kind(tmp_path / "models", EXPLICIT | {"load-model": "echo"}) as server:
        def answers() -> str:
            return infer(server, "echo", {"INPUT0": np.ones(1, np.float32)})["model_version"]

        assert answers() == "1"
        (folder / "10").mkdir()
        (folder / "9").mkdir()
        assert rawhttp.post(server.http, "/v2/repository/models/echo/load", b"").status == 200
        assert answers() == "10"
        shutil.rmtree(folder / "10")
        assert rawhttp.post(server.http, "/v2/repository/models/echo/load", b"").status == 200
        assert answers() == "9"


def test_instances_run_at_the_same_time(tmp_path: Path) -> None:
    """MC-85, MC-90, MC-91, MC-95, PB-04, PB-07, PB-10, PB-11, PB-16: as many as there are; their names come from the group's."""
    repository = Repository(tmp_path / "models")
    delay = "parameters { key: 'execute_delay_ms' value { string_value: '200' } }\n"
    repository.identity("slow", extra=delay + "instance_group [ { name: 'mine' count: 2 kind: KIND_CPU }, { count: 1 kind: KIND_CPU } ]")
    with Nereid(repository.path) as server:
        stop = threading.Event()

        def client() -> None:
            while not stop.is_set():
                infer(server, "slow", {"INPUT0": np.ones(1, np.float32)})

        def busy() -> bool:
            return metrics.scrape(server.metrics)["nereid_instances_busy"].value(model="slow") == 3

        threads = [threading.Thread(target=client) for _ in range(6)]
        for thread in threads:
            thread.start()
        try:
            server.process.wait_until(busy, 30)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert [group["name"] for group in config(server, "slow")["instance_group"]] == ["mine", "slow_1"]


def test_a_batch_is_one_execution(kind: type[Server], tmp_path: Path) -> None:
    """MC-92, MC-93, PB-169, PB-170: all rows of a request's batch run together; answers have the batch dimension."""
    Repository(tmp_path / "models").identity("rows", dims=(2,), max_batch_size=8, extra=CPU)
    with kind(tmp_path / "models") as server:
        assert infer(server, "rows", {"INPUT0": np.ones((5, 2), np.float32)})["outputs"][0]["shape"] == [5, 2]
        stats = server.statistics("rows")
        assert (stats["inference_count"], stats["execution_count"]) == (5, 1)
        assert [batch["batch_size"] for batch in stats["batch_stats"]] == [5]


EVERYTHING = """\
name: "everything"
backend: "identity"
max_batch_size: 8
version_policy: { specific { versions: [ 1 ] } }
input [
  { name: "INPUT0" data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 2, 2, 3 ] },
  { name: "INPUT1" data_type: TYPE_INT32 format: FORMAT_NCHW dims: [ 3, 2, 2 ] },
  { name: "INPUT2" data_type: TYPE_INT64 dims: [ -1 ] allow_ragged_batch: true optional: true }
]
output [
  { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2, 2, 3 ] label_filename: "labels.txt" },
  { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 3, 2, 2 ] },
  { name: "OUTPUT2" data_type: TYPE_INT64 dims: [ -1 ] }
]
optimization {
  graph { level: 1 }
  priority: PRIORITY_MAX
  cuda { graphs: true }
  execution_accelerators {
    gpu_execution_accelerator [ { name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } } ]
    cpu_execution_accelerator [ { name: "openvino" } ]
  }
  input_pinned_memory { enable: false }
}
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  priority_levels: 2
  default_priority_level: 2
  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 7 allow_timeout_override: true max_queue_size: 9 }
  priority_queue_policy { key: 1 value { max_queue_size: 3 } }
}
instance_group [ { name: "group" count: 2 kind: KIND_CPU } ]
default_model_filename: "other.bin"
cc_model_filenames { key: "7.5" value: "turing.bin" }
metric_tags { key: "team" value: "vision" }
parameters { key: "mine" value: { string_value: "yours" } }
model_warmup { name: "w" batch_size: 1 inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 2, 2, 3 ] zero_data: true } }
  inputs { key: "INPUT1" value { data_type: TYPE_INT32 dims: [ 3, 2, 2 ] random_data: true } }
  inputs { key: "INPUT2" value { data_type: TYPE_INT64 dims: [ 1 ] zero_data: true } } }
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """EVERYTHING, as ours and as the reference shows it."""
    found = []
    for kind in KINDS.values():
        repository = Repository(tmp_path_factory.mktemp(kind.kind) / "models")
        (repository.model("everything", EVERYTHING) / "labels.txt").write_text("a\nb\n")
        with kind(repository.path) as server:
            found.append(config(server, "everything"))
            assert rawhttp.get(server.http, "/v2/models/everything").json()["versions"] == ["1"]
    return found


@pytest.mark.reference
def test_every_field_is_read_and_shown(shown: list[dict[str, Any]]) -> None:
    """MC-02; reads PB-180: as the reference shows it, and one by one as written."""
    ours = shown[0]
    assert ours == shown[1]
    assert ours["input"][2]["allow_ragged_batch"]
    assert ours["output"][0]["label_filename"] == "labels.txt"
    assert ours["cc_model_filenames"] == {"7.5": "turing.bin"}
    assert ours["metric_tags"] == {"team": "vision"}
    assert ours["parameters"] == {"mine": {"string_value": "yours"}}
    assert ours["dynamic_batching"]["default_queue_policy"]["timeout_action"] == "DELAY"
    assert ours["model_warmup"][0]["name"] == "w"


@pytest.mark.reference
def test_every_optimisation_is_read_and_shown(shown: list[dict[str, Any]]) -> None:
    """PB-62; reads PB-56, PB-59, PB-61, PB-67, PB-68, PB-79, PB-83, PB-84."""
    optimization = shown[0]["optimization"]
    assert optimization == shown[1]["optimization"]
    assert optimization["graph"]["level"] == 1
    assert optimization["priority"] == "PRIORITY_MAX"
    assert optimization["cuda"]["graphs"]
    assert optimization["execution_accelerators"]["gpu_execution_accelerator"][0]["parameters"] == {"precision_mode": "FP16"}
    assert optimization["execution_accelerators"]["cpu_execution_accelerator"][0]["name"] == "openvino"
    assert (optimization["input_pinned_memory"]["enable"], optimization["output_pinned_memory"]["enable"]) == (False, True)


FORMATS = {  # as written -> as shown, its number, dims of the tensor
    "": ("FORMAT_NONE", 0, [4, 4]),
    "format: FORMAT_NONE": ("FORMAT_NONE", 0, [4]),
    "format: FORMAT_NHWC": ("FORMAT_NHWC", 1, [4, 5, 3]),
    "format: FORMAT_NCHW": ("FORMAT_NCHW", 2, [3, 4, 5]),
    "format: 2": ("FORMAT_NCHW", 2, [3, 4, 5]),
}


def test_formats_of_images(kind: type[Server], tmp_path: Path) -> None:
    """PB-26, PB-27, PB-28: of three dimensions, and of four where the model takes batches; a tensor without a format has as many as it
    says."""
    repository = Repository(tmp_path / "models")
    models = {f"m{number}_{batch}": (row, batch) for number, row in enumerate(FORMATS) for batch in (0, 8)}
    for name, (row, batch) in models.items():
        tensor = f"data_type: TYPE_FP32 dims: {FORMATS[row][2]}"
        text = f'backend: "identity"\nmax_batch_size: {batch}\ninput {{ name: "INPUT0" {tensor} {row} }}\n'
        repository.model(name, text + f'output {{ name: "OUTPUT0" {tensor} }}\n{CPU}')
    with kind(repository.path) as server:
        for name, (row, batch) in models.items():
            word, number, dims = FORMATS[row]
            assert config(server, name)["input"][0]["format"] == word
            assert grpc_config(server, name).input[0].format == number
            for rows in ([], [2]):
                answer = rawhttp.post(server.http, f"/v2/models/{name}/infer", body_of({"INPUT0": np.ones([*rows, *dims], np.float32)}))
                assert answer.status == (200 if bool(rows) == bool(batch) else 400), (name, rows, answer)


TENSORS = """backend: "identity"
input {
  name: "INPUT0" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 2, 2 ] reshape { shape: [ 12 ] }
  is_shape_tensor: false allow_ragged_batch: true
}
output {
  name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 3, 2, 2 ] reshape { shape: [ 12 ] }
  label_filename: "labels.txt" is_shape_tensor: false
}
"""


def test_fields_of_tensors(kind: type[Server], tmp_path: Path) -> None:
    """PB-25, PB-41: a client that knows the public schema reads each of them, and they hold: requests have that name, type and shape, and
    classes those labels."""
    repository = Repository(tmp_path / "models")
    (repository.model("tensors", f"max_batch_size: 4\n{TENSORS}{CPU}") / "labels.txt").write_text("\n".join("abcdefghijkl") + "\n")
    tensor: dict[str, Any] = {"data_type": model_config_pb2.TYPE_FP32, "dims": [3, 2, 2], "reshape": {"shape": [12]}}
    wanted = (
        model_config_pb2.ModelInput(name="INPUT0", format=model_config_pb2.ModelInput.FORMAT_NCHW, allow_ragged_batch=True, **tensor),
        model_config_pb2.ModelOutput(name="OUTPUT0", label_filename="labels.txt", **tensor),
    )
    image = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    with kind(repository.path) as server:
        told = grpc_config(server, "tensors")
        assert (told.input[0], told.output[0]) == wanted
        assert infer(server, "tensors", {"INPUT0": image})["outputs"][0]["shape"] == [1, 3, 2, 2]
        classes = [{"name": "OUTPUT0", "parameters": {"classification": 1}}]
        answer = rawhttp.post(server.http, "/v2/models/tensors/infer", body_of({"INPUT0": image}, outputs=classes))
        assert answer.json()["outputs"][0]["data"] == ["11.000000:11:l"]
        for body in (body_of({"INPUT1": image}), body_of({"INPUT0": image[:, :2]}), body_of({"INPUT0": image.astype(np.int32)}, "INT32")):
            assert rawhttp.post(server.http, "/v2/models/tensors/infer", body).status == 400


def test_priorities_of_models(kind: type[Server], tmp_path: Path) -> None:
    """reads PB-60: no model is preferred, since that is for TensorRT alone."""
    names = {"PRIORITY_DEFAULT": 0, "PRIORITY_MAX": 1, "PRIORITY_MIN": 2}
    repository = Repository(tmp_path / "models")
    for name in names:
        repository.identity(name, extra=f"optimization {{ priority: {name} }}\n")
    with kind(repository.path) as server:
        for name, number in names.items():
            assert config(server, name)["optimization"]["priority"] == name
            assert grpc_config(server, name).optimization.priority == number


def test_what_may_be_left_out(kind: type[Server], tmp_path: Path) -> None:
    """MC-04, PB-32, PB-82, X-12; reads MC-81, PB-60, PB-81, PB-83, PB-84, PB-172: name, largest batch and every policy have
    defaults."""
    repository = Repository(tmp_path / "models")
    repository.model("short", 'backend: "identity"\ninput { name: "INPUT0" data_type: TYPE_FP32 dims: 1 }\noutput { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }\n')
    with kind(repository.path) as server:
        found = config(server, "short")
        assert (found["name"], found["max_batch_size"]) == ("short", 0)
        assert found["optimization"]["input_pinned_memory"]["enable"]
        assert found["optimization"]["priority"] == "PRIORITY_DEFAULT"
        assert found["version_policy"] == {"latest": {"num_versions": 1}}
        assert "dynamic_batching" not in found


@pytest.mark.parametrize("level", ["", "-1", "0", "1", "2"])
def test_levels_of_graph_optimisation(tmp_path: Path, level: str) -> None:
    """reads PB-54, PB-55, PB-56, PB-58, X-29: each is taken, and the answers are the same."""
    repository = Repository(tmp_path / "models")
    text = 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n'
    onnx_models.save(onnx_models.add_sub(), repository.model("sum", text + (f"optimization {{ graph {{ level: {level} }} }}\n" if level else "")))
    with Nereid(repository.path) as server:
        outputs = infer(server, "sum", {name: np.ones((1, 4), np.float32) for name in ("a", "b")})["outputs"]
        assert outputs[0]["data"] == [2.0] * 4


def test_tags_of_metrics(tmp_path: Path) -> None:
    """PB-181, X-16: on every sample of the model."""
    repository = Repository(tmp_path / "models")
    repository.identity("tagged", extra="metric_tags { key: 'team' value: 'vision' }\n")
    with Nereid(repository.path) as server:
        infer(server, "tagged", {"INPUT0": np.ones(1, np.float32)})
        page = rawhttp.get(server.metrics, "/metrics").body.decode()
        mine = [line for line in page.splitlines() if line.startswith("nv_inference_request_success{") and "tagged" in line]
        assert mine
        assert all('_team="vision"' in line for line in mine)


def test_index_asks_for_nothing(kind: type[Server], tmp_path: Path) -> None:
    """RX-01, RX-04, RX-11, RX-12, X-05, X-06: no body, an empty object and ready: false are the same question."""
    Repository(tmp_path / "models").identity("one")
    with kind(tmp_path / "models", EXPLICIT) as server:
        told = [rawhttp.post(server.http, "/v2/repository/index", body).json() for body in (b"", b"{}", b'{"ready":false}')]
        assert told == [[{"name": "one"}]] * 3
        assert rawhttp.post(server.http, "/v2/repository/index", b'{"ready":true}').json() == []


def test_instances_that_the_backend_places(kind: type[Server], tmp_path: Path) -> None:
    """reads PB-08, PB-09: KIND_MODEL leaves it to the backend; any backend may have it, as in the reference."""
    repository = Repository(tmp_path / "models")
    repository.identity("placed", extra="instance_group { count: 2 kind: KIND_MODEL }\n")
    with kind(repository.path) as server:
        infer(server, "placed", {"INPUT0": np.ones(1, np.float32)})
        group = config(server, "placed")["instance_group"][0]
        assert (group["kind"], group["count"], group["gpus"]) == ("KIND_MODEL", 2, [])


def test_only_one_of_several(kind: type[Server], tmp_path: Path) -> None:
    """PB-48, PB-173: two policies, or two schedulers, are an error."""
    repository = Repository(tmp_path / "models")
    repository.identity("policies", extra="version_policy { all { } latest { num_versions: 1 } }\n")
    repository.identity("schedulers", max_batch_size=4, extra="dynamic_batching { } sequence_batching { }\n")
    repository.identity("policy", extra="version_policy { latest { num_versions: 1 } }\n")
    repository.identity("scheduler", max_batch_size=4, extra="sequence_batching { }\n")
    with kind(repository.path, QUIET) as server:
        assert {name for name in ("policies", "schedulers", "policy", "scheduler") if ready(server, name)} == {"policy", "scheduler"}


def test_others_load_while_one_warms_up(board: Board, backend: Path) -> None:
    """MC-137: nothing but the model itself waits for its samples."""
    sample = "model_warmup { name: 'w' batch_size: 1 inputs { key: 'INPUT0' value { data_type: TYPE_INT32 dims: 1 zero_data: true } } }\n"
    board.model("slow", extra=sample, gated=True)
    board.model("quick", extra=sample)
    with Nereid(board.repository.path, EXPLICIT | {"backend-directory": str(backend)}) as server:
        loading = threading.Thread(target=rawhttp.post, args=(server.http, "/v2/repository/models/slow/load", b""))
        loading.start()
        server.process.wait_until(lambda: board.executions() == 1, 30)
        assert rawhttp.post(server.http, "/v2/repository/models/quick/load", b"").status == 200
        witness.ask(server, "quick")
        assert not ready(server, "slow")
        board.open_gate()
        loading.join()
        assert ready(server, "slow")
