"""Metrics of GPUs: the reference's names, as NVML measures them. With stand-ins for CUDA's driver and for NVML (tests/cuda), or with
NEREID_REAL_CUDA on the machine's GPUs."""

import contextlib
from pathlib import Path

import pytest
from harness import gpus, metrics, procfs, rawhttp
from harness.gpus import Gpus
from harness.metrics import Family
from harness.repository import Repository
from harness.servers import Nereid, Server
from witness import compile_backend

pytestmark = pytest.mark.threadless

GAUGES = ("nv_gpu_utilization", "nv_gpu_memory_total_bytes", "nv_gpu_memory_used_bytes", "nv_gpu_power_usage", "nv_gpu_power_limit")
ENERGY = "nv_energy_consumption"
FAMILIES = (*GAUGES, ENERGY)
OFTEN = {"metrics-interval-ms": "100"}
# Two that are used, and between them one whose compute capability is below 6.0.
DEVICES = "8.0:64,5.0:64,9.0:128"
UUID = "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae{:02x}"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "models")
    repository.identity("m", extra="instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    return repository


def scrape(server: Server) -> dict[str, Family]:
    """The families of GPUs on the page."""
    found = metrics.scrape(server.metrics)
    return {name: family for name, family in found.items() if name.startswith("nv_gpu_") or name == ENERGY}


def first(server: Server) -> dict[str, Family]:
    """They are there when NVML was read once, and while it was not long ago."""
    found: dict[str, Family] = {}

    def told() -> bool:
        found.update(scrape(server))
        return bool(found)

    server.process.wait_until(told, 60)
    return found


def ask(server: Server) -> None:
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [7]}]}
    assert rawhttp.post(server.http, "/v2/models/m/infer", body).status == 200


def values(found: dict[str, Family]) -> dict[str, dict[str, float]]:
    """By family and UUID."""
    return {name: {labels["gpu_uuid"]: value for _, labels, value in family.samples} for name, family in found.items()}


@pytest.mark.gpu
def test_families(repository: Repository, tmp_path: Path) -> None:
    """Types and labels are the reference's, and the numbers can be true: of every GPU that is used, and of no other."""
    devices = Gpus(tmp_path, DEVICES)
    with Nereid(repository.path, OFTEN, env=devices.env) as server:
        ask(server)
        found = first(server)
        assert {name: family.kind for name, family in found.items()} == dict.fromkeys(GAUGES, "gauge") | {ENERGY: "counter"}
        for family in found.values():
            assert family.label_names() == {"gpu_uuid"}
        now = values(found)
        uuids = set(now[ENERGY])
        assert uuids and all(uuid.startswith("GPU-") and len(uuid) == 40 for uuid in uuids)
        for uuid in uuids:
            assert 0 <= now["nv_gpu_utilization"][uuid] <= 1
            assert 0 < now["nv_gpu_memory_used_bytes"][uuid] <= now["nv_gpu_memory_total_bytes"][uuid]
            assert 1 < now["nv_gpu_power_usage"][uuid] < 3000
            assert 1 < now["nv_gpu_power_limit"][uuid] < 3000
        if not gpus.REAL:
            assert uuids == {UUID.format(0), UUID.format(2)}
            assert now.pop(ENERGY)
            assert now == {
                "nv_gpu_utilization": {UUID.format(0): 0.1, UUID.format(2): 0.12},
                "nv_gpu_memory_total_bytes": {UUID.format(0): 64 << 20, UUID.format(2): 128 << 20},
                "nv_gpu_memory_used_bytes": {UUID.format(0): 16 << 20, UUID.format(2): (32 << 20) + 2},
                "nv_gpu_power_usage": {UUID.format(0): 50, UUID.format(2): 52},
                "nv_gpu_power_limit": {UUID.format(0): 300, UUID.format(2): 300},
            }
    devices.left_nothing()


