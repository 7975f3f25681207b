"""The backend `pytorch`, in this server and, as the same file, in the reference: names, every data type, strings, lists and dictionaries,
batches, shapes, parameters, what does not load. What is right is what PyTorch says when it is called directly from Python."""

import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import arrays, processors, procfs, rawgrpc
from harness.regions import Memory, register
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from tritonclient.grpc import service_pb2 as pb
from tritonclient.utils import InferenceServerException

import batches
import torch_oracle
from clients import PROTOCOLS, ask, at_once, load, loads_and_unloads, parameters, tensor

PYTORCH = 'backend: "pytorch"\n'
PLATFORM = 'platform: "pytorch_libtorch"\n'
DYNAMIC = "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 500000 }\n"
WHOLE = "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 600000000 }\n"  # 8 rows, or none
BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
NUMBERS = ["BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]
TWO = "instance_group { count: 2 kind: KIND_CPU }\n"
SETTINGS = {
    "plain": {"INFERENCE_MODE": "false", "DISABLE_OPTIMIZED_EXECUTION": "true"},
    "threads": {"INTRA_OP_THREAD_COUNT": "2", "INTER_OP_THREAD_COUNT": "1"},
    "switches": {"ENABLE_JIT_EXECUTOR": "true", "ENABLE_JIT_PROFILING": "false", "ENABLE_TENSOR_FUSER": "false"},
    "elsewhere": {"DISABLE_CUDNN": "true", "ENABLE_CACHE_CLEANING": "true", "ENABLE_NVFUSER": "true"},
    "shared": {"ENABLE_WEIGHT_SHARING": "true"},
}


def one(name_in: str, type_in: str, dims_in: list[int], name_out: str, type_out: str, dims_out: list[int]) -> str:
    return tensor("input", name_in, type_in, dims_in) + tensor("output", name_out, type_out, dims_out)


DENSE = one("x", "FP32", [16], "logits__0", "FP32", [8])
OPTIONAL = tensor("input", "x", "FP32", [-1, 16], "optional: true")
PAIR = tensor("input", "a", "FP32", [-1, 4]) + tensor("input", "b", "FP32", [-1, 4])
PAIR_OUT = tensor("output", "sum__0", "FP32", [-1, 4]) + tensor("output", "difference__1", "FP32", [-1, 4])
KEYS_OUT = tensor("output", "sum", "FP32", [-1, 4]) + tensor("output", "difference", "FP32", [-1, 4])
WORDS = one("words", "STRING", [-1], "loud__0", "STRING", [-1])
SCALAR_STRING = "reshape: { shape: [ ] }"
BATCHED_WORDS = tensor("input", "words__0", "STRING", [1], SCALAR_STRING) + tensor("output", "loud__0", "STRING", [1], SCALAR_STRING)
IMAGE = one("image", "FP32", [3, -1, -1], "classes__0", "FP32", [5])

CONTROLS = """sequence_batching {
  max_sequence_idle_microseconds: 600000000
  control_input [
    { name: "start" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
    { name: "ready" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] }
  ]
}
"""
STATE = """sequence_batching {
  max_sequence_idle_microseconds: 600000000
  oldest { max_candidate_sequences: 4 }
  state [ { input_name: "so_far" output_name: "next__1" data_type: TYPE_FP32 dims: [ 2 ]
    initial_state { name: "zero" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } ]
}
"""
IN_PLACE_FIRST = (
    'platform: "ensemble"\n' + one("x", "FP32", [-1, 4], "sum", "FP32", [-1, 4]) + """ensemble_scheduling { step [
  { model_name: "in_place" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y__0" value: "changed" } },
  { model_name: "add_sub" model_version: -1 input_map { key: "a" value: "x" } input_map { key: "b" value: "changed" }
    output_map { key: "sum__0" value: "sum" } }
] }
"""
)

# The model's file, and the configuration.
MODELS: dict[str, tuple[str, str]] = {
    "dense": ("Dense", PYTORCH + "max_batch_size: 16\n" + DENSE + DYNAMIC),
    "dense_many": ("Dense", PLATFORM + "max_batch_size: 16\n" + DENSE + TWO),
    "optional_input": ("Dense", PYTORCH + OPTIONAL + tensor("output", "logits__0", "FP32", [-1, 8])),
    "by_index": ("Dense", PLATFORM + "max_batch_size: 16\n" + DENSE.replace('"x"', '"INPUT__0"')),
    "reshaped": (
        "Dense", PYTORCH + "max_batch_size: 4\n" + tensor("input", "x", "FP32", [4, 4], "reshape: { shape: [ 16 ] }")
        + tensor("output", "y__0", "FP32", [2, 4], "reshape: { shape: [ 8 ] }"),
    ),
    **{f"with_{name}": ("Dense", PYTORCH + "max_batch_size: 16\n" + DENSE + parameters(values)) for name, values in SETTINGS.items()},
    "convolutions": ("Convolutions", PYTORCH + "max_batch_size: 4\n" + IMAGE),
    "add_sub": ("AddSub", PYTORCH + PAIR + PAIR_OUT),
    "add_sub_turned": ("AddSub", PLATFORM + PAIR.replace('"a"', '"X__1"').replace('"b"', '"X__0"') + PAIR_OUT.replace("sum__0", "sum__1").replace("difference__1", "difference__0")),
    "keyed": ("Keyed", PYTORCH + PAIR + KEYS_OUT),
    "keyed_by_index": ("Keyed", PYTORCH + PAIR + PAIR_OUT),
    "listed": ("Listed", PYTORCH + PAIR.replace('"a"', '"part__0"').replace('"b"', '"part__1"') + PAIR_OUT),
    "mixed": (
        "Mixed", PYTORCH + tensor("input", "scale", "FP32", [1]) + tensor("input", "parts__1", "FP32", [-1, 4])
        + tensor("input", "parts__0", "FP32", [-1, 4]) + tensor("input", "power", "INT64", [1])
        + tensor("output", "mean", "FP32", [4]) + tensor("output", "all__0", "FP32", [-1, 4])
        + tensor("output", "part__1", "FP32", [-1, 4]) + tensor("output", "part__2", "FP32", [-1, 4]),
    ),
    "mixed_without_power": (
        "Mixed", PYTORCH + tensor("input", "scale", "FP32", [1]) + tensor("input", "parts__0", "FP32", [-1, 4])
        + tensor("output", "part__1", "FP32", [-1, 4]),
    ),
    "shout": ("Shout", PYTORCH + WORDS),
    "shout_batched": ("Shout", PYTORCH + "max_batch_size: 8\n" + BATCHED_WORDS + WHOLE),
    "lengths": (
        "Lengths", PYTORCH + "max_batch_size: 8\n" + BATCHED_WORDS.replace("loud__0", "twice__0") + tensor("input", "x__1", "INT64", [2])
        + tensor("output", "lengths__1", "INT64", [2]),
    ),
    "scaled": (
        "Scaled", PYTORCH + "max_batch_size: 8\n" + one("x", "FP32", [2], "y__0", "FP32", [2]) + tensor("input", "factor", "INT64", [1]) + WHOLE,
    ),
    "lose_one": ("LoseOne", PYTORCH + "max_batch_size: 8\n" + BATCHED_WORDS),
    "non_zero": ("NonZero", PYTORCH + one("x", "INT32", [-1], "where__0", "INT64", [-1, 1])),
    "in_place": ("InPlace", PYTORCH + one("x", "FP32", [-1, 4], "y__0", "FP32", [-1, 4])),
    "keeper": ("Keeper", PYTORCH + one("x", "FP32", [-1, -1], "y__0", "FP32", [-1, 4])),
    "counter_shared": ("Counter", PYTORCH + one("x", "INT64", [1], "y__0", "INT64", [1]) + TWO + parameters(SETTINGS["shared"])),
    "sum": ("Sum", PYTORCH + one("x", "FP32", [-1], "y__0", "FP32", [1])),
    "number": ("Number", PYTORCH + one("x", "FP32", [-1], "y__0", "INT64", [1])),
    "negated": ("Negated", PYTORCH + one("x", "FP32", [-1], "y__0", "FP32", [-1])),
    "nothing": ("Nothing", PYTORCH + one("x", "FP32", [-1], "y__0", "FP32", [-1])),
    "complex": ("Complex", PYTORCH + one("x", "FP32", [-1], "y__0", "FP32", [-1])),
    "no_outputs_complex": ("Complex", PYTORCH + tensor("input", "x", "FP32", [-1])),
    "endless": ("Endless", PYTORCH + one("x", "FP32", [-1], "y__0", "FP32", [-1])),
    "endless_keys": ("EndlessKeys", PYTORCH + one("x", "FP32", [-1], "y__0", "FP32", [-1])),
    "doubled": ("Doubled", PYTORCH + one("x", "FP32", [-1], "y__0", "FP32", [-1])),
    "no_outputs_twice": ("Twice", PYTORCH + tensor("input", "x", "FP32", [-1])),
    "half": ("Half", PYTORCH + "max_batch_size: 8\n" + one("x", "FP32", [2], "y__0", "FP32", [2])),
    "refuses": ("Refuses", PYTORCH + one("x", "FP32", [-1], "y__0", "FP32", [-1])),
    "wrong_type": ("Same", PYTORCH + one("x", "FP32", [-1], "y__0", "INT64", [-1])),
    "grad": ("Grad", PYTORCH + one("x", "FP32", [-1], "y__0", "BOOL", [2])),
    "grad_plain": ("Grad", PYTORCH + one("x", "FP32", [-1], "y__0", "BOOL", [2]) + parameters(SETTINGS["plain"])),
    "told": ("Told", PYTORCH + "max_batch_size: 4\n" + one("x", "FP32", [1], "y__0", "FP32", [1]) + CONTROLS),
    "running": ("Running", PYTORCH + "max_batch_size: 4\n" + one("x", "FP32", [2], "y__0", "FP32", [2]) + STATE),
    "in_place_first": ("", IN_PLACE_FIRST),
    "no_outputs": ("Lengths", PYTORCH + "max_batch_size: 8\n" + tensor("input", "words", "STRING", [1], SCALAR_STRING) + tensor("input", "x", "INT64", [2])),
    "no_outputs_keyed": ("Keyed", PYTORCH + PAIR),
    "indexed": ("Indexed", PYTORCH + tensor("input", "x", "FP32", [-1]) + tensor("output", "score__0", "FP32", [-1]) + tensor("output", "score__1", "FP32", [-1])),
    "keyed_wrong": ("Keyed", PYTORCH + PAIR + tensor("output", "summ", "FP32", [-1, 4])),
    "keyed_wrong_index": ("Keyed", PYTORCH + PAIR + tensor("output", "sum__2", "FP32", [-1, 4])),
}
# Models that change or keep what they get, and the name of their input.
LENT = {
    "ChangeListed": "parts__0", "ChangeKeyed": "x", "ChangeEach": "x", "ChangeOther": "x", "ChangeDropped": "x", "ChangeByNorm": "x", "InPlace": "x",
    "KeepListed": "parts__0", "KeepBySet": "x",
}


def write_models(made: Repository) -> None:
    for datatype in [*NUMBERS, "BF16"]:
        text = PLATFORM + one("x", datatype, [-1, -1], "y__0", datatype, [-1, -1])
        torch_oracle.save("Flip" if datatype != "BF16" else "Same", made.model(f"type_{datatype.lower()}", text))
    for name, (model, text) in MODELS.items():
        folder = made.model(name, text)
        if model:
            torch_oracle.save(model, folder)
    other = made.model("other_file", PYTORCH + 'default_model_filename: "net.ts"\nmax_batch_size: 4\n' + DENSE)
    torch_oracle.save("Dense", other, file="net.ts")
    traced = made.model("traced", PYTORCH + "max_batch_size: 4\n" + IMAGE)
    torch_oracle.save("Convolutions", traced, traced=[np.zeros((2, 3, 8, 8), np.float32)])


def _no_file(file: Path) -> None:
    file.unlink()


def _half_the_file(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _no_torchscript(file: Path) -> None:
    file.write_bytes(b"no TorchScript")


def _changed(old: bytes, new: bytes) -> Callable[[Path], None]:
    """The same archive with another text in it."""

    def change(file: Path) -> None:
        with zipfile.ZipFile(file) as archive:
            parts = {info.filename: archive.read(info) for info in archive.infolist()}
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, content.replace(old, new) if name.endswith((".py", "/version")) else content)

    return change


BATCH = PYTORCH + "max_batch_size: 4\n"
# What does not load: its configuration, what happens to its file, what the error says.
BAD: dict[str, tuple[str, Callable[[Path], None] | None, str]] = {
    "bad_absent": (BATCH + DENSE, _no_file, "/1/model.pt' for model 'bad_absent'"),
    "bad_half": (BATCH + DENSE, _half_the_file, "failed to load model 'bad_half': "),
    "bad_text": (BATCH + DENSE, _no_torchscript, "failed to load model 'bad_text': "),
    "bad_operator": (BATCH + DENSE, _changed(b"torch.relu", b"torch.tomorrow"), "aten::tomorrow"),
    "bad_version": (BATCH + DENSE, _changed(b"3\n", b"99\n"), "failed to load model 'bad_version': "),
    "bad_name": (
        BATCH + DENSE.replace('"x"', '"z"'), None,
        "unable to load model 'bad_name', input 'z' is neither an argument of the model's method forward, which has: x; nor is it named "
        "<name>__<index>",
    ),
    "bad_index": (
        BATCH + DENSE.replace('"x"', '"INPUT__3"'), None,
        "the input 'INPUT__3' refers to an input index which does not exist: the model has 1 inputs",
    ),
    "bad_output": (
        BATCH + DENSE.replace("logits__0", "logits"), None,
        "output 'logits' is not named <name>__<index>, and the model gives back no dictionary",
    ),
    "bad_output_index": (
        BATCH + DENSE.replace("logits__0", "logits__1"), None,
        "The output logits__1 in the model configuration refers to an output index which doesn't exist. This model has 1 outputs",
    ),
    "bad_count": (
        BATCH + DENSE + tensor("input", "more__1", "FP32", [1]), None,
        "unable to load model 'bad_count', configuration expects 2 inputs, model provides 1",
    ),
    "bad_strings": (
        BATCH + DENSE.replace("FP32", "STRING", 1).replace("[16]", f"[1] {SCALAR_STRING}", 1), None,
        "input 'x' has data type TYPE_STRING, but the model's argument 'x' is of type 'Tensor'",
    ),
    "bad_strings_of_rows": (
        BATCH + DENSE.replace("FP32", "STRING", 1), None,
        "Triton only supports 1 dimensional List of String as input for 'x' for model 'bad_strings_of_rows'",
    ),
    "bad_uint32": (BATCH + DENSE.replace("FP32", "UINT32", 1), None, "UINT32"),
    "bad_boolean": (
        BATCH + DENSE + parameters({"INFERENCE_MODE": "perhaps"}), None, "model 'bad_boolean', parameter 'INFERENCE_MODE': ",
    ),
    "bad_threads": (
        BATCH + DENSE + parameters({"INTRA_OP_THREAD_COUNT": "many"}), None, "model 'bad_threads', parameter 'INTRA_OP_THREAD_COUNT': ",
    ),
    "bad_many_threads": (
        BATCH + DENSE + parameters({"INTRA_OP_THREAD_COUNT": "1025"}), None,
        "model 'bad_many_threads', parameter 'INTRA_OP_THREAD_COUNT': 1025 threads are asked for, at most 1024 are supported",
    ),
    "bad_part": (
        BATCH + DENSE.replace("dims: [16]", "dims: [16] allow_ragged_batch: true"), None,
        "unable to load model 'bad_part', input 'x': the backend 'pytorch' does not support allow_ragged_batch",
    ),
    "bad_computed": (
        BATCH + DENSE + 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 source_input: "x" }\n', None,
        "unable to load model 'bad_computed': the backend 'pytorch' does not support batch_input",
    ),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("pytorch") / "models")
    write_models(made)
    for name, (text, harm, _error) in BAD.items():
        file = torch_oracle.save("Dense", made.model(name, text))
        if harm:
            harm(file)
    twice = one("X__0", "FP32", [-1, 4], "y__0", "FP32", [-1, 4]) + tensor("input", "a", "FP32", [-1, 4])
    torch_oracle.save("AddSub", made.model("bad_twice", PYTORCH + twice))
    return made


