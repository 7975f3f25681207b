"""Models on GPUs, with a stand-in for CUDA's driver (tests/cuda): where instances are put, and tensors that go there and back. On a
machine without a GPU, both servers are asked."""

import contextlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from conftest import BOTH
from harness import cuda, gpus, paths, rawhttp, regions
from harness.cases import claims
from harness.gpus import Gpus
from harness.process import ServerFailed
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from tritonclient.utils import InferenceServerException
from witness import Board, ask_many, compile_backend, group, resource

pytestmark = pytest.mark.threadless

# Three that may be used, and one whose compute capability is below 6.0.
DEVICES = "8.0:64,5.0:64,7.5:64,9.0:64"
EXPLICIT = {"model-control-mode": "explicit"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "models")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_backend(tmp_path_factory.mktemp("places"), "places")


def placed(backend: Path, repository: Repository, env: dict[str, str], config: str, wishes: str = "", **options: str) -> list[str]:
    """What the instances of a model tell, sorted."""
    repository.model("m", f'name: "m"\nbackend: "places"\n{PAIR}{config}')
    told = repository.path.parent / "places"
    env = env | {"PLACES": str(told), "PLACES_WISHES": wishes}
    with Nereid(repository.path, {"backend-directory": str(backend)} | options, env=env):
        return sorted(told.read_text().splitlines())


PAIR = "".join(f'{way} [ {{ name: "X" data_type: TYPE_FP32 dims: [ 1 ] }} ]\n' for way in ("input", "output"))


def on_gpu(name: str, device: int, policy: str = "") -> str:
    return f"{name} GPU {device} {policy or f'gpu_{device}'}"


ALL = (0, 2, 3)
PLACES = {
    "nothing said": claims("MC-86, PB-178, X-20, X-28", ("", [on_gpu("m_0", d) for d in ALL])),
    "a count": claims("PB-05, PB-16, PB-19, X-28", ("instance_group [ { count: 2 } ]", [on_gpu(f"m_0_{i}", d) for i in (0, 1) for d in ALL])),
    "a kind": claims("MC-87, MC-88, PB-14, PB-16, PB-19, X-28", (
        "instance_group [ { count: 2 kind: KIND_GPU } ]", [on_gpu(f"m_0_{i}", d) for i in (0, 1) for d in ALL]
    )),
    "chosen": claims("MC-87, MC-89, PB-14, PB-18, X-28", (
        "instance_group [ { count: 1 kind: KIND_GPU gpus: [ 0 ] }, { count: 2 kind: KIND_GPU gpus: [ 2, 3 ] } ]",
        [on_gpu("m_0_0", 0)] + [on_gpu(f"m_1_{i}", d) for i in (0, 1) for d in (2, 3)],
    )),
    "auto": claims("PB-05, PB-14, PB-18", ("instance_group [ { name: 'g' gpus: [ 3, 0 ] } ]", [on_gpu("g_0", 0), on_gpu("g_0", 3)])),
    "the CPU": claims("MC-90, PB-16", ("instance_group [ { count: 2 kind: KIND_CPU } ]", ["m_0_0 CPU 0 cpu", "m_0_1 CPU 0 cpu"])),
    "the model": ("instance_group [ { count: 2 kind: KIND_MODEL } ]", ["m_0_0 MODEL 0 model", "m_0_1 MODEL 0 model"]),
    "a policy": ("instance_group [ { kind: KIND_GPU gpus: 2 host_policy: 'p' } ]", [on_gpu("m_0_0", 2, "p")]),
    "secondary devices": (
        "instance_group [ { kind: KIND_GPU gpus: 0 secondary_devices [ { kind: KIND_NVDLA device_id: 1 } ] } ]",
        [f"{on_gpu('m_0_0', 0)} KIND_NVDLA:1"],
    ),
}


@pytest.mark.parametrize("case", PLACES)
def test_placement(case: str, places: Path, repository: Repository, tmp_path: Path) -> None:
    """One instance on each GPU that may be used, or as the groups say."""
    config, expected = PLACES[case]
    devices = Gpus(tmp_path, DEVICES)
    assert placed(places, repository, devices.env, config) == sorted(expected)


