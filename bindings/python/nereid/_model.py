"""A model of a server in this process."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays, _core, _errors
from ._inbox import mail
from ._types import Array, Parameter, Settings

if TYPE_CHECKING:
    from ._server import Server

SEQUENCE_START, SEQUENCE_END = 1, 2


@dataclass(frozen=True)
class Request:
    """What a request says besides its inputs."""

    outputs: tuple[str, ...] | None = None
    wait: float = math.inf  # seconds
    settings: Settings | None = None


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
        self.decoupled = server._core.decoupled(name, version)
        self._datatypes = {each["name"]: str(each["datatype"]) for each in self.metadata()["inputs"]}
        self._bfloat16 = "BF16" in self._datatypes.values()

    def __repr__(self) -> str:
        return f"<nereid.Model {self.name!r}>"

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
        outputs: list[str] | None = None,
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

        outputs        names of the outputs that are wanted; None = all
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
        flags = (SEQUENCE_START if start else 0) | (SEQUENCE_END if end else 0)
        settings = (request_id, sequence, flags, priority, round(queue_timeout * 1e6), dict(parameters) if parameters else None)
        made = object.__new__(Model)
        made.__dict__.update(self.__dict__)
        made._request = Request(None if outputs is None else tuple(outputs), wait, settings)
        return made

    def infer(self, inputs: Mapping[str, Any] | None = None, /, **arrays: Any) -> dict[str, Array]:
        """Asks once and waits; other threads go on meanwhile. Inputs by name, or as a dict where a name is no Python name.

        Raises Error with the status code, TimeoutError (asking(timeout=...)); Error UNSUPPORTED for a decoupled model.
        """
        if self.decoupled:
            self._is_decoupled()
        request = self._request
        found = self._server._core.infer(
            request.wait, self.name, self.version, self._tensors(inputs, arrays), request.outputs, request.settings, None, 0
        )
        return {} if found is None else found

    def stream(self, inputs: Mapping[str, Any] | None = None, /, **arrays: Any) -> Iterator[dict[str, Array]]:
        """Asks once and gives the responses one by one: any number of a decoupled model. Leaving the iteration cancels the request."""
        call = self._submit(self._tensors(inputs, arrays), None, 0)
        return self._responses(call)

    def _responses(self, call: _core.Call) -> Iterator[dict[str, Array]]:
        while (found := call.wait(self._request.wait)) is not None:
            yield found

    async def infer_async(self, inputs: Mapping[str, Any] | None = None, /, **arrays: Any) -> dict[str, Array]:
        """As infer, for an event loop of asyncio, which goes on meanwhile. Cancelling the task cancels the request."""
        if self.decoupled:
            self._is_decoupled()
        async for found in self.stream_async(inputs, **arrays):
            return found
        return {}

    async def stream_async(self, inputs: Mapping[str, Any] | None = None, /, **arrays: Any) -> AsyncIterator[dict[str, Array]]:
        """As stream, for `async for`."""
        with mail() as (inbox, number, news):
            call = self._submit(self._tensors(inputs, arrays), inbox, number)
            over = False
            while not over:
                await self._wait(news)
                news.clear()
                found, over, lost = call.take()
                for each in found:
                    if isinstance(each, Exception):
                        raise each
                    yield each
                if over and lost:
                    call.wait(0)  # raises what became of them

    async def _wait(self, news: asyncio.Event) -> None:
        try:
            await (asyncio.wait_for(news.wait(), self._request.wait) if self._request.wait < math.inf else news.wait())
        except asyncio.TimeoutError:  # before Python 3.11 a class of its own
            raise TimeoutError("no response has come in time") from None

    def _submit(self, inputs: dict[str, Any], inbox: _core.Inbox | None, number: int) -> _core.Call:
        request = self._request
        return self._server._core.submit(self.name, self.version, inputs, request.outputs, request.settings, inbox, number)

    def _is_decoupled(self) -> None:
        raise _errors.Error(
            f"model '{self.name}' is decoupled, a request may have any number of responses: iterate over stream() or stream_async()",
            _errors.Code.UNSUPPORTED,
        )

    def _tensors(self, inputs: Mapping[str, Any] | None, arrays: dict[str, Any]) -> dict[str, Any]:
        made = {**inputs, **arrays} if inputs else arrays
        for name, value in made.items():
            if type(value) is not np.ndarray:
                made[name] = self._array(name, value)
        if self._bfloat16:
            for name, datatype in self._datatypes.items():
                if datatype == "BF16" and name in made:
                    made[name] = _arrays.to_bfloat16(made[name])
        return made

    def _array(self, name: str, value: Any) -> Array:
        try:
            return _arrays.as_array(value, self._datatypes.get(name, "FP32"))
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise _errors.Error(f"input '{name}' of model '{self.name}' is no array: {error}", _errors.Code.INVALID_ARG) from error
