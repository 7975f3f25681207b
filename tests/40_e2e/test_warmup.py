"""Warm-up: every instance runs the samples of its model before anybody else is served; what fails them does not load."""

import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import rawhttp
from harness.process import ServerFailed
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Reference, Server
from models import onnx_models
from onnx import helper

pytestmark = pytest.mark.onnx

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]
ROWS = 5  # of the table that the model below looks things up in


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> type[Server]:
    return KINDS[request.param]


def sample(data: str, dims: str = "[ 3 ]", datatype: str = "TYPE_INT64", name: str = "x", more: str = "") -> str:
    tensor = f"key: '{name}' value {{ data_type: {datatype} dims: {dims} {data} }}"
    return f"model_warmup {{ name: 'first' batch_size: 1 {more} inputs {{ {tensor} }} }}\n"


def lookup(repository: Repository, name: str, warmup: str, batched: bool = False) -> Path:
    """A model that looks its input up in a table of ROWS rows: it fails for any other index."""
    dims = ["n", 3] if batched else [3]
    built = onnx_models.model(
        [helper.make_node("Gather", ["table", "x"], ["y"], axis=0)],
        [("x", "INT64", dims)],
        [("y", "FP32", dims)],
        {"table": np.arange(ROWS, dtype=np.float32)},
    )
    folder = repository.model(
        name, f'platform: "onnxruntime_onnx"\nmax_batch_size: {8 if batched else 0}\n{warmup}'
    )
    onnx_models.save(built, folder)
    return folder


def put(folder: Path, name: str, content: bytes) -> None:
    (folder / "warmup").mkdir(exist_ok=True)
    (folder / "warmup" / name).write_bytes(content)


def ready(server: Server, model: str) -> bool:
    return rawhttp.get(server.http, f"/v2/models/{model}/ready").status == 200


def reason(server: Server, model: str) -> str:
    rows = rawhttp.post(server.http, "/v2/repository/index", b"").json()
    return next(row.get("reason", "") for row in rows if row["name"] == model)


def serve(kind: type[Server], repository: Repository, verbose: int = 0) -> Server:
    """Started, also when models failed."""
    options = {"exit-on-error": "false", "strict-readiness": "false", "log-verbose": str(verbose)}
    return kind(repository.path, options)


def test_data_of_every_kind(kind: type[Server], tmp_path: Path) -> None:
    """PB-152, PB-153, PB-154, PB-157, PB-158: zeros, random data and a file's content reach the model, whatever the flag's value."""
    repository = Repository(tmp_path / "models")
    lookup(repository, "zero", sample("zero_data: true"))
    lookup(repository, "zero_false", sample("zero_data: false"))
    put(lookup(repository, "file", sample("input_data_file: 'raw'")), "raw", struct.pack("<3q", 0, 4, 2))
    put(lookup(repository, "file_long", sample("input_data_file: 'raw'")), "raw", struct.pack("<4q", 0, 4, 2, ROWS))
    with serve(kind, repository) as server:
        assert [name for name in ("zero", "zero_false", "file", "file_long") if not ready(server, name)] == []


def test_data_that_a_model_does_not_bear(tmp_path: Path) -> None:
    """PB-150, PB-153, PB-155, PB-157: in the reference's words; that one ends when a sample fails."""
    repository = Repository(tmp_path / "models")
    one = "instance_group { count: 1 kind: KIND_CPU }\n"
    lookup(repository, "random", sample("random_data: true") + one)
    lookup(repository, "random_false", sample("random_data: false") + one)
    folder = lookup(repository, "file_bad", sample("input_data_file: 'raw'") + one)
    put(folder, "raw", struct.pack("<3q", 0, ROWS, 2))
    with serve(Nereid, repository) as server:
        for name in ("random", "random_false", "file_bad"):
            assert not ready(server, name)
            said = rf"Invalid argument: instance '{name}[_0-9]*': failed to run warmup sample 'first': onnx runtime error 2: "
            assert re.match(said, reason(server, name))
            assert "indices element out of data bounds" in reason(server, name)


def test_strings(kind: type[Server], tmp_path: Path) -> None:
    """PB-156, PB-157: random strings are empty ones; a file holds them with their lengths."""
    repository = Repository(tmp_path / "models")
    for name, data in (("zero", "zero_data: true"), ("random", "random_data: true"), ("file", "input_data_file: 'raw'"), ("bad", "input_data_file: 'raw'")):
        extra = sample(data, "[ 2 ]", "TYPE_STRING", "INPUT0")
        put(repository.identity(name, "BYTES", extra=extra), "raw", b"\x05\0\0\0hello\0\0\0\0" + b"\1" * (name == "bad"))
    with serve(kind, repository) as server:
        assert [name for name in ("zero", "random", "file") if not ready(server, name)] == []
        assert not ready(server, "bad")
        assert "string" in reason(server, "bad")


