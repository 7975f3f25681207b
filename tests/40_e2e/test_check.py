"""nereid check: every problem of a repository, without serving it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from harness import paths, rawhttp
from harness.ensembles import chain
from harness.repository import Repository
from harness.servers import Nereid

ENSEMBLE = """\
platform: "ensemble"
max_batch_size: 0
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
ensemble_scheduling {{ step [ {{
  model_name: "{step}" model_version: -1
  input_map {{ key: "INPUT0" value: "INPUT0" }}
  output_map {{ key: "OUTPUT0" value: "OUTPUT0" }}
}} ] }}
"""


def check(*arguments: Path | str) -> subprocess.CompletedProcess[str]:
    argv = [str(paths.nereid_binary()), "check", *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def problems(*arguments: Path | str) -> list[dict[str, str]]:
    got = check(*arguments, "--json")
    report = json.loads(got.stdout)
    assert got.returncode == (1 if report["problems"] else 0)
    found: list[dict[str, str]] = report["problems"]
    assert all(one["mend"] and one["problem"] and one["place"] for one in found)
    return found


def with_label(folder: Path, name: str) -> None:
    path = folder / "config.pbtxt"
    path.write_text(path.read_text().replace('"OUTPUT0"', f'"OUTPUT0" label_filename: "{name}"'))


def test_a_good_repository(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("one", versions=(1, 2))
    got = check(repository.path)
    assert (got.returncode, got.stdout) == (0, "1 models, 0 problems\n")


def test_names_are_no_commands_for_the_terminal(tmp_path: Path) -> None:
    """Names and texts of somebody else's files; JSON escapes them."""
    repository = Repository(tmp_path / "mod\x1b]0;els")
    repository.model("red\x1b[31m\n\u009b1m\x7f", 'backend: "identity"\n"\x1b[31m"\n')
    got = check(repository.path)
    assert got.returncode == 1 and "/mod ]0;els/red [31m   1m /" in got.stdout, got.stdout
    assert len(got.stdout.splitlines()) == 3 and all(line.isprintable() for line in got.stdout.splitlines()), got.stdout
    assert problems(repository.path)[0]["model"] == "red\x1b[31m\n\u009b1m\x7f"


def make_broken(repository: Repository) -> dict[str, tuple[str, str]]:
    """Models that are wrong: name -> (end of the place, part of the problem)."""
    repository.model("broken", 'backend: "identity"\nno_such_field: 1\n')
    repository.model("misnamed", 'name: "other"\nbackend: "identity"\n')
    repository.model("noversion", 'backend: "identity"\n', versions=("x",))
    repository.identity("zero", versions=(1, "01"))
    repository.model("onnx", 'platform: "onnxruntime_onnx"\nmax_batch_size: 1\n')
    repository.model("bare", None)
    repository.identity("many", extra="instance_group [{ count: 10000 }]")
    repository.identity("asks", versions=(1, 2), extra="version_policy { specific { versions: [ 1, 5 ] } }")
    with_label(repository.identity("climbs"), "../../etc/passwd")
    device = repository.identity("device")
    with_label(device, "labels.txt")
    (device / "labels.txt").symlink_to("/dev/zero")
    repository.model("circle1", ENSEMBLE.format(step="circle2"))
    repository.model("circle2", ENSEMBLE.format(step="circle1"))
    repository.model("lacks", ENSEMBLE.format(step="nowhere"))
    warm = "model_warmup [{ name: 'w' batch_size: 1 inputs { key: 'INPUT0' value: { data_type: TYPE_FP32 dims: [ 1 ] input_data_file: 'x' } } }]"
    repository.identity("warm", extra=warm)
    begin = "initial_state { name: 'b' data_type: TYPE_FP32 dims: [ 1 ] data_file: 'x' }"
    state = f"state {{ input_name: 'IN' output_name: 'OUT' data_type: TYPE_FP32 dims: [ 1 ] {begin} }}"
    repository.identity("state", extra=f"sequence_batching {{ {state} }}")
    huge = repository.model("huge", None) / "config.pbtxt"
    with open(huge, "wb") as file:
        file.truncate(1 << 30)
    return {
        "broken": ("broken/config.pbtxt:2:1", "found 'no_such_field'"),
        "misnamed": ("misnamed/config.pbtxt", "directory name must equal model name"),
        "noversion": ("noversion", "no version"),
        "zero": ("zero/01", "no version"),
        "onnx": ("onnx/1/model.onnx", "definition is not there"),
        "bare": ("bare/1", "Could not determine backend"),
        "many": ("many/config.pbtxt", "10000"),
        "asks": ("asks/config.pbtxt", "version 5"),
        "climbs": ("climbs/config.pbtxt", "must stay inside"),
        "device": ("device/config.pbtxt", "leads out of"),
        "circle1": ("circle1/config.pbtxt", "circle1 -> circle2 -> circle1"),
        "circle2": ("circle2/config.pbtxt", "circle2 -> circle1 -> circle2"),
        "lacks": ("lacks/config.pbtxt", "'nowhere'"),
        "warm": ("warm/config.pbtxt", "warmup sample 'w': warmup setting of input 'INPUT0': "),
        "state": ("state/config.pbtxt", "initial_state of state 'IN'"),
        "huge": ("huge", "1073741824 bytes"),
    }


