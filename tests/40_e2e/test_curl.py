"""What a person types: curl, and nothing of ours on the client's side."""

import json
import subprocess

from harness.servers import Server


def _curl(*argv: str) -> str:
    return subprocess.run(
        ["curl", "-sS", "--fail-with-body", "--max-time", "60", *argv],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_infer(server: Server) -> None:
    request = '{"inputs":[{"name":"INPUT0","shape":[3],"datatype":"FP32","data":[1.5,-2,0]}]}'
    answer = json.loads(_curl("-d", request, f"http://{server.http}/v2/models/id_fp32/infer"))
    assert answer == {
        "model_name": "id_fp32",
        "model_version": "1",
        "outputs": [{"name": "OUTPUT0", "datatype": "FP32", "shape": [3], "data": [1.5, -2, 0]}],
    }


def test_health(server: Server) -> None:
    assert _curl("-o", "/dev/null", "-w", "%{http_code}", f"http://{server.http}/v2/health/ready") == "200"


def test_large_body_with_expect(server: Server, tmp_path) -> None:
    """curl asks with Expect: 100-continue before it sends more than 1 MiB."""
    request = tmp_path / "request.json"
    values = list(range(300_000))
    request.write_text(
        json.dumps(
            {"inputs": [{"name": "INPUT0", "shape": [len(values)], "datatype": "INT32", "data": values}]}
        )
    )
    answer = json.loads(
        _curl("--data-binary", f"@{request}", f"http://{server.http}/v2/models/id_int32/infer")
    )
    assert answer["outputs"][0]["data"] == values
