"""Model repositories in a store, and what a server made of them."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tritonclient.http as client
from harness import rawhttp
from harness.repository import Repository
from harness.servers import HOST, Nereid, Server

Files = dict[str, bytes]


def identity(name: str, versions: tuple[int, ...] = (1,), extra: str = "", payload: int = 100) -> Files:
    """The files of an identity model by their name below the repository; each version holds some bytes of its own."""
    io = "".join(f'{k} [ {{ name: "{k.upper()}0" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n' for k in ("input", "output"))
    files = {f"{name}/config.pbtxt": f'name: "{name}"\nbackend: "identity"\nmax_batch_size: 0\n{io}{extra}\n'.encode()}
    for version in versions:
        files[f"{name}/{version}/weights.bin"] = content(f"{name}/{version}", payload)
    return files


def many(count: int) -> Files:
    """Models model_000, model_001 and so on, of a few hundred bytes each."""
    return {k: v for i in range(count) for k, v in identity(f"model_{i:03}", payload=500 + i).items()}


def content(seed: str, size: int) -> bytes:
    """Bytes that differ from model to model."""
    block = hashlib.sha256(seed.encode()).digest()
    return (block * (size // len(block) + 1))[:size]


def write(files: Files, folder: Path) -> Path:
    repository = Repository(folder)
    for name, data in files.items():
        path = repository.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return repository.path


def serve(path: str, env: dict[str, str], **options: str) -> Nereid:
    return Nereid(path, {name.replace("_", "-"): value for name, value in options.items()}, env)


def log_of_a_start_that_fails(path: str, env: dict[str, str], within: float = 180) -> str:
    server = Nereid(path, env=env, wait_ready=False).start()
    try:
        server.process.ends(1, within)
        return server.process.log()
    finally:
        server.kill()


def index(server: Server) -> dict[str, dict[str, str]]:
    """Each model's versions with their states."""
    answer = rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/index", body=b"{}")
    assert answer.status == 200, answer.body
    found: dict[str, dict[str, str]] = {}
    for row in json.loads(answer.body):
        found.setdefault(row["name"], {})[row.get("version", "")] = row.get("state", "")
    return found


def reasons(server: Server) -> dict[str, str]:
    answer = rawhttp.request(HOST, server.http_port, "POST", "/v2/repository/index", body=b"{}")
    return {row["name"]: row.get("reason", "") for row in json.loads(answer.body)}


def infers(server: Server, model: str) -> bool:
    """Whether the model answers what it was asked."""
    with client.InferenceServerClient(server.http) as c:
        tensor = client.InferInput("INPUT0", [5], "FP32")
        tensor.set_data_from_numpy(np.arange(5, dtype=np.float32))
        return bool(np.array_equal(c.infer(model, [tensor]).as_numpy("OUTPUT0"), np.arange(5, dtype=np.float32)))


def load(server: Server, model: str) -> rawhttp.Answer:
    return rawhttp.request(HOST, server.http_port, "POST", f"/v2/repository/models/{model}/load", body=b"{}", timeout=120)


def model_files(cache: Path) -> Iterator[tuple[str, bytes]]:
    """What lies in the model directories of the servers that run on this cache."""
    for folder in cache.glob("**/run/*/*/*"):
        if not folder.is_dir():
            continue
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield f"{folder.name}/{path.relative_to(folder)}", path.read_bytes()


def unload(server: Server, model: str) -> rawhttp.Answer:
    return rawhttp.request(HOST, server.http_port, "POST", f"/v2/repository/models/{model}/unload", body=b"{}", timeout=120)
