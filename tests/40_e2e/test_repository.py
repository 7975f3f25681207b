"""The model repository extension: index, load, unload, over both protocols, beside the reference."""

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from tritonclient.grpc import service_pb2 as pb
from tritonclient.utils import InferenceServerException

EXPLICIT = {"model-control-mode": "explicit"}
BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]


def config_of(name: str, dims: int = -1, batch: int = 0, **more: Any) -> str:
    def tensor(kind: str) -> dict[str, Any]:
        return {"name": f"{kind}0", "data_type": "TYPE_FP32", "dims": [dims]}

    made = {
        "name": name,
        "backend": "identity",
        "max_batch_size": batch,
        "input": [tensor("INPUT")],
        "output": [tensor("OUTPUT")],
    }
    return json.dumps(made | more)


def make_repository(folder: Path) -> Path:
    repository = Repository(folder)
    repository.identity("one")
    repository.identity("multi", versions=(1, 2, 3), extra="version_policy { all { } }")
    repository.model("broken", 'name: "broken"\nbackend: "identity"\nno_such_field: 1\n')
    repository.model("misnamed", 'name: "other"\nbackend: "identity"\n')
    no_backend = 'name: "nobackend"\nbackend: "nope"\nmax_batch_size: 0\n'
    for kind in ("input", "output"):
        no_backend += f'{kind} [ {{ name: "{kind}" data_type: TYPE_FP32 dims: [ 1 ] }} ]\n'
    repository.model("nobackend", no_backend)
    repository.model("noversion", 'name: "noversion"\nbackend: "identity"\n', versions=("x",))
    return repository.path


@pytest.fixture(params=BOTH)
def explicit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with KINDS[request.param](make_repository(tmp_path / "models"), EXPLICIT) as server:
        yield server


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Server]:
    with Nereid(make_repository(tmp_path / "models"), EXPLICIT) as server:
        yield server


def post(server: Server, path: str, body: Any = b"") -> rawhttp.Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return rawhttp.post(server.http, f"/v2/repository/{path}", data)


def load(server: Server, model: str, **parameters: Any) -> rawhttp.Answer:
    return post(server, f"models/{model}/load", {"parameters": parameters} if parameters else b"")


def unload(server: Server, model: str, **parameters: Any) -> rawhttp.Answer:
    server.rest()
    return post(server, f"models/{model}/unload", {"parameters": parameters} if parameters else b"")


def index(server: Server, **body: Any) -> list[dict[str, str]]:
    answer = post(server, "index", body or b"")
    assert answer.status == 200
    rows: list[dict[str, str]] = answer.json()
    return rows


def rows_of(server: Server, model: str) -> list[dict[str, str]]:
    return [row for row in index(server) if row["name"] == model]


def wait_for_rows(server: Server, model: str, rows: list[dict[str, str]]) -> None:
    """What was unloaded is unavailable once its last request is over."""
    server.process.wait_until(lambda: rows_of(server, model) == rows, 30)


def ready(server: Server, version: str = "1", model: str = "one") -> dict[str, str]:
    return {"name": model, "version": version, "state": "READY"}


def unloaded(version: str = "1", model: str = "one") -> dict[str, str]:
    return {"name": model, "version": version, "state": "UNAVAILABLE", "reason": "unloaded"}


def infer(server: Server, model: str, values: list[float], version: str = "") -> list[float]:
    array = np.array(values, np.float32)
    tensor = httpclient.InferInput("INPUT0", list(array.shape), "FP32")
    tensor.set_data_from_numpy(array)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer(model, [tensor], model_version=version).as_numpy("OUTPUT0")
    return [float(value) for value in result]


def text_of(answer: rawhttp.Answer) -> str:
    return str(answer.json()["error"])


def test_index_shows_what_could_be_loaded(explicit: Server) -> None:
    """RX-05, RX-09, RX-10, RX-13, RX-15, RX-16, RX-17, X-06: a model that was never loaded has only a name."""
    names = ["broken", "misnamed", "multi", "nobackend", "noversion", "one"]
    assert index(explicit) == [{"name": name} for name in names]
    assert index(explicit, ready=True) == []


