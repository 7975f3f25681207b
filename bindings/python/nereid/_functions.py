"""Python functions as models."""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from . import _arrays
from ._errors import Code, Error
from ._types import Array, Result

Spec = tuple[Any, Sequence[int]]
MOST_SECONDS = 86400
MOST_CAUSES = 100  # of an error, one behind the other
END = object()
Outputs = Mapping[str, Any]
Body = Callable[..., Union[Outputs, Iterator[Outputs]]]


@dataclass(frozen=True)
class Tensor:
    """An input or output: name, datatype of the protocol, shape with -1 for any size."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    def config(self) -> str:
        kind = "TYPE_STRING" if self.datatype == "BYTES" else f"TYPE_{self.datatype}"
        return f"{{ name: {json.dumps(self.name)} data_type: {kind} dims: [ {', '.join(map(str, self.shape))} ] }}"


def tensors(of: str, given: Mapping[str, Spec]) -> tuple[Tensor, ...]:
    made = []
    for name, spec in given.items():
        try:
            datatype, shape = spec
            made.append(Tensor(name, _arrays.name_of(datatype), tuple(int(size) for size in shape)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{of} {name!r}: expected (datatype, shape) such as (numpy.float32, [-1, 3]), found {spec!r}: {error}") from error
        if any(size < -1 or size == 0 for size in made[-1].shape):
            raise ValueError(f"{of} {name!r}: sizes are above 0, or -1 for any, found {list(made[-1].shape)}")
    return tuple(made)


@dataclass
class Function:
    """A function that a server can serve: `Server(function)`. Called, it is the function."""

    body: Body
    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int = 0
    max_queue_delay_us: int = 0
    instances: int = 1
    decoupled: bool = False
    timeout: float = 0
    _outputs: dict[str, Tensor] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name.startswith("."):
            raise ValueError(f"name: expected the name of a model, which is that of a folder, found {self.name!r}")
        if not 0 <= self.timeout <= MOST_SECONDS or (self.timeout and self.decoupled):
            raise ValueError(f"timeout: expected seconds up to {MOST_SECONDS}, and none for a generator, found {self.timeout}")
        if self.instances < 1 or self.max_batch_size < 0:
            raise ValueError(f"instances, max_batch_size: expected at least 1, found {self.instances}, {self.max_batch_size}")
        if inspect.iscoroutinefunction(self.body) or inspect.isasyncgenfunction(self.body):
            raise TypeError(f"function '{self.name}': expected one without async, which is called on a thread of the server")
        if self.max_batch_size and (inspect.isgeneratorfunction(self.body) or not self.inputs):
            raise TypeError(f"function '{self.name}': a batch is divided by the rows of its inputs; it has some, and is no generator")
        self._outputs = {each.name: each for each in self.outputs}

    def __call__(self, *args: Any, **kwargs: Any) -> Outputs | Iterator[Outputs]:
        return self.body(*args, **kwargs)

    def config(self, key: str) -> str:
        """config.pbtxt of the model."""
        lines = [
            'backend: "function"',
            f"max_batch_size: {self.max_batch_size}",
            *(f"input {each.config()}" for each in self.inputs),
            *(f"output {each.config()}" for each in self.outputs),
            f"instance_group {{ count: {self.instances} kind: KIND_CPU }}",
            f'parameters {{ key: "function" value {{ string_value: "{key}" }} }}',
        ]
        if self.max_batch_size:
            lines.append(f"dynamic_batching {{ max_queue_delay_microseconds: {self.max_queue_delay_us} }}")
        if self.decoupled:
            lines.append("model_transaction_policy { decoupled: true }")
        return "\n".join(lines) + "\n"

    def run(self, requests: list[dict[str, Array]]) -> list[Result]:
        """What the backend calls: a result for each request."""
        if self.max_batch_size:
            return self._run_batch(requests)
        return [self._run_one(inputs) for inputs in requests]

    def _run_one(self, inputs: dict[str, Array]) -> Result:
        try:
            made = self.body(**inputs)
            return self._stream(made) if self.decoupled else self._checked(made)
        except BaseException as error:
            return self._failure(error)

    def _stream(self, items: Any) -> Iterator[Result]:
        going = True
        while going:
            try:
                each = next(items, END)
                if each is END:
                    return
                made: Result = self._checked(each)
            except BaseException as error:
                going, made = False, self._failure(error)
            yield made

    def _run_batch(self, requests: list[dict[str, Array]]) -> list[Result]:
        try:
            sizes = [len(next(iter(inputs.values()))) for inputs in requests]
            if len(requests) == 1:
                return [self._checked(self.body(**requests[0]), sizes[0])]
            together = {name: np.concatenate([inputs[name] for inputs in requests]) for name in requests[0]}
            made = self._checked(self.body(**together), sum(sizes))
        except BaseException as error:
            return [self._failure(error)] * len(requests)
        ends = np.cumsum(sizes)
        return [{name: part(array, end - size, end) for name, array in made.items()} for size, end in zip(sizes, ends)]

    def _checked(self, made: Any, batch: int | None = None) -> dict[str, Any]:
        """The outputs as arrays of the datatypes that were declared."""
        if not isinstance(made, Mapping):
            raise TypeError(f"expected a dict of outputs, found {type(made).__name__}")
        if made.keys() != self._outputs.keys():
            raise TypeError(f"expected the outputs {sorted(self._outputs)}, found {sorted(map(str, made))}")
        return {name: checked(self._outputs[name], value, batch) for name, value in made.items()}

    def _failure(self, error: BaseException) -> tuple[int, str]:
        """What a client is told: the error and the line of the function where it was raised. It may be of any class: sys.exit() ends no
        server."""
        told = self._told(error)
        forget(error)
        return told

    def _told(self, error: BaseException) -> tuple[int, str]:
        if isinstance(error, Error):
            return code_of(error), text_of(error)
        where, file = "", self.body.__code__.co_filename if hasattr(self.body, "__code__") else ""
        trace = error.__traceback__
        while trace:
            if trace.tb_frame.f_code.co_filename == file:
                where = f", line {trace.tb_lineno}"
            trace = trace.tb_next
        text = text_of(error)
        return int(Code.INTERNAL), f"function '{self.name}'{where}: {type(error).__name__}{': ' if text else ''}{text}"


def code_of(error: Error) -> int:
    """That of the server, whatever the function made of it."""
    try:
        return int(Code(error.code))
    except BaseException:
        return int(Code.UNKNOWN)


def text_of(error: BaseException) -> str:
    """What the error says, as a text that can be sent: in UTF-8 and without NUL."""
    try:
        said = str(error)
    except BaseException as failed:
        said = f"its text cannot be made, {type(failed).__name__}"
    return said.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def forget(error: BaseException | None) -> None:
    """Empties the frames that an error came through: a variable that names the error keeps them, and with them the arrays of the request."""
    for _ in range(MOST_CAUSES):
        if error is None:
            break
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def part(array: Any, begin: int, end: int) -> Any:
    return (array[0], array[1][begin:end]) if isinstance(array, tuple) else array[begin:end]


def checked(tensor: Tensor, value: Any, batch: int | None) -> Any:
    array = value if isinstance(value, np.ndarray) else _arrays.as_array(value, tensor.datatype)
    wanted = _arrays.DTYPES[tensor.datatype]
    if array.dtype != wanted and not (tensor.datatype == "BYTES" and array.dtype.kind in "USO"):
        raise TypeError(f"output '{tensor.name}': expected {tensor.datatype} ({wanted}), found {array.dtype}")
    shape = array.shape if batch is None else array.shape[1:]
    fits = len(shape) == len(tensor.shape) and all(size in (-1, found) for size, found in zip(tensor.shape, shape))
    if not fits or (batch is not None and array.shape[:1] != (batch,)):
        expected = [*([] if batch is None else [batch]), *tensor.shape]
        raise ValueError(f"output '{tensor.name}': expected the shape {expected}, found {list(array.shape)}")
    return _arrays.to_bfloat16(array) if tensor.datatype == "BF16" else array


def model(
    *, inputs: Mapping[str, Spec], outputs: Mapping[str, Spec], name: str | None = None, instances: int = 1,
    timeout: float | None = None,
) -> Callable[[Body], Function]:  # fmt: skip
    """Makes a function a model: it gets the inputs of a request by name and returns a dict of its outputs.

    A generator function is a decoupled model: each dict that it yields is a response.

        @nereid.model(inputs={"a": (numpy.float32, [-1])}, outputs={"twice": (numpy.float32, [-1])})
        def double(a):
            return {"twice": 2 * a}

    inputs, outputs  by name: a datatype of NumPy, or one of the protocol such as "FP32", and a shape with -1 for any size
    name             of the model; None = that of the function
    instances        how many requests may run at the same time, each on a thread
    timeout          seconds that a call may take; its requests have an error then, and others go on. None = any time, which is quicker:
                     no thread besides those of the server
    """

    def decorate(body: Body) -> Function:
        decoupled = inspect.isgeneratorfunction(body)
        return Function(
            body, name or body.__name__, tensors("input", inputs), tensors("output", outputs), instances=instances, decoupled=decoupled,
            timeout=timeout or 0,
        )  # fmt: skip

    return decorate


def batch(
    *, inputs: Mapping[str, Spec], outputs: Mapping[str, Spec], max_batch_size: int = 64, max_queue_delay: float = 0,
    name: str | None = None, instances: int = 1, timeout: float | None = None,
) -> Callable[[Body], Function]:  # fmt: skip
    """As model, for a function that takes many requests at once: its arrays have one more dimension in front, the batch.

    max_batch_size   rows that it may get at once
    max_queue_delay  seconds that the server may wait for more of them
    """
    if max_batch_size < 1:
        raise ValueError(f"max_batch_size: expected at least 1, found {max_batch_size}")

    def decorate(body: Body) -> Function:
        return Function(
            body, name or body.__name__, tensors("input", inputs), tensors("output", outputs), max_batch_size,
            round(max_queue_delay * 1e6), instances, timeout=timeout or 0,
        )  # fmt: skip

    return decorate


_bound: dict[str, Function] = {}


def bind(functions: Iterable[tuple[str, Function]]) -> None:
    """Functions that models may name by these keys, until they are released."""
    _bound.update(functions)


def release(keys: Iterable[str]) -> None:
    for key in keys:
        _bound.pop(key, None)


def find(name: str, config: str) -> tuple[Callable[[list[dict[str, Array]]], list[Result]], float, bool]:
    """What runs a model, for the backend; its time-out in seconds; whether it batches."""
    key = json.loads(config).get("parameters", {}).get("function", {}).get("string_value", "")
    if key not in _bound:
        raise Error(f"model '{name}' names no function of this process: models of the backend 'function' are made by the package alone")
    found = _bound[key]
    return found.run, found.timeout, found.max_batch_size > 0
