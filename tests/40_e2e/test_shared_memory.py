"""Shared memory of clients: off unless it is allowed, read and written in place, and nothing that a client does to it harms the server."""

import json
import struct
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import metrics, paths, procfs, rawhttp
from harness.ensembles import chain
from harness.rawgrpc import Channel
from harness.regions import CUDA, SYSTEM, Memory, body, part, register, status, unregister
from harness.repository import Repository
from harness.servers import HOST, KINDS, Nereid, Server
from tritonclient.grpc import service_pb2 as pb
from tritonclient.utils import InferenceServerException

ALLOWED = {"allow-client-shm": "true"}
DISABLED = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
NAMES = {"system_shared_memory", "cuda_shared_memory"}
PAIR = "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 600000000 }"
DATA = struct.pack("<4f", 1, -2, 3.5, 4e30)
LARGE = 8 << 20


def repository(root: Path) -> Path:
    made = Repository(root)
    made.identity("id_fp32")
    made.identity("id_bytes", "BYTES")
    made.identity("id_pair", dims=(4,), max_batch_size=2, extra=PAIR)  # answers two requests at a time
    made.identity("id_cached", extra="response_cache { enable: true }")
    made.identity("id_alone", extra='parameters { key: "ISOLATION" value { string_value: "process" } }')
    made.identity("id_bytes_alone", "BYTES", extra='parameters { key: "ISOLATION" value { string_value: "process" } }')
    made.model("ensemble", chain("ensemble", ["id_fp32", "id_fp32"]).config().replace('"IN"', '"INPUT0"').replace('"OUT"', '"OUTPUT0"'))
    return made.path


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = ALLOWED | {"cache-config": "local,size=1048576", "cache-directory": str(paths.BUILD / "caches")}
    with Nereid(repository(tmp_path_factory.mktemp("shared") / "models"), options) as server:
        yield server


