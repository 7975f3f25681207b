"""Configurations of ONNX models, Python models and ensembles put together by chance, the same ones every time: whole ones, such that
the server or the backend has to complete, and such with one thing wrong."""

import random
from dataclasses import dataclass, field
from pathlib import Path

from generated import PARTS, SCHEDULERS
from harness.ensembles import Ensemble, Step
from harness.repository import Repository
from models import onnx_models

ONE = "instance_group [ { count: 1 kind: KIND_CPU } ]"
# What every scheduler of a model that does not batch goes with, and parts that say nothing about versions or instances.
PLAIN = ("parameters", "metric_tags", "optimization", "response_cache", "default_model_filename")


@dataclass
class Made:
    """A configuration, and the files beside it."""

    text: str
    files: dict[str, bytes] = field(default_factory=dict)

    def write(self, repository: Repository, name: str) -> None:
        folder = repository.model(name, self.text)
        for file, content in self.files.items():
            (folder / "1" / file).write_bytes(content)


def _tensor(side: str, name: str, kind: str, dims: str) -> str:
    return f'{side} [ {{ name: "{name}" data_type: TYPE_{kind} dims: {dims} }} ]\n'


def _parts(rng: random.Random, names: tuple[str, ...]) -> str:
    return "".join(rng.choice(PARTS[name]) + "\n" for name in rng.sample(names, rng.randrange(3)))


# -- ONNX --

_ONNX_TYPES = ("FP32", "INT32", "INT64", "FP64")
_ONNX_WRONG = (
    ("dims", "[ 5 ]"), ("dims", "[ 4, 1 ]"), ("data_type", "TYPE_BOOL"), ("name", '"nobody"'), ("max_batch_size", "-1"),
)


def _onnx_io(rng: random.Random, kind: str, batched: bool, leave_out: bool) -> str:
    fit, other = ("[ 4 ]", ("[ -1 ]",)) if batched else ("[ -1, 4 ]", ("[ 3, 4 ]", "[ -1, -1 ]"))
    dims = rng.choice((*other, *[fit] * 6))
    rows = [("input", "a"), ("input", "b"), ("output", "sum"), ("output", "difference")]
    if leave_out:
        rows = rows[: rng.choice((0, 2))] if rng.random() < 0.5 else rows[2:]
    return "".join(_tensor(side, name, kind, dims) for side, name in rows)


