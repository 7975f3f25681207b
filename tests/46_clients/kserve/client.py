"""KServe's own client against a server: `client.py HTTP GRPC`, each HOST:PORT. Prints a line a check, `ok <name>`."""

import asyncio
import sys

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, InferResponse
from kserve.inference_client import RESTConfig
from kserve.protocol.grpc.grpc_predict_v2_pb2 import ModelMetadataRequest, ServerMetadataRequest
from kserve.protocol.infer_type import RequestedOutput

MODEL = "id_fp32"
VALUES = np.array([1.5, -2.25, 3e38], dtype=np.float32)


def check(name: str, right: bool) -> None:
    if not right:
        sys.exit(f"{name}: not as expected")
    print("ok", name)


def request(binary: bool) -> InferRequest:
    tensor = InferInput("INPUT0", list(VALUES.shape), "FP32")
    tensor.set_data_from_numpy(VALUES, binary_data=binary)
    output = RequestedOutput("OUTPUT0", parameters={"binary_data": binary})
    return InferRequest(MODEL, [tensor], request_id="7", request_outputs=[output])


def is_echo(response: InferResponse) -> bool:
    (output,) = response.outputs
    same = np.array_equal(output.as_numpy(), VALUES)
    return bool(same and output.name == "OUTPUT0" and response.model_name == MODEL and response.id == "7")


async def ask_rest(url: str) -> None:
    async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
        check("rest-live", await client.is_server_live(url) is True)
        check("rest-ready", await client.is_server_ready(url) is True)
        check("rest-model", await client.is_model_ready(url, MODEL) is True)
        check("rest-no-model", await client.is_model_ready(url, "nobody") is False)
        check("rest-infer", is_echo(await client.infer(url, request(binary=False), MODEL)))
        check("rest-binary", is_echo(await client.infer(url, request(binary=True), MODEL)))


async def ask_grpc(address: str) -> None:
    async with InferenceGRPCClient(address) as client:
        check("grpc-live", await client.is_server_live() is True)
        check("grpc-ready", await client.is_server_ready() is True)
        check("grpc-model", await client.is_model_ready(MODEL) is True)
        check("grpc-no-model", await client.is_model_ready("nobody") is False)
        stub = client._client_stub  # it has no call of its own for these
        check("grpc-metadata", "binary_tensor_data" in (await stub.ServerMetadata(ServerMetadataRequest())).extensions)
        model = await stub.ModelMetadata(ModelMetadataRequest(name=MODEL))
        check("grpc-model-metadata", [each.name for each in model.inputs] == ["INPUT0"])
        check("grpc-infer", is_echo(await client.infer(request(binary=False))))
        check("grpc-binary", is_echo(await client.infer(request(binary=True))))


asyncio.run(ask_rest(f"http://{sys.argv[1]}"))
asyncio.run(ask_grpc(sys.argv[2]))
