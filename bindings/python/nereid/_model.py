"""A model of a server in this process."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from . import _arrays, _core, _errors
from ._inbox import mail
from ._types import Array, Parameter, Settings

if TYPE_CHECKING:
    from ._server import Server

Sent = TypeVar("Sent")
SEQUENCE_START, SEQUENCE_END = 1, 2


@dataclass(frozen=True)
class Request:
    """What a request says besides its inputs."""

    outputs: tuple[str, ...] | None = None
    wait: float = math.inf  # seconds
    settings: Settings | None = None


@dataclass
class Traits:
    """What is known of a model. Loading it again may change them."""

    decoupled: bool
    datatypes: dict[str, str]  # of the inputs


class Model:
    """A model, as `Server.model` gives it. Any thread may use it.

    Inputs are NumPy arrays, anything with `__dlpack__` in the memory of processors (neither is copied when it is contiguous), or what
    `numpy.asarray` takes. Outputs are arrays over the memory of the response, which they keep.
    """

    def __init__(self, server: Server, name: str, version: int):
        self.name = name
        self.version = version
        self._server = server
        self._request = Request()
        self._traits = Traits(False, {})
        self._look()

    def __repr__(self) -> str:
        return f"<nereid.Model {self.name!r}>"

    @property
    def decoupled(self) -> bool:
        """Whether a request may have any number of responses."""
        return self._traits.decoupled

    def _look(self) -> bool:
        """At the model as it is now; tells whether it was another."""
        before, known = Traits(**vars(self._traits)), self._traits  # those of all that came by asking()
        known.decoupled = self._server._core.decoupled(self.name, self.version)
        known.datatypes = {each["name"]: str(each["datatype"]) for each in self.metadata()["inputs"]}
        return known != before

    def metadata(self) -> dict[str, Any]:
        """Versions, inputs and outputs."""
        found: dict[str, Any] = json.loads(self._server._core.ask("metadata", self.name, self.version))
        return found

    def config(self) -> dict[str, Any]:
        """The configuration that is in force."""
        found: dict[str, Any] = json.loads(self._server._core.ask("config", self.name, self.version))
        return found

    def statistics(self) -> dict[str, Any]:
        """What the model has done so far."""
        found: dict[str, Any] = json.loads(self._server._core.ask("statistics", self.name, self.version))
        return found

    def ready(self) -> bool:
        return self._server._core.ready(self.name, self.version)

    def asking(
        self,
        *,
        outputs: str | list[str] | None = None,
        timeout: float | None = None,
        queue_timeout: float = 0,
        request_id: str = "",
        priority: int = 0,
        sequence: int | str = 0,
        start: bool = False,
        end: bool = False,
        parameters: Mapping[str, Parameter] | None = None,
    ) -> Model:
        """The same model, whose requests say more.

        outputs        names of the outputs that are wanted, or one name; None = all
        timeout        seconds until a response has to be there: TimeoutError, and the request is cancelled. None = any time; less
                       than 0 is over at once
        queue_timeout  seconds that a request may wait in the server's queue; 0 = as configured
        request_id     which responses and the log repeat
        priority       1 is the highest; 0 = as configured
        sequence       number or name of the sequence that it belongs to, and whether it is its first (start) or last (end)
        parameters     for the model
        """
        if not (0 <= priority < 1 << 64 and 0 <= queue_timeout < 1 << 43):
            raise ValueError(f"priority, queue_timeout: expected none below 0, nor above what 64 bits hold, found {priority}, {queue_timeout}")
        wait = math.inf if timeout is None else float(timeout)
        if math.isnan(wait):
            raise ValueError("timeout: expected seconds, found nan")
        for name, value in (parameters or {}).items():
            if not isinstance(value, (str, int, float)) or (isinstance(value, int) and not -(1 << 63) <= value < 1 << 63):
                raise ValueError(f"parameter {name!r}: expected a str, bool, float or an int of 64 bits, found {value!r}")
        flags = (SEQUENCE_START if start else 0) | (SEQUENCE_END if end else 0)
        settings = (request_id, sequence, flags, priority, round(queue_timeout * 1e6), dict(parameters) if parameters else None)
        made = object.__new__(Model)
        made.__dict__.update(self.__dict__)
        outputs = [outputs] if isinstance(outputs, str) else outputs
        made._request = Request(None if outputs is None else tuple(outputs), wait, settings)
        return made

    def infer(self, inputs: Mapping[str, Any] | None = None, /, **arrays: Any) -> dict[str, Array]:
        """Asks once and waits; other threads go on meanwhile. Inputs by name, or as a dict where a name is no Python name.

        Raises Error with the status code, TimeoutError (asking(timeout=...)); Error UNSUPPORTED for a decoupled model.
        """
        self._one_response()
        request = self._request
        found = self._sent(
            lambda tensors: self._server._core.infer(
                request.wait, self.name, self.version, tensors, request.outputs, request.settings, None, 0
            ), inputs, arrays,
        )  # fmt: skip
        return {} if found is None else found

    def stream(self, inputs: Mapping[str, Any] | None = None, /, **arrays: Any) -> Iterator[dict[str, Array]]:
        """Asks once and gives the responses one by one: any number of a decoupled model. Leaving the iteration cancels the request."""
        call = self._submit(inputs, arrays, None, 0)
        return self._responses(call)

    def _responses(self, call: _core.Call) -> Iterator[dict[str, Array]]:
        while (found := call.wait(self._request.wait)) is not None:
            yield found

    async def infer_async(self, inputs: Mapping[str, Any] | None = None, /, **arrays: Any) -> dict[str, Array]:
        """As infer, for an event loop of asyncio, which goes on meanwhile. Cancelling the task cancels the request."""
        self._one_response()
        with mail() as (inbox, number, news):
            call = self._submit(inputs, arrays, inbox, number)
            found, over, lost = await self._news(call, news)
            while not found and not over:
                found, over, lost = await self._news(call, news)
        if over and lost:
            call.wait(0)  # raises what became of them
        first = found[0] if found else {}
        if isinstance(first, Exception):
            raise first
        if not over or len(found) > 1:
            self._look()
            self._is_decoupled()
        return first

    async def stream_async(self, inputs: Mapping[str, Any] | None = None, /, **arrays: Any) -> AsyncIterator[dict[str, Array]]:
        """As stream, for `async for`."""
        with mail() as (inbox, number, news):
            call = self._submit(inputs, arrays, inbox, number)
            over = lost = False
            while not over:
                found, over, lost = await self._news(call, news)
                for each in found:
                    if isinstance(each, Exception):
                        raise each
                    yield each
            if lost:
                call.wait(0)

    async def _news(self, call: _core.Call, news: asyncio.Event) -> tuple[list[dict[str, Array] | Exception], bool, bool]:
        """Waits until something has come, and takes it: see _core.Call.take."""
        wait = self._request.wait
        try:
            await (asyncio.wait_for(news.wait(), wait) if wait < math.inf else news.wait())
        except asyncio.TimeoutError:  # before Python 3.11 a class of its own
            raise TimeoutError("no response has come in time") from None
        news.clear()
        return call.take()

    def _submit(self, inputs: Mapping[str, Any] | None, arrays: dict[str, Any], inbox: _core.Inbox | None, number: int) -> _core.Call:
        request = self._request
        return self._sent(
            lambda tensors: self._server._core.submit(
                self.name, self.version, tensors, request.outputs, request.settings, inbox, number
            ), inputs, arrays,
        )  # fmt: skip

    def _sent(self, send: Callable[[dict[str, Any]], Sent], inputs: Mapping[str, Any] | None, arrays: dict[str, Any]) -> Sent:
        """send() with the tensors; once more where it does not fit because the model has changed."""
        try:
            return send(self._tensors(inputs, arrays))
        except _errors.Error as error:
            several = error.code == _errors.Code.UNSUPPORTED
            if not (several or error.code == _errors.Code.INVALID_ARG) or not self._look():
                raise
            if several and self.decoupled:
                self._is_decoupled()
        return send(self._tensors(inputs, arrays))

    def _one_response(self) -> None:
        if self.decoupled:
            self._look()
        if self.decoupled:
            self._is_decoupled()

    def _is_decoupled(self) -> NoReturn:
        raise _errors.Error(
            f"model '{self.name}' is decoupled, a request may have any number of responses: iterate over stream() or stream_async()",
            _errors.Code.UNSUPPORTED,
        )

    def _tensors(self, inputs: Mapping[str, Any] | None, arrays: dict[str, Any]) -> dict[str, Any]:
        datatypes = self._traits.datatypes
        made = {**inputs, **arrays} if inputs else {**arrays}
        for name, value in made.items():
            if type(value) is not np.ndarray:
                made[name] = self._array(name, value, datatypes.get(name, "FP32"))
        if "BF16" in datatypes.values():
            for name, datatype in datatypes.items():
                if datatype == "BF16" and name in made:
                    made[name] = _arrays.to_bfloat16(made[name])
        return made

    def _array(self, name: str, value: Any, datatype: str) -> Array:
        try:
            return _arrays.as_array(value, datatype)
        except (TypeError, ValueError, OverflowError, BufferError, RuntimeError) as error:
            raise _errors.Error(f"input '{name}' of model '{self.name}' is no array: {error}", _errors.Code.INVALID_ARG) from error
