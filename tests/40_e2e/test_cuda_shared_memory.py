"""Shared memory on a GPU that a client brings, with a stand-in for CUDA's driver (tests/cuda): tensors are read and written there, whatever
the model runs on, and whatever fails, nothing stays open."""

import base64
import json
import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import cuda, gpus, metrics, rawhttp, regions
from harness.cuda import Client, Memory
from harness.ensembles import chain
from harness.gpus import Gpus
from harness.rawgrpc import Channel
from harness.regions import CUDA, body, part
from harness.repository import Repository
from harness.servers import Nereid, Server
from tritonclient.grpc import service_pb2 as pb

pytestmark = pytest.mark.threadless

ALLOWED: dict[str, str | list[str]] = {"allow-client-shm": "true"}
DEVICES = "8.0:64,7.5:64"
DATA = struct.pack("<4f", 1, -2, 3.5, 4e30)
SIZE = 8192
NO_MEMORY = "failed to register shared memory region: invalid args"
ON_GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"
ON_CPU = "instance_group [ { kind: KIND_CPU } ]"
ALONE = 'parameters { key: "ISOLATION" value { string_value: "process" } }'
PAIR = "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 600000000 }"
MODELS = ["cpu", "gpu", "alone", "steps", "steps_cpu"]


def repository(root: Path) -> Path:
    made = Repository(root)
    for name, group in (("cpu", ON_CPU), ("gpu", ON_GPU)):
        made.identity(name, extra=group)
        made.identity(f"two_{name}", tensors=2, extra=group)
        made.identity(f"strings_{name}", "BYTES", extra=group)
    made.identity("alone", extra=f"{ON_CPU}\n{ALONE}")
    made.identity("pair", dims=(4,), max_batch_size=2, extra=f"{ON_GPU}\n{PAIR}")  # answers two requests at a time
    for name, models in (("steps", ["gpu", "cpu", "gpu"]), ("steps_cpu", ["gpu", "cpu"])):
        made.model(name, chain(name, models).config().replace('"IN"', '"INPUT0"').replace('"OUT"', '"OUTPUT0"'))
    return made.path


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> Gpus:
    return Gpus(tmp_path_factory.mktemp("devices"), DEVICES)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, devices: Gpus) -> Iterator[Server]:
    with Nereid(repository(tmp_path_factory.mktemp("cuda") / "models"), ALLOWED, env=devices.env) as server:
        yield server
    devices.left_nothing()


@pytest.fixture(scope="module")
def client(devices: Gpus) -> Iterator[Client]:
    with Client(devices) as client:
        yield client


@pytest.fixture
def source(server: Server, client: Client) -> Iterator[Memory]:
    memory = client.memory(SIZE, DATA)
    assert cuda.register(server, "in", memory).status == 200
    yield memory
    assert cuda.unregister(server).status == 200
    memory.free()


@pytest.fixture
def target(server: Server, client: Client, source: Memory) -> Iterator[Memory]:
    memory = client.memory(SIZE, b"\xff" * SIZE)
    assert cuda.register(server, "out", memory).status == 200
    yield memory
    assert cuda.unregister(server).status == 200
    memory.free()


def infer(server: Server, model: str, asked: bytes) -> rawhttp.Answer:
    return rawhttp.post(server.http, f"/v2/models/{model}/infer", asked)


def error(answer: rawhttp.Answer) -> tuple[int, str]:
    return answer.status, json.loads(answer.body)["error"]


def plain(target: dict[str, Any]) -> bytes:
    """Only the output is in shared memory."""
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [4], "data": struct.unpack("<4f", DATA)}
    return json.dumps({"inputs": [tensor], "outputs": [{"name": "OUTPUT0", "parameters": target}]}).encode()