@pytest.fixture(scope="module", params=["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The reference of this version has no option and always allows it."""
    made = Repository(tmp_path_factory.mktemp("either") / "models")
    made.identity("id_pair", dims=(4,), max_batch_size=2, extra=PAIR)
    with KINDS[request.param](made.path, ALLOWED if request.param == "nereid" else {}) as server:
        yield server


@pytest.fixture
def source(allowed: Server) -> Iterator[Memory]:
    with Memory(8192, DATA) as memory:
        assert register(allowed, "in", memory.key, 8192).status == 200
        yield memory
        assert unregister(allowed).status == 200


@pytest.fixture
def target(allowed: Server, source: Memory) -> Iterator[Memory]:
    with Memory(8192) as memory:
        assert register(allowed, "out", memory.key, 8192).status == 200
        yield memory
        assert unregister(allowed).status == 200


def test_clients_may_share_a_key(allowed: Server) -> None:
    """Each registers it by a name of its own, again and again: nobody is told that there is no such memory."""

    def comes_and_goes(memory: Memory, name: str) -> set[int]:
        said: set[int] = set()
        with rawhttp.Connection(HOST, allowed.http_port) as connection:
            for _ in range(600):
                for what, asked in (("register", {"key": memory.key, "byte_size": 4096}), ("unregister", {})):
                    said.add(connection.ask("POST", f"/v2/systemsharedmemory/region/{name}/{what}", json.dumps(asked).encode()).status)
        return said

    with Memory(4096) as memory, ThreadPoolExecutor() as pool:
        asked = [pool.submit(comes_and_goes, memory, f"name{i}") for i in range(4)]
        assert [each.result() for each in asked] == [{200}] * 4


def test_another_region_of_a_memory_costs_no_more_than_the_first(allowed: Server) -> None:
    """Of the server's processor: who registers two thousand regions does not make those behind them slow."""
    with Memory(4096) as memory, rawhttp.Connection(HOST, allowed.http_port) as connection:

        def cost(first: int) -> int:
            before = procfs.cpu_ns(allowed.pid)
            for number in range(first, first + 200):
                asked = json.dumps({"key": memory.key, "byte_size": 4096}).encode()
                assert connection.ask("POST", f"/v2/systemsharedmemory/region/many{number}/register", asked).status == 200
            return procfs.cpu_ns(allowed.pid) - before

        costs = [cost(first) for first in range(0, 2200, 200)]
        assert unregister(allowed).status == 200
    assert min(costs[-3:]) < 5 * min(costs[:3]), costs


def infer(server: Server, model: str, asked: bytes) -> rawhttp.Answer:
    return rawhttp.post(server.http, f"/v2/models/{model}/infer", asked)


def plain(values: list[float], target: dict[str, Any]) -> bytes:
    """Only the output is in shared memory."""
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [len(values)], "data": values}
    return json.dumps({"inputs": [tensor], "outputs": [{"name": "OUTPUT0", "parameters": target}]}).encode()


def error(answer: rawhttp.Answer) -> tuple[int, str]:
    return answer.status, json.loads(answer.body)["error"]


def test_off_unless_allowed(nereid: Server) -> None:
    """Nothing can be registered, status tells of nothing, and the extensions are not named."""
    with Memory(64) as memory, Channel(nereid.grpc) as channel:
        assert error(register(nereid, "r", memory.key, 64)) == (501, DISABLED)
        assert error(unregister(nereid)) == (501, DISABLED)
        assert error(rawhttp.post(nereid.http, f"{CUDA}/region/r/register", {})) == (501, DISABLED)
        assert error(rawhttp.post(nereid.http, f"{CUDA}/unregister", {})) == (501, DISABLED)
        for method in ("SystemSharedMemoryRegister", "SystemSharedMemoryUnregister", "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister"):
            answer = channel.call(method)
            assert (answer.code, answer.details) == ("UNIMPLEMENTED", DISABLED)
        assert status(nereid) == rawhttp.get(nereid.http, f"{CUDA}/status").json() == []
        assert channel.call("SystemSharedMemoryStatus").code == channel.call("CudaSharedMemoryStatus").code == "OK"
        found = error(infer(nereid, "id_fp32", body([4], part("r", 16))))
        assert found == (404, "Unable to find shared memory region: 'r'")
    assert not NAMES & set(rawhttp.get(nereid.http, "/v2").json()["extensions"])


def test_named_where_it_is_allowed(allowed: Server) -> None:
    extensions = rawhttp.get(allowed.http, "/v2").json()["extensions"]
    assert extensions[extensions.index("system_shared_memory") - 1] == "model_configuration"
    assert extensions[extensions.index("system_shared_memory") + 1] == "cuda_shared_memory"


@pytest.mark.parametrize("model", ["id_fp32", "ensemble", "id_alone"])
def test_both_ways_over_http(allowed: Server, source: Memory, target: Memory, model: str) -> None:
    """A model of the process, an ensemble, a process of its own: the output is in the region, and nothing else is touched."""
    target.write(b"\xff" * 8192)
    answer = infer(allowed, model, body([4], part("in", 16), part("out", 64, 96)))
    assert answer.status == 200, answer.body
    assert answer.json()["outputs"] == [{"name": "OUTPUT0", "datatype": "FP32", "shape": [4]}]
    assert target.read(8192) == b"\xff" * 96 + DATA + b"\xff" * (8192 - 96 - 16)


@pytest.mark.parametrize("model", ["id_fp32", "ensemble", "id_alone"])
def test_both_ways_over_grpc(allowed: Server, source: Memory, target: Memory, model: str) -> None:
    with grpcclient.InferenceServerClient(allowed.grpc) as client:
        given = grpcclient.InferInput("INPUT0", [4], "FP32")
        given.set_shared_memory("in", 16)
        wanted = grpcclient.InferRequestedOutput("OUTPUT0")
        wanted.set_shared_memory("out", 16, 4096)
        result = client.infer(model, [given], outputs=[wanted])
    assert result.get_response().raw_output_contents == [b""]
    assert target.read(16, 4096) == DATA


def test_over_a_stream(allowed: Server, source: Memory, target: Memory) -> None:
    asked = pb.ModelInferRequest(model_name="id_fp32")
    asked.inputs.add(name="INPUT0", datatype="FP32", shape=[4])
    asked.outputs.add(name="OUTPUT0")
    for tensor, region in ((asked.inputs[0], "in"), (asked.outputs[0], "out")):
        tensor.parameters["shared_memory_region"].string_param = region
        tensor.parameters["shared_memory_byte_size"].int64_param = 16
    with Channel(allowed.grpc) as channel:
        call = channel.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        answers = [pb.ModelStreamInferResponse.FromString(each) for each in call(iter([asked.SerializeToString()] * 3))]
    assert [answer.error_message for answer in answers] == [""] * 3
    assert target.read(16) == DATA
    assert unregister(allowed, "in").status == 200  # nobody uses it any more


def test_a_region_from_its_offset_on(allowed: Server) -> None:
    with Memory(8192) as memory:
        memory.write(DATA, 4096 + 16)
        assert register(allowed, "later", memory.key, 4096, 4096).status == 200
        assert infer(allowed, "id_fp32", body([4], part("later", 16, 16), part("later", 16, 64))).status == 200
        assert memory.read(16, 4096 + 64) == DATA
        assert unregister(allowed).status == 200


def test_a_region_unlinked_stays(allowed: Server, source: Memory, target: Memory) -> None:
    source.path.unlink()
    assert infer(allowed, "id_fp32", body([4], part("in", 16), part("out", 16))).status == 200
    assert target.read(16) == DATA


@pytest.mark.parametrize("model", ["id_fp32", "ensemble", "id_alone"])
@pytest.mark.parametrize("which", ["input", "output"])
def test_cut_short(allowed: Server, model: str, which: str) -> None:
    """CVE-2024-0088: memory that is gone when it is touched ends nobody, and nobody gets an answer made of it."""
    with Memory(LARGE) as large:
        assert register(allowed, "cut", large.key, LARGE).status == 200
        large.cut(4096)
        if which == "input":
            asked = body([LARGE // 4], part("cut", LARGE))
        else:
            asked = plain([1.0, 2.0, 3.0, 4.0], part("cut", 16, LARGE - 16))
        code, text = error(infer(allowed, model, asked))
        assert code == 400 and text.startswith("shared memory region 'cut' was cut short while"), text
        code, text = error(infer(allowed, model, body([4], part("cut", 16))))
        assert code == 400 and text.startswith("shared memory region 'cut' was cut short after"), text
        large.cut(LARGE)  # what was lost does not come back
        assert error(infer(allowed, model, body([4], part("cut", 16)))) == (400, text)
        assert unregister(allowed, "cut").status == 200
        assert register(allowed, "cut", large.key, LARGE).status == 200
        assert infer(allowed, model, body([4], part("cut", 16))).status == 200
        assert unregister(allowed, "cut").status == 200
    assert allowed.process.running()


@pytest.mark.parametrize("model", ["id_bytes", "id_bytes_alone"])
def test_strings(allowed: Server, source: Memory, target: Memory, model: str) -> None:
    text = struct.pack("<I", 3) + b"abc" + struct.pack("<I", 0)
    source.write(text)
    assert infer(allowed, model, body([2], part("in", 11), part("out", 11), "BYTES")).status == 200
    assert target.read(11) == text
    code, words = error(infer(allowed, model, body([3], part("in", 11), part("out", 11), "BYTES")))
    assert code == 400 and "expected 3 string elements" in words


@pytest.mark.parametrize("model", ["id_fp32", "ensemble", "id_alone"])
def test_an_output_that_does_not_fit(allowed: Server, source: Memory, target: Memory, model: str) -> None:
    code, text = error(infer(allowed, model, body([4], part("in", 16), part("out", 15))))
    want = "shared memory size specified with the request for output 'OUTPUT0' (15 bytes) should be at least 16 bytes to hold the results"
    assert code == 500 and text in (want, f"in ensemble '{model}', {want}")
    assert target.read(16) == bytes(16)


def test_what_is_computed_from_it_is_not_kept(allowed: Server, source: Memory, target: Memory) -> None:
    """A client could write other bytes between the look into the cache and the run."""
    for _ in range(2):
        assert infer(allowed, "id_cached", body([4], part("in", 16))).status == 200
    for _ in range(2):
        assert infer(allowed, "id_cached", plain([7.0], part("out", 16))).status == 200
    page = metrics.parse(rawhttp.get(allowed.metrics, "/metrics").body.decode())
    assert page["nv_cache_num_hits_per_model"].value(model="id_cached") == 0


def waiting(server: Server) -> bool:
    page = metrics.parse(rawhttp.get(server.metrics, "/metrics").body.decode())
    return page["nv_inference_pending_request_count"].value(model="id_pair") == 1


def test_used_until_it_is_answered(either: Server) -> None:
    """A region that a request uses is not unregistered; its name stays; and once the request is answered nobody uses it."""
    with Memory(4096, DATA) as memory, Memory(4096) as other, ThreadPoolExecutor() as pool:
        assert register(either, "in", memory.key, 64).status == register(either, "out", other.key, 64).status == 200
        assert register(either, "free", other.key + "-none", 64).status == 500
        asked = body([1, 4], part("in", 16), part("out", 16))
        first: Future[rawhttp.Answer] = pool.submit(infer, either, "id_pair", asked)
        either.process.wait_until(lambda: waiting(either), 60)
        in_use = "Cannot unregister shared memory region '{}', it is currently in use."
        assert error(unregister(either, "in")) == (500, in_use.format("in"))
        assert error(unregister(either, "out")) == (500, in_use.format("out"))
        assert error(unregister(either)) == (500, "Failed to unregister the following system shared memory regions: in ,out ,")
        assert error(register(either, "in", memory.key, 64)) == (400, "shared memory region 'in' already in manager")
        assert [each["name"] for each in status(either)] == ["in", "out"]
        assert infer(either, "id_pair", body([1, 4], part("in", 16))).status == 200
        assert first.result().status == 200
        assert other.read(16) == DATA
        if either.kind == "reference":  # lets go of it a moment after it has answered
            either.process.wait_until(lambda: unregister(either).status == 200, 60)
        assert unregister(either).status == 200
        assert status(either) == []


def test_used_by_nobody_who_went(allowed: Server, source: Memory) -> None:
    """A client that closes its connection is not waited for: its request is answered nobody, and the region is free."""
    with rawhttp.Connection(HOST, allowed.http_port) as connection:
        asked = body([1, 4], part("in", 16))
        connection.send(rawhttp.head("POST", "/v2/models/id_pair/infer", body=asked) + asked)
        allowed.process.wait_until(lambda: waiting(allowed), 60)
        assert unregister(allowed, "in").status == 500
    allowed.process.wait_until(lambda: unregister(allowed, "in").status == 200, 60)


def test_names_of_the_server_are_no_names(allowed: Server) -> None:
    """CVE-2025-23319, -23320, -23334: memory between a model and its process cannot be registered, nor can one learn that it is there."""
    for key in ("triton_python_backend_shm_region_0", "///triton_python_backend_shm_region_0"):
        code, text = error(register(allowed, "r", key, 64))
        assert code == 400 and "the key contains the reserved prefix" in text
    for key in ("", "/", ".", "/..", "/../etc/passwd", "a/b", "x" * 256, "x" * 5000):
        code, text = error(register(allowed, "r", key, 64))
        assert code == 500 and text.startswith("Unable to open shared memory region: '"), text
        assert len(text) < 1100
    assert status(allowed) == []


def test_texts_with_a_zero_byte_are_refused_over_grpc_too(allowed: Server, source: Memory) -> None:
    """What follows the zero byte would not be seen, and the region would have another name, or be another one."""
    with grpcclient.InferenceServerClient(allowed.grpc) as client:
        for call in (
            lambda: client.register_system_shared_memory("re\0gion", source.key, 8),
            lambda: client.register_system_shared_memory("region", source.key + "\0x", 8),
            lambda: client.unregister_system_shared_memory("in\0x"),
            lambda: client.get_system_shared_memory_status("in\0x"),
            lambda: client.is_model_ready("id_fp32\0x"),
            lambda: client.update_log_settings({"log_verbose_level\0x": 0}),
        ):
            with pytest.raises(InferenceServerException, match="a text of the request holds a zero byte"):
                call()
    assert [each["name"] for each in status(allowed)] == ["in"]


def test_parameters_with_a_zero_byte_are_refused(allowed: Server) -> None:
    """A model would see what is before it alone, whichever protocol the request came by."""
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [1]}], "parameters": {"a": "b\0c"}}
    code, words = error(rawhttp.post(allowed.http, "/v2/models/id_fp32/infer", json.dumps(body).encode()))
    assert (code, words) == (400, "parameter value 'b...' holds a zero byte")
    tensor = grpcclient.InferInput("INPUT0", [1, 1], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 1), np.float32))
    with grpcclient.InferenceServerClient(allowed.grpc) as client, pytest.raises(InferenceServerException) as caught:
        client.infer("id_fp32", [tensor], parameters={"a": "b\0c"})
    assert (caught.value.status(), caught.value.message()) == ("StatusCode.INVALID_ARGUMENT", words)


