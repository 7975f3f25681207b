"""Shared memory: every call and every parameter, right and wrong, over both protocols. A question brings its regions and takes them away."""

import atexit
import base64
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import adjust as adjusts
import asks
from harness import rawhttp
from harness.compare import Adjust, Answer, Grpc, Http
from harness.regions import CUDA, SYSTEM, Memory, register, unregister
from harness.servers import Server
from tritonclient.grpc import service_pb2 as pb

SIZE = 8192
CONTENT = struct.pack("<2f", 1, -2.5)
STRINGS = struct.pack("<I", 3) + b"abc" + struct.pack("<I", 2) + b"de"
REGIONS = {"in": (64, 0), "out": (64, 0), "big": (SIZE, 0), "str": (4096, 0)}
HANDLE = base64.b64encode(bytes(64)).decode()
MOST = 2**64 - 1
Values = dict[str, Any]


@cache
def memory(name: str) -> Memory:
    """One for each region: the reference of 2.51 takes a key once."""
    made = Memory(SIZE)
    atexit.register(made.close)
    return made


@dataclass(frozen=True)
class Shared:
    """A question that is asked while regions are registered; the answer tells what is in them, and what is registered, afterwards."""

    question: Http | Grpc
    regions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.question.name

    @property
    def adjust(self) -> Adjust | None:
        return self.question.adjust

    def ask(self, server: Server) -> Answer:
        for name in self.regions:
            memory(name).write(bytes(SIZE))
            memory(name).write(STRINGS if name == "str" else b"" if name == "out" else CONTENT)
            size, offset = REGIONS[name]
            assert register(server, name, memory(name).key, size, offset).status == 200
        before = {name: memory(name).read(SIZE) for name in self.regions}
        answer = self.question.ask(server)
        answer["written"] = [name for name in self.regions if memory(name).read(SIZE) != before[name]]
        answer["memory"] = {name: memory(name).read(SIZE).hex().rstrip("0") for name in self.regions}
        answer["registered"] = rawhttp.get(server.http, f"{SYSTEM}/status").json()
        if server.kind == "reference":  # it may hold what an answer is of until after the answer has come, and refuses then
            server.process.wait_for(lambda: unregister(server).status, 200)
        else:
            assert unregister(server).status == 200
        return answer


def _post(name: str, path: str, body: Any = b"", adjust: Adjust | None = None) -> Http:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Http(name, "POST", path, text, adjust=adjust)


def _register(what: str, values: Any, *regions: str, adjust: Adjust | None = None, name: str = "r") -> Shared:
    return Shared(_post(what, f"{SYSTEM}/region/{name}/register", values, adjust), regions)