@pytest.mark.gpu
@pytest.mark.parametrize("model", MODELS)
def test_both_ways_over_http(server: Server, source: Memory, target: Memory, model: str) -> None:
    """On the CPU, on the GPU, in a process of its own, as an ensemble: the output is in the region, and nothing else is touched."""
    answer = infer(server, model, body([4], part("in", 16), part("out", 64, 96)))
    assert answer.status == 200, answer.body
    assert answer.json()["outputs"] == [{"name": "OUTPUT0", "datatype": "FP32", "shape": [4]}]
    assert target.read(SIZE) == b"\xff" * 96 + DATA + b"\xff" * (SIZE - 96 - 16)


@pytest.mark.gpu
@pytest.mark.parametrize("model", MODELS)
def test_one_way(server: Server, source: Memory, target: Memory, model: str) -> None:
    """Only the input, or only the output, is there."""
    answer = infer(server, model, body([4], part("in", 16)))
    assert answer.json()["outputs"][0]["data"] == list(struct.unpack("<4f", DATA)), answer.body
    assert infer(server, model, plain(part("out", 16))).status == 200
    assert target.read(16) == DATA


@pytest.mark.gpu
@pytest.mark.parametrize("module", [httpclient, grpcclient])
def test_with_tritons_clients(server: Server, client: Client, module: Any) -> None:
    address = server.http if module is httpclient else server.grpc
    with module.InferenceServerClient(address) as asker:
        first, second = client.memory(SIZE, DATA), client.memory(SIZE)
        for name, memory in (("first", first), ("second", second)):
            asker.register_cuda_shared_memory(name, base64.b64encode(memory.handle), 0, SIZE)
        given = module.InferInput("INPUT0", [4], "FP32")
        given.set_shared_memory("first", 16)
        wanted = module.InferRequestedOutput("OUTPUT0")
        wanted.set_shared_memory("second", 16, 4096)
        for model in MODELS:
            second.write(bytes(16), 4096)
            asker.infer(model, [given], outputs=[wanted])
            assert second.read(16, 4096) == DATA
        told = asker.get_cuda_shared_memory_status()
        if module is grpcclient:
            assert [(one.name, one.device_id, one.byte_size) for one in (told.regions["first"], told.regions["second"])] == [
                ("first", 0, SIZE), ("second", 0, SIZE),
            ]
            assert list(asker.get_cuda_shared_memory_status("second").regions) == ["second"]
        else:
            assert told == [{"name": name, "device_id": 0, "byte_size": SIZE} for name in ("first", "second")]
            assert asker.get_cuda_shared_memory_status("second") == told[1:]
        asker.unregister_cuda_shared_memory("first")
        assert [one["name"] for one in cuda.status(server)] == ["second"]
        asker.unregister_cuda_shared_memory()
        assert cuda.status(server) == []
        first.free()
        second.free()


def test_over_a_stream(server: Server, source: Memory, target: Memory) -> None:
    asked = pb.ModelInferRequest(model_name="gpu")
    asked.inputs.add(name="INPUT0", datatype="FP32", shape=[4])
    asked.outputs.add(name="OUTPUT0")
    for tensor, region in ((asked.inputs[0], "in"), (asked.outputs[0], "out")):
        tensor.parameters["shared_memory_region"].string_param = region
        tensor.parameters["shared_memory_byte_size"].int64_param = 16
    with Channel(server.grpc) as channel:
        call = channel.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        answers = [pb.ModelStreamInferResponse.FromString(each) for each in call(iter([asked.SerializeToString()] * 3))]
    assert [answer.error_message for answer in answers] == [""] * 3
    assert target.read(16) == DATA


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["two_cpu", "two_gpu"])
@pytest.mark.parametrize("binary", [False, True])
def test_outputs_of_several_kinds(server: Server, source: Memory, target: Memory, model: str, binary: bool) -> None:
    """One in the region, the other in the answer; one input there, the other in the request."""
    asked = {
        "inputs": [
            {"name": "INPUT0", "datatype": "FP32", "shape": [4], "parameters": part("in", 16)},
            {"name": "INPUT1", "datatype": "FP32", "shape": [2], "data": [5, 6]},
        ],
        "outputs": [{"name": "OUTPUT0", "parameters": part("out", 16)}, {"name": "OUTPUT1", "parameters": {"binary_data": binary}}],
    }
    answer = infer(server, model, json.dumps(asked).encode())
    assert answer.status == 200, answer.body
    length = int(answer.header("inference-header-content-length") or len(answer.body))
    described = json.loads(answer.body[:length])["outputs"]
    assert described[0] == {"name": "OUTPUT0", "datatype": "FP32", "shape": [4]}
    if binary:
        assert answer.body[length:] == struct.pack("<2f", 5, 6)
    else:
        assert described[1]["data"] == [5, 6]
    assert target.read(16) == DATA


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["strings_cpu", "strings_gpu"])
def test_strings(server: Server, source: Memory, target: Memory, model: str) -> None:
    """Their lengths are checked in a copy."""
    text = struct.pack("<I", 3) + b"abc" + struct.pack("<I", 0)
    source.write(text)
    assert infer(server, model, body([2], part("in", 11), part("out", 11), "BYTES")).status == 200
    assert target.read(11) == text
    code, words = error(infer(server, model, body([3], part("in", 11), part("out", 11), "BYTES")))
    assert code == 400 and "expected 3 string elements" in words