def test_load_and_unload(explicit: Server) -> None:
    """MR-02, RX-06, RX-07, RX-20, RX-23, RX-24, RX-25, RX-26, RX-45, RX-46, RX-47, RX-48."""
    for body in (b"", b"{}", b'{"parameters":{}}'):
        answer = post(explicit, "models/one/load", body)
        assert (answer.status, answer.body) == (200, b"")
        assert rows_of(explicit, "one") == [ready(explicit)]
        assert infer(explicit, "one", [1, 2, 3]) == [1, 2, 3]
        answer = post(explicit, "models/one/unload", body)
        assert (answer.status, answer.body) == (200, b"")
        wait_for_rows(explicit, "one", [unloaded()])
        with pytest.raises(InferenceServerException, match="'one' has no available versions"):
            infer(explicit, "one", [1])
    assert rawhttp.get(explicit.http, "/v2/models/one/versions/1").status == 503


def test_every_version_of_the_policy_is_loaded(explicit: Server) -> None:
    """MC-78, RX-13, RX-18: one entry a version."""
    assert load(explicit, "multi").status == 200
    rows = [ready(explicit, version, "multi") for version in "123"]
    assert rows_of(explicit, "multi") == rows
    assert index(explicit, ready=True) == rows
    assert unload(explicit, "multi", unload_dependents=True).status == 200
    wait_for_rows(explicit, "multi", [unloaded(version, "multi") for version in "123"])


FAILURES = {
    "broken": (500, "failed to load 'broken', failed to poll from model repository"),
    "misnamed": (500, "failed to load 'misnamed', failed to poll from model repository"),
    "unknown": (500, "failed to load 'unknown', failed to poll from model repository"),
    "nobackend": (
        400,
        "load failed for model 'nobackend': version 1 is at UNAVAILABLE state: Invalid argument: "
        "unable to find backend library for backend 'nope'",
    ),
    "noversion": (
        400,
        "load failed for model 'noversion': at least one version must be available under the version "
        "policy of model 'noversion'",
    ),
}


@pytest.mark.parametrize("model", FAILURES)
def test_a_failed_load_says_why(explicit: Server, model: str) -> None:
    """MC-08, RX-41, RX-42, RX-52: the status and the beginning of the message are the reference's; ours says more."""
    status, message = FAILURES[model]
    answer = load(explicit, model)
    assert answer.status == status
    assert text_of(answer).startswith(message)
    assert not any(row.get("state") == "READY" for row in rows_of(explicit, model))
    assert unload(explicit, model).status == 200


def test_the_index_has_the_reason(ours: Server) -> None:
    """RX-20: why a configuration could not be read is not in the log alone."""
    load(ours, "broken")
    (row,) = rows_of(ours, "broken")
    assert row["state"] == "UNAVAILABLE" and "config.pbtxt:3:1" in row["reason"]
    assert rawhttp.get(ours.http, "/v2/health/ready").status == 200  # as in the reference
    unload(ours, "broken")
    assert rows_of(ours, "broken") == [{"name": "broken"}]
    assert rawhttp.get(ours.http, "/v2/health/ready").status == 200


def test_what_nobody_asked_for_does_not_count_against_readiness(ours: Server) -> None:
    assert rawhttp.get(ours.http, "/v2/health/ready").status == 200
    load(ours, "nobackend")
    assert rawhttp.get(ours.http, "/v2/health/ready").status == 400


