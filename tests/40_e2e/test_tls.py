"""HTTP and metrics over TLS: with curl, tritonclient, openssl and by hand; files that change, clients that do not speak it."""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import tritonclient.http as httpclient
from harness import rawhttp, tls
from harness.process import ServerFailed
from harness.servers import HOST, Nereid

BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1.5, -2]}]}).encode()
INFER = "/v2/models/id_fp32/infer"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tls.Authority:
    return tls.Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(identity_repository: Path, authority: tls.Authority) -> Iterator[tls.Secure]:
    with tls.Secure(identity_repository, tls.options(authority.sign(), ("http", "metrics"))) as server:
        yield server


def _curl(authority: tls.Authority, *argv: str) -> str:
    command = ["curl", "-sS", "--fail-with-body", "--max-time", "60", "--cacert", str(authority.cert), *argv]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=90).stdout


def test_curl_infers_and_reads_metrics(secure: tls.Secure, authority: tls.Authority) -> None:
    answer = json.loads(_curl(authority, "-d", BODY.decode(), f"https://localhost:{secure.http_port}{INFER}"))
    assert answer["outputs"][0]["data"] == [1.5, -2]
    assert "nv_inference_request_success" in _curl(authority, f"https://localhost:{secure.metrics_port}/metrics")


def test_the_client_of_the_reference_infers(secure: tls.Secure, authority: tls.Authority) -> None:
    import numpy as np

    client = httpclient.InferenceServerClient(
        f"localhost:{secure.http_port}", ssl=True, ssl_context_factory=lambda: tls.context(authority), concurrency=2
    )
    data = np.arange(300_000, dtype=np.float32)
    given = httpclient.InferInput("INPUT0", [len(data)], "FP32")
    given.set_data_from_numpy(data)
    for compression in (None, "gzip", "deflate"):
        got = client.infer("id_fp32", [given], request_compression_algorithm=compression, response_compression_algorithm=compression)
        assert (got.as_numpy("OUTPUT0") == data).all()
    client.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions_that_are_spoken(secure: tls.Secure, authority: tls.Authority, version: ssl.TLSVersion) -> None:
    ctx = tls.context(authority, alpn=["http/1.1"])
    ctx.minimum_version = ctx.maximum_version = version
    with tls.Connection(secure.http_port, ctx) as c:
        assert c.socket.selected_alpn_protocol() == "http/1.1"
        for _ in range(3):
            assert c.ask("POST", INFER, BODY).json()["outputs"][0]["data"] == [1.5, -2]
        name, _, bits = c.socket.cipher()
        assert bits >= 128
        assert "GCM" in name or "CHACHA20" in name


