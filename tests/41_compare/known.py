"""The differences that the generated questions show, and the questions that show them without an adjusted comparison (adjust.py) or an
excuse (excuses.py)."""

import re
from dataclasses import dataclass
from typing import Any

import kinds
from kinds import Difference

# How an answer comes, whatever was asked.

ERROR_LABEL = Difference(
    kinds.HTTP,
    "type of an error",
    "Every error over HTTP is JSON and is labelled so: `Content-Type: application/json`.",
    "The same JSON is labelled `text/plain` where the error is found by the front door itself: unknown routes, wrong methods, "
    "lengths that do not fit.",
    "A client that looks at the label reads each error in one way.",
    "RFC 9110, 8.3: the field names the media type of the content.",
)
CLOSES = Difference(
    kinds.HTTP,
    "Connection: close",
    "Where an unknown method makes the connection end after the answer, the answer says so.",
    "The connection ends unannounced.",
    "A client does not send into a connection that ends.",
    "RFC 9112, 9.6.",
)
HEADER_ORDER = Difference(
    kinds.ORDER,
    "order of headers",
    "`Content-Type`, what belongs to the answer, `Content-Length`.",
    "Where the type is `text/plain` it comes last.",
    "One order for every answer.",
    "RFC 9110, 5.3: the order of fields of different names means nothing.",
)
MEMBER_ORDER = Difference(
    kinds.ORDER,
    "order of JSON members",
    "A model's configuration shows its members in the order of their field numbers, settings in the order of the documentation.",
    "Configurations in the order of the .proto file, settings in that of a hash table.",
    "It follows the tables that the answers are made from.",
    "RFC 8259, 4: an object is an unordered collection.",
)
MAP_ORDER = Difference(
    kinds.ORDER,
    "order of a map's entries",
    "Log settings over gRPC come in the order of the documentation.",
    "In the order of a hash table, another one each time.",
    "The same answer each time.",
    "Protocol Buffers, maps: the order on the wire is undefined.",
)

ACCEPTED_CODINGS = Difference(
    kinds.OPEN,
    "grpc-accept-encoding",
    "Sent where answers are compressed and where a call's coding is unknown.",
    "Sent with every answer that has a message.",
    "It is what a small answer would mostly consist of; clients need it where they compress.",
    "gRPC over HTTP/2, Response-Headers: Message-Accept-Encoding is optional; gRPC compression: it belongs to an UNIMPLEMENTED coding.",
)

EDGE_SPACE = Difference(
    kinds.GRPC,
    "spaces at the ends of grpc-message",
    "Percent-encoded: `got [].%20`. A client decodes it to the same message.",
    "As they are.",
    "Strict HTTP/2 clients take the field for an error of the protocol, and see no reason at all.",
    "RFC 9113, 8.2.1: a field value must not start or end with a space.",
)
ZSTD = Difference(
    kinds.MORE,
    "zstd",
    "Bodies may be compressed with zstd, and so are answers where `Accept-Encoding` puts it first. A 501 for an unknown coding names it.",
    "501 `Unsupported compression type`; answers come as they are.",
    "It takes less than a sixth of the time that gzip does.",
    "RFC 8878; RFC 9110, 15.5.16: Accept-Encoding names what would have been taken.",
)

FOREIGN_PAGE = Difference(
    kinds.REACH,
    "requests of pages of other origins",
    "403 to all but GET, HEAD and OPTIONS, unless `--http-cors-origin` names the origin.",
    "Answered: browsers only keep the page from reading it.",
    "A web site that somebody visits could load a model with code into a server without keys, or unload one.",
    "CWE-352, cross-site request forgery; Fetch Standard, Origin and Sec-Fetch-Site say who asks.",
)

# What an answer says.

