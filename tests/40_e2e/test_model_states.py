"""Models that do not serve, for each reason that there is: every route says the same of them as the reference."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import rawgrpc, rawhttp
from harness.compare import Grpc, Http, Question, compare
from harness.repository import Repository
from harness.servers import KINDS, Server
from tritonclient.grpc import service_pb2 as pb

# What is loaded at the start; "gone" is unloaded again.
LOADED = ["good", "gone", "without", "odd", "picked", "unpicked"]
MODELS = [*LOADED, "never", "empty", "unknown"]
OPTIONS: dict[str, str | list[str]] = {
    "model-control-mode": "explicit",
    "load-model": LOADED,
    "exit-on-error": "false",
    "strict-readiness": "false",
}
BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'
CALLS = {
    "ModelReady": (pb.ModelReadyRequest, pb.ModelReadyResponse),
    "ModelMetadata": (pb.ModelMetadataRequest, pb.ModelMetadataResponse),
    "ModelConfig": (pb.ModelConfigRequest, pb.ModelConfigResponse),
    "ModelStatistics": (pb.ModelStatisticsRequest, pb.ModelStatisticsResponse),
}


def _policy(*versions: int) -> str:
    return f"version_policy {{ specific {{ versions: {list(versions)} }} }}"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    repository = Repository(tmp_path_factory.mktemp("states") / "models")
    for name in ("good", "gone", "never"):
        repository.identity(name)
    for name, folder in (("without", "docs"), ("odd", "v1"), ("empty", "")):
        (repository.path / name / folder).mkdir(parents=True)
    for name in ("without", "odd"):
        repository.identity(name, versions=())
    repository.identity("picked", versions=(1, 2), extra=_policy(1))
    repository.identity("unpicked", extra=_policy(7))
    made = [kind(repository.path, OPTIONS) for kind in KINDS.values()]
    with made[0], made[1]:
        for server in made:
            server.rest()
            rawhttp.post(server.http, "/v2/repository/models/gone/unload", {})
            server.process.wait_until(lambda server=server: _is_gone(server), 60)  # type: ignore[misc]
        yield made


def _is_gone(server: Server) -> bool:
    rows = rawhttp.post(server.http, "/v2/repository/index", {}).json()
    return {"name": "gone", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"} in rows


def _questions(model: str, version: str) -> Iterator[Question]:
    path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "")
    serves = model in ("good", "picked") and version != "2"
    for end in ("", "/ready", "/config", "/stats"):
        if not serves:
            yield Http(f"GET {path}{end}", "GET", path + end)
    yield Http(f"POST {path}/infer", "POST", f"{path}/infer", BODY)
    for call, (request, reply) in CALLS.items():
        if not (serves and call == "ModelStatistics"):
            yield Grpc(f"{call} {model} {version}", call, request(name=model, version=version), reply)
    infer = rawgrpc.infer_request(model, [("INPUT0", "FP32", [1], bytes(4))])
    infer.model_version = version
    yield Grpc(f"ModelInfer {model} {version}", "ModelInfer", infer, pb.ModelInferResponse)


@pytest.mark.reference
@pytest.mark.parametrize("version", ["", "1", "2"])
@pytest.mark.parametrize("model", MODELS)
def test_every_route(servers: list[Server], model: str, version: str) -> None:
    for question in _questions(model, version):
        assert not compare(question, *servers), question.name
