"""Generated: every route with every method, and model names and versions of all kinds on each of them."""

from harness.compare import Grpc, Http, Question
from tritonclient.grpc import service_pb2 as pb

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")
SHARED = (
    "",
    "/status",
    "/status/",
    "/register",
    "/unregister",
    "/region/r",
    "/region/r/status",
    "/region/r/register",
    "/region/r/unregister",
    "/region/r/nothing",
)
ROUTES = (
    "/v2",
    "/v2/",
    "/v2/health/live",
    "/v2/health/ready/",
    "/v2/health",
    "/v2/models/id_fp32",
    "/v2/models/id_fp32/",
    "/v2/models/id_fp32/versions",
    "/v2/models/id_fp32/versions/",
    "/v2/models/id_fp32/versions/1/nothing",
    "/v2/models/id_fp32/ready",
    "/v2/models/id_fp32/config",
    "/v2/models/id_fp32/stats",
    "/v2/models/stats",
    "/v2/repository",
    "/v2/repository/index/",
    "/v2/repository/models",
    "/v2/repository/models/id_fp32",
    "/v2/logging",
    "/v2/trace/setting",
    "/v2/models/id_fp32/trace/setting",
    "/v2/models/id_fp32/versions/1/trace/setting",
    "/v2/models/id_fp32/generate",
    "/v2/models/id_fp32/generate_stream",
    "/v2/models/id_fp32/versions/1/generate",
    *(f"/v2/{kind}sharedmemory{rest}" for kind in ("system", "cuda") for rest in SHARED),
    "/V2/health/live",
    "//v2/health/live",
    "/v2//health/live",
    "/v2/health/live?x=1",
    "/v2/models/id%5ffp32",
    "/v2/models/id_fp32%2fready",
    "/v2/models/..",
    "/metrics",
)
NAMES = ("id_newest", "id_specific", "nobody", "id newest", "ID_NEWEST", "%00", "-", "a" * 300)
VERSIONS = ("1", "2", "3", "4", "03", "9223372036854775807", "9223372036854775808", "2147483648")
ENDPOINTS = ("", "/ready", "/config", "/stats")
VOLATILE = ("/v2/models/id_fp32/stats", "/v2/models/stats", "/v2")


def _routes() -> list[Question]:
    return [
        Http(f"{method} {path}", method, path, b"" if method in ("POST", "PUT", "PATCH") else None)
        for path in ROUTES
        for method in METHODS
        if not (path in VOLATILE and method in ("GET", "HEAD", "POST"))
    ]


def _names() -> list[Question]:
    asked: list[Question] = []
    for endpoint in ENDPOINTS:
        for name in NAMES:
            path = f"/v2/models/{name.replace(' ', '%20')}{endpoint}"
            if not (name in NAMES[:2] and endpoint == "/stats"):
                shown = path.replace("a" * 300, "a(300)")
                asked.append(Http(f"GET {shown}", "GET", path))
        for version in VERSIONS:
            path = f"/v2/models/id_newest/versions/{version}{endpoint}"
            if not (version in ("3", "03") and endpoint == "/stats"):
                asked.append(Http(f"GET {path}", "GET", path))
    return asked


def _grpc_names() -> list[Question]:
    calls = {
        "ModelReady": (pb.ModelReadyRequest, pb.ModelReadyResponse),
        "ModelMetadata": (pb.ModelMetadataRequest, pb.ModelMetadataResponse),
        "ModelConfig": (pb.ModelConfigRequest, pb.ModelConfigResponse),
        "ModelStatistics": (pb.ModelStatisticsRequest, None),
    }
    asked: list[Question] = []
    for call, (request, reply) in calls.items():
        for name in ("nobody", "ID_NEWEST", "\u00e9", "a" * 300, "../id_fp32"):
            asked.append(Grpc(f"{call} of {name[:20]}", call, request(name=name), reply))
        for version in (*VERSIONS, "-1", " 1", "1 ", "0x1", "one", "1.0"):
            if not (call == "ModelStatistics" and version.strip() in ("3", "03")):
                sent = request(name="id_newest", version=version)
                asked.append(Grpc(f"{call} of id_newest version {version!r}", call, sent, reply))
    return asked


def _grpc_bytes() -> list[Question]:
    """Messages that are none: the status counts; the words are the library's."""
    bytes_of = {
        "nothing": b"",
        "a cut tag": b"\x80",
        "a cut length": b"\x0a\x05ab",
        "a length beyond the message": b"\x0a\xff\xff\xff\xff\x0f",
        "a group that does not end": b"\x0b",
        "an unknown field": b"\xf8\x07\x01",
        "text that is no UTF-8": b"\x0a\x01\xff",
        "a tag of field 0": b"\x00\x01",
        "a wrong wire type": b"\x08\x01",
    }
    return [
        Grpc(f"{method}: {name}", method, sent)
        for method in ("ModelInfer", "ModelReady", "ModelMetadata", "RepositoryIndex")
        for name, sent in bytes_of.items()
        if not (method == "RepositoryIndex" and name in ("nothing", "an unknown field"))
    ]


