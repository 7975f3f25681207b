"""Configurations that people bring along: the same models in both servers are served, or refused in the same words."""

from pathlib import Path
from typing import Any

import pytest
from harness import paths, rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from models import onnx_models

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
MODEL = 'backend: "identity"\n' + "".join(
    f'{kind} {{ name: "{kind.upper()}0" data_type: TYPE_FP32 dims: [ -1 ] }}\n' for kind in ("input", "output")
)
LENIENT = {"exit-on-error": "false", "strict-readiness": "false"}
BODY = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [3]}]}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "models")


def _index(server: Server) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in rawhttp.post(server.http, "/v2/repository/index", {}).json()}


SERVED = ["libtriton_identity.so", "./libtriton_identity.so"]
REFUSED: dict[str, str | dict[str, str]] = {
    "libnone.so": "unable to find backend library 'libnone.so' for model '{name}', searched: '{model}/1' '{model}' '{backends}/identity' ",
    "../../none.so": "unable to find backend library '../../none.so' for model '{name}', searched: ",
    "/etc/passwd": "unable to find backend library '/etc/passwd' for model '{name}', searched: ",
    "../onnxruntime/libtriton_onnxruntime.so": "backend library name '../onnxruntime/libtriton_onnxruntime.so' escapes backend directory "
    "'{backends}/identity', for model '{name}', check model config runtime field",
    "model.py": {
        "nereid": "backend 'identity' of model '{name}': a backend that is a model.py is not served",
        "reference": "backend library 'model.py' for model '{name}', searched: '{backends}/identity/model.py'",
    },
}


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])
@pytest.mark.parametrize("kind", BOTH)
def test_runtime(repository: Repository, kind: str, isolated: bool) -> None:
    """The file that `runtime` names is the backend's library; one that is not there, or lies elsewhere, is refused."""
    extra = 'parameters { key: "ISOLATION" value { string_value: "process" } }\n' if isolated and kind == "nereid" else ""
    names = {f"model{at}": runtime for at, runtime in enumerate([*SERVED, *REFUSED])}
    for name, runtime in names.items():
        repository.model(name, f'{MODEL}runtime: "{runtime}"\n{extra}')
    with KINDS[kind](repository.path, LENIENT) as server:
        index = _index(server)
        for name, runtime in names.items():
            if runtime in SERVED:
                assert rawhttp.post(server.http, f"/v2/models/{name}/infer", BODY).json()["outputs"][0]["data"] == [3]
                assert rawhttp.get(server.http, f"/v2/models/{name}/config").json()["runtime"] == runtime
                continue
            backends = paths.backends(reference=kind == "reference")
            refused = REFUSED[runtime]
            words = (refused if isinstance(refused, str) else refused[kind]).format(name=name, model=repository.path / name, backends=backends)
            assert words in index[name]["reason"], index[name]


@pytest.mark.onnx
@pytest.mark.parametrize("kind", BOTH)
def test_instances_on_cpu(repository: Repository, kind: str) -> None:
    groups = {
        "none": ("", "none", "KIND_CPU", 2), "cpu": ("instance_group { kind: KIND_CPU }", "cpu_0", "KIND_CPU", 2),
        "auto": ("instance_group { }", "auto_0", "KIND_CPU", 2), "model": ("instance_group { kind: KIND_MODEL }", "model_0", "KIND_MODEL", 1),
        "one": ("instance_group { kind: KIND_CPU count: 1 }", "one_0", "KIND_CPU", 1),
    }
    for name, (group, *_) in groups.items():
        onnx_models.save(onnx_models.add_sub(), repository.model(name, f'platform: "onnxruntime_onnx"\n{group}\n'))
    repository.identity("other")
    with KINDS[kind](repository.path) as server:
        for name, (_, *wanted) in {**groups, "other": ("", "other", "KIND_CPU", 1)}.items():
            (found,) = rawhttp.get(server.http, f"/v2/models/{name}/config").json()["instance_group"]
            assert [found["name"], found["kind"], found["count"]] == wanted


WITHOUT_VERSION = {
    "negative": (MODEL + "max_batch_size: -1\n", "'max_batch_size' must be non-negative value for negative"),
    "nobody": (MODEL.partition("\n")[2], "Could not determine backend for model 'nobody' with no backend in model configuration"),
    "fine": (MODEL, "at least one version must be available under the version policy of model 'fine'"),
}


@pytest.mark.parametrize("kind", BOTH)
def test_what_is_wrong_is_said_before_that_a_version_is_missing(repository: Repository, kind: str) -> None:
    for name, (config, _) in WITHOUT_VERSION.items():
        (repository.path / name).mkdir()
        repository.model(name, config, versions=())
    with KINDS[kind](repository.path, LENIENT) as server:
        log = server.process.log()
        index = _index(server)
    for name, (_, words) in WITHOUT_VERSION.items():
        assert words in log
        if kind == "nereid":
            assert words in index[name]["reason"]


