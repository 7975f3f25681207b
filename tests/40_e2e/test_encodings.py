"""Content codings of HTTP and compressed messages of gRPC: the same questions to both servers."""

import gzip
import json
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
from harness import h2frames as h2
from harness import metrics, rawgrpc, rawhttp, zstd
from harness.servers import HOST, KINDS, Nereid, Reference, Server
from tritonclient.grpc import service_pb2 as pb

INFER = f"/{rawgrpc.SERVICE}/ModelInfer"
MAX_INPUT = 1 << 20
VALUES = [float(value) for value in range(16)]
TENSOR: dict[str, object] = {"name": "INPUT0", "datatype": "FP32", "shape": [16]}
BODY = json.dumps({"inputs": [{**TENSOR, "data": VALUES}]}).encode()
RAW = np.array(VALUES, np.float32).tobytes()
HEAD = json.dumps(
    {
        "inputs": [{**TENSOR, "parameters": {"binary_data_size": len(RAW)}}],
        "parameters": {"binary_data_output": True},
    }
).encode()
BINARY = {"Inference-Header-Content-Length": str(len(HEAD))}
GZIPPED = gzip.compress(BODY, mtime=0)
LARGE = json.dumps({"inputs": [{**TENSOR, "shape": [60000], "data": [float(n % 9) for n in range(60000)]}]}).encode()


def coding(name: str) -> dict[str, str]:
    return {"Content-Encoding": name}


def accept(value: str) -> dict[str, str]:
    return {"Accept-Encoding": value}


# What both servers answer alike: body and headers of the request.
SAME: dict[str, tuple[bytes, dict[str, str]]] = {
    "gzip": (GZIPPED, coding("gzip")),
    "deflate": (zlib.compress(BODY), coding("deflate")),
    "gzip called deflate": (GZIPPED, coding("deflate")),
    "deflate called gzip": (zlib.compress(BODY), coding("gzip")),
    "identity": (BODY, coding("identity")),
    "unknown": (BODY, coding("br")),
    "two at once": (gzip.compress(GZIPPED), coding("gzip, gzip")),
    "alias": (GZIPPED, coding("x-gzip")),
    "bytes behind the end": (GZIPPED + b"xyz", coding("gzip")),
    "no body": (b"", coding("gzip")),
    "of nothing": (gzip.compress(b""), coding("gzip")),
    "binary": (gzip.compress(HEAD + RAW), BINARY | coding("gzip")),
    "header size in range of what is packed": (
        gzip.compress(HEAD + RAW),
        {"Inference-Header-Content-Length": "100000"} | coding("gzip"),
    ),
    "large": (gzip.compress(LARGE), coding("gzip")),
    "large, both ways": (gzip.compress(LARGE), coding("gzip") | accept("gzip")),
    "accept gzip": (BODY, accept("gzip")),
    "accept deflate": (BODY, accept("deflate")),
    "the first of equals": (BODY, accept("deflate, gzip")),
    "the first of equals, turned": (BODY, accept("gzip, deflate")),
    "weights": (BODY, accept("gzip;q=0.5, deflate;q=0.6")),
    "identity wins": (BODY, accept("gzip;q=0.5, identity;q=0.6")),
    "weight 0": (BODY, accept("gzip;q=0")),
    "any": (BODY, accept("*")),
    "unknown and gzip": (BODY, accept("br, gzip")),
    "weight that is none": (BODY, accept("gzip;q=abc")),
    "accept binary": (HEAD + RAW, BINARY | accept("gzip")),
    "large answer": (LARGE, accept("deflate")),
}


@pytest.fixture(scope="module")
def servers(identity_repository: Path) -> Iterator[list[Server]]:
    with (
        Nereid(identity_repository, {"http-max-input-size": str(MAX_INPUT)}) as ours,
        Reference(identity_repository) as theirs,
    ):
        yield [ours, theirs]


@pytest.fixture(scope="module")
def ours(identity_repository: Path) -> Iterator[Server]:
    with Nereid(identity_repository, {"http-max-input-size": str(MAX_INPUT)}) as server:
        yield server


def ask(server: Server, body: bytes, headers: dict[str, str], model: str = "id_fp32") -> rawhttp.Answer:
    with rawhttp.Connection(HOST, server.http_port) as connection:
        connection.send(rawhttp.head("POST", f"/v2/models/{model}/infer", headers, body) + body)
        return connection.answer()


