"""Many clients that ask a model for an echo again and again, as a process of their own: in the test's own, threads that are never idle
would keep it from what it is about.

    echo_clients.py HTTP_ADDRESS GRPC_ADDRESS MODEL [SECONDS]

SECONDS  how long each does nothing between two questions; 0

Half of them ask over HTTP, half over gRPC. An answer is what was sent, with the number of the load that answers added to it: 0, so an echo,
unless its input has lines:

    load N         from now on answers may also be of load N
    loaded N K     what is asked from now on is answered by load N; heard once K such answers have come

Each line is answered by a line with N when it was heard.
Writes an empty line once each client was answered, or failed; when its input ends, a line of JSON: what was wrong, as a list of texts.
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
    def __init__(self, http: str, grpc: str, model: str, seconds: str = "0"):
        self.http = http
        self.grpc = grpc
        self.model = model
        self.seconds = float(seconds)
        self.stop = threading.Event()
        self.wrong: list[str] = []
        self.begun = threading.Semaphore(0)
        self.least = self.most = 0  # the loads that may answer what is asked now
        self.told = threading.Semaphore(0)  # answers of the newest load, asked for after it had ended
        self.threads = [threading.Thread(target=self._run, args=(me,)) for me in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def wait_until_begun(self) -> None:
        for _ in self.threads:
            self.begun.acquire()

    def load(self, number: int) -> None:
        self.most = number

    def loaded(self, number: int, answers: int) -> None:
        """Waits for so many answers of this load, or until a client has failed."""
        self.told = threading.Semaphore(0)
        self.least = number
        for _ in range(answers):
            while not self.told.acquire(timeout=1):
                if self.wrong:
                    return

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

    def _again_and_again(self, me: int, ask: Callable[[list[float]], list[float] | str]) -> None:
        """`ask` returns the numbers of the answer, or what was wrong with it."""
        number = 0
        while not self.stop.is_set():
            told, least = self.told, self.least
            got = ask([float(me), float(number)])
            if isinstance(got, str):
                raise AssertionError(got)
            if got[0] - me != got[1] - number or not least <= got[0] - me <= self.most:
                raise AssertionError(f"{got} for {[me, number]}, of the loads {least} to {self.most}")
            if least == self.most:
                told.release()
            if number == 0:
                self.begun.release()
            number += 1
            if self.seconds:
                self.stop.wait(self.seconds)

    def _over_http(self, me: int) -> None:
        host, port = self.http.rsplit(":", 1)
        connection = rawhttp.Connection(host, int(port))

        def ask(data: list[float]) -> list[float] | str:
            body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": data}]}).encode()
            got = connection.ask("POST", f"/v2/models/{self.model}/infer", body)
            return got.json()["outputs"][0]["data"] if got.status == 200 else f"{got.status} {got.body[:200]!r}"

        self._again_and_again(me, ask)
        connection.close()

    def _over_grpc(self, me: int) -> None:
        with rawgrpc.Channel(self.grpc) as channel:

            def ask(data: list[float]) -> list[float] | str:
                raw = np.array(data, np.float32).tobytes()
                got = channel.call("ModelInfer", rawgrpc.infer_request(self.model, [("INPUT0", "FP32", [2], raw)]))
                if got.code != "OK":
                    return f"{got.code} {got.details}"
                return np.frombuffer(got.parse(pb.ModelInferResponse).raw_output_contents[0], np.float32).tolist()

            self._again_and_again(me, ask)


def main() -> None:
    clients = Clients(*sys.argv[1:])
    clients.wait_until_begun()
    print(flush=True)
    for line in sys.stdin:
        word, *numbers = line.split()
        if word == "load":
            clients.load(*map(int, numbers))
        else:
            clients.loaded(*map(int, numbers))
        print(numbers[0], flush=True)
    print(json.dumps(clients.end()))


if __name__ == "__main__":
    main()
