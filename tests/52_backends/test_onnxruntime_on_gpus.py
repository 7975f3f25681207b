"""ONNX models on GPUs, with stand-ins for CUDA's driver and for an ONNX Runtime that has CUDA (tests/cuda): which sessions are made, with what, that what is
queued is waited for, and what becomes of a GPU that fails. What a GPU computes: tests/75_gpu."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import paths, rawhttp
from harness.gpus import Gpus
from harness.repository import Repository
from harness.servers import Nereid, Server
from models import onnx_models

SOURCE = paths.ROOT / "tests" / "cuda" / "onnxruntime" / "standin_onnxruntime.c"
ON_GPU, ON_CPU = "{ kind: KIND_GPU gpus: [ 0 ] }", "{ kind: KIND_CPU }"
PAIRS = "max_batch_size: 4\ndynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 600000000 }\n"
OPENVINO = 'optimization { execution_accelerators { cpu_execution_accelerator: [ { name: "openvino" } ] } }\n'
FIRST, SECOND = [[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("standin") / "libonnxruntime.so"
    headers = next((paths.ROOT / "build" / "deps").glob("usr/include/onnxruntime"), Path("/usr/include/onnxruntime"))
    argv = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", f"-I{headers}"]
    subprocess.run([*argv, str(SOURCE), "-o", str(made)], check=True)
    return made


class Place:
    """A repository, GPUs, and what the stand-in tells of sessions."""

    def __init__(self, folder: Path, library: Path, fail: str = "", devices: str = "8.0:256"):
        self.repository = Repository(folder / "models")
        self.gpus = Gpus(folder, devices, fail)
        self._report, self._library = folder / "sessions", library
        real = os.path.realpath(paths.need(paths.BUILD / "backends" / "onnxruntime" / "libonnxruntime.so.1"))
        self.env = self.gpus.env | {"NEREID_ONNXRUNTIME": real, "NEREID_ONNXRUNTIME_REPORT": str(self._report)}

    def model(self, name: str, groups: str, more: str = PAIRS, built: Any = None) -> None:
        config = f'backend: "onnxruntime"\n{more}' + (f"instance_group [ {groups} ]\n" if groups else "")
        onnx_models.save(built or onnx_models.identity("FP32", ["n", 4]), self.repository.model(name, config))

    def server(self, **options: str) -> Nereid:
        return Nereid(self.repository.path, {"backend-config": f"onnxruntime,library={self._library}"} | options, env=self.env)

    def told(self) -> list[str]:
        return self._report.read_text().splitlines() if self._report.exists() else []

    def sessions(self) -> dict[str, int]:
        """How many there are now on each kind of device."""
        told = self.told()
        return {kind: told.count(f"made {kind}") - told.count(f"freed {kind}") for kind in ("cpu", "gpu")}


def ask(server: Server, model: str, x: list[list[float]], **parameters: Any) -> Any:
    """The output y, or what was said instead."""
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [len(x), len(x[0])], "data": x}], "parameters": parameters}
    answer = rawhttp.post(server.http, f"/v2/models/{model}/infer", json.dumps(body).encode())
    if answer.status != 200:
        return str(answer.json()["error"])
    return np.array(answer.json()["outputs"][0]["data"], np.float32).reshape(len(x), -1).tolist()


def ask_both(server: Server) -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda x: ask(server, "m", x), (FIRST, SECOND)))


def load(server: Server, model: str, groups: list[dict[str, Any]] | None = None) -> rawhttp.Answer:
    body: dict[str, Any] = {}
    if groups is not None:
        config = rawhttp.get(server.http, f"/v2/models/{model}/config").json() | {"instance_group": groups}
        body = {"parameters": {"config": json.dumps(config)}}
    return rawhttp.post(server.http, f"/v2/repository/models/{model}/load", json.dumps(body).encode())


def test_a_session_for_each_instance(library: Path, tmp_path: Path) -> None:
    """Without a kind on each GPU; none is made beside those of the instances, each for its GPU and with a stream."""
    place = Place(tmp_path, library, devices="8.0:256,9.0:256")
    place.model("auto", "")
    place.model("two", "{ count: 2 kind: KIND_GPU gpus: [ 1 ] }")
    place.model("host", "{ count: 2 kind: KIND_CPU }")
    with place.server() as server:
        assert place.sessions() == {"cpu": 1, "gpu": 4}
        told = place.told()
        assert sorted(line for line in told if line.startswith("device_id=")) == ["device_id=0", "device_id=1", "device_id=1", "device_id=1"]
        assert told.count("user_compute_stream=there") == 4
        for model in ("auto", "two", "host"):
            assert ask(server, model, [*FIRST, *SECOND]) == [*FIRST, *SECOND]
    assert place.sessions() == {"cpu": 0, "gpu": 0}
    place.gpus.left_nothing()


def test_rows_of_several_requests(library: Path, tmp_path: Path) -> None:
    place = Place(tmp_path, library)
    place.model("m", ON_GPU)
    with place.server() as server:
        assert ask_both(server) == [FIRST, SECOND]
    place.gpus.left_nothing()
    assert place.gpus.calls("cuMemcpyAsync") == 4


@pytest.mark.parametrize("call", ["cuMemcpyAsync:1", "cuMemcpyAsync:2", "cuMemcpyAsync:3", "cuMemcpyAsync:4"])
def test_a_copy_that_fails(library: Path, tmp_path: Path, call: str) -> None:
    """Whose copy it was is told so; the other gets its rows, and it goes on."""
    place = Place(tmp_path, library, fail=f"{call}=2")
    place.model("m", ON_GPU)
    with place.server() as server:
        told = ask_both(server)
        failed = [each for each in told if isinstance(each, str)]
        assert len(failed) == 1 and "cuMemcpyAsync" in failed[0], told
        assert all(isinstance(each, str) or each == expected for each, expected in zip(told, (FIRST, SECOND), strict=True))
        assert ask_both(server) == [FIRST, SECOND]
    place.gpus.left_nothing()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_gpu_that_fails(library: Path, tmp_path: Path, number: int) -> None:
    """Everybody in the batch is told so. The session cannot have another stream: it says what to do, and that helps."""
    place = Place(tmp_path, library, fail=f"cuStreamSynchronize:{number}=700")
    place.model("m", ON_GPU)
    with place.server(**{"model-control-mode": "explicit", "load-model": "m"}) as server:
        told = ask_both(server)
        assert all("cuStreamSynchronize failed" in each for each in told), told
        assert all("GPU 0 failed in an earlier request" in each and "unload the model and load it again" in each for each in ask_both(server))
        assert rawhttp.post(server.http, "/v2/repository/models/m/unload", {}).status == 200
        server.process.wait_until(lambda: place.sessions()["gpu"] == 0, 30)
        assert load(server, "m").status == 200
        assert ask_both(server) == [FIRST, SECOND]
    place.gpus.left_nothing()


STATE = """max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "total" data_type: TYPE_FP32 dims: [ 4 ] }
sequence_batching { max_sequence_idle_microseconds: 600000000 oldest { max_candidate_sequences: 4 preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 600000000 }
state [ { input_name: "total_in" output_name: "total" data_type: TYPE_FP32 dims: [ 4 ]
initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } ] }
"""


def ask_sequences(server: Server, start: bool) -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda i: ask(server, "m", [[i, i, i, i]], sequence_id=i, sequence_start=start), (1, 2)))


def test_states(library: Path, tmp_path: Path) -> None:
    place = Place(tmp_path, library)
    place.model("m", ON_GPU, STATE, onnx_models.sums("FP32", ["n", 4]))
    with place.server() as server:
        for count in (1, 2, 3):
            assert ask_sequences(server, count == 1) == [[[count] * 4], [[2 * count] * 4]]
    place.gpus.left_nothing()


@pytest.mark.parametrize("number", [3, 4])
def test_a_state_that_does_not_arrive(library: Path, tmp_path: Path, number: int) -> None:
    """What else was queued on the stream of a wait that failed may not have arrived either: nobody in the batch gets bytes."""
    place = Place(tmp_path, library, fail=f"cuStreamSynchronize:{number}=700")
    place.model("m", ON_GPU, STATE, onnx_models.sums("FP32", ["n", 4]))
    with place.server() as server:
        told = ask_sequences(server, True)
        assert all(isinstance(each, str) for each in told), told
    place.gpus.left_nothing()


def test_openvino_beside_gpus(library: Path, tmp_path: Path) -> None:
    """The accelerator of the processor is for the instances there."""
    paths.need(paths.BUILD / "backends" / "onnxruntime" / "openvino", "tools/setup.sh onnxruntime-openvino")
    place = Place(tmp_path, library)
    place.model("both", f"{ON_CPU}, {ON_GPU}", OPENVINO + PAIRS.replace("600000000", "1000"))
    with place.server(**{"model-control-mode": "explicit", "load-model": "both"}) as server:
        for _ in range(8):
            assert ask(server, "both", [*FIRST, *SECOND]) == [*FIRST, *SECOND]
        for groups in ([{"kind": "KIND_GPU"}], [{"kind": "KIND_CPU"}], [{"kind": "KIND_CPU"}, {"kind": "KIND_GPU"}]):
            assert load(server, "both", groups).status == 200
            for _ in range(4):
                assert ask(server, "both", [*FIRST, *SECOND]) == [*FIRST, *SECOND]
    place.gpus.left_nothing()


def test_the_session_of_the_cpu_goes_with_its_last_instance(library: Path, tmp_path: Path) -> None:
    place = Place(tmp_path, library)
    place.model("m", ON_CPU)
    with place.server(**{"model-control-mode": "explicit", "load-model": "m"}) as server:
        assert place.sessions() == {"cpu": 1, "gpu": 0}
        assert load(server, "m", [{"kind": "KIND_GPU"}]).status == 200
        server.process.wait_until(lambda: place.sessions() == {"cpu": 0, "gpu": 1}, 30)
        assert ask_both(server) == [FIRST, SECOND]
        assert load(server, "m", [{"kind": "KIND_CPU"}]).status == 200
        server.process.wait_until(lambda: place.sessions() == {"cpu": 1, "gpu": 0}, 30)
        assert ask_both(server) == [FIRST, SECOND]
    place.gpus.left_nothing()


ACCELERATORS = """optimization { execution_accelerators { gpu_execution_accelerator [
{ name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } parameters { key: "max_workspace_size_bytes" value: "1048576" } },
{ name: "cuda" parameters { key: "gpu_mem_limit" value: "1073741824" } } ] } }
parameters { key: "cudnn_conv_algo_search" value { string_value: "2" } }
"""


def test_accelerators(library: Path, tmp_path: Path) -> None:
    """PB-63, PB-67, PB-68: in the order of the list, and CUDA behind them."""
    place = Place(tmp_path, library)
    place.model("m", ON_GPU, ACCELERATORS + PAIRS)
    with place.server() as server:
        told = place.told()
        expected = ["trt_fp16_enable=1", "trt_max_workspace_size=1048576", "tensorrt", "cudnn_conv_algo_search=DEFAULT", "gpu_mem_limit=1073741824"]
        assert [line for line in told if line in expected] == expected
        assert told[-1] == "made gpu"
        assert ask_both(server) == [FIRST, SECOND]
