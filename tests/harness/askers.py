"""Clients that ask a server again and again and note whatever is no answer: of servers that take each other's place."""

import math
import threading
import time

import grpc
import numpy as np

from . import rawgrpc, rawhttp
from .servers import HOST

BODY = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}]}'
RAW = np.array([1, 2], np.float32).tobytes()
CALL = rawgrpc.infer_request("one", [("INPUT0", "FP32", [2], RAW)]).SerializeToString()
# Seconds. A server that ends closes a connection without a request soon after: who was held up so long asks on a new one.
KEPT = 0.4


class Client(threading.Thread):
    """Asks the identity model `one` until it is told to end, on a new connection every few requests."""

    def __init__(self, http_port: int, grpc_port: int, per_connection: int):
        super().__init__()
        self.http_port, self.grpc_port, self.per_connection = http_port, grpc_port, per_connection
        self.answered = 0
        self.lost: list[str] = []
        self.over = threading.Event()

    def connection(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.connection()
            except (OSError, grpc.RpcError, AssertionError) as error:
                self.lost.append(f"{error!r} after {self.answered}")


class Http(Client):
    def connection(self) -> None:
        with rawhttp.Connection(HOST, self.http_port) as connection:
            told = math.inf
            for _ in range(self.per_connection):
                kept = time.monotonic() - told
                try:
                    answer = connection.ask("POST", "/v2/models/one/infer", body=BODY)
                except ConnectionError:
                    if kept > KEPT:
                        return
                    raise
                told = time.monotonic()
                assert answer.status == 200, answer
                self.answered += 1
                if self.over.is_set() or answer.header("Connection") == "close":
                    return


class Grpc(Client):
    def connection(self) -> None:
        with grpc.insecure_channel(f"{HOST}:{self.grpc_port}", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            call = channel.unary_unary(f"/{rawgrpc.SERVICE}/ModelInfer")
            for _ in range(self.per_connection):
                call(CALL, timeout=60)
                self.answered += 1
                if self.over.is_set():
                    return


def crowd(http_port: int, grpc_port: int) -> list[Client]:
    """One of each kind: on a new connection for each request, and on one connection as long as it lasts."""
    return [kind(http_port, grpc_port, count) for kind in (Http, Grpc) for count in (1, 100000)]