IO = [
    f'{{"name":"{kind}0","data_type":"TYPE_FP32","dims":[-1]}}' for kind in ("INPUT", "OUTPUT")
]
FIELDS = f'"backend":"identity","input":[{IO[0]}],"output":[{IO[1]}]'
TAKEN = {
    "an object for a list": f'{{"backend":"identity","input":{IO[0]},"output":{IO[1]}}}',
    "a number for a list": f'{{"backend":"identity","input":[{{"name":"INPUT0","data_type":"TYPE_FP32","dims":-1}}],"output":[{IO[1]}]}}',
    "a group for a list": f'{{{FIELDS},"instance_group":{{"count":2,"kind":"KIND_CPU"}}}}',
    "a list in a list": f'{{{FIELDS},"instance_group":[[{{"count":1}}]]}}',
    "null in a list": f'{{"backend":"identity","input":[{IO[0]},null],"output":[{IO[1]}]}}',
    "keys without quotes": f'{{backend:"identity",input:[{IO[0]}],output:[{IO[1]}],max_batch_size : 3}}',
    "single quotes": f"{{{FIELDS},'parameters':{{'a\\'b':{{'string_value':'x\"y'}}}}}}",
    "trailing commas": f'{{"backend":"identity","input":[{IO[0]},],"output":[{IO[1]}],}}',
    "numbers in strings": f'{{{FIELDS},"max_batch_size":"+4"}}',
    "a number with an exponent": f'{{{FIELDS},"max_batch_size":4e0}}',
    "an enum by number": f'{{{FIELDS},"instance_group":[{{"kind":2}}]}}',
    "an enum by number in a string": f'{{{FIELDS},"instance_group":[{{"kind":"2"}}]}}',
    "camel case": f'{{{FIELDS},"maxBatchSize":4}}',
    "null": f'{{{FIELDS},"max_batch_size":null,"instance_group":null,"dynamic_batching":null}}',
    "truth in a string": f'{{{FIELDS},"model_transaction_policy":{{"decoupled":"True"}}}}',
    "a tab in a string": f'{{{FIELDS},"default_model_filename":"a\tb"}}',
    "an escape that there is not": f'{{{FIELDS},"default_model_filename":"a\\qb"}}',
}
NOT_TAKEN = {
    "a fraction": f'{{{FIELDS},"max_batch_size":4.5}}',
    "truth for a number": f'{{{FIELDS},"max_batch_size":true}}',
    "a number for truth": f'{{{FIELDS},"model_transaction_policy":{{"decoupled":1}}}}',
    "a number for a string": f'{{{FIELDS},"default_model_filename":5}}',
    "an unknown field": f'{{{FIELDS},"zzz":5}}',
    "a list for an object": f'{{{FIELDS},"dynamic_batching":[]}}',
    "a list for a map": f'{{{FIELDS},"parameters":[{{"key":"a","value":{{"string_value":"b"}}}}]}}',
    "True without quotes": f'{{{FIELDS},"model_transaction_policy":{{"decoupled":True}}}}',
    "text behind it": f"{{{FIELDS}}} x",
    "a comment": f"{{/* a */{FIELDS}}}",
    "a word without quotes": f'{{{FIELDS},"default_model_filename":abc}}',
    "no comma": f'{{{FIELDS} "max_batch_size":1}}',
    "a list": "[]",
}


@pytest.mark.reference
def test_overrides_as_people_write_them(repository: Repository) -> None:
    """What the reference's own reader of JSON takes besides JSON, and what it does not."""
    repository.identity("m")
    found: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        with KINDS[kind](repository.path, {"model-control-mode": "explicit", "load-model": "m"}) as server:
            found[kind] = {}
            for name, text in {**TAKEN, **NOT_TAKEN}.items():
                loaded = rawhttp.post(server.http, "/v2/repository/models/m/load", {"parameters": {"config": text}})
                config = rawhttp.get(server.http, "/v2/models/m/config").json()
                found[kind][name] = config if loaded.status == 200 else None
    for name in TAKEN:
        theirs = found["reference"][name]
        assert theirs and found["nereid"][name], name
        for key in ("input", "output", "max_batch_size", "parameters", "default_model_filename", "model_transaction_policy"):
            assert found["nereid"][name].get(key) == theirs.get(key), (name, key)
        counts = [[(each["kind"], each["count"]) for each in found[kind][name]["instance_group"]] for kind in KINDS]
        assert counts[0] == counts[1], name
    for name in NOT_TAKEN:
        assert found["reference"][name] is None and found["nereid"][name] is None, name


def test_no_inputs(repository: Repository) -> None:
    """A model that asks nothing of its clients: the identity backend then answers nothing."""
    repository.model("plain", 'backend: "identity"\n')
    with Nereid(repository.path) as server:
        told = rawhttp.get(server.http, "/v2/models/plain").json()
        assert (told["inputs"], told["outputs"]) == ([], [])
        answer = rawhttp.post(server.http, "/v2/models/plain/infer", {"inputs": []})
        assert (answer.status, answer.json()["outputs"]) == (200, [])
        assert rawhttp.post(server.http, "/v2/models/plain/infer", BODY).status == 400
