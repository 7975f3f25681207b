"""The live page as its tests use it: what is asked of it, and models to try."""

import json

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from . import rawhttp
from .browser import Page
from .repository import Repository
from .servers import Server

NOTICED_MS = 50  # what browsers call a long task

# Says each word back, "wrong" as an error; "for ever" until nobody listens.
COUNTS = """
import itertools
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            text = pb.get_input_tensor_by_name(request, "text").as_numpy()[0].decode()
            sender = request.get_response_sender()
            words = text.removesuffix("for ever").split()
            if text.endswith("for ever"):
                words = itertools.chain(words, itertools.repeat("again"))
            for word in words:
                if request.is_cancelled():
                    break
                outputs = [pb.Tensor("word", np.array([word.encode()], dtype=object))]
                sender.send(pb.InferenceResponse([], pb.TritonError("it is wrong")) if word == "wrong" else pb.InferenceResponse(outputs))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def counts_words(repository: Repository) -> None:
    folder = repository.model("counts", """
        name: "counts" backend: "python" max_batch_size: 0
        input [ { name: "text" data_type: TYPE_STRING dims: [ 1 ] } ] output [ { name: "word" data_type: TYPE_STRING dims: [ 1 ] } ]
        model_transaction_policy { decoupled: true }""")
    (folder / "1" / "model.py").write_text(COUNTS)


def url(server: Server) -> str:
    return f"http://{server.http}/"


def row(model: str) -> str:
    """The row of a model in the table, as a script; null if there is none."""
    return f"([...document.querySelectorAll('#rows tr[data-index]')].find((each) => each.querySelector('button').textContent === {json.dumps(model)}) ?? null)"


def row_of(page: Page, model: str) -> str:
    """The button of a model in the table, once it is there, as a selector."""
    found = f"[...document.querySelectorAll('#rows button')].find((each) => each.textContent === {json.dumps(model)})"
    page.until(f"{found} && (({found}).id = 'chosen-by-test')")
    return "#chosen-by-test"


def choose(page: Page, model: str) -> None:
    """In one step: a row is made anew when its model gets another version."""
    page.until(f"(() => {{ const row = {row(model)}; row?.querySelector('button').click(); return row; }})()")
    page.until(f"document.querySelector('#detail-title').textContent.startsWith({json.dumps(model)})")


def give(page: Page, *typed: str) -> None:
    """Types into the fields of the form, one after the other."""
    page.until("document.querySelector('#detail textarea')")
    page.value(f"document.querySelectorAll('#detail textarea').forEach((each, at) => {{ each.value = {json.dumps(typed)}[at]; }})")


def run(page: Page) -> str:
    """Presses Run; what a reader of the screen is told then."""
    page.value("document.querySelector('#said').textContent = ''")
    page.until("document.querySelector('#detail form button.main')")
    page.click("#detail form button.main")
    return str(page.until("document.querySelector('#said').textContent"))


def tile(name: str) -> str:
    return f"[...document.querySelectorAll('#tiles div')].find((each) => each.innerText.startsWith({json.dumps(name)}))?.querySelector('dd').textContent"


def wrong(server: Server, model: str, protocol: str) -> str:
    """Asks a model that wants an INPUT0 for something else; what it answers."""
    if protocol == "http":
        answer = rawhttp.post(server.http, f"/v2/models/{model}/infer", {"inputs": [{"name": "OTHER", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})
        assert answer.status == 400
        return str(answer.json()["error"])
    with grpcclient.InferenceServerClient(server.grpc) as client, pytest.raises(InferenceServerException) as raised:
        wrong = grpcclient.InferInput("OTHER", [2], "FP32").set_data_from_numpy(np.zeros(2, np.float32))
        client.infer(model, [wrong])
    return str(raised.value.message())