@pytest.mark.parametrize("load", [(), ("--load",)], ids=["read", "loaded"])
def test_every_problem_is_told_once(tmp_path: Path, load: tuple[str, ...]) -> None:
    """With where it is. What is wrong already is not loaded."""
    repository = Repository(tmp_path / "models")
    repository.identity("good")
    repository.identity("batches", max_batch_size=8, extra="dynamic_batching { preferred_batch_size: [ 4, 8 ] }")
    repository.identity("sequences", extra="sequence_batching { oldest { max_candidate_sequences: 4 } }")
    expected = make_broken(repository)
    found = problems(repository.path, *load)
    assert sorted(one["model"] for one in found) == sorted(expected)
    for one in found:
        place, what = expected[one["model"]]
        assert one["place"] == f"{repository.path}/{place}", one
        assert what in one["problem"], one
    text = check(repository.path, *load).stdout
    assert all(f"{one['place']}: {one['problem']}\n    mend: {one['mend']}\n" in text for one in found)
    assert text.endswith(f"{len(expected) + 3} models, {len(expected)} problems\n")


def sample(data: str = "zero_data: true", dims: str = "[ 4 ]", datatype: str = "TYPE_FP32", name: str = "INPUT0", rows: int = 1, more: str = "") -> str:
    inputs = f"inputs {{ key: '{name}' value {{ data_type: {datatype} dims: {dims} {data} }} }}" if name else ""
    return f"model_warmup {{ name: 'w' batch_size: {rows} {inputs} {more} }}\n"


def make_warm(repository: Repository) -> dict[str, str]:
    """Models with warm-up that no backend need see to refuse it, and some that are right: name -> part of the problem, "" = none."""
    file = "input_data_file: 'x'"
    for name, extra in {
        "elsewhere": sample(name="INPUT9"),
        "nothing": sample(name=""),
        "rows": sample(rows=99),
        "short": sample(file),
        "folder": sample(file),
        "pipe": sample(file),
        "type": sample(datatype="TYPE_INT32"),
        "shape": sample(dims="[ 3 ]"),
        "second": sample(rows=2) + sample(name="INPUT9"),
        "both": sample(dims="[ 3 ]") + sample(datatype="TYPE_INT32"),
        "fine": sample(rows=4) + sample(file),
    }.items():
        repository.identity(name, dims=(4,), max_batch_size=4, extra=extra)
    repository.identity("words", "BYTES", (2,), extra=sample(file, "[ 2 ]", "TYPE_STRING"))
    control = "sequence_batching { control_input [ { name: 'START' control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ] }\n"
    start = "inputs { key: 'START' value { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } }"
    repository.identity("controlled", dims=(4,), max_batch_size=4, extra=control + sample(more=start))
    repository.identity("uncontrolled", dims=(4,), max_batch_size=4, extra=control + sample())
    for name in ("short", "folder", "pipe", "fine", "words"):
        (repository.path / name / "warmup").mkdir()
    for name, content in (("short", b"\1\0\0"), ("fine", b"\0" * 16), ("words", b"\1\0\0\0a\2\0\0\0b")):
        (repository.path / name / "warmup" / "x").write_bytes(content)
    (repository.path / "folder" / "warmup" / "x").mkdir()
    os.mkfifo(repository.path / "pipe" / "warmup" / "x")
    return {
        "elsewhere": "must specify input 'INPUT0'",
        "nothing": "must specify input 'INPUT0'",
        "rows": "must have batch_size <= max batch size",
        "short": "warmup setting expects 16 bytes, but the data provided from 'x' for input 'INPUT0' only has 3 bytes",
        "folder": "not a regular file",
        "pipe": "not a regular file",
        "type": "data-type is 'INT32', but model 'type' expects 'FP32'",
        "shape": "Expected [-1,4], got [1,3]",
        "second": "must specify input 'INPUT0'",
        "both": "Expected [-1,4], got [1,3]",
        "fine": "",
        "words": "the last string of inference input 'INPUT0'",
        "controlled": "",
        "uncontrolled": "must specify input 'START'",
    }


