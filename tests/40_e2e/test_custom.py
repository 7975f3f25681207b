"""Custom backends of the first generation (custom.h)."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http
from harness import paths, rawhttp
from harness.repository import Repository
from harness.servers import Nereid
from tritonclient.utils import InferenceServerException

EXPLICIT: dict[str, str | list[str]] = {"model-control-mode": "explicit", "log-verbose": "1"}
LENIENT: dict[str, str | list[str]] = {"exit-on-error": "false", "strict-readiness": "false"}


def _library(name: str) -> Path:
    return paths.need(paths.BUILD / "tests" / "custom" / f"lib{name}.so")


def _tensors(kind: str, names: list[str], datatype: str = "TYPE_INT32", dims: str = "-1") -> str:
    return "".join(f'{kind} [ {{ name: "{n}" data_type: {datatype} dims: [ {dims} ] }} ]\n' for n in names)


def _add(repository: Repository, name: str, library: str, config: str, file: str = "libcustom.so") -> Path:
    folder = repository.model(name, f'name: "{name}"\nplatform: "custom"\n{config}')
    shutil.copy(_library(library), folder / "1" / file)
    return folder


ADDSUB = _tensors("input", ["INPUT0", "INPUT1"]) + _tensors("output", ["OUTPUT0", "OUTPUT1", "OUTPUT2"])
DESCRIBE = _tensors("input", ["IN"], dims="1") + _tensors("output", ["OUT"], "TYPE_STRING")
FAULTY = _tensors("input", ["IN"], dims="1") + _tensors("output", ["OUT", "UNWANTED"], dims="1")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "models")


@pytest.fixture
def serve(repository: Repository) -> Iterator[Callable[..., Nereid]]:
    """Starts a server once the repository is written."""
    started: list[Nereid] = []

    def start(**options: str | list[str]) -> Nereid:
        started.append(Nereid(repository.path, options).start())
        return started[0]

    yield start
    for server in started:
        server.stop()


def _ask(
    server: Nereid, model: str, inputs: dict[str, np.ndarray], outputs: list[str] | None = None
) -> tritonclient.http.InferResult:
    with tritonclient.http.InferenceServerClient(server.http) as client:
        tensors = []
        for name, values in inputs.items():
            tensor = tritonclient.http.InferInput(name, list(values.shape), "INT32")
            tensor.set_data_from_numpy(values)
            tensors.append(tensor)
        wanted = [tritonclient.http.InferRequestedOutput(name) for name in outputs] if outputs else None
        return client.infer(model, tensors, outputs=wanted)


def _addsub(server: Nereid, model: str, shape: tuple[int, ...], outputs: list[str] | None = None) -> Any:
    a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    b = np.full(shape, 3, np.int32)
    result = _ask(server, model, {"INPUT0": a, "INPUT1": b}, outputs)
    if outputs is None or "OUTPUT0" in outputs:
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
    if outputs is None or "OUTPUT1" in outputs:
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)
    return result


def test_serves(repository: Repository, serve: Callable[..., Nereid]) -> None:
    """MR-22, MR-63, MR-64, MR-65, MR-69, MR-70: the library in the version's directory, under its default name or another."""
    _add(repository, "plain", "addsub", ADDSUB)
    _add(repository, "batched", "addsub", ADDSUB + "max_batch_size: 8\n")
    _add(repository, "named", "addsub", ADDSUB + 'default_model_filename: "mine.so"\n', file="mine.so")
    server = serve()
    for shape in ((1,), (5,), (0,)):
        _addsub(server, "plain", shape)
        _addsub(server, "named", shape)
    for shape2 in ((1, 4), (8, 2)):
        _addsub(server, "batched", shape2)
    assert server.process.log().count("successfully loaded") == 3


def test_libraries_set_variables_while_others_read_them(repository: Repository, serve: Callable[..., Nereid]) -> None:
    """As the runtimes of models do that are loaded at once: nobody crashes, each variable is found, each process is started."""
    _add(repository, "environment", "environment", FAULTY)
    server = serve()
    assert _ask(server, "environment", {"IN": np.array([7], np.int32)}, ["OUT"]).as_numpy("OUT") == [7]