def test_only_post_is_defined(explicit: Server) -> None:
    """RX-08."""
    for path in ("index", "models/one/load", "models/one/unload"):
        answer = rawhttp.get(explicit.http, f"/v2/repository/{path}")
        assert (answer.status, answer.json()) == (405, {"error": "Method Not Allowed"})


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("index", b'{"ready":1}', 400, "Invalid value for 'ready': expected a boolean"),
        ("index", b"{", 500, "failed to parse the request JSON buffer"),
        ("models/one/load", b"{", 500, "failed to parse the request JSON buffer"),
        ("models/one/load", b'{"parameters":[]}', 400, "'parameters' must be an object"),
        ("models/one/load", b'{"parameters":{"other":"x"}}', 500, "unexpected error on creating Triton"),
        ("models/one/load", b'{"parameters":{"config":{}}}', 400, "'config' must be a string"),
        ("models/one/load", b'{"parameters":{"config":"no json"}}', 400, "Invalid config override"),
        ("models/one/load", b'{"parameters":{"config":"{\\"x\\":1}"}}', 400, "Invalid config override"),
        ("models/one/load", b'{"parameters":{"file:1/x":""}}', 400, "'config' must be specified"),
        ("models/one/unload", b"{", 500, "failed to parse the request JSON buffer"),
        ("models/one/unload", b'{"parameters":{"unload_dependents":1}}', 400, "expected a boolean"),
    ],
)
def test_wrong_bodies_are_refused(ours: Server, path: str, body: bytes, status: int, message: str) -> None:
    """RX-14, RX-21, RX-22, RX-28, RX-29, RX-36, RX-40, RX-41, RX-42, RX-51, RX-53, RX-54."""
    assert load(ours, "one").status == 200
    answer = post(ours, path, body)
    assert answer.status == status
    assert message in text_of(answer)
    assert infer(ours, "one", [4]) == [4]


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a%2fb", ".", ".git", "..%2fone", "%00", "one%00", "a" * 3000])
def test_names_cannot_leave_the_repository(ours: Server, name: str) -> None:
    """One that climbs as it stands is refused as such; what it would be if it were decoded is no directory."""
    climbs = name == ".."
    answer = load(ours, name)
    assert answer.status == (400 if climbs else 500)
    assert ("must not contain path traversal" if climbs else "no repository has a directory of this name") in text_of(answer)
    assert rows_of(ours, name) == []
    assert unload(ours, name).status == (400 if climbs else 200)  # as in the reference, there is nothing to unload


@pytest.mark.parametrize("name", ["", "  ", "..", "../one", "/etc", "one/../one", "one\0x", "a/b"])
def test_names_cannot_leave_the_repository_over_grpc(ours: Server, name: str) -> None:
    with rawgrpc.Channel(ours.grpc) as channel:
        for method, kind in (
            ("RepositoryModelLoad", pb.RepositoryModelLoadRequest),
            ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest),
        ):
            answer = channel.call(method, kind(model_name=name))
            assert answer.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_other_modes_refuse(tmp_path: Path, mode: str) -> None:
    """MR-02, MR-23."""
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    for kind in KINDS.values():
        with kind(repository.path, {"model-control-mode": mode}) as server:
            for answer in (load(server, "one"), unload(server, "one"), load(server, "none")):
                assert answer.status == 503
                assert text_of(answer) == "explicit model load / unload is not allowed if polling is enabled"
            assert index(server) == [ready(server)]


def test_config_override(explicit: Server) -> None:
    """RX-27, RX-30, RX-44, X-08."""
    assert load(explicit, "one", config=config_of("one", dims=2, batch=4)).status == 200
    shown = rawhttp.get(explicit.http, "/v2/models/one").json()
    assert shown["inputs"] == [{"name": "INPUT0", "datatype": "FP32", "shape": [-1, 2]}]
    assert rawhttp.get(explicit.http, "/v2/models/one/config").json()["max_batch_size"] == 4


def test_a_plain_load_goes_back_to_the_repository(ours: Server) -> None:
    """RX-23, RX-30: once something of it changed, as in the reference; until then the log says what is kept."""
    load(ours, "one", config=config_of("one", dims=2))
    assert rawhttp.get(ours.http, "/v2/models/one").json()["inputs"][0]["shape"] == [2]
    assert "keeps the configuration" not in ours.process.log()
    assert load(ours, "one").status == 200
    assert "'one' keeps the configuration that it was loaded with" in ours.process.log()
    assert rawhttp.get(ours.http, "/v2/models/one").json()["inputs"][0]["shape"] == [2]
    config = Path(ours.repositories[0]) / "one" / "config.pbtxt"
    os.utime(config, ns=(0, 10**9))
    assert load(ours, "one").status == 200
    assert rawhttp.get(ours.http, "/v2/models/one").json()["inputs"][0]["shape"] == [-1]


def test_an_unload_ends_what_a_client_gave(explicit: Server) -> None:
    """RX-23: loaded again, the model has the configuration of the repository, though nothing of its directory changed."""
    assert load(explicit, "one", config=config_of("one", dims=2)).status == 200
    assert unload(explicit, "one").status == 200
    assert load(explicit, "one").status == 200
    assert rawhttp.get(explicit.http, "/v2/models/one").json()["inputs"][0]["shape"] == [-1]