@pytest.mark.parametrize("model", MODELS)
def test_an_output_that_does_not_fit(server: Server, source: Memory, target: Memory, model: str) -> None:
    code, text = error(infer(server, model, body([4], part("in", 16), part("out", 15))))
    want = "shared memory size specified with the request for output 'OUTPUT0' (15 bytes) should be at least 16 bytes to hold the results"
    assert code == 500 and text in (want, f"in ensemble '{model}', {want}")
    assert target.read(16) == b"\xff" * 16


def test_an_output_over_the_input(server: Server, source: Memory) -> None:
    assert infer(server, "gpu", body([4], part("in", 16), part("in", 16, 4096))).status == 200
    assert source.read(16, 4096) == DATA


@pytest.mark.gpu
def test_what_a_request_costs(tmp_path: Path) -> None:
    """On the GPU: one copy, from region to region. On the CPU: one to the host and one back. An ensemble: its last step's to the region."""
    devices = Gpus(tmp_path, DEVICES)
    with Nereid(repository(tmp_path / "models"), ALLOWED, env=devices.env) as server, Client(devices) as client:
        memory = client.memory(SIZE, DATA)
        assert cuda.register(server, "r", memory).status == 200
        for model in ("gpu", "cpu", "alone", "steps"):
            assert infer(server, model, body([4], part("r", 16), part("r", 16, 4096))).status == 200
            assert memory.read(16, 4096) == DATA
    devices.left_nothing()
    if not gpus.REAL:
        # gpu: 1; cpu and alone: 2 each; steps: over, down for the CPU's, up, and to the region
        assert devices.calls("cuMemcpyAsync") == 1 + 2 + 2 + 4


def test_a_region_on_another_gpu(tmp_path: Path) -> None:
    """A model on GPU 0, tensors on GPU 1: it reads where they lie, but gets memory of the host for the output, and the server copies."""
    devices = Gpus(tmp_path, DEVICES)
    with Nereid(repository(tmp_path / "models"), ALLOWED, env=devices.env) as server, Client(devices, 1) as client:
        memory = client.memory(SIZE, DATA)
        assert error(cuda.register(server, "r", memory, device=0)) == (400, NO_MEMORY)
        assert cuda.register(server, "r", memory).status == 200
        assert cuda.status(server) == [{"name": "r", "device_id": 1, "byte_size": SIZE}]
        for model in ("gpu", "cpu"):
            assert infer(server, model, body([4], part("r", 16), part("r", 16, 4096))).status == 200
            assert memory.read(16, 4096) == DATA
            memory.write(bytes(16), 4096)
    devices.left_nothing()