def plain(answer: rawhttp.Answer) -> bytes:
    unpack = {"gzip": gzip.decompress, "deflate": zlib.decompress, "zstd": zstd.decompress, None: bytes}
    return unpack[answer.header("Content-Encoding")](answer.body)  # type: ignore[no-any-return, operator]


SEEN = ["Content-Encoding", "Accept-Encoding", "Inference-Header-Content-Length"]


@pytest.mark.reference
@pytest.mark.parametrize("case", SAME)
def test_as_the_reference(servers: list[Server], case: str) -> None:
    ours, theirs = (ask(server, *SAME[case]) for server in servers)
    assert ours.status == theirs.status
    assert plain(ours) == plain(theirs)
    assert [ours.header(name) for name in SEEN] == [(theirs.header(name) or "").replace("gzip, deflate", "gzip, deflate, zstd") or None for name in SEEN]


@pytest.mark.reference
def test_an_unknown_model_is_told_before_its_body_is_looked_at(servers: list[Server]) -> None:
    ours, theirs = (ask(server, b"no gzip", coding("gzip"), model="nobody") for server in servers)
    assert (ours.status, ours.body) == (theirs.status, theirs.body)


PACK = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize("body", [BODY, LARGE], ids=["small", "large"])
def test_requests_and_answers(ours: Server, name: str, body: bytes) -> None:
    packed = PACK[name](body)
    answer = ask(ours, packed, coding(name) | accept(name))
    assert answer.status == 200
    assert answer.header("Content-Encoding") == name
    assert json.loads(plain(answer))["outputs"][0]["data"] == json.loads(body)["inputs"][0]["data"]


DAMAGED = {
    "nothing of it": (BODY, "incorrect header check"),
    "without the end": (GZIPPED[:-4], "it is cut off"),
    "another sum": (GZIPPED[:-8] + b"sums" + GZIPPED[-4:], "incorrect data check"),
    "another length": (GZIPPED[:-4] + b"size", "incorrect length check"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_bodies_are_not_served(ours: Server, case: str) -> None:
    """The reference serves what it could unpack, and be it nothing."""
    body, why = DAMAGED[case]
    answer = ask(ours, body, coding("gzip"))
    assert answer.status == 400
    assert answer.json() == {"error": f"the compressed request body cannot be read: {why}"}


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize("size", [MAX_INPUT + 1, 200 * MAX_INPUT])
def test_bombs(ours: Server, name: str, size: int) -> None:
    answer = ask(ours, PACK[name](b" " * size), coding(name))
    assert answer.status == 400
    message = f"Decompressed data size exceeds the maximum allowed value of {MAX_INPUT} bytes."
    assert answer.json() == {"error": f"{message} Use --http-max-input-size to increase the limit."}


@pytest.mark.parametrize("name", PACK)
def test_the_limit_itself_is_allowed(ours: Server, name: str) -> None:
    body = BODY + b" " * (MAX_INPUT - len(BODY))
    assert ask(ours, PACK[name](body), coding(name)).status == 200


FRAME = zstd.compress(BODY)
FRAMES = {
    "of unknown size": zstd.compress(BODY, size=0),
    "with a sum": zstd.compress(BODY, sum=1),
    "in two parts": zstd.compress(BODY[:30]) + zstd.compress(BODY[30:], size=0),
    "among others that are skipped": zstd.skippable(b"x") + FRAME + zstd.skippable(b"more"),
    "beside empty ones": zstd.compress(b"") * 3 + FRAME + zstd.compress(b"", size=0),
    "of the largest window": zstd.windowed(zstd.compress(BODY, size=0), 23),
}


@pytest.mark.parametrize("case", FRAMES)
def test_frames_of_zstd(ours: Server, case: str) -> None:
    answer = ask(ours, FRAMES[case], coding("zstd"))
    assert answer.status == 200, answer.body
    assert answer.json()["outputs"][0]["data"] == VALUES


NO_FRAMES: dict[str, tuple[bytes, str | None]] = {
    "another window": (zstd.windowed(zstd.compress(BODY, size=0), 23, 1), "Frame requires too much memory for decoding"),
    "nothing of it": (BODY, "a frame of zstd was expected"),
    "gzip": (GZIPPED, "a frame of zstd was expected"),
    "an older format": (b"\x27\xb5\x2f\xfd" + FRAME[4:], "a frame of zstd was expected"),
    "bytes behind the end": (FRAME + b"xyz", "a frame of zstd was expected"),
    "without the end": (FRAME[:-1], "it is cut off"),
    "another sum": (zstd.compress(BODY, sum=1)[:-4] + b"sums", "Restored data doesn't match checksum"),
    "another size": (bytes.fromhex("28b52ffd40500501010000"), None),
    "a dictionary": (FRAME[:4] + bytes([FRAME[4] | 1]) + b"\7" + FRAME[5:], "Dictionary mismatch"),
}


@pytest.mark.parametrize("case", NO_FRAMES)
def test_what_is_no_frame_of_zstd(ours: Server, case: str) -> None:
    """The window that a frame wants is limited as RFC 9659 has it; older formats are not read at all."""
    body, why = NO_FRAMES[case]
    answer = ask(ours, body, coding("zstd"))
    assert answer.status == 400
    said, found = answer.json()["error"].split(": ", 1)
    assert said == "the compressed request body cannot be read"
    assert found == (why or found)  # None: in the words of the library, or ours where it is lenient


@pytest.mark.parametrize(("value", "chosen"), [("zstd", "zstd"), ("ZSTD", "zstd"), ("gzip, zstd", "gzip"), ("gzip;q=0.5, zstd;q=0.6", "zstd"), ("zstd;q=0", None)])
def test_who_gets_zstd(ours: Server, value: str, chosen: str | None) -> None:
    answer = ask(ours, HEAD + RAW, BINARY | accept(value))
    assert answer.header("Content-Encoding") == chosen
    length = int(answer.header("Inference-Header-Content-Length") or 0)
    assert plain(answer)[length:] == RAW


def test_without_the_library_of_zstd(identity_repository: Path, tmp_path: Path) -> None:
    """One that has none of its functions is as good as none."""
    source = tmp_path / "empty.c"
    source.write_text("int empty;")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "libzstd.so.1"), str(source)], check=True)
    with Nereid(identity_repository, env={"LD_LIBRARY_PATH": str(tmp_path)}) as server:
        refused = ask(server, zstd.compress(BODY), coding("zstd"))
        assert (refused.status, refused.json()["error"]) == (501, "zstd: libzstd.so.1 lacks a function")
        as_it_is = ask(server, BODY, accept("zstd, gzip;q=0.5"))
        assert (as_it_is.status, as_it_is.header("Content-Encoding")) == (200, None)
        assert ask(server, GZIPPED, coding("gzip") | accept("gzip")).status == 200