def onnx(count: int = 60, seed: int = 11) -> dict[str, Made]:
    """Models that add and subtract; a fifth of them is told wrong, and two fifths have to be completed."""
    rng = random.Random(seed)
    models = {kind: onnx_models.add_sub(kind).SerializeToString() for kind in _ONNX_TYPES}
    made = {}
    for number in range(count):
        kind, batch = rng.choice(_ONNX_TYPES), rng.choice((0, 1, 8))
        text = rng.choice(('backend: "onnxruntime"\n', 'platform: "onnxruntime_onnx"\n'))
        if number % 5 == 0:
            where, what = _ONNX_WRONG[number // 5 % len(_ONNX_WRONG)]
            io = "".join(
                _tensor(side, name, kind, "[ 4 ]")
                for side, name in (("input", "a"), ("input", "b"), ("output", "sum"), ("output", "difference"))
            )
            text += "max_batch_size: 8\n" + io
            old = {"dims": "[ 4 ]", "data_type": f"TYPE_{kind}", "name": '"a"', "max_batch_size": "8"}[where]
            text = text.replace(f"{where}: {old}", f"{where}: {what}", 1)
        elif number % 5 < 3:
            text += rng.choice((f"max_batch_size: {batch}\n", "")) + _parts(rng, PLAIN[:4]) + ONE + "\n"
            text += _onnx_io(rng, kind, batched=batch > 0, leave_out=True)
        else:
            text += f"max_batch_size: {batch}\n" + _onnx_io(rng, kind, batched=batch > 0, leave_out=False)
            text += _parts(rng, PLAIN[:4]) + ONE + "\n" + (rng.choice(SCHEDULERS[:6]) if batch else "") + "\n"
        made[f"o{number:03}"] = Made(text, {"model.onnx": models[kind]})
    return made


# -- Python --

_PYTHON = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
{completes}
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", each.inputs()[0].as_numpy())]) for each in requests]
"""
_COMPLETES = (
    "",
    "config.add_input({'name': 'X', 'data_type': 'TYPE_INT32', 'dims': [-1]})\n"
    "config.add_output({'name': 'Y', 'data_type': 'TYPE_INT32', 'dims': [-1]})\nconfig.set_max_batch_size(0)",
    "config.add_input({'name': 'X', 'data_type': 'TYPE_FP32', 'dims': [2, -1]})\n"
    "config.add_output({'name': 'Y', 'data_type': 'TYPE_FP32', 'dims': [2, -1]})\nconfig.set_max_batch_size(8)\nconfig.set_dynamic_batching()",
    "config.add_input({'name': 'X', 'data_type': 'TYPE_STRING', 'dims': [1]})\n"
    "config.add_output({'name': 'Y', 'data_type': 'TYPE_STRING', 'dims': [1]})\nconfig.set_model_transaction_policy({'decoupled': True})",
)


# What is wrong with a model: what it says instead of how it completes its configuration, and what stands in front of its class.
_PYTHON_FLAWS = (
    ("raise ValueError('nothing to add')", ""),
    ("config.add_input({'name': 'X', 'dims': [-1]})", ""),
    ("config.add_input({'name': 'X', 'data_type': 'TYPE_FP32', 'dims': [7, 7, 7]})", ""),
    ("config.add_output({'name': 'Z', 'data_type': 'TYPE_FP32', 'dims': [1]})\nconfig.set_max_batch_size(-3)", ""),
    ("config.set_model_transaction_policy({'coupled': True})", ""),
    ("return None", ""),
    ("", "raise ImportError('not today')\n"),
    ("", "import nothing_of_that_name\n"),
)


def _model_py(completes: str) -> bytes:
    lines = "".join(f"        {line}\n" for line in completes.splitlines())
    method = f"    @staticmethod\n    def auto_complete_config(config):\n{lines}        return config\n" if completes else ""
    return _PYTHON.format(completes=method).encode()


def _python_io(rng: random.Random) -> str:
    kind, dims = rng.choice(("INT32", "FP32", "STRING", "BOOL")), rng.choice(("[ -1 ]", "[ 4 ]", "[ 2, -1 ]"))
    batch = rng.choice((0, 4))
    text = f"max_batch_size: {batch}\n" + _tensor("input", "X", kind, dims) + _tensor("output", "Y", kind, dims)
    return text + (rng.choice(SCHEDULERS[:6]) + "\n" if batch else "")


def python(count: int = 24, seed: int = 13) -> dict[str, Made]:
    """Models that give back what they get, some of which complete their configuration; a third of them has something wrong."""
    rng = random.Random(seed)
    made = {}
    for number in range(count):
        completes, front = _COMPLETES[number % len(_COMPLETES)], ""
        text = 'backend: "python"\n' + _parts(rng, PLAIN[:4]) + ONE + "\n"
        if number % 3 == 2:
            completes, front = _PYTHON_FLAWS[number // 3 % len(_PYTHON_FLAWS)]
            text += _python_io(rng)
        elif not completes:
            text += _python_io(rng)
        made[f"p{number:03}"] = Made(text, {"model.py": front.encode() + _model_py(completes)})
    return made


# -- ensembles --

STEPS = {"wide": ("FP32", 0), "batched": ("FP32", 8), "numbers": ("INT32", 0)}  # models of the steps: datatype, batch size
_FLAWS = ("no such model", "no such input", "datatype", "unmade", "batch", "circle", "unused", "two makers")


def step_models(repository: Repository) -> None:
    for name, (kind, batch) in STEPS.items():
        repository.identity(name, kind, max_batch_size=batch, extra=ONE)


def _chain(rng: random.Random, name: str) -> Ensemble:
    model = rng.choice(list(STEPS))
    kind, batch = STEPS[model]
    length = rng.choice((1, 2, 3))
    tensors = ["IN", *(f"t{at}" for at in range(1, length)), "OUT"]
    steps = [Step(model, {"INPUT0": tensors[at]}, {"OUTPUT0": tensors[at + 1]}, rng.choice((-1, 1))) for at in range(length)]
    outputs = ("OUT", *rng.sample(tensors[1:-1], rng.randrange(length))) if length > 1 else ("OUT",)
    return Ensemble(name, steps, outputs=outputs, datatype=kind, max_batch_size=rng.choice((0, batch)) if batch else 0)


def _flawed(rng: random.Random, name: str, flaw: str) -> str:
    """A chain of two steps with one thing wrong."""
    first, second = Step("wide", {"INPUT0": "IN"}, {"OUTPUT0": "t"}), Step("wide", {"INPUT0": "t"}, {"OUTPUT0": "OUT"})
    steps, more = [first, second], {}
    if flaw == "no such model":
        steps = [Step("nobody", first.inputs, first.outputs), second]
    elif flaw == "no such input":
        steps = [Step("wide", {"INPUT9": "IN"}, first.outputs), second]
    elif flaw == "datatype":
        steps = [first, Step("numbers", second.inputs, second.outputs)]
    elif flaw == "unmade":
        steps = [first, Step("wide", {"INPUT0": "nothing"}, second.outputs)]
    elif flaw == "batch":
        more = {"max_batch_size": rng.choice((4, 16))}
    elif flaw == "circle":
        steps = [Step("wide", {"INPUT0": "t"}, {"OUTPUT0": "t"}), second]
    elif flaw == "unused":
        steps = [first, second, Step("wide", {"INPUT0": "t"}, {"OUTPUT0": "left"})]
    else:
        steps = [first, Step("wide", {"INPUT0": "IN"}, {"OUTPUT0": "t"}), second]
    return Ensemble(name, steps, **more).config()  # type: ignore[arg-type]


def ensembles(count: int = 48, seed: int = 17) -> dict[str, Made]:
    rng = random.Random(seed)
    made = {}
    for number in range(count):
        name = f"e{number:03}"
        if number % 3 == 0:
            made[name] = Made(_flawed(rng, name, _FLAWS[number // 3 % len(_FLAWS)]))
        else:
            made[name] = Made(_chain(rng, name).config() + _parts(rng, ("parameters", "metric_tags", "version_policy")))
    return made


def write(path: Path, made: dict[str, Made]) -> Repository:
    repository = Repository(path)
    for name, each in made.items():
        each.write(repository, name)
    return repository