def test_one_name_space(server: Server, source: Memory) -> None:
    """A name is of one kind; each kind is told and forgotten by itself."""
    with regions.Memory(SIZE) as memory:
        assert regions.register(server, "sys", memory.key, SIZE).status == 200
        assert error(cuda.register(server, "sys", source)) == (400, "shared memory region 'sys' already in manager")
        assert error(regions.register(server, "in", memory.key, SIZE)) == (400, "shared memory region 'in' already in manager")
        assert [one["name"] for one in regions.status(server)] == ["sys"]
        assert cuda.status(server) == [{"name": "in", "device_id": 0, "byte_size": SIZE}]
        words = "The region named '{}' is registered as {} shared memory, not {} shared memory"
        assert error(rawhttp.get(server.http, f"{CUDA}/region/sys/status")) == (404, words.format("sys", "system", "CUDA"))
        assert error(rawhttp.get(server.http, f"{regions.SYSTEM}/region/in/status")) == (404, words.format("in", "CUDA", "system"))
        for nothing in (cuda.unregister(server, "sys"), regions.unregister(server, "in")):
            assert nothing.status == 200
        assert infer(server, "cpu", body([4], part("in", 16), part("sys", 16))).status == 200
        assert memory.read(16) == DATA
        assert cuda.unregister(server).status == 200
        assert [one["name"] for one in regions.status(server)] == ["sys"]
        assert cuda.register(server, "in", source).status == 200
        assert regions.unregister(server).status == 200
        assert regions.status(server) == []
        assert [one["name"] for one in cuda.status(server)] == ["in"]


def test_what_cannot_be_opened(server: Server, client: Client) -> None:
    """The reference's words, which are those of a machine without a GPU; nothing is registered."""
    memory = client.memory(4096)
    for handle in (bytes(64), b"\xff" * 64, bytes(range(64)), memory.handle[:4] + bytes(60)):
        assert error(cuda.register(server, "r", memory, handle=handle)) == (400, NO_MEMORY)
    for device in (1, 2, 7, 2**32, 2**63, 2**64 - 1):
        assert error(cuda.register(server, "r", memory, device=device)) == (400, NO_MEMORY)
    with Channel(server.grpc) as channel:
        for handle, device in ((b"", 0), (memory.handle[:63], 0), (memory.handle + b"\0", 0), (memory.handle, -1), (memory.handle, 2**32)):
            asked = pb.CudaSharedMemoryRegisterRequest(name="r", raw_handle=handle, device_id=device, byte_size=64)
            answer = channel.call("CudaSharedMemoryRegister", asked)
            assert (answer.code, answer.details) == ("INVALID_ARGUMENT", NO_MEMORY)
    for size in (4097, 2**63, 2**64 - 1):
        assert error(cuda.register(server, "r", memory, size)) == (400, "failed to register shared memory region 'r': invalid args")
    assert cuda.status(server) == []
    memory.free()
    assert error(cuda.register(server, "r", memory)) == (400, NO_MEMORY)


def test_bounds(server: Server, source: Memory) -> None:
    """No sum of an offset and a size wraps around."""
    most = 2**64 - 1
    outside = ((SIZE, 1, "offset"), (most, 8, "offset"), (8, most, "offset + byte size"), (2, most - 1, "offset + byte size"))
    for offset, size, words in outside:
        code, text = error(infer(server, "gpu", body([2], part("in", size, offset))))
        assert (code, text) == (400, f"Invalid {words} for shared memory region: 'in'")


@pytest.mark.gpu
def test_a_handle_under_two_names(server: Server, client: Client, source: Memory) -> None:
    """It is open until both are gone."""
    assert cuda.register(server, "again", source, 16).status == 200
    assert cuda.unregister(server, "in").status == 200
    assert infer(server, "gpu", body([4], part("again", 16))).status == 200
    assert error(infer(server, "gpu", body([4], part("again", 17))))[0] == 400
    assert cuda.register(server, "in", source).status == 200
    assert cuda.unregister(server, "again").status == 200
    assert infer(server, "gpu", body([4], part("in", 16), part("in", 16, 64))).status == 200
    assert source.read(16, 64) == DATA


def waiting(server: Server) -> bool:
    page = metrics.parse(rawhttp.get(server.metrics, "/metrics").body.decode())
    return page["nv_inference_pending_request_count"].value(model="pair") == 1