def test_keys_that_are_no_text(allowed: Server, source: Memory) -> None:
    """They would be told to every client that asks for the list, which then could not be read. Names: bytes of a URL that are no ASCII are refused."""
    text = json.dumps({"key": source.key, "byte_size": 8}).encode().replace(b"/tests", b"/tests\xff")
    code, words = error(rawhttp.post(allowed.http, f"{SYSTEM}/region/mine/register", text))
    assert (code, words) == (400, "cannot register shared memory region 'mine': its key is not UTF-8")
    with grpcclient.InferenceServerClient(allowed.grpc) as client:
        assert [each["name"] for each in status(allowed)] == list(client.get_system_shared_memory_status().regions) == ["in"]


def test_an_output_over_the_input(allowed: Server, source: Memory) -> None:
    """The client's own doing; the server goes on."""
    for offset in (0, 4):
        source.write(DATA)
        assert infer(allowed, "id_fp32", body([4], part("in", 16), part("in", 16, offset))).status == 200
        assert source.read(16, offset) == DATA


def test_bounds(allowed: Server, source: Memory) -> None:
    """CVE-2024-0087, CVE-2026-24173: no sum of an offset and a size wraps around."""
    most = 2**64 - 1
    for offset, size in ((0, 8193), (4096, most), (most, 2), (most - 4095, 4096), (2**63, 2**63)):
        code, text = error(register(allowed, "r", source.key, size, offset))
        assert (code, text) == (400, "failed to register shared memory region 'r': invalid args")
    for offset, size, words in ((8192, 1, "offset"), (most, 8, "offset"), (8, most, "offset + byte size"), (2, most - 1, "offset + byte size")):
        code, text = error(infer(allowed, "id_fp32", body([2], part("in", size, offset))))
        assert (code, text) == (400, f"Invalid {words} for shared memory region: 'in'")


def test_a_total_that_is_bounded(tmp_path: Path) -> None:
    with Nereid(repository(tmp_path / "models"), ALLOWED | {"client-shm-byte-size": "10000"}) as server, Memory(8192) as memory:
        assert register(server, "one", memory.key, 8192).status == 200
        code, text = error(register(server, "two", memory.key, 8192))
        assert code == 503 and "raise --client-shm-byte-size" in text
        assert unregister(server, "one").status == 200
        assert register(server, "two", memory.key, 8192).status == 200


def test_routes_take_what_the_reference_takes(allowed: Server, source: Memory) -> None:
    """A body that unregister does not need is not looked at; one key may have several regions."""
    assert register(allowed, "again", source.key, 4096, 4096).status == 200
    assert [each["name"] for each in status(allowed)] == ["again", "in"]
    assert rawhttp.post(allowed.http, f"{SYSTEM}/region/again/unregister", b"no JSON").status == 200
    assert rawhttp.post(allowed.http, f"{SYSTEM}/region/again/unregister", b"").status == 200