def _system_http() -> list[Shared]:
    key = memory("new").key
    asked = [
        Shared(Http("status of none", "GET", f"{SYSTEM}/status")),
        Shared(Http("status of nobody", "GET", f"{SYSTEM}/region/r/status")),
        Shared(Http("status of two", "GET", f"{SYSTEM}/status"), ("in", "out")),
        Shared(Http("status of one", "GET", f"{SYSTEM}/region/in/status"), ("in", "out")),
        Shared(_post("unregister one", f"{SYSTEM}/region/in/unregister"), ("in", "out")),
        Shared(_post("unregister nobody", f"{SYSTEM}/region/r/unregister"), ("in", "out")),
        Shared(_post("unregister all", f"{SYSTEM}/unregister"), ("in", "out")),
        Shared(_post("unregister with no JSON", f"{SYSTEM}/region/in/unregister", b"no JSON"), ("in",)),
        Shared(_post("register without a name", f"{SYSTEM}/register", {"key": key, "byte_size": 64})),
        _register("a name that is taken", {"key": key, "byte_size": 64}, "in", name="in"),
        _register("a name that is taken, and no memory", {"key": "/nobody", "byte_size": 64}, "in", name="in"),
        _register("a name with escapes", {"key": key, "byte_size": 64}, name="a%2Fb%20c"),
        _register("no body", b""),
        _register("no JSON", b"nonsense", adjust=adjusts.parser_words),
        _register("one key under two names", {"key": memory("in").key, "byte_size": 64}, "in"),
    ]
    bodies: dict[str, Any] = {
        "an empty object": {}, "a list": [], "a number": 7, "no key": {"byte_size": 64}, "no size": {"key": key}, "more than needed": {"key": key, "byte_size": 64, "x": 1},
    }
    for wrong in (None, 7, True, ["a"], {}):
        bodies[f"key {wrong}"] = {"key": wrong, "byte_size": 64}
    for field in ("byte_size", "offset"):
        for wrong in (None, "64", -64, 1.5, 64.0, True, [64], 2**64):
            bodies[f"{field} {wrong!r}"] = {"key": key, "byte_size": 64} | {field: wrong}
    asked += [_register(what, body) for what, body in bodies.items()]
    keys = ("/nobody", "", "/", "//", "/a/b", "..", "/..", ".", "../etc/passwd", "x" * 256, "x" * 300, "\u00fc", "a\0b", " ")
    asked += [_register(f"key {wrong[:20]!r}, {len(wrong)}", {"key": wrong, "byte_size": 64}) for wrong in keys]
    asked += [_register(f"key with {what}", {"key": made, "byte_size": 64}) for what, made in (
        ("no slash", key[1:]), ("three slashes", f"//{key}"), ("a slash at the end", f"{key}/"), ("a reserved prefix", "/triton_python_backend_shm_region_1"))]
    edges = (0, 1, 64, 4095, 4096, 4097, 8191, 8192, 8193, 2**63, MOST)
    asked += [_register(f"{size} from {offset} on", {"key": key, "byte_size": size, "offset": offset}) for size in edges for offset in (0, 1, 4096, 8192, 8193)]
    asked += [_register(f"{size} from {offset} on", {"key": key, "byte_size": size, "offset": offset}) for size in (0, 1, 2, 4096, MOST) for offset in (MOST, MOST - 4095, 2**63)]
    return asked


def _cuda_http() -> list[Shared]:
    good: Values = {"raw_handle": {"b64": HANDLE}, "device_id": 0, "byte_size": 64}
    bodies: dict[str, Any] = {"a handle": good, "an empty object": {}, "a list": []}
    for field in good:
        bodies[f"no {field}"] = {name: value for name, value in good.items() if name != field}
        bodies[f"{field} is null"] = good | {field: None}
        bodies[f"{field} is a text"] = good | {field: "0"}
        bodies[f"{field} is below zero"] = good | {field: -1}
    for what, handle in (("empty", ""), ("no base64", "!!"), ("short", "AAAA"), ("long", HANDLE + "AAAA"), ("a number", 7), ("null", None)):
        bodies[f"b64 {what}"] = good | {"raw_handle": {"b64": handle}}
    bodies["device 7"] = good | {"device_id": 7}
    asked = [Shared(_post(f"register: {what}", f"{CUDA}/region/r/register", body)) for what, body in bodies.items()]
    return [
        *asked,
        Shared(_post("register: no body", f"{CUDA}/region/r/register")),
        Shared(_post("register: no JSON", f"{CUDA}/region/r/register", b"junk", adjusts.parser_words)),
        Shared(_post("register: without a name", f"{CUDA}/register", good)),
        Shared(_post("register: a name that is taken", f"{CUDA}/region/in/register", good), ("in",)),
        Shared(Http("status of none", "GET", f"{CUDA}/status"), ("in",)),
        Shared(Http("status of nobody", "GET", f"{CUDA}/region/r/status"), ("in",)),
        Shared(Http("status of a system region", "GET", f"{CUDA}/region/in/status"), ("in",)),
        Shared(_post("unregister a system region", f"{CUDA}/region/in/unregister"), ("in",)),
        Shared(_post("unregister nobody", f"{CUDA}/region/r/unregister"), ("in",)),
        Shared(_post("unregister all", f"{CUDA}/unregister"), ("in",)),
    ]


