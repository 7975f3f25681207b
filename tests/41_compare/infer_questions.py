"""Generated: every datatype, and every fault of a request, in every form that can carry it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import adjust
import asks
from asks import Ask, Tensor
from harness.compare import Question

Fault = Callable[[Ask], None]
ADJUSTS = {
    "surplus input": adjust.any_input_order,
    "second input without rows": adjust.any_input_name,
    "second input twice": adjust.any_input_order,
}
FAULTS: dict[str, Fault] = {}
PAIR_FAULTS: dict[str, Fault] = {}


def _fault(name: str, where: dict[str, Fault] = FAULTS) -> Callable[[Fault], Fault]:
    def keep(function: Fault) -> Fault:
        where[name] = function
        return function

    return keep


def _set(name: str, member: str, value: Any) -> None:
    FAULTS[name] = lambda ask: setattr(ask, member, value)


def _set_input(name: str, member: str, value: Any) -> None:
    FAULTS[name] = lambda ask: setattr(ask.inputs[0], member, value)


_set("unknown model", "model", "nobody")
_set("model with odd characters", "model", "no%20body")
_set("model of another case", "model", "ID_FP32")
_set("unknown version", "version", "7")
_set("version of many digits", "version", "00000000000000000001")
_set("version too large", "version", "99999999999999999999")
_set("version is -1", "version", "-1")
_set("version is text", "version", "one")
_set("no inputs", "inputs", [])
_set("id of odd characters", "id", 'a "quoted" \\ id \u00e9\u4e2d')
_set("long id", "id", "i" * 5000)
_set_input("unknown input", "name", "X")
_set_input("input of another case", "name", "input0")
_set_input("input without a name", "name", "")
_set_input("unknown datatype", "label", "FP33")
_set_input("datatype in small letters", "label", "fp32")
_set_input("datatype of the configuration", "label", "TYPE_FP32")
_set_input("empty datatype", "label", "")
_set_input("one dimension more", "shape", [1, 2])
_set_input("no dimension", "shape", [])
_set_input("shape too small", "shape", [1])
_set_input("shape too large", "shape", [3])
_set_input("dimension of zero", "shape", [0])
_set_input("huge dimension", "shape", [2**25])
_set_input("product of dimensions overflows", "shape", [2**32, 2**32])
_set("unknown output", "outputs", [{"name": "X"}])
_set("unknown output beside a known", "outputs", [{"name": "OUTPUT0"}, {"name": "X"}])
_set("output without a name", "outputs", [{"name": ""}])
_set("output of another case", "outputs", [{"name": "output0"}])
_set("one of the classes", "outputs", [{"name": "OUTPUT0", "parameters": {"classification": 1}}])
_set("more classes than elements", "outputs", [{"name": "OUTPUT0", "parameters": {"classification": 9}}])
_set("classes are text", "outputs", [{"name": "OUTPUT0", "parameters": {"classification": "1"}}])
_set("binary and classes", "outputs", [{"name": "OUTPUT0", "parameters": {"classification": 1, "binary_data": True}}])
_set("priority that the model has not", "parameters", {"priority": 5})
_set("priority is text", "parameters", {"priority": "high"})
_set("timeout is text", "parameters", {"timeout": "soon"})
_set("sequence for a model without", "parameters", {"sequence_id": 7, "sequence_start": True})
_set("sequence id is a boolean", "parameters", {"sequence_id": True})
_set("start of sequence is text", "parameters", {"sequence_start": "yes"})
_set("parameter of text", "parameters", {"mine": "text"})
_set("parameter of a number", "parameters", {"mine": -5})
_set("parameter of a fraction", "parameters", {"mine": 0.25})
_set("parameter of a boolean", "parameters", {"mine": False})
_set("reserved parameter", "parameters", {"triton_mine": 1})
_set("parameter without a name", "parameters", {"": 1})


@_fault("another datatype")
def _(ask: Ask) -> None:
    ask.inputs[0].label = "INT16" if ask.inputs[0].label != "INT16" else "FP32"


@_fault("surplus input")
def _(ask: Ask) -> None:
    ask.inputs.append(Tensor(ask.inputs[0].datatype, "X"))


@_fault("duplicate input")
def _(ask: Ask) -> None:
    ask.inputs.append(Tensor(ask.inputs[0].datatype))


@_fault("one value less")
def _(ask: Ask) -> None:
    ask.inputs[0].values.pop()
    ask.inputs[0].content = ask.inputs[0].content[: len(ask.inputs[0].content) // 2]


@_fault("one value more")
def _(ask: Ask) -> None:
    ask.inputs[0].values.append(ask.inputs[0].values[0])
    ask.inputs[0].content += ask.inputs[0].content[: len(ask.inputs[0].content) // 2]


@_fault("last byte cut")
def _(ask: Ask) -> None:
    ask.inputs[0].content = ask.inputs[0].content[:-1]


@_fault("no values")
def _(ask: Ask) -> None:
    ask.inputs[0].values, ask.inputs[0].content = [], b""


@_fault("second input missing", PAIR_FAULTS)
def _(ask: Ask) -> None:
    ask.inputs.pop()


@_fault("second input twice", PAIR_FAULTS)
def _(ask: Ask) -> None:
    ask.inputs[0].name = "INPUT1"


@_fault("inputs change places", PAIR_FAULTS)
def _(ask: Ask) -> None:
    ask.inputs.reverse()


@_fault("second input of another datatype", PAIR_FAULTS)
def _(ask: Ask) -> None:
    ask.inputs[1].label = "INT32"


@_fault("second input without rows", PAIR_FAULTS)
def _(ask: Ask) -> None:
    ask.inputs[1].shape = [2]


@_fault("second input too short", PAIR_FAULTS)
def _(ask: Ask) -> None:
    ask.inputs[1].values.pop()
    ask.inputs[1].content = ask.inputs[1].content[:4]


@_fault("first output alone", PAIR_FAULTS)
def _(ask: Ask) -> None:
    ask.outputs = [{"name": "OUTPUT0"}]


@_fault("second output alone", PAIR_FAULTS)
def _(ask: Ask) -> None:
    ask.outputs = [{"name": "OUTPUT1"}]


def _put(name: str, fault: str, ask: Ask, render: asks.Render) -> Question:
    return replace(render(name, ask), adjust=ADJUSTS.get(fault))


def _good() -> list[Question]:
    return [
        render(f"{datatype} in {form}", asks.plain(datatype))
        for datatype in asks.DATATYPES
        for form, render in asks.FORMS.items()
    ]


def _faults() -> list[Question]:
    found = []
    for fault, spoil in FAULTS.items():
        for datatype in ("FP32", "INT64", "BYTES"):
            if "classes" in fault and datatype == "BYTES":
                continue  # the reference ends when it is asked so: test_class_of_strings
            for form, render in asks.FORMS.items():
                ask = asks.plain(datatype)
                spoil(ask)
                found.append(_put(f"{fault}, {datatype} in {form}", fault, ask, render))
    for fault, spoil in PAIR_FAULTS.items():
        for form, render in asks.FORMS.items():
            ask = asks.pair()
            spoil(ask)
            found.append(_put(f"{fault}, {form}", fault, ask, render))
    return found


def _batches() -> list[Question]:
    return [
        render(f"{count} rows in {form}", asks.rows(count))
        for count in (1, 7, 8, 9, 100)
        for form, render in asks.FORMS.items()
    ]


GROUPS: dict[str, list[Question]] = {"datatypes": _good(), "faults": _faults(), "batches": _batches()}
