"""TensorFlow's models on GPUs, with stand-ins for CUDA's driver and for a TensorFlow that has CUDA (tests/cuda): where operations are asked to run, which
sessions are made and who shares them, and what is refused. The stand-in computes on the host: this says nothing of what a GPU does."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import paths, rawhttp
from harness.gpus import Gpus
from harness.repository import Repository
from harness.servers import Nereid, Server

import tensorflow_files as files
from clients import ask, at_once, config, load, parameters, tensor

HERE = paths.ROOT / "tests" / "cuda" / "tensorflow" / "standin_tensorflow.c"
GRAPH, SAVED = 'platform: "tensorflow_graphdef"\n', 'platform: "tensorflow_savedmodel"\n'
DENSE = "max_batch_size: 16\n" + tensor("input", "x", "FP32", [16]) + tensor("output", "logits", "FP32", [8])
COUNTER = tensor("input", "x", "FP32", [1]) + tensor("output", "y", "FP32", [1]) + parameters({"TF_INIT_OPS_FILE": "init_ops.json"})
NO_GPUS = "0a03" + b"GPU".hex() + "1000"  # the entry of device_count: the key GPU, the value 0
POOL = b"nereid_devices".hex()
SAME = {"x": ("x:0", "FP32", [-1])}, {"y": ("y:0", "FP32", [-1])}
INIT = "__saved_model_init_op"
ROWS = np.arange(32, dtype=np.float32).reshape(2, 16) / 32


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("standin") / "standin_tensorflow.so"
    argv = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", f"-I{paths.ROOT / 'backends'}"]
    subprocess.run([*argv, str(HERE), "-o", str(made)], check=True)
    return made


class Place:
    """A repository, two GPUs, and what the stand-in tells of sessions. gpus: how many TensorFlow sees; None = it has no CUDA."""

    def __init__(self, folder: Path, standin: Path, gpus: int | None = 2):
        self.repository = Repository(folder / "models")
        self._report = folder / "sessions"
        self.env = Gpus(folder, "8.0:256,9.0:256").env | {"LD_PRELOAD": str(standin), "NEREID_TENSORFLOW_REPORT": str(self._report)}
        if gpus is not None:
            self.env["NEREID_TENSORFLOW_GPUS"] = str(gpus)
        if paths.BUILD != paths.RELEASE:
            self.env["ASAN_OPTIONS"] = "verify_asan_link_order=0:intercept_tls_get_addr=0"

    def graph(self, name: str, groups: str, more: str = "") -> None:
        files.save_graph(files.dense_graph(), self.repository.model(name, GRAPH + DENSE + more + groups))

    def server(self, **options: str) -> Nereid:
        return Nereid(self.repository.path, {"model-control-mode": "explicit"} | options, env=self.env)

    def told(self, what: str) -> list[str]:
        """What follows this word, of each line that begins with it."""
        lines = self._report.read_text().splitlines() if self._report.exists() else []
        return [line.removeprefix(what).strip() for line in lines if line.split(" ")[0] == what]

    def sessions(self) -> list[str]:
        """The devices that operations of each session ask for. The session of the look for GPUs has none."""
        return [devices for devices in self.told("session") if devices]


def groups(*kinds: str) -> str:
    return f"instance_group [ {', '.join(f'{{ {kind} }}' for kind in kinds)} ]\n"


def gpu(*numbers: int, count: int = 1) -> str:
    return f"count: {count} kind: KIND_GPU gpus: {list(numbers)}"


def right(server: Server, model: str) -> None:
    np.testing.assert_allclose(ask(server, "grpc", model, {"x": ROWS})["logits"], files.dense_answers(ROWS), atol=1e-5)


def test_a_graph_goes_where_its_instance_is(standin: Path, tmp_path: Path) -> None:
    """Without a kind on each GPU; TensorFlow is asked for its GPUs once, and of a model for GPUs there is no session elsewhere."""
    place = Place(tmp_path, standin)
    place.graph("auto", "")
    place.graph("second", groups(gpu(1, count=2)))
    with place.server() as server:
        assert load(server, "auto") == (200, "")
        assert sorted(place.sessions()) == ["/device:GPU:0", "/device:GPU:1"]
        assert load(server, "second") == (200, "")
        assert sorted(place.sessions()) == ["/device:GPU:0", *["/device:GPU:1"] * 3]
        assert len(place.told("listed")) == 1
        for model in ("auto", "second"):
            right(server, model)
        assert all(POOL in settings and NO_GPUS not in settings for settings in place.told("config"))


def test_the_cpu_and_what_tensorflow_places(standin: Path, tmp_path: Path) -> None:
    """Their operations ask for no device. On the CPU a session has no GPU; neither makes the backend look for GPUs."""
    place = Place(tmp_path, standin)
    place.graph("host", groups("count: 1 kind: KIND_CPU"))
    place.graph("placed", groups("count: 1 kind: KIND_MODEL"))
    with place.server() as server:
        assert load(server, "host") == (200, "")
        (settings,) = place.told("config")
        assert NO_GPUS in settings and POOL not in settings
        assert load(server, "placed") == (200, "")
        assert NO_GPUS not in place.told("config")[1]
        assert place.sessions() == ["-", "-"]
        assert not place.told("listed")
        for model in ("host", "placed"):
            right(server, model)


def test_both_kinds_in_one_model(standin: Path, tmp_path: Path) -> None:
    place = Place(tmp_path, standin)
    place.graph("both", groups("count: 1 kind: KIND_CPU", gpu(1)))
    with place.server() as server:
        assert load(server, "both") == (200, "")
        assert sorted(place.sessions()) == ["-", "/device:GPU:1"]
        assert sum(NO_GPUS in settings for settings in place.told("config")) == 1
        at_once(8, lambda _: right(server, "both"))


def test_instances_of_one_gpu_share_a_session(standin: Path, tmp_path: Path) -> None:
    """And never those of two: each GPU counts for itself."""
    place = Place(tmp_path, standin)
    for name, numbers in (("one", [1]), ("two", [0, 1])):
        folder = place.repository.model(name, GRAPH + COUNTER + parameters({"MAX_SESSION_SHARE_COUNT": "6"}) + groups(gpu(*numbers, count=3)))
        files.save_graph(files.counter(), folder)
        (folder / "init_ops.json").write_text(json.dumps({"init_ops": ["init"]}))
    one = np.ones(1, np.float32)
    with place.server() as server:
        assert load(server, "one") == (200, "")
        assert place.sessions() == ["/device:GPU:1"]
        seen: list[float] = []
        at_once(4, lambda _: [seen.append(float(ask(server, "grpc", "one", {"x": one})["y"][0])) for _ in range(5)] and None)
        assert max(seen) == 120
        assert load(server, "two") == (200, "")
        assert sorted(place.sessions()) == ["/device:GPU:0", "/device:GPU:1", "/device:GPU:1"]
    assert len(place.told("deleted")) == len(place.told("session"))


@pytest.mark.parametrize("number", [0, 1])
def test_a_saved_model_on_each_gpu(standin: Path, tmp_path: Path, number: int) -> None:
    """The first is TensorFlow's own choice and its loader's; on another the backend restores variables and initializes, to the same answers."""
    place = Place(tmp_path, standin)
    on = groups(gpu(number))
    files.save(files.dense_graph(), place.repository.model("dense", SAVED + on), *files.DENSE)
    files.save_with_variable(place.repository.model("variable", SAVED + on), 2.5)
    called = {"x": ("serving_x:0", "FP32", [-1])}, {"y": ("StatefulPartitionedCall:0", "FP32", [-1])}
    files.save(files.in_function(), place.repository.model("in_function", SAVED + "max_batch_size: 4\n" + on), *called)
    files.several(place.repository.model("negative", SAVED + on + parameters({"TF_GRAPH_TAG": "negative"})))
    for old in (False, True):
        files.reads_file(place.repository.model(f"reads_{old}", SAVED + on), b"of the file", old)
    models = ["dense", "variable", "in_function", "negative", "reads_False", "reads_True"]
    with place.server() as server:
        for model in models:
            assert load(server, model) == (200, "")
        assert place.told("loaded") == ([""] * len(models) if number == 0 else [])
        assert place.sessions() == ([] if number == 0 else ["/device:GPU:1"] * len(models))
        right(server, "dense")
        x = np.array([[2], [4]], np.float32)
        assert ask(server, "grpc", "variable", {"x": x})["y"].tolist() == [[5], [10]]
        assert ask(server, "grpc", "in_function", {"x": x})["y"].tolist() == [[7], [13]]
        assert ask(server, "grpc", "negative", {"x": x})["y"].tolist() == [[-2], [-4]]
        for old in (False, True):
            assert ask(server, "grpc", f"reads_{old}", {"x": x[0]})["words"].tolist() == [b"of the file"]
        assert config(server, "dense")["max_batch_size"] == 4


@pytest.mark.parametrize("number", [0, 1])
def test_what_a_saved_model_holds_besides(standin: Path, tmp_path: Path, number: int) -> None:
    """A group, which any reader skips, before what initializes; a file of variables that nothing restores."""
    place = Place(tmp_path, standin)
    group = bytes([0xA3, 6, 8, 1, 0xA4, 6])  # number 100: start, a number, end
    for old in (False, True):
        files.reads_file(place.repository.model(f"reads_{old}", SAVED + groups(gpu(number))), b"of the file", old, group)
    saved = files.save(files.same("FP32", [-1]), place.repository.model("same", SAVED + groups(gpu(number))), *SAME)
    (saved / "variables").mkdir()
    (saved / "variables" / "variables.index").write_bytes(b"")
    x = np.array([[2]], np.float32)
    with place.server() as server:
        for old in (False, True):
            assert load(server, f"reads_{old}") == (200, "")
            assert ask(server, "grpc", f"reads_{old}", {"x": x[0]})["words"].tolist() == [b"of the file"]
        assert load(server, "same") == (200, "")
        assert ask(server, "grpc", "same", {"x": x})["y"].tolist() == [[2]]


def _collection(name: str, content: bytes) -> bytes:
    return files.message(4, files.message(1, name) + files.message(2, content))


def _prepares(*names: str) -> bytes:
    return _collection("legacy_init_op", files.message(1, b"".join(files.message(1, name) for name in names)))


def _old_asset(content: bytes) -> bytes:
    of_any = files.message(1, "type.googleapis.com/tensorflow.AssetFileDef") + files.message(2, content)
    return _collection("saved_model_assets", files.message(5, files.message(1, of_any)))


def _init(content: bytes) -> bytes:
    return files.message(5, files.message(1, INIT) + files.message(2, content))


def _asset(source: bytes, file: bytes = b"f") -> bytes:
    return files.message(6, files.message(1, files.message(1, source)) + files.message(2, file))


MALFORMED = "saved_model.pb' is malformed: "


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        (b"\x0a\xff\xff", MALFORMED), (b"\x0b", MALFORMED), (files.message(6, b"\xff"), MALFORMED),
        (_old_asset(b"\xff"), MALFORMED),
        (_asset(b"\xff\xfe"), MALFORMED), (_asset(b"x:0", b"\xff"), MALFORMED),
        (_init(files.message(2, files.message(1, INIT) + files.message(2, files.message(1, b"\xc3(")))), MALFORMED),
        (files.message(5, files.message(1, "other") + files.message(2, files.message(1, files.message(1, b"\xff")))), MALFORMED),
        (_prepares("i1", "i2"), "expected exactly one operation that prepares it, found 2"), (_prepares(), "expected exactly one operation that prepares it, found 0"),
        (_init(b""), f"the signature '{INIT}' has no output of that name"),
    ],
    ids=["breaks_off", "group", "asset", "old_asset", "asset_text", "file_text", "init_text", "input_text", "two", "none", "no_output"],
)
def test_what_tensorflow_refuses_is_refused_there(standin: Path, tmp_path: Path, more: bytes, says: str, number: int) -> None:
    """And the server's errors can be read by any client."""
    place = Place(tmp_path, standin)
    graph = files.same("FP32", [-1])
    for name in ("i1", "i2"):
        graph.add(name, "NoOp")
    meta = files.meta_graph(graph, {"serving_default": files.signature(*SAME)}) + more
    files.write_saved_model(place.repository.model("bad", SAVED + groups(gpu(number))) / "1" / "model.savedmodel", meta)
    with place.server() as server:
        status, error = load(server, "bad")
        assert status == 400 and "'bad'" in error and (number == 0 or says in error)
        (listed,) = rawhttp.post(server.http, "/v2/repository/index", b"{}").json()
        assert number == 0 or says in listed["reason"]


