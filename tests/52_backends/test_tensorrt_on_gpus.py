"""Plans of TensorRT on GPUs, with stand-ins for CUDA's driver and for TensorRT's runtime (tests/cuda): executions, graphs of CUDA's, formats. Run by hand:
it needs TensorRT's headers (NEREID_TENSORRT), and is collected where the build has the backend. What needs none is in 00_unit/test_tensorrt*.c."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import paths, rawhttp, together
from harness.gpus import Gpus
from harness.repository import Repository
from harness.servers import FLAG, Nereid, Server

SOURCE = paths.ROOT / "tests" / "cuda" / "tensorrt" / "standin_tensorrt.cc"
FOUR = "max_batch_size: 4\ndynamic_batching { preferred_batch_size: [ 2, 3 ] }\n"
GRAPHS = "optimization { cuda { graphs: true %s } }\n"
ROWS = """stand-in
tensor x in float linear -1,-1
tensor y out float linear -1,-1 x
profile
range x 1,1 2,4 4,16
"""
# The number of rows and a value, which the plan has as they are.
VALUES = """stand-in
tensor lengths in int32 shape 2
tensor x in float linear -1,4
tensor y out float linear -1,4 x
tensor found out int32 shape 2 lengths
profile
range lengths 1,1 2,5 4,9
range x 1,4 2,4 4,4
"""
FORMAT = """stand-in
tensor x in int8 chw4 -1,3,2,2
tensor y out int8 chw4 -1,3,2,2 x
profile
range x 1,3,2,2 2,3,2,2 4,3,2,2
"""


def headers() -> list[Path]:
    """The folders of TensorRT's headers and of CUDA's."""
    found = re.search(r"^NEREID_TENSORRT:PATH=(.+)$", (paths.BUILD / "CMakeCache.txt").read_text(), re.M)
    assert found
    return [Path(found[1]) / "include", Path("/usr/local/cuda/include")]


def stubs(header: Path) -> str:
    """What the stand-in does not define of the classes behind TensorRT's: it ends the process."""
    text = re.sub(r"//.*", "", header.read_text())
    made = "#include <NvInferRuntime.h>\n#include <cstdlib>\n#include <memory>\nusing namespace nvinfer1;\nusing namespace nvinfer1::apiv;\n"
    for name in ("VRuntime", "VCudaEngine", "VExecutionContext"):
        body = re.search(rf"class {name} : public VRoot\n\{{(.*?)\n\}};", text, re.S)
        assert body, name
        functions = [" ".join(one.split()) for one in re.findall(r"virtual (.*?) = 0;", body[1], re.S)]
        made += f"struct Stub{name} : {name} {{\n" + "".join(f"{one} override {{ abort(); }}\n" for one in functions) + "};\n"
    return made


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stand-in."""
    folder, where = tmp_path_factory.mktemp("standin"), headers()
    version = (where[0] / "NvInferVersion.h").read_text()
    major = re.search(r"^#define (?:NV_TENSORRT_MAJOR|TRT_MAJOR_ENTERPRISE) (\d+)", version, re.M)
    assert major
    (folder / "stubs.h").write_text(stubs(where[0] / "NvInferImpl.h"))
    argv = ["g++", "-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Wno-deprecated-declarations", "-Werror", f"-I{folder}"]
    argv += [word for each in where for word in ("-isystem", str(each))]
    subprocess.run([*argv, str(SOURCE), "-o", str(folder / f"libnvinfer.so.{major[1]}")], check=True)
    return folder


class Place:
    """A repository, GPUs, and what the stand-in tells of executions."""

    def __init__(self, folder: Path, library: Path, fail: str = ""):
        self.repository = Repository(folder / "models")
        self.gpus = Gpus(folder, fail=fail)
        self._report = folder / "executions"
        self.env = self.gpus.env | {"NEREID_TENSORRT_REPORT": str(self._report)}
        self.env["LD_LIBRARY_PATH"] += f":{library}"

    def model(self, plan: str, more: str = "", name: str = "m") -> None:
        folder = self.repository.model(name, f'platform: "tensorrt_plan"\n{more}')
        (folder / "1" / "model.plan").write_text(plan)

    def server(self, **options: str) -> Nereid:
        return Nereid(self.repository.path, {**options}, env=self.env)

    def told(self) -> list[str]:
        return self._report.read_text().splitlines() if self._report.exists() else []


def numbers(rows: int, length: int) -> list[list[float]]:
    return np.arange(1, rows * length + 1, dtype=np.float32).reshape(rows, length).tolist()


def body(x: list[list[float]], **inputs: int) -> bytes:
    more = [{"name": name, "datatype": "INT32", "shape": [1], "data": [value]} for name, value in inputs.items()]
    return json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [len(x), len(x[0])], "data": x}, *more]}).encode()


def outputs(answer: rawhttp.Answer) -> Any:
    """The outputs by name, or what was said instead."""
    if answer.status != 200:
        return str(answer.json()["error"])
    return {each["name"]: np.array(each["data"]).reshape(each["shape"]).tolist() for each in answer.json()["outputs"]}


def ask(server: Server, x: list[list[float]], **inputs: int) -> Any:
    return outputs(rawhttp.post(server.http, "/v2/models/m/infer", body(x, **inputs)))


def ask_all(server: Server, *parts: list[list[float]]) -> list[Any]:
    return [outputs(each) for each in together.ask(server, "/v2/models/m/infer", [body(part) for part in parts])]


def test_the_nearest_profile_executes(library: Path, tmp_path: Path) -> None:
    place = Place(tmp_path, library)
    place.model(ROWS + "profile\nrange x 1,1 4,12 4,16\n", 'instance_group { kind: KIND_GPU profile: [ "0", "1" ] }\n')
    with place.server() as server:
        for rows, length in ((1, 3), (4, 12), (2, 16)):
            assert ask(server, numbers(rows, length)) == {"y": numbers(rows, length)}
        assert "received 17" in ask(server, numbers(1, 17))
    assert place.told() == ["profile 0 x=1,3", "profile 1 x=4,12", "profile 1 x=2,16"]
    place.gpus.left_nothing()
    assert place.gpus.calls("cuStreamBeginCapture_v2") == 0


def test_usual_batch_sizes(library: Path, tmp_path: Path) -> None:
    """Each is executed once, then recorded; what the profile is best for is then a launch. What is not, is executed."""
    place = Place(tmp_path, library)
    place.model(ROWS, FOUR + GRAPHS % "")
    with place.server() as server:
        made = [f"profile 0 x={rows},4" for rows in (1, 1, 2, 2, 3, 3, 4, 4)]
        assert place.told() == made
        for rows in (1, 4, 2, 3, 4):
            assert ask(server, numbers(rows, 4)) == {"y": numbers(rows, 4)}
        assert place.told() == made
        assert ask(server, numbers(3, 16)) == {"y": numbers(3, 16)}
        assert place.told() == [*made, "profile 0 x=3,16"]
        assert ask(server, numbers(3, 4)) == {"y": numbers(3, 4)}
    place.gpus.left_nothing()
    assert place.gpus.calls("cuGraphLaunch") == 6


BOUNDS = """graph_spec { batch_size: 4 input { key: "x" value { dim: 8 } }
graph_lower_bound { batch_size: 2 input { key: "x" value { dim: 3 } } } }
graph_spec { batch_size: 1 input { key: "x" value { dim: 3 } } }"""


def test_bounds(library: Path, tmp_path: Path) -> None:
    """A smaller batch lies among zeros, and its outputs have the recording's shape but for the rows."""
    place = Place(tmp_path, library)
    place.model(ROWS, "max_batch_size: 4\n" + GRAPHS % BOUNDS)
    with place.server() as server:
        made = place.told()
        assert ask(server, numbers(4, 8)) == {"y": numbers(4, 8)}
        for rows, length in ((4, 5), (2, 3), (3, 7)):
            padded = np.zeros((rows, 8), np.float32)
            padded[:, :length] = numbers(rows, length)
            assert ask(server, numbers(rows, length)) == {"y": padded.tolist()}
        assert ask(server, numbers(3, 8)) == {"y": numbers(3, 8)}
        assert ask(server, numbers(1, 3)) == {"y": numbers(1, 3)}
        assert place.told() == made
        for rows, length in ((1, 4), (4, 9), (4, 2)):
            assert ask(server, numbers(rows, length)) == {"y": numbers(rows, length)}
        assert place.told() == [*made, "profile 0 x=1,4", "profile 0 x=4,9", "profile 0 x=4,2"]
    place.gpus.left_nothing()