def test_who_wishes_for_the_cpu_is_put_there(places: Path, repository: Repository, tmp_path: Path) -> None:
    """The driver is not even looked for."""
    devices = Gpus(tmp_path, DEVICES)
    assert placed(places, repository, devices.env, "instance_group [ { count: 2 } ]", wishes="1:0") == [
        "m_0_0 CPU 0 cpu", "m_0_1 CPU 0 cpu",
    ]
    assert not devices.reports()


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ("2:2:0:1", [on_gpu("m_0", 0), on_gpu("m_1", 0)]),  # GPU 1 may not be used
        ("1:3", ["m_0 CPU 0 cpu", "m_1 CPU 0 cpu", "m_2 CPU 0 cpu"]),
        ("0:2:2", [on_gpu("m_0", 2), on_gpu("m_1", 2)]),
    ],
)
def test_wishes_of_a_backend(wishes: str, expected: list[str], places: Path, repository: Repository, tmp_path: Path) -> None:
    assert placed(places, repository, Gpus(tmp_path, DEVICES).env, "", wishes=wishes) == expected


def test_least_compute_capability(places: Path, repository: Repository, tmp_path: Path) -> None:
    env = Gpus(tmp_path, DEVICES).env
    assert placed(places, repository, env, "", **{"min-supported-compute-capability": "8.0"}) == [on_gpu("m_0", 0), on_gpu("m_0", 3)]


def refused(repository: Repository, env: dict[str, str], options: dict[str, Any] | None = None) -> str:
    server = Nereid(repository.path, options or {}, env=env, wait_ready=False).start()
    server.process.ends(1)
    text = server.process.log()
    server.kill()
    return text


def test_groups_that_cannot_be(repository: Repository, tmp_path: Path) -> None:
    repository.identity("m", extra="instance_group [ { kind: KIND_GPU gpus: [ 0, 1 ] } ]")
    text = refused(repository, Gpus(tmp_path, DEVICES).env)
    assert "instance group m_0 of model m specifies invalid or unsupported gpu id 1." in text
    assert "minimum required CUDA compute compatibility of 6.000000 are: 0, 2, 3" in text


def test_a_gpus_policy(repository: Repository, tmp_path: Path) -> None:
    """Instances on GPU 2 run under gpu_2: its settings are looked at because such an instance is made."""
    repository.identity("m", extra="instance_group [ { kind: KIND_GPU gpus: [ 2 ] } ]")
    env = Gpus(tmp_path, DEVICES).env
    assert "Parsing 'cpu-cores' value: Can't parse 'x' to integer" in refused(repository, env, {"host-policy": "gpu_2,cpu-cores=x-y"})
    with Nereid(repository.path, {"host-policy": "gpu_0,cpu-cores=x-y"}, env=env):
        pass


def test_resources_of_each_gpu(tmp_path: Path) -> None:
    """What is not global is there on each GPU: two instances on two GPUs run at once, two on one GPU do not."""
    backend = compile_backend(tmp_path / "backend")
    board = Board(tmp_path)
    both = "gpus: [ 0, 2 ]"
    board.model("two", group(resource("r", 1, shared=False), kind="KIND_GPU", more=both), gated=True)
    board.model("one", group(resource("r", 1, shared=False), kind="KIND_GPU", count=2, more="gpus: [ 3 ]"), gated=True)
    options: dict[str, str | list[str]] = {"backend-directory": str(backend), "rate-limit": "execution_count"}
    env = Gpus(tmp_path, DEVICES).env
    with ThreadPoolExecutor(64) as pool, Nereid(board.repository.path, options, env=env) as server:
        asked = ask_many(pool, server, "two", 8)
        server.process.wait_until(lambda: board.now() == 2, 60)
        board.open_gate()
        assert max(one.result().most for one in asked) == 2
        seen = [one.result() for one in ask_many(pool, server, "one", 20)]
        assert max(one.at_once for one in seen) == 1
    board.close()


