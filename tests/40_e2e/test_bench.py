"""nereid bench: what it sends, what it counts, what it prints, against both servers and against one that is made for it."""

import contextlib
import csv
import json
import os
import re
import resource
import shlex
import signal
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import h2frames as h2
from harness import paths, rawhttp, recite
from harness.load_tester import LONGER, Asked, Recorder, at, bench, measured, measured_once, number, place, recording
from harness.pause import pause
from harness.repository import Repository
from harness.servers import HOST, Nereid, Reference, Server

COLUMNS = (
    "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute Infer,"
    "Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency"
)


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Repository(tmp_path_factory.mktemp("bench") / "models")
    made.identity("fixed", dims=(16,))
    made.identity("any")
    made.identity("batch", dims=(4,), max_batch_size=8)
    made.identity("text", datatype="BYTES", dims=(2,))
    made.identity("ordered", dims=(4,), max_batch_size=4, extra="sequence_batching { max_sequence_idle_microseconds: 60000000 }")
    recite.model(made, "recite", ("IN", "INT32", (2,)))
    return made.path


BOTH = [Nereid, pytest.param(Reference, marks=pytest.mark.reference)]


@pytest.fixture(scope="module", params=BOTH)
def server(request: pytest.FixtureRequest, repository: Path) -> Iterator[Server]:
    options = {"allow-client-shm": "true"} if request.param is Nereid else {}
    with request.param(repository, options) as started:
        yield started


def inferences(server: Server, model: str) -> int:
    return int(server.statistics(model)["inference_count"])


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_it_counts_what_the_server_counts(server: Server, protocol: str, tmp_path: Path) -> None:
    before, table = inferences(server, "batch"), tmp_path / "out.csv"
    out = measured("-m", "batch", "-b", "8", *place(server, protocol), "--concurrency-range", "2", "-p", "100", "--max-trials=3", "-f", str(table))
    sent, known = number(out, "Request count"), number(out, "Inference count")
    assert 0 < sent * 8 <= known <= inferences(server, "batch") - before, out
    text = table.read_text()
    assert text.splitlines()[0] == COLUMNS
    row = rows(table)[0]
    assert row["Concurrency"] == "2" and float(row["Inferences/Second"]) == number(out, "Throughput")
    ladder = [int(row[f"p{p} latency"]) for p in (50, 90, 95, 99)]
    assert ladder == sorted(ladder) and ladder[0] > 0
    assert [number(out, f"p{p} latency") for p in (50, 90, 95, 99)] == ladder


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_levels_and_the_limit_of_latency(server: Server, protocol: str, tmp_path: Path) -> None:
    table = tmp_path / "out.csv"
    asked = ["-m", "fixed", *place(server, protocol), "-p", "30", "--max-trials=3", "--percentile", "80", "-f", str(table)]
    out = measured(*asked, "--concurrency-range", "1:17:8")
    assert re.findall(r"^Request concurrency: (\d+)", out, re.MULTILINE) == ["1", "9", "17"]
    assert re.findall(r"^Concurrency: (\d+), throughput", out, re.MULTILINE) == ["1", "9", "17"]
    got = rows(table)
    rates = [float(row["Inferences/Second"]) for row in got]
    assert sorted(row["Concurrency"] for row in got) == ["1", "17", "9"] and rates == sorted(rates)
    assert table.read_text().splitlines()[0] == COLUMNS + ",p80 latency"
    out = measured(*asked, "--concurrency-range", "1:17:8", "--latency-threshold", "0.001")
    assert re.findall(r"^Request concurrency: (\d+)", out, re.MULTILINE) == ["1"]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("gaps", ["constant", "poisson"])