@pytest.mark.gpu
def test_energy_begins_with_the_server_and_grows(repository: Repository, tmp_path: Path) -> None:
    """In joules: a GPU that does nothing draws some watts all the same. It never falls."""
    with Nereid(repository.path, OFTEN, env=Gpus(tmp_path).env) as server:
        seen = [sum(values(first(server))[ENERGY].values())]

        def grown() -> bool:
            seen.append(sum(values(first(server))[ENERGY].values()))
            assert seen[-1] >= seen[-2]
            return seen[-1] > seen[0]

        server.process.wait_until(grown, 60)
        if not gpus.REAL:
            assert seen[0] < 7000 and seen[-1] % 1.5 == 0  # what was used before does not count
        else:
            assert seen[0] < 1e6


@pytest.mark.gpu
@pytest.mark.parametrize("option", ["allow-gpu-metrics", "allow-metrics"])
def test_not_wanted(option: str, repository: Repository, tmp_path: Path) -> None:
    """NVML is not even opened. That nothing comes later either: no thread is there that could read."""
    devices = Gpus(tmp_path, DEVICES)
    with Nereid(repository.path, OFTEN | {option: "false"}, env=devices.env).ready_when_it_says("server is ready") as server:
        ask(server)
        assert not is_metered(server)
        if option != "allow-metrics":
            assert not scrape(server) and metrics.scrape(server.metrics)["nv_cpu_memory_total_bytes"]
    assert not devices.nvml_reports()


def is_metered(server: Server) -> bool:
    """Whether the thread exists that reads NVML; a thread has its process's name until it has begun."""
    server.process.wait_until(lambda: procfs.names_of_threads(server.pid).count("nereid") == 1, 60)
    names = procfs.names_of_threads(server.pid)
    assert "loop-0" in names
    return "gpu-meter" in names


@pytest.mark.gpu
def test_the_pool_of_pinned_memory(repository: Repository, tmp_path: Path) -> None:
    """Its size once somebody asks for pinned memory, and what is in use of it: the model's 1000 bytes, rounded up."""
    repository.model("pins", 'name: "pins"\nbackend: "pins"\n' + "".join(
        f'{way} [ {{ name: "X" data_type: TYPE_FP32 dims: [ 1 ] }} ]\n' for way in ("input", "output")
    ))
    devices = Gpus(tmp_path)
    options: dict[str, str | list[str]] = {
        "backend-directory": str(compile_backend(tmp_path / "backends", "pins")), "pinned-memory-pool-byte-size": "1048576",
        "model-control-mode": "explicit",
    }
    with Nereid(repository.path, options, env=devices.env) as server:

        def pool() -> list[float]:
            found = metrics.scrape(server.metrics)
            return [found[f"nv_pinned_memory_pool_{what}_bytes"].value() for what in ("total", "used")]

        assert pool() == [0, 0]
        assert rawhttp.post(server.http, "/v2/repository/models/pins/load", b"").status == 200
        total, used = pool()
        assert total == 1048576 and 1000 < used < 2000
        assert rawhttp.post(server.http, "/v2/repository/models/pins/unload", b"").status == 200
        server.process.wait_for(pool, [1048576, 0])
    devices.left_nothing()


def test_nobody_asks_for_a_gpu(repository: Repository, tmp_path: Path) -> None:
    """Models on the CPU alone: no metric, no thread, NVML stays closed, even where there is a GPU."""
    repository.identity("m", extra="instance_group [ { kind: KIND_CPU } ]")
    devices = Gpus(tmp_path, DEVICES)
    with Nereid(repository.path, OFTEN, env=devices.env) as server:
        ask(server)
        assert not scrape(server) and not is_metered(server)
    assert not devices.reports() and not devices.nvml_reports()


def test_no_gpu(repository: Repository, tmp_path: Path) -> None:
    """The driver is there, and shows no device."""
    repository.identity("m")
    devices = Gpus(tmp_path, "")
    with Nereid(repository.path, OFTEN, env=devices.env) as server:
        ask(server)
        assert not scrape(server) and not is_metered(server)
    assert not devices.nvml_reports()


QUESTIONS = {
    "nvmlDeviceGetUtilizationRates": ("utilization", {"nv_gpu_utilization"}),
    "nvmlDeviceGetMemoryInfo_v2": ("memory", {"nv_gpu_memory_total_bytes", "nv_gpu_memory_used_bytes"}),
    "nvmlDeviceGetPowerUsage": ("power usage", {"nv_gpu_power_usage"}),
    "nvmlDeviceGetPowerManagementLimit": ("power limit", {"nv_gpu_power_limit"}),
    "nvmlDeviceGetTotalEnergyConsumption": ("energy consumption", {ENERGY}),
}


