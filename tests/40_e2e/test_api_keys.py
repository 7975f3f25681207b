"""Keys of a file, asked for on every port, and the file when it changes."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from harness import rawhttp
from harness.servers import HOST, Nereid

BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'
INFER = "/v2/models/id_fp32/infer"
KEYS = "# keys of a test\n- health\nkey-of-alice all\nkey-of-bob inference\nkey-of-probe metrics\n"


@pytest.fixture
def keyed(identity_repository: Path, tmp_path: Path) -> Iterator[tuple[Nereid, Path]]:
    file = tmp_path / "keys"
    file.write_text(KEYS)
    with Nereid(identity_repository, {"api-keys": str(file)}) as server:
        yield server, file


def _http(server: Nereid, key: str | None, method: str = "POST", path: str = INFER, name: str = "x-api-key", port: int = 0) -> rawhttp.Answer:
    headers = {name: key} if key else {}
    body = BODY if method == "POST" else None
    return rawhttp.request(HOST, port or server.http_port, method, path, body, headers)


def _grpc(server: Nereid, method: str, key: str | None = None, name: str = "x-api-key") -> grpc.StatusCode:
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
        try:
            call(b"", timeout=60, metadata=[(name, key)] if key else [])
        except grpc.RpcError as e:
            return e.code()
    return grpc.StatusCode.OK


def test_over_http(keyed: tuple[Nereid, Path]) -> None:
    server, _ = keyed
    assert _http(server, None, "GET", "/v2/health/ready").status == 200
    answer = _http(server, None)
    assert (answer.status, answer.reason, answer.header("WWW-Authenticate")) == (401, "Unauthorized", "Bearer")
    assert answer.json() == {"error": "This API needs a key: expecting header 'authorization: Bearer KEY' or 'x-api-key: KEY'"}
    assert _http(server, "key-of-mallory").status == 401
    assert _http(server, "key-of-alice").status == 200
    assert _http(server, "Bearer key-of-bob", name="Authorization").status == 200
    answer = _http(server, "key-of-bob", "GET", "/v2")
    assert (answer.status, answer.json()) == (403, {"error": "The key is not one for this API"})
    for method, path in [("GET", "/nothing"), ("GET", "/v2/models/none"), ("POST", "/v2/repository/index"), ("DELETE", INFER), ("GET", "/v2/logging")]:
        assert _http(server, None, method, path).status == 401, path
    assert _http(server, "key-of-probe", "GET", "/nothing").status == 404


def test_bodies_of_strangers_are_dropped(keyed: tuple[Nereid, Path]) -> None:
    """The next request on the connection is understood; one with the right key, after many wrong ones, too."""
    server, _ = keyed
    with rawhttp.Connection(HOST, server.http_port) as c:
        for i in range(200):
            assert c.ask("POST", INFER, BODY, {"x-api-key": f"guess-{i}"}).status == 401
        assert c.ask("POST", INFER, BODY, {"x-api-key": "key-of-bob"}).status == 200


def test_over_the_port_of_metrics(keyed: tuple[Nereid, Path]) -> None:
    server, _ = keyed
    port = server.metrics_port
    assert _http(server, None, "GET", "/metrics", port=port).status == 401
    assert _http(server, "key-of-bob", "GET", "/metrics", port=port).status == 403
    assert _http(server, "Bearer key-of-probe", "GET", "/metrics", name="authorization", port=port).status == 200
    assert _http(server, None, "GET", "/other", port=port).status == 401


def test_over_grpc(keyed: tuple[Nereid, Path]) -> None:
    server, _ = keyed
    code = grpc.StatusCode
    assert _grpc(server, "ServerLive") == code.OK
    assert _grpc(server, "ServerMetadata") == code.UNAUTHENTICATED
    assert _grpc(server, "ServerMetadata", "key-of-mallory") == code.UNAUTHENTICATED
    assert _grpc(server, "ServerMetadata", "key-of-bob") == code.PERMISSION_DENIED
    assert _grpc(server, "ServerMetadata", "key-of-alice") == code.OK
    assert _grpc(server, "ServerMetadata", "Bearer key-of-alice", "authorization") == code.OK
    assert _grpc(server, "NoSuchMethod") == code.UNAUTHENTICATED
    assert _grpc(server, "NoSuchMethod", "key-of-bob") == code.UNIMPLEMENTED
    assert _grpc(server, "ModelStreamInfer") == code.UNAUTHENTICATED


def test_the_file_changes(keyed: tuple[Nereid, Path]) -> None:
    server, file = keyed
    file.write_text("key-of-carol all\nbroken\n")
    server.process.wait_until(lambda: f"{file}:2: expected a key and its categories, two words" in server.process.log(), 60)
    assert "the API keys stay as they are" in server.process.log()
    assert _http(server, "key-of-alice").status == 200
    file.write_bytes(b"key-of-alice all\n\0key-of-carol all\n")
    server.process.wait_until(lambda: f"{file}: expected text, found a zero byte at offset 17" in server.process.log(), 60)
    file.write_text("\ufeffkey-of-carol all\n", encoding="utf-8")
    server.process.wait_until(lambda: _http(server, "key-of-carol").status == 200, 60)
    assert _http(server, "key-of-alice").status == 401
    assert _http(server, None, "GET", "/v2/health/ready").status == 401
    assert "key-of" not in server.process.log()
