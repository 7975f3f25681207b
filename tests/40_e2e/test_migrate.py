"""nereid migrate: what would become of a tritonserver's command line and of its models, without serving them."""

import json
import subprocess
from pathlib import Path

import pytest
from harness import paths
from harness.repository import Repository

pytestmark = pytest.mark.threadless

COMPOSE = """\
services:
  web: { image: nginx, command: [nginx, -g, daemon off;] }
  triton:
    image: nvcr.io/nvidia/tritonserver:24.10-py3
    command: tritonserver --model-repository=/models --http-port 9000 --buffer-manager-thread-count=4
"""
KUBERNETES = """\
apiVersion: v1
kind: Service
metadata: { name: triton }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: triton }
spec:
  template:
    spec:
      containers:
      - name: triton
        image: nvcr.io/nvidia/tritonserver:24.10-py3
        command: [tritonserver]
        args:
        - --model-repository=/models
        - --strict-readiness=false
        - --no-such-option=1
      - name: other
        args: ["--model-repository=/not-this-one"]
"""
SCRIPTED = """\
spec:
  containers:
  - command: [sh, -c]
    args:
    - |
      export A=1  # tritonserver --not-this
      exec /opt/tritonserver/bin/tritonserver \\
        --model-repository="/mo dels" --log-verbose=1 >/dev/null && echo --ended
"""
ONE = ("taken", "one", "")


def migrate(*arguments: Path | str) -> tuple[int, str, str]:
    argv = [str(paths.nereid_binary()), "migrate", *map(str, arguments)]
    got = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    return got.returncode, got.stdout, got.stderr


def told(text: str) -> list[tuple[str, str, str]]:
    """The lines about options and models: what becomes of it, what it is, why."""
    found = []
    for line in text.splitlines():
        if line.startswith("  "):
            fate, rest = line.split(None, 1)
            what, _, why = rest.partition(": ")
            found.append((fate, what, why))
    return found


@pytest.fixture
def models(tmp_path: Path) -> Path:
    made = Repository(tmp_path / "models")
    made.identity("one")
    return made.path


def here(models: Path) -> list[str]:
    return [f"--repository={models}", f"--backend-directory={paths.backends()}"]


def test_a_command_line(models: Path) -> None:
    line = ["tritonserver", f"--model-repository={models}", "--http-port", "9000", "--backend-directory=/opt/tritonserver/backends", "--grpc-infer-allocation-pool-size=16"]
    status, out, _ = migrate(f"--backend-directory={paths.backends()}", "--", *line)
    lines = told(out)
    assert lines[:3] == [("taken", line[1], ""), ("taken", "--http-port=9000", ""), ("taken", line[4], "")]
    assert lines[3][:2] == ("ignored", line[5]) and "does nothing here" in lines[3][2]
    assert lines[4:] == [ONE]
    assert (status, out.splitlines()[-1]) == (0, "options: 3 taken, 1 ignored, 0 refused, 0 unknown; models: 1 taken, 0 refused, 0 unknown")


def test_names_are_no_commands_for_the_terminal(tmp_path: Path) -> None:
    """Names of models, words of files and the files' names."""
    made, script = Repository(tmp_path / "mod\x1b]0;els"), tmp_path / "run\x1b[2J.sh"
    made.identity("one\x1b[31m", extra="\n")
    made.model("two\u009b1m\n", None)
    script.write_text("tritonserver --http-port='9\x1b[0m' '--no\x1b[1m\n=x\x07'\n")
    status, out, err = migrate(*here(made.path), script)
    assert (status, err) == (1, "") and all(line.isprintable() for line in out.splitlines()), out
    for words in (f"options in {tmp_path}/run [2J.sh", f"models of {tmp_path}/mod ]0;els", "one [31m", "two  1m", "--no [1m =x "):
        assert words in out, (words, out)
    script.write_text("nothing\n")
    status, _, err = migrate(script)
    assert status == 2 and "run [2J.sh: no command line of tritonserver found" in err and err[:-1].isprintable(), err


