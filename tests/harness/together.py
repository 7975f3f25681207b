"""Requests that a server has all at once."""

from . import rawhttp
from .servers import HOST, Server


def ask(server: Server, path: str, bodies: list[bytes], rounds: int = 1) -> list[rawhttp.Answer]:
    """A connection a request. However slowly this process sends those of a round, the server finds all of them when it looks."""
    connections = [rawhttp.Connection(HOST, server.http_port) for _ in bodies]
    answers = []
    try:
        for _ in range(rounds):
            with server.process.halted():
                for connection, body in zip(connections, bodies, strict=True):
                    connection.send(rawhttp.head("POST", path, body=body) + body)
            answers += [connection.answer() for connection in connections]
        return answers
    finally:
        for connection in connections:
            connection.close()
