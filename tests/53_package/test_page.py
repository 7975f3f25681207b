"""The examples of docs/user/python-package.md, run as they stand."""

import json
import re
from pathlib import Path

import pytest
from conftest import Packaged, Script
from harness import paths, rawhttp

BLOCKS = re.findall(r"^```python\n(.*?)^```$", (paths.ROOT / "docs" / "user" / "python-package.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.onnx
def test_digits_in_ten_lines(script: Script, digits: Path) -> None:
    example = next(block for block in BLOCKS if "digits" in block)
    assert len(example.splitlines()) <= 10
    example = example.replace('"models"', "sys.argv[1]").replace("8000", "0, grpc_port=0, metrics_port=0")
    assert script(f"image = np.zeros((1, 64), np.float32)\n{example}\ntold = list(outputs['logits'].shape)", digits) == [1, 10]


def test_function_in_ten_lines(python: Path, tmp_path: Path) -> None:
    example = next(block for block in BLOCKS if "nereid.serve" in block)
    assert len([line for line in example.splitlines() if line]) <= 10
    ports = '"**{e[2:].split("=")[0].replace("-", "_"): e.split("=")[1] for e in sys.argv[1:]}'
    (tmp_path / "page.py").write_text("import sys\n" + example.replace("http_port=8000, grpc_port=8001", ports[1:]))
    with Packaged(python, tmp_path / "page.py", []) as server:
        body = {"inputs": [{"name": name, "datatype": "FP32", "shape": [2], "data": [1, 2.5]} for name in ("a", "b")]}
        answer = rawhttp.post(server.http, "/v2/models/add/infer", json.dumps(body).encode())
        assert answer.json()["outputs"][0]["data"] == [2.0, 5.0]