def test_what_is_refused_is_named_with_its_reason(models: Path) -> None:
    made = Repository(models)
    (made.model("plan", 'platform: "tensorrt_plan"\n') / "1" / "model.plan").touch()
    made.model("typo", 'backend: "identity"\nno_such_field: 1\n')
    line = ["tritonserver", "--model-repository=/models", "--http-port=many", "--htp-port=1", "--unheard-of", "7", "--model-control-mode=none", "stray"]
    status, out, _ = migrate(*here(models), "--", *line)
    lines = told(out)
    assert [(fate, what) for fate, what, _ in lines[:6]] == [
        ("taken", "--model-repository=/models"), ("refused", "--http-port=many"), ("refused", "--htp-port=1"), ("refused", "--unheard-of=7"),
        ("taken", "--model-control-mode=none"), ("refused", "stray"),
    ]  # fmt: skip
    assert "did you mean --http-port" in lines[2][2] and "unexpected argument 'stray'" in lines[5][2]
    why = {what: (fate, why) for fate, what, why in lines[6:]}
    assert why["one"] == ("taken", "")
    assert why["plan"][0] == "refused" and "tensorrt" in why["plan"][1] and "mend: " in why["plan"][1]
    assert why["typo"][0] == "refused" and "no_such_field" in why["typo"][1]
    assert (status, out.splitlines()[-1]) == (1, "options: 2 taken, 0 ignored, 4 refused, 0 unknown; models: 1 taken, 2 refused, 0 unknown")


def test_options_that_only_fail_together(models: Path) -> None:
    status, out, _ = migrate(*here(models), "--", "tritonserver", "--model-repository=/m", "--http-port=9", "--grpc-port=9", "--load-model=one")
    refused = [why for fate, what, why in told(out) if (fate, what) == ("refused", "all together")]
    assert status == 1 and len(refused) == 2 and "port of its own" in refused[0] and "--model-control-mode=explicit" in refused[1]


def test_agents_are_looked_for_where_they_are(models: Path) -> None:
    """Here, if the command line's directory is not on this machine. Warm-up is the server's matter, too."""
    made = Repository(models)
    for name, agent in (("checked", "checksum"), ("lost", "nope")):
        made.identity(name, extra=f'model_repository_agents {{ agents [ {{ name: "{agent}" }} ] }}')
    made.identity("cold", extra="model_warmup { name: 'w' batch_size: 1 }")
    status, out, _ = migrate(*here(models), "--", "tritonserver", f"--model-repository={models}", "--repoagent-directory=/nowhere/agents")
    fates = {name: fate for fate, name, _ in told(out)}
    assert (status, fates["checked"], fates["lost"], fates["cold"]) == (1, "taken", "refused", "refused"), out
    assert "libtritonrepoagent_nope.so" in out and "must specify input 'INPUT0'" in out


def test_a_repository_that_is_not_here() -> None:
    for path in ("/no/such/folder", "s3://bucket/models"):
        status, out, _ = migrate("--", "tritonserver", f"--model-repository={path}")
        assert status == 1 and told(out)[1][0] == "unknown" and "--repository=DIRECTORY" in told(out)[1][2]
        assert out.splitlines()[-1].endswith("models: 0 taken, 0 refused, 1 unknown")


OWN = "--model-repository=/m"