@pytest.mark.gpu
def test_used_until_it_is_answered(server: Server, source: Memory, target: Memory) -> None:
    """A region that a request uses is not unregistered; its name stays; and once the request is answered nobody uses it."""
    with ThreadPoolExecutor() as pool:
        asked = body([1, 4], part("in", 16), part("out", 16))
        first: Future[rawhttp.Answer] = pool.submit(infer, server, "pair", asked)
        server.process.wait_until(lambda: waiting(server), 60)
        in_use = "Cannot unregister shared memory region '{}', it is currently in use."
        assert error(cuda.unregister(server, "in")) == (500, in_use.format("in"))
        assert error(cuda.unregister(server)) == (500, "Failed to unregister the following cuda shared memory regions: in ,out ,")
        assert regions.unregister(server).status == 200
        with Channel(server.grpc) as channel:
            answer = channel.call("CudaSharedMemoryUnregister", pb.CudaSharedMemoryUnregisterRequest(name="out"))
            assert (answer.code, answer.details) == ("INTERNAL", in_use.format("out"))
        assert [one["name"] for one in cuda.status(server)] == ["in", "out"]
        assert infer(server, "pair", body([1, 4], part("in", 16))).status == 200
        assert first.result().status == 200
        assert target.read(16) == DATA
        assert cuda.unregister(server).status == 200
        assert cuda.status(server) == []


def test_used_by_nobody_who_went(server: Server, source: Memory) -> None:
    """The request of a client that closed its connection is answered nobody, and the region is free."""
    with rawhttp.Connection("127.0.0.1", server.http_port) as connection:
        asked = body([1, 4], part("in", 16))
        connection.send(rawhttp.head("POST", "/v2/models/pair/infer", body=asked) + asked)
        server.process.wait_until(lambda: waiting(server), 60)
        assert cuda.unregister(server, "in").status == 500
    server.process.wait_until(lambda: cuda.unregister(server, "in").status == 200, 60)


@pytest.mark.gpu
def test_a_client_that_is_killed(server: Server, devices: Gpus) -> None:
    """What it shared stays until it is unregistered, and cannot be registered again."""
    with Client(devices) as client:
        memory = client.memory(SIZE, DATA)
        assert cuda.register(server, "r", memory).status == 200
        client.kill()
        for model in MODELS:
            answer = infer(server, model, body([4], part("r", 16), part("r", 16, 64)))
            assert answer.status == 200, answer.body
        assert cuda.unregister(server, "r").status == 200
        assert error(cuda.register(server, "r", memory)) == (400, NO_MEMORY)


def test_a_total_that_is_bounded(tmp_path: Path) -> None:
    """Regions of both kinds together."""
    devices = Gpus(tmp_path, DEVICES)
    options = ALLOWED | {"client-shm-byte-size": "10000"}
    with (
        Nereid(repository(tmp_path / "models"), options, env=devices.env) as server,
        Client(devices) as client,
        regions.Memory(SIZE) as memory,
    ):
        shared = client.memory(SIZE)
        assert cuda.register(server, "one", shared).status == 200
        for answer in (cuda.register(server, "two", shared), regions.register(server, "two", memory.key, SIZE)):
            code, text = error(answer)
            assert code == 503 and "raise --client-shm-byte-size" in text
        assert cuda.unregister(server, "one").status == 200
        assert regions.register(server, "two", memory.key, SIZE).status == 200
        assert error(cuda.register(server, "one", shared))[0] == 503
    devices.left_nothing()


def test_a_server_that_ends(tmp_path: Path) -> None:
    """With regions that nobody unregistered."""
    devices = Gpus(tmp_path, DEVICES)
    with Nereid(repository(tmp_path / "models"), ALLOWED, env=devices.env) as server, Client(devices) as client:
        for name in ("a", "b"):
            assert cuda.register(server, name, client.memory(SIZE)).status == 200
        assert infer(server, "gpu", body([4], part("a", 16), part("b", 16))).status == 200
    devices.left_nothing()


