"""Asking the backends that are there when asked for."""

from concurrent.futures import ThreadPoolExecutor
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import arrays, paths, procfs, rawhttp
from harness.servers import Nereid, Server

PROTOCOLS = pytest.mark.parametrize("protocol", ["http", "grpc"])


def ask(
    server: Server, protocol: str, model: str, inputs: dict[str, np.ndarray], outputs: list[str] | None = None, **more: Any
) -> dict[str, np.ndarray]:
    library = httpclient if protocol == "http" else grpcclient
    sent = []
    for name, array in inputs.items():
        datatype = next(k for k, v in arrays.NUMPY.items() if v == array.dtype.type)
        sent.append(library.InferInput(name, list(array.shape), datatype))
        sent[-1].set_data_from_numpy(array)
    wanted = [library.InferRequestedOutput(name) for name in outputs] if outputs else None
    with library.InferenceServerClient(getattr(server, protocol)) as client:
        result = client.infer(model, sent, outputs=wanted, **more)
        response = result.get_response()
        names = [o["name"] for o in response["outputs"]] if protocol == "http" else [o.name for o in response.outputs]
        return {name: result.as_numpy(name) for name in names}


def load(server: Server, model: str) -> tuple[int, str]:
    answer = rawhttp.post(server.http, f"/v2/repository/models/{model}/load", b"{}")
    return answer.status, "" if answer.status == 200 else answer.json()["error"]


def unload(server: Server, model: str) -> int:
    return rawhttp.post(server.http, f"/v2/repository/models/{model}/unload", b"{}").status


def config(server: Server, model: str) -> dict[str, Any]:
    return rawhttp.get(server.http, f"/v2/models/{model}/config").json()


def loads_and_unloads(models: Path, model: str, inputs: dict[str, np.ndarray]) -> None:
    """200 rounds of load, infer and unload: what they hold does not grow by 2 % after the tenth."""
    rounds = 200 if paths.BUILD == paths.RELEASE else 12
    sizes = []
    with Nereid(models, {"model-control-mode": "explicit"}) as server:
        for _ in range(rounds):
            assert load(server, model) == (200, "")
            ask(server, "grpc", model, inputs)
            assert unload(server, model) == 200
            sizes.append(procfs.rss_bytes(server.pid))
    if rounds == 200:
        assert min(sizes[-20:]) <= 1.02 * max(sizes[9:30]), sizes[::10]


def at_once(count: int, one: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(one, index) for index in range(count)]:
            done.result()


def tensor(kind: str, name: str, datatype: str, dims: list[int], more: str = "") -> str:
    """An entry of a configuration; kind is "input" or "output"."""
    return f'{kind} {{ name: "{name}" data_type: TYPE_{datatype} dims: {dims} {more} }}\n'


def parameters(values: dict[str, str]) -> str:
    return "".join(f'parameters {{ key: "{k}" value {{ string_value: "{v}" }} }}\n' for k, v in values.items())
