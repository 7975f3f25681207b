"""The commands of pages of docs/user, run as they stand. Those that no machine of tests can run say why, and what does run them."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import paths, ports, rawhttp
from harness.repository import Repository
from harness.servers import KINDS, Nereid

pytestmark = pytest.mark.once

PAGES = [
    pytest.param(path.stem, marks=[pytest.mark.onnx] if "build/models" in text else [])
    for path in sorted((paths.ROOT / "docs" / "user").glob("*.md"))
    if "\n```sh\n" in (text := path.read_text())
]
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "=== end of block"

# What stands in an indented block, or in one without a language, and begins a line with one of these is a command.
COMMANDS = re.compile(
    r"^\s*(?:(?:sudo|env|export)\s+)?(?:[A-Z_]+=\S+\s+)*(?:nereid|tritonserver|curl|wget|make|pip|apt|apt-get|helm|kubectl|docker|podman|skopeo|tar|gzip|grpcurl|"
    r"python3?|node|cc|cmake|ctest|tools/\S+|build/\S+|cp|mkdir|systemctl|journalctl)\s+(?=\S)",
    re.MULTILINE,
)
# page -> the words with which such a block begins -> why it is not run here, and the test that stands for it.
NOT_RUN = {
    "caffe2": {"make run": "builds; what it then serves: tests/52_backends"},
    "cloud-repositories": {"nereid --model-repository=s3://bucket/models": "needs stores: tests/51_stores serves models out of some"},
    "command-line": {
        "nereid --model-repository=DIRECTORY": "the form, not a command",
        "build/release/bin/nereid": "is how every test starts the server",
    },
    "deploy": {
        "apt install": "changes the machine: tests/56_debian installs it in a clean Debian",
        "skopeo copy": "wants a registry and Docker: tests/54_deploy reads the image by umoci",
        "helm install": "wants a cluster: tests/54_deploy renders these values and checks what comes out",
    },
    "gpu": {"cmake --preset release": "wants TensorRT's headers, which are NVIDIA's to give"},
    "logs": {"nereid 0.1.0 crashed": "what a crash says, not a command"},
    "network": {"grpcurl -plaintext": "no package of Debian has it: tests/40_e2e/test_reflection.py asks the same calls"},
    "onnxruntime": {"pip install onnxruntime-gpu": "wants a GPU: tests/75_gpu is served by that package"},
    "openvino": {"make run": "builds: tests/52_backends serves the models"},
    "python": {"tools/setup.sh python": "fetches and compiles the other python backend: tests/47_python uses it"},
    "python-package": {"make wheel": "builds: tests/53_package installs the wheel, and test_page.py there runs the examples"},
    "pytorch": {
        "make run": "builds: tests/52_backends serves the models",
        "tools/setup.sh run": "wants a PyTorch with CUDA: tests/75_gpu on a machine with a GPU",
    },
    "README": {
        "make run": "builds and serves until Ctrl-C",
        "curl -s localhost:8000/v2/models/digits/infer": "run by the test below",
    },
    "sagemaker-vertex": {
        "export SAGEMAKER": "takes the fixed port 8080: tests/40_e2e/test_clouds.py takes others",
        "export AIP_PREDICT": "takes the fixed port 8080: tests/40_e2e/test_clouds.py takes others",
    },
    "sequences": {
        "curl -s localhost:8000/v2/models/counter": "a model of which the page shows a part: tests/40_e2e/test_sequences.py",
        "curl -s localhost:8000/v2/models/total": "run by tests/40_e2e/test_states_onnx.py::test_the_page, which makes the model",
    },
    "tensorflow": {"make run": "builds: tests/52_backends serves the models"},
    "tracing": {"nereid --model-repository=models --trace-config mode=opentelemetry": "wants a collector: tests/40_e2e/test_telemetry.py is one"},
}
# A server started in the background ends with the shell.
PRELUDE = """\
set -e
PATH={venv}/bin:$PATH
nereid() {{
    if [ "$1" = bench ]; then {binary} "$@" || [ $? = 3 ]; return; fi  # 3: not stable, as a busy machine is
    if [ "$1" = check ]; then {binary} "$@" --backend-directory={build}/backends; return; fi
    if [ "$1" = migrate ]; then shift; {binary} migrate --backend-directory={build}/backends "$@"; return; fi
    exec {binary} --backend-directory={build}/backends --cache-directory={build}/caches --repoagent-directory={build}/repoagents \\
        --http-port={http} --grpc-port={grpc} --metrics-port={metrics} --openai-port={openai} "$@" >log 2>&1
}}
trap 'servers=$(jobs -p); [ -z "$servers" ] || kill $servers; wait' EXIT
"""


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_print_what_the_page_says(tmp_path: Path, page: str) -> None:
    http, grpc, metrics, openai = (ports.free_port() for _ in range(4))
    listen = {"http": http, "grpc": grpc, "metrics": metrics, "openai": openai}
    script = PRELUDE.format(binary=paths.nereid_binary(), build=paths.BUILD, venv=paths.ROOT / "build" / "venv", **listen)
    expected: list[str] = []
    for kind, text in BLOCK.findall((paths.ROOT / "docs" / "user" / f"{page}.md").read_text()):
        if kind == "sh":
            text = text.replace("/opt/tritonserver/include", str(paths.ROOT / "include"))
            text = re.sub(r"(?<![\w/])(build/models|tools/python_models)(?![\w-])", rf"{paths.ROOT}/\1", text)
            script += text.replace("localhost:8000", f"127.0.0.1:{http}").replace("localhost:9000", f"127.0.0.1:{openai}") + f"echo; echo '{MARK}'\n"
            expected.append("")
        else:
            expected[-1] = text
    got = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    log = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
    assert got.returncode == 0, got.stdout + got.stderr + log
    printed = [part.split() for part in got.stdout.split(MARK)[:-1]]
    assert printed == [text.split() for text in expected], log


def _unrun_blocks(text: str) -> list[str]:
    """The blocks with a command that are not run by the test above."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    others = [block for language, block in fence.findall(text) if not language]
    plain = fence.sub("", text)
    return [block.strip() for block in others + re.findall(r"(?:^ {4}.*\n)+", plain, re.MULTILINE) if COMMANDS.search(block)]


