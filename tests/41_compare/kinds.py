"""The kinds of difference between the two servers that are wanted, and the questions that show one without an adjusted comparison."""

import re
from dataclasses import dataclass

from harness.compare import Answer


@dataclass(frozen=True)
class Kind:
    name: str
    why: str


PRODUCT = Kind(
    "product",
    "Another name and version; the specification wants sequence(string_id) reported (SX-04), and only what is served is.",
)
NEWER = Kind("newer", "Today's Triton answers so; the reference that runs here is of version 2.51.")
ORDER = Kind(
    "order",
    "The reference names inputs, outputs and models in the order of its hash tables; ours in the order given.",
)
TIME = Kind("time", "Durations and counts since the start are each server's own.")
PARSER = Kind(
    "parser",
    "Another library reads the text (yyjson for RapidJSON, protobuf-c for protobuf): its own words for what is wrong; "
    "1e400 is infinity, as 3.5e38 is in FP32.",
)
WORDS = Kind("words", "Refused by both; the reference's words tell of its innards (-8 bytes are expected).")
ROUNDING = Kind("rounding", "The reference reads and prints numbers less exactly; 0.1 is sent as the shortest text.")
RANGE = Kind("range", "A number outside its datatype is refused; the reference cuts it to another number.")
LIMIT = Kind(
    "limit",
    "A size is checked before anything is made of that size: the reference allocates it first, or overflows.",
)
STRICT = Kind(
    "strict",
    "What has surplus or missing characters at its end is refused: a version such as '1 ' or 0x1, a cut string, a name that goes on "
    "behind a zero byte; and what two peers could read differently: any transfer coding but one \"chunked\" (RFC 9112, 6.1).",
)
HEALTH = Kind("health", "Health has the Open Inference Protocol's JSON; the reference's answers have no body, which KServe's client cannot read.")
KINDS = (PRODUCT, HEALTH, NEWER, ORDER, TIME, PARSER, WORDS, ROUNDING, RANGE, LIMIT, STRICT)

RANGES = "400 Unable to parse 'data': a number is out of the range of the datatype"
VERSION = r"INVALID_ARGUMENT failed to get model version from specified version string '.*' \(details: stol\).*"
VERSION_0 = "(400|INVALID_ARGUMENT) invalid model version specified '0' , version should be an integral value > 0"
TWICE = r"(400|INVALID_ARGUMENT) \[request id: <id_unknown>\] output '\w*' already exists in request"

CODING = "501 Transfer-Encoding other than chunked is not supported"
ZERO = "400 .* holds a zero byte"


@dataclass(frozen=True)
class Known:
    """Questions, by a pattern of their names, that both servers answer differently; how ours answers, as summary() puts it."""

    kind: Kind
    questions: str
    ours: str


KNOWN = (
    Known(HEALTH, r"(control|routes): GET /v2/health/(live|ready)(\?x=1)?", "200"),
    Known(HEALTH, r"(control|routes): GET /v2/models/id_fp32(/versions/1)?/ready", "200"),
    Known(HEALTH, r"names: GET /v2/models/(id_newest|id_specific|id_newest/versions/0?3)/ready", "200"),
    Known(NEWER, "control: GET /v2/models/id_fp32/versions/0", VERSION_0),
    Known(NEWER, "bad json: version 0", VERSION_0),
    Known(NEWER, "grpc control: Model(Config|Metadata|Ready) of id_fp32 0", VERSION_0),
    Known(NEWER, "(bad json|grpc infer): duplicate output", TWICE),
    Known(NEWER, "raw body: (a header that is text|an empty header)", "400 Unable to parse Inference-Header-.*"),
    Known(
        WORDS,  # the reference calls the input 'raw_input' as long as it is not described
        "raw body: (half a float|two rows|a fixed shape, too few)",
        "400 .* input byte size mismatch for input 'INPUT0' .*",
    ),
    Known(RANGE, "faults: another datatype, INT64 in JSON", RANGES),
    Known(RANGE, r"values: (256|65536|4294967296) as UINT\d+", RANGES),
    Known(RANGE, r"values: (-129|128|-32769|32768|-2147483649|2147483648) as INT\d+", RANGES),
    Known(PARSER, "values: 1e400 as FP(32|64)", "200"),
    Known(PARSER, "values: 1e400 as .*", "500 Unable to parse .*"),
    Known(PARSER, "gRPC bytes: Model(Ready|Metadata): a wrong wire type", "INTERNAL Unable to parse request"),
    Known(PARSER, "gRPC bytes: RepositoryIndex: a wrong wire type", "INTERNAL Unable to parse request"),
    Known(LIMIT, "faults: huge dimension, (FP32|INT64) in JSON", "400 .* exceeds the maximum allowed value .*"),
    Known(LIMIT, "faults: product of dimensions overflows, .* in JSON", "400 invalid shape .* maximum size .*"),
    Known(LIMIT, "odd JSON: shape too large for 64 bits", "400 Unable to parse 'shape': a dimension is over .*"),
    Known(STRICT, "framing: ((gzip|foo|identity), chunked|chunked, (chunked|identity)|xchunked)", CODING),
    Known(STRICT, "framing: CHUNKED", "200"),
    Known(STRICT, "framing: identity and a length", "400 .*|" + CODING),
    Known(STRICT, "framing: an empty coding and a length", "400 .*"),
    Known(STRICT, "bytes: a zero byte in (the id|an? (input|output)'s name|a parameter|a parameter's name|a sequence id)", ZERO),
    Known(STRICT, "odd JSON: a NUL in the id", ZERO),
    Known(STRICT, "gRPC names: Model.* of id_newest version '(1 |0x1|1.0)'", VERSION),
    Known(
        STRICT,
        "faults: last byte cut, BYTES in (binary|gRPC raw)",
        "(400|INVALID_ARGUMENT) .* the last string of inference input .* is 1 bytes short",
    ),
)


def summary(answer: Answer) -> str:
    """Status and error in a line: "400 what is wrong", "NOT_FOUND what is wrong", "200", "OK"."""
    body = answer.get("body")
    error = answer.get("details") or (body.get("error", "") if isinstance(body, dict) else "")
    return f"{answer.get('status', answer.get('code'))} {error}".strip()


def known(question: str) -> Known | None:
    return next((each for each in KNOWN if re.fullmatch(each.questions, question, re.DOTALL)), None)