STATS = ("inference_count", "execution_count")


def counts(server: Server, model: str) -> dict[str, Any]:
    """What the statistics say, without times."""
    row = server.statistics(model)
    found = {key: row[key] for key in STATS}
    found |= {key: value["count"] for key, value in row["inference_stats"].items()}
    batches = {batch["batch_size"]: batch["compute_infer"]["count"] for batch in row["batch_stats"]}
    return found | {"batches": batches, "asked": row["last_inference"] != 0}


@pytest.mark.reference
def test_counts_as_the_reference_does(tmp_path: Path) -> None:
    """MC-135, PB-150, PB-162: how often samples run, in what batches, and what of it the statistics show."""
    repository = Repository(tmp_path / "models")
    zero = sample("zero_data: true")
    one, two = (f"instance_group {{ count: {count} kind: KIND_CPU }}\n" for count in (1, 2))
    lookup(repository, "one", zero + one)
    lookup(repository, "none", one)
    lookup(repository, "three", sample("zero_data: true", more="count: 3") + one)
    lookup(repository, "rows", zero.replace("batch_size: 1", "batch_size: 4") + one, batched=True)
    lookup(repository, "both", zero + sample("zero_data: true", more="count: 2").replace("first", "second") + one)
    lookup(repository, "two_instances", zero + two)
    told = []
    for kind in KINDS.values():
        with serve(kind, repository) as server:
            names = ("one", "none", "three", "rows", "both", "two_instances")
            told.append({name: counts(server, name) for name in names})
    assert told[0] == told[1]
    assert told[0]["rows"]["execution_count"] == 1
    assert told[0]["rows"]["inference_count"] == 4


def test_every_instance_runs_all_samples_in_order(kind: type[Server], tmp_path: Path) -> None:
    """MC-135, PB-12, PB-159, PB-183, X-28: before the model is ready."""
    repository = Repository(tmp_path / "models")
    warmup = sample("zero_data: true", more="count: 2") + sample("zero_data: true").replace("first", "second")
    repository.identity("quick", "INT64", (3,), extra=warmup.replace("'x'", "'INPUT0'") + "instance_group { count: 2 kind: KIND_CPU }")
    with serve(kind, repository, verbose=1) as server:
        lines = [line for line in server.process.log().splitlines() if "is running warmup sample" in line]
        for instance in ("quick_0_0", "quick_0_1"):
            mine = [line.split("warmup sample ")[1].rstrip('"') for line in lines if f"instance {instance} " in line]
            assert mine == ["'first' for iteration 1", "'first' for iteration 2", "'second' for iteration 1"]
        log = server.process.log()
        assert log.rindex("is running warmup sample") < log.index("successfully loaded 'quick'")


def test_a_failing_sample_fails_the_start(kind: type[Server], tmp_path: Path) -> None:
    """MC-136: an instance that fails its samples is not served."""
    repository = Repository(tmp_path / "models")
    lookup(repository, "failing", sample("random_data: true"))
    ends = "ended with status 1 before it was ready.*failed to run warmup sample"
    crashes = "|ended with status -11 before it was ready"  # the reference does every other time, before it says anything of the sample
    with pytest.raises(ServerFailed, match=f"(?s){ends}{crashes if kind is Reference else ''}"):
        kind(repository.path).start()


def test_a_failing_sample_leaves_the_old_version_serving(tmp_path: Path) -> None:
    """MC-136: a reload whose samples fail changes nothing."""
    repository = Repository(tmp_path / "models")
    folder = lookup(repository, "lookup", sample("zero_data: true"))
    config = folder / "config.pbtxt"
    with Nereid(repository.path, {"model-control-mode": "explicit", "load-model": "lookup"}) as server:
        config.write_text(config.read_text().replace("zero_data", "random_data"))
        answer = rawhttp.post(server.http, "/v2/repository/models/lookup/load", b"")
        assert answer.status == 400
        assert "failed to run warmup sample 'first': " in answer.json()["error"]
        assert ready(server, "lookup")