def test_zstd_gives_back_what_it_took(ours: Server) -> None:
    """Large windows are charged while they are there."""
    def used() -> float:
        return metrics.scrape(ours.metrics)["nereid_budget_in_use_bytes"].value()

    packed = zstd.windowed(zstd.compress(LARGE, size=0), 23)
    for _ in range(3):
        assert ask(ours, packed, coding("zstd") | accept("zstd")).status == 200
    before = used()
    for _ in range(20):
        assert ask(ours, packed, coding("zstd") | accept("zstd")).status == 200
        assert ask(ours, packed[:-9], coding("zstd")).status == 400
    ours.process.wait_until(lambda: used() <= before, 60)


def test_pipelined_answers_keep_their_order(ours: Server) -> None:
    """A large body that a helper unpacks holds the small one behind it back, not the other way round."""
    packed = gzip.compress(LARGE)
    path = "/v2/models/id_fp32/infer"
    with rawhttp.Connection(HOST, ours.http_port) as connection:
        first = rawhttp.head("POST", path, coding("gzip") | accept("gzip"), packed) + packed
        connection.send(first + rawhttp.head("POST", path, {}, BODY) + BODY + first)
        shapes = [json.loads(plain(connection.answer()))["outputs"][0]["shape"] for _ in range(3)]
    assert shapes == [[60000], [16], [60000]]


def test_clients_that_leave_meanwhile(ours: Server) -> None:
    packed = gzip.compress(LARGE)
    request = rawhttp.head("POST", "/v2/models/id_fp32/infer", coding("gzip") | accept("gzip"), packed) + packed
    for _ in range(20):
        with rawhttp.Connection(HOST, ours.http_port) as connection:
            connection.send(request)
    assert ask(ours, packed, coding("gzip")).status == 200


def test_other_routes_take_them_too(ours: Server) -> None:
    body = gzip.compress(b'{"ready":true}')
    with rawhttp.Connection(HOST, ours.http_port) as connection:
        connection.send(rawhttp.head("POST", "/v2/repository/index", coding("gzip"), body) + body)
        assert {entry["state"] for entry in connection.answer().json()} == {"READY"}
        connection.send(rawhttp.head("GET", "/v2/health/live", coding("br")))
        assert connection.answer().status == 200