def test_a_request_rate_is_kept(server: Server, protocol: str, gaps: str) -> None:
    asked = ["--request-rate-range", "100", "--request-distribution", gaps, "-p", "1000", "--max-trials=3"]
    rate = pytest.approx(100, rel=0.2 if gaps == "constant" else 0.4)
    for _ in range(5):  # beside others a server may answer too late for a while
        out = measured("-m", "fixed", *place(server, protocol), *asked)
        if number(out, "Throughput") == rate:
            break
    assert number(out, "Throughput") == rate
    assert "Request Rate: 100, throughput" in out


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_errors_say_what_is_wrong(server: Server, protocol: str) -> None:
    where = place(server, protocol)
    other = ["-i", protocol, "-u", server.http if protocol == "grpc" else server.grpc]
    wrong: dict[tuple[str, ...], list[str]] = {
        ("-m", "nope", *where): ["model 'nope' at 127.0.0.1", "unknown model: 'nope'"],
        ("-m", "fixed", *where, "--shape", "INPUT0:3"): ["concurrency 1:", "INPUT0", "[3]"],
        ("-m", "any", *where): ["input 'INPUT0' has the shape [-1]", "--shape INPUT0:16"],
        ("-m", "batch", "-b", "9", *where): ["--batch-size: expected at most 8, which is max_batch_size of the model 'batch', found 9"],
        ("-m", "fixed", *other): ["gRPC" if protocol == "grpc" else "a port for gRPC takes -i grpc"],
        ("-m", "fixed", "-i", protocol, "-u", f"{HOST}:1"): ["no server there", f"cannot connect to {HOST}:1: Connection refused"],
        ("-m", "fixed", *where, "--input-data", "nowhere.json"): ["--input-data", "nowhere.json"],
    }
    for options, words in wrong.items():
        status, out, err = bench(*options)
        assert status == 1 and all(word in err for word in words), (options, out, err)
        assert err.startswith("nereid bench: ") and err.count("\n") == 1, err


def test_a_wrong_command_line_and_help() -> None:
    assert bench("--nonsense") == (2, "", "nereid bench: unknown argument '--nonsense', see --help\n")
    status, out, err = bench("-m", "x", "--concurrency-range", "3:1")
    assert (status, out) == (2, "") and "--concurrency-range: expected FIRST[:LAST[:STEP]]" in err
    status, out, err = bench("--help")
    assert (status, err) == (0, "") and "--measurement-interval" in out


@pytest.mark.parametrize("protocol", ["http", "grpc", "streams"])
def test_sequences(server: Server, protocol: str) -> None:
    where = place(server, "grpc" if protocol == "streams" else protocol) + (["--streaming"] if protocol == "streams" else [])
    asked = ["-m", "ordered", "--sequence-length", "5", "-p", "100", "--max-trials=3"]
    out = measured(*asked, *where, "--concurrency-range", "3", most=10)
    assert number(out, "Request count") > 10
    out = measured(*asked, *where, "--request-rate-range", "100", "--start-sequence-id", "1000000")
    assert number(out, "Request count") > 0 and "Request Rate: 100, throughput" in out


def test_streams(server: Server) -> None:
    where = [*place(server, "grpc"), "-p", "100", "--max-trials=3", "--concurrency-range", "4"]
    status, _, err = bench("-m", "recite", *where)
    assert status == 1 and "add --streaming -i grpc" in err
    for model in ("fixed", "recite"):
        out = measured("-m", model, *where, "--streaming")
        requests, responses = number(out, "Throughput"), number(out, "Response Throughput")
        assert requests > 0 and responses >= requests * 0.99, out
    status, _, err = bench("-m", "fixed", *where, "--streaming", "--shape", "INPUT0:3")
    assert status == 1 and "[3]" in err
    assert bench("-m", "fixed", "--streaming")[0] == 2


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_inputs_in_shared_memory(server: Server, protocol: str) -> None:
    """Requests name a place; the server forgets the region at the end, and no file is left. The reference keeps it until it has freed what it
    has answered."""

    def regions() -> object:
        return rawhttp.request(HOST, server.http_port, "GET", "/v2/systemsharedmemory/status").json()

    before = inferences(server, "any")
    asked = ["-m", "any", *place(server, protocol), "--shape", "INPUT0:100000", "-p", "100", "--max-trials=3", "--shared-memory", "system"]
    out = measured(*asked)
    assert 0 < number(out, "Request count") <= inferences(server, "any") - before
    if isinstance(server, Reference):
        server.process.wait_until(lambda: regions() == [], 30)
    assert regions() == []
    left = list(Path("/dev/shm").glob("nereid_bench_*"))  # of other benches of the machine, too: these go with them
    server.process.wait_until(lambda: not any(path.exists() for path in left), 120)
    status, _, err = bench(*asked[:-1], "system", "--input-tensor-format", "json", "-i", "http")
    assert status == 2 and "leave out one" in err


