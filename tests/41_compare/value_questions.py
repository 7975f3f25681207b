"""Generated: numbers and texts at and beyond the limits of each datatype, written into JSON; and JSON that is odd itself."""

import adjust
from asks import NUMBERS
from harness.compare import Adjust, Http, Question

_INTEGER = {"UINT8": 8, "UINT16": 16, "UINT32": 32, "UINT64": 64, "INT8": 8, "INT16": 16, "INT32": 32, "INT64": 64}
_ODD = (
    "null",
    "true",
    '"1"',
    "[]",
    "{}",
    "[1]",
    "1.0",
    "1.5",
    "1e2",
    "1e400",
    "-0",
    "-1",
    "1E-400",
    "0.1",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890",
)


def _limits(datatype: str) -> tuple[str, ...]:
    bits = _INTEGER.get(datatype)
    if bits is None:
        return ("3.5e38", "1.8e308", "16777217", "NaN")
    low, high = (0, 2**bits - 1) if datatype[0] == "U" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return (str(low), str(high), str(low - 1), str(high + 1))


def _value(datatype: str, text: str) -> Question:
    body = '{"inputs":[{"name":"INPUT0","datatype":"%s","shape":[1],"data":[%s]}]}' % (datatype, text)
    rounded = adjust.as_short if text == "123456789012345678901234567890" and datatype.startswith("FP") else None
    return _post(f"{text} as {datatype}", body, f"id_{datatype.lower()}", rounded)


def _post(name: str, body: str, model: str = "id_fp32", changed: Adjust | None = None) -> Question:
    headers = {"Content-Type": "application/json"}
    return Http(name, "POST", f"/v2/models/{model}/infer", body.encode(), headers, changed)


def _values() -> list[Question]:
    return [
        _value(datatype, text)
        for datatype in (*NUMBERS, "BYTES")
        for text in dict.fromkeys(_ODD + (_limits(datatype) if datatype not in ("BOOL", "BYTES") else ()))
    ]


def _base64() -> list[Question]:
    texts = ('{"b64": "/wA="}', '{"b64": ""}', '{"b64": "A"}', '{"B64": "QQ=="}', '{"b64": 1}', '{"b64": "", "x": 1}')
    return [_value(datatype, text) for text in texts for datatype in ("BYTES", "FP32")]


