"""A round of everything that clients and operators do, over every protocol, plainly or over TLS. Each answer is looked at."""

import itertools
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tritonclient.grpc as grpcclient
from harness import ensembles, http2, paths, procfs, rawgrpc, rawhttp, recite, regions, tls
from harness.digits import load_digits
from harness.repository import Repository
from harness.servers import HOST, Nereid
from tritonclient.grpc import service_pb2 as pb

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "51_stores"))
import shelf
from faults import Exchange, Fault, Proxy
from odd_store import OddStore
from peers import s3_env

ISOLATED = 'parameters { key: "ISOLATION" value { string_value: "process" } }'
SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'
OPENAI = """parameters { key: "openai" value { string_value: '{"prompt": "text_in", "text": "text_out"}' } }\n"""
SEQUENCE = """\
backend: "identity"
max_batch_size: 32
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "OUTPUT2" data_type: TYPE_INT32 dims: [ 1 ] }
sequence_batching {
  max_sequence_idle_microseconds: 5000000
  control_input [
    { name: "INPUT1" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "INPUT2" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] }
  ]
}
"""
LOADED = ["echo", "slow", "apart", "decoupled", "parrot", "sequence", "chain", "digits"]
OPTIONS: dict[str, str | list[str]] = {"allow-client-shm": "true", "http-header-forward-pattern": "^count$", "allow-openai": "true", "log-info": "false"}
AT_ONCE = 16  # requests


def models(path: Path) -> Repository:
    made = Repository(path)
    for name in ("echo", "guest", "first", "second"):
        made.identity(name)
    made.identity("slow", extra=SLOW)
    made.identity("apart", extra=ISOLATED)
    made.identity("decoupled", extra="model_transaction_policy { decoupled: true }")
    made.model("sequence", SEQUENCE)
    made.model("chain", ensembles.chain("chain", ["first", "second"]).config())
    recite.model(made, "parrot", ("text_in", "BYTES", (1,)), extra=OPENAI)
    for name in ("digits", "digits_auto"):
        shutil.copytree(paths.need(paths.SAMPLE_MODELS / name), made.path / name)
    return made


def read_digits(images: np.ndarray) -> np.ndarray:
    """What the network itself says: logits [images, 10]."""
    session = onnxruntime.InferenceSession(str(paths.SAMPLE_MODELS / "digits" / "1" / "model.onnx"), providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"image": images})
    return logits


def environment(folder: Path) -> dict[str, str]:
    """Of a server that reads from the store."""
    return s3_env(folder / "cache")


@contextmanager
def slow_store() -> Iterator[tuple[OddStore, str]]:
    """A store that takes some hundred milliseconds for a model of 4 KB; what it holds, and its address."""

    def slow(exchange: Exchange, rng: object) -> Fault:
        return Fault(step=256, pause_per_step=0.02)

    with OddStore(shelf.identity("far")) as store, Proxy(store.port, slow) as proxy:
        yield store, f"s3://{HOST}:{proxy.port}/bucket"


@dataclass(frozen=True)
class Doors:
    """How clients reach a server: plainly, or over TLS."""

    server: Nereid
    authority: tls.Authority | None = None

    def http(self, port: int = 0) -> rawhttp.Connection:
        port = port or self.server.http_port
        return tls.Connection(port, tls.context(self.authority)) if self.authority else rawhttp.Connection(HOST, port)

    def http2(self) -> http2.Connection:
        return http2.Connection(self.server.http, context=tls.context(self.authority, alpn=["h2"]) if self.authority else None)

    def grpc(self) -> rawgrpc.Channel:
        return rawgrpc.Channel(self.server.grpc, self.authority.cert.read_bytes() if self.authority else None)

    def client(self) -> grpcclient.InferenceServerClient:
        files = {"ssl": True, "root_certificates": str(self.authority.cert)} if self.authority else {}
        return grpcclient.InferenceServerClient(self.server.grpc, **files)


