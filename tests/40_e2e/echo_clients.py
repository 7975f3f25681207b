"""Many clients that ask a model for an echo again and again, as a process of their own: in the test's own, threads that are never idle
would keep it from what it is about.

    echo_clients.py HTTP_ADDRESS GRPC_ADDRESS MODEL

Half of them ask over HTTP, half over gRPC. Writes an empty line once each of them was answered, or failed; when its input ends, a line of JSON: what
was wrong, as a list of texts.
"""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
from harness import rawgrpc, rawhttp  # noqa: E402
from tritonclient.grpc import service_pb2 as pb  # noqa: E402

CLIENTS = 64


class Clients:
    def __init__(self, http: str, grpc: str, model: str):
        self.http = http
        self.grpc = grpc
        self.model = model
        self.stop = threading.Event()
        self.wrong: list[str] = []
        self.begun = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self._run, args=(me,)) for me in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def wait_until_begun(self) -> None:
        for _ in self.threads:
            self.begun.acquire()

    def end(self) -> list[str]:
        self.stop.set()
        for thread in self.threads:
            thread.join()
        return self.wrong

    def _run(self, me: int) -> None:
        try:
            (self._over_grpc if me % 2 else self._over_http)(me)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test fails with it
            self.wrong.append(repr(error))
            self.begun.release()

    def _again_and_again(self, ask: Callable[[int], str]) -> None:
        """What `ask` returns is what was wrong with the answer."""
        number = 0
        while not self.stop.is_set():
            wrong = ask(number)
            if wrong:
                self.wrong.append(wrong)
            if number == 0:
                self.begun.release()
            number += 1

    def _over_http(self, me: int) -> None:
        host, port = self.http.rsplit(":", 1)
        connection = rawhttp.Connection(host, int(port))

        def ask(number: int) -> str:
            data = [float(me), float(number)]
            body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": data}]}).encode()
            got = connection.ask("POST", f"/v2/models/{self.model}/infer", body)
            good = got.status == 200 and got.json()["outputs"][0]["data"] == data
            return "" if good else f"{got.status} {got.body[:200]!r}"

        self._again_and_again(ask)
        connection.close()

    def _over_grpc(self, me: int) -> None:
        with rawgrpc.Channel(self.grpc) as channel:

            def ask(number: int) -> str:
                raw = np.array([me, number], np.float32).tobytes()
                got = channel.call("ModelInfer", rawgrpc.infer_request(self.model, [("INPUT0", "FP32", [2], raw)]))
                good = got.code == "OK" and got.parse(pb.ModelInferResponse).raw_output_contents[0] == raw
                return "" if good else f"{got.code} {got.details}"

            self._again_and_again(ask)


def main() -> None:
    clients = Clients(*sys.argv[1:])
    clients.wait_until_begun()
    print(flush=True)
    sys.stdin.read()
    print(json.dumps(clients.end()))


if __name__ == "__main__":
    main()