def test_rules(tmp_path: Path) -> None:
    """PB-151, PB-152, PB-163: a sample that does not fit its model fails the load."""
    repository = Repository(tmp_path / "models")
    lookup(repository, "type", sample("zero_data: true", datatype="TYPE_FP32"))
    lookup(repository, "shape", sample("zero_data: true", "[ 4 ]"))
    lookup(repository, "variable", sample("zero_data: true", "[ -1 ]"))
    lookup(repository, "missing", "model_warmup { name: 'first' batch_size: 1 }")
    lookup(repository, "unset", sample(""))
    lookup(repository, "too_many", sample("zero_data: true").replace("batch_size: 1", "batch_size: 9"), batched=True)
    put(lookup(repository, "short", sample("input_data_file: 'raw'")), "raw", b"\0" * 23)
    lookup(repository, "absent", sample("input_data_file: 'nothing'"))
    names = ["type", "shape", "variable", "missing", "unset", "too_many", "short", "absent"]
    with serve(Nereid, repository) as server:
        assert [name for name in names if ready(server, name)] == []
        assert "warmup setting expects 24 bytes" in reason(server, "short")
        assert "only has 23 bytes" in reason(server, "short")


def test_batch_size_must_be_said_and_fit(tmp_path: Path) -> None:
    """PB-160, PB-161, X-36: 0 is an error, and so are several rows of a model without batching."""
    repository = Repository(tmp_path / "models")
    lookup(repository, "none", sample("zero_data: true").replace("batch_size: 1", ""))
    lookup(repository, "unbatched", sample("zero_data: true").replace("batch_size: 1", "batch_size: 2"))
    with serve(Nereid, repository) as server:
        assert "must have batch_size >= 1" in reason(server, "none")
        assert "must have batch_size 1" in reason(server, "unbatched")


def test_files_stay_in_their_directory(tmp_path: Path) -> None:
    """PB-158: what climbs, is absolute, leads out or is no file is refused; a link inside is followed."""
    repository = Repository(tmp_path / "models")
    good = struct.pack("<3q", 0, 4, 2)
    (tmp_path / "outside").write_bytes(good)
    (repository.path / "outside").write_bytes(good)
    for name, file in (("up", "../outside"), ("absolute", str(tmp_path / "outside")), ("far", "a/../../outside")):
        put(lookup(repository, name, sample(f"input_data_file: '{file}'")), "raw", good)
    for name in ("link", "link_dir", "pipe", "directory", "inside", "deep"):
        put(lookup(repository, name, sample(f"input_data_file: '{'a/' * (name == 'deep')}raw'")), "other", good)
    place = lambda name: repository.path / name / "warmup" / "raw"  # noqa: E731
    place("link").symlink_to(tmp_path / "outside")
    (repository.path / "link_dir" / "warmup" / "other").rename(repository.path / "link_dir" / "raw")
    (repository.path / "link_dir" / "warmup" / "raw").symlink_to("../raw")
    os.mkfifo(place("pipe"))
    place("directory").mkdir()
    place("inside").symlink_to("other")
    (repository.path / "deep" / "warmup" / "a").mkdir()
    (repository.path / "deep" / "warmup" / "a" / "raw").write_bytes(good)
    with serve(Nereid, repository) as server:
        for name in ("up", "absolute", "far"):
            assert "must stay inside the model's directory" in reason(server, name)
        for name in ("link", "link_dir"):
            assert "leads out of" in reason(server, name)
        for name in ("pipe", "directory"):
            assert "is not a regular file" in reason(server, name)
        assert ready(server, "inside")
        assert ready(server, "deep")
        assert str(tmp_path) not in reason(server, "link").replace(str(repository.path), "")


def test_an_ensemble_has_no_samples(tmp_path: Path) -> None:
    """PB-184."""
    repository = Repository(tmp_path / "models")
    repository.identity("part")
    step = "step { model_name: 'part' model_version: -1 input_map { key: 'INPUT0' value: 'a' } output_map { key: 'OUTPUT0' value: 'b' } }"
    config = f"platform: 'ensemble'\ninput {{ name: 'a' data_type: TYPE_FP32 dims: -1 }}\noutput {{ name: 'b' data_type: TYPE_FP32 dims: -1 }}\nensemble_scheduling {{ {step} }}\n"
    repository.model("whole", config + sample("zero_data: true", "[ 1 ]", "TYPE_FP32", "a"))
    with serve(Nereid, repository) as server:
        assert not ready(server, "whole")
        assert "warm" in reason(server, "whole")
        assert ready(server, "part")