@pytest.fixture(scope="module", params=BOTH)
def served(request: pytest.FixtureRequest, repository: Repository) -> Iterator[Server]:
    names = sorted(path.name for path in repository.path.iterdir() if not path.name.startswith(("bad_", "endless", "doubled")))
    if request.param == "reference":  # which wants outputs in every configuration
        names = [name for name in names if not name.startswith("no_outputs")]
    with KINDS[request.param](repository.path, {"model-control-mode": "explicit", "load-model": names}) as server:
        yield server


def file_of(repository: Repository, model: str) -> Path:
    return next((repository.path / model / "1").iterdir())


def dense_answers(repository: Repository, rows: np.ndarray) -> np.ndarray:
    return torch_oracle.answer(file_of(repository, "dense"), rows)


def pair(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal((2, 4)).astype(np.float32), random.standard_normal((2, 4)).astype(np.float32)


def words(*texts: str) -> np.ndarray:
    return np.array([text.encode() for text in texts], dtype=np.object_)


def decoded(found: np.ndarray) -> list[str]:
    return [text.decode() for text in found.flatten()]


# Data types


@PROTOCOLS
@pytest.mark.parametrize("datatype", NUMBERS)
def test_datatype(served: Server, repository: Repository, protocol: str, datatype: str) -> None:
    """MC-48, MC-49, MC-53, MC-54, MC-55, MC-56, MC-58, MC-59: each of PyTorch's."""
    data = arrays.edges(datatype).reshape(2, 3)
    model = f"type_{datatype.lower()}"
    found = ask(served, protocol, model, {"x": data})["y__0"]
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, torch_oracle.answer(file_of(repository, model), data))