def test_a_model_that_does_not_batch(library: Path, tmp_path: Path) -> None:
    place = Place(tmp_path, library)
    tensors = "".join(f'{kind} {{ name: "{name}" data_type: TYPE_FP32 dims: [ -1, -1 ] }}\n' for kind, name in (("input", "x"), ("output", "y")))
    place.model(ROWS, tensors + GRAPHS % "")
    with place.server() as server:
        made = place.told()
        assert made == ["profile 0 x=2,4"] * 2
        assert ask(server, numbers(2, 4)) == {"y": numbers(2, 4)}
        assert place.told() == made
        assert ask(server, numbers(3, 4)) == {"y": numbers(3, 4)}
    place.gpus.left_nothing()
    assert place.gpus.calls("cuGraphLaunch") == 1


def test_values_of_shape_tensors(library: Path, tmp_path: Path) -> None:
    """A recording is for its values too."""
    place = Place(tmp_path, library)
    spec = 'graph_spec { batch_size: 4 input { key: "x" value { dim: 4 } } input { key: "lengths" value { dim: 5 } } %s }'
    bound = 'graph_lower_bound { batch_size: 3 input { key: "x" value { dim: 4 } } input { key: "lengths" value { dim: 5 } } }'
    place.model(VALUES, "max_batch_size: 4\n" + GRAPHS % (spec % bound))
    with place.server() as server:
        made = place.told()
        assert made == ["profile 0 lengths=4,5 x=4,4"] * 2
        for rows in (4, 3):
            assert ask(server, numbers(rows, 4), lengths=5) == {"y": numbers(rows, 4), "found": [[5]] * rows}
        assert place.told() == made
        assert ask(server, numbers(4, 4), lengths=6) == {"y": numbers(4, 4), "found": [[6]] * 4}
        assert ask(server, numbers(2, 4), lengths=5) == {"y": numbers(2, 4), "found": [[5]] * 2}
        assert place.told() == [*made, "profile 0 lengths=4,6 x=4,4", "profile 0 lengths=2,5 x=2,4"]
    place.gpus.left_nothing()