def test_file_override(explicit: Server) -> None:
    """RX-33, RX-35, RX-37: the given files are the whole directory."""
    content = base64.b64encode(b"anything").decode()
    files = {"file:7/model.bin": content, "file:7/deep/er/x": "", "file:labels.txt": content}
    config = config_of("one", version_policy={"latest": {"num_versions": 1}})
    assert load(explicit, "one", config=config, **files).status == 200
    assert rawhttp.get(explicit.http, "/v2/models/one").json()["versions"] == ["7"]
    assert infer(explicit, "one", [5], version="7") == [5]


def temporary(folder: Path) -> list[Path]:
    return sorted(folder.glob("nereid-upload-*"))


def test_the_files_of_an_override_go_with_it(tmp_path: Path) -> None:
    """RX-09, RX-33, RX-35, RX-38."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    repository = make_repository(tmp_path / "models")
    with Nereid(repository, EXPLICIT, env={"TMPDIR": str(scratch)}) as server:
        content = base64.b64encode(b"\x00\xff data").decode()
        made = {"config": config_of("fresh"), "file:1/a/b.bin": content, "file:1/empty": ""}
        assert load(server, "fresh", **made).status == 200
        assert rows_of(server, "fresh") == [ready(server, model="fresh")]
        (folder,) = temporary(scratch)
        assert (folder / "1" / "a" / "b.bin").read_bytes() == b"\x00\xff data"
        assert (folder / "1" / "empty").read_bytes() == b""
        assert folder.stat().st_mode & 0o077 == 0
        assert load(server, "fresh", **made).status == 200
        server.process.wait_until(lambda: temporary(scratch) not in ([], [folder]), 30)
        server.process.wait_until(lambda: len(temporary(scratch)) == 1, 30)
        assert unload(server, "fresh").status == 200
        server.process.wait_until(lambda: temporary(scratch) == [], 30)
        server.process.wait_until(lambda: rows_of(server, "fresh") == [], 30)
        assert load(server, "fresh", **(made | {"config": config_of("other")})).status == 400
        assert load(server, "fresh", **(made | {"file:1/empty": "not base64!"})).status == 400
        assert temporary(scratch) == []
        assert load(server, "fresh", **made).status == 200
    assert temporary(scratch) == []


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "1/../../x",
        "/tmp/x",
        "//x",
        "1//x",
        "1/",
        "",
        ".",
        "1/.",
        "1/..",
        "a/" * 40 + "x",
        "1/" + "n" * 300,
        "1/a\x00b",
    ],
)
def test_override_files_cannot_leave_the_directory(tmp_path: Path, name: str) -> None:
    """RX-39: over both protocols, and nothing is written."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    with Nereid(make_repository(tmp_path / "models"), EXPLICIT, env={"TMPDIR": str(scratch)}) as server:
        answer = load(server, "one", config=config_of("one"), **{f"file:{name}": "eA=="})
        assert answer.status == 400
        request = pb.RepositoryModelLoadRequest(model_name="one")
        request.parameters["config"].string_param = config_of("one")
        request.parameters[f"file:{name}"].bytes_param = b"x"
        with rawgrpc.Channel(server.grpc) as channel:
            assert channel.call("RepositoryModelLoad", request).code == "INVALID_ARGUMENT"
        assert list(scratch.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "tmp"]


def test_names_that_only_look_like_climbing_stay(tmp_path: Path) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    with Nereid(make_repository(tmp_path / "models"), EXPLICIT, env={"TMPDIR": str(scratch)}) as server:
        for name in ("1/%2e%2e", "1/..x", "1/...", "1/\\..\\x"):
            assert load(server, "one", config=config_of("one"), **{f"file:{name}": ""}).status == 200
            server.process.wait_until(lambda: len(temporary(scratch)) == 1, 30)
            assert (temporary(scratch)[0] / name).is_file()


def test_over_grpc(explicit: Server) -> None:
    """RX-01, RX-55, RX-56, RX-57, RX-60, RX-65, RX-67, RX-68, RX-70, RX-71, RX-75, RX-76: with the real client."""
    client = grpcclient.InferenceServerClient(explicit.grpc)
    listed = client.get_model_repository_index().models
    assert {(model.name, model.version, model.state, model.reason) for model in listed} >= {("one", "", "", "")}
    client.load_model("one")
    assert client.is_model_ready("one")
    listed = client.get_model_repository_index().models
    assert ("one", "1", "READY") in {(model.name, model.version, model.state) for model in listed}
    client.load_model("one", config=config_of("one", dims=3), files={"file:4/x": b"\x00raw"})
    shown = client.get_model_metadata("one")
    assert list(shown.versions) == ["4"] and list(shown.inputs[0].shape) == [3]
    client.unload_model("one", unload_dependents=True)
    with pytest.raises(InferenceServerException, match="no available versions"):
        client.get_model_metadata("one")
    client.close()