@pytest.mark.parametrize("call", QUESTIONS)
def test_a_value_that_is_not_told(call: str, repository: Repository, tmp_path: Path) -> None:
    """It is missing, and the others are there."""
    devices = Gpus(tmp_path, nvml=f"{call}:1+=3")
    with Nereid(repository.path, OFTEN, env=devices.env) as server:
        assert set(first(server)) == set(FAMILIES) - QUESTIONS[call][1]
    devices.left_nothing()


@pytest.mark.parametrize("call", QUESTIONS)
def test_a_value_that_is_told_later(call: str, repository: Repository, tmp_path: Path) -> None:
    """It is there then, and the log says once that it was not, however often it was asked for."""
    what = QUESTIONS[call][0]
    devices = Gpus(tmp_path, nvml=",".join(f"{call}:{i}=3" for i in range(1, 5)))
    with Nereid(repository.path, OFTEN, env=devices.env) as server:
        server.process.wait_until(lambda: set(scrape(server)) == set(FAMILIES), 60)
        line = f"GPU 0 does not tell its {what}, which is not among the metrics while that is so: NVML says Not Supported (3)"
        assert server.process.log().count(line) == 1
    devices.left_nothing()


def test_a_gpu_that_nvml_does_not_know(repository: Repository, tmp_path: Path) -> None:
    """It is left out with a line, and the other is there."""
    devices = Gpus(tmp_path, DEVICES, nvml="nvmlDeviceGetHandleByUUID:1=6")
    with Nereid(repository.path, OFTEN, env=devices.env) as server:
        assert {uuid for family in values(first(server)).values() for uuid in family} == {UUID.format(2)}
        assert server.process.log().count(f"there are no metrics of GPU 0 ({UUID.format(0)}): NVML says an error of the stand-in (6)") == 1
    devices.left_nothing()


@pytest.mark.parametrize(("call", "words"), [("nvmlInit_v2", "there are no metrics of GPUs"), ("nvmlDeviceGetHandleByUUID", "no metrics of GPU 0")])
def test_nvml_that_fails_at_the_start(call: str, words: str, repository: Repository, tmp_path: Path) -> None:
    """One line; the model is served."""
    devices = Gpus(tmp_path, nvml=f"{call}:1+=999")
    with Nereid(repository.path, OFTEN, env=devices.env) as server:
        server.process.wait_until(lambda: words in server.process.log(), 60)
        ask(server)
        assert not scrape(server) and server.process.log().count(words) == 1
    devices.left_nothing()


@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetMemoryInfo_v2"])
def test_nobody_waits_for_nvml(call: str, repository: Repository, tmp_path: Path) -> None:
    """While it does not answer, the page is there without GPUs, and requests are answered; when it does, they are on the page."""
    devices = Gpus(tmp_path)
    gate = devices.gate(call)
    with Nereid(repository.path, OFTEN | {"loop-threads": "1"}, env=devices.env) as server:
        with gate.open("w"):  # opened once the call waits
            ask(server)
            assert not scrape(server) and is_metered(server)
        first(server)
    devices.left_nothing()


@pytest.mark.parametrize(("call", "number"), [("nvmlInit_v2", 1), ("nvmlDeviceGetPowerUsage", 3), ("nvmlShutdown", 1)])
def test_the_end_does_not_wait_for_nvml(call: str, number: int, repository: Repository, tmp_path: Path) -> None:
    """While it does not answer: the server ends as it always does, long before its time is over, and the log names what was left."""
    devices = Gpus(tmp_path)
    gate = devices.gate(call, number)
    with Nereid(repository.path, OFTEN | {"exit-timeout-secs": "50"}, env=devices.env) as server:
        ask(server)
        if call == "nvmlShutdown":
            first(server)
        with contextlib.nullcontext() if call == "nvmlShutdown" else gate.open("w"):  # opened once the call waits
            server.process.terminate()
            server.process.ends(0, 45)
        assert server.process.log().count("NVML does not answer") == 1
    assert not devices.reports()[0]["wrong"] and not any(devices.reports()[0]["live"].values())