def test_bf16(served: Server) -> None:
    raw = np.array([0, 1, -2, 0.5, 256, -0.125], np.float32).view(np.uint16)[1::2].tobytes()
    request = rawgrpc.infer_request("type_bf16", [("x", "BF16", [2, 3], raw)])
    with rawgrpc.Channel(served.grpc) as channel:
        message = channel.call("ModelInfer", request).parse(pb.ModelInferResponse)
    assert (message.outputs[0].datatype, list(message.outputs[0].shape)) == ("BF16", [2, 3])
    assert message.raw_output_contents[0] == raw


def test_a_result_of_another_type_is_refused(served: Server) -> None:
    with pytest.raises(grpcclient.InferenceServerException) as refused:
        ask(served, "grpc", "wrong_type", {"x": np.ones(3, np.float32)})
    assert refused.value.message() == "configuration expects datatype TYPE_INT64 for output 'y__0', model provides TYPE_FP32"


@pytest.mark.parametrize(("model", "expected"), [("negated", [-3, 4]), ("nothing", [0, 0])])
def test_values_that_pytorch_does_not_write(served: Server, model: str, expected: list[int]) -> None:
    """It notes that a tensor is negated, or all zero."""
    for count in (2, 1):
        found = ask(served, "grpc", model, {"x": np.array([3, -4][:count], np.float32)})["y__0"]
        assert found.tolist() == expected[:count]