def _calls() -> list[Shared]:
    key, asked = memory("new").key, []
    for kind in ("System", "Cuda"):
        prefix = f"{kind}SharedMemory"
        for name in ("", "in", "r"):
            for verb in ("Status", "Unregister"):
                request = getattr(pb, f"{prefix}{verb}Request")(name=name)
                reply = getattr(pb, f"{prefix}{verb}Response")
                asked.append(Shared(Grpc(f"{prefix}{verb} of {name!r}", f"{prefix}{verb}", request, reply), ("in", "out")))

    def system(what: str, **values: Any) -> None:
        request = pb.SystemSharedMemoryRegisterRequest(**values)
        asked.append(Shared(Grpc(f"register {what}", "SystemSharedMemoryRegister", request, pb.SystemSharedMemoryRegisterResponse), ("in",)))

    system("nothing")
    system("a name alone", name="r")
    system("no size", name="r", key=key)
    system("no name", key=key, byte_size=64)
    system("no key", name="r", byte_size=64)
    system("a name that is taken", name="in", key=key, byte_size=64)
    system("what is not there", name="r", key="/nobody", byte_size=64)
    for size, offset in ((64, 0), (8193, 0), (64, 1), (4096, 4096), (4097, 4096), (0, 4096), (MOST, 0), (1, MOST), (2**63, 2**63)):
        system(f"{size} from {offset} on", name="r", key=key, byte_size=size, offset=offset)

    def cuda(what: str, **values: Any) -> None:
        request = pb.CudaSharedMemoryRegisterRequest(**values)
        asked.append(Shared(Grpc(f"register on a device {what}", "CudaSharedMemoryRegister", request, pb.CudaSharedMemoryRegisterResponse), ("in",)))

    cuda("nothing")
    cuda("a name alone", name="r")
    cuda("a short handle", name="r", raw_handle=bytes(63), byte_size=64)
    cuda("a handle", name="r", raw_handle=bytes(64), byte_size=64)
    cuda("no name", raw_handle=bytes(64), byte_size=64)
    for device in (-1, 7):
        cuda(f"{device}", name="r", raw_handle=bytes(64), byte_size=64, device_id=device)
    return asked


def _part(region: Any = "in", size: Any = 8, **more: Any) -> Values:
    found = {"shared_memory_region": region, "shared_memory_byte_size": size, **{f"shared_memory_{name}": value for name, value in more.items()}}
    return {name: value for name, value in found.items() if value != "left out"}


Ask = Callable[[str, list[Values], list[Values]], Shared]
ALL = ("in", "out", "str")


def _over_http(model: str = "id_fp32", datatype: str = "FP32", shape: tuple[int, ...] = (2,), **request: Any) -> Ask:
    def ask(name: str, inputs: list[Values], outputs: list[Values]) -> Shared:
        body: Values = {"inputs": [{"name": f"INPUT{i}", "datatype": datatype, "shape": list(shape)} | each for i, each in enumerate(inputs)]} | request
        if outputs:
            body["outputs"] = [{"name": f"OUTPUT{i}"} | each for i, each in enumerate(outputs)]
        return Shared(_post(name, f"/v2/models/{model}/infer", body), ALL)

    return ask


