"""Loads with files by the hundred are served; how many there may be is limited, since network threads look at them."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from harness import rawgrpc, rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server
from tritonclient.grpc import service_pb2 as pb

pytestmark = pytest.mark.threadless

MOST = 10_000
TENSOR = {"data_type": "TYPE_FP32", "dims": [-1]}
CONFIG = json.dumps({"backend": "identity", "input": [{"name": "INPUT0"} | TENSOR], "output": [{"name": "OUTPUT0"} | TENSOR]})


@pytest.fixture(scope="module")
def explicit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path: Path = tmp_path_factory.mktemp("load") / "models"
    Repository(path)
    with Nereid(path, {"model-control-mode": "explicit"}) as server:
        yield server


def _over_http(server: Server, names: list[str]) -> tuple[str, str]:
    files = {f"file:{name}": base64.b64encode(name.encode()).decode() for name in names}
    body = json.dumps({"parameters": {"config": CONFIG, **files}}).encode()
    answer = rawhttp.post(server.http, "/v2/repository/models/many/load", body)
    return str(answer.status), "" if answer.status == 200 else answer.json()["error"]


def _over_grpc(server: Server, names: list[str]) -> tuple[str, str]:
    request = pb.RepositoryModelLoadRequest(model_name="many")
    request.parameters["config"].string_param = CONFIG
    for name in names:
        request.parameters[f"file:{name}"].bytes_param = name.encode()
    with rawgrpc.Channel(server.grpc) as channel:
        answer = channel.call("RepositoryModelLoad", request)
    return answer.code, answer.details


def test_hundreds_of_files_of_a_client(explicit: Server) -> None:
    files = {f"file:1/part/{number}": bytes([number % 256]) * 100 for number in range(700)}
    with triton_http.InferenceServerClient(explicit.http) as over_http:
        over_http.load_model("of_http", config=CONFIG, files=files)
        assert over_http.is_model_ready("of_http")
    with triton_grpc.InferenceServerClient(explicit.grpc) as over_grpc:
        over_grpc.load_model("of_grpc", config=CONFIG, files=files)
        assert over_grpc.is_model_ready("of_grpc")


def test_more_than_anybody_has(explicit: Server) -> None:
    names = [f"1/f{number}" for number in range(6 * MOST)]
    error = f"too many load parameters: expected at most {MOST}"
    assert _over_http(explicit, names) == ("400", error)
    assert _over_grpc(explicit, names) == ("INVALID_ARGUMENT", error)
    long = [f"1/{'x' * 250}/{number}" for number in range(MOST - 1)]
    error = "too many file parameters: their names may have 1048576 bytes together"
    assert _over_http(explicit, long) == ("400", error)
    assert _over_grpc(explicit, long) == ("INVALID_ARGUMENT", error)
    assert _over_http(explicit, ["1/a", "1/b"]) == ("200", "")


def test_the_same_file_twice(explicit: Server) -> None:
    """Over HTTP, where JSON lets a name be there twice."""
    text = json.dumps({"parameters": {"config": CONFIG, "file:1/a": "", "file:1/b": "", "file:1/c": ""}})
    answer = rawhttp.post(explicit.http, "/v2/repository/models/many/load", text.replace("1/c", "1/a").encode())
    assert answer.status == 400
    assert answer.json()["error"] == "file parameter 'file:1/a' is given twice"
