"""A backend may send the response and the final flag apart, and on two threads: the flag comes last all the same."""

from pathlib import Path

import pytest
from conftest import BOTH
from harness import rawhttp
from harness.repository import Repository
from harness.servers import serving
from witness import compile_backend

TENSORS = """
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
STEP = 'step {{ model_name: "halves" model_version: -1 input_map {{ key: "INPUT0" value: "{}" }} output_map {{ key: "OUTPUT0" value: "{}" }} }}'
BODY = {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [1]}]}


@pytest.mark.parametrize("kind", BOTH)
def test_the_final_flag_of_another_thread(kind: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.model("halves", f'name: "halves"\nbackend: "halves"\n{TENSORS}instance_group [ {{ kind: KIND_CPU }} ]\n')
    steps = STEP.format("INPUT0", "between") + STEP.format("between", "OUTPUT0")
    repository.model("twice", f'name: "twice"\nplatform: "ensemble"\n{TENSORS}ensemble_scheduling {{ {steps} }}\n')
    backends = str(compile_backend(tmp_path / "backends", "halves"))
    with serving(kind, repository.path, {"backend-directory": backends}) as server:
        for model in ("halves", "twice"):
            answer = rawhttp.post(server.http, f"/v2/models/{model}/infer", BODY)
            assert answer.status == 200, answer.body
            assert answer.json()["outputs"][0]["data"] == [7]