def _half(folder: Path) -> None:
    file = folder / "saved_model.pb"
    file.write_bytes(file.read_bytes()[:200])


def _directory(folder: Path) -> None:
    (folder / "saved_model.pb").unlink()
    (folder / "saved_model.pb").mkdir()


def _no_variables(folder: Path) -> None:
    (folder / "variables" / "variables.data-00000-of-00001").unlink()


def _nobody_restores(folder: Path) -> None:
    file = folder / "saved_model.pb"
    file.write_bytes(file.read_bytes().replace(files.message(3, "restore_all"), files.message(3, "restore_ill")))


def _no_path(folder: Path) -> None:
    file = folder / "saved_model.pb"
    file.write_bytes(file.read_bytes().replace(files.message(1, "file:0"), files.message(1, "fine:0")))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_half, MALFORMED), (_no_variables, "variables.data-00000-of-00001"),
        (_nobody_restores, "the graph has no operation 'restore_ill'"), (_no_path, "the graph has no tensor 'fine:0'"),
        (lambda folder: (folder / "saved_model.pb").unlink(), "saved_model.pb"), (_directory, "saved_model.pb' of model 'bad' is not a regular file"),
    ],
)
def test_a_saved_model_that_does_not_load_there(standin: Path, tmp_path: Path, spoil: object, says: str) -> None:
    place = Place(tmp_path, standin)
    folder = place.repository.model("bad", SAVED + groups(gpu(1)))
    files.save_with_variable(folder, 2.5)
    assert callable(spoil)
    spoil(folder / "1" / "model.savedmodel")
    with place.server() as server:
        status, error = load(server, "bad")
        assert status == 400 and "'bad'" in error and says in error
    assert len(place.told("deleted")) == len(place.told("session"))


