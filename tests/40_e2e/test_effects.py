"""Settings and parameters do what the specification says of them, seen from outside: not that they are read, but what follows."""

import base64
import json
import re
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import witness
from conftest import BOTH
from harness import metrics, rawgrpc, rawhttp, together
from harness.ensembles import chain
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from models import onnx_models
from onnx import helper
from tritonclient.grpc import service_pb2 as pb
from witness import Board, backend, board

pytestmark = pytest.mark.onnx

__all__ = ["backend", "board"]  # fixtures
EXPLICIT: dict[str, str | list[str]] = {"model-control-mode": "explicit"}
QUIET: dict[str, str | list[str]] = {"exit-on-error": "false", "strict-readiness": "false"}


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> type[Server]:
    return KINDS[request.param]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "models")


def get(server: Server, path: str) -> Any:
    return rawhttp.get(server.http, path).json()


def ready(server: Server, model: str) -> bool:
    return rawhttp.get(server.http, f"/v2/models/{model}/ready").status == 200


def load(server: Server, model: str, **parameters: str) -> rawhttp.Answer:
    body = json.dumps({"parameters": parameters}).encode() if parameters else b""
    return rawhttp.post(server.http, f"/v2/repository/models/{model}/load", body)


def body_of(inputs: dict[str, np.ndarray], datatype: str = "FP32", **more: Any) -> bytes:
    tensors = [{"name": name, "datatype": datatype, "shape": list(array.shape), "data": array.tolist()} for name, array in inputs.items()]
    return json.dumps({"inputs": tensors} | more).encode()


def infer(server: Server, model: str, inputs: dict[str, np.ndarray], datatype: str = "FP32", **more: Any) -> rawhttp.Answer:
    return rawhttp.post(server.http, f"/v2/models/{model}/infer", body_of(inputs, datatype, **more))


