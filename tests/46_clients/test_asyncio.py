"""tritonclient's asyncio clients over HTTP and gRPC, unmodified (the sync ones are in tests/40_e2e)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType

import numpy as np
import pytest
import tritonclient.grpc.aio as grpcclient
import tritonclient.http.aio as httpclient
from tritonclient.utils import InferenceServerException

from harness.servers import Server

CLIENTS = {"http": httpclient, "grpc": grpcclient}


@pytest.fixture(params=CLIENTS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def run(server: Server, kind: str, steps: Callable[..., Awaitable[None]]) -> None:
    async def main() -> None:
        async with CLIENTS[kind].InferenceServerClient(getattr(server, kind)) as client:
            await steps(client, CLIENTS[kind])

    asyncio.run(main())


def tensor(module: ModuleType, name: str, values: np.ndarray, datatype: str = "FP32", **more: bool) -> object:
    made = module.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values, **more)
    return made


def test_health_and_metadata(server: Server, kind: str) -> None:
    async def steps(client: object, _: ModuleType) -> None:
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("id_fp32")
        assert await client.is_model_ready("id_fp32", "1")
        assert not await client.is_model_ready("nobody")
        metadata = await client.get_server_metadata()
        model = await client.get_model_metadata("id_batch")
        config = await client.get_model_config("id_batch")
        statistics = await client.get_inference_statistics("id_fp32")
        if kind == "http":
            assert "binary_tensor_data" in metadata["extensions"]
            assert model["inputs"] == [{"name": "INPUT0", "datatype": "FP32", "shape": [-1, 16]}]
            assert config["max_batch_size"] == 8
            assert statistics["model_stats"][0]["name"] == "id_fp32"
        else:
            assert "binary_tensor_data" in metadata.extensions
            assert list(model.inputs[0].shape) == [-1, 16]
            assert config.config.max_batch_size == 8
            assert statistics.model_stats[0].name == "id_fp32"

    run(server, kind, steps)


def test_infer(server: Server, kind: str) -> None:
    async def steps(client: object, module: ModuleType) -> None:
        values = np.arange(1000, dtype=np.float32)
        answer = await client.infer("id_fp32", [tensor(module, "INPUT0", values)], request_id="7")
        assert np.array_equal(answer.as_numpy("OUTPUT0"), values)
        words = np.array([b"", b"a", "\u00fc".encode(), b"x" * 10000], dtype=np.object_)
        answer = await client.infer("id_bytes", [tensor(module, "INPUT0", words, "BYTES")])
        assert list(answer.as_numpy("OUTPUT0")) == list(words)
        pair = [np.full((2, 3), index, dtype=np.float32) for index in range(2)]
        inputs = [tensor(module, f"INPUT{index}", values) for index, values in enumerate(pair)]
        answer = await client.infer("id_two", inputs, outputs=[module.InferRequestedOutput("OUTPUT1")])
        assert np.array_equal(answer.as_numpy("OUTPUT1"), pair[1])
        assert answer.as_numpy("OUTPUT0") is None

    run(server, kind, steps)


def test_infer_many_at_once(server: Server, kind: str) -> None:
    async def steps(client: object, module: ModuleType) -> None:
        async def ask(i: int) -> None:
            values = np.full((1, 16), i, dtype=np.float32)
            answer = await client.infer("id_batch", [tensor(module, "INPUT0", values)], request_id=str(i))
            assert np.array_equal(answer.as_numpy("OUTPUT0"), values)

        await asyncio.gather(*(ask(i) for i in range(200)))

    run(server, kind, steps)


def test_large(server: Server, kind: str) -> None:
    async def steps(client: object, module: ModuleType) -> None:
        values = np.random.default_rng(7).random(4 << 20, dtype=np.float32)
        answer = await client.infer("id_fp32", [tensor(module, "INPUT0", values)])
        assert np.array_equal(answer.as_numpy("OUTPUT0"), values)

    run(server, kind, steps)


def test_json_data(server: Server) -> None:
    async def steps(client: object, module: ModuleType) -> None:
        values = np.array([1.5, -2.0], dtype=np.float32)
        inputs = [tensor(module, "INPUT0", values, binary_data=False)]
        outputs = [module.InferRequestedOutput("OUTPUT0", binary_data=False)]
        answer = await client.infer("id_fp32", inputs, outputs=outputs)
        assert np.array_equal(answer.as_numpy("OUTPUT0"), values)

    run(server, "http", steps)


def test_errors(server: Server, kind: str) -> None:
    async def steps(client: object, module: ModuleType) -> None:
        one = [tensor(module, "INPUT0", np.zeros(1, dtype=np.float32))]
        with pytest.raises(InferenceServerException, match="nobody"):
            await client.infer("nobody", one)
        with pytest.raises(InferenceServerException, match="INPUT0"):
            await client.infer("id_int32", one)
        with pytest.raises(InferenceServerException, match="version"):
            await client.get_model_metadata("id_fp32", "9")
        assert await client.is_server_live(), "the connection goes on"

    run(server, kind, steps)


def test_stream(server: Server) -> None:
    async def steps(client: object, module: ModuleType) -> None:
        async def questions() -> AsyncIterator[dict[str, object]]:
            for i in range(50):
                values = np.array([i], dtype=np.float32)
                name = "nobody" if i == 24 else "id_fp32"
                yield {
                    "model_name": name,
                    "inputs": [tensor(module, "INPUT0", values)],
                    "request_id": str(i),
                }

        seen = []
        async for result, error in client.stream_infer(questions()):
            seen.append(str(error) if error else float(result.as_numpy("OUTPUT0")[0]))
        assert "nobody" in seen[24]
        assert seen[:24] + seen[25:] == [*range(24), *range(25, 50)]

    run(server, "grpc", steps)


def test_deadline(server: Server) -> None:
    async def steps(client: object, module: ModuleType) -> None:
        one = [tensor(module, "INPUT0", np.zeros(1, dtype=np.float32))]
        answer = await client.infer("id_fp32", one, client_timeout=60)
        assert answer.as_numpy("OUTPUT0").shape == (1,)

    run(server, "grpc", steps)