@pytest.mark.parametrize(
    ("gpus", "says"),
    [
        (None, "sees no GPU, because it was built without CUDA; use KIND_CPU or KIND_MODEL, or give the backend 'tensorflow' libraries that have CUDA"),
        (
            0,
            "has CUDA and sees no GPU; its lines on the server's standard error say why. Use KIND_CPU or KIND_MODEL, or start the server again "
            "once there is one: TensorFlow looks for GPUs once in a process",
        ),
        (1, "GPU 1 is not among the 1 that TensorFlow sees; name others in 'gpus'"),
    ],
)
def test_a_tensorflow_without_that_gpu(standin: Path, tmp_path: Path, gpus: int | None, says: str) -> None:
    """Nothing is read before that. A model without a kind is on the CPU where there is no CUDA, and the others go on."""
    place = Place(tmp_path, standin, gpus)
    place.graph("asked", groups(gpu(1)))
    place.graph("mixed", groups("count: 1 kind: KIND_CPU", gpu(1)))
    place.graph("auto", "")
    place.graph("host", groups("count: 1 kind: KIND_CPU"))
    with place.server() as server:
        for model in ("asked", "mixed"):
            status, error = load(server, model)
            assert status == 400 and f"'{model}'" in error and says in error
            assert "/device:GPU:1" not in place.sessions()
        assert load(server, "host") == (200, "")
        right(server, "host")
        assert load(server, "auto")[0] == (200 if gpus is None else 400)
        assert len(place.told("listed")) == (0 if gpus is None else 1)
        found = rawhttp.get(server.http, "/v2/models/host/config").json()["instance_group"]
        assert [each["kind"] for each in found] == ["KIND_CPU"]


def test_tensors_stay_on_the_host(standin: Path, tmp_path: Path) -> None:
    """`gpu_io` is taken, and a line says that it changes nothing."""
    place = Place(tmp_path, standin)
    more = 'optimization { execution_accelerators { gpu_execution_accelerator: [ { name: "gpu_io" } ] } }\n'
    place.graph("direct", groups(gpu(0)), more)
    with place.server() as server:
        assert load(server, "direct") == (200, "")
        right(server, "direct")
        assert "model 'direct': 'gpu_io' changes nothing: inputs and outputs of TensorFlow are in the memory of the host" in server.process.log()
