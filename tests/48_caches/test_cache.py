"""The response cache: the same tests with our local cache and with the reference's, and ours in the reference too.

Parity with the reference where it is right; where its key lacks shape and outputs (it gives the answer to another request), ours
has them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import cache_asks as asks
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from conftest import extensions
from harness import rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Server

OURS = ["nereid-ours", "nereid-reference"]
ALL = [*OURS, pytest.param("reference-ours", marks=pytest.mark.reference)]
SIZE = 64 << 20


def directory(which: str, reference_cache: Path) -> Path:
    server, cache = which.split("-")
    return reference_cache if cache == "reference" else extensions("caches", server)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = Repository(tmp_path_factory.mktemp("caches") / "models")
    asks.write_models(repository)
    return repository.path


@pytest.fixture(params=ALL)
def which(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cached(which: str, models: Path, reference_cache: Path) -> Iterator[Server]:
    options = {"cache-config": f"local,size={SIZE}", "cache-directory": str(directory(which, reference_cache))}
    with KINDS[which.split("-")[0]](models, options) as server:
        yield server


ours_only = pytest.mark.parametrize("which", OURS, indirect=True)


def test_a_repeated_request_is_answered_from_the_cache(cached: Server) -> None:
    first = asks.infer(cached, "cached", asks.tensor([1.5, 2.5]))
    assert first == {"OUTPUT0": ([2], [1.5, 2.5])}
    for _ in range(4):
        assert asks.infer(cached, "cached", asks.tensor([1.5, 2.5])) == first
    found = asks.counts(cached, "cached")
    assert (found["success"], found["cache_hit"], found["cache_miss"]) == (5, 4, 1)
    assert found["queue"] == 5
    assert [found[f"compute_{part}"] for part in ("input", "infer", "output")] == [1, 1, 1]
    assert (found["inference_count"], found["execution_count"]) == (1, 1)


def test_the_metrics_page_counts_and_orders_as_the_reference(cached: Server) -> None:
    for value in (1, 1, 1, 2):
        asks.infer(cached, "cached", asks.tensor([value]))
    asks.infer(cached, "plain", asks.tensor([1]))
    families = asks.page(cached)
    names = [name for name in families if name.endswith("_per_model")]
    assert names == [
        "nv_cache_num_hits_per_model", "nv_cache_hit_duration_per_model",
        "nv_cache_num_misses_per_model", "nv_cache_miss_duration_per_model",
    ]
    everything = list(families)
    assert everything[everything.index(names[0]) - 1] == "nv_inference_compute_output_duration_us"
    assert everything[everything.index(names[-1]) + 1] == "nv_inference_pending_request_count"
    for name in names:
        assert families[name].kind == "counter"
        assert families[name].label_names() == {"model", "version"}
        assert not [labels for _, labels, _ in families[name].samples if labels["model"] == "plain"]
    assert families["nv_cache_num_hits_per_model"].value(model="cached") == 2
    assert families["nv_cache_num_misses_per_model"].value(model="cached") == 2
    assert families["nv_inference_request_success"].value(model="cached") == 4
    assert families["nv_inference_count"].value(model="cached") == 2
    assert families["nv_cache_miss_duration_per_model"].value(model="cached") > 0


def test_no_cache_without_wanting_one(cached: Server) -> None:
    for _ in range(3):
        asks.infer(cached, "plain", asks.tensor([1]))
    found = asks.counts(cached, "plain")
    assert (found["success"], found["compute_infer"], found["cache_hit"], found["cache_miss"]) == (3, 3, 0, 0)


VARIATIONS: dict[str, list[tuple[str, list[Any], dict[str, Any]]]] = {
    "bytes": [("cached", [asks.tensor([1.0])], {}), ("cached", [asks.tensor([2.0])], {})],
    "model": [("cached", [asks.tensor([1.0])], {}), ("another", [asks.tensor([1.0])], {})],
    "version": [("versions/versions/1", [asks.tensor([1.0])], {}), ("versions/versions/2", [asks.tensor([1.0])], {})],
    "shape": [
        ("square", [asks.tensor([1, 2, 3, 4], shape=shape)], {}) for shape in ([1, 4], [2, 2], [4, 1])
    ],
    "outputs": [
        ("two", [asks.tensor([1]), asks.tensor([2], "INPUT1")], {"outputs": [{"name": name} for name in names]})
        for names in (["OUTPUT0"], ["OUTPUT1"], ["OUTPUT0", "OUTPUT1"])
    ],
    "which input": [
        ("two", [asks.tensor([1]), asks.tensor([2, 3], "INPUT1")], {}),
        ("two", [asks.tensor([1, 2]), asks.tensor([3], "INPUT1")], {}),
        ("two", [asks.tensor([2, 3]), asks.tensor([1], "INPUT1")], {}),
    ],
    "strings": [
        ("strings", [asks.tensor(words, datatype="BYTES")], {}) for words in (["ab", "c"], ["a", "bc"], ["", "abc"])
    ],
    "parameters": [
        ("cached", [asks.tensor([1.0])], {"parameters": parameters})
        for parameters in ({"p": "1"}, {"p": 1}, {"p": True}, {"q": "1"}, {"p": "1", "q": "1"})
    ],
}


@ours_only
@pytest.mark.parametrize("what", VARIATIONS)
def test_never_the_answer_to_another_request(cached: Server, what: str) -> None:
    requests = VARIATIONS[what]
    models = {model.split("/")[0] for model, _, _ in requests}
    for times in (1, 2):
        for model, inputs, more in requests:
            wanted = [out["name"] for out in more.get("outputs", [])]
            expected = {
                each["name"].replace("INPUT", "OUTPUT"): (each["shape"], each["data"]) for each in inputs
            }
            assert asks.infer(cached, model, *inputs, **more) == {
                name: answer for name, answer in expected.items() if not wanted or name in wanted
            }
        found = [asks.counts(cached, model) for model in models]
        assert sum(each["cache_miss"] for each in found) == len(requests)
        assert sum(each["cache_hit"] for each in found) == len(requests) * (times - 1)


@ours_only
def test_names_in_another_order_are_the_same_request(cached: Server) -> None:
    inputs = [asks.tensor([1]), asks.tensor([2], "INPUT1")]
    outputs = [{"name": "OUTPUT0"}, {"name": "OUTPUT1"}]
    for swapped in (False, True):
        step = -1 if swapped else 1
        assert asks.infer(cached, "two", *inputs[::step], outputs=outputs[::step]) == {
            "OUTPUT0": ([1], [1]), "OUTPUT1": ([1], [2]),
        }
    assert asks.counts(cached, "two")["cache_hit"] == 1


def grpc_infer(server: Server, model: str, data: np.ndarray) -> np.ndarray:
    with grpcclient.InferenceServerClient(server.grpc) as client:
        tensor = grpcclient.InferInput("INPUT0", data.shape, "FP32")
        tensor.set_data_from_numpy(data)
        return client.infer(model, [tensor], client_timeout=120).as_numpy("OUTPUT0")


def test_an_answer_serves_both_protocols(cached: Server) -> None:
    asks.infer(cached, "cached", asks.tensor([0.25, 0.5]))
    np.testing.assert_array_equal(
        grpc_infer(cached, "cached", np.array([0.25, 0.5], np.float32)), np.array([0.25, 0.5], np.float32)
    )
    assert asks.counts(cached, "cached")["cache_hit"] == 1


@pytest.mark.parametrize("count", [20_000, 100_000, 2_000_000])
def test_large_answers(cached: Server, count: int) -> None:
    data = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(grpc_infer(cached, "cached", data), data)
    found = asks.counts(cached, "cached")
    assert (found["cache_miss"], found["cache_hit"]) == (1, 2)


def many_clients(cached: Server, model: str) -> None:
    batch = model == "batched"

    def one(index: int) -> None:
        data = np.full((1, 3) if batch else (3,), index % 7, np.float32)
        np.testing.assert_array_equal(grpc_infer(cached, model, data), data)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(200)))
    found = asks.counts(cached, model)
    assert found["success"] == 200
    assert found["compute_infer"] == 200 - found["cache_hit"]
    assert 7 <= found["compute_infer"] <= 7 * 8
    assert found["cache_miss"] == 7


def test_many_clients_at_once(cached: Server) -> None:
    """Every answer is right, and each is a hit, a miss, or one that somebody else put in meanwhile."""
    many_clients(cached, "cached")


@ours_only  # the reference now and then counts such an answer and does not send it
def test_many_clients_of_a_model_that_preserves_order(cached: Server) -> None:
    many_clients(cached, "batched")


@ours_only
def test_answers_leave_in_order_whether_they_were_kept_or_not(cached: Server) -> None:
    """preserve_ordering: on one connection hits do not overtake what is computed."""
    known = np.full((1, 2), -1, np.float32)
    grpc_infer(cached, "batched", known)
    arrived: list[float] = []
    with grpcclient.InferenceServerClient(cached.grpc) as client:
        client.start_stream(lambda result, error: arrived.append(float(result.get_response().id)))
        for index in range(60):
            data = known if index % 3 else np.full((1, 2), index, np.float32)
            tensor = grpcclient.InferInput("INPUT0", data.shape, "FP32")
            tensor.set_data_from_numpy(data)
            client.async_stream_infer("batched", [tensor], request_id=str(index))
        client.stop_stream()
    assert len(arrived) == 60
    assert all(a < b for a, b in pairwise(arrived))
    assert asks.counts(cached, "batched")["cache_hit"] == 40


def test_an_ensemble(cached: Server) -> None:
    """The answer of all its steps together, from the first request on."""
    for _ in range(3):
        assert asks.infer(cached, "chain", asks.tensor([1, 2])) == {"OUTPUT0": ([2], [1, 2])}

    def counted() -> tuple[int, ...]:
        found = asks.counts(cached, "chain")
        return found["cache_hit"], found["cache_miss"], found["success"], asks.counts(cached, "plain")["success"]

    # An ensemble is counted when all that it waited for has been released, which its answer may be faster than.
    cached.process.wait_for(counted, (2, 1, 3, 1))
    assert asks.page(cached)["nv_cache_num_hits_per_model"].value(model="chain") == 2


@ours_only
def test_an_ensemble_keeps_nothing_of_a_sequence(which: str, reference_cache: Path, tmp_path: Path) -> None:
    """A step may be a model with a state: it gets every request of its sequence. Requests without a sequence are kept as ever."""
    repository = Repository(tmp_path / "models")
    asks.write_models(repository)
    options = {"cache-config": f"local,size={SIZE}", "cache-directory": str(directory(which, reference_cache))}
    with KINDS["nereid"](repository.path, options) as server:
        for parameters in ({"sequence_id": 5}, {"sequence_id": "five"}, {}):
            body = {"inputs": [asks.tensor([1, 2])], "parameters": parameters}
            for _ in range(3):
                assert rawhttp.post(server.http, "/v2/models/chain/infer", body).status == 200
        # Counted behind the answer, see test_an_ensemble.
        server.process.wait_for(lambda: [asks.counts(server, model)["success"] for model in ("chain", "plain")], [9, 7])
        assert asks.counts(server, "chain")["cache_hit"] == 2


@ours_only
def test_an_ensemble_follows_its_steps(which: str, reference_cache: Path, tmp_path: Path) -> None:
    """A step that is loaded anew: what the ensemble answered before is not given any more, what it answers then is at once."""
    repository = Repository(tmp_path / "models")
    asks.write_models(repository)
    options = {
        "cache-config": f"local,size={SIZE}", "cache-directory": str(directory(which, reference_cache)),
        "model-control-mode": "explicit", "load-model": ["plain", "chain"],
    }
    with KINDS["nereid"](repository.path, options) as server:

        def ask_twice() -> tuple[int, int]:
            for _ in range(2):
                asks.infer(server, "chain", asks.tensor([1]))
            found = asks.counts(server, "chain")
            return found["cache_hit"], found["cache_miss"]

        assert ask_twice() == (1, 1)
        (repository.path / "plain" / "1" / "weights").write_bytes(b"other")
        assert rawhttp.post(server.http, "/v2/repository/models/plain/load", b"{}").status == 200
        assert ask_twice() == (2, 2)


def small_cache(which: str, models: Path, reference_cache: Path, size: int) -> Server:
    options = {"cache-config": f"local,size={size}", "cache-directory": str(directory(which, reference_cache))}
    return KINDS[which.split("-")[0]](models, options)


def test_old_answers_make_room(which: str, models: Path, reference_cache: Path) -> None:
    with small_cache(which, models, reference_cache, 100_000) as server:
        for value in range(20):
            data = np.full(5_000, value, np.float32)
            np.testing.assert_array_equal(grpc_infer(server, "cached", data), data)
        grpc_infer(server, "cached", np.full(5_000, 19, np.float32))
        assert asks.counts(server, "cached")["cache_hit"] == 1
        grpc_infer(server, "cached", np.full(5_000, 0, np.float32))
        found = asks.counts(server, "cached")
        assert (found["cache_hit"], found["cache_miss"]) == (1, 21)


def test_an_answer_larger_than_the_cache_is_given_all_the_same(which: str, models: Path, reference_cache: Path) -> None:
    with small_cache(which, models, reference_cache, 50_000) as server:
        data = np.arange(50_000, dtype=np.float32)
        for _ in range(2):
            np.testing.assert_array_equal(grpc_infer(server, "cached", data), data)
        found = asks.counts(server, "cached")
        assert (found["success"], found["cache_hit"], found["cache_miss"]) == (2, 0, 2)
        log = server.process.log()
    assert "into response cache" in log
    assert "is greater than total cache size" in log


@ours_only
def test_a_model_that_changed_does_not_give_its_old_answers(
    which: str, reference_cache: Path, tmp_path: Path
) -> None:
    """The same model and version with other files or another configuration are another model; unchanged ones stay."""
    repository = Repository(tmp_path / "models")
    folder = repository.identity("cached", extra=asks.CACHED)
    options = {
        "cache-config": f"local,size={SIZE}", "cache-directory": str(directory(which, reference_cache)),
        "model-control-mode": "explicit", "load-model": "cached",
    }

    def load(server: Server) -> None:
        assert rawhttp.post(server.http, "/v2/repository/models/cached/load", b"{}").status == 200

    def hits_of_two(server: Server) -> int:
        for _ in range(2):
            asks.infer(server, "cached", asks.tensor([1]))
        return asks.counts(server, "cached")["cache_hit"]

    with KINDS["nereid"](repository.path, options) as server:
        assert hits_of_two(server) == 1
        (folder / "1" / "weights").write_bytes(b"other")
        load(server)
        assert hits_of_two(server) == 1, "the first after the change was computed"
        rawhttp.post(server.http, "/v2/repository/models/cached/unload", b"{}")
        load(server)
        assert hits_of_two(server) == 2, "nothing changed: both were kept"
        (folder / "config.pbtxt").write_text((folder / "config.pbtxt").read_text() + "metric_tags { key: 'a' value: 'b' }\n")
        load(server)
        assert hits_of_two(server) == 1


@ours_only
def test_an_id_in_the_configuration_stands_for_the_files(which: str, reference_cache: Path, tmp_path: Path) -> None:
    """RESPONSE_CACHE_ID: answers outlive a copy of the files, as of a second server or a restart from elsewhere."""
    repository = Repository(tmp_path / "models")
    folder = repository.identity(
        "cached", extra=asks.CACHED + "parameters { key: 'RESPONSE_CACHE_ID' value { string_value: 'v7' } }\n"
    )
    options = {
        "cache-config": f"local,size={SIZE}", "cache-directory": str(directory(which, reference_cache)),
        "model-control-mode": "explicit", "load-model": "cached",
    }
    with KINDS["nereid"](repository.path, options) as server:
        asks.infer(server, "cached", asks.tensor([1]))
        (folder / "1" / "copied").write_bytes(b"at another time")
        assert rawhttp.post(server.http, "/v2/repository/models/cached/load", b"{}").status == 200
        asks.infer(server, "cached", asks.tensor([1]))
        assert asks.counts(server, "cached")["cache_hit"] == 1


def test_the_cache_shows_its_own_metrics(cached: Server) -> None:
    names = ("util", "num_entries", "num_hits", "num_misses", "num_lookups", "num_evictions", "lookup_duration",
             "insertion_duration")
    for value in (1, 1, 2):
        asks.infer(cached, "cached", asks.tensor([value]))

    def shown() -> bool:
        families = asks.page(cached)
        assert all(families[f"nv_cache_{name}"].kind == "gauge" for name in names)
        numbers = [families[f"nv_cache_num_{name}"].value() for name in ("lookups", "hits", "misses", "entries")]
        return numbers == [3, 1, 2, 2] and 0 < families["nv_cache_util"].value() < 0.01

    cached.process.wait_until(shown, 120)  # the reference's cache looks at its numbers every now and then
