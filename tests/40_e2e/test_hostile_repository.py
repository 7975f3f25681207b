"""Repositories and requests that mean harm: refused with a clear error, and nothing outside a model's own place is touched."""

import base64
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import procfs, rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server
from tritonclient.grpc import service_pb2 as pb

pytestmark = pytest.mark.threadless

QUIET = {"exit-on-error": "false", "strict-readiness": "false"}
EXPLICIT = QUIET | {"model-control-mode": "explicit"}
IDENTITY = """\
backend: "identity"
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] %s }
"""


class Canary:
    """Files beside the repository that nobody may read, and directories that nobody may write to."""

    def __init__(self, place: Path):
        self.place = place
        self.files: list[Path] = []
        control = self.file("control")
        self.age(control)
        control.read_bytes()
        assert control.stat().st_atime > 1000, "this file system does not tell when a file was read"
        control.unlink()
        self.files.clear()

    @staticmethod
    def age(path: Path) -> None:
        """Read long before it was written: then reading it shows, whatever the mount's options."""
        os.utime(path, (1, time.time()))

    def file(self, name: str, content: bytes = b"name: 'secret' backend: 'identity'\n") -> Path:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.files.append(path)
        return path

    def set(self, repository: Path) -> None:
        for path in self.files:
            self.age(path)
        self.before = self._tree(repository)

    def _tree(self, repository: Path) -> list[Path]:
        return sorted(path for path in self.place.rglob("*") if repository not in path.parents)

    def check(self, repository: Path) -> None:
        assert [path for path in self.files if path.stat().st_atime > 1000] == [], "was read"
        assert self._tree(repository) == self.before


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "place" / "models")
    made.identity("good")
    return made


@pytest.fixture
def canary(repository: Repository) -> Canary:
    return Canary(repository.path.parent)


def reasons(server: Server) -> dict[str, str]:
    rows = rawhttp.post(server.http, "/v2/repository/index", b"").json()
    return {row["name"]: row.get("reason", "") if row["state"] != "READY" else "READY" for row in rows}


def load(server: Server, name: str, body: bytes = b"") -> rawhttp.Answer:
    return rawhttp.post(server.http, f"/v2/repository/models/{name}/load", body)


def load_grpc(server: Server, request: pb.RepositoryModelLoadRequest) -> tuple[str, str]:
    with rawgrpc.Channel(server.grpc) as channel:
        got = channel.call("RepositoryModelLoad", request)
    return got.code, got.details


def still_serves(server: Server) -> None:
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [4.0]}
    got = rawhttp.post(server.http, "/v2/models/good/infer", json.dumps({"inputs": [tensor]}).encode())
    assert got.json()["outputs"][0]["data"] == [4.0]


NAMES = ["..", "../outside", "good/../../outside", "/etc", "./good", "good/", "good/.", "a\\..\\b", ".", " .. ", "..\n", "x" * 5000]

NO_DIRECTORY = ["a\\..\\b", ".", "x" * 5000]  # they do not lead out
NO_DIRECTORY_SAID = "no repository has a directory of this name"


def test_names_that_climb(repository: Repository, canary: Canary) -> None:
    """RX-39: in every spelling and over both protocols."""
    canary.file("outside/config.pbtxt")
    (repository.path.parent / "outside" / "1").mkdir()
    canary.file("config.pbtxt")
    with Nereid(repository.path, EXPLICIT | {"load-model": "good"}) as server:
        canary.set(repository.path)
        for name in NAMES:
            code, details = load_grpc(server, pb.RepositoryModelLoadRequest(model_name=name))
            climbs = name not in NO_DIRECTORY
            said = "must not contain path traversal" if climbs else f"failed to load '{name[:100]}"
            assert code == ("INVALID_ARGUMENT" if climbs else "INTERNAL") and said in details, (name, code, details)
            encoded = "".join(f"%{byte:02x}" for byte in name.encode())
            for spelled in (encoded, encoded.upper()):  # which is not decoded
                got = load(server, spelled)
                assert got.status == 500 and NO_DIRECTORY_SAID in got.json()["error"], name
                assert rawhttp.post(server.http, f"/v2/repository/models/{spelled}/unload", b"").status == 200  # nothing to unload
        canary.check(repository.path)
        assert list(reasons(server)) == ["good"]
        still_serves(server)


