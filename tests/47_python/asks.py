"""Asks one server, over the real client, in a form that can be compared."""

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import rawhttp
from harness.pause import pause
from harness.servers import Server
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc as pb_grpc
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

OPTIONS = [("grpc.max_receive_message_length", 1 << 30), ("grpc.max_send_message_length", 1 << 30)]
WITHIN = 120  # seconds for any answer
# The backend takes a stub for dead, while it loads its model, that has not had its turn for a second, as it happens on a crowded machine.
NO_TURN = "is not healthy"


def words(*texts: str | bytes) -> np.ndarray:
    return np.array(texts, dtype=np.object_)


def failure(error: InferenceServerException) -> dict[str, Any]:
    return {"status": error.status(), "message": error.message()}


class Asker:
    def __init__(self, server: Server):
        self.server = server
        self.grpc = grpcclient.InferenceServerClient(server.grpc, channel_args=OPTIONS)

    def close(self) -> None:
        self.grpc.close()

    # -- inference --

    @staticmethod
    def tensors(module: Any, inputs: dict[str, np.ndarray]) -> list[Any]:
        made = []
        for name, array in inputs.items():
            tensor = module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            tensor.set_data_from_numpy(array)
            made.append(tensor)
        return made

    def infer(
        self, model: str, inputs: dict[str, np.ndarray], outputs: list[str] | None = None, protocol: str = "grpc", **more: Any
    ) -> dict[str, Any]:
        """All outputs by name as (type, shape, bytes); or the failure."""
        module = grpcclient if protocol == "grpc" else httpclient
        wanted = [module.InferRequestedOutput(name) for name in outputs] if outputs else None
        tensors = self.tensors(module, inputs)
        try:
            if protocol == "grpc":
                result = self.grpc.infer(model, tensors, outputs=wanted, client_timeout=WITHIN, **more)
            else:  # its client belongs to the thread that made it
                with httpclient.InferenceServerClient(self.server.http, network_timeout=WITHIN) as client:
                    result = client.infer(model, tensors, outputs=wanted, **more)
        except InferenceServerException as error:
            return failure(error)
        return self.shown(result)

    @staticmethod
    def shown(result: Any) -> dict[str, Any]:
        response = result.get_response()
        outputs = response["outputs"] if isinstance(response, dict) else response.outputs
        names = [each["name"] if isinstance(each, dict) else each.name for each in outputs]
        shown = {}
        for name in names:
            array = result.as_numpy(name)
            data = array.tolist() if array.dtype == np.object_ else array.tobytes()
            shown[name] = (str(array.dtype), array.shape, data)
        return shown

    def told(self, model: str, ask: str | bytes | dict[str, Any], **more: Any) -> Any:
        """Asks a model with ASK and TOLD a word; its answer as text, or the failure."""
        if isinstance(ask, dict):
            ask = json.dumps(ask)
        answer = self.infer(model, {"ASK": words(ask)}, **more)
        told = answer["TOLD"][2][0] if "TOLD" in answer else None
        return told.decode() if isinstance(told, bytes) else answer

    def asked(self, model: str, ask: dict[str, Any], **more: Any) -> Any:
        """The same where the answer is JSON."""
        told = self.told(model, ask, **more)
        return json.loads(told) if isinstance(told, str) else told

    def asked_start(self, model: str) -> Any:
        return json.loads(self.told(model, "start"))

    def at_once(self, ask: Callable[[int], Any], count: int) -> list[Any]:
        """The answers to `count` questions asked together, in order."""
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(ask, range(count)))

    def stream(self, model: str, inputs: dict[str, np.ndarray], request_id: str = "", cancel_after: int = 0) -> list[Any]:
        """All responses to one request over a stream that is then closed from this side; cancel_after: until so many came."""
        tensors = self.tensors(grpcclient, inputs)
        ask = pb.ModelInferRequest(model_name=model, id=request_id)
        ask.parameters["triton_enable_empty_final_response"].bool_param = True
        for tensor in tensors:
            ask.inputs.append(tensor._get_tensor())
            ask.raw_input_contents.append(tensor._get_content())
        got: list[Any] = []
        with grpc.insecure_channel(self.server.grpc, options=OPTIONS) as channel:
            call = pb_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(iter([ask]), timeout=WITHIN)
            for response in call:
                got.append(self._streamed(response))
                if len(got) == cancel_after:
                    call.cancel()
                    break
        return got

    @classmethod
    def _streamed(cls, response: pb.ModelStreamInferResponse) -> dict[str, Any]:
        if response.error_message:
            return {"error": response.error_message}
        inner = response.infer_response
        final = inner.parameters["triton_final_response"].bool_param if "triton_final_response" in inner.parameters else None
        return {"id": inner.id, "final": final, **cls.shown(grpcclient.InferResult(inner))}

    def start(self, model: str, inputs: dict[str, np.ndarray]) -> Any:
        """A request under way; cancel() of what is returned gives it up."""
        return self.grpc.async_infer(model, self.tensors(grpcclient, inputs), callback=lambda result, error: None)

    # -- the rest --

    @staticmethod
    def until(holds: Callable[[], bool]) -> None:
        """Asks again and again until it holds."""
        deadline = time.monotonic() + WITHIN
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"does not hold after {WITHIN} s")
            pause(0.02)

    def metric(self, name: str, model: str) -> float:
        """One number of the metrics page."""
        text = rawhttp.get(self.server.metrics, "/metrics").body.decode()
        row = re.search(rf'^{name}\{{[^}}]*model="{model}"[^}}]*\}} (\S+)$', text, re.MULTILINE)
        assert row, f"no {name} of {model}"
        return float(row.group(1))

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status, and what came back, as JSON where it is JSON."""
        host, port = self.server.http.split(":")
        sent = None if body is None else json.dumps(body).encode()
        answer = rawhttp.request(host, int(port), method, path, sent, timeout=WITHIN)
        try:
            return answer.status, json.loads(answer.body) if answer.body else None
        except ValueError:
            return answer.status, answer.body

    def get(self, path: str) -> tuple[int, Any]:
        return self.ask("GET", path)

    def once_it_has_turns(self, ask: Callable[[], Any]) -> Any:
        """The answer to what loads a model; asked anew as long as the stub had no turn."""
        answers: list[Any] = []

        def answered() -> bool:
            answers.append(ask())
            return NO_TURN not in str(answers[-1])

        self.until(answered)
        return answers[-1]

    def load(self, model: str, parameters: dict[str, str] | None = None) -> tuple[int, Any]:
        body = {"parameters": parameters} if parameters else {}
        return self.once_it_has_turns(lambda: self.ask("POST", f"/v2/repository/models/{model}/load", body))

    def unload(self, model: str) -> tuple[int, Any]:
        self.server.rest()
        return self.ask("POST", f"/v2/repository/models/{model}/unload", {})

    def ready(self, model: str) -> int:
        return self.get(f"/v2/models/{model}/ready")[0]

    def log_since(self, offset: int) -> str:
        return self.server.process.log(offset=offset)

    def log_size(self) -> int:
        return self.server.process.log_path.stat().st_size
