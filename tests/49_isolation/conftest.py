"""The server that the tests of this folder share, with isolated models of several kinds."""

from collections.abc import Iterator

import pytest

from harness.repository import DATATYPES, Repository
from harness.servers import Nereid
from isolated import ISOLATED, QUIET_CRASHES, crasher, parameters


@pytest.fixture
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("isolation") / "models")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nereid]:
    """Each identity model twice: as it is, and isolated under the same name with `iso_` before it."""
    repository = Repository(tmp_path_factory.mktemp("pairs") / "models")
    isolated = parameters(ISOLATED)
    for prefix, extra in (("", ""), ("iso_", isolated)):
        for datatype in DATATYPES:
            repository.identity(f"{prefix}id_{datatype.lower()}", datatype, extra=extra)
        repository.identity(f"{prefix}id_cube", dims=(-1, 3, -1), extra=extra)
        repository.identity(f"{prefix}id_two", max_batch_size=8, tensors=2, extra=extra + "dynamic_batching { }\n")
        config = f'name: "{prefix}id_reshape"\nbackend: "identity"\nmax_batch_size: 4\n{extra}'
        for kind in ("input", "output"):
            name = f'name: "{kind.upper()}0" data_type: TYPE_FP32 dims: [ 16 ]'
            config += f"{kind} [ {{ {name} reshape: {{ shape: [ 4, 4 ] }} }} ]\n"
        repository.model(f"{prefix}id_reshape", config)
        crasher(repository, f"{prefix}crasher", ISOLATED if prefix else {})
        iterative = "sequence_batching { iterative_sequence: true }\n"
        crasher(repository, f"{prefix}again", ISOLATED if prefix else {}, iterative, batch=4)
        direct = "sequence_batching { direct { } }\n"
        crasher(repository, f"{prefix}slots", ISOLATED if prefix else {}, direct, batch=4)
        crasher(
            repository, f"{prefix}many", ISOLATED if prefix else {}, "model_transaction_policy { decoupled: true }\n"
        )
    with Nereid(repository.path, env=QUIET_CRASHES) as server:
        yield server