def test_outputs_are_made_as_they_are_asked_for(repository: Repository, serve: Callable[..., Nereid]) -> None:
    _add(repository, "plain", "addsub", ADDSUB)
    server = serve()
    only = _addsub(server, "plain", (3,), ["OUTPUT1"]).get_response()["outputs"]
    assert [output["name"] for output in only] == ["OUTPUT1"]
    assert len(_addsub(server, "plain", (3,)).get_response()["outputs"]) == 3


def test_requests_are_batched(repository: Repository, serve: Callable[..., Nereid]) -> None:
    """Requests of several clients become payloads of one execution; rows are kept apart."""
    delay = "dynamic_batching { preferred_batch_size: [ 6 ] max_queue_delay_microseconds: 30000000 }\n"
    _add(repository, "batched", "addsub", ADDSUB + "max_batch_size: 8\n" + delay)
    server = serve()
    together: list[int] = []

    def run(rows: int) -> None:
        result = _addsub(server, "batched", (rows, 2))
        together.extend(result.as_numpy("OUTPUT2").flatten().tolist())

    threads = [threading.Thread(target=run, args=(rows,)) for rows in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == [3] * 6
    statistics = server.statistics("batched")
    assert statistics["execution_count"] == 1 and statistics["inference_count"] == 6
    assert statistics["inference_stats"]["success"]["count"] == 3


def test_instances(repository: Repository, serve: Callable[..., Nereid]) -> None:
    group = "instance_group [ { count: 3 kind: KIND_CPU } ]\n"
    _add(repository, "plain", "addsub", ADDSUB + group)
    server = serve()
    threads = [threading.Thread(target=_addsub, args=(server, "plain", (100,))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statistics = server.statistics("plain")
    assert statistics["inference_stats"]["success"]["count"] == 12


def test_what_a_library_is_told(repository: Repository, serve: Callable[..., Nereid]) -> None:
    """PB-12: Version 2: instance, device, server parameters and the configuration; a library without a context."""
    _add(repository, "told", "describe", DESCRIBE)
    server = serve()
    words = _ask(server, "told", {"IN": np.ones(1, np.int32)}).as_numpy("OUT").tolist()
    version = json.loads(rawhttp.get(server.http, "/v2").body)["version"]
    repository_path = str(repository.path.resolve())
    assert [word.decode() for word in words] == [
        "instance=told_0",
        "device=-1",
        f"version={version}",
        f"repository={repository_path}",
        "config=told",
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (11, "payload error for 'faulty_0': (11) told to fail this request"),
        (12, "execute error for 'faulty_0': (12) told to fail the batch"),
        (13, "payload error for 'faulty_0': (13) <no error string>"),
        (14, "payload error for 'faulty_0': (11) told to fail this request"),
        (15, "output 'OUT' has 1 elements of 4 bytes, and its size is given as 400 bytes"),
        (16, "output 'OUT' has an impossible shape"),
        (17, "output 'OUT' has an impossible shape"),
        (18, "output 'OUT' was asked for twice"),
    ],
)
def test_errors_of_execution(
    repository: Repository, serve: Callable[..., Nereid], value: int, message: str
) -> None:
    _add(repository, "faulty", "faulty", FAULTY)
    server = serve()
    with pytest.raises(InferenceServerException, match="^.*$") as caught:
        _ask(server, "faulty", {"IN": np.array([value], np.int32)}, ["OUT"])
    assert message in str(caught.value)
    good = _ask(server, "faulty", {"IN": np.array([3], np.int32)}, ["OUT"])
    assert good.as_numpy("OUT").tolist() == [3]
    statistics = server.statistics("faulty")
    assert statistics["inference_stats"]["fail"]["count"] == 1
    assert statistics["inference_stats"]["success"]["count"] == 1


def test_an_output_that_was_not_made_is_missing(repository: Repository, serve: Callable[..., Nereid]) -> None:
    _add(repository, "faulty", "faulty", FAULTY)
    server = serve()
    answer = _ask(server, "faulty", {"IN": np.array([19], np.int32)}, ["OUT"]).get_response()
    assert not answer.get("outputs")


@pytest.mark.parametrize(
    ("model", "library", "extra", "message"),
    [
        ("initialize", "faulty", "", "initialize error for 'initialize': (6) told to fail in CustomInitialize"),
        ("mute", "faulty", "", "initialize error for 'mute': failed to create instance, error code: 5"),
        ("future", "future", "", "has version 3 of the interface of custom.h, expected 1 or 2"),
        ("partial", "partial", "", "unable to find 'CustomExecute' entrypoint in custom library"),
        ("nothing", "", "", "unable to find custom library"),
        ("other", "addsub", 'default_model_filename: "libother.so"\n', "libother.so' of model 'other'"),
        ("outside", "addsub", 'default_model_filename: "../1/libcustom.so"\n', "must stay inside the model's directory"),
        ("gpu", "addsub", "instance_group [ { kind: KIND_GPU } ]\n", "GPU"),
        (
            "capability",
            "",
            'cc_model_filenames [ { key: "7.5" value: "libcustom75.so" } ]\n',
            "those of cc_model_filenames are for GPUs, and custom backends run on the CPU only",
        ),
    ],
)
def test_what_does_not_load(
    repository: Repository, serve: Callable[..., Nereid], model: str, library: str, extra: str, message: str
) -> None:
    """MR-64, MR-69; refuses MR-66, PB-180: the reason names what is wrong; other models are served."""
    if library:
        _add(repository, model, library, FAULTY + extra)
    else:
        repository.model(model, f'name: "{model}"\nplatform: "custom"\n{FAULTY}{extra}')
    _add(repository, "plain", "addsub", ADDSUB)
    server = serve(**LENIENT)
    index = json.loads(rawhttp.post(server.http, "/v2/repository/index", b"").body)
    reason = next(entry["reason"] for entry in index if entry["name"] == model)
    assert message in reason
    _addsub(server, "plain", (2,))


def test_a_library_without_the_interface(repository: Repository, serve: Callable[..., Nereid]) -> None:
    """MR-69."""
    folder = repository.model("other", f'name: "other"\nplatform: "custom"\n{FAULTY}')
    shutil.copy(paths.backends() / "identity" / "libtriton_identity.so", folder / "1" / "libcustom.so")
    server = serve(**LENIENT)
    index = json.loads(rawhttp.post(server.http, "/v2/repository/index", b"").body)
    assert "unable to find 'CustomInitialize' entrypoint in custom library" in index[0]["reason"]


def test_configuration_is_needed(repository: Repository, serve: Callable[..., Nereid]) -> None:
    """MR-17, MC-01, MC-42: a library alone does not make a custom model."""
    folder = repository.model("bare", None)
    shutil.copy(_library("addsub"), folder / "1" / "libcustom.so")
    server = serve(**LENIENT)
    index = json.loads(rawhttp.post(server.http, "/v2/repository/index", b"").body)
    assert index[0]["name"] == "bare" and index[0].get("state") != "READY"


def test_unloading_unmaps_the_library(repository: Repository, serve: Callable[..., Nereid]) -> None:
    """So that a library can be replaced: the next load runs the new one."""
    folder = _add(repository, "changes", "addsub", ADDSUB)
    server = serve(**EXPLICIT, **{"load-model": "changes"})
    maps = Path(f"/proc/{server.pid}/maps")
    library = str(folder / "1" / "libcustom.so")
    _addsub(server, "changes", (2,))
    assert library in maps.read_text()
    rawhttp.post(server.http, "/v2/repository/models/changes/unload", b"")
    server.process.wait_until(lambda: library not in maps.read_text(), 30)
    (folder / "config.pbtxt").write_text(f'name: "changes"\nplatform: "custom"\n{DESCRIBE}')
    shutil.copy(_library("describe"), library)
    assert rawhttp.post(server.http, "/v2/repository/models/changes/load", b"").status == 200
    assert _ask(server, "changes", {"IN": np.ones(1, np.int32)}).as_numpy("OUT").size == 5


def test_a_finalizer_that_fails_is_logged(repository: Repository, serve: Callable[..., Nereid]) -> None:
    _add(repository, "finalize", "faulty", FAULTY)
    server = serve(**EXPLICIT, **{"load-model": "finalize"})
    rawhttp.post(server.http, "/v2/repository/models/finalize/unload", b"")
    line = "model 'finalize', instance 'finalize_0': CustomFinalize returned an error: (7) told to fail in CustomFinalize"
    server.process.wait_until(lambda: line in server.process.log(), 30)