PRODUCT = Difference(
    kinds.ITSELF,
    "version of the server",
    "`version` of the server's metadata is this product's; the name is `triton`, which clients look for.",
    "2.51.0",
    "Another product.",
    "Open Inference Protocol, server metadata: the version of the server.",
)
EXTENSIONS = Difference(
    kinds.SPECIFIED,
    "extensions",
    "The server's metadata lists `sequence(string_id)`, and of the others those that are served.",
    "Sequence ids may be strings, and the metadata does not say so; shared memory is listed even where it is off.",
    "A client that asks what there is can rely on the answer.",
    "SX-04: server metadata also lists \"sequence(string_id)\" when string ids are supported.",
)
HEALTH = Difference(
    kinds.SPECIFIED,
    "health over HTTP",
    "`{\"live\":true}`, `{\"ready\":true}`, a model's too.",
    "No body; the status says it all.",
    "Clients of the Open Inference Protocol, such as KServe's, read the body.",
    "Open Inference Protocol, HTTP/REST: $live_server_response, $ready_server_response, $ready_model_response.",
)
VERSION_0 = Difference(
    kinds.LATER,
    "version 0",
    "Refused: a version is a number over 0.",
    "Not found.",
    "Today's Triton answers so.",
    "Triton's core of 2026, common.cc: \"version should be an integral value > 0\".",
)
OUTPUT_TWICE = Difference(
    kinds.LATER,
    "an output asked for twice",
    "Refused.",
    "Answered, the output once.",
    "Today's Triton answers so.",
    "Triton's core of 2026, infer_request.cc: \"output '...' already exists in request\".",
)
HEADER_LENGTH = Difference(
    kinds.LATER,
    "Inference-Header-Content-Length that is no number",
    "Refused.",
    "Taken for 0: the whole body becomes the input, the JSON in it too.",
    "Today's Triton answers so.",
    "Triton's server of 2026, http_server.cc: \"Unable to parse Inference-Header-Content-Length\".",
)
ORDER = Difference(
    kinds.ORDER,
    "order of outputs and inputs",
    "Outputs come in the order in which they were asked or configured, inputs are named in the order in which they were sent.",
    "Outputs in the order of the alphabet, inputs in that of a hash table; which of two wrong inputs an error names is chance.",
    "The same question gets the same answer.",
    "A defect of the reference: the order of an unordered container reaches the client.",
)
TIME = Difference(
    kinds.ITSELF,
    "durations and counts",
    "Durations, and counts since the start, are measured by each server.",
    "The same fields with its own values.",
    "Two processes.",
    "Statistics extension: cumulative since the model was loaded.",
)
JSON_WORDS = Difference(
    kinds.OPEN,
    "words for what is no JSON",
    "Status and the beginning of the message are the same; what exactly is wrong, and where, is said in the words of this parser (yyjson).",
    "In the words of RapidJSON.",
    "Another library reads the text.",
    "RFC 8259 names no errors.",
)
PROTOBUF_WORDS = Difference(
    kinds.OPEN,
    "a field of the wrong wire type",
    "A message in which a known field has another wire type is refused: INTERNAL.",
    "The field is kept as one that nobody knows, and the message is taken without it.",
    "A client whose .proto differs is told so rather than served something else.",
    "Protocol Buffers, encoding: parsers may do either; protobuf-c refuses.",
)
INFINITE = Difference(
    kinds.OPEN,
    "numbers too large for FP64 in JSON",
    "1e400 becomes infinity, as 3.5e38 does in FP32.",
    "No JSON: a parse error.",
    "Too large is treated alike in both datatypes.",
    "RFC 8259, 6: range and precision are the implementation's; IEEE 754, 7.4: overflow gives infinity.",
)
INNER_WORDS = Difference(
    kinds.WORDS,
    "words of a refusal",
    "Refused with what the client sent: a shape with a number below zero, a batch of no rows.",
    "Refused by the same status; the words tell what it computed (-8 bytes are expected, a batch of 0 is 1).",
    "The message says what to change.",
    "A defect of the reference: the number that is named is not one that the client sent.",
)
RAW_WORDS = Difference(
    kinds.WORDS,
    "name of the input of a raw body",
    "An error about a body without JSON names the input as the model does.",
    "It is called `raw_input` until the input is described.",
    "The message says what to change.",
    "A defect of the reference: no model has an input of that name.",
)
DIGITS = Difference(
    kinds.READ,
    "digits of floating-point numbers",
    "Numbers are read to the nearest value and written in the fewest digits that give the same value again.",
    "Numbers of more than 17 digits are read as a neighbour, and the last digit of some is off by one when written.",
    "What was sent comes back.",
    "IEEE 754, 5.12.2: conversion is correctly rounded. A defect of the reference.",
)
HEAD = Difference(
    kinds.HTTP,
    "HEAD",
    "Where GET is answered, HEAD is answered with the same head, and no body follows.",
    "405 everywhere, or 404, and the error follows as a body, which a client takes for its next answer.",
    "Load balancers and tools look at a server's health by HEAD.",
    "RFC 9110, 9.1 and 9.3.2: all general-purpose servers must support GET and HEAD.",
)
CODING_CASE = Difference(
    kinds.HTTP,
    "Accept-Encoding in capitals",
    "`GZIP` is gzip: the answer is compressed.",
    "It is not known, and the answer comes as it is.",
    "It is the same coding.",
    "RFC 9110, 8.4.1: content codings are case-insensitive.",
)
CALL_REFUSED = Difference(
    kinds.GRPC,
    "how gRPC refuses calls before their message",
    "An unknown coding is UNIMPLEMENTED, a time-out that cannot be read INTERNAL with the reason, a content type of something else 415.",
    "The stream is reset with INTERNAL_ERROR.",
    "The client is told what is wrong.",
    "gRPC over HTTP/2: 415 for other content types; gRPC compression: an unsupported coding is UNIMPLEMENTED.",
)
CALL_TYPE = Difference(
    kinds.GRPC,
    "content type of gRPC calls",
    "Messages are protobuf: `application/grpc`, also with `+proto` or parameters; everything else, and none, is 415.",
    "`application/grpc+json` and calls without a content type are served as protobuf.",
    "What is said of the message is true, or the call is refused.",
    "gRPC over HTTP/2: if Content-Type does not begin with \"application/grpc\", respond with 415.",
)
NINE_DIGITS = Difference(
    kinds.GRPC,
    "grpc-timeout of nine digits",
    "It cannot be read: INTERNAL.",
    "Taken.",
    "The form is defined.",
    "gRPC over HTTP/2: TimeoutValue is a positive integer as ASCII string of at most 8 digits.",
)
TE = Difference(
    kinds.GRPC,
    "te header of gRPC calls",
    "Calls without it are served; what is not `trailers` resets the stream with PROTOCOL_ERROR.",
    "UNKNOWN without it; what is not `trailers` resets the stream with INTERNAL_ERROR.",
    "It is there to find proxies that drop trailers, and a server loses nothing without it.",
    "RFC 9113, 8.2.2: te must not contain any value other than \"trailers\"; such a request is malformed, a PROTOCOL_ERROR.",
)
PACKED_WORDS = Difference(
    kinds.WORDS,
    "compressed messages of a call without a coding",
    "INTERNAL: `Compressed-Flag bit set, but no grpc-encoding header`.",
    "INTERNAL: `Unable to parse request`.",
    "The message says what to change.",
    "gRPC over HTTP/2: the flag is only allowed with a Message-Encoding.",
)
BASE64 = Difference(
    kinds.GRPC,
    "metadata with -bin that is no base64",
    "Not looked at: nobody reads it.",
    "The stream is reset.",
    "A call does not fail over what it does not need.",
    "gRPC over HTTP/2, Custom-Metadata: -bin is for the application.",
)
LOAD_WORDS = Difference(
    kinds.SPECIFIED,
    "loads, unloads and indexes with a wrong body",
    "What is no JSON or no parameter is refused first, over a load and an unload alike; a value of the wrong type is 400.",
    "500 for a value of the wrong type, and the body of an unload is not looked at where models are not unloaded on request.",
    "What the client can mend is the client's error.",
    "RX-14, RX-21, RX-28, RX-41, RX-51.",
)
REPOSITORY_NAME = Difference(
    kinds.SPECIFIED,
    "repository_name",
    "The repository of that path, or of that last component, is meant; one that is not served is 404, NOT_FOUND.",
    "501, UNIMPLEMENTED; over HTTP an index of it lists all.",
    "The specification gives it this meaning.",
    "RX-61, RX-66, RX-74, and X-11: the specification decides.",
    kinds.OPERATOR,
)
RANGE = Difference(
    kinds.READ,
    "integers out of the range of their datatype",
    "256 for UINT8 in JSON is refused: 400.",
    "It is cut to its lower bits: 0.",
    "A wrong number is worse than an error.",
    "Open Inference Protocol, tensor data types: UINT8 is an unsigned integer of 8 bits. A defect of the reference.",
)
HALVES = Difference(
    kinds.MORE,
    "FP16 and BF16 in JSON",
    "Numbers, rounded to the nearest value and written as such; what would round to infinity is refused: 400.",
    "Refused: only binary tensors may have these datatypes.",
    "A model in half precision can be asked by hand.",
    "Open Inference Protocol, tensor data: FP16 is a datatype, and JSON numbers may be rounded (RFC 8259, 6).",
)
BYTES_IN_JSON = Difference(
    kinds.MORE,
    "strings that are no UTF-8",
    "An element of BYTES may be written `{\"b64\": \"...\"}`, and with the output's parameter `b64` one that is no UTF-8 comes back so.",
    "Refused; what is no UTF-8 comes back as it is, also here where `b64` is not asked for: no valid JSON.",
    "JSON has text only.",
    "RFC 8259, 8.1: JSON text is UTF-8; TensorFlow Serving's REST API writes bytes so.",
)
LIMIT = Difference(
    kinds.ENDS,
    "shapes larger than any body",
    "A shape is checked before anything of its size is made: 400.",
    "Memory of that size is asked for first, or the product of the dimensions overflows: 500, or another message.",
    "A request of 100 bytes does not take a machine's memory.",
    "RFC 4732, 2.2: resource exhaustion by small requests. A defect of the reference.",
)
CODING = Difference(
    kinds.HTTP,
    "transfer codings",
    "`Transfer-Encoding` may be `chunked`, in any case, and nothing else: 501, or 400 beside a length, and the connection is closed.",
    "Whatever it is, it is taken as `chunked`, or overlooked.",
    "Two peers that see the end of a body in two places can be made to see two requests in one (request smuggling).",
    "RFC 9112, 6.1 and 6.3: an unknown coding is answered with 501; a length beside a coding ought to be handled as an error.",
)
ZERO_BYTE = Difference(
    kinds.READ,
    "zero bytes in names",
    "A `\\u0000` in an id, a name or a parameter is refused: 400. In the strings of a tensor it is content.",
    "The text ends there: another name is used, or the output is missing from the answer.",
    "What is checked and what is used is the same text.",
    "CWE-626, null byte interaction error. A defect of the reference.",
)
VERSION_TEXT = Difference(
    kinds.READ,
    "versions with something behind the number",
    "`1 `, `0x1` and `1.0` are no versions over gRPC: INVALID_ARGUMENT.",
    "What follows the number is overlooked.",
    "A typing error does not ask another version.",
    "MR-24: the directory's number is the version number. A defect of the reference: `std::stoll` without a look at where it ended.",
)
CUT_STRING = Difference(
    kinds.READ,
    "the last string of a tensor is cut",
    "Refused, with the bytes that are missing.",
    "Taken; what the backend reads is what lies behind in memory, or fewer bytes than the length says.",
    "No bytes that are not of the request.",
    "Binary tensor data extension: a string is its length in four bytes, then so many bytes. A defect of the reference.",
)
REGIONS = Difference(
    kinds.LATER,
    "edges of shared memory",
    "Refused: an offset and a size whose sum is over 64 bits, a part of no bytes, the key of memory between a Python model and its process. "
    "Taken: several regions of one key.",
    "The sum wraps around and passes for a small one; a part of no bytes is one where it does not begin at the first byte; such a key is looked "
    "for; the second region of a key is refused.",
    "Today's Triton checks the sum and the key, and takes the second region.",
    "Triton's server of 2026, shared_memory_manager.cc and common.cc; CVE-2025-23319, CVE-2026-24173.",
)
CLASSES_OF_STRINGS = Difference(
    kinds.ENDS,
    "classes of strings",
    "A classification of an output of strings is refused: 400.",
    "The server ends.",
    "One request must not end a server.",
    "A defect of the reference: the index of a string is taken as a number.",
    tests=("41_compare/test_compare.py::test_class_of_strings",),
)