def test_every_option_is_on_the_page() -> None:
    page = (paths.ROOT / "docs" / "user" / "bench.md").read_text()
    _, out, _ = bench("--help")
    options = re.findall(r"^  (?:-\w, )?--([a-z-]+)", out, re.MULTILINE)
    assert len(options) > 20 and [name for name in options if f"`--{name}`" not in page] == []


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with recording() as made:
        yield made


def test_an_error_leaves_what_was_measured(recorder: Recorder, tmp_path: Path) -> None:
    """A long run whose last level fails has the table of the others."""
    table, connections = tmp_path / "out.csv", set()

    def answer(body: bytes) -> None:
        connections.add(threading.get_ident())
        if len(connections) > 1:
            raise ConnectionAbortedError

    recorder.answer = answer
    recorder.handle_error = lambda request, address: None  # type: ignore[method-assign]
    for longer in LONGER:
        connections.clear()
        status, out, err = bench(*at(recorder), "--concurrency-range", "1:2", "-f", str(table), *longer)
        assert status == 1 and "concurrency 2: the server has closed the connection" in err, (out, err)
        if rows(table):
            break
    assert [row["Concurrency"] for row in rows(table)] == ["1"]


def test_an_answer_whose_end_is_that_of_its_connection(recorder: Recorder) -> None:
    """HTTP allows it."""

    def rude(asked: Asked) -> None:
        asked.rfile.read(int(asked.headers["Content-Length"]))
        asked.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n{}")
        asked.close_connection = True

    recorder.rude = rude
    measured(*at(recorder))


@pytest.mark.parametrize("read", [True, False], ids=["sent", "half sent"])
def test_a_connection_that_ends_behind_an_answer(recorder: Recorder, read: bool) -> None:
    """A server may end one that it has kept, without a word, when the next request is on its way: that goes over a new one."""
    recorder.inputs = [{"name": "A", "datatype": "FP32", "shape": [-1]}]
    recorder.config = {"max_batch_size": 0}
    answered, ends = set(), []

    def rude(asked: Asked) -> None:
        if read or asked not in answered:
            asked.rfile.read(int(asked.headers["Content-Length"]))
        if asked in answered:
            ends.append(asked)
            asked.close_connection = True
        else:
            answered.add(asked)
            asked.give(200, b"{}")
            asked.wfile.flush()

    recorder.rude = rude
    measured(*at(recorder), "--shape", f"A:{8 if read else 8000000}")
    assert ends


def test_a_new_connection_that_ends_is_an_error(recorder: Recorder) -> None:
    """And the request is sent no third time."""
    heads = []

    def rude(asked: Asked) -> None:
        heads.append(asked.path)
        asked.rfile.read(int(asked.headers["Content-Length"]))
        asked.close_connection = len(heads) > 1
        if len(heads) == 1:
            asked.give(200, b"{}")
            asked.wfile.flush()

    recorder.rude = rude
    status, _, err = bench(*at(recorder), "-p", "60000")
    assert status == 1 and "the server has closed the connection before its answer was complete" in err, err
    assert len(heads) == 3, heads


def test_an_answer_before_all_was_sent(recorder: Recorder) -> None:
    """The next request has a connection of its own: it is no part of what the server still waits for."""

    def rude(asked: Asked) -> None:
        asked.give(200, b"{}")
        asked.wfile.flush()
        asked.rfile.read()  # until the connection ends
        asked.close_connection = True

    recorder.rude = rude
    recorder.inputs = [{"name": "A", "datatype": "FP32", "shape": [-1]}]
    recorder.config = {"max_batch_size": 0}
    measured(*at(recorder), "--shape", "A:8000000")