def test_ready_only_over_grpc(ours: Server) -> None:
    """RX-62, RX-63."""
    with rawgrpc.Channel(ours.grpc) as channel:
        answer = channel.call("RepositoryIndex", pb.RepositoryIndexRequest(ready=True))
        assert list(answer.parse(pb.RepositoryIndexResponse).models) == []
        load(ours, "multi")
        answer = channel.call("RepositoryIndex", pb.RepositoryIndexRequest(ready=True))
        assert [model.version for model in answer.parse(pb.RepositoryIndexResponse).models] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("key", "field", "value", "message"),
    [
        ("config", "bytes_param", b"{}", "invalid value type for load parameter 'config', expected string_param."),
        ("file:1/x", "string_param", "x", "invalid value type for load parameter 'file:1/x', expected bytes_param."),
        ("other", "string_param", "x", "unrecognized load parameter 'other'."),
        ("file:1/x", "bytes_param", b"x", "Load parameter 'config' must be specified for model file override"),
    ],
)
def test_wrong_parameters_over_grpc(ours: Server, key: str, field: str, value: Any, message: str) -> None:
    """RX-59, RX-72, RX-73."""
    request = pb.RepositoryModelLoadRequest(model_name="one")
    setattr(request.parameters[key], field, value)
    with rawgrpc.Channel(ours.grpc) as channel:
        answer = channel.call("RepositoryModelLoad", request)
        assert (answer.code, answer.details) == ("INVALID_ARGUMENT", message)
        request = pb.RepositoryModelUnloadRequest(model_name="one")
        request.parameters["unload_dependents"].string_param = "yes"
        assert channel.call("RepositoryModelUnload", request).code == "INVALID_ARGUMENT"


def test_a_message_that_cannot_be_read(ours: Server) -> None:
    with rawgrpc.Channel(ours.grpc) as channel:
        for method in ("RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"):
            for body in (b"\xff", b"\x0a\x05ab", b"\x12\x02\xc3\x28", b"\x1a\x03\x0a\x02\xff"):
                # The last is a field that the index does not have.
                unread = method == "RepositoryIndex" and body[:1] == b"\x1a"
                assert channel.call(method, body).code == ("OK" if unread else "INTERNAL"), (method, body)
    load(ours, "one")
    assert infer(ours, "one", [1]) == [1]


def test_repository_name(tmp_path: Path) -> None:
    """RX-61, RX-66, RX-74, X-11: a repository is named by its path, or the last component of it."""
    first, second = Repository(tmp_path / "first"), Repository(tmp_path / "second")
    first.identity("both", dims=(1,))
    second.identity("both", dims=(2,))
    second.identity("there")
    with Nereid([first.path, second.path], EXPLICIT) as server:
        assert [row["name"] for row in index(server)] == ["both", "there"]
        assert rows_of(server, "both")[0]["reason"] == "model appears in two or more repositories"
        assert post(server, "first/index").json()[0]["name"] == "both"
        assert [row["name"] for row in post(server, "second/index").json()] == ["both", "there"]
        assert load(server, "both").status == 500
        assert post(server, "second/models/both/load").status == 200
        assert rawhttp.get(server.http, "/v2/models/both").json()["inputs"][0]["shape"] == [2]
        assert post(server, "first/models/both/load").status == 200
        assert rawhttp.get(server.http, "/v2/models/both").json()["inputs"][0]["shape"] == [1]
        assert post(server, "second/models/both/unload").status == 404
        assert post(server, "first/models/both/unload").status == 200
        assert post(server, "third/models/both/load").status == 404
        with rawgrpc.Channel(server.grpc) as channel:
            for name in ("second", str(second.path)):
                request = pb.RepositoryModelLoadRequest(repository_name=name, model_name="there")
                assert channel.call("RepositoryModelLoad", request).code == "OK"
                listed = channel.call("RepositoryIndex", pb.RepositoryIndexRequest(repository_name=name))
                names = [model.name for model in listed.parse(pb.RepositoryIndexResponse).models]
                assert sorted(set(names)) == ["both", "there"]
            request = pb.RepositoryModelUnloadRequest(repository_name="first", model_name="there")
            assert channel.call("RepositoryModelUnload", request).code == "NOT_FOUND"


