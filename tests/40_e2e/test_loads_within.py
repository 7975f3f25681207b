"""Backends that load another model while theirs is loaded: a circle is refused, not waited for. (The reference waits for ever.)"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import paths, rawhttp
from harness.repository import Repository
from harness.servers import Nereid
from witness import compile_backend

WAITING = 32  # loads of such backends may wait at the same time, whatever --model-load-thread-count is
TENSORS = """input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


def _loads(repository: Repository, name: str, other: str) -> None:
    parameter = f'parameters {{ key: "LOADS" value {{ string_value: "{other}" }} }}\n'
    repository.model(name, f'backend: "loader"\n{TENSORS}{parameter}')


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Nereid]:
    made = Repository(tmp_path / "models")
    made.identity("plain")
    for name, other in (("good", "plain"), ("itself", "itself"), ("a", "b"), ("b", "c"), ("c", "a"), ("needed", "needs")):
        _loads(made, name, other)
    maps = 'input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" }'
    step = f'step [ {{ model_name: "needed" model_version: -1 {maps} }} ]'
    made.model("needs", f'platform: "ensemble"\n{TENSORS}ensemble_scheduling {{ {step} }}\n')
    backends = compile_backend(tmp_path / "backends", "loader")
    (backends / "identity").symlink_to(paths.backends() / "identity")
    options: dict[str, str | list[str]] = {"model-control-mode": "explicit", "backend-directory": str(backends)}
    with Nereid(made.path, options) as started:
        yield started


def _load(server: Nereid, model: str) -> tuple[int, str]:
    answer = rawhttp.post(server.http, f"/v2/repository/models/{model}/load", {})
    return answer.status, "" if answer.status == 200 else answer.json()["error"]


def test_another_model(server: Nereid) -> None:
    assert _load(server, "good") == (200, "")
    assert rawhttp.get(server.http, "/v2/models/plain/ready").status == 200


@pytest.mark.parametrize("model", ["itself", "a", "c"])
def test_a_circle_is_refused(server: Nereid, model: str) -> None:
    """Directly, and through two others, wherever it begins; what is loaded afterwards loads."""
    status, error = _load(server, model)
    assert status == 400 and "would wait for this one, and neither would end" in error, error
    assert _load(server, "good") == (200, "")


def test_a_circle_through_an_ensemble(server: Nereid) -> None:
    """The ensemble does not wait for the model whose load waits for the ensemble."""
    status, error = _load(server, "needed")
    assert status == 400 and "needs" in error, error
    assert _load(server, "good") == (200, "")


@pytest.mark.parametrize("length", [20, 100])
def test_a_long_chain(server: Nereid, length: int) -> None:
    """As many loads wait for one another as there are loaders, but for one: then the next is refused, and all of them end."""
    repository = Repository(Path(server.repositories[0]))
    for i in range(length):
        _loads(repository, f"long{i}", f"long{i + 1}" if i + 1 < length else "plain")
    status, error = _load(server, "long0")
    if length == 20:
        assert (status, error) == (200, "")
    else:
        assert status == 400 and "loads of backends that load other models wait already" in error, error
    assert _load(server, "good") == (200, "")


def test_many_at_once(server: Nereid) -> None:
    """Each waits for a load of its own: more than there are loaders, some may be refused, and all of them end."""
    repository = Repository(Path(server.repositories[0]))
    for i in range(50):
        repository.identity(f"leaf{i}")
        _loads(repository, f"wide{i}", f"leaf{i}")
    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda i: _load(server, f"wide{i}"), range(50)))
    assert found.count((200, "")) >= WAITING, found  # a load is refused while so many wait, and these end well
    assert all(status == 400 and "wait already" in error for status, error in found if status != 200), found
    assert _load(server, "good") == (200, "")