def test_an_answer_that_nobody_asked_for(recorder: Recorder) -> None:
    """A server that closes an idle connection may say so first: that is no answer to the next request, whose own takes a tenth of a second."""

    def rude(asked: Asked) -> None:
        asked.rfile.read(int(asked.headers["Content-Length"]))
        asked.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        asked.wfile.flush()
        pause(0.1)
        asked.wfile.write(b"{}")
        asked.wfile.flush()
        pause(0.05)
        asked.wfile.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        asked.close_connection = True

    recorder.rude = rude
    recorder.handle_error = lambda request, address: None  # type: ignore[method-assign]
    for rate, window in ("3", "3000"), ("1", "6000"), ("0.2", "20000"):  # on a machine that does much else it may come behind the next request
        status, out, err = bench(*at(recorder), "-p", window, "--request-rate-range", rate, "--max-threads", "1")
        if "HTTP status 408" not in err and "no answer" not in out:
            break
    assert not err and number(out, "Avg latency") >= 100_000, (status, out, err)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_too_few_descriptors_to_look_up_a_name(server: Server, protocol: str) -> None:
    port = server.http_port if protocol == "http" else server.grpc_port
    argv = [str(paths.nereid_binary()), "bench", "-m", "fixed", "-i", protocol, "-u", f"localhost:{port}"]
    argv += ["--concurrency-range", "100", "--calls-per-connection", "1"]
    limit = f"ulimit -n 40; exec {shlex.join(argv)}"
    got = subprocess.run(["bash", "-c", limit], capture_output=True, text=True, timeout=120, check=False)
    assert got.returncode == 1 and "too few file descriptors" in got.stderr, got.stderr


def test_an_address_is_one_that_can_be_asked(recorder: Recorder) -> None:
    status, _, err = bench("-m", "m", "-u", "[::1]:1")
    assert status == 1 and "cannot connect to [::1]:1: " in err, err
    measured(*at(recorder))
    assert recorder.bodies[0][1]["Host"] == f"{HOST}:{recorder.server_port}"


def test_a_report_that_cannot_be_written(recorder: Recorder) -> None:
    for options in (at(recorder), ["--help"]):
        argv = [str(paths.nereid_binary()), "bench", *options]
        with open("/dev/full", "w") as full:
            done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (1, "nereid bench: the standard output cannot be written\n")


def test_a_window_that_is_shorter_than_an_answer(recorder: Recorder, tmp_path: Path) -> None:
    """The first request is answered when five windows are over; a level without answers is above any limit of the latency."""
    table, over = tmp_path / "out.csv", threading.Event()

    def answer(body: bytes) -> None:
        over.wait()

    recorder.answer = answer
    argv = [str(paths.nereid_binary()), "bench", *at(recorder), "-v", "--max-trials", "5", "-f", str(table)]
    argv += ["--concurrency-range", "1:2", "--latency-threshold", "1000"]
    out = ""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            out += line
            if line.startswith("  window 5"):
                over.set()
        assert process.wait(60) == 3, out
    assert "No request was answered within a window of 50 msec: make --measurement-interval (-p) longer than an answer takes" in out, out
    assert "latency: 0" not in out and "latency 0" not in out and "--stability-percentage" not in out, out
    assert rows(table) == []


def test_requests_that_wait_for_a_slow_server_count_from_when_they_were_due(recorder: Recorder) -> None:
    """A server that answers nothing for 0.6 of the window: a closed loop would see one slow request, a schedule sees how many have to wait."""
    waited = threading.Event()

    def answer(body: bytes) -> None:
        if len(recorder.bodies) == 1:
            threading.Timer(0.6 * window, waited.set).start()
        waited.wait()

    recorder.answer = answer
    for window in (4, 20):  # seconds; a machine that does much else may give no answer in what is left of it
        recorder.bodies.clear()
        waited.clear()
        out = measured_once(*at(recorder), "-p", str(1000 * window), "--request-rate-range", "200", "--max-threads", "1")
        if "no answer" not in out:
            break
    assert number(out, "p90 latency") > 200_000 * window, out
    assert number(out, "Delayed requests") > 0.4 * number(out, "Request count"), out
    assert number(out, "Throughput") <= 200 * 1.2  # a machine with other work sends fewer


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("way", [[], ["--streaming"]], ids=["calls", "streams"])
def test_connections_that_the_server_ends_are_opened_anew(kind: type[Server], way: list[str], repository: Path) -> None:
    """It tells clients to go after a while: calls under way are answered, and those that come later go another way."""
    with kind(repository, {"grpc-max-connection-age": "100"}) as server:
        out = measured("-m", "fixed", *place(server, "grpc"), "-p", "400", "--max-trials", "3", "--concurrency-range", "4", "--calls-per-connection", "2", *way)
        assert number(out, "Throughput") > 0
        assert inferences(server, "fixed") > 0