def test_what_is_not_run_says_why() -> None:
    """A block with a command is one of ```sh, which is run, or it has a reason here; a reason that is for nothing goes."""
    pages = set((paths.ROOT / "docs" / "user").glob("*.md")) - {paths.ROOT / "docs" / "user" / "README.md"}
    for path in sorted(pages | {paths.ROOT / "README.md"}):
        reasons = NOT_RUN.get(path.stem, {})
        blocks = _unrun_blocks(path.read_text())
        for block in blocks:
            assert any(block.startswith(words) for words in reasons), f"{path.name}: nothing runs this, and no reason is given: {block}"
        for words, reason in reasons.items():
            assert reason and any(block.startswith(words) for block in blocks), f"{path.name} has no such block any more: {words}"


@pytest.mark.onnx
def test_the_first_command() -> None:
    """Of README.md: it classifies a digit."""
    (command,) = re.findall(r"^ {4}(curl .*/digits/infer .*)$", (paths.ROOT / "README.md").read_text(), re.MULTILINE)
    with Nereid(paths.need(paths.SAMPLE_MODELS)) as server:
        said = subprocess.run(["bash", "-ec", command.replace("localhost:8000", server.http)], cwd=paths.ROOT, capture_output=True, text=True, check=True)
    (output,) = json.loads(said.stdout)["outputs"]
    assert output["data"][0].endswith(":7:seven"), output


@pytest.mark.parametrize("kind", ["nereid", pytest.param("reference", marks=pytest.mark.reference)])
def test_the_backend_in_c(tmp_path: Path, kind: str) -> None:
    """The one of the page, built from its text without a warning, in both servers: answers, errors, statistics."""
    page = (paths.ROOT / "docs" / "user" / "backends-in-c.md").read_text()
    (source,) = re.findall(r"^cat > softmax\.c <<'END'\n(.*?)^END$", page, re.MULTILINE | re.DOTALL)
    assert len([line for line in source.splitlines() if line.strip()]) <= 100
    (tmp_path / "softmax.c").write_text(source)
    repository = Repository(tmp_path / "models")
    for name, datatype in (("shares", "FP32"), ("wrong", "INT32")):
        dims = f"data_type: TYPE_{datatype} dims: [ -1 ]"
        folder = repository.model(name, f'backend: "softmax" max_batch_size: 8 input {{ name: "IN" {dims} }} output {{ name: "OUT" {dims} }}')
        argv = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", paths.ROOT / "include", "softmax.c", "-lm"]
        subprocess.run([*argv, "-o", folder / "libtriton_softmax.so"], cwd=tmp_path, check=True)
    values = np.array([[1, 2, 3], [-80, 0, 80]], np.float32)
    with KINDS[kind](repository.path) as server:
        ask = {"name": "IN", "datatype": "FP32", "shape": [2, 3], "data": values.ravel().tolist()}
        answer = rawhttp.post(server.http, "/v2/models/shares/infer", {"inputs": [ask]})
        assert answer.status == 200, answer.body
        powers = np.exp(values - values.max(axis=1, keepdims=True))
        got = np.array(answer.json()["outputs"][0]["data"], np.float32).reshape(2, 3)
        np.testing.assert_allclose(got, powers / powers.sum(axis=1, keepdims=True), rtol=1e-6)
        answer = rawhttp.post(server.http, "/v2/models/wrong/infer", {"inputs": [ask | {"datatype": "INT32", "data": [1] * 6}]})
        assert (answer.status, answer.json()) == (400, {"error": "IN has to be a batch of FP32"})
        for name, counts in (("shares", (2, 1, 1, 0)), ("wrong", (0, 0, 0, 1))):
            stats = server.statistics(name)
            inner = stats["inference_stats"]
            assert (stats["inference_count"], stats["execution_count"], inner["success"]["count"], inner["fail"]["count"]) == counts, name


def _anchors(text: str) -> set[str]:
    """The names that headings get as targets of links."""
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_links_lead_somewhere() -> None:
    """Of every page to a page, a heading of it, or a picture; and the index has every page."""
    folder = paths.ROOT / "docs" / "user"
    pages = [paths.ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")] + [
        page for place in ("user", "internals", "decisions") for page in (paths.ROOT / "docs" / place).glob("*.md")
    ]
    pages += (paths.ROOT / "examples").rglob("README.md")
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", page.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            to = page.parent / name if name else page
            assert to.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in _anchors(to.read_text()), f"{page.name}: {target}"
    listed = set(re.findall(r"\]\((\w[\w-]*\.md)\)", (folder / "README.md").read_text()))
    assert listed == {page.name for page in folder.glob("*.md")} - {"README.md"}