def test_warm_up_is_judged_as_the_server_does(tmp_path: Path) -> None:
    """Each sample that is wrong is told."""
    repository = Repository(tmp_path / "models")
    expected = make_warm(repository)
    found = problems(repository.path)
    assert {one["place"] for one in found} <= {f"{repository.path}/{name}/config.pbtxt" for name in expected}
    assert sorted(one["model"] for one in found) == sorted([name for name, what in expected.items() if what] + ["both"])
    for name, what in expected.items():
        assert not what or any(what in one["problem"] for one in found if one["model"] == name), (name, found)
    with Nereid(repository.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        rows = {row["name"]: row for row in rawhttp.post(server.http, "/v2/repository/index", b"").json()}
    for name, what in expected.items():
        assert what in rows[name].get("reason", "") and (rows[name]["state"] == "READY") == (not what), rows[name]


def test_what_a_backend_fills_in_is_not_judged(tmp_path: Path) -> None:
    """Inputs that only the model's file has; the data for them is looked at."""
    repository = Repository(tmp_path / "models")
    config = 'backend: "identity" output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
    repository.model("fine", config + sample(name="ANY"))
    repository.model("torn", config + sample("input_data_file: 'x'", name="ANY"))
    (found,) = problems(repository.path)
    assert found["model"] == "torn" and "warmup setting of input 'ANY'" in found["problem"]
    assert len(problems(repository.path, "--strict-model-config")) == 2


def test_an_agent_that_is_not_there(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("lost", extra='model_repository_agents { agents [ { name: "checksum" }, { name: "nope" }, { name: "../nope" } ] }')
    first, second = problems(repository.path)
    assert "unable to find 'libtritonrepoagent_nope.so' for repo agent 'nope'" in first["problem"]
    assert "name an agent that is installed" in first["mend"] and "has checksum" in first["mend"]
    assert "invalid repository agent name '../nope'" in second["problem"]
    assert len(problems(repository.path, f"--repoagent-directory={tmp_path}")) == 3


def test_libraries_that_the_configuration_names(tmp_path: Path) -> None:
    """In the server's words."""
    repository = Repository(tmp_path / "models")
    strategy = "parameters {{ key: 'TRITON_BATCH_STRATEGY_PATH' value {{ string_value: '{}' }} }}\n"
    for name, extra in {
        "lost": strategy.format("mine.so"),
        "outside": strategy.format("/lib/mine.so"),
        "sequences": strategy.format("mine.so") + "sequence_batching { }",
        "operators": "model_operations { op_library_filename: 'mine.so' }",
        "fine": strategy.format("mine.so") + "model_operations { op_library_filename: 'mine.so' }",
    }.items():
        repository.identity(name, max_batch_size=4, extra=extra)
    (repository.path / "fine" / "mine.so").touch()
    found = {one["model"]: one["problem"] for one in problems(repository.path)}
    assert sorted(found) == ["lost", "operators", "outside", "sequences"]
    with Nereid(repository.path, {"exit-on-error": "false", "strict-readiness": "false"}) as server:
        rows = {row["name"]: row.get("reason", "") for row in rawhttp.post(server.http, "/v2/repository/index", b"").json()}
    for name, problem in found.items():
        assert problem in rows[name], (problem, rows[name])


def test_a_name_that_no_client_can_ask_for(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("caf\u00e9")
    (repository.path / "caf\u00e9").rename(os.fsdecode(os.fsencode(repository.path) + b"/caf\xe9\xc3\xa9"))
    (found,) = problems(repository.path)
    assert (found["model"], found["place"]) == ("caf\\xe9\u00e9", f"{repository.path}/caf\\xe9\u00e9")
    assert "not UTF-8" in found["problem"]
    assert check(repository.path).stdout.endswith("1 models, 1 problems\n")


def test_a_name_in_two_repositories(tmp_path: Path) -> None:
    for name in ("first", "second"):
        Repository(tmp_path / name).identity("one")
    (found,) = problems(tmp_path / "first", tmp_path / "second")
    assert found["place"] == str(tmp_path / "second" / "one")
    assert found["problem"] == "model appears in two or more repositories"


def test_names_told_apart(tmp_path: Path) -> None:
    """Each ensemble beside the x that it fits; a step in another repository, one in two others, and two that go in a circle."""
    first, second, third = (Repository(tmp_path / name) for name in ("first", "second", "third"))
    first.identity("x")
    second.identity("x", "INT32")
    second.identity("far")
    for place in (second, third):
        place.identity("twice")
    first.model("floats", chain("floats", ["x"]).config())
    second.model("whole", chain("whole", ["x"], datatype="INT32").config())
    first.model("cross", chain("cross", ["far"]).config())
    both = (first.path, second.path, third.path, "--model-namespacing")
    assert problems(*both) == []
    first.model("torn", chain("torn", ["twice"]).config())
    second.model("unfit", chain("unfit", ["x"]).config())
    found = {one["place"]: one["problem"] for one in problems(*both)}
    assert found.keys() == {str(first.path / "torn" / "config.pbtxt"), str(second.path / "unfit" / "config.pbtxt")}
    assert "model 'twice', which is not beside it" in found[str(first.path / "torn" / "config.pbtxt")]
    assert "TYPE_INT32" in found[str(second.path / "unfit" / "config.pbtxt")]


def test_strict(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    folder = repository.model("bare", None)
    (folder / "1" / "model.onnx").write_bytes(b"")
    assert problems(repository.path) == []
    (found,) = problems(repository.path, "--strict-model-config")
    assert found["place"].endswith("bare/config.pbtxt")


def test_another_configuration(tmp_path: Path) -> None:
    folder = Repository(tmp_path / "models").identity("one")
    (folder / "configs").mkdir()
    (folder / "configs" / "small.pbtxt").write_text("nonsense")
    assert problems(tmp_path / "models") == []
    (found,) = problems(tmp_path / "models", "--model-config-name=small")
    assert "configs/small.pbtxt:1:" in found["place"]
    for wrong in ((folder / "config.pbtxt").read_text() + "instance_group [ { count: 10000 } ]", ENSEMBLE.format(step="nowhere")):
        (folder / "configs" / "small.pbtxt").write_text(wrong)
        (found,) = problems(tmp_path / "models", "--model-config-name=small")
        assert found["place"] == f"{folder}/configs/small.pbtxt"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [((), "usage: nereid check"), (("--nonsense", "x"), "unknown argument '--nonsense'"), (("--json",), "no repository is given")]
    + [((".", f"--load-timeout={wrong}"), f"a number of seconds from 1 to 86400, found '{wrong}'") for wrong in ("100000", "0", "5x", "-1", "", "+1", "9999999")],
)
def test_wrong_command_lines(arguments: tuple[str, ...], told: str) -> None:
    got = check(*arguments)
    assert got.returncode == 2
    assert told in got.stderr and not got.stdout


def test_a_repository_may_be_named_as_a_server_names_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    got = check(f"--model-repository={repository.path}", "--load")
    assert (got.returncode, got.stdout) == (0, "1 models, 0 problems\n"), got


def test_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    repository = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    Repository(Path(repository)).model("one", 'backend: "nowhere"\n')
    (found,) = problems(repository)
    assert found["place"] == f"{tmp_path}/caf\\xe9/one/config.pbtxt"


@pytest.mark.parametrize("command", [["check", "."], ["check", "--help"], ["doctor", "--backend-directory=."], ["migrate", "--", "tritonserver"]])
def test_a_report_that_cannot_be_written_is_told(command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        got = subprocess.run([str(paths.nereid_binary()), *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (got.returncode, got.stderr) == (1, f"nereid {command[0]}: the standard output cannot be written\n")


def test_a_missing_repository(tmp_path: Path) -> None:
    (found,) = problems(tmp_path / "nowhere")
    assert found["model"] == "" and found["place"] == str(tmp_path / "nowhere")


@pytest.mark.parametrize("configuration", [True, False])
def test_the_directory_of_a_model(tmp_path: Path, configuration: bool) -> None:
    """Given in the place of the repository above it: one problem, with the mend, and none about what is in it."""
    repository = Repository(tmp_path / "models")
    folder = repository.identity("one", versions=(1, 2)) if configuration else repository.model("one", None)
    for load in ((), ("--load",)):
        (found,) = problems(folder, *load)
        assert (found["place"], found["model"]) == (str(folder), "")
        assert "the directory of one model" in found["problem"] and found["mend"].startswith("name the directory above it")


def onnx(repository: Repository, name: str, content: bytes, extra: str = "") -> None:
    (repository.model(name, extra or None) / "1" / "model.onnx").write_bytes(content)


def digits() -> bytes:
    return paths.need(paths.ROOT / "build" / "models" / "digits" / "1" / "model.onnx").read_bytes()


def backend(repository: Repository, name: str, source: str) -> Path:
    """A model with a backend library of its own."""
    folder = repository.model(name, f'backend: "{name}"\n')
    (folder / "backend.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / f"libtriton_{name}.so", folder / "backend.c"], check=True)
    return folder


def test_what_this_machine_lacks(tmp_path: Path) -> None:
    """A backend that is not installed, a GPU, any model at all."""
    repository = Repository(tmp_path / "models")
    repository.model("misspelt", 'backend: "identitty"\n')
    repository.identity("device", extra="instance_group [{ kind: KIND_GPU }]")
    (tmp_path / "empty").mkdir()
    found = {one["place"]: one for one in problems(repository.path, tmp_path / "empty")}
    assert found.keys() == {str(repository.path / "misspelt/config.pbtxt"), str(repository.path / "device/config.pbtxt"), str(tmp_path / "empty")}
    misspelt = found[str(repository.path / "misspelt/config.pbtxt")]
    assert "unable to find backend library for backend 'identitty'" in misspelt["problem"] and "identity" in misspelt["mend"]
    assert "KIND_GPU" in found[str(repository.path / "device/config.pbtxt")]["problem"]
    assert "no model" in found[str(tmp_path / "empty")]["problem"]
    there = problems(repository.path, f"--backend-directory={tmp_path}")
    assert [one["model"] for one in there] == ["device", "device", "misspelt"]
    assert f"'{tmp_path}/identity'" in there[1]["problem"] and f"'{tmp_path}' has" in there[1]["mend"]


@pytest.mark.onnx
def test_what_backends_say_is_known_once_models_are_loaded(tmp_path: Path) -> None:
    """A truncated file, and an input that the file does not have so: found by --load alone."""
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    onnx(repository, "whole", digits())
    onnx(repository, "truncated", digits()[:3000])
    other = 'backend: "onnxruntime"\nmax_batch_size: 4\ninput [{ name: "image" data_type: TYPE_INT32 dims: [ 64 ] }]\n'
    onnx(repository, "other", digits(), other + 'output [{ name: "logits" data_type: TYPE_FP32 dims: [ 10 ] }]\n')
    assert problems(repository.path) == []
    found = {one["model"]: one for one in problems(repository.path, "--load")}
    assert found.keys() == {"truncated", "other"}
    assert "model.onnx failed" in found["truncated"]["problem"] and found["truncated"]["place"].endswith("/truncated")
    assert "expects datatype TYPE_INT32 for input 'image', model provides TYPE_FP32" in found["other"]["problem"]
    assert check(repository.path, "--load", "--load-timeout=0").returncode == 2


@pytest.mark.onnx
def test_a_backend_that_crashes_or_hangs_is_told_of(tmp_path: Path) -> None:
    """The check goes on, with the models behind it."""
    crashing, hanging = (Repository(tmp_path / name) for name in ("crashing", "hanging"))
    execute = "void *TRITONBACKEND_ModelInstanceExecute(void) { return 0; }\n"
    backend(crashing, "crashes", "#include <signal.h>\nvoid *TRITONBACKEND_Initialize(void *b) { raise(SIGKILL); return b; }\n" + execute)
    backend(hanging, "hangs", "#include <unistd.h>\nvoid *TRITONBACKEND_ModelInitialize(void *b) { for (;;) pause(); return b; }\n" + execute)
    for each in (crashing, hanging):
        onnx(each, "truncated", digits()[:3000])
    found = {one["model"]: one["problem"] for one in problems(crashing.path, "--load")}
    assert found.keys() == {"crashes", "truncated"}
    assert found["crashes"] == "the process that loaded model 'crashes' ended with signal 9 (Killed)"
    found = {one["model"]: one["problem"] for one in problems(hanging.path, "--load", "--load-timeout=5")}
    assert found.keys() == {"hangs", "truncated"}
    assert found["hangs"].startswith("model 'hangs' was not loaded and unloaded within 5 seconds")