def _infer_http() -> list[Shared]:
    def given(**values: Any) -> list[Values]:
        return [{"parameters": _part(**values)}]

    plain = [{"data": [1, 2]}]
    ask, out = _over_http(), given(region="out")
    asked = [
        ask("an input", given(), []), ask("an input and an output", given(), out), ask("an output", plain, out),
        ask("an output from the middle on", given(), given(region="out", offset=16)),
        ask("an output with room to spare", given(), given(region="out", size=64)),
        ask("an input of the other region", given(region="out"), given()),
        ask("one region for both", given(), given(offset=16)),
        _over_http(parameters={"binary_data_output": True})("binary by default", given(), out),
        ask("an output elsewhere, too little room", given(), given(region="out", size=7)),
        ask("an unknown output", given(), [{"name": "OUTPUT9", "parameters": _part("out")}]),
        _over_http("nobody")("an unknown model", given(), out),
        ask("data besides", [{"data": [1, 2], "parameters": _part()}], []),
        ask("binary data besides", [{"parameters": _part() | {"binary_data_size": 8}}], []),
        ask("both besides", [{"data": [1, 2], "parameters": _part() | {"binary_data_size": 8}}], []),
        ask("an output as classes", given(), [{"parameters": _part("out") | {"classification": 1}}]),
    ]
    for binary in (True, False, 7, "x", None):
        asked.append(ask(f"an output with binary_data {binary!r}", given(), [{"parameters": _part("out") | {"binary_data": binary}}]))
    for side in ("input", "output"):
        for field in ("region", "size", "offset"):
            for wrong in ("left out", None, 7, "8", -8, 8.0, 1.5, True, [8], {}):
                values = {"region": "in" if side == "input" else "out", field: wrong}
                asked.append(ask(f"{side} with {field} {wrong!r}", given(**values) if side == "input" else given(), out if side == "input" else given(**values)))
        for size, offset in ((8, 56), (8, 57), (8, 64), (8, 65), (64, 0), (65, 0), (0, 0), (0, 63), (0, 64), (MOST, 0), (MOST, 1), (8, MOST), (8, MOST - 7)):
            values = {"region": "in" if side == "input" else "out", "size": size, "offset": offset}
            asked.append(ask(f"{side} of {size} from {offset} on", given(**values) if side == "input" else given(), out if side == "input" else given(**values)))
        for name in ("nobody", "", "IN", "in "):
            asked.append(ask(f"{side} in region {name!r}", given(region=name) if side == "input" else given(), out if side == "input" else given(region=name)))
    for field in ("shared_memory_byte_size", "shared_memory_offset"):
        for value in (8, "x"):
            asked.append(ask(f"data and {field} {value!r}", [{"data": [1, 2], "parameters": {field: value}}], []))
            asked.append(ask(f"no region and {field} {value!r} of an output", plain, [{"parameters": {field: value}}]))
    for size in (7, 9, 16):
        asked.append(ask(f"an input of {size} bytes", given(size=size), out))
    for label, shape in (("FP32", (-1,)), ("FP32", ()), ("FP32", (1, 2)), ("INT32", (2,)), ("FP99", (2,)), ("FP32", (0,))):
        asked.append(_over_http(datatype=label, shape=shape)(f"an input of {label} {list(shape)}", given(), out))
    for size, count in ((13, 2), (13, 3), (13, 1), (12, 2), (14, 2), (4096, 2), (4, 1), (3, 1)):
        asked.append(_over_http("id_bytes", "BYTES", (count,))(f"{count} strings in {size} bytes", given(region="str", size=size), given(region="out", size=64)))
    two = [{"parameters": _part()}, {"data": [3, 4]}]
    both = [{"parameters": _part("out")}, {"parameters": _part("out", offset=8)}]
    asked.append(_over_http("id_two", shape=(1, 2))("two inputs, one in a region", two, both))
    asked.append(_over_http("id_two", shape=(1, 2))("two outputs, one in a region", two, both[:1] + [{"parameters": {"binary_data": True}}]))
    asked.append(_over_http("id_two", shape=(1, 2))("two outputs in one place", two, [both[0], both[0]]))
    return asked


def _over_grpc(model: str = "id_fp32", datatype: str = "FP32", shape: tuple[int, ...] = (2,), raw: tuple[bytes, ...] = (), typed: bool = False) -> Ask:
    def fill(tensor: Any, values: Values) -> None:
        for name, value in values.items():
            tensor.parameters[name].CopyFrom(asks.parameter(value))

    def ask(name: str, inputs: list[Values], outputs: list[Values]) -> Shared:
        request = pb.ModelInferRequest(model_name=model, raw_input_contents=raw)
        for i, values in enumerate(inputs):
            fill(request.inputs.add(name=f"INPUT{i}", datatype=datatype, shape=shape), values)
            if typed:
                request.inputs[i].contents.fp32_contents.extend([1, 2])
        for i, values in enumerate(outputs):
            fill(request.outputs.add(name=f"OUTPUT{i}"), values)
        return Shared(Grpc(name, "ModelInfer", request, pb.ModelInferResponse), ALL)

    return ask