def test_a_gpu_that_is_too_full(repository: Repository, tmp_path: Path) -> None:
    """--model-load-gpu-limit: what is in use once the instance is there counts, as in the reference."""
    repository.identity("first", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    repository.identity("second", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    repository.identity("other", extra="instance_group [ { kind: KIND_GPU gpus: [ 2 ] } ]")
    devices = Gpus(tmp_path, DEVICES)
    with Nereid(repository.path, EXPLICIT | {"model-load-gpu-limit": "0:0"}, env=devices.env) as server:

        def load(name: str) -> rawhttp.Answer:
            return rawhttp.post(server.http, f"/v2/repository/models/{name}/load", b"")

        assert load("first").status == 200
        numbers(server, "first")  # leaves a block in the pool of GPU 0
        answer = load("second")
        assert answer.status == 400
        assert "can not create model 'second_0_0': memory limit set for GPU 0 has exceeded, model loading is rejected." in (
            answer.json()["error"]
        )
        assert load("other").status == 200
    devices.left_nothing()


def numbers(server: Server, model: str, count: int = 1000) -> None:
    """An inference over each protocol gives back what it got."""
    data = np.arange(count, dtype=np.float32)
    for module, address in ((httpclient, server.http), (grpcclient, server.grpc)):
        with module.InferenceServerClient(address) as client:
            given = module.InferInput("INPUT0", [count], "FP32")
            given.set_data_from_numpy(data)
            got = client.infer(model, [given])
            assert (got.as_numpy("OUTPUT0") == data).all()


@pytest.mark.gpu
def test_inference_on_a_gpu(repository: Repository, tmp_path: Path) -> None:
    """Tensors of HTTP and gRPC go to the GPU and come back; what was taken of the driver is given back at the end."""
    repository.identity("m", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    devices = Gpus(tmp_path)
    with Nereid(repository.path, env=devices.env) as server:
        assert gpus.is_open(server.pid)
        numbers(server, "m")
        numbers(server, "m", 1 << 20)
    devices.left_nothing()
    if not gpus.REAL:
        assert devices.calls("cuMemcpyAsync") == 8  # there and back, of each of four requests


@pytest.mark.gpu
def test_steps_of_an_ensemble_stay_on_the_gpu(repository: Repository, tmp_path: Path) -> None:
    """What one step leaves on a GPU the next reads there; a step on the CPU and the client get it on the host."""
    repository.identity("gpu", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    repository.identity("cpu", extra="instance_group [ { kind: KIND_CPU } ]")

    def chain(name: str, *models: str) -> None:
        steps = []
        for i, model in enumerate(models):
            source, target = "INPUT0" if i == 0 else f"t{i}", "OUTPUT0" if i + 1 == len(models) else f"t{i + 1}"
            steps.append(
                f'{{ model_name: "{model}" model_version: -1 input_map {{ key: "INPUT0" value: "{source}" }} '
                f'output_map {{ key: "OUTPUT0" value: "{target}" }} }}'
            )
        tensors = "".join(f'{way} [ {{ name: "{name}0" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n' for way, name in (("input", "INPUT"), ("output", "OUTPUT")))
        repository.model(name, f'name: "{name}"\nplatform: "ensemble"\n{tensors}ensemble_scheduling {{ step [ {", ".join(steps)} ] }}\n')

    chain("gpus", "gpu", "gpu", "gpu")
    chain("mixed", "cpu", "gpu", "cpu", "gpu")
    devices = Gpus(tmp_path)
    with Nereid(repository.path, env=devices.env) as server:
        numbers(server, "gpus")
        numbers(server, "mixed")
    devices.left_nothing()
    if not gpus.REAL:
        # gpus: up, over, over, down to the host; mixed: up, down for the CPU's step, up, down; each of them twice
        assert devices.calls("cuMemcpyAsync") == 2 * (4 + 4)


def test_the_pool_of_a_model_in_a_process_of_its_own(repository: Repository, tmp_path: Path) -> None:
    """It is as large there as the option says; an error says which block the bytes would take."""
    alone = 'parameters { key: "ISOLATION" value { string_value: "process" } }\n'
    repository.identity("m", extra=f"instance_group [ {{ kind: KIND_GPU gpus: [ 0 ] }} ]\n{alone}")
    options: dict[str, str | list[str]] = {"cuda-memory-pool-byte-size": "0:1048576"}
    with Nereid(repository.path, options, env=Gpus(tmp_path).env) as server:
        numbers(server, "m")
        body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [300_000], "data": [1] * 300_000}]}
        answer = rawhttp.post(server.http, "/v2/models/m/infer", json.dumps(body).encode())
        assert answer.status == 503, answer.body
        assert "no 1200000 bytes, which take a block of 1572864, on GPU 0: its pool has 1048576 bytes" in answer.json()["error"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts = ("bcuda", "bentry", "berr", "binput", "boutput", "brun", "scratch")
    return compile_backend(tmp_path_factory.mktemp("rows"), "rows", parts)


ROWS = """name: "m" backend: "rows" max_batch_size: 4 instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
PAIRS = "dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 600000000 }"


def ask_rows(server: Server, *given: np.ndarray) -> list[np.ndarray | str]:
    """All at once; the answers, or what was said instead."""

    def one(x: np.ndarray) -> np.ndarray | str:
        tensor = grpcclient.InferInput("x", list(x.shape), "FP32")
        tensor.set_data_from_numpy(x)
        with grpcclient.InferenceServerClient(server.grpc) as client:
            try:
                return client.infer("m", [tensor]).as_numpy("y")  # type: ignore[no-any-return]
            except InferenceServerException as error:
                return str(error.message())

    with ThreadPoolExecutor(len(given)) as pool:
        return list(pool.map(one, given))


FIRST, SECOND = np.arange(4, dtype=np.float32).reshape(1, 4), np.arange(10, 18, dtype=np.float32).reshape(2, 4)


@pytest.mark.gpu
def test_rows_of_several_requests(rows: Path, repository: Repository, tmp_path: Path) -> None:
    """A backend with its tensors on the GPU: a batch of two requests is one tensor there, and each gets its own rows."""
    repository.model("m", ROWS + PAIRS)
    devices = Gpus(tmp_path)
    with Nereid(repository.path, {"backend-directory": str(rows)}, env=devices.env) as server:
        first, second = ask_rows(server, FIRST, SECOND)
        assert (first == FIRST).all() and (second == SECOND).all()
    devices.left_nothing()
    if not gpus.REAL:
        assert devices.calls("cuMemcpyAsync") == 4


@pytest.mark.parametrize("call", ["cuMemcpyAsync:1", "cuMemcpyAsync:2", "cuMemcpyAsync:3", "cuMemcpyAsync:4", "cuStreamSynchronize:1"])
def test_a_gpu_that_fails_within_a_batch(call: str, rows: Path, repository: Repository, tmp_path: Path) -> None:
    """Whose copy fails is told so, and so is everybody when the GPU does not come to its end; then it goes on."""
    repository.model("m", ROWS + PAIRS)
    devices = Gpus(tmp_path, fail=f"{call}=2")
    with Nereid(repository.path, {"backend-directory": str(rows)}, env=devices.env) as server:
        told = ask_rows(server, FIRST, SECOND)
        failed = [each for each in told if isinstance(each, str)]
        assert len(failed) == (2 if call.startswith("cuStream") else 1), told
        assert all("CUDA_ERROR_OUT_OF_MEMORY" in each and call.partition(":")[0] in each for each in failed), failed
        for each, expected in zip(told, (FIRST, SECOND), strict=True):
            assert isinstance(each, str) or (each == expected).all()
        again = ask_rows(server, FIRST, SECOND)
        assert (again[0] == FIRST).all() and (again[1] == SECOND).all()
    devices.left_nothing()


def test_a_batch_takes_turns_in_the_pool(repository: Repository, tmp_path: Path) -> None:
    """Whether a request fits into the pool does not depend on who shares its batch."""
    batches = "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 600000000 }"
    repository.identity("m", max_batch_size=8, extra=f"instance_group [ {{ kind: KIND_GPU gpus: [ 0 ] }} ]\n{batches}")
    devices = Gpus(tmp_path)
    x = np.arange(1 << 18, dtype=np.float32).reshape(1, -1)
    with Nereid(repository.path, {"cuda-memory-pool-byte-size": "0:2097152"}, env=devices.env) as server, ThreadPoolExecutor(8) as pool:

        def one(number: int) -> bool:
            given = grpcclient.InferInput("INPUT0", list(x.shape), "FP32")
            given.set_data_from_numpy(x + number)
            with grpcclient.InferenceServerClient(server.grpc) as client:
                return bool((client.infer("m", [given]).as_numpy("OUTPUT0") == x + number).all())

        assert all(pool.map(one, range(8)))
    devices.left_nothing()


@pytest.mark.parametrize("number", range(1, 9))
def test_a_context_that_cannot_be_entered_once(number: int, repository: Repository, tmp_path: Path) -> None:
    """Nothing that is queued outlives the answer: the memory of a client that it reads and writes may be gone then."""
    repository.identity("m", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    devices = Gpus(tmp_path, fail=f"cuCtxPushCurrent_v2:{number}=201")
    server = Nereid(repository.path, {"allow-client-shm": "true"}, env=devices.env, wait_ready=False).start()
    try:
        server.wait_until_ready(60)
    except ServerFailed:  # while the instance is made
        assert "CUDA_ERROR_INVALID_CONTEXT" in server.process.log()
        server.process.ends(1)
        server.kill()
        return
    memory = regions.Memory(1 << 16, bytes(range(256)) * 256)
    assert regions.register(server, "r", memory.key, 1 << 16).status == 200
    asked = regions.body([2048], regions.part("r", 8192), regions.part("r", 8192, 16384))
    answer = rawhttp.post(server.http, "/v2/models/m/infer", asked)
    if answer.status != 200:
        assert "CUDA_ERROR_INVALID_CONTEXT" in answer.json()["error"]
    assert regions.unregister(server, "r").status == 200
    memory.close()
    with contextlib.suppress(InferenceServerException):  # the call may be one of these
        numbers(server, "m")
    numbers(server, "m")
    server.stop()
    devices.left_nothing()


def test_custom_libraries_get_the_host(repository: Repository, tmp_path: Path) -> None:
    """They ask for the memory of the host, and a client's tensors on a GPU are brought there."""
    named = {way: "".join(f'{way} [ {{ name: "{way.upper()}{i}" data_type: TYPE_INT32 dims: [ -1 ] }} ]\n' for i in range(count)) for way, count in (("input", 2), ("output", 3))}
    folder = repository.model("m", f'name: "m"\nplatform: "custom"\n{named["input"]}{named["output"]}')
    shutil.copy(paths.need(paths.BUILD / "tests" / "custom" / "libaddsub.so"), folder / "1" / "libcustom.so")
    devices = Gpus(tmp_path)
    with Nereid(repository.path, {"allow-client-shm": "true"}, env=devices.env) as server, cuda.Client(devices) as client:
        memory = client.memory(4096, np.arange(4, dtype=np.int32).tobytes())
        assert cuda.register(server, "r", memory).status == 200
        inputs = [{"name": f"INPUT{i}", "datatype": "INT32", "shape": [4], "parameters": regions.part("r", 16)} for i in (0, 1)]
        answer = rawhttp.post(server.http, "/v2/models/m/infer", {"inputs": inputs})
        assert answer.status == 200, answer.body
        assert answer.json()["outputs"][0]["data"] == [0, 2, 4, 6]
    devices.left_nothing()


def test_streams_are_used_again(rows: Path, repository: Repository, tmp_path: Path) -> None:
    """A model that is loaded anew gets the stream that the last one had: runtimes keep memory for each that they ever saw."""
    repository.model("m", ROWS)
    devices = Gpus(tmp_path)
    with Nereid(repository.path, {"backend-directory": str(rows)} | EXPLICIT, env=devices.env) as server:
        for times in range(1, 4):
            assert rawhttp.post(server.http, "/v2/repository/models/m/load", {}).status == 200
            assert (ask_rows(server, FIRST)[0] == FIRST).all()
            assert rawhttp.post(server.http, "/v2/repository/models/m/unload", {}).status == 200
            server.process.wait_for(lambda: server.process.log().count("successfully unloaded 'm'"), times)
    devices.left_nothing()
    assert devices.calls("cuStreamCreate") == 1


CALLS = ("cuInit", "cuDeviceGetCount", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamCreate")


@pytest.mark.parametrize("call", CALLS)
def test_a_driver_that_fails_at_the_start(call: str, repository: Repository, tmp_path: Path) -> None:
    """The model is refused, with the call or what it was for; nothing stays behind."""
    repository.identity("m", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    devices = Gpus(tmp_path, fail=f"{call}:1+=999")
    text = refused(repository, devices.env)
    absent = call in ("cuInit", "cuDeviceGetCount")
    assert ("specifies invalid or unsupported gpu id 0" if absent else "failed: ") in text
    devices.left_nothing()


def test_a_gpu_that_fails_meanwhile(repository: Repository, tmp_path: Path) -> None:
    """Each call of an inference fails once: that request has an error that names it, the next is answered."""
    repository.identity("m", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    for call in ("cuMemAlloc_v2", "cuMemcpyAsync", "cuStreamSynchronize"):
        folder = tmp_path / call
        folder.mkdir()
        devices = Gpus(folder, fail=f"{call}:1=719")
        with Nereid(repository.path, env=devices.env) as server:
            body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [7]}]}
            answer = rawhttp.post(server.http, "/v2/models/m/infer", json.dumps(body).encode())
            assert answer.status == 500 and "719" in answer.json()["error"], answer.body
            numbers(server, "m")
        devices.left_nothing()


@pytest.mark.onnx
def test_nobody_looks_for_gpus_unasked(repository: Repository, tmp_path: Path) -> None:
    """Groups on the CPU alone, and backends that cannot use a GPU: the driver stays closed, even where there is one."""
    repository.identity("m", extra="instance_group [ { kind: KIND_CPU } ]")
    devices = Gpus(tmp_path, DEVICES)
    with Nereid([repository.path, paths.need(paths.SAMPLE_MODELS)], EXPLICIT | {"load-model": ["m", "digits"]}, env=devices.env) as server:
        numbers(server, "m")
        assert not gpus.is_open(server.pid)
        found = rawhttp.get(server.http, "/v2/models/digits/config").json()["instance_group"]
        assert {one["kind"] for one in found} == {"KIND_CPU"}
    assert not devices.reports()


@pytest.mark.parametrize("fail", ["cuInit:1+=803", "cuDeviceTotalMem_v2:2=803"])
def test_a_driver_that_fails_is_in_the_log(fail: str, repository: Repository, tmp_path: Path) -> None:
    """Once, however many models ask: those without a group go to the CPU, and the others are refused in the reference's words."""
    for name in ("m", "other"):
        repository.identity(name)
    repository.identity("gpu", extra="instance_group [ { kind: KIND_GPU } ]")
    with Nereid(repository.path, EXPLICIT | {"load-model": ["m", "other"]}, env=Gpus(tmp_path, "8.0:64,8.0:64", fail=fail).env) as server:
        numbers(server, "m")
        answer = rawhttp.post(server.http, "/v2/repository/models/gpu/load", b"")
        assert "has kind KIND_GPU but no GPUs are available" in answer.json()["error"]
        (line,) = [line for line in server.process.log().splitlines() if "no GPU is used: " in line]
        assert "(803)" in line, line


# Without a GPU.


@pytest.mark.parametrize("name", BOTH)
def test_options_without_a_gpu(name: str, repository: Repository) -> None:
    """Both servers take what is for GPUs, and serve."""
    repository.identity("m", extra="instance_group [ { count: 2 } ]")
    options: dict[str, str | list[str]] = {
        "pinned-memory-pool-byte-size": "1048576",
        "cuda-memory-pool-byte-size": ["0:1048576", "7:0"],
        "min-supported-compute-capability": "7.5",
        "model-load-gpu-limit": "0:0.5",
        "backend-directory": str(paths.backends(name == "reference")),
    }
    with KINDS[name](repository.path, options) as server:
        numbers(server, "m")
        found = rawhttp.get(server.http, "/v2/models/m/config").json()["instance_group"]
        assert [(one["kind"], one["count"], one["gpus"]) for one in found] == [("KIND_CPU", 2, [])]


GROUPS = {
    "auto": ("{ kind: KIND_AUTO }", None),
    "auto on a GPU": ("{ kind: KIND_AUTO gpus: [ 0 ] }", "has kind KIND_CPU but specifies one or more GPUs"),
    "a GPU": ("{ kind: KIND_GPU }", "has kind KIND_GPU but no GPUs are available"),
    "GPU 0": ("{ kind: KIND_GPU gpus: [ 0 ] }", "specifies invalid or unsupported gpu id 0"),
    "the CPU, on a GPU": ("{ kind: KIND_CPU gpus: [ 0 ] }", "has kind KIND_CPU but specifies one or more GPUs"),
    "the model, on a GPU": ("{ kind: KIND_MODEL gpus: [ 0 ] }", "has kind KIND_MODEL but specifies one or more GPUs"),
}


@pytest.mark.parametrize("name", BOTH)
def test_groups_without_a_gpu(name: str, repository: Repository) -> None:
    """PB-06, PB-15: both servers load what does not need a GPU, and refuse the rest in the same words."""
    for i, (groups, _) in enumerate(GROUPS.values()):
        repository.identity(f"m{i}", extra=f"instance_group [ {groups} ]")
    options: dict[str, str | list[str]] = EXPLICIT | {"backend-directory": str(paths.backends(name == "reference"))}
    with KINDS[name](repository.path, options) as server:
        for i, (_, words) in enumerate(GROUPS.values()):
            answer = rawhttp.post(server.http, f"/v2/repository/models/m{i}/load", b"")
            assert (answer.status == 200) == (words is None), (i, answer.body)
            assert words is None or words in answer.json()["error"], (i, answer.body)


def test_a_driver_without_a_device(repository: Repository, tmp_path: Path) -> None:
    repository.identity("m")
    devices = Gpus(tmp_path, "")
    with Nereid(repository.path, env=devices.env) as server:
        numbers(server, "m")
        assert "no GPU is used" not in server.process.log()  # nothing fails there
    devices.left_nothing()