def _infer(*data: float, name: str = "INPUT0", **parameters: object) -> bytes:
    tensor = {"name": name, "datatype": "FP32", "shape": [len(data)], "data": data}
    return json.dumps({"inputs": [tensor], "parameters": parameters}).encode()


def _events(answer: rawhttp.Answer) -> list[str]:
    assert answer.status == 200, answer
    return [each.removeprefix(b"data: ").decode() for each in answer.body.split(b"\n\n") if each.startswith(b"data: ")]


class Work:
    """One server's; `round` does each kind of work once and returns how many milliseconds each took."""

    def __init__(self, folder: Path, repository: Repository, store: OddStore, doors: Doors, certificates: tls.Pair | None = None):
        self.folder, self.repository, self.store, self.doors, self.certificates = folder, repository, store, doors, certificates
        self.server = doors.server
        self.rounds = 0
        self.sequences = itertools.count(1)
        self.kept = doors.http()
        self.kept_http2 = doors.http2()
        self.kept_grpc = doors.grpc()
        self.images = load_digits().data
        self.logits = read_digits(self.images)
        self.kinds: list[Callable[[], object]] = [
            self.http, self.http2, self.grpc, self.network, self.stream, self.events, self.shared_memory, self.openai, self.sequence,
            self.ensemble, self.reload, self.come_and_go, self.network_comes_and_goes, self.slow_store, self.crash, self.cancel, self.vanish, self.mistakes, self.looks,
        ] + ([self.renew] if certificates else [])  # fmt: skip

    def round(self) -> dict[str, float]:
        self.rounds += 1
        took = {}
        for kind in self.kinds:
            begun = time.monotonic()
            kind()
            took[kind.__name__.replace("_", " ")] = 1000 * (time.monotonic() - begun)
        return took

    def close(self) -> None:
        self.kept.close()
        self.kept_http2.close()
        self.kept_grpc.channel.close()

    def _post(self, path: str, body: bytes = b"{}", port: int = 0, headers: dict[str, str] | None = None) -> rawhttp.Answer:
        with self.doors.http(port) as connection:
            return connection.ask("POST", path, body, headers)

    def _done(self, path: str, body: bytes = b"{}") -> None:
        answer = self._post(path, body)
        assert answer.status == 200, (path, answer)

    def _echoes(self, model: str, answer: rawhttp.Answer | None = None, output: str = "OUTPUT0", **names: str) -> None:
        data = [float(self.rounds), 2.5]
        answer = answer or self._post(f"/v2/models/{model}/infer", _infer(*data, **names))
        assert answer.status == 200, answer
        (found,) = (each for each in answer.json()["outputs"] if each["name"] == output)
        assert found["data"] == data, answer

    def _serves_round(self, model: str) -> None:
        """It is served as this round has written it, and no older one."""
        with self.doors.http() as connection:
            parameters = connection.ask("GET", f"/v2/models/{model}/config").json()["parameters"]
        assert parameters["round"]["string_value"] == str(self.rounds), parameters
        self._echoes(model)

    @property
    def _of_round(self) -> str:
        return f'parameters {{ key: "round" value {{ string_value: "{self.rounds}" }} }}'

    def http(self) -> None:
        """One behind the other on a connection that stays, all under way at once."""
        bodies = [_infer(float(number), float(self.rounds)) for number in range(AT_ONCE)]
        self.kept.send(b"".join(rawhttp.head("POST", "/v2/models/echo/infer", None, body) + body for body in bodies))
        for number in range(AT_ONCE):
            answer = self.kept.answer()
            assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [number, self.rounds], answer

    def http2(self) -> None:
        streams = [self.kept_http2.begin("POST", "/v2/models/echo/infer", _infer(float(number), 1.5)) for number in range(AT_ONCE)]
        for number, stream in enumerate(streams):
            call = self.kept_http2.finish(stream)
            assert call.headers[":status"] == "200" and json.loads(call.data)["outputs"][0]["data"] == [number, 1.5], call
            del self.kept_http2.calls[stream]
        self.kept_http2.frames.clear()

    def _ask_over_grpc(self, model: str, name: str, tensor: np.ndarray) -> Any:
        call = self.kept_grpc.channel.unary_unary(f"/{rawgrpc.SERVICE}/ModelInfer")
        inputs = [(name, "FP32", list(tensor.shape), tensor.astype(np.float32).tobytes())]
        return call.future(rawgrpc.infer_request(model, inputs).SerializeToString(), timeout=60)

    def _ask_for_echo(self, model: str, number: float) -> Any:
        return self._ask_over_grpc(model, "INPUT0", np.array([number, self.rounds]))

    def grpc(self) -> None:
        for number, asked in enumerate([self._ask_for_echo("echo", number) for number in range(AT_ONCE)]):
            raw = pb.ModelInferResponse.FromString(asked.result()).raw_output_contents[0]
            assert np.frombuffer(raw, np.float32).tolist() == [number, self.rounds]

    def _reads_digits(self, model: str) -> None:
        """Other images in each round, batched as they come."""
        numbers = [(AT_ONCE * self.rounds + at) % len(self.images) for at in range(AT_ONCE)]
        asked = [self._ask_over_grpc(model, "image", self.images[None, number]) for number in numbers]
        raw = b"".join(pb.ModelInferResponse.FromString(each.result()).raw_output_contents[0] for each in asked)
        np.testing.assert_allclose(np.frombuffer(raw, np.float32).reshape(-1, 10), self.logits[numbers], rtol=1e-5, atol=1e-5)

    def network(self) -> None:
        self._reads_digits("digits")

    def stream(self) -> None:
        got: list[object] = []
        with self.doors.client() as client:
            client.start_stream(lambda result, error: got.append(error or result.as_numpy("OUTPUT0").tolist()))
            for number in range(20):
                tensor = grpcclient.InferInput("INPUT0", [1], "FP32").set_data_from_numpy(np.array([number], np.float32))
                client.async_stream_infer("decoupled", [tensor])
            client.stop_stream()
        assert got == [[float(number)] for number in range(20)], got

    def events(self) -> None:
        body = json.dumps({"text_in": f"round {self.rounds}", "count": 20}).encode()
        events = [json.loads(each) for each in _events(self._post("/v2/models/parrot/generate_stream", body))]
        assert [(each["INDEX"], each["text_out"]) for each in events] == [(number, f"round {self.rounds}") for number in range(20)], events

    def shared_memory(self) -> None:
        tensor = np.arange(256, dtype=np.float32) + self.rounds
        raw = tensor.tobytes()
        with regions.Memory(2 * len(raw), raw) as memory:
            name = memory.key[1:]
            given = {"key": memory.key, "offset": 0, "byte_size": memory.size}
            self._done(f"{regions.SYSTEM}/region/{name}/register", json.dumps(given).encode())
            body = regions.body([256], regions.part(name, len(raw)), regions.part(name, len(raw), len(raw)))
            self._done("/v2/models/echo/infer", body)
            assert memory.read(len(raw), len(raw)) == raw
            self._done(f"{regions.SYSTEM}/region/{name}/unregister")

    def openai(self) -> None:
        port, prompt = int(str(self.server.options["openai-port"])), f"round {self.rounds}"
        asked = {"model": "parrot", "prompt": prompt}
        whole = self._post("/v1/completions", json.dumps(asked).encode(), port)
        assert whole.status == 200 and whole.json()["choices"][0]["text"] == prompt, whole
        *chunks, done = _events(self._post("/v1/completions", json.dumps(asked | {"stream": True}).encode(), port, {"count": "5"}))
        assert "".join(json.loads(each)["choices"][0]["text"] for each in chunks) == 5 * prompt and done == "[DONE]", chunks

    def sequence(self) -> None:
        """One from its beginning to its end, and one that is never ended: the server gives it up."""
        for length, asked in ((5, 5), (5, 2)):
            number = next(self.sequences)
            for at in range(asked):
                first, last = at == 0, at == length - 1
                tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [at]}
                parameters = {"sequence_id": number, "sequence_start": first, "sequence_end": last}
                answer = self._post("/v2/models/sequence/infer", json.dumps({"inputs": [tensor], "parameters": parameters}).encode())
                assert answer.status == 200, answer
                found = {each["name"]: each["data"] for each in answer.json()["outputs"]}
                assert found == {"OUTPUT0": [at], "OUTPUT1": [first], "OUTPUT2": [last]}, found

    def ensemble(self) -> None:
        self._echoes("chain", name="IN", output="OUT")

    def reload(self) -> None:
        self.repository.identity("echo", extra=self._of_round)
        self._done("/v2/repository/models/echo/load")
        self._serves_round("echo")

    def come_and_go(self) -> None:
        self._done("/v2/repository/models/guest/load")
        self._echoes("guest")
        self._done("/v2/repository/models/guest/unload")

    def network_comes_and_goes(self) -> None:
        self._done("/v2/repository/models/digits_auto/load")
        self._reads_digits("digits_auto")
        self._done("/v2/repository/models/digits_auto/unload")

    def slow_store(self) -> None:
        self.store.files |= shelf.identity("far", extra=self._of_round) | {"far/1/weights.bin": shelf.content(str(self.rounds), 4000)}
        self._done("/v2/repository/models/far/load")
        self._serves_round("far")
        self.store.requests.clear()

    def crash(self) -> None:
        """The process of an isolated model is killed; another one takes its place."""
        self._echoes("apart")
        (child,) = procfs.children(self.server.pid)
        os.kill(child, signal.SIGKILL)

        def serves_again() -> bool:
            answer = self._post("/v2/models/apart/infer", _infer(float(self.rounds), 2.5))
            assert answer.status in (200, 500, 503), answer  # allowed: the process is killed at any time, and in the end it serves
            if answer.status != 200:
                return False
            self._echoes("apart", answer)
            return child not in procfs.children(self.server.pid)

        self.server.process.wait_until(serves_again, 60)

    def cancel(self) -> None:
        """Calls that are taken back while they wait or run; an endless answer whose reader is gone."""
        for asked in [self._ask_for_echo("slow", number) for number in range(8)]:
            asked.cancel()
        mark = self.folder / "cancelled"
        body = json.dumps({"text_in": "for ever", "mark": str(mark), "slow": True}).encode()
        with self.doors.http() as connection:
            connection.send(rawhttp.head("POST", "/v2/models/parrot/generate_stream", None, body) + body)
            connection.socket.recv(1)
            connection.reset()
        self.server.process.wait_until(mark.exists, 60)
        mark.unlink()

    def vanish(self) -> None:
        """Clients that are gone with half a request, while theirs is executed, and without reading."""
        body = _infer(1.0, 2.0)
        text = rawhttp.head("POST", "/v2/models/slow/infer", body=body) + body
        for sent in (text[:40], text[:-1], text, text * 5):
            with self.doors.http() as connection:
                connection.send(sent)
                connection.reset()

    def mistakes(self) -> None:
        body = _infer(1.0, 2.0)
        for path, sent in (("/v2/models/nobody/infer", body), ("/v2/models/echo/infer", body[:-5]), ("/v2/models/echo/infer", b"{}")):
            answer = self._post(path, sent)
            assert 400 <= answer.status <= 500 and answer.json()["error"], answer

    def looks(self) -> None:
        for path in ("/v2", "/v2/models/echo", "/v2/models/echo/config", "/v2/models/stats", "/v2/health/ready", "/nereid/live"):
            with self.doors.http() as connection:
                assert connection.ask("GET", path).status == 200, path
        self._done("/v2/repository/index")
        with self.doors.http(self.server.metrics_port) as connection:
            assert connection.ask("GET", "/metrics").status == 200

    def renew(self) -> None:
        """The server reads it within seconds; every connection of the next rounds is made by one that this authority has signed."""
        assert self.doors.authority and self.certificates
        self.doors.authority.sign().move_to(self.certificates)