def _odd_json() -> list[Question]:
    tensor = '{"name":"INPUT0","datatype":"FP32","shape":[2],"data":[1,2]}'
    deep = 50
    members = {
        "shape with a fraction": '"shape":[2.0],"data":[1,2]',
        "shape with a boolean": '"shape":[true],"data":[1,2]',
        "shape with a null": '"shape":[null],"data":[1,2]',
        "shape too large for 64 bits": '"shape":[9223372036854775808],"data":[1,2]',
        "shape is the smallest number": '"shape":[-9223372036854775808],"data":[1,2]',
        "shape is an object": '"shape":{},"data":[1,2]',
        "shape is null": '"shape":null,"data":[1,2]',
        "shape nested": '"shape":[[2]],"data":[1,2]',
        "data is null": '"shape":[2],"data":null',
        "data is an object": '"shape":[2],"data":{}',
        "data nested unevenly": '"shape":[2],"data":[[1],2]',
        "data nested deeper than the shape": '"shape":[2],"data":[[[1]],[[2]]]',
        "data nested deep": '"shape":[2],"data":' + "[" * deep + "1,2" + "]" * deep,
        "empty lists in data": '"shape":[2],"data":[1,[],2]',
        "unknown member of an input": '"shape":[2],"data":[1,2],"more":1',
        "parameters of an input are no object": '"shape":[2],"data":[1,2],"parameters":1',
        "unknown parameter of an input": '"shape":[2],"data":[1,2],"parameters":{"x":1}',
        "binary size without binary": '"shape":[2],"parameters":{"binary_data_size":8}',
        "negative binary size": '"shape":[2],"parameters":{"binary_data_size":-8}',
        "data before shape": '"data":[1,2],"shape":[2]',
        "shape twice": '"shape":[3],"shape":[2],"data":[1,2]',
    }
    asked = [
        _post(name, '{"inputs":[{"name":"INPUT0","datatype":"FP32",%s}]}' % text)
        for name, text in members.items()
    ]
    whole = {
        "empty": "",
        "spaces only": "   ",
        "null": "null",
        "a number": "1",
        "true": "true",
        "comma at the end": '{"inputs":[%s],}' % tensor,
        "single quotes": "{'inputs':[]}",
        "a comment": '{"inputs":[%s]/* x */}' % tensor,
        "two objects": '{"inputs":[%s]}{}' % tensor,
        "spaces around": ' \r\n\t{ "inputs" : [ %s ] } \n' % tensor,
        "inputs twice": '{"inputs":[],"inputs":[%s]}' % tensor,
        "inputs is null": '{"inputs":null}',
        "inputs is an object": '{"inputs":{}}',
        "an input is null": '{"inputs":[null]}',
        "id is a number": '{"id":5,"inputs":[%s]}' % tensor,
        "id is null": '{"id":null,"inputs":[%s]}' % tensor,
        "id is empty": '{"id":"","inputs":[%s]}' % tensor,
        "parameters is an array": '{"parameters":[],"inputs":[%s]}' % tensor,
        "parameters is text": '{"parameters":"x","inputs":[%s]}' % tensor,
        "parameter is null": '{"parameters":{"x":null},"inputs":[%s]}' % tensor,
        "parameter is an array": '{"parameters":{"x":[1]},"inputs":[%s]}' % tensor,
        "parameter is an object": '{"parameters":{"x":{}},"inputs":[%s]}' % tensor,
        "binary_data_output is text": '{"parameters":{"binary_data_output":"x"},"inputs":[%s]}' % tensor,
        "binary_data_output is a number": '{"parameters":{"binary_data_output":1},"inputs":[%s]}' % tensor,
        "outputs is null": '{"outputs":null,"inputs":[%s]}' % tensor,
        "outputs of text": '{"outputs":["OUTPUT0"],"inputs":[%s]}' % tensor,
        "outputs of null": '{"outputs":[null],"inputs":[%s]}' % tensor,
        "an output's name is a number": '{"outputs":[{"name":1}],"inputs":[%s]}' % tensor,
        "an output's parameters are a list": '{"outputs":[{"name":"OUTPUT0","parameters":[]}],"inputs":[%s]}' % tensor,
        "binary_data is text": '{"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":"x"}}],"inputs":[%s]}' % tensor,
        "negative classification": '{"outputs":[{"name":"OUTPUT0","parameters":{"classification":-1}}],"inputs":[%s]}' % tensor,
        "fraction of classification": '{"outputs":[{"name":"OUTPUT0","parameters":{"classification":1.5}}],"inputs":[%s]}' % tensor,
        "an escape in a name": '{"inputs":[%s]}' % tensor.replace("INPUT0", "\\u0049NPUT0"),
        "a lone surrogate": '{"id":"\\ud800","inputs":[%s]}' % tensor,
        "a NUL in the id": '{"id":"a\\u0000b","inputs":[%s]}' % tensor,
        "a control character in the id": '{"id":"a\x01b","inputs":[%s]}' % tensor,
        "deep unknown member": '{"x":%s,"inputs":[%s]}' % ("[" * deep + "]" * deep, tensor),
        "2,000 unknown members": '{%s"inputs":[%s]}' % ("".join('"m%d":1,' % i for i in range(2000)), tensor),
        "100 duplicate inputs": '{"inputs":[%s]}' % ",".join([tensor] * 100),
        "a long unknown name": '{"inputs":[%s]}' % tensor.replace("INPUT0", "n" * 3000),
        "a UTF-8 mark in front": '\ufeff{"inputs":[%s]}' % tensor,
    }
    own_words = {
        "spaces only",
        "comma at the end",
        "single quotes",
        "a comment",
        "two objects",
        "a lone surrogate",
    }
    asked += [
        _post(name, text, changed=adjust.parser_words if name in own_words else None)
        for name, text in whole.items()
    ]
    return asked


GROUPS: dict[str, list[Question]] = {"values": _values() + _base64(), "odd JSON": _odd_json()}
