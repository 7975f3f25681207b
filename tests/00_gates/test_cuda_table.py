"""The tables of CUDA's functions (include/nereid/cuda_driver.h) and NVML's (src/gpu/nvml.h) against NVIDIA's own declarations, as
cuda-bindings has them."""

import re
from importlib.metadata import files
from pathlib import Path

from harness.paths import ROOT

HEADER = ROOT / "include" / "nereid" / "cuda_driver.h"
NVML = ROOT / "src" / "gpu" / "nvml.h"

# Names of NVIDIA's types, as the table spells them.
SPELLED = {
    "CUresult": "int",
    "unsigned int": "unsigned",
    "CUdevice_attribute": "int",
    "CUdeviceptr": "cuda_address",
    "CUdevice": "cuda_device",
    "CUcontext": "struct cuda_context *",
    "CUstream": "struct cuda_stream *",
    "CUevent": "struct cuda_event *",
    "CUgraph": "struct cuda_graph *",
    "CUgraphExec": "struct cuda_graph_exec *",
    "CUstreamCaptureMode": "int",
    "CUuuid": "struct cuda_uuid",
    "CUipcMemHandle": "struct cuda_ipc_handle",
    "nvmlReturn_t": "int",
    "nvmlDevice_t": "struct nvml_device *",
    "nvmlUtilization_t": "struct nvml_utilization",
    "nvmlMemory_v2_t": "struct nvml_memory",
}


def nvidias(name: str = "cydriver.pxd") -> str:
    declarations = next(file for file in files("cuda-bindings") if file.name == name)
    return Path(declarations.locate()).read_text()


def rows() -> list[tuple[str, str, str]]:
    text = HEADER.read_text().replace("\\\n", " ")
    table = text[text.index("#define CUDA_DRIVER_CALLS"):text.index("#define CUDA_DRIVER_MEMBER")]
    return re.findall(r"CALL\((\w+), (\w+),\s*\((.*?)\)\)", table)


def without_spaces(text: str) -> str:
    return re.sub(r"\s*\*\s*", "*", " ".join(text.split()))


def types(parameters: str) -> list[str]:
    return [without_spaces(re.sub(r"\w+\s*$", "", one.strip())) for one in parameters.split(",")]


def spelled(kind: str) -> str:
    for name, ours in SPELLED.items():
        kind = re.sub(rf"\b{name}\b", ours, kind)
    return without_spaces(kind)


def declared(text: str, symbol: str) -> list[str]:
    """Those of the plain name: a header of CUDA maps it to the symbol that ends in _v2 or WithFlags."""
    found = re.search(rf"^cdef CUresult {symbol.removesuffix('_v2').removesuffix('WithFlags')}\((.*?)\) except", text, re.M)
    assert found, f"cuda-bindings has no {symbol}"
    return [spelled(one) for one in types(found[1])]


def test_parameters_are_nvidias() -> None:
    text = nvidias()
    found = rows()
    assert len(found) > 30
    for _, symbol, parameters in found:
        assert types(parameters) == declared(text, symbol), symbol


def test_values_are_nvidias() -> None:
    """The numbers of results and attributes, from the bindings that are generated of NVIDIA's header."""
    from cuda.bindings import driver

    for name, value in re.findall(r"^    (CUDA_\w+) = (\d+),", HEADER.read_text(), re.M):
        assert int(getattr(driver.CUresult, name)) == int(value), name
    numbers = dict(re.findall(r"^#define (CUDA_\w+) (\d+)u?$", HEADER.read_text(), re.M))
    attribute, bindings = driver.CUdevice_attribute, driver
    assert {name: int(value) for name, value in numbers.items()} == {
        "CUDA_ATTRIBUTE_CAPABILITY_MAJOR": int(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        "CUDA_ATTRIBUTE_CAPABILITY_MINOR": int(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        "CUDA_HOST_PORTABLE": int(bindings.CU_MEMHOSTALLOC_PORTABLE),
        "CUDA_STREAM_NON_BLOCKING": int(bindings.CUstream_flags.CU_STREAM_NON_BLOCKING),
        "CUDA_EVENT_BLOCKING": int(bindings.CUevent_flags.CU_EVENT_BLOCKING_SYNC),
        "CUDA_EVENT_NO_TIMING": int(bindings.CUevent_flags.CU_EVENT_DISABLE_TIMING),
        "CUDA_CAPTURE_THREAD": int(bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "CUDA_IPC_LAZY_PEER_ACCESS": int(bindings.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
    }


def test_nvml_is_nvidias() -> None:
    """What the functions return, their parameters, and the members of structures, which NVML's own bindings have in this order."""
    theirs, text = nvidias("cynvml.pxd"), NVML.read_text().replace("\\\n", " ")
    table = re.findall(r"CALL\(((?:const char \*|\w+)), \w+, (\w+),\s*\((.*?)\)\)", text[text.index("#define NVML_CALLS"):text.index("#define NVML_MEMBER")])
    assert len(table) == 9
    for returns, symbol, parameters in table:
        found = re.search(rf"^cdef (.+?)\b ?{symbol}\((.*?)\) except", theirs, re.M)
        assert found, f"cuda-bindings has no {symbol}"
        assert without_spaces(returns) == spelled(found[1].strip()), symbol
        assert types(parameters.replace("void", "")) == [spelled(one) for one in types(found[2])], symbol
    for ours, name in (("nvml_utilization", "nvmlUtilization_t"), ("nvml_memory", "nvmlMemory_v2_t")):
        have = re.search(rf"struct {ours} \{{(.*?)\}};", text, re.S)
        want = re.search(rf"^ctypedef struct {name} '{name}':\n((?:    .*\n)+)", theirs, re.M)
        assert have and want
        members = [" ".join(line.split()) for line in re.sub(r"/\*.*?\*/", "", have[1]).split(";") if line.strip()]
        assert members == [" ".join(spelled(line).split()) for line in want[1].splitlines()], ours


def test_results_of_nvml_are_nvidias() -> None:
    from cuda.bindings import nvml

    found = re.findall(r"^    NVML_(\w+) = (\d+),", NVML.read_text(), re.M)
    assert len(found) == 5
    for name, value in found:
        assert int(getattr(nvml.Return, name)) == int(value), name