# Names, lists and dictionaries


@PROTOCOLS
@pytest.mark.parametrize(("model", "name"), [("dense_many", "x"), ("by_index", "INPUT__0"), ("other_file", "x")])
def test_names_of_inputs(served: Server, repository: Repository, protocol: str, model: str, name: str) -> None:
    """MR-33, MR-60, MC-18: an input has the name of an argument, or tells its place."""
    rows = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)
    found = ask(served, protocol, model, {name: rows})["logits__0"]
    np.testing.assert_allclose(found, dense_answers(repository, rows), atol=1e-5)


@PROTOCOLS
def test_several_inputs_and_outputs(served: Server, repository: Repository, protocol: str) -> None:
    """MC-18, MC-19: the place in the name decides, not the order in the configuration."""
    a, b = pair()
    both = torch_oracle.answer(file_of(repository, "add_sub"), a, b)
    found = ask(served, protocol, "add_sub", {"b": b, "a": a})
    np.testing.assert_array_equal(found["sum__0"], both[0])
    np.testing.assert_array_equal(found["difference__1"], both[1])
    assert list(ask(served, protocol, "add_sub", {"b": b, "a": a}, outputs=["difference__1"])) == ["difference__1"]
    found = ask(served, protocol, "add_sub_turned", {"X__1": b, "X__0": a})
    np.testing.assert_array_equal(found["sum__1"], both[1])
    np.testing.assert_array_equal(found["difference__0"], both[0])


@PROTOCOLS
def test_a_dictionary_of_tensors(served: Server, repository: Repository, protocol: str) -> None:
    a, b = pair()
    expected = torch_oracle.answer(file_of(repository, "keyed"), {"a": a, "b": b})
    found = ask(served, protocol, "keyed", {"a": a, "b": b})
    for key in ("sum", "difference"):
        np.testing.assert_array_equal(found[key], expected[key])
    found = ask(served, protocol, "keyed_by_index", {"a": a, "b": b})
    np.testing.assert_array_equal(found["difference__1"], expected["difference"])


@PROTOCOLS
def test_a_key_is_a_name_before_it_is_an_index(repository: Repository, protocol: str) -> None:
    with Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "indexed"}) as server:
        found = ask(server, protocol, "indexed", {"x": np.ones(1, np.float32)})
        assert {name: value.tolist() for name, value in found.items()} == {"score__0": [1001], "score__1": [2]}


@pytest.mark.parametrize(("model", "name"), [("keyed_wrong", "summ"), ("keyed_wrong_index", "sum__2")])
def test_a_key_that_is_not_there(served: Server, model: str, name: str) -> None:
    with pytest.raises(InferenceServerException) as refused:
        ask(served, "http", model, dict(zip("ab", pair(), strict=True)))
    assert f"'{name}' is none of the 2 results that the model gives back: " in refused.value.message()
    assert sorted(refused.value.message().split(": ")[-1].split(", ")) == ["difference", "sum"]