def _logging() -> list[Question]:
    """What changes nothing: the servers are shared. tests/40_e2e/test_logging.py asks the rest."""
    value = pb.LogSettingsRequest.SettingValue
    bodies = (
        b"{}",
        b'{"log_info":true,"log_verbose_level":0,"log_format":"default"}',
        b'{"log_file":"x"}',
        b'{"log_info":0}',
        b'{"log_verbose_level":-1}',
        b'{"log_format":"bad"}',
        b'{"log_format":1}',
    )
    wishes: dict[str, pb.LogSettingsRequest.SettingValue] = {
        "nothing": value(bool_param=True),
        "log_file": value(string_param="x"),
        "log_info": value(string_param="x"),
        "log_verbose_level": value(bool_param=True),
        "log_format": value(string_param="bad"),
        "log_error": value(bool_param=True),
    }
    asked: list[Question] = [Http(f"POST {body.decode()}", "POST", "/v2/logging", body) for body in bodies]
    for key, wish in wishes.items():
        request = pb.LogSettingsRequest(settings={key: wish})
        asked.append(Grpc(f"LogSettings of {key}", "LogSettings", request, pb.LogSettingsResponse))
    asked.append(Grpc("LogSettings", "LogSettings", b"", pb.LogSettingsResponse))
    return asked


def _trace() -> list[Question]:
    """What changes nothing, for all models and for one: the servers are shared. tests/40_e2e/test_tracing.py asks the rest."""
    settings = {
        "trace_level": ('"OFF"', "5", "null", "[]", "[5]", '["OFF"]', '["OFF","TENSORS"]', '["TIMESTAMPS","OFF"]', '["off"]'),
        "trace_rate": ("5", "null", '["3"]', '""', '"x"', '" "', '"-"', '"1000"', '" 1000x"', '"2147483648"', '"-2147483649"'),
        "trace_count": ("5", "null", "{}", '""', '"x"', '"-1"', '"-2"', '"2147483648"', '"-99999999999"'),
        "log_frequency": ("5", "null", "true", '""', '"x"', '"0"', '"0x"', '"99999999999"'),
        "trace_file": ("null", '""', '"x"', "5"),
        "trace_mode": ('"opentelemetry"', "5"),
        "nothing": ("5",),
    }
    asked: list[Question] = []
    for path in ("/v2/trace/setting", "/v2/models/id_fp32/trace/setting"):
        for key, values in settings.items():
            asked += [Http(f'POST {path} {{"{key}":{value}}}', "POST", path, f'{{"{key}":{value}}}'.encode()) for value in values]
        asked += [Http(f"POST {path} {body}", "POST", path, body.encode()) for body in ("null", "[]", "5", '"x"')]
    asked.append(Http("POST of nobody", "POST", "/v2/models/nobody/trace/setting", b"{}"))
    wishes: dict[str, tuple[list[str], ...]] = {
        "trace_level": ([], [""], ["OFF"], ["OFF", "OFF"], ["TENSORS", "OFF"], ["off"]),
        "trace_rate": ([], [""], ["x"], ["1000"], ["1", "2"], ["2147483648"]),
        "trace_count": ([], [""], ["x"], ["-1"], ["-2"], ["1", "2"], ["2147483648"]),
        "log_frequency": ([], [""], ["x"], ["0"], ["1", "2"], ["99999999999"]),
        "trace_file": ([], ["x"]),
        "nothing": ([], ["x"]),
    }
    for model in ("", "id_fp32", "nobody"):
        asked.append(Grpc(f"TraceSetting of '{model}'", "TraceSetting", pb.TraceSettingRequest(model_name=model), pb.TraceSettingResponse))
    for model in ("", "id_fp32"):
        for key, lists in wishes.items():
            for values in lists:
                request = pb.TraceSettingRequest(model_name=model)
                request.settings[key].value.extend(values)
                asked.append(Grpc(f"TraceSetting of '{model}' {key} {values}", "TraceSetting", request, pb.TraceSettingResponse))
    return asked


GROUPS: dict[str, list[Question]] = {
    "logging": _logging(),
    "trace": _trace(),
    "routes": _routes(),
    "names": _names(),
    "gRPC names": _grpc_names(),
    "gRPC bytes": _grpc_bytes(),
}
