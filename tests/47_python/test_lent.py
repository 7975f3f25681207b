"""Our python backend in the reference: the same library and the same files, loaded from a directory of backends."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from asks import Asker, words
from catalog import DATATYPES
from conftest import Both, begin, make_server
from harness import paths
from harness.servers import Reference

MODELS = ["identity", "tell", "state", "fails_execute", "repeat", "bls_decoupled", "metrics", "dies", "add_sub", "auto_complete", "logs"]
pytestmark = pytest.mark.reference


@pytest.fixture(scope="module")
def lent(python_backends: dict[str, Path], repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("lent")
    for name in ("python", "identity"):
        (folder / name).symlink_to(paths.need(paths.backends(reference=True) / name))
    options = {"model-control-mode": "explicit", "load-model": MODELS}
    places = {"reference": folder, "nereid": python_backends["nereid"]}
    made = begin({kind: make_server(kind, places, repository, options) for kind in places}, MODELS)
    assert isinstance(made.servers["reference"], Reference)
    yield made
    made.close()
    for server in made.servers.values():
        server.stop(seconds=150)  # status 0: nothing was forgotten


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("datatype", [each for each in DATATYPES if each != "STRING"])
def test_tensors(lent: Both, datatype: str, protocol: str) -> None:
    kind = {"BOOL": "bool", "FP16": "float16", "FP32": "float32", "FP64": "float64"}.get(datatype, datatype.lower())
    values = np.arange(6).reshape(2, 3).astype(kind)
    if (datatype, protocol) == ("FP16", "http"):
        values = np.zeros((2, 0), kind)
    answer = lent.same(lambda asker: asker.infer("identity", {f"IN_{datatype}": values}, protocol=protocol))
    assert answer[f"OUT_{datatype}"][2] == values.tobytes()


def test_texts(lent: Both) -> None:
    texts = words("a", "\u00fc", b"\xff\x00").reshape(1, 3)
    assert lent.same(lambda asker: asker.infer("identity", {"IN_STRING": texts}))["OUT_STRING"][2] == [[b"a", "\u00fc".encode(), b"\xff\x00"]]


@pytest.mark.parametrize("ask", ["well", "raise", "no list", "too few", "wrong thing", "error NOT_FOUND", "error and outputs"])
def test_failures(lent: Both, ask: str) -> None:
    lent.same(lambda asker: asker.told("fails_execute", ask))


def test_responses_of_decoupled_models(lent: Both) -> None:
    for where in ("execute", "thread"):
        inputs = {"IN": np.arange(5, dtype=np.int32), "WHERE": words(where)}
        came = lent.same(lambda asker, inputs=inputs: asker.stream("repeat", inputs))
        assert [int(np.frombuffer(each["OUT"][2], np.int32)[0]) for each in came if "OUT" in each] == list(range(5))


def test_nested_requests(lent: Both) -> None:
    inputs = {"IN": np.arange(5, dtype=np.int32), "STOP": np.array([-1], np.int32)}
    lent.same(lambda asker: asker.stream("bls_decoupled", inputs))


def test_state_metrics_logs(lent: Both) -> None:
    for model in ("state", "metrics", "logs"):
        lent.same(lambda asker, model=model: asker.told(model, "a"))


def test_a_process_that_dies_comes_back(lent: Both) -> None:
    def ask(asker: Asker) -> tuple[str, str]:
        return asker.told("dies", "die")["message"], asker.told("dies", "")

    failed, told = lent.same(ask)
    assert "'dies_0'" in failed and told == "1"