# A call of the driver that takes its time.


def held(server: Server, pipe: Path) -> int:
    """Waits until the call has come to the gate; it goes on when what is returned is closed."""
    opened: list[int] = []

    def reached() -> bool:
        try:
            opened.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # nobody reads yet
            return False
        return True

    server.process.wait_until(reached, 60)
    return opened[0]


@pytest.mark.parametrize("call", ["cuInit", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle"])
def test_nobody_else_waits_for_the_driver(call: str, tmp_path: Path) -> None:
    """The one loop of the server serves others while a region is opened or closed. Who asked is answered when it is done."""
    devices = Gpus(tmp_path)
    pipe = devices.gate(call)
    made = Repository(tmp_path / "models")
    made.identity("m", extra=ON_CPU)
    with (
        Nereid(made.path, ALLOWED | {"loop-threads": "1"}, env=devices.env) as server,
        Client(devices) as client,
        ThreadPoolExecutor() as pool,
    ):
        memory = client.memory(SIZE, DATA)
        if call == "cuIpcCloseMemHandle":
            assert cuda.register(server, "r", memory).status == 200
            asked = pool.submit(cuda.unregister, server, "r")
        else:
            asked = pool.submit(cuda.register, server, "r", memory)
        gate = held(server, pipe)
        tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [7]}
        assert infer(server, "m", json.dumps({"inputs": [tensor]}).encode()).json()["outputs"][0]["data"] == [7]
        with Channel(server.grpc) as channel:
            assert channel.call("CudaSharedMemoryStatus").parse(pb.CudaSharedMemoryStatusResponse).regions == {}
        assert not asked.done()
        os.close(gate)
        assert asked.result().status == 200
        assert len(cuda.status(server)) == (call != "cuIpcCloseMemHandle")
    devices.left_nothing()


def test_nobody_waits_for_the_region_of_a_gone_client(tmp_path: Path) -> None:
    """It does not read its answer: the region is unregistered, and stays open. It goes: that is closed, and the one loop serves others."""
    devices = Gpus(tmp_path)
    pipe = devices.gate("cuIpcCloseMemHandle")
    made = Repository(tmp_path / "models")
    made.identity("two", tensors=2, extra=ON_CPU)
    with Nereid(made.path, ALLOWED | {"loop-threads": "1"}, env=devices.env) as server, Client(devices) as client:
        memory = client.memory(SIZE, DATA)
        assert cuda.register(server, "r", memory).status == 200
        count = 8 << 20  # more than a socket takes of an answer that nobody reads
        asked = json.dumps({
            "inputs": [
                {"name": "INPUT0", "datatype": "FP32", "shape": [4], "parameters": part("r", 16)},
                {"name": "INPUT1", "datatype": "FP32", "shape": [count], "parameters": {"binary_data_size": 4 * count}},
            ],
            "outputs": [{"name": "OUTPUT0", "parameters": part("r", 16, 64)}, {"name": "OUTPUT1", "parameters": {"binary_data": True}}],
        }).encode()
        with rawhttp.Connection("127.0.0.1", server.http_port) as connection:
            headers = {"Inference-Header-Content-Length": str(len(asked))}
            body_of = asked + bytes(4 * count)
            connection.send(rawhttp.head("POST", "/v2/models/two/infer", headers, body=body_of) + body_of)
            server.process.wait_until(lambda: memory.read(16, 64) == DATA, 60)
            server.process.wait_until(lambda: cuda.unregister(server, "r").status == 200, 60)
            assert cuda.status(server) == []
            with pytest.raises(OSError, match="No such device"):  # nobody has come to the gate
                os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        gate = held(server, pipe)
        assert cuda.status(server) == []
        assert rawhttp.get(server.http, "/v2/models/two").status == 200
        os.close(gate)
    devices.left_nothing()


def test_a_region_that_hangs_holds_up_its_name_alone(tmp_path: Path) -> None:
    """Others are registered, used, told and unregistered, of both kinds. What is ordered of that name is done in its order."""
    devices = Gpus(tmp_path)
    pipe = devices.gate("cuIpcOpenMemHandle_v2")
    made = Repository(tmp_path / "models")
    made.identity("m", extra=ON_CPU)
    with (
        Nereid(made.path, ALLOWED, env=devices.env) as server,
        Client(devices) as client,
        regions.Memory(SIZE) as system,
        ThreadPoolExecutor() as pool,
    ):
        memory = client.memory(SIZE, DATA)
        slow = pool.submit(cuda.register, server, "slow", memory)
        gate = held(server, pipe)
        then = pool.submit(cuda.unregister, server, "slow")
        for _ in range(2):
            for name in ("a", "b"):
                assert cuda.register(server, name, memory).status == 200
            assert regions.register(server, "s", system.key, SIZE).status == 200
            assert infer(server, "m", body([4], part("a", 16), part("s", 16))).status == 200
            assert [one["name"] for one in cuda.status(server)] == ["a", "b"]
            assert cuda.unregister(server, "a").status == 200
            assert cuda.unregister(server).status == 200
            assert cuda.status(server) == []
            assert regions.unregister(server).status == 200
        assert not slow.done() and not then.done()
        os.close(gate)
        assert slow.result().status == then.result().status == 200
        assert cuda.status(server) == []
    devices.left_nothing()


def test_who_asked_and_went(tmp_path: Path) -> None:
    """The region is registered all the same; the name tells."""
    devices = Gpus(tmp_path)
    pipe = devices.gate("cuIpcOpenMemHandle_v2")
    made = Repository(tmp_path / "models")
    made.identity("m", extra=ON_CPU)
    with Nereid(made.path, ALLOWED, env=devices.env) as server, Client(devices) as client:
        memory = client.memory(SIZE, DATA)
        with rawhttp.Connection("127.0.0.1", server.http_port) as connection:
            asked = json.dumps({"raw_handle": {"b64": base64.b64encode(memory.handle).decode()}, "device_id": 0, "byte_size": SIZE}).encode()
            connection.send(rawhttp.head("POST", f"{CUDA}/region/r/register", body=asked) + asked)
            gate = held(server, pipe)
        os.close(gate)
        server.process.wait_until(lambda: len(cuda.status(server)) == 1, 60)
        assert infer(server, "m", body([4], part("r", 16))).status == 200
    devices.left_nothing()


@pytest.mark.parametrize("stays", [True, False])
def test_a_server_that_ends_meanwhile(stays: bool, tmp_path: Path) -> None:
    """It waits for the driver, and closes what was opened. Who stayed is answered."""
    devices = Gpus(tmp_path)
    pipe = devices.gate("cuIpcOpenMemHandle_v2")
    made = Repository(tmp_path / "models")
    made.identity("m", extra=ON_CPU)
    with Nereid(made.path, ALLOWED, env=devices.env) as server, Client(devices) as client:
        memory = client.memory(SIZE, DATA)
        with rawhttp.Connection("127.0.0.1", server.http_port) as connection:
            asked = json.dumps({"raw_handle": {"b64": base64.b64encode(memory.handle).decode()}, "device_id": 0, "byte_size": SIZE}).encode()
            connection.send(rawhttp.head("POST", f"{CUDA}/region/r/register", body=asked) + asked)
            gate = held(server, pipe)
            server.process.terminate()
            server.process.wait_until(lambda: "received, stopping" in server.process.log(), 60)
            if stays:
                os.close(gate)
                assert connection.answer().status == 200
        if not stays:
            os.close(gate)
        server.process.ends(0)
    devices.left_nothing()


# Each call of the driver fails once, the first or a later one.

AT_REGISTERING = {
    "cuCtxPushCurrent_v2": NO_MEMORY,
    "cuDevicePrimaryCtxRetain": NO_MEMORY,
    "cuIpcOpenMemHandle_v2": NO_MEMORY,
    "cuMemGetAddressRange_v2": "failed to register shared memory region 'r': invalid args",
}


@pytest.mark.parametrize("call", AT_REGISTERING)
def test_a_call_that_fails_while_a_region_is_registered(call: str, tmp_path: Path) -> None:
    """The answer is as for no memory, the log has the driver's words; what was opened is closed, and the next is registered."""
    devices = Gpus(tmp_path, fail=f"{call}:1=719")
    made = Repository(tmp_path / "models")
    made.identity("m", extra=ON_CPU)
    with Nereid(made.path, ALLOWED, env=devices.env) as server, Client(devices) as client:
        memory = client.memory(SIZE, DATA)
        assert error(cuda.register(server, "r", memory)) == (400, AT_REGISTERING[call])
        assert "shared memory region 'r'" in server.process.log() and "(719)" in server.process.log()
        assert cuda.status(server) == []
        assert cuda.register(server, "r", memory).status == 200
        assert infer(server, "m", body([4], part("r", 16), part("r", 16, 64))).status == 200
        assert memory.read(16, 64) == DATA
    devices.left_nothing()


def in_place(asked: bytes) -> Callable[[Server], rawhttp.Answer]:
    return lambda server: infer(server, "m", asked)


INPUT = in_place(body([4], part("r", 16)))
OUTPUT = in_place(plain(part("r", 16, 64)))


@pytest.mark.parametrize("call", ["cuCtxPushCurrent_v2:2", "cuStreamCreate:1", "cuMemcpyAsync:1", "cuStreamSynchronize:1"])
@pytest.mark.parametrize("way", ["input", "output"])
def test_a_call_that_fails_while_a_request_is_answered(call: str, way: str, tmp_path: Path) -> None:
    """This request is an error that says what; the region stays, the next request is answered, and nobody uses it any more."""
    devices = Gpus(tmp_path, fail=f"{call}=719")
    made = Repository(tmp_path / "models")
    made.identity("m", extra=ON_CPU)
    with Nereid(made.path, ALLOWED, env=devices.env) as server, Client(devices) as client:
        memory = client.memory(SIZE, DATA)
        assert cuda.register(server, "r", memory).status == 200
        ask = INPUT if way == "input" else OUTPUT
        code, text = error(ask(server))
        assert code == 500 and "(719)" in text, text
        assert text.startswith("input 'INPUT0'" if way == "input" else "output 'OUTPUT0' in shared memory region 'r': "), text
        assert ask(server).status == 200
        if way == "output":
            assert memory.read(16, 64) == DATA
        assert cuda.unregister(server, "r").status == 200
    devices.left_nothing()


def test_a_call_that_fails_while_a_region_is_closed(tmp_path: Path) -> None:
    """It is forgotten all the same: the driver has it, and the log says so. Others go on."""
    devices = Gpus(tmp_path, fail="cuIpcCloseMemHandle:1=719")
    made = Repository(tmp_path / "models")
    made.identity("m", extra=ON_CPU)
    with Nereid(made.path, ALLOWED, env=devices.env) as server, Client(devices) as client:
        memory = client.memory(SIZE, DATA)
        assert cuda.register(server, "r", memory).status == 200
        assert cuda.unregister(server, "r").status == 200
        assert "closing shared memory region 'r': CUDA says" in server.process.log()
        assert cuda.register(server, "r", memory).status == 200
        assert infer(server, "m", body([4], part("r", 16))).status == 200
    (report,) = devices.reports()
    assert report["live"]["ipc"] == 1 and not report["wrong"]


def test_a_driver_without_a_device(tmp_path: Path) -> None:
    devices = Gpus(tmp_path, "")
    made = Repository(tmp_path / "models")
    made.identity("m", extra=ON_CPU)
    with Nereid(made.path, ALLOWED, env=devices.env) as server:
        asked = {"raw_handle": {"b64": base64.b64encode(bytes(64)).decode()}, "device_id": 0, "byte_size": 64}
        assert error(rawhttp.post(server.http, f"{CUDA}/region/r/register", asked)) == (400, NO_MEMORY)
        assert "shared memory" not in server.process.log()
    devices.left_nothing()