OVERRIDES = ["../1/model", "1/../../outside", "/tmp/nereid-canary", "1//x", "./x", "1/..", "", ".", "1/" + "a" * 300, "/".join("d" * 60) + "/x"]


def test_overrides_that_climb(repository: Repository, canary: Canary, tmp_path: Path) -> None:
    """RX-39: neither written nor read outside the directory of the override."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    config = json.dumps({"backend": "identity"})
    with Nereid(repository.path, EXPLICIT | {"load-model": "good"}, env={"TMPDIR": str(scratch)}) as server:
        canary.set(repository.path)
        for name in OVERRIDES:
            parameters = {"config": config, f"file:{name}": base64.b64encode(b"evil").decode()}
            got = load(server, "fresh", json.dumps({"parameters": parameters}).encode())
            assert got.status == 400, name
            assert "must stay within the model directory" in got.json()["error"], name
            request = pb.RepositoryModelLoadRequest(model_name="fresh")
            request.parameters["config"].string_param = config
            request.parameters[f"file:{name}"].bytes_param = b"evil"
            assert load_grpc(server, request)[0] == "INVALID_ARGUMENT", name
        canary.check(repository.path)
        assert not Path("/tmp/nereid-canary").exists()
        assert list(scratch.iterdir()) == []
        still_serves(server)


def test_files_named_by_a_configuration(repository: Repository, canary: Canary) -> None:
    """reads MR-19, MR-35, PB-46, PB-179, PB-180: label files and definitions that climb or are absolute; links that lead out."""
    secret = canary.file("secret.txt", b"one\ntwo\n")
    canary.file("model.onnx", b"secret")
    for name, file in (("up", "../../secret.txt"), ("absolute", str(secret)), ("around", "1/../../../secret.txt")):
        repository.model(f"label_{name}", IDENTITY % f"label_filename: '{file}'")
        for field in ("default_model_filename: '%s'", "cc_model_filenames { key: '7.5' value: '%s' }"):
            config = f'platform: "onnxruntime_onnx"\n{field % file}\n'
            repository.model(f"{field.split('_')[0]}_{name}", config)
    (repository.model("label_link", IDENTITY % "label_filename: 'labels'") / "labels").symlink_to(secret)
    (repository.model("label_door", IDENTITY % "label_filename: 'door/secret.txt'") / "door").symlink_to("../..")
    for name in ("backend: '../../evil'", "backend: '/etc'", "backend: '..'"):
        repository.model(f"backend_{len(name)}", f'{name}\nruntime: "../../x.so"\n')
    with Nereid(repository.path, QUIET) as server:
        canary.set(repository.path)
        found = reasons(server)
        for name in ("up", "absolute", "around"):
            for kind in ("label", "default", "cc"):
                assert "must stay inside the model's directory" in found[f"{kind}_{name}"], (kind, name)
        assert "leads out of" in found["label_link"]
        assert "leads out of" in found["label_door"]
        assert [name for name, reason in found.items() if "READY" in reason] == ["good"]
        canary.check(repository.path)
        still_serves(server)


def test_what_is_no_file(repository: Repository, canary: Canary) -> None:
    """MR-16: devices, pipes, sockets and directories in place of configurations and label files; a link out."""
    secret = canary.file("secret.pbtxt")
    no_file: dict[str, Callable[[Path], None]] = {"directory": lambda path: path.mkdir(), "pipe": os.mkfifo}
    if os.getuid() == 0:  # nobody else may make one
        no_file["device"] = lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    leads_out: dict[str, Callable[[Path], None]] = {
        "link": lambda path: path.symlink_to(secret),
        "zero": lambda path: path.symlink_to("/dev/zero"),
        "round": lambda path: path.symlink_to(path),
    }
    for name, put in (no_file | leads_out).items():
        put(repository.model(f"config_{name}", None) / "config.pbtxt")
        put(repository.model(f"label_{name}", IDENTITY % "label_filename: 'labels'") / "labels")
    with Nereid(repository.path, QUIET) as server:
        canary.set(repository.path)
        found = reasons(server)
        for kind in ("config", "label"):
            for name in no_file:
                assert "is not a regular file" in found[f"{kind}_{name}"]
            for name in leads_out:
                assert "leads out of" in found[f"{kind}_{name}"]
        canary.check(repository.path)
        still_serves(server)


@pytest.mark.onnx
def test_model_files_that_are_pipes(repository: Repository) -> None:
    """Nobody writes into them: a backend that opened one would not come back."""
    for platform, file in (("onnxruntime_onnx", "model.onnx"), ("caffe2_netdef", "model.netdef")):
        os.mkfifo(repository.model(platform, f'platform: "{platform}"\n') / "1" / file)
    os.mkfifo(repository.model("python", IDENTITY.replace("identity", "python") % "") / "1" / "model.py")
    with Nereid(repository.path, QUIET) as server:
        found = reasons(server)
        for name, file in (("onnxruntime_onnx", "model.onnx"), ("caffe2_netdef", "model.netdef"), ("python", "model.py")):
            assert f"{name}/1/{file}' of model '{name}' is not a regular file" in found[name], found
        still_serves(server)


def sparse(path: Path, size: int) -> None:
    with path.open("ab") as file:
        file.truncate(size)


def test_sizes(repository: Repository) -> None:
    """A configuration of a gigabyte, labels of a gigabyte, fields without end: told at once, and no memory for it."""
    sparse(repository.model("gigabyte", IDENTITY % "") / "config.pbtxt", 1 << 30)
    sparse(repository.model("labels", IDENTITY % "label_filename: 'labels'") / "labels", 1 << 30)
    head = IDENTITY % ""
    texts = {
        "inputs": head + "input { name: 'a' data_type: TYPE_FP32 dims: 1 }\n" * 80000,
        "dims": head + "input { name: 'a' data_type: TYPE_FP32 dims: [ " + "1," * 1000000 + "1 ] }\n",
        "deep": head + "a { " * 1000000,
        "deep_known": head + "optimization { graph { " * 100000,
        "lists": head + "parameters { key: 'a' value: " + "[" * 1000000,
        "string": head + "parameters { key: 'a' value { string_value: '" + "x" * 3900000 + "' } }",
        "comment": head + "#" * (5 << 20),
        "numbers": head + "max_batch_size: " + "9" * 1000000,
    }
    for name, text in texts.items():
        repository.model(name, None)
        (repository.path / name / "config.pbtxt").write_text(text)
    with Nereid(repository.path, QUIET) as server:
        found = reasons(server)
        for name in ("gigabyte", "labels"):
            assert "bytes; at most" in found[name] or "expected at most" in found[name], found[name]
        bad = set(texts) - {"string"}
        assert [name for name in bad if found[name] == "READY"] == []
        assert all(len(found[name]) < 2000 for name in bad)
        for name in ("deep", "deep_known", "lists", "numbers"):
            assert f"{name}/config.pbtxt:" in found[name], found[name]
        assert procfs.memory(server.pid).peak < 512 << 20
        still_serves(server)


GROUPS = {
    "many": "instance_group { count: 10000 kind: KIND_CPU }",
    "most": "instance_group { count: 2147483647 kind: KIND_CPU }",
    "sum": "instance_group { count: 1000 kind: KIND_CPU }\n" * 12,
    "overflow": "instance_group { count: 2147483647 kind: KIND_CPU }\n" * 3,
    "groups": "instance_group { kind: KIND_CPU }\n" * 20000,
    "gpus": "instance_group { kind: KIND_GPU gpus: [ " + "0," * 100000 + "0 ] }",
    "batch": "max_batch_size: 2147483647 dynamic_batching { preferred_batch_size: [ 2147483647 ] }",
    "levels": "max_batch_size: 8 dynamic_batching { priority_levels: 18446744073709551615 default_priority_level: 1 }",
    "warmup": "model_warmup { name: 'a' batch_size: 4294967295 inputs { key: 'INPUT0' value { data_type: TYPE_FP32 dims: 1 zero_data: true } } }",
    "warmup_size": "model_warmup { name: 'a' batch_size: 1 inputs { key: 'INPUT0' value { data_type: TYPE_FP32 dims: 4611686018427387904 zero_data: true } } }",
    "warmup_memory": "model_warmup { name: 'a' batch_size: 1 inputs { key: 'INPUT0' value { data_type: TYPE_FP32 dims: 109951162777 zero_data: true } } }",
}


def test_numbers(repository: Repository) -> None:
    """PB-16: ten thousand instances and other numbers that nobody can mean."""
    for name, more in GROUPS.items():
        repository.model(name, IDENTITY % "" + more + "\n")
    with Nereid(repository.path, QUIET) as server:
        found = reasons(server)
        served = {name for name in GROUPS if found[name] == "READY"}
        assert served == {"batch", "levels"}
        for name in ("many", "most", "sum", "overflow", "groups"):
            assert "at most 4096 are possible" in found[name]
        assert procfs.threads(server.pid) < 64
        assert procfs.memory(server.pid).peak < 512 << 20
        still_serves(server)


def test_the_same_over_the_network(repository: Repository) -> None:
    """RX-29: configurations that come with a load are held to the same rules."""
    base = {"backend": "identity"}
    tensor = {"name": "a", "data_type": "TYPE_FP32", "dims": [1]}
    bodies = {
        "many": base | {"instance_group": [{"count": 10000, "kind": "KIND_CPU"}]},
        "inputs": base | {"input": [tensor] * 20000},
        "label": base | {"output": [tensor | {"label_filename": "../../../etc/passwd"}]},
        "name": base | {"name": "../x"},
    }
    texts = {name: json.dumps(body) for name, body in bodies.items()}
    texts["deep"] = '{"input":' * 100000
    texts["arrays"] = "[" * 1000000
    texts["large"] = json.dumps(base | {"parameters": {"a": {"string_value": "x" * (5 << 20)}}})
    with Nereid(repository.path, EXPLICIT | {"load-model": "good"}) as server:
        for name, text in texts.items():
            got = load(server, "good", json.dumps({"parameters": {"config": text}}).encode())
            assert got.status == 400, (name, got.body[:300])
            assert len(got.json()["error"]) < 2000
        still_serves(server)


def awkward_names() -> Iterator[bytes]:
    yield from (b"new\nline", b'quote"back\\slash', b"caf\xc3\xa9", b"not\xffutf8", b"tab\t", b"-option", b"%2e%2e", b"a b", b"*")


def test_directories_with_awkward_names(repository: Repository) -> None:
    """MR-15, MR-25, MR-26: the index stays JSON, the log stays lines, and what is no version is no version."""
    for name in awkward_names():
        place = os.fsencode(repository.path) + b"/" + name
        os.makedirs(place + b"/1")
        Path(os.fsdecode(place + b"/config.pbtxt")).write_text(IDENTITY % "")
    versions = repository.path / "good"
    for name in ("01", "0", "-1", "1a", "99999999999999999999999", "9223372036854775808", "+2", "1.5", "0x10", " 3"):
        (versions / name).mkdir()
    (versions / "7").symlink_to(versions / "7")
    (versions / "config.pbtxt").write_text((versions / "config.pbtxt").read_text() + "version_policy { all { } }\n")
    with Nereid(repository.path, QUIET) as server:
        rows = rawhttp.post(server.http, "/v2/repository/index", b"").json()
        assert [row["version"] for row in rows if row["name"] == "good"] == ["1"]
        assert {row["name"] for row in rows} == {name.decode() for name in awkward_names() if b"\xff" not in name} | {"good"}
        with rawgrpc.Channel(server.grpc) as channel:
            answer = channel.call("RepositoryIndex", pb.RepositoryIndexRequest())
        assert answer.code == "OK"
        assert len(answer.parse(pb.RepositoryIndexResponse).models) == len(rows)
        for line in server.process.log().splitlines():
            assert line[:1] in "IWE+| " or not line, line
        told = f"'{repository.path}/not\\\\xffutf8' is left out: its name is not UTF-8"
        assert server.process.log().count(told) == 1  # although the repository was read again for the index
        still_serves(server)