def test_older_versions_and_weak_ciphers_are_refused(secure: tls.Secure) -> None:
    for argv in (["-tls1_1"], ["-tls1_2", "-cipher", "AES128-SHA:@SECLEVEL=0"], ["-alpn", "spdy/3"]):
        done = subprocess.run(
            ["openssl", "s_client", "-connect", secure.http, "-cipher", "ALL:@SECLEVEL=0", *argv],
            input="", capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode != 0, argv
        assert "alert" in done.stderr, (argv, done.stderr)
    assert rawhttp_over(secure).status == 200


def rawhttp_over(secure: tls.Secure) -> rawhttp.Answer:
    with tls.Connection(secure.http_port, tls.context(None)) as c:
        return c.ask("GET", "/v2/health/ready")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(secure: tls.Secure, authority: tls.Authority, version: ssl.TLSVersion) -> None:
    ctx = tls.context(authority)
    ctx.minimum_version = ctx.maximum_version = version
    with tls.Connection(secure.http_port, ctx) as c:
        assert c.ask("GET", "/v2/health/ready").status == 200  # the ticket of TLS 1.3 comes before the answer
        session = c.socket.session
        assert not c.socket.session_reused
    with tls.Connection(secure.http_port, ctx, session=session) as c:
        assert c.ask("GET", "/v2/health/ready").status == 200
        assert c.socket.session_reused


def test_pipelined_requests_in_one_record(secure: tls.Secure, authority: tls.Authority) -> None:
    """What the session has read ahead is served, though the socket shows nothing: more than is read of a connection in a turn."""
    count = 50
    request = rawhttp.head("POST", INFER, None, BODY) + BODY
    with tls.Connection(secure.http_port, tls.context(authority)) as c:
        c.send(request * count)
        for _ in range(count):
            assert c.answer().json()["outputs"][0]["data"] == [1.5, -2]


def test_large_bodies_both_ways(secure: tls.Secure, authority: tls.Authority) -> None:
    """20 MB there and back on one connection, also from a client that reads late."""
    import numpy as np

    data = np.random.default_rng(1).random(5_000_000, dtype=np.float32).tobytes()
    head = json.dumps(
        {
            "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [len(data) // 4], "parameters": {"binary_data_size": len(data)}}],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    with tls.Connection(secure.http_port, tls.context(authority)) as c:
        for _ in range(3):
            answer = c.ask("POST", INFER, head + data, {"Inference-Header-Content-Length": str(len(head))})
            assert answer.status == 200
            assert answer.body[-len(data) :] == data


def exacting(authority: tls.Authority) -> ssl.SSLContext:
    """Of a client that takes an end of which nobody told for an error, as OpenSSL itself does; Python does not."""
    made = tls.context(authority)
    made.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    return made


def test_a_client_that_closes_its_side_gets_its_answer(secure: tls.Secure, authority: tls.Authority) -> None:
    with socket.create_connection((HOST, secure.http_port), 60) as plain:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        side = exacting(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")

        def pump(step) -> None:
            while True:
                try:
                    step()
                    return
                except ssl.SSLWantReadError:
                    plain.sendall(outgoing.read())
                    incoming.write(plain.recv(65536))

        pump(side.do_handshake)
        side.write(rawhttp.head("POST", INFER, None, BODY) + BODY)
        with pytest.raises(ssl.SSLWantReadError):
            side.unwrap()  # says that nothing more comes, in the same segment as the request
        plain.sendall(outgoing.read())
        plain.shutdown(socket.SHUT_WR)
        while got := plain.recv(65536):
            incoming.write(got)
        incoming.write_eof()
        answer = b""
        with pytest.raises(ssl.SSLZeroReturnError):  # an end that the server tells of: nobody cut the answer
            while part := side.read(65536):
                answer += part
        assert b'"data":[1.5,-2' in answer


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_the_end_is_told(secure: tls.Secure, authority: tls.Authority, version: str) -> None:
    """RFC 8446, 6.1: without a word at the end, a client cannot know whether somebody cut the connection."""
    with tls.Connection(secure.http_port, exacting(authority)) as c:
        c.send(f"GET /v2/health/live {version}\r\nHost: localhost\r\n\r\n".encode())
        assert c.answer().status == 200
        c.socket.unwrap()  # says so too, and fails where the server has gone without a word


def _log_until(server: Nereid, words: str) -> str:
    server.process.wait_until(lambda: words in server.process.log(), 30)
    return server.process.log()


def test_plain_http_is_told_to_speak_tls(secure: tls.Secure) -> None:
    """An answer that says so, and a line of the log; on the next connection all is well."""
    answer = rawhttp.get(secure.http, "/v2")
    assert answer.status == 400
    assert answer.json() == {"error": "This port speaks HTTP over TLS: use https://"}
    _log_until(secure, "does not speak TLS, which the port of http wants")
    assert rawhttp_over(secure).status == 200


def test_tls_on_a_plain_port_is_named(nereid: Nereid) -> None:
    """The client hears that no TLS is spoken; the log says what to set."""
    with pytest.raises(ssl.SSLError):
        tls.Connection(nereid.http_port, tls.context(None))
    _log_until(nereid, "speaks TLS to a port that does not: see --http-use-ssl")


RUDE = {
    "nothing": b"",
    "half a record": b"\x16\x03\x01\x02\x00\x01\x00",
    "garbage in a record": b"\x16\x03\x01\x00\x20" + bytes(range(32)),
    "a record too long": b"\x16\x03\x01\xff\xff" + b"x" * 70000,
    "an alert": b"\x15\x03\x01\x00\x02\x02\x28",
    "data before keys": b"\x17\x03\x03\x00\x10" + b"y" * 16,
    "zeros": bytes(5000),
}


@pytest.mark.parametrize("sent", RUDE)
def test_rude_clients(secure: tls.Secure, sent: str) -> None:
    """They are sent away or gone, and nobody else notices."""
    with socket.create_connection((HOST, secure.http_port), 60) as c:
        c.sendall(RUDE[sent])
        if sent not in ("nothing", "half a record"):
            try:
                while c.recv(65536):
                    pass
            except ConnectionError:
                pass
        assert rawhttp_over(secure).status == 200
    assert rawhttp_over(secure).status == 200


def test_a_flood_of_new_keys_ends_the_connection(secure: tls.Secure) -> None:
    """KeyUpdate after KeyUpdate, and no byte of a request."""
    with subprocess.Popen(
        ["openssl", "s_client", "-connect", secure.http, "-tls1_3"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as client:
        assert client.stdin is not None
        assert client.stderr is not None
        while b"verify return" not in client.stderr.readline():
            pass
        try:
            for _ in range(100000):  # two that are asked for at once may be sent as one
                client.stdin.write(b"k\n")  # asks s_client to send one, and it says that it does
                client.stdin.flush()
                while (line := client.stderr.readline()) and b"KEYUPDATE" not in line:
                    pass
                if not line:
                    break  # it has ended, as the connection has
        except BrokenPipeError:
            pass
        _log_until(secure, "too many messages that change keys")
        client.kill()
        with contextlib.suppress(BrokenPipeError):
            client.stdin.close()


def test_half_a_handshake_is_given_up(secure: tls.Secure) -> None:
    """After ten seconds, though the client sends a byte now and then."""
    begun = time.monotonic()
    with socket.create_connection((HOST, secure.http_port), 60) as c:
        c.sendall(b"\x16\x03\x01\x02\x00\x01")
        c.settimeout(1)
        while True:
            try:
                assert c.recv(1) == b""
                break
            except TimeoutError:
                c.sendall(b"\x00")
            except ConnectionError:
                break
    assert 9 < time.monotonic() - begun < 60


def test_of_too_many_handshakes_the_oldest_ends(identity_repository: Path, authority: tls.Authority) -> None:
    """More than a loop bears at a time, and who comes after them is served."""
    told = tls.options(authority.sign(), ("http",)) | {"loop-threads": "1"}
    with tls.Secure(identity_repository, told) as server, contextlib.ExitStack() as stack:
        for _ in range(600):
            c = stack.enter_context(socket.create_connection((HOST, server.http_port), 60))
            c.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert rawhttp_over(server).status == 200
        _log_until(server, "clients of http are in their handshake: the oldest is given up")


@pytest.fixture(scope="module")
def mutual(identity_repository: Path, authority: tls.Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tls.Secure]:
    clients = tls.Authority(tmp_path_factory.mktemp("clients"), "clients")
    client = clients.sign("client")
    with tls.Secure(identity_repository, tls.options(authority.sign(), ("http",), clients.cert), client=client) as server:
        yield server


def test_clients_show_a_certificate(mutual: tls.Secure, authority: tls.Authority) -> None:
    with tls.Connection(mutual.http_port, tls.context(authority, mutual.client)) as c:
        assert c.ask("POST", INFER, BODY).status == 200


@pytest.mark.parametrize("shown", ["none", "of another authority", "expired"])
def test_clients_without_a_good_certificate_are_refused(mutual: tls.Secure, authority: tls.Authority, tmp_path: Path, shown: str) -> None:
    clients = tls.Authority(tmp_path, "clients")
    pair = {"none": None, "of another authority": clients.sign("client"), "expired": authority.sign("client", days=-1)}[shown]
    with pytest.raises((ssl.SSLError, ConnectionError)):  # TLS 1.3 tells it after the client's part of the handshake
        with tls.Connection(mutual.http_port, tls.context(authority, pair)) as c:
            c.ask("GET", "/v2/health/ready")
    _log_until(mutual, "to http is closed: ")


def _refusal(repository: Path, options: dict[str, str]) -> str:
    """What a server that does not start says."""
    server = Nereid(repository, {name.replace("_", "-"): value for name, value in options.items()}, wait_ready=False).start()
    server.process.ends(1)
    log = server.process.log()
    server.kill()
    return log


def test_what_is_wrong_with_the_files_is_said_at_the_start(identity_repository: Path, authority: tls.Authority, tmp_path: Path) -> None:
    good, other = authority.sign(), authority.sign()
    encrypted, empty = tmp_path / "encrypted.key", tmp_path / "empty.pem"
    tls.openssl("pkey", "-in", good.key, "-aes256", "-passout", "pass:secret", "-out", encrypted)
    empty.write_text("")
    said = {
        "option --http-use-ssl: expected --http-server-cert=<file> beside it": {"http_server_key": str(good.key)},
        "option --http-use-ssl: expected --http-server-key=<file> beside it": {"http_server_cert": str(good.cert)},
        "option --http-use-ssl-mutual: expected --http-root-cert=<file> beside it": {
            "http_server_cert": str(good.cert), "http_server_key": str(good.key), "http_use_ssl_mutual": "true",
        },
        "option --http-server-cert: opening '/nowhere': No such file or directory": {"http_server_cert": "/nowhere", "http_server_key": "/nowhere"},
        f"option --http-server-key: '{other.key}' does not fit the certificate": {"http_server_cert": str(good.cert), "http_server_key": str(other.key)},
        f"option --http-server-key: '{encrypted}' is encrypted, and nobody can be asked": {"http_server_cert": str(good.cert), "http_server_key": str(encrypted)},
        f"option --http-server-cert: '{empty}' holds no certificate in PEM": {"http_server_cert": str(empty), "http_server_key": str(good.key)},
        f"option --http-server-key: '{empty}' holds no private key in PEM": {"http_server_cert": str(good.cert), "http_server_key": str(empty)},
        f"option --http-root-cert: '{empty}' holds no certificate in PEM": {
            "http_server_cert": str(good.cert), "http_server_key": str(good.key), "http_use_ssl_mutual": "true", "http_root_cert": str(empty),
        },
    }  # fmt: skip
    for words, options in said.items():
        log = _refusal(identity_repository, {"http_use_ssl": "true", **options})
        assert words in log, (words, log)


CUT = "is cut off or damaged at certificate"


def test_a_file_that_breaks_off_is_refused(identity_repository: Path, authority: tls.Authority, tmp_path: Path) -> None:
    """In its first certificate or a later one, of the server or of authorities; text behind the last is no harm."""
    good, other = authority.sign(), tls.Authority(tmp_path / "other")
    chain, root = tls.Pair(tmp_path / "chain.pem", good.key), tmp_path / "root.pem"
    first, second = good.cert.read_text(), authority.cert.read_text()
    said: list[tuple[str, str, str]] = [
        ("server", first[:300], f"'{chain.cert}' {CUT} 1: "),
        ("server", first + second[:300], f"'{chain.cert}' {CUT} 2: "),
        ("server", first + second[:-10], f"'{chain.cert}' {CUT} 2: "),
        ("server", first + second + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", f"'{chain.cert}' {CUT} 3: "),
        ("root", other.cert.read_text() + second[:200], f"'{root}' {CUT} 2: "),
    ]
    for which, text, words in said:
        chain.cert.write_text(text if which == "server" else first + second + "# the end\n")
        root.write_text(text if which == "root" else second)
        log = _refusal(identity_repository, {key: str(value) for key, value in tls.options(chain, ("http",), root).items()})
        assert f"option --http-{which}-cert: {words}" in log, (words, log)


def test_a_chain_that_breaks_off_while_serving_changes_nothing(identity_repository: Path, authority: tls.Authority, tmp_path: Path) -> None:
    good = authority.sign()
    chain = tls.Pair(tmp_path / "chain.pem", good.key)
    whole = good.cert.read_text() + authority.cert.read_text() + "text behind it\n"
    chain.cert.write_text(whole)
    with tls.Secure(identity_repository, tls.options(chain, ("http",))) as server:
        log = server.process.log()
        chain.cert.write_text(whole[: len(good.cert.read_text()) + 300])
        os.kill(server.pid, signal.SIGHUP)
        _log_until(server, f"TLS: http goes on with the certificate that it has: option --http-server-cert: '{chain.cert}' {CUT} 2: ")
        assert server.process.log()[len(log) :].count("TLS: http uses the certificate") == 0
        chain.cert.write_text(whole)
        server.process.wait_until(lambda: "TLS: http uses the certificate" in server.process.log()[len(log) :], 60)


def test_an_expired_certificate_is_warned_of(identity_repository: Path, authority: tls.Authority) -> None:
    with tls.Secure(identity_repository, tls.options(authority.sign(days=-1), ("http",))) as server:
        assert re.search(r"the certificate in '[^']*' has expired on \d{4}-\d\d-\d\d", server.process.log())


def test_an_expired_authority_in_the_chain_is_warned_of(identity_repository: Path, authority: tls.Authority, tmp_path: Path) -> None:
    good, old = authority.sign(), authority.sign("between", days=-1)
    chain = tls.Pair(tmp_path / "chain.pem", good.key)
    chain.cert.write_text(good.cert.read_text() + old.cert.read_text())
    with tls.Secure(identity_repository, tls.options(chain, ("http",))) as server:
        assert f"the certificate in '{chain.cert}' has expired on " in server.process.log()


def test_a_certificate_that_expires_meanwhile_is_warned_of(identity_repository: Path, authority: tls.Authority) -> None:
    """Once."""
    pair = authority.sign_until(time.time() + 5)
    with tls.Secure(identity_repository, tls.options(pair, ("http",))) as server:
        told = f"the certificate in '{pair.cert}' has expired on "
        _log_until(server, told)
        os.kill(server.pid, signal.SIGHUP)  # it is read, and told, again
        server.process.wait_until(lambda: server.process.log().count(told) == 2, 60)


def _serial(port: int) -> str:
    with tls.Connection(port, tls.context(None)) as c:
        der = c.socket.getpeercert(binary_form=True)
    return tls.openssl("x509", "-noout", "-serial", "-in", _pem(der))


def _pem(der: bytes) -> Path:
    import tempfile

    path = Path(tempfile.mkstemp(suffix=".pem")[1])
    path.write_text(ssl.DER_cert_to_PEM_cert(der))
    return path


def test_new_certificates_are_taken_without_a_failed_request(identity_repository: Path, authority: tls.Authority) -> None:
    """Replaced under load, three times, file by file; a broken one in between changes nothing but the log."""
    pair = authority.sign()
    stop, failures, done = threading.Event(), [], [0]

    def ask() -> None:
        context = tls.context(authority)
        while not stop.wait(0.02):  # allowed: a pause between connections, for the others on the machine
            try:
                with tls.Connection(server.http_port, context) as c:
                    for _ in range(3):
                        assert c.ask("POST", INFER, BODY).status == 200
                        done[0] += 1
            except Exception as e:  # noqa: BLE001 - whatever it is, a request failed
                failures.append(repr(e))

    with tls.Secure(identity_repository, tls.options(pair, ("http",))) as server:
        kept = tls.Connection(server.http_port, tls.context(authority))
        clients = [threading.Thread(target=ask) for _ in range(2)]
        for client in clients:
            client.start()
        try:
            for _ in range(3):
                before = _serial(server.http_port)
                authority.sign(rsa=True).move_to(pair)
                server.process.wait_until(lambda was=before: _serial(server.http_port) != was, 60, 0.2)
            before = _serial(server.http_port)
            pair.key.write_text("broken")
            _log_until(server, "TLS: http goes on with the certificate that it has: option --http-server-key")
            assert _serial(server.http_port) == before
            assert kept.ask("GET", "/v2/health/ready").status == 200
        finally:
            stop.set()
            for client in clients:
                client.join()
        kept.close()
    assert not failures, failures[:5]
    assert done[0] > 0


def test_what_could_not_be_read_once_is_read_later(identity_repository: Path, authority: tls.Authority, tmp_path: Path) -> None:
    """No descriptor is free when a certificate is renewed and a key revoked; both hold once there is one, though no file changes then."""
    pair, keys = authority.sign(), tmp_path / "keys"
    keys.write_text("- health\nalice all\nbob all\n")

    def bob() -> int:
        with tls.Connection(server.http_port, tls.context(None)) as c:
            return c.ask("GET", "/v2", headers={"x-api-key": "bob"}).status

    with tls.Secure(identity_repository, {**tls.options(pair, ("http",)), "api-keys": str(keys)}) as server:
        before = _serial(server.http_port)
        assert bob() == 200
        limit = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, limit[1]))
        authority.sign().move_to(pair)
        keys.write_text("- health\nalice all\n")
        _log_until(server, "the API keys stay as they are: option --api-keys: opening")
        _log_until(server, "TLS: http goes on with the certificate that it has: option --http-server-cert: opening")
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limit)
        server.process.wait_until(lambda: _serial(server.http_port) != before and bob() == 401, 60, 0.1)
        assert server.process.log().count("stay as they are") == 1


def test_a_hangup_reads_the_files_at_once(identity_repository: Path, authority: tls.Authority) -> None:
    pair = authority.sign()
    with tls.Secure(identity_repository, tls.options(pair, ("http",))) as server:
        before = _serial(server.http_port)
        authority.sign().move_to(pair)
        os.kill(server.pid, signal.SIGHUP)
        server.process.wait_until(lambda: _serial(server.http_port) != before, 60, 0.05)