def test_a_new_directory_can_be_loaded(explicit: Server) -> None:
    """RX-09: the index and a load look at the disk as it is now."""
    Repository(Path(explicit.repositories[0])).identity("late")
    assert rows_of(explicit, "late") == [{"name": "late"}]
    assert load(explicit, "late").status == 200
    assert infer(explicit, "late", [7]) == [7]


@pytest.mark.parametrize("backend", ["identity", "nope"])
def test_what_became_of_old_versions_is_not_kept_for_ever(tmp_path: Path, backend: str) -> None:
    """A repository whose versions come and go for years: the index tells what became of the last 64, whether they served or failed."""
    repository = Repository(tmp_path / "models")
    folder = repository.identity("one")
    config = folder / "config.pbtxt"
    config.write_text(config.read_text().replace('"identity"', f'"{backend}"'))
    status, state = (200, "READY") if backend == "identity" else (400, "UNAVAILABLE")
    with Nereid(repository.path, EXPLICIT) as server:

        def next_version(number: int) -> list[str]:
            (folder / str(number)).mkdir(exist_ok=True)
            assert load(server, "one").status == status
            rows = rows_of(server, "one")
            assert rows[-1]["version"] == str(number)
            assert rows[-1]["state"] == state
            return [row["version"] for row in rows]

        for number in range(1, 71):
            next_version(number)
        if state == "READY":
            server.process.wait_until(lambda: all(row["state"] != "UNLOADING" for row in rows_of(server, "one")), 30)
        kept = next_version(71)
        first = 71 - 65 if state == "READY" else 71 - 63  # the one that serves now, and the one that did until now, are no old ones
        assert kept == [str(number) for number in range(first, 72)]


def test_startup_models(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    for name in ("a", "b", "c"):
        repository.identity(name)
    for kind in KINDS.values():
        for wanted, names in ((["a", "c"], ["a", "c"]), ("*", ["a", "b", "c"])):
            with kind(repository.path, EXPLICIT | {"load-model": wanted}) as server:
                assert [row["name"] for row in index(server, ready=True)] == names


@pytest.mark.parametrize(
    "options",
    [
        EXPLICIT | {"load-model": ["*", "one"]},
        EXPLICIT | {"load-model": "nowhere"},
        {"load-model": "one"},
        {"model-control-mode": "sometimes"},
    ],
)
def test_wrong_startup_models_end_the_start(tmp_path: Path, options: dict[str, Any]) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    for kind in KINDS.values():
        server = kind(repository.path, options, wait_ready=False).start()
        try:
            server.process.ends(1)
        finally:
            server.kill()


def test_a_configuration_of_another_name(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    for name in ("one", "two"):
        repository.identity(name)
    (repository.path / "one" / "configs").mkdir()
    other = (repository.path / "one" / "config.pbtxt").read_text().replace("dims: [ -1 ]", "dims: [ 3 ]")
    (repository.path / "one" / "configs" / "small.pbtxt").write_text(other)
    with Nereid(repository.path, {"model-config-name": "small"}) as server:
        assert rawhttp.get(server.http, "/v2/models/one").json()["inputs"][0]["shape"] == [3]
        assert rawhttp.get(server.http, "/v2/models/two").json()["inputs"][0]["shape"] == [-1]


@pytest.mark.parametrize("extra", ["instance_group [{ count: 10000 }]", ""], ids=["instances", "label device"])
def test_what_asks_for_too_much_is_refused(ours: Server, extra: str) -> None:
    repository = Repository(Path(ours.repositories[0]))
    folder = repository.identity("greedy", extra=extra)
    if not extra:
        text = (folder / "config.pbtxt").read_text()
        (folder / "config.pbtxt").write_text(text.replace('"OUTPUT0"', '"OUTPUT0" label_filename: "labels"'))
        (folder / "labels").symlink_to("/dev/zero")
    answer = load(ours, "greedy")
    assert answer.status == 400
    assert ("10000" if extra else "leads out of") in text_of(answer)