@pytest.mark.parametrize(
    ("line", "fates"),
    [
        ([OWN, "--http-port=$(PORT)"], {"--http-port=$(PORT)": "unknown"}),
        ([OWN, "--http-port", "$PORT", "--grpc-port=${GP}", "--metrics-port=${MP:-8002}"], {"--http-port=$PORT": "unknown", "--grpc-port=${GP}": "unknown", "--metrics-port=${MP:-8002}": "unknown"}),
        ([OWN, "--http-port=`cat port`", "--log-verbose"], {"--http-port=`cat port`": "unknown", "--log-verbose": "refused"}),
        (["$@"], {"$@": "unknown", "--model-repository": "unknown"}),
        (["${OPTIONS[@]}", "$(cat options)"], {"${OPTIONS[@]}": "unknown", "$(cat options)": "unknown", "--model-repository": "unknown"}),
        ([OWN, "--$NAME=1"], {"--$NAME=1": "unknown"}),
        ([OWN, "--http-port=8001", "--grpc-port=$P"], {"--grpc-port=$P": "unknown", "all together": "unknown"}),
        ([OWN, "--http-port=8001", "--grpc-port=8001", "--load-model=a", "$MORE"], {"$MORE": "unknown", "all together": "unknown"}),
        ([OWN, "--log-file=/tmp/$HOSTNAME.log"], {}),
        # these are refused whatever the variable holds
        ([OWN, "--htp-port=$PORT"], {"--htp-port=$PORT": "refused"}),
        (["--http-port=$PORT"], {"--http-port=$PORT": "unknown", "--model-repository": "refused"}),
        ([OWN, "--http-header-forward-pattern=(a$"], {"all together": "refused"}),
        ([OWN, "--log-verbose=$"], {"--log-verbose=$": "refused"}),
    ],
)  # fmt: skip
def test_what_a_variable_holds_is_not_known_here(models: Path, tmp_path: Path, line: list[str], fates: dict[str, str]) -> None:
    """In a value that is looked at, and in the place of options; no option is looked for in vain that may stand in it."""
    status, out, _ = migrate(*here(models)[1:], "--", "tritonserver", *line)
    lines = [(fate, what, why) for fate, what, why in told(out) if what != "/m" and fate != "taken"]
    assert {what: fate for fate, what, _ in lines} == fates, out
    assert all("is not known here" in why for fate, what, why in lines if fate == "unknown" and what in line), out
    assert status == 1 and f"{sum(fate == 'unknown' for fate, _, _ in lines)} unknown; " in out, out


def test_variables_of_files(models: Path, tmp_path: Path) -> None:
    compose, script = tmp_path / "compose.yaml", tmp_path / "start.sh"
    compose.write_text("services: {triton: {command: 'tritonserver --model-repository=/m --http-port=${PORT:-8000} --log-verbose=`cat /run/level`'}}\n")
    script.write_text('exec tritonserver "$@" --grpc-port=`cat -n port | tail -1`\n')
    status, out, _ = migrate(*here(models), compose, script)
    unknown = [what for fate, what, _ in told(out) if fate != "taken"]
    assert unknown == ["--http-port=${PORT:-8000}", "--log-verbose=`cat /run/level`", "$@", "--grpc-port=`cat -n port | tail -1`"], out
    assert (status, out.splitlines()[-1]) == (1, "options: 1 taken, 0 ignored, 0 refused, 4 unknown; models: 2 taken, 0 refused, 0 unknown")


