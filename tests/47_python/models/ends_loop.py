"""Does, in a coroutine, what ends the event loop that runs it; tells its process, by senders where it is decoupled."""

import asyncio
import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils


async def exits():
    sys.exit(3)


class TritonPythonModel:
    def initialize(self, args):
        self.decoupled = pb_utils.using_decoupled_model_transaction_policy(json.loads(args["model_config"]))

    async def execute(self, requests):
        responses = [await self.answer(request) for request in requests]
        if not self.decoupled:
            return responses
        for request, response in zip(requests, responses):
            request.get_response_sender().send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    async def answer(self, request):
        ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0].decode()
        loop = asyncio.get_running_loop()
        if ask == "exit":
            sys.exit(3)
        elif ask == "exit in a task":
            await asyncio.create_task(exits())
        elif ask == "exit in a callback":
            loop.call_soon(sys.exit, 3)
        elif ask == "stop":
            loop.stop()
        elif ask == "cancel":
            asyncio.current_task().cancel()
        pid = await loop.run_in_executor(None, os.getpid)
        return pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([str(pid)], dtype=object))])