TOGETHER = "max_batch_size: 4\ndynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 600000000 }\n" + GRAPHS % ""


def test_requests_of_a_batch(library: Path, tmp_path: Path) -> None:
    place = Place(tmp_path, library)
    place.model(ROWS, TOGETHER)
    with place.server() as server:
        assert ask_all(server, numbers(1, 4), numbers(2, 4)) == [{"y": numbers(1, 4)}, {"y": numbers(2, 4)}]
    place.gpus.left_nothing()
    assert place.gpus.calls("cuGraphLaunch") == 1


# What fails, how many of four recordings are there, and what the log says of the others.
LOST = {
    "cuStreamBeginCapture_v2:2=900": (3, "cuStreamBeginCapture failed"),
    "cuGraphInstantiateWithFlags:4=2": (3, "cuGraphInstantiate failed"),
    "cuMemcpyAsync:1=719": (3, "cuMemcpyAsync failed"),
    "cuMemcpyAsync:4=719": (3, "cuMemcpyAsync failed"),
    "cuEventSynchronize:3=719": (3, "cuEventSynchronize failed"),
    "cuEventSynchronize:2=719": (0, "no memory for its inputs and outputs"),
    "cuMemAlloc_v2:2=2": (0, "no memory for its inputs and outputs"),
    "cuMemsetD8Async:1=1": (0, "no memory for its inputs and outputs"),
}


@pytest.mark.parametrize("fail", LOST)
def test_a_recording_that_fails(library: Path, tmp_path: Path, fail: str) -> None:
    """The log says which and why, and the model serves without it."""
    place = Place(tmp_path, library, fail)
    place.model(ROWS, FOUR + GRAPHS % "")
    launches, why = LOST[fail]
    with place.server() as server:
        for rows in (1, 2, 3, 4):
            assert ask(server, numbers(rows, 4)) == {"y": numbers(rows, 4)}
        told = re.findall(r"'m_0' has no CUDA graph for batch size (\d) in profile 0: (.*)", server.process.log())
        assert len(told) == 4 - launches and all(why in reason for _, reason in told), server.process.log()
    place.gpus.left_nothing()
    assert place.gpus.calls("cuGraphLaunch") == launches


def test_what_cannot_be_recorded(library: Path, tmp_path: Path) -> None:
    """A plan that waits for its stream, one whose output has a shape that only an execution tells, and what a profile does not allow."""
    found = ROWS.replace("tensor y out float linear", "tensor y out float found")
    for name, plan, more, why in (
        ("waits", ROWS + "waits 3\n", "", "an operation is not permitted while the stream is capturing"),
        ("found", found, "", "output 'y' has a shape that only the execution tells"),
        ("large", ROWS, 'graph_spec { batch_size: 3 input { key: "x" value { dim: 17 } } }', "between 1 and 16 but received 17"),
        ("other", ROWS, 'graph_spec { batch_size: 3 input { key: "z" value { dim: 4 } } }', "the graph spec has no input 'x'"),
    ):
        (tmp_path / name).mkdir()
        place = Place(tmp_path / name, library)
        place.model(plan, FOUR + GRAPHS % more)
        with place.server() as server:
            for rows in (1, 2, 3, 4):
                assert ask(server, numbers(rows, 4)) == {"y": numbers(rows, 4)}, name
            assert re.search(f"'m_0' has no CUDA graph for batch size 3 in profile 0: .*{why}", server.process.log()), server.process.log()
        place.gpus.left_nothing()
        assert place.gpus.calls("cuGraphLaunch") == (2 if name == "waits" else 0)


