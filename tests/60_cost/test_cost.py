"""What a small request costs the server, beside the bare floor in the same run: no blunder lands unseen.

CPU time of the server process for a fixed number of requests of 16 floats, the floor and the server by turns, on processors apart from
the client's. Of each the least of its turns counts: other work on the machine only adds to it, so rounds are repeated until the ratio is
within its bound, and one that never is fails. The bound is twice what was measured (docs/internals/promises.md); `make bench` has the
figures themselves. A stream of responses is measured likewise, beside the reference.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "90_bench"))

import check  # noqa: E402
import measure  # noqa: E402
import subjects  # noqa: E402
from harness import processors, procfs  # noqa: E402
from rows import ROWS as BENCH, Row  # noqa: E402
from subjects import FLOOR, INLINE, REFERENCE, THREADS, Subject  # noqa: E402

ROWS = {
    "http": Row("http", "HTTP JSON, 16 floats, 16 connections", "http", 16, 16, binary=False),
    "grpc": Row("grpc", "gRPC, 64 B, 16 connections", "grpc", 16, 16),
}
REQUESTS = 3000  # of a turn
FEWEST, ROUNDS = 5, 15  # a floor that was disturbed each time would hide what the server costs
BOUND = 2.2  # in what it costs the floor: twice what it does
STREAMS = 60  # of a turn, of a thousand responses each
CHEAPER = 5  # than the reference's, at least


class Load:
    """The requests of a turn, sent by h2load."""

    def __init__(self, row: Row, folder: Path, requests: int = REQUESTS):
        body = folder / "body"
        message = b"\0" + len(row.grpc_body).to_bytes(4, "big") + row.grpc_body
        body.write_bytes(row.http_body if row.protocol == "http" else message)
        self.row, self.requests = row, requests
        self.argv = ["h2load", "-t1", f"-c{row.connections}", f"-m{row.streams}", f"-n{requests}", f"-d{body}"]
        if row.protocol == "http":
            self.argv += ["--h1", "-H", "content-type: application/json"]
        else:
            self.argv += ["-H", "content-type: application/grpc", "-H", "te: trailers"]

    def cost_us(self, subject: Subject) -> float:
        """CPU time of the subject's process a request; each is answered well."""
        host, port = subject.address(self.row)
        path = self.row.http_path if self.row.protocol == "http" else self.row.grpc_path
        answered, cpu = subject.answered(), procfs.cpu_ns(subject.pid)
        done = subprocess.run([*self.argv, f"http://{host}:{port}{path}"], capture_output=True, text=True, timeout=120, check=True)
        cpu = procfs.cpu_ns(subject.pid) - cpu
        assert f"status codes: {self.requests} 2xx, 0 3xx, 0 4xx, 0 5xx" in done.stdout, done.stdout
        assert answered is None or self.row.responses or subject.answered() == answered + self.requests
        return cpu / 1000 / self.requests


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measure.repository(tmp_path_factory.mktemp("cost") / "models")


@pytest.fixture(params=ROWS)
def started(request: pytest.FixtureRequest, repository: Path) -> Iterator[tuple[Row, list[Subject]]]:
    row = ROWS[request.param]
    with processors.on(processors.apart()[0]):
        made = subjects.start([FLOOR, INLINE, THREADS], repository, row)
    try:
        for subject in made:
            check.answer_size(subject, row)
        yield row, made
        for subject in made:
            subject.stop()
    finally:
        for subject in made:
            subject.kill()


def test_a_small_request_costs_no_more_than_twice_what_it_did(
    started: tuple[Row, list[Subject]], tmp_path: Path, capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    row, made = started
    load = Load(row, tmp_path)
    least = {subject.name: float("inf") for subject in made}

    def ratios() -> dict[str, float]:
        return {name: least[name] / least[FLOOR] for name in (INLINE, THREADS)}

    for turn in range(1, ROUNDS + 1):
        for subject in made:
            with processors.on(processors.apart()[1]):
                least[subject.name] = min(least[subject.name], load.cost_us(subject))
        if turn >= FEWEST and all(ratio <= BOUND for ratio in ratios().values()):
            break
    figures = ", ".join(f"{name} {us:.1f} us" for name, us in least.items())
    record_property("cost", figures)
    with capsys.disabled():
        print(f"\n  {row.title}: {figures}; in floors {', '.join(f'{name} {ratio:.2f}' for name, ratio in ratios().items())}")
    for name, ratio in ratios().items():
        assert ratio <= BOUND, f"{row.title}, {name}: {ratio:.2f} times the floor ({figures})"


@pytest.mark.reference
def test_a_stream_of_responses_costs_a_fifth_of_the_references(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    """From one decoupled backend in both servers, which is what is left where nothing else costs anything."""
    (row,) = (row for row in BENCH if row.responses)
    load = Load(row, tmp_path, STREAMS)
    path = measure.repository(tmp_path / "models")
    measure.decoupled(path)
    with processors.on(processors.apart()[0]):
        made = subjects.start([INLINE, REFERENCE], path, row)
    least = {subject.name: float("inf") for subject in made}
    try:
        sizes = [check.answer_size(subject, row) for subject in made]
        assert sizes[0] == sizes[1]
        for _ in range(ROUNDS):
            for subject in made:
                with processors.on(processors.apart()[1]):
                    least[subject.name] = min(least[subject.name], load.cost_us(subject))
            if least[INLINE] * CHEAPER <= least[REFERENCE]:
                break
    finally:
        for subject in made:
            subject.kill()
    figures = ", ".join(f"{name} {us / row.responses:.2f} us" for name, us in least.items())
    record_property("cost", figures)
    with capsys.disabled():
        print(f"\n  {row.title}, a response: {figures}; the reference's in ours {least[REFERENCE] / least[INLINE]:.1f}")
    assert least[INLINE] * CHEAPER <= least[REFERENCE], figures