GENERATE = Difference(
    kinds.SPECIFIED,
    "failures and lengths of `generate`",
    "The answer to `generate` has a `Content-Length`, and where it is an error, the status of that error. The first event of a stream that is "
    "an error decides the status in the same way. HTTP/1.0 gets no chunks: the end of the connection ends a stream.",
    "The answer comes in chunks, also to HTTP/1.0; any error of a model is 400, and 200 where there were several responses or none.",
    "A client that looks at the status knows whether to try again.",
    "Generate extension: a failed request must be indicated by an HTTP error status; RFC 9112, 6.1: no transfer coding for HTTP/1.0. "
    "A defect of the reference: it reads the code of an error that it has freed.",
)

NOT_NOW = "explicit model load / unload is not allowed if polling is enabled"
NO_REGION = "failed to register shared memory region 'r':"
# Sums over 64 bits, and those that the reference takes for such.
WRAPS = (
    r"(18446744073709551615 from (1|4096|8192|8193)|(1|2|4096) from 18446744073709551615|"
    r"4096 from 18446744073709547520|9223372036854775808 from 9223372036854775808)"
)
RANGES = "400 Unable to parse 'data': a number is out of the range of the datatype"
VERSION = r"INVALID_ARGUMENT failed to get model version from specified version string '(1 |0x1|1\.0)' \(details: stol\).*"
ZERO_IS_NONE = "(400|INVALID_ARGUMENT) invalid model version specified '0' , version should be an integral value > 0"
TWICE = r"(400|INVALID_ARGUMENT) \[request id: <id_unknown>\] output 'OUTPUT0' already exists in request"
ONLY_CHUNKED = "501 Transfer-Encoding other than chunked is not supported"
SERVED = "200|OK"
RECITED = "recited to the point of failure"
NOT_ONE = "generate expects model to produce exactly 1 response, use generate stream for model that .* number of responses"
NO_VERSION_0 = "(404|NOT_FOUND) Request for unknown model: 'id_fp32' version 0 is not found"
TOO_BIG = r"500 failed to parse the request JSON buffer: Number too big to be stored in double\. at \d+"
NO_SHAPE = "500 Unable to parse 'data': Shape does not match true shape of 'data' field"
NO_STRING = "500 Unable to parse JSON bytes array: attempt to access JSON non-string as string"
NO_REPOSITORY = "is not served; expected the path of a repository as the server was given it, or its last component"
NO_HEADER_LENGTH = "400 Unable to parse Inference-Header-Content-Length, got:"
CLOSE = (("Connection", "close"),)
CODINGS = (("grpc-accept-encoding", "identity, deflate, gzip"),)
CALLED = r"\{'model_name': 'id_fp32', 'model_version': '1', 'outputs': .*, 'raw_output_contents': \['AACAPwAAAEA='\]\}"