def test_a_file_of_compose(models: Path, tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(COMPOSE)
    status, out, err = migrate(*here(models), file)
    assert err == "" and out.splitlines()[0] == f"options in {file}, from line 4"
    assert [what for _, what, _ in told(out)] == ["--model-repository=/models", "--http-port=9000", "--buffer-manager-thread-count=4", "one"]
    assert status == 0


def test_a_file_of_kubernetes(models: Path, tmp_path: Path) -> None:
    file = tmp_path / "deployment.yml"
    file.write_text(KUBERNETES)
    status, out, _ = migrate(*here(models), file)
    assert [line[:2] for line in told(out)] == [("taken", "--model-repository=/models"), ("taken", "--strict-readiness=false"), ("refused", "--no-such-option=1"), ONE[:2]]
    assert status == 1


@pytest.mark.parametrize("name", ["pod.yaml", "run.sh"])
def test_a_script(models: Path, tmp_path: Path, name: str) -> None:
    """In a file of its own, or as the argument of a shell; its quotes and lines are a shell's."""
    file = tmp_path / name
    text = SCRIPTED if name == "pod.yaml" else SCRIPTED.split("- |\n")[1]
    file.write_text(text)
    status, out, _ = migrate(*here(models), file)
    assert [what for _, what, _ in told(out)] == ["--model-repository=/mo dels", "--log-verbose=1", "one"]
    assert status == 0


SERVER = "tritonserver --model-repository=models --no-such-option"


@pytest.mark.parametrize(
    "script",
    [
        f"pip install tritonserver\n{SERVER}\n",
        f"killall tritonserver; {SERVER}\n",
        f"if ! which tritonserver; then exit 1; fi\n{SERVER}\n",
        f"TRITON=/opt/tritonserver {SERVER}",
        f"({SERVER})",
        f"ID=$({SERVER})",
        f"ID=`{SERVER}`",
        f"docker run -d triton:24.10 {SERVER}",
        f"bash -c '{SERVER}'",
        f"ssh far \"bash -c '{SERVER}'\"",
        "tritonserver --model-repository=models '' --no-such-option",
        "tritonserver >log --model-repository=models 2>&1 --no-such-option",
        "exec tritonserver --model-repository=models 1>/dev/null --no-such-option 2>&1 & wait",
        "tritonserver --model-repository=$(cat name (1) && pwd) --no-such-option",
    ],
)
@pytest.mark.parametrize("form", ["script", "text", "list"])
def test_no_command_line_is_passed_over(models: Path, tmp_path: Path, script: str, form: str) -> None:
    """Whatever stands before it or in it; in a script, in YAML as the text of a command and as an argument of a shell."""
    file = tmp_path / ("run.sh" if form == "script" else "pod.json")
    command: object = script if form == "text" else ["sh", "-c", script]
    file.write_text(script if form == "script" else json.dumps({"command": command}))
    status, out, _ = migrate(*here(models), file)
    lines = told(out)
    assert (status, out.count("options in")) == (1, 1), out
    assert "--model-repository=" in lines[0][1] and lines[0][0] == "taken" and lines[-1][:2] == ONE[:2]
    assert [what for fate, what, _ in lines if fate == "refused"] == ([""] if "''" in script else []) + ["--no-such-option"]


def test_servers_of_one_script_and_what_is_none(models: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("tritonserver --model-repository=/a &\necho tritonserver is up\ntritonserver --model-repository=/b --no-such-option\n")
    status, out, _ = migrate(*here(models), file)
    assert (status, out.count("options in")) == (1, 2)
    assert [what for _, what, _ in told(out)] == ["--model-repository=/a", "one", "--model-repository=/b", "--no-such-option", "one"]
    file.write_text("pip install tritonserver && pkill -f tritonserver\nexport TRITON=/opt/tritonserver\ncd $TRITON\n")
    status, _, err = migrate(file)
    assert status == 2 and "no command line of tritonserver found" in err


def test_several_servers_are_each_told_of(models: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.json"
    first.write_text(COMPOSE)
    second.write_text('{"services": {"one": {"command": ["tritonserver", "--model-store=/models"]}}}')
    status, out, _ = migrate(*here(models), first, second)
    assert (status, out.count("options in")) == (0, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("services: [", "line 2, column 1: "),
        ("a: &a [*a, {command: *a}]", "no command line of tritonserver found"),
        ("[" * 1000000, "line 1, column 101: expected at most 100 lists and mappings in each other"),
        ("".join(f"- &a{n} b\n" for n in range(200000)), "line 1001, column 3: expected at most 1000 anchors and aliases"),
        ("a: b\n", "no command line of tritonserver found"),
        ("\0", "line "),
        ("", "no command line of tritonserver found"),
    ],
    ids=["broken", "in itself", "deep", "anchors", "none", "zero", "empty"],
)
def test_wrong_files(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    status, _, err = migrate(file)
    assert status == 2 and str(file) in err and said in err, err


def test_lists_that_never_end_are_cut(tmp_path: Path, models: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text("command: [tritonserver, --model-repository=/m" + ", --log-info=true" * 10000 + "]\n")
    status, out, _ = migrate(*here(models), file)
    assert status == 1 and ("unknown", "the rest", "more than 4096 words, which are not looked at") in told(out) and "options: 4095 taken" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "usage: nereid migrate"), (["--"], "begins with tritonserver"), (["--", "ls"], "begins with tritonserver"), (["--what"], "unknown argument"),
     (["/no/such/file.yaml"], "/no/such/file.yaml"), (["--repository=/m"], "no command line is given")],
)  # fmt: skip
def test_wrong_command_lines(arguments: list[str], said: str) -> None:
    status, out, err = migrate(*arguments)
    assert status == 2 and said in err and out == ""


def test_help() -> None:
    status, out, _ = migrate("--help")
    assert status == 0 and "Exit status" in out
    everything = subprocess.run([str(paths.nereid_binary()), "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert "nereid migrate" in everything