class Refusing(socketserver.BaseRequestHandler):
    """Speaks HTTP/2, takes no call, and says goodbye on each connection."""

    def handle(self) -> None:
        refused = h2.frame(h2.GOAWAY, 0, 0, bytes(8))
        self.request.sendall(h2.frame(h2.SETTINGS, 0, 0))
        with contextlib.suppress(ConnectionError):
            self.request.recv(65536)
            self.request.sendall(refused)
            while self.request.recv(65536):
                pass


def test_a_server_that_sends_every_call_away() -> None:
    with socketserver.ThreadingTCPServer((HOST, 0), Refusing) as refusing:
        threading.Thread(target=refusing.serve_forever, daemon=True).start()
        try:
            status, _, err = bench("-m", "fixed", "-i", "grpc", "-u", f"{HOST}:{refusing.server_address[1]}")
        finally:
            refusing.shutdown()
    assert status == 1 and "the server ends every connection before it takes the call (10 in a row)" in err, err


def test_a_server_that_goes_away(repository: Path) -> None:
    server = Nereid(repository).start()
    argv = [str(paths.nereid_binary()), "bench", "-m", "fixed", "-u", server.grpc, "-i", "grpc", "-p", "50", "-v", "--max-trials", "10000", "-s", "0.0001"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout
        while "window 1 of" not in running.stdout.readline():
            assert running.poll() is None
        server.kill()
        running.stdout.read()
        assert running.wait(60) == 1 and "the server has" in (running.stderr.read() if running.stderr else "")


@pytest.mark.once
def test_a_server_that_gives_no_more_statistics(recorder: Recorder) -> None:
    asked: list[int] = []
    over = threading.Event()

    def statistics() -> object:
        asked.append(1)
        if len(asked) > 2:
            over.wait()
        return {"model_stats": []}

    recorder.statistics = statistics
    recorder.handle_error = lambda request, address: None  # type: ignore[method-assign]
    status, _, err = bench(*at(recorder))
    over.set()
    assert status == 1 and "concurrency 1: the model's statistics: no answer within 30 seconds" in err, err


@pytest.fixture
def hang_up() -> Iterator[None]:
    """Ends programs that are started meanwhile, also where the tests themselves ignore it, as under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_up")
@pytest.mark.parametrize("number_", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("early", [False, True], ids=["measured", "early"])
def test_a_signal_ends_it_in_order(recorder: Recorder, tmp_path: Path, number_: signal.Signals, early: bool) -> None:
    """What was measured is written, and the server forgets the region."""
    recorder.config = {"max_batch_size": 4, "sequence_batching": {}}
    table, sent = tmp_path / "out.csv", threading.Event()
    recorder.answer = lambda body: sent.set() if b"shared_memory_region" in body else None
    argv = [str(paths.nereid_binary()), "bench", *at(recorder), "-v", "--shared-memory", "system", "-f", str(table)]
    argv += ["-p", "3600000"] if early else ["-p", "500", "--max-trials", "10000", "-s", "0.0001"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout
            if early:
                assert sent.wait(60)
            else:
                while "infer/sec" not in running.stdout.readline():
                    assert running.poll() is None
            running.send_signal(number_)
            out, err = running.communicate(timeout=60)
            assert running.returncode == -number_, (out, err)
        finally:
            running.kill()
    assert recorder.bodies[-1][0].endswith("/unregister")
    assert json.loads(recorder.bodies[-2][2])["parameters"]["sequence_end"]
    if early:
        assert err == "nereid bench: concurrency 1: ended before a window was over\n"
    else:
        assert (err, len(rows(table))) == ("", 1) and "Concurrency: 1, throughput" in out


def test_a_reader_that_goes_away_ends_it_in_order(recorder: Recorder) -> None:
    """As `| head -1` does."""
    argv = [str(paths.nereid_binary()), "bench", *at(recorder), "--concurrency-range", "1:1000", "--shared-memory", "system"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout and running.stderr
        running.stdout.readline()
        running.stdout.close()
        assert (running.wait(60), running.stderr.read()) == (-signal.SIGPIPE, "")
    assert recorder.bodies[-1][0].endswith("/unregister")


def test_reports_do_not_share_a_file(recorder: Recorder, tmp_path: Path) -> None:
    """However it is named; what it held stays. A pipe and the standard output take both, one behind the other."""
    held, link = tmp_path / "out", tmp_path / "link"
    held.write_text("old")
    link.hardlink_to(held)
    for other in (str(held), str(link), os.path.relpath(held)):
        status, out, err = bench(*at(recorder), "-f", str(held), "--html", other)
        assert (status, out, recorder.bodies) == (1, "", []), err
        assert f"options --filename and --html: expected two files, found one: '{held}' and '{other}'" in err
    assert held.read_text() == "old"
    out = measured(*at(recorder), "-f", "/dev/stdout", "--html", "/dev/stdout")
    assert 0 < out.index("\nConcurrency,Inferences/Second,") < out.index("</html>")


def test_reports_are_opened_before_and_both_are_written(recorder: Recorder, tmp_path: Path) -> None:
    page, pipe = tmp_path / "out.html", tmp_path / "pipe"
    os.mkfifo(pipe)
    for option, path, words in (
        ("-f", tmp_path / "no" / "x.csv", "option --filename: opening"),
        ("--html", tmp_path / "no" / "x.html", "option --html: opening"),
        ("-f", pipe, "expected a reader of this named pipe"),
    ):
        status, out, err = bench(*at(recorder), option, str(path))
        assert (status, out, recorder.bodies) == (1, "", []) and words in err, err
    status, _, err = bench(*at(recorder), "-f", "/dev/full", "--html", str(page))
    assert status == 1 and "option --filename: writing '/dev/full': No space left" in err, err
    assert page.read_text().endswith("</html>\n")
    page.write_text("old")
    assert bench("-m", "m", "-u", f"{HOST}:1", "--html", str(page))[0] == 1
    assert page.read_text() == "old"


def test_no_report_is_left_of_what_was_not_measured(recorder: Recorder, tmp_path: Path) -> None:
    """Of files that were not there; one that was stays, also an empty one."""
    table, page, held = (str(tmp_path / name) for name in ("table", "page", "held"))
    Path(held).touch()
    for csv_, html in (table, page), (table, held), (held, page), (table, table), (table, "/no/such/folder/page"):
        status, _, err = bench("-m", "m", "-u", f"{HOST}:1", "-f", csv_, "--html", html)
        assert status == 1 and [str(each) for each in tmp_path.iterdir()] == [held], (csv_, html, err)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_names_that_a_path_holds_as_they_are(tmp_path: Path, protocol: str) -> None:
    names, made = ("%41", 'q"uote', "[a]{b}|^\\"), Repository(tmp_path / "models")
    config = made.identity("same", dims=(1,)).joinpath("config.pbtxt").read_text().partition("\n")[2]
    for name in names:
        made.model(name, config)
    with Nereid(made.path) as started:
        for name in names:
            assert number(measured("-m", name, *place(started, protocol), "-p", "50", "--max-trials", "1"), "Request count") > 0


def test_errors_of_a_server_that_is_not_kind(recorder: Recorder) -> None:
    recorder.handle_error = lambda request, address: None  # type: ignore[method-assign]
    recorder.answer = lambda body: b'{"error": "\\u001b[31mred\\u0007\\u009b31m"}'
    status, _, err = bench(*at(recorder))
    assert status == 1 and " [31mred   31m (HTTP status 400)" in err and err.strip().isprintable(), err
    recorder.answer = lambda body: b"x" * (2 << 20)
    status, _, err = bench(*at(recorder))
    assert status == 1 and "the answer is too long (HTTP status 400)" in err, err


def test_too_few_descriptors(recorder: Recorder) -> None:
    argv = [str(paths.nereid_binary()), "bench", *at(recorder), "--concurrency-range", "64"]
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))  # noqa: E731
    got = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, preexec_fn=few)
    assert got.returncode == 1 and "too few file descriptors" in got.stderr and "no server there" not in got.stderr, got.stderr