# gRPC

LEVELS = ["none", "low", "medium", "high"]
ACCEPTED = ["identity", "identity, deflate, gzip", "gzip", "deflate", "identity,gzip", "snappy"]


def infer(address: str, values: int, accepted: str) -> h2.Call:
    data = np.zeros(values, np.float32).tobytes()
    body = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [values], data)]).SerializeToString()
    with h2.Connection(address) as connection:
        block = h2.header_block(h2.call_headers(INFER, grpc_accept_encoding=accepted))
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block))
        message = h2.message(body)
        for at in range(0, len(message), 16384):
            connection.send(h2.frame(h2.DATA, 0, 1, message[at : at + 16384]))
        connection.send(h2.frame(h2.DATA, h2.END_STREAM, 1))
        return connection.finish(1)


def one_response(call: h2.Call) -> tuple[str | None, bool, pb.ModelInferResponse]:
    """What it was packed with, whether it was, and what it says."""
    packed, data = call.data[0], call.data[5:]
    encoding = call.headers.get("grpc-encoding")
    if packed:
        data = gzip.decompress(data) if encoding == "gzip" else zlib.decompress(data)
    return encoding, bool(packed), pb.ModelInferResponse.FromString(data)


@pytest.mark.reference
@pytest.mark.parametrize("level", LEVELS)
def test_levels_as_the_reference(identity_repository: Path, level: str) -> None:
    options = {"grpc-infer-response-compression-level": level}
    seen = {}
    for name, kind in KINDS.items():
        with kind(identity_repository, options) as server:
            seen[name] = [
                one_response(infer(server.grpc, values, accepted))
                for accepted in ACCEPTED
                for values in (0, 1, 1000, 12000)
            ]
    for ours, theirs in zip(seen["nereid"], seen["reference"], strict=True):
        assert ours[1:] == theirs[1:]
        if theirs[1]:
            assert ours[0] == theirs[0]


@pytest.mark.parametrize("values", [4, 100000])
@pytest.mark.parametrize("level", ["low", "high"])
def test_the_real_client_reads_compressed_streams(identity_repository: Path, level: str, values: int) -> None:
    """Responses keep their order, the large ones that a helper packs and the small ones between them."""
    sizes = [values, 4] * 10
    with (
        Nereid(identity_repository, {"grpc-infer-response-compression-level": level}) as server,
        grpc.insecure_channel(server.grpc, options=[("grpc.max_receive_message_length", -1)]) as channel,
    ):
        requests = [
            rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [size], np.full(size, 7, np.float32).tobytes())])
            for size in sizes
        ]
        call = channel.stream_stream(
            f"/{rawgrpc.SERVICE}/ModelStreamInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelStreamInferResponse.FromString,
        )
        got = [
            answer.infer_response.outputs[0].shape[0]
            for answer in call(iter(requests), timeout=60, compression=grpc.Compression.Gzip)
        ]
    assert got == sizes


def test_streams_that_end_while_messages_are_packed(identity_repository: Path) -> None:
    """Their requests have been executed by then: what is left of them is in the hands of a helper."""
    data = np.random.default_rng(1).standard_normal(500000).astype(np.float32).tobytes()  # long to pack
    request = rawgrpc.infer_request("id_fp32", [("INPUT0", "FP32", [500000], data)]).SerializeToString()
    block = h2.header_block(h2.call_headers(f"/{rawgrpc.SERVICE}/ModelStreamInfer", grpc_accept_encoding="gzip"))
    options = {"grpc-infer-response-compression-level": "low"}
    with Nereid(identity_repository, options) as server:

        def told(family: str, **labels: str) -> float:
            return metrics.scrape(server.metrics)[family].value(**labels)

        def executed() -> float:
            return told("nv_inference_request_success", model="id_fp32")

        for _ in range(10):
            server.process.wait_for(lambda: told("nereid_requests_in_flight", protocol="grpc"), 0)
            before = executed()
            with h2.Connection(server.grpc) as connection:
                connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block))
                connection.send(*h2.frames_of(1, h2.message(request) * 2)[:-1])
                server.process.wait_until(lambda before=before: executed() > before, 60)
                connection.send(h2.frame(h2.RST_STREAM, 0, 1, bytes(4)))
        assert one_response(infer(server.grpc, 1000, "gzip"))[1]