@PROTOCOLS
def test_a_list_of_tensors(served: Server, repository: Repository, protocol: str) -> None:
    a, b = pair()
    expected = torch_oracle.answer(file_of(repository, "listed"), [a, b])
    found = ask(served, protocol, "listed", {"part__1": b, "part__0": a})
    np.testing.assert_array_equal(found["sum__0"], expected[0])
    np.testing.assert_array_equal(found["difference__1"], expected[1])


@PROTOCOLS
def test_lists_dictionaries_and_numbers_beside_each_other(served: Server, repository: Repository, protocol: str) -> None:
    a, b = pair()
    scale = np.array([3], np.float32)
    whole, parts, keyed = torch_oracle.answer(file_of(repository, "mixed"), [a, b[:1]], scale, 3)
    inputs = {"scale": scale, "parts__1": b[:1], "parts__0": a, "power": np.array([3])}
    found = ask(served, protocol, "mixed", inputs)
    for name, expected in (("all__0", whole), ("part__1", parts[0]), ("part__2", parts[1]), ("mean", keyed["mean"])):
        np.testing.assert_allclose(found[name], expected, rtol=1e-5)
    _, parts, _ = torch_oracle.answer(file_of(repository, "mixed"), [a], scale)
    found = ask(served, protocol, "mixed_without_power", {"scale": scale, "parts__0": a})
    np.testing.assert_allclose(found["part__1"], parts[0], rtol=1e-5)


# Strings


@PROTOCOLS
def test_strings(served: Server, repository: Repository, protocol: str) -> None:
    texts = ["one", "", "zwei \u00fc", "x" * 5000]
    found = ask(served, protocol, "shout", {"words": words(*texts)})["loud__0"]
    assert decoded(found) == torch_oracle.answer(file_of(repository, "shout"), texts)
    assert ask(served, protocol, "shout", {"words": words()})["loud__0"].shape == (0,)


def test_each_request_gets_its_strings(served: Server) -> None:
    def one_client(index: int) -> None:
        found = ask(served, "grpc", "shout_batched", {"words__0": words(f"word {index}", "x" * index).reshape(2, 1)})["loud__0"]
        assert found.shape == (2, 1)
        assert decoded(found) == [f"WORD {index}!", "X" * index + "!"]

    at_once(8, one_client)
    assert served.statistics("shout_batched")["execution_count"] == 2


@PROTOCOLS
def test_strings_and_numbers(served: Server, repository: Repository, protocol: str) -> None:
    texts, x = ["a", "bbb"], np.array([[1, 2], [3, 4]])
    twice, lengths = torch_oracle.answer(file_of(repository, "lengths"), texts, x)
    found = ask(served, protocol, "lengths", {"words__0": words(*texts).reshape(2, 1), "x__1": x})
    assert decoded(found["twice__0"]) == twice
    np.testing.assert_array_equal(found["lengths__1"], lengths)


@pytest.mark.parametrize("raw", [b"\1", b"\5\0\0\0abc", b"\1\0\0\0a", b"\1\0\0\0a\1\0\0\0b\0"])
def test_strings_that_are_cut_off(served: Server, raw: bytes) -> None:
    request = rawgrpc.infer_request("shout", [("words", "BYTES", [2], raw)])
    with rawgrpc.Channel(served.grpc) as channel:
        assert channel.call("ModelInfer", request).code == "INVALID_ARGUMENT"


def test_a_list_that_lost_a_string(served: Server) -> None:
    with pytest.raises(grpcclient.InferenceServerException, match="expected batch size of 2 in model output, got 1"):
        ask(served, "grpc", "lose_one", {"words__0": words("a", "b").reshape(2, 1)})


# Batches and shapes


@PROTOCOLS
@pytest.mark.parametrize("model", ["dense_many", *(f"with_{name}" for name in SETTINGS)])
def test_batches_of_every_size(served: Server, repository: Repository, protocol: str, model: str) -> None:
    batches.are_right_in_every_size(served, protocol, model, "logits__0", lambda rows: dense_answers(repository, rows))


def test_an_optional_input(served: Server, repository: Repository) -> None:
    batches.need_an_optional_input(served, "pytorch", "optional_input", "logits__0", lambda rows: dense_answers(repository, rows))


@pytest.mark.parametrize("model", ["dense", "dense_many"])
def test_each_request_gets_its_rows(served: Server, repository: Repository, model: str) -> None:
    batches.give_each_request_its_rows(served, model, "logits__0", lambda rows: dense_answers(repository, rows), model == "dense")


def test_a_number_is_of_its_own_request(served: Server) -> None:
    """Requests that came together with other numbers; one of them has two."""
    factors = [[3], [5], [3], [7], [5], [3], [2, 4]]
    before = served.statistics("scaled")["execution_count"]

    def one_client(index: int) -> None:
        rows = np.full((len(factors[index]), 2), index, np.float32)
        factor = np.array(factors[index]).reshape(-1, 1)
        if len(factors[index]) == 1:
            assert ask(served, "grpc", "scaled", {"x": rows, "factor": factor})["y__0"].tolist() == (rows * factor).tolist()
            return
        with pytest.raises(grpcclient.InferenceServerException, match="input 'factor' is one value in the model"):
            ask(served, "grpc", "scaled", {"x": rows, "factor": factor})

    at_once(len(factors), one_client)
    assert served.statistics("scaled")["execution_count"] == before + 3
    rows = np.ones((8, 2), np.float32)
    assert ask(served, "grpc", "scaled", {"x": rows, "factor": np.full((8, 1), 9)})["y__0"].tolist() == (9 * rows).tolist()


