"""Differences that are wanted: our answer, and why it is another than that of the running reference.

The running reference is of an older version than the one whose source was read; where that one
answers otherwise, ours follows it.
"""

from dataclasses import dataclass

from harness.compare import Answer


@dataclass(frozen=True)
class Known:
    why: str
    ours: Answer


NEWER = "today's Triton answers so; the running reference is older"


def _http(status: int, error: str) -> Known:
    return Known(NEWER, {"status": status, "body": {"error": error}})


def _grpc(code: str, details: str) -> Known:
    return Known(NEWER, {"code": code, "details": details})


UNKNOWN = "Request for unknown model: 'nobody' is not found"
VERSION_0 = "invalid model version specified '0' , version should be an integral value > 0"
TWICE = "[request id: <id_unknown>] output 'OUTPUT0' already exists in request"

KNOWN: dict[str, Known] = {
    "control: GET /v2/models/nobody/ready": _http(404, UNKNOWN),
    "control: GET /v2/models/id_fp32/versions/9/ready": _http(
        404, "Request for unknown model: 'id_fp32' version 9 is not found"
    ),
    "control: GET /v2/models/id_fp32/versions/0": _http(400, VERSION_0),
    "bad json: version 0": _http(400, VERSION_0),
    "grpc control: ModelConfig of id_fp32 0": _grpc("INVALID_ARGUMENT", VERSION_0),
    "grpc control: ModelMetadata of id_fp32 0": _grpc("INVALID_ARGUMENT", VERSION_0),
    "grpc control: ModelReady of id_fp32 0": _grpc("INVALID_ARGUMENT", VERSION_0),
    "bad json: duplicate output": _http(400, TWICE),
    "grpc infer: duplicate output": _grpc("INVALID_ARGUMENT", TWICE),
}
