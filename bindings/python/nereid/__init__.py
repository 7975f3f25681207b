"""Nereid, an inference server, as a package: in this process with every option of the command line, or as `python -m nereid`.

    with nereid.Server(model_repository="models") as server:
        outputs = server.model("digits").infer(image=image)

A Python function becomes a model by `@nereid.model` or `@nereid.batch`; `nereid.serve` serves it over HTTP and gRPC.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._errors import Code, Error
    from ._functions import Function, batch, model
    from ._model import Model
    from ._server import Server, serve

__all__ = ["Code", "Error", "Function", "Model", "Server", "batch", "model", "serve"]


def __getattr__(name: str) -> Any:
    """NumPy and the library are loaded when they are used first: `python -m nereid` needs neither."""
    if name not in __all__:
        raise AttributeError(f"module 'nereid' has no attribute '{name}'")
    from . import _errors, _functions, _model, _server

    for part in (_errors, _functions, _model, _server):
        globals().update({each: getattr(part, each) for each in __all__ if hasattr(part, each)})
    return globals()[name]