def _infer_grpc() -> list[Shared]:
    ask, out = _over_grpc(), [_part("out")]
    asked = [
        ask("an input", [_part()], []), ask("an input and an output", [_part()], out),
        _over_grpc(raw=(CONTENT,))("an output", [{}], out), _over_grpc(typed=True)("an output, typed contents", [{}], out),
        _over_grpc(typed=True)("contents besides", [_part()], out), _over_grpc(raw=(CONTENT,))("raw contents besides", [_part()], out),
        _over_grpc(raw=(CONTENT, CONTENT))("two raw contents besides", [_part()], out),
        ask("an output as classes", [_part()], [_part("out", 8) | {"classification": 1}]),
        ask("an output as no classes", [_part()], [_part("out", 8) | {"classification": 0}]),
        ask("an output as classes of text", [_part()], [_part("out", 8) | {"classification": "x"}]),
        _over_grpc("nobody")("an unknown model", [_part()], out),
    ]
    for side in ("input", "output"):
        mine = "in" if side == "input" else "out"
        for field in ("region", "size", "offset"):
            for wrong in ("left out", None, 7, "8", -8, 8.0, True):
                values = _part(**{"region": mine, field: wrong})
                asked.append(ask(f"{side} with {field} {wrong!r}", [values] if side == "input" else [_part()], out if side == "input" else [values]))
        for size, offset in ((8, 56), (8, 57), (8, 64), (64, 0), (65, 0), (0, 0), (0, 64), (-1, 0), (-1, 1), (8, -1), (8, -8), (2**63 - 1, 2**63 - 1), (-(2**63), -(2**63))):
            values = _part(mine, size, offset=offset)
            asked.append(ask(f"{side} of {size} from {offset} on", [values] if side == "input" else [_part()], out if side == "input" else [values]))
        for name in ("nobody", ""):
            asked.append(ask(f"{side} in region {name!r}", [_part(name)] if side == "input" else [_part()], out if side == "input" else [_part(name)]))
        for field in ("shared_memory_byte_size", "shared_memory_offset"):
            for value in (8, "x"):
                alone = {field: value}
                asked.append(_over_grpc(raw=(CONTENT,))(f"{side} with {field} {value!r} alone", [alone] if side == "input" else [{}], [] if side == "input" else [alone]))
    for size in (7, 9, 16):
        asked.append(ask(f"an input of {size} bytes", [_part(size=size)], out))
    asked.append(ask("an output with too little room", [_part()], [_part("out", 7)]))
    for label, shape in (("FP32", (-1,)), ("FP32", ()), ("INT32", (2,)), ("FP99", (2,)), ("FP32", (0,))):
        asked.append(_over_grpc(datatype=label, shape=shape)(f"an input of {label} {list(shape)}", [_part()], out))
    for size, count in ((13, 2), (13, 3), (13, 1), (12, 2), (14, 2), (4096, 2)):
        asked.append(_over_grpc("id_bytes", "BYTES", (count,))(f"{count} strings in {size} bytes", [_part("str", size)], [_part("out", 64)]))
    pair = _over_grpc("id_two", shape=(1, 2), raw=(CONTENT,))
    asked.append(pair("two inputs, the first in a region", [_part(), {}], [_part("out"), _part("out", offset=8)]))
    asked.append(pair("two inputs, the second in a region", [{}, _part()], [_part("out"), {}]))
    asked.append(_over_grpc("id_two", shape=(1, 2))("two inputs, data for one", [_part(), {}], out))
    return asked


def _datatypes() -> list[Shared]:
    asked = []
    for datatype in asks.DATATYPES:
        count, size = (2, 13) if datatype == "BYTES" else (2, len(asks.content_of(datatype)))
        for protocol, make in (("HTTP", _over_http), ("gRPC", _over_grpc)):
            source = _part("str" if datatype == "BYTES" else "in", size)
            wrap = (lambda values: {"parameters": values}) if protocol == "HTTP" else (lambda values: values)
            ask = make(f"id_{datatype.lower()}", datatype, (count,))
            asked.append(ask(f"{datatype} over {protocol}", [wrap(source)], [wrap(_part("out", 64))]))
            if datatype not in ("FP16", "BOOL"):
                asked.append(ask(f"{datatype} over {protocol}, back as data", [wrap(source)], []))
    return asked


GROUPS: dict[str, list[Any]] = {
    "regions": _system_http(), "regions of devices": _cuda_http(), "region calls": _calls(), "regions over HTTP": _infer_http(),
    "regions over gRPC": _infer_grpc(), "regions of datatypes": _datatypes(),
}