@PROTOCOLS
@pytest.mark.parametrize("model", ["convolutions", "traced"])
def test_images_of_several_sizes(served: Server, repository: Repository, protocol: str, model: str) -> None:
    random = np.random.default_rng(6)
    for count, height, width in ((1, 8, 8), (4, 20, 11), (2, 9, 30), (1, 8, 8)):
        images = random.standard_normal((count, 3, height, width)).astype(np.float32)
        found = ask(served, protocol, model, {"image": images})["classes__0"]
        np.testing.assert_allclose(found, torch_oracle.answer(file_of(repository, model), images), atol=1e-5)


@PROTOCOLS
@pytest.mark.parametrize("values", [[0, 1, 0, 2, 3], [0, 0], [4]])
def test_a_shape_that_the_contents_decide(served: Server, protocol: str, values: list[int]) -> None:
    found = ask(served, protocol, "non_zero", {"x": np.array(values, np.int32)})["where__0"]
    np.testing.assert_array_equal(found, np.flatnonzero(values).reshape(-1, 1))


@PROTOCOLS
def test_reshape(served: Server, repository: Repository, protocol: str) -> None:
    rows = np.random.default_rng(4).standard_normal((3, 16)).astype(np.float32)
    found = ask(served, protocol, "reshaped", {"x": rows.reshape(3, 4, 4)})["y__0"]
    np.testing.assert_allclose(found, dense_answers(repository, rows).reshape(3, 2, 4), atol=1e-5)


@PROTOCOLS
def test_empty_tensor(served: Server, protocol: str) -> None:
    assert ask(served, protocol, "type_fp32", {"x": np.zeros((2, 0), np.float32)})["y__0"].shape == (2, 0)