def _one(datatype: str, shape: int, data: str) -> str:
    """The answer of a model with one output."""
    output = f'{{"name":"OUTPUT0","datatype":"{datatype}","shape":[{shape}],"data":{data}}}'
    return re.escape(f'{{"model_name":"id_{datatype.lower()}","model_version":"1","outputs":[{output}]}}')


@dataclass(frozen=True)
class Known:
    """Questions, by a pattern of their names, that both servers answer differently; both answers, as summary() puts them.

    body: what ours has, as said() puts it, where it is no error and has something else than the reference's. besides: the headers of ours
    besides those of each answer of its kind (forms.py). chance: the reference answers now this, now that."""

    difference: Difference
    questions: str
    ours: str
    theirs: str
    body: str | None = None
    besides: tuple[tuple[str, str], ...] = ()
    chance: bool = False


KNOWN = (
    Known(HEALTH, r"(control|routes): GET /v2/health/live(\?x=1)?|accepted: .*, nothing", "200", "200", r'\{"live":true\}'),
    Known(HEALTH, "control: GET /v2/health/ready", "200", "200", r'\{"ready":true\}'),
    Known(HEALTH, r"(control|routes): GET /v2/models/id_fp32(/versions/1)?/ready", "200", "200", r'\{"name":"id_fp32","ready":true\}'),
    Known(HEALTH, "names: GET /v2/models/id_newest(/versions/0?3)?/ready", "200", "200", r'\{"name":"id_newest","ready":true\}'),
    Known(HEALTH, "names: GET /v2/models/id_specific/ready", "200", "200", r'\{"name":"id_specific","ready":true\}'),
    Known(VERSION_0, "control: GET /v2/models/id_fp32/versions/0", ZERO_IS_NONE, NO_VERSION_0),
    Known(VERSION_0, "bad json: version 0", ZERO_IS_NONE, NO_VERSION_0),
    Known(VERSION_0, "grpc control: Model(Config|Metadata) of id_fp32 0", ZERO_IS_NONE, NO_VERSION_0),
    Known(VERSION_0, "grpc control: ModelReady of id_fp32 0", ZERO_IS_NONE, "OK"),
    Known(OUTPUT_TWICE, "(bad json|grpc infer): duplicate output", TWICE, SERVED),
    Known(HEADER_LENGTH, "raw body: a header that is text", f"{NO_HEADER_LENGTH} no", SERVED),
    Known(HEADER_LENGTH, "raw body: an empty header", NO_HEADER_LENGTH, SERVED),
    Known(
        RAW_WORDS,
        "raw body: (half a float|two rows|a fixed shape, too few)",
        "400 .* input byte size mismatch for input 'INPUT0' .*",
        "400 .* input byte size mismatch for input 'raw_input' .*",
    ),
    Known(
        HEADER_LENGTH,
        "bad binary: header length no number",
        f"{NO_HEADER_LENGTH} abc",
        "400 .* input byte size mismatch for input 'raw_input' .*",
    ),
    Known(INNER_WORDS, "bad json: batch of none", "400 .* batch-size must be >= 1 .*", "400 .* Expected 64, got 0 *"),
    Known(INNER_WORDS, "grpc infer: negative dimension", r"INVALID_ARGUMENT .* got \[-2\]\.", "INVALID_ARGUMENT .* Expected -8, got 8 *"),
    Known(HEAD, "routes: HEAD /v2/(health/live(\\?x=1)?|models/id_fp32(/ready|/config)?)", "200", "405"),
    Known(HEAD, "routes: HEAD /v2/(logging|(models/id_fp32/)?trace/setting|(system|cuda)sharedmemory/status)", "200", "405"),
    Known(HEAD, "routes: HEAD /v2/(system|cuda)sharedmemory/region/r/status", "404", "405"),
    Known(HEAD, "routes: HEAD /v2/models/(id%5ffp32|id_fp32%2fready|\\.\\.)", "404", "405"),
    Known(ZSTD, "accepted: 'zstd', (JSON|binary)", r"200 \(zstd\)", "200"),
    Known(ZSTD, "accepted: 'zstd, gzip', (JSON|binary)", r"200 \(zstd\)", r"200 \(gzip\)"),
    Known(FOREIGN_PAGE, "accepted: Origin x", r"403 a page of another origin \(x\) .*", "200"),
    Known(CODING_CASE, "accepted: 'GZIP', (JSON|binary)", r"200 \(gzip\)", "200"),
    Known(GENERATE, "generate: an error before a response", f"500 {NOT_ONE}", f"400 {NOT_ONE}"),
    Known(
        GENERATE,
        "generate: (no response|two responses|many responses|responses, the last of them final|parameters (of responses|apart)|"
        "text: inputs among the parameters|an error (after|in|at the end).*)",
        f"500 {NOT_ONE}",
        f"200 {NOT_ONE}",
    ),
    Known(GENERATE, "generate: (an error|an error that is final|shape: not decoupled, an error)", f"503 {RECITED}", f"400 {RECITED}"),
    Known(GENERATE, "generate_stream: (an error( that is final| before a response)?|shape: not decoupled, an error)", "503", "400"),
    Known(VERSION_0, "generate(_stream)?: shape: version 0", ZERO_IS_NONE, NO_VERSION_0),
    Known(RANGE, "generate(_stream)?: a number too large", RANGES, SERVED),
    Known(NINE_DIGITS, "gRPC headers: grpc-timeout '100000000S'", "INTERNAL grpc-timeout cannot be read", "OK"),
    Known(CALL_REFUSED, r"gRPC headers: grpc-timeout '(1x|x||-1S|1\.5S)'", "INTERNAL grpc-timeout cannot be read", "reset 2"),
    Known(
        CALL_REFUSED,
        "gRPC headers: (a plain|a compressed) message(, '(br|)'| of an unknown coding)",
        "UNIMPLEMENTED the grpc-encoding of the call is not supported",
        "reset 2",
        besides=CODINGS,
    ),
    Known(CALL_REFUSED, "gRPC headers: content-type 'application/(grpcx|json)'", "HTTP 415", "reset 2"),
    Known(CALL_TYPE, r"gRPC headers: content-type ('application/grpc\+json'|''|None)", "HTTP 415", "OK"),
    Known(TE, "gRPC headers: te '(gzip|)'", "reset 1", "reset 2"),
    Known(TE, "gRPC headers: te None", "OK", "UNKNOWN Missing :te header", CALLED),
    Known(
        PACKED_WORDS,
        "gRPC headers: a compressed message of no coding",
        "INTERNAL Compressed-Flag bit set, but no grpc-encoding header",
        "INTERNAL Unable to parse request",
    ),
    Known(BASE64, "gRPC headers: binary metadata that is none", "OK", "reset 2", CALLED),
    Known(
        LOAD_WORDS,
        "repository: load of .*, parameters",
        "500 unexpected error on creating Triton parameter",
        "500 attempt to access JSON non-string as string",
    ),
    Known(LOAD_WORDS, "repository: load of .*, a text", "400 'parameters' must be an object", "500 attempt to get members for non-object"),
    Known(LOAD_WORDS, "repository: unload of .*, no JSON", "500 failed to parse the request JSON buffer: .*", f"503 {NOT_NOW}"),
    Known(LOAD_WORDS, "repository: unload of .*, a text", "400 'parameters' must be an object", f"503 {NOT_NOW}"),
    Known(
        LOAD_WORDS,
        'repository: index {"ready":.*}',
        "400 Invalid value for 'ready': expected a boolean",
        "500 attempt to access JSON non-boolean as boolean",
    ),
    Known(REPOSITORY_NAME, "repository: index of repository 'repository'", f"404 repository 'repository' {NO_REPOSITORY}", "200"),
    Known(
        REPOSITORY_NAME,
        "repository: load from repository 'repository'",
        f"503 {NOT_NOW}",
        "501 'repository_name' specification is not supported",
    ),
    Known(
        REPOSITORY_NAME,
        "repository: index of a repository",
        f"NOT_FOUND repository 'x' {NO_REPOSITORY}",
        "UNIMPLEMENTED 'repository_name' specification is not supported",
    ),
    Known(RANGE, "faults: another datatype, INT64 in JSON", RANGES, "400 .* inference input 'INPUT0' data-type is 'INT16', .*"),
    Known(RANGE, r"values: (256|65536|4294967296) as UINT\d+", RANGES, SERVED),
    Known(RANGE, r"values: (-129|128|-32769|32768|-2147483649|2147483648) as INT\d+", RANGES, SERVED),
    Known(INFINITE, "values: 1e400 as FP32", "200", TOO_BIG, _one("FP32", 1, "[Infinity]")),
    Known(INFINITE, "values: 1e400 as FP64", "200", TOO_BIG, _one("FP64", 1, "[Infinity]")),
    Known(INFINITE, "values: 1e400 as BOOL", "500 Unable to parse 'data': attempt to access JSON non-boolean as boolean", TOO_BIG),
    Known(
        INFINITE,
        r"values: 1e400 as UINT\d+",
        "500 Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
        TOO_BIG,
    ),
    Known(
        INFINITE,
        r"values: 1e400 as INT\d+",
        "500 Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
        TOO_BIG,
    ),
    Known(INFINITE, "values: 1e400 as BYTES", NO_STRING, TOO_BIG),
    Known(HALVES, "bad json: FP16 in JSON", "200", "400 receiving FP16 data via JSON is not supported.*", _one("FP16", 2, "[1.0,2.0]")),
    Known(HALVES, "bad json: BF16 in JSON", "200", "400 receiving BF16 data via JSON is not supported.*", _one("BF16", 2, "[1.0,2.0]")),
    Known(HALVES, "datatypes: FP16 in JSON", "200", "400 receiving FP16 data via JSON is not supported.*", _one("FP16", 2, "[1.0,-2.0]")),
    Known(HALVES, "bad binary: FP16 to JSON", "200", "400 sending FP16 data via JSON is not supported.*", _one("FP16", 2, "[1.0,2.0]")),
    Known(BYTES_IN_JSON, r'values: \{"b64": "/wA="\} as BYTES', "200", NO_STRING, _one("BYTES", 1, '["\xff\\u0000"]')),
    Known(BYTES_IN_JSON, r'values: \{"b64": ""\} as BYTES', "200", NO_STRING, _one("BYTES", 1, '[""]')),
    Known(
        BYTES_IN_JSON,
        r'values: \{"b64": "A"\} as BYTES',
        r"400 Unable to parse 'data': the string of \{\"b64\": \.\.\.\} is not base64",
        NO_STRING,
    ),
    Known(
        PROTOBUF_WORDS,
        "gRPC bytes: ModelMetadata: a wrong wire type",
        "INTERNAL Unable to parse request",
        "NOT_FOUND Request for unknown model: '' is not found",
    ),
    Known(PROTOBUF_WORDS, "gRPC bytes: (ModelReady|RepositoryIndex): a wrong wire type", "INTERNAL Unable to parse request", "OK"),
    Known(LIMIT, "faults: huge dimension, (FP32|INT64) in JSON", "400 .* exceeds the maximum allowed value of 67108864 bytes.*", NO_SHAPE),
    Known(
        LIMIT,
        "faults: product of dimensions overflows, .* in JSON",
        "400 invalid shape .* maximum size of 9223372036854775807",
        "400 .* unexpected shape for input .*",
    ),
    Known(LIMIT, "odd JSON: shape too large for 64 bits", "400 Unable to parse 'shape': a dimension is over 9223372036854775807", NO_SHAPE),
    Known(
        CODING,
        "framing: ((gzip|foo|identity), chunked|chunked, (chunked|identity)|xchunked|identity and a length)",
        ONLY_CHUNKED,
        "200",
        besides=CLOSE,
    ),
    Known(CODING, "framing: CHUNKED", "200", "200", _one("FP32", 1, "[7.0]")),
    Known(CODING, "framing: an empty coding and a length", "400 Transfer-Encoding names no coding", "200", besides=CLOSE),
    Known(ZERO_BYTE, "(bytes: a zero byte|odd JSON: a NUL) in the id", "400 request id 'a...' holds a zero byte", "200"),
    Known(ZERO_BYTE, "bytes: a zero byte in an input's name", r"400 input 'INPUT0\.\.\.' holds a zero byte", "200"),
    Known(ZERO_BYTE, "bytes: a zero byte in an output's name", r"400 output 'OUTPUT0\.\.\.' holds a zero byte", "200"),
    Known(ZERO_BYTE, "bytes: a zero byte in a parameter", r"400 parameter value 'b\.\.\.' holds a zero byte", "200"),
    Known(ZERO_BYTE, "bytes: a zero byte in a sequence id", r"400 sequence id 'a\.\.\.' holds a zero byte", "200"),
    Known(
        ZERO_BYTE,
        "bytes: a zero byte in a parameter's name",
        r"400 parameter 'a\.\.\.' holds a zero byte",
        "500 parameter key 'a' was not found in the JSON",
    ),
    Known(ZERO_BYTE, r"regions: key 'a\\x00b', 3", r"400 key 'a\.\.\.' holds a zero byte", "500 Unable to open shared memory region: 'a'"),
    Known(
        REGIONS,
        "regions: one key under two names",
        "200",
        f"500 Invalid shared memory region: .*|400 {NO_REGION} invalid args",
        r"\[\{'name': 'in', .*\}, \{'name': 'r', .*\}\]",
        chance=True,
    ),
    Known(
        REGIONS,
        "regions: key with a reserved prefix",
        "400 .* the key contains the reserved prefix .*",
        "500 Unable to open shared memory region: .*",
    ),
    Known(REGIONS, f"regions: {WRAPS} on", f"400 {NO_REGION} invalid args", f"400 {NO_REGION} unable to process address space.*"),
    Known(
        REGIONS,
        f"region calls: register {WRAPS} on",
        f"INVALID_ARGUMENT {NO_REGION} invalid args",
        f"INVALID_ARGUMENT {NO_REGION} unable to process address space.*",
    ),
    Known(
        REGIONS,
        "regions over HTTP: input of 0 from 63 on",
        "400 Invalid offset . byte size for shared memory region: 'in'",
        "400 .* Expected 8, got 0",
    ),
    Known(
        REGIONS,
        "regions over HTTP: output of 0 from 63 on",
        "400 Invalid offset . byte size for shared memory region: 'out'",
        "500 shared memory size .*",
    ),
    Known(VERSION_TEXT, r"gRPC names: ModelReady of id_newest version '(1 |0x1|1\.0)'", VERSION, "OK"),
    Known(
        VERSION_TEXT,
        r"gRPC names: Model(Config|Metadata) of id_newest version '(1 |1\.0)'",
        VERSION,
        "NOT_FOUND .* version 1 is not found",
    ),
    Known(VERSION_TEXT, "gRPC names: Model(Config|Metadata) of id_newest version '0x1'", VERSION, "NOT_FOUND .* version 0 is not found"),
    Known(
        VERSION_TEXT,
        r"gRPC names: ModelStatistics of id_newest version '(1 |0x1|1\.0)'",
        VERSION,
        "INVALID_ARGUMENT requested model version is not available for model 'id_newest'",
    ),
    Known(
        CUT_STRING,
        "faults: last byte cut, BYTES in (binary|gRPC raw)|regions over (HTTP|gRPC): 2 strings in 12 bytes",
        "(400|INVALID_ARGUMENT) .* the last string of inference input .* is 1 bytes short",
        SERVED,
    ),
    Known(CUT_STRING, "regions over HTTP: 1 strings in 4 bytes", "400 .* the last string of inference input .* is 3 bytes short", "200"),
)


def summary(answer: dict[str, Any]) -> str:
    """Status and error in a line: "400 what is wrong", "NOT_FOUND what is wrong", "200", "200 (gzip)", "OK"."""
    body = answer.get("body")
    error = answer.get("details") or (body.get("error", "") if isinstance(body, dict) else "")
    coding = [f"({value})" for name, value in answer["wire"]["headers"] if name == "Content-Encoding"] if "status" in answer else []
    return " ".join([str(answer.get("status", answer.get("code"))), *coding, *([error] if error else [])]).strip()


def said(answer: dict[str, Any]) -> str:
    """What an answer has: the text of HTTP, the message of gRPC, and what is registered afterwards."""
    text = answer["wire"]["text"].decode("latin-1") if "status" in answer else str(answer["message"])
    return text + str(answer.get("registered", ""))


def known(question: str) -> Known | None:
    return next((each for each in KNOWN if re.fullmatch(each.questions, question, re.DOTALL)), None)


SHOWN = tuple(value for value in list(globals().values()) if isinstance(value, Difference))
