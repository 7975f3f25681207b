"""The identity models that the tests share."""

from pathlib import Path

from . import recite
from .repository import DATATYPES, Repository

# Those whose metadata and configuration both servers are asked for.
SPINE_MODELS = (
    "id_fp32",
    "id_bytes",
    "id_cube",
    "id_batch",
    "id_two",
    "id_newest",
    "id_specific",
    "id_all",
    "mymodel",
)


def identity_repository(repository: Repository) -> Path:
    for datatype in DATATYPES:
        repository.identity(f"id_{datatype.lower()}", datatype)
    repository.identity("id_cube", dims=(-1, 3, -1))
    repository.identity("id_quiet")  # never asked to infer
    repository.identity("id_batch", dims=(16,), max_batch_size=8)
    repository.identity("id_two", dims=(-1,), max_batch_size=8, tensors=2)
    repository.identity("id_int_batch", "INT32", dims=(4,), max_batch_size=4)
    repository.identity("id_newest", versions=(1, 2, 3))
    repository.identity(
        "id_specific", versions=(1, 2, 3), extra="version_policy { specific { versions: [ 1, 3 ] } }"
    )
    repository.identity("id_all", versions=(1, 2, 10, "01", "tmp"), extra="version_policy { all { } }")
    repository.model("mymodel", _example("mymodel"))
    text = ("text_input", "BYTES", (1,))
    recite.model(repository, "recite", text, ("IN1", "INT32", (-1,)))
    recite.model(repository, "recite_once", text, decoupled=False, index=False)
    recite.model(repository, "recite_rows", text, batch=4)
    recite.model(repository, "recite_shapes", ("IN0", "FP32", (-1, 2, -1)), ("IN1", "UINT8", (3,)), index=False)
    recite.model(repository, "recite_parameters", ("parameters", "INT32", (1,)), index=False)
    recite.model(repository, "recite_names", ("model_name", "INT32", (1,)), index=False)
    return repository.path


def _example(name: str) -> str:
    """The shape that the examples of the sequence extension ask: input0, output0 of UINT32 [ 2, 2 ]."""
    return f"""\
        name: "{name}"
        backend: "identity"
        max_batch_size: 0
        input {{ name: "input0" data_type: TYPE_UINT32 dims: [ 2, 2 ] }}
        output {{ name: "output0" data_type: TYPE_UINT32 dims: [ 2, 2 ] }}
        """