@PROTOCOLS
def test_16_mib(served: Server, protocol: str) -> None:
    data = np.random.default_rng(2).standard_normal((1, 1 << 22)).astype(np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(ask(served, protocol, "type_fp32", {"x": data})["y__0"], data[:, ::-1])


@PROTOCOLS
def test_a_scalar_is_one_element(served: Server, protocol: str) -> None:
    assert ask(served, protocol, "sum", {"x": np.array([1, 2, 4], np.float32)})["y__0"].tolist() == [7]


# What goes wrong in a run


@pytest.mark.parametrize(
    ("model", "inputs", "error"),
    [
        ("number", {"x": np.ones(2, np.float32)}, "output 'y__0' must be of type Tensor or List[str]."),
        ("complex", {"x": np.ones(2, np.float32)}, "output 'y__0' is a tensor of a type that the protocol does not have"),
        ("half", {"x": np.ones((4, 2), np.float32)}, "expected batch size of 4 in model output, got 2"),
        ("refuses", {"x": -np.ones(2, np.float32)}, "nothing negative"),
        ("listed", {"part__0": np.ones((2, 4), np.float32), "part__1": np.ones((3, 4), np.float32)}, "PyTorch execute failure: "),
        ("dense_many", {"x": np.ones((1, 15), np.float32)}, "unexpected shape for input 'x' for model 'dense_many'"),
        ("dense_many", {"x": np.ones((1, 16))}, "FP64"),
        ("dense_many", {"z": np.ones((1, 16), np.float32)}, "unexpected inference input 'z' for model 'dense_many'"),
    ],
)
def test_a_run_that_fails_says_why(served: Server, model: str, inputs: dict[str, np.ndarray], error: str) -> None:
    with pytest.raises(grpcclient.InferenceServerException) as refused:
        ask(served, "grpc", model, inputs)
    assert error in refused.value.message()
    if model == "refuses":
        assert ask(served, "grpc", model, {"x": np.ones(2, np.float32)})["y__0"].tolist() == [1, 1]


@pytest.mark.parametrize("model", ["endless", "endless_keys", "doubled"])
def test_a_result_without_end_is_refused(repository: Repository, model: str) -> None:
    with Nereid(repository.path, {"model-control-mode": "explicit", "load-model": model}) as server:
        for _ in range(2):
            with pytest.raises(InferenceServerException) as refused:
                ask(server, "http", model, {"x": np.ones(2, np.float32)})
            assert "the model's result is nested more than 64 deep, or has more than 65536 values" in refused.value.message()


# Memory that is lent


@PROTOCOLS
def test_a_model_may_change_what_it_gets(served: Server, protocol: str) -> None:
    """The same tensor goes to another model afterwards, which gets it as it came."""
    for _ in range(3):
        found = ask(served, protocol, "in_place", {"x": np.zeros((2, 4), np.float32)})["y__0"]
        assert found.tolist() == [[1, 1, 0, 0]] * 2
        found = ask(served, protocol, "in_place_first", {"x": np.full((2, 4), 5, np.float32)})["sum"]
        assert found.tolist() == [[11, 11, 10, 10]] * 2


def test_a_model_may_keep_what_it_gets(served: Server) -> None:
    """A view of an input that outlives the request."""
    random = np.random.default_rng(8)
    last = np.zeros((1, 4), np.float32)
    for index in range(6):
        sent = random.standard_normal((3, 2000)).astype(np.float32)
        found = ask(served, ("http", "grpc")[index % 2], "keeper", {"x": sent})["y__0"]
        np.testing.assert_array_equal(found, last)
        last = sent[:, :4]


@pytest.mark.parametrize("model", LENT)
def test_what_is_lent_is_neither_changed_nor_kept(tmp_path: Path, model: str) -> None:
    """A client's shared memory stays as it is, and what comes into it later is not seen."""
    made, name = Repository(tmp_path / "models"), LENT[model]
    torch_oracle.save(model, made.model("m", PYTORCH + one(name, "FP32", [4], "y__0", "FP32", [4])))
    first, second = (np.array(values, np.float32) for values in ([1, 2, 3, 4], [5, 6, 7, 8]))
    added = np.array([1, 1, 0, 0] if model == "InPlace" else [100] * 4, np.float32)
    expected = [0 * first, first] if model.startswith("Keep") else [first + added, second + added]
    with Nereid(made.path, {"allow-client-shm": "true"}) as server, Memory(16) as memory, httpclient.InferenceServerClient(server.http) as client:
        assert register(server, "lent", memory.key, 16).status == 200
        for sent, wanted in zip((first, second), expected, strict=True):
            memory.write(sent.tobytes())
            given = httpclient.InferInput(name, [4], "FP32")
            given.set_shared_memory("lent", 16)
            assert client.infer("m", [given]).as_numpy("y__0").tolist() == wanted.tolist()
            assert memory.read(16) == sent.tobytes()


# Instances and parameters


def counted_by(server: Server, model: str) -> list[int]:
    return [int(ask(server, "grpc", model, {"x": np.zeros(1, np.int64)})["y__0"][0]) for _ in range(12)]


def test_weights_are_shared_where_that_is_asked_for(served: Server) -> None:
    """Two instances, which count in the same place."""
    assert counted_by(served, "counter_shared") == list(range(1, 13))


def test_inference_mode(served: Server) -> None:
    assert ask(served, "grpc", "grad", {"x": np.ones(1, np.float32)})["y__0"].tolist() == [False, True]
    assert ask(served, "grpc", "grad_plain", {"x": np.ones(1, np.float32)})["y__0"].tolist() == [False, False]


@pytest.mark.parametrize("asked", [None, 1, 3])
def test_threads_of_an_operation(tmp_path: Path, asked: int | None) -> None:
    """As many as are asked for, or as there are processors to use, here one. The first model that asks settles it."""
    made = Repository(tmp_path / "models")
    text = PYTORCH + one("x", "FP32", [1, 1], "y__0", "FP32", [1, 1])
    more = parameters({"INTRA_OP_THREAD_COUNT": str(asked)}) if asked else ""
    torch_oracle.save("Heavy", made.model("heavy", text + more))
    torch_oracle.save("Heavy", made.model("later", text + parameters({"INTRA_OP_THREAD_COUNT": "9"})))
    x = np.ones((1, 1), np.float32)
    options: dict[str, str | list[str]] = {"model-control-mode": "explicit", "load-model": "heavy"}
    with processors.on({min(os.sched_getaffinity(0))}), Nereid(made.path, options) as server:
        for _ in range(2):
            ask(server, "grpc", "heavy", {"x": x})
        # The instance's own, and those that it made, which have its name.
        assert procfs.names_of_threads(server.pid).count("instance") == (asked or 1)
        if asked:
            assert load(server, "later") == (200, "")
            told = next(line for line in server.process.log().splitlines() if "model 'later': INTRA_OP_THREAD_COUNT 9 has no effect" in line)
            assert told.startswith("W"), told


def test_a_model_that_does_not_load_settles_nothing(tmp_path: Path) -> None:
    """A later one has the number of threads that it asks for."""
    made = Repository(tmp_path / "models")
    text = PYTORCH + one("x", "FP32", [1, 1], "y__0", "FP32", [1, 1])
    for name, count in (("broken", 5), ("heavy", 2)):
        more = {"INTRA_OP_THREAD_COUNT": str(count), "INTER_OP_THREAD_COUNT": str(count)}
        file = torch_oracle.save("Heavy", made.model(name, text + parameters(more)))
        if name == "broken":
            file.write_bytes(b"no TorchScript")
    options: dict[str, str | list[str]] = {"model-control-mode": "explicit"}
    with processors.on({min(os.sched_getaffinity(0))}), Nereid(made.path, options) as server:
        assert load(server, "broken")[0] == 400
        assert load(server, "heavy") == (200, "")
        for _ in range(2):
            ask(server, "grpc", "heavy", {"x": np.ones((1, 1), np.float32)})
        assert procfs.names_of_threads(server.pid).count("instance") == 2
        assert "has no effect" not in server.process.log()


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ('model_operations { op_library_filename: "ops.so" }\n', "model_operations"),
        ("optimization { graph { level: 1 } }\n", "optimization.graph.level"),
        ('optimization { execution_accelerators { cpu_execution_accelerator { name: "openvinoo" } } }\n', "cpu_execution_accelerator"),
        ('optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }\n', "gpu_execution_accelerator"),
    ],
)
def test_parts_of_the_configuration_without_effect_are_told(tmp_path: Path, more: str, part: str) -> None:
    made = Repository(tmp_path / "models")
    torch_oracle.save("Dense", made.model("m", BATCH + DENSE + more))
    (made.path / "m" / "ops.so").write_bytes(b"no library")
    with Nereid(made.path, {"model-control-mode": "explicit"}) as server:
        assert load(server, "m") == (200, "")
        warned = [line for line in server.process.log().splitlines() if f"model 'm': {part} has no effect" in line]
        assert len(warned) == 1, server.process.log()


def test_a_setting_of_the_command_line_that_nobody_reads_is_told(repository: Repository) -> None:
    with Nereid(repository.path, {"model-control-mode": "explicit", "backend-config": "pytorch,inter-op-threads=4"}) as server:
        assert load(server, "dense") == (200, "")
        assert "the setting 'inter-op-threads' of backend 'pytorch' is unknown and has no effect" in server.process.log()


# Sequences