def outputs(answer: rawhttp.Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    return {output["name"]: output["data"] for output in answer.json()["outputs"]}


def batches(server: Server, model: str) -> dict[int, int]:
    """How often batches of each size were executed."""
    return {batch["batch_size"]: batch["compute_infer"]["count"] for batch in server.statistics(model)["batch_stats"]}


def test_each_output_has_the_labels_that_it_names(kind: type[Server], repository: Repository) -> None:
    """MR-13, MR-18, MR-19, PB-46: and none where it names none, whatever lies beside it."""
    folder = repository.identity("classes", dims=(2,), tensors=3)
    text = (folder / "config.pbtxt").read_text()
    for number, name in ((0, "animals"), (1, "fruits")):
        text = text.replace(f'"OUTPUT{number}"', f'"OUTPUT{number}" label_filename: "{name}.txt"')
    (folder / "config.pbtxt").write_text(text)
    for name, lines in (("animals", "cat\ndog\n"), ("fruits", "plum\npear\n"), ("labels", "no\none\n")):
        (folder / f"{name}.txt").write_text(lines)
    with kind(repository.path) as server:
        wanted = [{"name": f"OUTPUT{i}", "parameters": {"classification": 1}} for i in range(3)]
        found = outputs(infer(server, "classes", {f"INPUT{i}": np.array([1, 3], np.float32) for i in range(3)}, outputs=wanted))
        assert [found[f"OUTPUT{i}"][0].split(":", 1)[1] for i in range(3)] == ["1:dog", "1:pear", "1"]


def test_a_given_configuration_is_a_change(kind: type[Server], repository: Repository) -> None:
    """RX-31: the model is loaded anew, though no file is another one; a configuration that says the same changes nothing in both."""
    repository.identity("one")
    with kind(repository.path, EXPLICIT) as server:
        assert load(server, "one").status == 200

        def asked() -> int:
            outputs(infer(server, "one", {"INPUT0": np.ones(1, np.float32)}))
            return server.statistics("one")["inference_count"]

        assert [asked(), asked()] == [1, 2]
        assert load(server, "one").status == 200
        assert asked() == 3, "nothing was changed"
        tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
        same = {"name": "one", "backend": "identity", "input": [{"name": "INPUT0"} | tensor], "output": [{"name": "OUTPUT0"} | tensor]}
        assert load(server, "one", config=json.dumps(same)).status == 200
        assert asked() == 4
        assert load(server, "one", config=json.dumps(same | {"parameters": {"a": {"string_value": "b"}}})).status == 200
        assert asked() == 1


def test_a_model_out_of_a_request(kind: type[Server], repository: Repository) -> None:
    """RX-27, RX-30, RX-34, RX-43, RX-44, X-07, X-08: the example of the specification in the names of ModelConfig, and a file for another version; word for word
    its configuration is an error."""
    name = "mymodel"
    onnx_models.save(onnx_models.add_sub(), repository.model(name, None))
    sent = onnx_models.identity("FP32", [1]).SerializeToString()
    tensor = {"data_type": "TYPE_FP32", "dims": [1]}
    config = {"name": name, "backend": "onnxruntime", "input": [{"name": "x"} | tensor], "output": [{"name": "y"} | tensor]}
    example = '{"name": "mymodel", "backend": "onnxruntime", "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [ 1 ]}]}'
    with kind(repository.path, EXPLICIT) as server:
        for version in ("1", "2"):
            files = {f"file:{version}/model.onnx": base64.b64encode(sent).decode()}
            assert load(server, name, config=json.dumps(config), **files).status == 200
            assert get(server, f"/v2/models/{name}")["versions"] == [version]
            answer = infer(server, name, {"x": np.array([7], np.float32)})
            assert (outputs(answer), answer.json()["model_version"]) == ({"y": [7.0]}, version)
        assert load(server, name, config=example, **files).status >= 400
        assert outputs(infer(server, name, {"x": np.array([8], np.float32)})) == {"y": [8.0]}


def test_unload_dependents_over_grpc(kind: type[Server], repository: Repository) -> None:
    """RX-78: the models that came along with an ensemble go with it, and stay without the parameter."""
    repository.identity("a")
    repository.model("two", chain("two", ["a", "a"]).config())
    with kind(repository.path, EXPLICIT) as server, rawgrpc.Channel(server.grpc) as channel:
        for dependents in (False, True):
            assert channel.call("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="two")).code == "OK"
            assert ready(server, "two") and ready(server, "a")
            request = pb.RepositoryModelUnloadRequest(model_name="two")
            request.parameters["unload_dependents"].bool_param = dependents
            assert channel.call("RepositoryModelUnload", request).code == "OK"
            server.process.wait_until(lambda: not ready(server, "two"), 60)
            server.process.wait_until(lambda gone=dependents: ready(server, "a") != gone, 60)


@pytest.mark.parametrize(("batch", "prefix"), [(8, [-1]), (0, [])])
def test_full_shapes(kind: type[Server], repository: Repository, batch: int, prefix: list[int]) -> None:
    """MC-24, MC-25, MC-26, MC-27, PB-168, PB-169, PB-170: the example of the specification, with batches and without."""
    rows = ["n"] if batch else []
    built = onnx_models.model(
        [helper.make_node("Slice", ["input0", "zero", "four", "last"], ["output0"])],
        [("input0", "FP32", [*rows, 16])], [("output0", "FP32", [*rows, 4])],
        {"zero": np.array([0]), "four": np.array([4]), "last": np.array([-1])},
    )
    text = f'name: "mymodel"\nplatform: "onnxruntime_onnx"\nmax_batch_size: {batch}\n'
    text += 'input [ { name: "input0" data_type: TYPE_FP32 dims: [ 16 ] } ]\noutput [ { name: "output0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
    onnx_models.save(built, repository.model("mymodel", text))
    with kind(repository.path) as server:
        told = get(server, "/v2/models/mymodel")
        assert [told[side][0]["shape"] for side in ("inputs", "outputs")] == [[*prefix, 16], [*prefix, 4]]
        for shape, good in (((16,), not batch), ((3, 16), bool(batch))):
            answer = infer(server, "mymodel", {"input0": np.ones(shape, np.float32)})
            assert answer.status == (200 if good else 400)
            if good:
                assert answer.json()["outputs"][0]["shape"] == [*shape[:-1], 4]


def test_shapes_narrower_than_the_models(kind: type[Server], repository: Repository) -> None:
    """MC-29, MC-30, MC-31: the model takes any size, its configuration one."""
    for name, dims in (("wide", "4, -1"), ("narrow", "4, 4")):
        text = f'platform: "onnxruntime_onnx"\ninput {{ name: "x" data_type: TYPE_FP32 dims: [ {dims} ] }}\n'
        text += 'output { name: "y" data_type: TYPE_FP32 dims: [ 4, -1 ] }\n'
        onnx_models.save(onnx_models.identity("FP32", [4, "m"]), repository.model(name, text))
    with kind(repository.path) as server:
        for shape, wide, narrow in (((4, 4), 200, 200), ((4, 5), 200, 400), ((4, 0), 200, 400), ((3, 4), 400, 400)):
            for model, status in (("wide", wide), ("narrow", narrow)):
                assert infer(server, model, {"x": np.ones(shape, np.float32)}).status == status, (model, shape)


@pytest.mark.parametrize("asked", ["", "false", "true"])
def test_who_is_strict_generates_nothing(kind: type[Server], repository: Repository, asked: str) -> None:
    """MC-35, X-14: a bare ONNX file is served unless only complete configurations may be."""
    onnx_models.save(onnx_models.add_sub(), repository.model("bare", None))
    repository.identity("complete")
    with kind(repository.path, QUIET | ({"strict-model-config": asked} if asked else {})) as server:
        assert ready(server, "complete")
        assert ready(server, "bare") == (asked != "true")


def test_what_was_generated_is_shown(kind: type[Server], repository: Repository) -> None:
    """MC-43, X-15: by the configuration, and its tensors by the metadata."""
    onnx_models.save(onnx_models.dense(), repository.model("bare", None))
    with kind(repository.path) as server:
        told, config = get(server, "/v2/models/bare"), get(server, "/v2/models/bare/config")
        assert told["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 16]}]
        assert told["outputs"] == [{"name": "logits", "datatype": "FP32", "shape": [-1, 8]}]
        assert [(config[side][0]["name"], config[side][0]["dims"]) for side in ("input", "output")] == [("x", [16]), ("logits", [8])]


def test_rows_without_a_shape_are_not_the_protocols(kind: type[Server], repository: Repository) -> None:
    """MC-68: what the model sees as [ batch ] is [ batch, 1 ] to a client, and nothing else."""
    onnx_models.save(onnx_models.one_per_row(), repository.model("rows", None))
    with kind(repository.path) as server:
        answer = infer(server, "rows", {"x": np.array([[1], [2], [3]], np.float32)})
        assert (outputs(answer), answer.json()["outputs"][0]["shape"]) == ({"y": [2.0, 4.0, 6.0]}, [3, 1])
        assert infer(server, "rows", {"x": np.array([1, 2, 3], np.float32)}).status == 400


@pytest.mark.parametrize("policy", ["all { }", "latest { num_versions: 2 }"])
def test_versions_come_and_go_under_every_policy(kind: type[Server], repository: Repository, policy: str) -> None:
    """MC-78, MC-79, MC-82, PB-50, PB-52: later requests are for the latest that there is."""
    folder = repository.identity("echo", extra=f"version_policy {{ {policy} }}\n")
    with kind(repository.path, EXPLICIT | {"load-model": "echo"}) as server:
        for there, latest in ((("1", "9", "10"), "10"), (("1", "9"), "9"), (("1",), "1")):
            for version in ("1", "9", "10"):
                (folder / version).mkdir(exist_ok=True) if version in there else (folder / version).rmdir() if (folder / version).exists() else None
            assert load(server, "echo").status == 200
            assert infer(server, "echo", {"INPUT0": np.ones(1, np.float32)}).json()["model_version"] == latest
            server.process.wait_for(
                lambda there=there: sorted(get(server, "/v2/models/echo")["versions"], key=int), list(there[-2:] if "latest" in policy else there)
            )


def test_sizes_of_batches_are_counted_and_logged(repository: Repository) -> None:
    """MC-107, MC-128: in sum by the counts, one by one by the log, for requests and for sequences."""
    slow = "parameters { key: 'execute_delay_ms' value { string_value: '20' } }\ninstance_group { count: 1 kind: KIND_CPU }\n"
    repository.identity("batches", dims=(1,), max_batch_size=8, extra=slow + "dynamic_batching { }\n")
    repository.identity("sequences", dims=(1,), max_batch_size=8, extra=slow + "sequence_batching { }\n")
    with Nereid(repository.path, {"log-verbose": "1"}) as server:
        for model in ("batches", "sequences"):
            bodies = [
                body_of({"INPUT0": np.ones((1, 1), np.float32)}, parameters={"sequence_id": i, "sequence_start": True, "sequence_end": True})
                for i in range(1, 21)
            ]
            assert {answer.status for answer in together.ask(server, f"/v2/models/{model}/infer", bodies)} == {200}
            page = metrics.scrape(server.metrics)
            requests, executions = (page[f"nv_inference_{name}"].value(model=model) for name in ("count", "exec_count"))
            told = re.findall(rf"model '{model}' instance {model}_0_0 executes (\d+) requests, a batch of (\d+)", server.process.log())
            sizes = [int(rows) for _, rows in told]
            assert (sum(int(number) for number, _ in told), len(sizes)) == (requests, executions) == (20, len(sizes))
            assert len(sizes) < 20 and max(sizes) <= 8
            assert batches(server, model) == {size: sizes.count(size) for size in set(sizes)}


GROUPS = {
    "": ("{}_0", "CPU", 1),
    "{ }": ("{}_0_0", "CPU", 1),
    "{ kind: KIND_CPU }": ("{}_0_0", "CPU", 1),
    "{ count: 2 kind: KIND_CPU }": ("{}_0_[01]", "CPU", 2),
    "{ kind: KIND_MODEL }": ("{}_0_0", "MODEL", 1),
    "{ name: \"mine\" kind: KIND_CPU }": ("mine_0", "CPU", 1),
}


def test_instances_that_a_group_makes(kind: type[Server], board: Board, backend: Path) -> None:
    """PB-07, PB-08, PB-10, PB-11, PB-12, PB-13, PB-16, PB-17, X-20, X-28: how many, of which kind, and under which name."""
    for number, group in enumerate(GROUPS):
        board.model(f"told{number}", *([group] if group else []), tell="yes")
        board.model(f"made{number}", *([group] if group else []), kept_in=True)
    board.open_exit()
    made = 0
    with kind(board.repository.path, EXPLICIT | {"backend-directory": str(backend)}) as server:
        for number, (name, of, count) in enumerate(GROUPS.values()):
            error = load(server, f"told{number}").json()["error"]
            assert re.search(f"; instance {name.format(f'told{number}')} is {of} on device 0", error), error
            assert load(server, f"made{number}").status == 200
            assert witness.unload(server, f"made{number}").status == 200
            made += count
            server.process.wait_for(board.finalised, made)


def test_settings_without_effect_are_named_once(repository: Repository) -> None:
    """PB-82: what is for GPUs, or for a way of batching that is the usual one here, is served, shown, and said to change nothing."""
    given = "priority: PRIORITY_MAX cuda { graphs: true } input_pinned_memory { enable: true } output_pinned_memory { enable: false }"
    repository.identity("without", extra=f"optimization {{ {given} eager_batching: true }}")
    repository.identity("plain")
    one = {"INPUT0": np.ones(1, np.float32)}
    with Nereid(repository.path) as server:
        for name in ("without", "plain"):
            assert infer(server, name, one).status == 200
        shown = rawhttp.get(server.http, "/v2/models/without/config").json()["optimization"]
        said = [line for line in server.process.log().splitlines() if "settings without effect here" in line]
    assert (shown["priority"], shown["eager_batching"]) == ("PRIORITY_MAX", True)
    names = ("priority", "cuda", "input_pinned_memory", "output_pinned_memory", "eager_batching")
    assert len(said) == 1 and "without: settings without effect here: " + ", ".join(f"optimization.{name}" for name in names) in said[0]


MISSING = {
    "tensorrt_plan": ("tensorrt", "model.plan"),
}


def test_frameworks_that_are_not_here(kind: type[Server], repository: Repository) -> None:
    """refuses MR-38, MR-39, MC-06: each by the name of the backend that is missing; others are served."""
    repository.identity("other")
    for platform, (_, file) in MISSING.items():
        tensors = "".join(f'{side} {{ name: "{side}__0" data_type: TYPE_FP32 dims: [ 16 ] }}\n' for side in ("input", "output"))
        definition = repository.model(platform, f'platform: "{platform}"\nmax_batch_size: 8\n{tensors}') / "1" / file
        definition.parent.mkdir(exist_ok=True)
        definition.write_bytes(b"anything")
    with kind(repository.path, QUIET) as server:
        rows = {row["name"]: row for row in rawhttp.post(server.http, "/v2/repository/index", b"").json()}
        for platform, (backend_name, _) in MISSING.items():
            assert not ready(server, platform)
            if kind is Nereid:
                assert f"unable to find backend library for backend '{backend_name}'" in rows[platform]["reason"]
        assert ready(server, "other")


def test_ends_of_sequences_are_booleans(kind: type[Server], repository: Repository) -> None:
    """SX-16: anything else is an error, over both protocols, and no sequence begins or ends by it."""
    repository.identity("one", extra="sequence_batching { max_sequence_idle_microseconds: 60000000 }")
    one = {"INPUT0": np.ones(1, np.float32)}
    with kind(repository.path) as server, rawgrpc.Channel(server.grpc) as channel:
        assert infer(server, "one", one, parameters={"sequence_id": 5, "sequence_start": True}).status == 200
        for flag in ("sequence_start", "sequence_end"):
            for value in ("yes", 1, None, [True]):
                answer = infer(server, "one", one, parameters={"sequence_id": 5, flag: value})
                assert answer.status == 500  # as for all that cannot be parsed
                assert f"Unable to parse '{flag}'" in answer.json()["error"]
            request = rawgrpc.infer_request("one", [("INPUT0", "FP32", [1], bytes(4))])
            request.parameters["sequence_id"].int64_param = 5
            request.parameters[flag].string_param = "true"
            assert channel.call("ModelInfer", request).code == "INVALID_ARGUMENT"
        assert infer(server, "one", one, parameters={"sequence_id": 5, "sequence_end": True}).status == 200


def counting_model() -> Any:
    """Of each row: how many rows of the batch are ready, and how many rows there are."""
    node = helper.make_node
    nodes = [
        node("ReduceSum", ["ready", "zero"], ["sum"], keepdims=1),
        node("Shape", ["ready"], ["shape"]),
        node("Expand", ["sum", "shape"], ["valid"]),
        node("Gather", ["shape", "zero"], ["count"]),
        node("Reshape", ["count", "square"], ["one_count"]),
        node("Expand", ["one_count", "shape"], ["rows"]),
        node("Identity", ["x"], ["y"]),
    ]
    constants = {"zero": np.array([0]), "square": np.array([1, 1])}
    return onnx_models.model(
        nodes, [("x", "FP32", ["n", 1]), ("ready", "INT32", ["n", 1])],
        [("valid", "INT32", ["n", 1]), ("rows", "INT64", ["n", 1]), ("y", "FP32", ["n", 1])], constants,
    )


def test_a_row_without_a_request_is_not_ready(kind: type[Server], repository: Repository) -> None:
    """PB-108, PB-121: READY is false in the row of a sequence that has nothing to say."""
    text = """\
        platform: "onnxruntime_onnx"
        max_batch_size: 2
        instance_group { count: 1 kind: KIND_CPU }
        input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
        output { name: "valid" data_type: TYPE_INT32 dims: [ 1 ] }
        output { name: "rows" data_type: TYPE_INT64 dims: [ 1 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
        sequence_batching {
          max_sequence_idle_microseconds: 60000000
          control_input { name: "ready" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
        }
        """
    onnx_models.save(counting_model(), repository.model("count", text))
    with kind(repository.path) as server:

        def ask(sequence: int, **flags: bool) -> tuple[int, int]:
            found = outputs(infer(server, "count", {"x": np.ones((1, 1), np.float32)}, parameters={"sequence_id": sequence} | flags))
            assert found["y"] == [1.0]
            return found["valid"][0], found["rows"][0]

        ask(1, sequence_start=True)
        ask(2, sequence_start=True)
        alone = [ask(1), ask(2)]
        assert all(valid == 1 for valid, _ in alone)
        assert (1, 2) in alone, "one of the two stands behind the other's empty row"


def test_candidates_make_a_preferred_batch(kind: type[Server], repository: Repository) -> None:
    """PB-123, PB-128, PB-129, PB-130, X-32: the size is chosen, a batch of it does not wait, and a smaller one no longer than it may."""
    oldest = "sequence_batching {{ max_sequence_idle_microseconds: 60000000 oldest {{ max_candidate_sequences: 4 max_queue_delay_microseconds: {} }} }}\n"
    one = "instance_group { count: 1 kind: KIND_CPU }\n"
    repository.identity("full", dims=(1,), max_batch_size=2, extra=one + oldest.format(100_000_000))
    repository.identity("part", dims=(1,), max_batch_size=2, extra=one + oldest.format(50_000))
    with kind(repository.path) as server:
        assert get(server, "/v2/models/full/config")["sequence_batching"]["oldest"]["preferred_batch_size"] == [2]

        def ask(model: str, sequence: int, **flags: bool) -> None:
            outputs(infer(server, model, {"INPUT0": np.ones((1, 1), np.float32)}, parameters={"sequence_id": sequence} | flags))

        with ThreadPoolExecutor(2) as pool:
            for flags in ({"sequence_start": True}, {}, {"sequence_end": True}):
                for each in [pool.submit(ask, "full", sequence, **flags) for sequence in (1, 2)]:
                    each.result(60)
        assert batches(server, "full") == {2: 3}
        ask("part", 1, sequence_start=True, sequence_end=True)
        assert batches(server, "part") == {1: 1}


def test_priorities_out_of_the_configuration(kind: type[Server], board: Board, backend: Path) -> None:
    """MC-116, MC-117, MC-118, PB-99, PB-100, PB-101: what waits while the instance is busy goes by level, then by arrival."""
    levels = "dynamic_batching { preferred_batch_size: [ 1 ] priority_levels: 3 default_priority_level: 2 }\n"
    board.model("levels", witness.group(), extra=levels, batch=1, gated=True)
    with kind(board.repository.path, {"backend-directory": str(backend)}) as server, ThreadPoolExecutor(8) as pool:

        def waiting() -> float:
            return metrics.scrape(server.metrics)["nv_inference_pending_request_count"].value(model="levels")

        def ask(priority: int) -> int:
            tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [1, 1], "data": [7]}
            body = json.dumps({"inputs": [tensor], "parameters": {"priority": priority} if priority else {}}).encode()
            return witness.ask(server, "levels", body).execution

        first = pool.submit(ask, 1)
        server.process.wait_until(lambda: board.executions() == 1, 60)
        server.process.wait_for(waiting, 0)
        asked = []
        for priority in (3, 0, 1, 2, 3, 1):
            asked.append(pool.submit(ask, priority))
            server.process.wait_for(waiting, len(asked))
        board.open_gate()
        assert first.result(60) == 0
        assert [each.result(60) for each in asked] == [5, 3, 1, 4, 6, 2]


def test_an_answer_does_not_wait_for_what_the_backend_does_next(kind: type[Server], board: Board, backend: Path) -> None:
    """It goes out when the backend sends it, alone or the first of a batch."""
    batching = "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 60000000 }\n"
    board.model("alone", stays=True)
    board.model("pair", extra=batching, batch=2, stays=True)
    body = b'{"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 1], "data": [7]}]}'
    with kind(board.repository.path, {"backend-directory": str(backend)}) as server, ThreadPoolExecutor(2) as pool:
        assert witness.ask(server, "alone").execution == 0
        first = 2
        for _ in range(5):  # a server may have to see once that this backend computes one by one
            if first == 1:
                break
            asked = [pool.submit(witness.ask, server, "pair", body) for _ in range(2)]
            first = len(wait(asked, 1, FIRST_COMPLETED).done)
            board.open_stay()
            assert len({each.result(60).execution for each in asked}) == 1
            board.shut_stay()
        board.open_stay()
        assert first == 1


def test_a_late_request_that_may_wait_is_the_last(kind: type[Server], board: Board, backend: Path) -> None:
    """MC-122, PB-86, PB-87, PB-88, PB-89, PB-90, PB-91: it is behind those in time, and is answered; REJECT, which is the default,
    refuses it; where a request may not have a time-out of its own, it is not late."""
    own = "allow_timeout_override: true default_timeout_microseconds: 60000000"
    for name, policy in (("patient", f"timeout_action: DELAY {own}"), ("strict", own), ("deaf", "")):
        batching = f"dynamic_batching {{ preferred_batch_size: [ 1 ] default_queue_policy {{ {policy} }} }}\n"
        board.model(name, witness.group(), extra=batching, batch=1, gated=True)
    with kind(board.repository.path, {"backend-directory": str(backend)}) as server, ThreadPoolExecutor(9) as pool:

        def waiting(model: str) -> float:
            return metrics.scrape(server.metrics)["nv_inference_pending_request_count"].value(model=model)

        def ask(model: str, timeout: int = 0) -> rawhttp.Answer:
            tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [1, 1], "data": [7]}
            parameters = {"timeout": timeout} if timeout else {}
            return witness.try_to_ask(server, model, json.dumps({"inputs": [tensor], "parameters": parameters}).encode())

        asked = {}
        for number, model in enumerate(("patient", "strict", "deaf"), 1):
            busy = pool.submit(ask, model)
            server.process.wait_until(lambda number=number: board.executions() == number, 60)
            server.process.wait_for(lambda model=model: waiting(model), 0)
            late = pool.submit(ask, model, 1000)
            if model != "strict":
                server.process.wait_for(lambda model=model: waiting(model), 1)
            asked[model] = (busy, late, pool.submit(ask, model))
        for model in ("patient", "deaf"):
            server.process.wait_for(lambda model=model: waiting(model), 2)
        server.process.wait_until(asked["strict"][1].done, 60)
        board.open_gate()
        answers = {model: [each.result(60) for each in calls] for model, calls in asked.items()}
        assert [answer.status for answer in answers["patient"]] == [200, 200, 200]
        assert [answer.status for answer in answers["deaf"]] == [200, 200, 200]
        order = {model: [answer.json()["outputs"][0]["data"][0] for answer in answers[model]] for model in ("patient", "deaf")}
        assert order["patient"][0] < order["patient"][2] < order["patient"][1]
        assert order["deaf"] == sorted(order["deaf"])
        assert [answer.status for answer in answers["strict"]] == [200, 503, 200]
        assert "timeout expired" in answers["strict"][1].json()["error"].lower()


def test_version_of_a_step(kind: type[Server], repository: Repository) -> None:
    """PB-140: -1 is the latest, a number that version."""
    for version in (1, 2):
        built = onnx_models.model(
            [helper.make_node("Add", ["INPUT0", "more"], ["OUTPUT0"])],
            [("INPUT0", "FP32", ["n"])], [("OUTPUT0", "FP32", ["n"])], {"more": np.array([version], np.float32)},
        )
        text = 'platform: "onnxruntime_onnx"\nversion_policy { all { } }\ninput { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }\n'
        onnx_models.save(built, repository.model("plus", text + 'output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }\n'), version)
    for name, version in (("latest", -1), ("first", 1)):
        repository.model(name, chain(name, ["plus"], version=version).config())
    with kind(repository.path) as server:
        for name, added in (("latest", 2.0), ("first", 1.0)):
            assert outputs(infer(server, name, {"IN": np.zeros(1, np.float32)})) == {"OUT": [added]}


def fused(log: str) -> set[str]:
    """The optimisers of the runtime that found something to do."""
    return set(re.findall(r"GraphTransformer (\w+) modified: 1", log))


def test_the_runtime_optimises_as_far_as_it_is_told(repository: Repository) -> None:
    """MR-51, MC-131, PB-54, PB-55, PB-58, PB-172, X-29; reads PB-56: -1 is the basic optimisations, 1 the extended ones too, 0 and nothing all.
    2 is none, as in the reference's backend."""
    random = np.random.default_rng(3)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3]), helper.make_node("Relu", ["c"], ["r"])]
    nodes += [helper.make_node("Identity", ["r"], ["i"]), helper.make_node("Relu", ["i"], ["y"])]
    built = onnx_models.model(
        nodes, [("x", "FP32", ["n", 32, 8, 8])], [("y", "FP32", ["n", 32, 6, 6])],
        {"w": random.standard_normal((32, 32, 3, 3)).astype(np.float32)},
    )
    found = {}
    x = random.standard_normal((1, 32, 8, 8)).astype(np.float32)
    for level in ("", "-1", "0", "1", "2"):
        text = 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n' + (f"optimization {{ graph {{ level: {level} }} }}\n" if level else "")
        onnx_models.save(built, repository.model("net", text))
        with Nereid(repository.path, {"log-verbose": "1"}) as server:
            answer = np.array(outputs(infer(server, "net", {"x": x}))["y"])
            log = server.process.log()
            found[level] = fused(log)
            assert "Adding default CPU execution provider" in log and "OpenVINO" not in log
        np.testing.assert_allclose(answer, onnx_models.answers(repository.path / "net/1/model.onnx", {"x": x})["y"].ravel(), atol=1e-3)
    basic, extended = found["-1"], found["1"]
    assert "ConvActivationFusion" in extended - basic
    assert basic and basic < extended
    assert found[""] == found["0"] > extended
    assert found["2"] == set()