def test_a_launch_that_fails(library: Path, tmp_path: Path) -> None:
    """Everybody in the batch is told so, and it goes on."""
    place = Place(tmp_path, library, "cuGraphLaunch:1=719")
    place.model(ROWS, TOGETHER)
    with place.server() as server:
        told = ask_all(server, numbers(1, 4), numbers(2, 4))
        assert all("cuGraphLaunch failed" in each for each in told), told
        assert ask_all(server, numbers(1, 4), numbers(2, 4)) == [{"y": numbers(1, 4)}, {"y": numbers(2, 4)}]
    place.gpus.left_nothing()


def test_specifications_that_cannot_be(library: Path, tmp_path: Path) -> None:
    place = Place(tmp_path, library)
    place.model(ROWS, "max_batch_size: 4\n" + GRAPHS % "graph_spec { batch_size: 5 }")
    with place.server(**{"model-control-mode": "explicit"}) as server:
        answer = rawhttp.post(server.http, "/v2/repository/models/m/load", {})
        assert "graph spec expects 'batch_size' to be >= 1 and <= 4" in answer.json()["error"]
    place.gpus.left_nothing()


@pytest.mark.parametrize("busy", [False, True])
def test_waiting(library: Path, tmp_path: Path, busy: bool) -> None:
    """busy_wait_events decides whether an instance sleeps on an event."""
    place = Place(tmp_path, library)
    place.model(ROWS, "max_batch_size: 4\noptimization { cuda { busy_wait_events: true } }\n" if busy else "max_batch_size: 4\n")
    with place.server() as server:
        assert ask(server, numbers(2, 4)) == {"y": numbers(2, 4)}
    place.gpus.left_nothing()
    assert (place.gpus.calls("cuEventSynchronize") > 0) == (not busy)
    assert (place.gpus.calls("cuStreamSynchronize") > 0) == busy


def ask_bytes(server: Server, rows: int, data: bytes) -> bytes | str:
    """With an input and an output as bytes."""
    tensor = {"name": "x", "datatype": "INT8", "shape": [rows, 3, 2, 2], "parameters": {"binary_data_size": len(data)}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    answer = rawhttp.post(server.http, "/v2/models/m/infer", text + data, {"Inference-Header-Content-Length": str(len(text))})
    if answer.status != 200:
        return str(answer.json()["error"])
    return answer.body[int(answer.header("Inference-Header-Content-Length") or "0"):]


@pytest.mark.parametrize("graphs", ["", GRAPHS % ""])
def test_formats(library: Path, tmp_path: Path, graphs: str) -> None:
    """Bytes in the plan's own format pass as they are: of three channels in groups of four, room for four."""
    place = Place(tmp_path, library)
    place.model(FORMAT, graphs)
    with place.server() as server:
        config = rawhttp.get(server.http, "/v2/models/m/config").json()
        assert [config[kind][0]["is_non_linear_format_io"] for kind in ("input", "output")] == [True, True]
        for rows in (1, 3):
            data = bytes(range(16 * rows))
            assert ask_bytes(server, rows, data) == data
        for size in (12, 15, 17, 32):
            assert ask_bytes(server, 1, bytes(size)) == f"input 'x' has {size} bytes, its shape needs 16"
    place.gpus.left_nothing()


def test_formats_that_are_not_served(library: Path, tmp_path: Path) -> None:
    tensors = "".join(f'{kind} {{ name: "{name}" data_type: TYPE_INT8 dims: [ 3, 2, 2 ] %s }}\n' for kind, name in (("input", "x"), ("output", "y")))
    place = Place(tmp_path, library)
    place.model(FORMAT.replace("chw4", "dla"), name="dla")
    place.model(FORMAT, "max_batch_size: 4\n" + tensors % ("", ""), name="unmarked")
    place.model(FORMAT.replace("chw4", "linear"), "max_batch_size: 4\n" + tensors % (("is_non_linear_format_io: true",) * 2), name="marked")
    options = {"model-control-mode": "explicit", "disable-auto-complete-config": FLAG}
    with place.server(**{"model-control-mode": "explicit"}) as server:
        said = rawhttp.post(server.http, "/v2/repository/models/dla/load", {}).json()["error"]
        assert "one of the deep learning accelerator's own" in said
    with place.server(**options) as server:
        for name, why in (("unmarked", "uses a non-linear IO format"), ("marked", "uses a linear IO format")):
            assert why in rawhttp.post(server.http, f"/v2/repository/models/{name}/load", {}).json()["error"]
    place.gpus.left_nothing(2)