def test_controls_of_sequences(served: Server) -> None:
    """The server says which requests begin a sequence, and the model gets it under the names of its arguments."""
    with grpcclient.InferenceServerClient(served.grpc) as client:
        for step, start in enumerate((True, False, False)):
            sent = grpcclient.InferInput("x", [1, 1], "FP32")
            sent.set_data_from_numpy(np.full((1, 1), step, np.float32))
            found = client.infer("told", [sent], sequence_id=7, sequence_start=start, sequence_end=step == 2)
            assert found.as_numpy("y__0").tolist() == [[step + 100 + 10 * start]]


def test_states_of_sequences(served: Server) -> None:
    """Several at the same time, each with its own."""

    def one_client(index: int) -> None:
        total = np.zeros((1, 2), np.float32)
        with grpcclient.InferenceServerClient(served.grpc) as client:
            for step in range(5):
                x = np.array([[index, step]], np.float32)
                total += x
                sent = grpcclient.InferInput("x", [1, 2], "FP32")
                sent.set_data_from_numpy(x)
                found = client.infer("running", [sent], sequence_id=index + 1, sequence_start=step == 0, sequence_end=step == 4)
                assert found.as_numpy("y__0").tolist() == total.tolist()
                assert len(found.get_response().outputs) == 1

    at_once(4, one_client)


# Configurations


@pytest.mark.parametrize("name", BAD)
def test_refuses_and_says_why(served: Server, name: str) -> None:
    """MR-61, MC-20: files that are broken or too new, names that say nothing, data types that PyTorch does not have."""
    status, error = load(served, name)
    assert status == 400
    assert BAD[name][2] in error
    assert ask(served, "http", "add_sub", dict(zip("ab", pair(), strict=True)))


def test_two_inputs_of_one_argument_are_refused(served: Server) -> None:
    status, error = load(served, "bad_twice")
    assert status == 400
    assert "the inputs 'X__0' and 'a' are the same argument of the model" in error


@pytest.mark.parametrize(
    ("given", "missing"),
    [(["parts__0", "parts__7"], 1), (["parts__3"], 0), (["parts__1", "parts__2"], 0), (["parts__2", "parts__0"], 1)],
)
def test_lists_without_gaps(served: Server, repository: Repository, given: list[str], missing: int) -> None:
    """An element that no input of the configuration is."""
    inputs = "".join(tensor("input", name, "FP32", [-1, 4]) for name in [*given, "scale"])
    torch_oracle.save("Mixed", repository.model("bad_gap", PYTORCH + inputs + tensor("output", "all__0", "FP32", [-1, 4])))
    status, error = load(served, "bad_gap")
    assert status == 400
    assert f"no input of the configuration is element {missing} of the argument 'parts' of the model" in error


@PROTOCOLS
def test_outputs_may_be_left_out(repository: Repository, protocol: str) -> None:
    """MC-41: then all there is comes back, with the type that it has."""
    texts, x = ["a", "bbb"], np.array([[1, 2], [3, 4]])
    names = {"model-control-mode": "explicit", "load-model": ["no_outputs", "no_outputs_keyed", "no_outputs_complex", "no_outputs_twice"]}
    with Nereid(repository.path, names) as server:
        found = ask(server, protocol, "no_outputs", {"words": words(*texts).reshape(2, 1), "x": x})
        twice, lengths = torch_oracle.answer(file_of(repository, "no_outputs"), texts, x)
        assert decoded(found["OUTPUT__0"]) == twice
        np.testing.assert_array_equal(found["OUTPUT__1"], lengths)
        a, b = pair()
        assert sorted(ask(server, protocol, "no_outputs_keyed", {"a": a, "b": b})) == ["difference", "sum"]
        with pytest.raises(InferenceServerException) as refused:
            ask(server, protocol, "no_outputs_complex", {"x": np.ones(2, np.float32)})
        assert refused.value.message() == "output 'OUTPUT__0' is a tensor of a type that the protocol does not have"
        with pytest.raises(InferenceServerException) as refused:
            ask(server, protocol, "no_outputs_twice", {"x": np.ones(2, np.float32)})
        assert "the model gives back two results named 'y': name the outputs in the configuration" in refused.value.message()


def test_a_file_alone_does_not_say_enough(served: Server, repository: Repository) -> None:
    """TorchScript knows neither data types nor shapes."""
    torch_oracle.save("Dense", repository.model("bad_bare", None))
    status, error = load(served, "bad_bare")
    assert status == 400
    assert "'bad_bare': its file does not say which data types and shapes inputs have, so config.pbtxt has to list them: x" in error


# Life


def test_loading_and_unloading_leaves_nothing(repository: Repository) -> None:
    loads_and_unloads(repository.path, "dense_many", {"x": np.ones((2, 16), np.float32)})


@pytest.mark.parametrize("shared", [True, False])
def test_a_second_instance_costs_weights_only_where_they_are_not_shared(tmp_path: Path, shared: bool) -> None:
    made = Repository(tmp_path / "models")
    more = parameters(SETTINGS["shared"]) if shared else ""
    torch_oracle.save("Big", made.model("big", PYTORCH + one("x", "FP32", [4], "y__0", "FP32", [4]) + TWO + more))
    torch_oracle.save("Dense", made.model("small", BATCH + DENSE))
    with Nereid(made.path, {"model-control-mode": "explicit", "load-model": "small"}) as server:
        ask(server, "grpc", "small", {"x": np.ones((1, 16), np.float32)})
        before = procfs.rss_bytes(server.pid)
        assert load(server, "big") == (200, "")
        grown = procfs.rss_bytes(server.pid) - before
    assert (grown > 100 << 20) != shared, grown
