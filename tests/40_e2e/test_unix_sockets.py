"""Front ends at Unix sockets: --http-address, --grpc-address and --metrics-address as unix:PATH."""

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from harness import paths, rawgrpc, rawhttp
from harness.load_tester import bench, measured
from harness.repository import Repository
from harness.servers import Nereid
from tritonclient.grpc import service_pb2 as pb

BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'


class Connection(rawhttp.Connection):
    def __init__(self, path: Path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        self._left = bytearray()


class AtSockets(Nereid):
    """All three front ends have sockets in a folder."""

    def __init__(self, folder: Path, repository: Path):
        self.at = {name: folder / f"{name}.socket" for name in ("http", "grpc", "metrics")}
        super().__init__(repository, {f"{name}-address": f"unix:{path}" for name, path in self.at.items()})

    def ready(self) -> bool:
        try:
            with Connection(self.at["http"]) as connection:
                return connection.ask("GET", "/v2/health/ready").status == 200
        except OSError:
            return False


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short name: that of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        yield Path(made)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    made = Repository(tmp_path / "models")
    made.identity("one")
    return made.path


def test_each_front_end_has_its_own(folder: Path, models: Path) -> None:
    with AtSockets(folder, models) as server:
        with Connection(server.at["http"]) as connection:
            assert connection.ask("POST", "/v2/models/one/infer", BODY).json()["outputs"][0]["data"] == [1, 2]
            assert connection.ask("GET", "/metrics").status == 404
        with grpc.insecure_channel(f"unix:{server.at['grpc']}") as channel:
            asked = pb.ModelReadyRequest(name="one").SerializeToString()
            ready = channel.unary_unary(f"/{rawgrpc.SERVICE}/ModelReady")(asked, timeout=60)
            assert pb.ModelReadyResponse.FromString(ready).ready
        with Connection(server.at["metrics"]) as connection:
            assert b'nv_inference_count{model="one",version="1"} 1' in connection.ask("GET", "/metrics").body


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_load_tester_names_it(folder: Path, models: Path, protocol: str) -> None:
    with AtSockets(folder, models) as server:
        where = f"unix:{server.at[protocol]}"
        asked = ["-i", protocol, "-u", where, "-p", "50", "--max-trials", "1", "--shape", "INPUT0:1"]
        assert f" at {where}\n" in measured("-m", "one", *asked)
        status, _, err = bench("-m", "no", *asked)
        assert status == 1 and f"model 'no' at {where}: " in err, err


def test_the_socket_of_a_server_that_is_gone_is_used_again(folder: Path, models: Path) -> None:
    gone = AtSockets(folder, models).start()
    gone.kill()
    assert gone.at["http"].is_socket()
    with AtSockets(folder, models) as again, Connection(again.at["http"]) as connection:
        assert connection.ask("GET", "/v2/health/live").status == 200


@pytest.mark.parametrize(
    ("arguments", "option", "other"),
    [
        (["--http-address=unix:/tmp/x"], "metrics", "http"),
        (["--http-address=unix:/tmp/x", "--grpc-address=unix:/tmp/x"], "grpc", "http"),
        (["--grpc-address=unix:/tmp/x", "--metrics-address=unix:/tmp/x"], "metrics", "grpc"),
    ],
)
def test_one_socket_for_two_is_refused(arguments: list[str], option: str, other: str) -> None:
    argv = [str(paths.nereid_binary()), "--model-repository=/", *arguments]
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 1
    assert f"option --{option}-address: expected an address of its own, found 'unix:/tmp/x', which is that of --{other}-address" in answer.stderr


def _refused(*arguments: str) -> str:
    argv = [str(paths.nereid_binary()), *arguments]
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 1
    return answer.stderr


def test_the_socket_of_a_server_that_runs_is_refused(folder: Path, models: Path) -> None:
    server = AtSockets(folder, models).start()
    repository = f"--model-repository={models}"
    for front, others in (("http", "grpc"), ("grpc", "http")):
        path = server.at[front]
        error = _refused(repository, f"--{front}-address=unix:{path}", f"--allow-{others}=false", "--allow-metrics=false")
        assert f"option --{front}-address: cannot listen on unix:{path}: Address already in use" in error
    with Connection(server.at["http"]) as connection:
        assert connection.ask("GET", "/v2/health/ready").status == 200
    log = server.process.log()
    for service, front in (("GRPCInferenceService", "grpc"), ("HTTPService", "http"), ("Metrics Service", "metrics")):
        assert f'"Started {service} at unix:{server.at[front]}"' in log
    server.stop()
    assert list(folder.iterdir()) == []


def test_a_file_that_is_no_socket_is_left_alone(folder: Path, models: Path) -> None:
    precious = folder / "precious"
    precious.write_text("data")
    only_http = ["--allow-grpc=false", "--allow-metrics=false"]
    error = _refused(f"--model-repository={models}", f"--http-address=unix:{precious}", *only_http)
    assert f"option --http-address: cannot listen on unix:{precious}: something lies there that is no socket" in error
    assert precious.read_text() == "data"


def test_only_its_own_socket_is_removed(folder: Path, models: Path) -> None:
    first = AtSockets(folder, models).start()
    for path in first.at.values():
        path.rename(path.with_suffix(".old"))
    second = AtSockets(folder, models).start()
    first.stop()
    with Connection(second.at["http"]) as connection:
        assert connection.ask("GET", "/v2/health/ready").status == 200
    second.stop()
    assert {path.suffix for path in folder.iterdir()} == {".old"}
