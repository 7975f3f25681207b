"""gRPC over TLS: the options of the reference, asked of both servers by grpcio and by tritonclient; and what only ours does."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from harness import metrics, rawhttp, tls
from harness.servers import HOST, KINDS, Nereid, Server

BOTH = ["nereid", pytest.param("reference", marks=pytest.mark.reference)]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tls.Authority:
    return tls.Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def client(authority: tls.Authority) -> tls.Pair:
    return authority.sign("client")


@pytest.fixture(scope="module", params=BOTH)
def secure(request: pytest.FixtureRequest, identity_repository: Path, authority: tls.Authority) -> Iterator[Server]:
    with KINDS[request.param](identity_repository, tls.options(authority.sign(), ("grpc",))) as server:
        yield server


@pytest.fixture(scope="module", params=BOTH)
def mutual(request: pytest.FixtureRequest, identity_repository: Path, authority: tls.Authority) -> Iterator[Server]:
    with KINDS[request.param](identity_repository, tls.options(authority.sign(), ("grpc",), authority.cert)) as server:
        yield server


@pytest.fixture(scope="module")
def ours(identity_repository: Path, authority: tls.Authority) -> Iterator[Nereid]:
    with Nereid(identity_repository, tls.options(authority.sign(), ("grpc",))) as server:
        yield server


def _infer(server: Server, authority: tls.Authority, pair: tls.Pair | None = None, count: int = 16, **more) -> np.ndarray:
    files = {"root_certificates": str(authority.cert)}
    if pair:
        files |= {"private_key": str(pair.key), "certificate_chain": str(pair.cert)}
    with grpcclient.InferenceServerClient(f"localhost:{server.grpc_port}", ssl=True, **files) as made:
        data = np.arange(count, dtype=np.float32)
        given = grpcclient.InferInput("INPUT0", [count], "FP32")
        given.set_data_from_numpy(data)
        got = made.infer("id_fp32", [given], client_timeout=60, **more).as_numpy("OUTPUT0")
        assert (got == data).all()
        return got


def test_the_client_of_the_reference_infers(secure: Server, authority: tls.Authority) -> None:
    for count in (1, 1000, 3_000_000):
        _infer(secure, authority, count=count)
    _infer(secure, authority, count=100_000, compression_algorithm="gzip")


def test_a_stream_of_requests(secure: Server, authority: tls.Authority) -> None:
    answers: list[object] = []
    there = threading.Event()
    wanted = 30

    def took(result, error) -> None:
        answers.append(error or result.as_numpy("OUTPUT0")[0])
        if len(answers) == wanted:
            there.set()

    with grpcclient.InferenceServerClient(f"localhost:{secure.grpc_port}", ssl=True, root_certificates=str(authority.cert)) as made:
        made.start_stream(took)
        for i in range(wanted):
            given = grpcclient.InferInput("INPUT0", [20_000], "FP32")
            given.set_data_from_numpy(np.full(20_000, i, dtype=np.float32))
            made.async_stream_infer("id_fp32", [given])
        assert there.wait(60), answers
        made.stop_stream()
    assert sorted(answers) == list(range(wanted))


def test_a_client_that_trusts_another_authority_does_not_connect(secure: Server, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        _infer(secure, tls.Authority(tmp_path, "other"))


def test_clients_show_a_certificate(mutual: Server, authority: tls.Authority, client: tls.Pair) -> None:
    _infer(mutual, authority, client)


@pytest.mark.parametrize("shown", ["none", "of another authority"])
def test_clients_without_a_good_certificate_are_refused(mutual: Server, authority: tls.Authority, tmp_path: Path, shown: str) -> None:
    pair = None if shown == "none" else tls.Authority(tmp_path, "other").sign("client")
    with pytest.raises(Exception, match="UNAVAILABLE"):
        _infer(mutual, authority, pair)


def test_many_calls_at_once(ours: Nereid, authority: tls.Authority) -> None:
    credentials = grpc.ssl_channel_credentials(authority.cert.read_bytes())
    with grpc.secure_channel(f"localhost:{ours.grpc_port}", credentials) as channel:
        live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        calls = [live.future(b"", timeout=60) for _ in range(300)]
        assert {call.result() for call in calls} == {b"\x08\x01"}


def test_who_names_no_protocol_or_another_one_is_sent_away(ours: Nereid, authority: tls.Authority) -> None:
    for names in ([], ["http/1.1"]):
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            with tls.Connection(ours.grpc_port, tls.context(authority, alpn=names)) as c:
                c.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                if not c.socket.recv(1):
                    raise EOFError
    ours.process.wait_until(lambda: "names no protocol that is spoken here (ALPN)" in ours.process.log(), 30)


def test_plain_grpc_on_the_port_of_tls(ours: Nereid, authority: tls.Authority) -> None:
    with grpc.insecure_channel(ours.grpc) as channel, pytest.raises(grpc.RpcError) as e:
        channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"", timeout=10)
    assert e.value.code() == grpc.StatusCode.UNAVAILABLE
    ours.process.wait_until(lambda: "does not speak TLS, which the port of grpc wants" in ours.process.log(), 30)
    _infer(ours, authority)


def test_tls_on_a_plain_port_is_named(nereid: Nereid) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls.Connection(nereid.grpc_port, tls.context(None, alpn=["h2"]))
    nereid.process.wait_until(lambda: "speaks TLS to a port that does not: see --grpc-use-ssl" in nereid.process.log(), 30)



def test_clients_in_their_handshake_do_not_hold_the_end(identity_repository: Path, authority: tls.Authority) -> None:
    """One says nothing, one stops in its first record. The goodbye cannot be written to them, so it closes their connections."""
    options = tls.options(authority.sign(), ("grpc",)) | {"exit-timeout-secs": "1000"}
    with Nereid(identity_repository, options) as server, ExitStack() as stack:
        silent, half = (stack.enter_context(rawhttp.Connection(HOST, server.grpc_port)) for _ in range(2))
        half.send(b"\x16\x03\x01\x02\x00\x01")
        server.process.wait_for(lambda: metrics.scrape(server.metrics)["nereid_connections"].value(protocol="grpc"), 2)
        server.stop(seconds=40)  # after 60 the silent one has lost the server's patience
        assert silent.closed() and half.closed()


def test_a_client_that_stops_reading_loses_nothing(ours: Nereid, authority: tls.Authority) -> None:
    """Large answers wait while nobody reads them, in records that were begun, and come whole afterwards."""
    credentials = grpc.ssl_channel_credentials(authority.cert.read_bytes())
    from tritonclient.grpc import service_pb2

    data = np.random.default_rng(2).random(4_000_000, dtype=np.float32).tobytes()
    request = service_pb2.ModelInferRequest(model_name="id_fp32", raw_input_contents=[data])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[len(data) // 4])
    limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.secure_channel(f"localhost:{ours.grpc_port}", credentials, limits) as channel:
        infer = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelInferResponse.FromString,
        )
        calls = [infer.future(request, timeout=100) for _ in range(6)]
        for call in calls:
            assert call.result().raw_output_contents[0] == data
