"""The examples of the specification, word for word, as far as the server's first stage goes."""

import json

import pytest
from harness import rawhttp
from harness.servers import HOST, Server

# sequence_extension.txt: no comma after "parameters", one too many after "output0".
EXAMPLE = """\
{
  "parameters" : { "sequence_id" : %s }
  "inputs" : [
    {
      "name" : "input0",
      "shape" : [ 2, 2 ],
      "datatype" : "UINT32",
      "data" : [ 1, 2, 3, 4 ]
    }
  ],
  "outputs" : [
    {
      "name" : "output0",
    }
  ]
}
"""
IDS = {"number": "42", "UUID": '"e333c95a-07fc-42d2-ab16-033b1a566ed5"'}


def _post(server: Server, body: str) -> rawhttp.Answer:
    """With the example's own head."""
    data = body.encode()
    head = (
        "POST /v2/models/mymodel/infer HTTP/1.1\r\nHost: localhost:8000\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with rawhttp.Connection(HOST, server.http_port) as connection:
        connection.send(head.encode() + data)
        return connection.answer()


@pytest.mark.parametrize("name", IDS)
def test_word_for_word_it_is_not_json(server: Server, name: str) -> None:
    """X-25: the reference's parse error."""
    answer = _post(server, EXAMPLE % IDS[name])
    assert answer.status == 500
    assert answer.json()["error"].startswith("failed to parse the request JSON buffer")


@pytest.mark.parametrize("name", IDS)
def test_repaired_it_works(server: Server, name: str) -> None:
    """SX-05, SX-19, SX-21, SX-22, SX-23, X-22, X-25: mymodel takes [ 2, 2 ] without batching and is no sequence model."""
    repaired = (
        (EXAMPLE % IDS[name]).replace(' }\n  "inputs"', ' },\n  "inputs"').replace('"output0",', '"output0"')
    )
    json.loads(repaired)
    answer = _post(server, repaired)
    assert answer.status == 200, answer.body
    (output,) = answer.json()["outputs"]
    assert output == {"name": "output0", "datatype": "UINT32", "shape": [2, 2], "data": [1, 2, 3, 4]}
