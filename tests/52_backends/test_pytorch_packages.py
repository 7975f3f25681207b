"""The backend `pytorch` on packages of AOTInductor: names, rows, what is refused."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server

import torch_packages
from clients import PROTOCOLS, ask, at_once, config, load, loads_and_unloads, tensor

AOTI = 'platform: "torch_aoti"\n'
SOON = "dynamic_batching { }\n"
WHOLE = "dynamic_batching { max_queue_delay_microseconds: 600000000 preferred_batch_size: [ 3 ] }\n"  # 3 rows, or none


def io(x: str, b: str, scale: str, total: str, product: str, batches: bool = False) -> str:
    dims = [4] if batches else [-1, 4]
    wanted = [("input", x, dims), ("input", b, dims), ("input", scale, [1]), ("output", total, dims), ("output", product, dims)]
    return "".join(tensor(kind, name, "FP32", dims) for kind, name, dims in wanted if name)


BY_TREE = ("ARGS[0]", "ARGS[1][b]", "KWARGS[scale]", "RESULT[0]", "RESULT[1][product]")
BY_INDEX = ("INPUT__0", "INPUT__1", "INPUT__2", "OUTPUT__0", "OUTPUT__1")
BATCHED = AOTI + "max_batch_size: 8\n" + io(*BY_TREE, batches=True) + SOON

GOOD = {
    "by_tree": (AOTI + io(*BY_TREE), {}),
    "by_index": (AOTI + io(*BY_INDEX), {}),
    "mixed_names": (AOTI + io("ARGS[0]", "INPUT__1", "KWARGS[scale]", "OUTPUT__0", "RESULT[1][product]"), {}),
    "no_outputs": (AOTI + io("ARGS[0]", "ARGS[1][b]", "KWARGS[scale]", "", ""), {}),
    "guessed": (io(*BY_TREE), {}),
    "two": (AOTI + io(*BY_TREE) + "instance_group { count: 2 kind: KIND_CPU }\n", {}),
    "one_row": (AOTI + io(*BY_TREE), {"least": 1}),
    "batched": (BATCHED, {"scale": "each"}),
    "batched_from_one": (BATCHED, {"scale": "each", "least": 1}),
    "batched_always_eight": (BATCHED, {"scale": "each", "least": 8, "most": 8}),
}
BAD = {
    "bad_absent": (AOTI + io(*BY_TREE), {}, "/1/model.pt2' for model 'bad_absent'"),
    "bad_noise": (AOTI + io(*BY_TREE), {}, "failed to load model 'bad_noise': "),
    "bad_half": (AOTI + io(*BY_TREE), {}, "failed to load model 'bad_half': "),
    "bad_torchscript": (
        'platform: "pytorch_libtorch"\ndefault_model_filename: "model.pt2"\n' + io(*BY_TREE), {}, "failed to load model 'bad_torchscript': ",
    ),
    "bad_type": (AOTI + io(*BY_TREE), {"keywords": "my.Own"}, "'KWARGS' of the package is of type 'my.Own'"),
    "bad_input": (
        AOTI + io("ARGS[7]", *BY_TREE[1:]), {},
        "input 'ARGS[7]' is neither an argument of the model's method forward, which has: ARGS[0], ARGS[1][b], KWARGS[scale]; nor is it",
    ),
    "bad_output": (AOTI + io(*BY_TREE[:4], "RESULT[2]"), {}, "output 'RESULT[2]' is not named <name>__<index>, and is no result of the package"),
    "bad_output_index": (AOTI + io(*BY_TREE[:4], "OUTPUT__2"), {}, "which doesn't exist. This model has 2 outputs"),
    "bad_count": (AOTI + io(*BY_TREE[:2], "", *BY_TREE[3:]), {}, "configuration expects 2 inputs, model provides 3"),
}  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("packages"))
    for name, (text, more) in GOOD.items():
        file = torch_packages.save(made.model(name, text), **more)
        if SOON in text:
            shutil.copy(file, made.model(f"whole_{name}", text.replace(SOON, WHOLE)) / "1")
    for name, (text, more, _error) in BAD.items():
        file = torch_packages.save(made.model(name, text), **more)
        if name == "bad_absent":
            file.unlink()
        elif name == "bad_noise":
            file.write_bytes(b"no archive at all")
        elif name == "bad_half":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return made


@pytest.fixture(scope="module")
def served(repository: Repository) -> Iterator[Server]:
    with Nereid(repository.path, {"model-control-mode": "explicit"}) as server:
        for name in GOOD:
            assert load(server, name) == (200, ""), name
        yield server


def given(rows: int, seed: int = 1) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.standard_normal((rows, 4), np.float32), random.standard_normal((rows, 4), np.float32), np.array([3], np.float32)]


def by_tree(arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    return dict(zip(BY_TREE[:3], arrays, strict=True))


def expect(found: dict[str, np.ndarray], total: str, product: str, arrays: list[np.ndarray]) -> None:
    x, b, scale = arrays
    np.testing.assert_allclose(found[total], x + b * scale, rtol=1e-6)
    np.testing.assert_allclose(found[product], x * b, rtol=1e-6)


@PROTOCOLS
@pytest.mark.parametrize(
    ("model", "names"),
    [("by_tree", BY_TREE), ("by_index", BY_INDEX), ("guessed", BY_TREE), ("two", BY_TREE),
     ("mixed_names", ("ARGS[0]", "INPUT__1", "KWARGS[scale]", "OUTPUT__0", "RESULT[1][product]")),
     ("no_outputs", (*BY_TREE[:3], "OUTPUT__0", "OUTPUT__1"))],
)  # fmt: skip
def test_names(served: Server, protocol: str, model: str, names: tuple[str, ...]) -> None:
    """Tensors are known by their place in the call, and by their place in what is counted."""
    arrays = given(5)
    expect(ask(served, protocol, model, dict(zip(names[:3], arrays, strict=True))), names[3], names[4], arrays)


def test_a_file_alone_tells_the_platform(served: Server) -> None:
    found = config(served, "guessed")
    assert (found["platform"], found["backend"], found["default_model_filename"]) == ("torch_aoti", "pytorch", "model.pt2")


@pytest.mark.parametrize("model", [name for name in GOOD if name.startswith("batched")])
def test_batches_have_rows_enough(served: Server, model: str) -> None:
    """A package whose dimension is open takes two rows or more, one whose dimension is closed that many."""
    for rows in (1, 3, 8, 1):
        x, b, _scale = given(rows, seed=rows)
        arrays = [x, b, np.arange(1, rows + 1, dtype=np.float32).reshape(rows, 1)]
        expect(ask(served, "grpc", model, by_tree(arrays)), *BY_TREE[3:], arrays)
    assert load(served, f"whole_{model}") == (200, "")

    def one(index: int) -> None:
        x, b, _scale = given(1, seed=index)
        arrays = [x, b, np.full((1, 1), index, np.float32)]
        expect(ask(served, "http", f"whole_{model}", by_tree(arrays)), *BY_TREE[3:], arrays)

    at_once(3, one)
    counted = served.statistics(f"whole_{model}")
    assert (counted["inference_count"], counted["execution_count"]) == (3, 1)


@pytest.mark.parametrize(("model", "rows"), [("by_tree", 1), ("by_tree", 65), ("one_row", 65)])
def test_shapes_that_it_was_not_compiled_for_are_refused(served: Server, model: str, rows: int) -> None:
    """A library would read beyond tensors that are too small; it compares before."""
    for _ in range(20):
        with pytest.raises(Exception, match="PyTorch execute failure: the package failed, or was compiled for other shapes or types"):
            ask(served, "grpc", model, by_tree(given(rows)))
    arrays = given(2)
    expect(ask(served, "grpc", model, by_tree(arrays)), *BY_TREE[3:], arrays)


@pytest.mark.parametrize("name", BAD)
def test_refuses_and_says_why(served: Server, name: str) -> None:
    status, error = load(served, name)
    assert status == 400
    assert BAD[name][2] in error, error


def test_a_load_request_may_not_bring_one(repository: Repository, tmp_path: Path) -> None:
    """X-03: it has a library in it. An option allows it."""
    content = base64.b64encode((repository.path / "by_tree" / "1" / "model.pt2").read_bytes()).decode()
    tensors = {
        kind: [{"name": name, "data_type": "TYPE_FP32", "dims": [-1, 4] if "scale" not in name else [1]} for name in names]
        for kind, names in (("input", BY_TREE[:3]), ("output", BY_TREE[3:]))
    }
    brought = {"config": json.dumps({"platform": "torch_aoti", **tensors}), "file:1/model.pt2": content}
    body = json.dumps({"parameters": brought}).encode()
    for option, status in (("false", 400), ("true", 200)):
        options = {"model-control-mode": "explicit", "allow-library-upload": option}
        with Nereid(Repository(tmp_path / option).path, options) as server:
            answer = rawhttp.post(server.http, "/v2/repository/models/m/load", body)
            assert answer.status == status, answer.body
            if status == 400:
                assert "its file has a library in it, which a load request may not bring" in answer.json()["error"]
            else:
                arrays = given(3)
                expect(ask(server, "http", "m", by_tree(arrays)), *BY_TREE[3:], arrays)


def test_loading_and_unloading_leaves_nothing(repository: Repository) -> None:
    arrays = given(2)
    loads_and_unloads(repository.path, "two", by_tree(arrays))
