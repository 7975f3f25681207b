"""Says the words of what it is asked back, one a response; embeds texts by their bytes. Told by the last message, or the prompt:
`raise`, `raise late`, `wait FILE` until it is cancelled, `bytes`: characters in pieces, `apart`: a reason without text, `nothing`: no response,
`none`: no text among others, `on`: responses behind the reason, `below`: numbers of tokens that are none, `asked`: what came in."""

import json
import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


def tensor(name, values, datatype=object):
    return pb_utils.Tensor(name, np.array(values, dtype=datatype))


def chunk(text, finish="", said=0, heard=0):
    counts = [tensor("SAID", [said], np.uint32), tensor("HEARD", [heard], np.uint32)]
    return pb_utils.InferenceResponse([tensor("TEXT", [text]), tensor("FINISH", [finish]), *counts])


def taken(request):
    """All inputs, as JSON has them."""
    found = {}
    for each in request.inputs():
        values = each.as_numpy().reshape(-1).tolist()
        found[each.name()] = [value.decode() if isinstance(value, bytes) else value for value in values]
    return found


class TritonPythonModel:
    def initialize(self, args):
        self.decoupled = json.loads(args["model_config"]).get("model_transaction_policy", {}).get("decoupled", False)

    def execute(self, requests):
        if not self.decoupled:
            return [self.embed(request) for request in requests]
        for request in requests:
            self.talk(request, request.get_response_sender())
        return None

    def embed(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "TEXTS").as_numpy().reshape(-1)
        if b"raise" in texts:
            raise ValueError("this cannot be embedded")
        last = np.nan if b"no number" in texts else -0.5
        rows = [[len(text), text[0] if text else 0, last] for text in texts]
        count = tensor("HEARD", [[len(text)] for text in texts], np.int64)
        return pb_utils.InferenceResponse([tensor("VECTOR", rows, np.float32), count])

    def talk(self, request, sender):
        inputs = taken(request)
        text = json.loads(inputs["MESSAGES"][0])[-1]["content"] if "MESSAGES" in inputs else inputs["PROMPT"][0]
        if text == "raise":
            raise ValueError("no more words")
        if text.startswith("wait "):
            self.wait(request, sender, Path(text[5:]))
        elif text == "bytes":
            whole = "a\u00e9\u2603\U0001f99c".encode()
            for at in range(len(whole)):
                sender.send(chunk(whole[at : at + 1]))
        elif text == "apart":
            sender.send(chunk("a"))
            sender.send(pb_utils.InferenceResponse([tensor("FINISH", ["length"])]))
        elif text == "none":
            for each in (["a"], [], ["b"]):
                sender.send(pb_utils.InferenceResponse([tensor("TEXT", each)]))
        elif text == "on":
            for each, why in ((["a", "x"], ["stop", ""]), (["", "y"], ["", ""]), (["c", "z"], ["", "length"])):
                sender.send(pb_utils.InferenceResponse([tensor("TEXT", each), tensor("FINISH", why)]))
        elif text == "below":
            sender.send(pb_utils.InferenceResponse([tensor("TEXT", ["a"]), tensor("SAID", [-5, 3], np.int32), tensor("HEARD", [-5], np.int64)]))
        elif text == "asked":
            sender.send(chunk(json.dumps(inputs), "stop"))
        else:
            self.say([] if text == "nothing" else text.split(), inputs, sender, text == "raise late")
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def say(self, words, inputs, sender, late):
        most = inputs.get("MOST", [len(words)])[0]
        for at, word in enumerate(words[:most]):
            ends = at + 1 == min(most, len(words))
            why = ("length" if most < len(words) else "stop") if ends else ""
            sender.send(chunk(word + " ", why, 1, len(words)))
        if late:
            error = pb_utils.TritonError("late, but no more words")
            sender.send(pb_utils.InferenceResponse(error=error))

    def wait(self, request, sender, mark):
        sender.send(chunk("waiting"))
        while not sender.is_cancelled():
            time.sleep(0.01)  # allowed: it only asks
        mark.write_text("cancelled")
