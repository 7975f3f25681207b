"""Asks other models what it is asked to ask: JSON in, JSON out."""

import asyncio
import json
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


def make(call):
    tensors = [
        pb_utils.Tensor(name, np.array(values, dtype=object if kind == "object" else kind))
        for name, kind, values in call.get("inputs", [])
    ]
    return pb_utils.InferenceRequest(
        model_name=call["model"],
        inputs=tensors,
        requested_output_names=call.get("outputs", []),
        **{key: value for key, value in call.items() if key not in ("model", "inputs", "outputs", "how", "next")},
    )


def plain(value):
    return value.decode() if isinstance(value, bytes) else value


def show(response):
    if response.has_error():
        return {"error": response.error().message(), "code": int(response.error().code())}
    return {
        tensor.name(): [plain(value) for value in tensor.as_numpy().flatten().tolist()]
        for tensor in response.output_tensors()
    }


def attempt(call):
    try:
        return call()
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}


class TritonPythonModel:
    async def execute(self, requests):
        responses = []
        for request in requests:
            call = json.loads(pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0])
            told = json.dumps(await self.ask(call), sort_keys=True)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([told], dtype=object))]))
        return responses

    async def ask(self, call):
        how = call.get("how", "exec")
        if how == "exec":
            return attempt(lambda: show(make(call).exec()))
        if how == "decoupled":
            return attempt(lambda: [show(response) for response in make(call).exec(decoupled=True)])
        if how == "threads":
            return self.by_threads(call)
        try:
            if how == "async":
                return show(await make(call).async_exec())
            if how == "gather":
                answers = await asyncio.gather(*(make(call).async_exec() for _ in range(8)))
                return [show(answer) for answer in answers]
            if how == "async decoupled":
                return [show(response) for response in await make(call).async_exec(decoupled=True)]
        except Exception as error:
            return {"raised": f"{type(error).__name__}: {error}"}
        raise ValueError(how)

    def by_threads(self, call):
        answers = [None] * 4

        def work(i):
            answers[i] = attempt(lambda: show(make(call).exec()))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(answers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers
