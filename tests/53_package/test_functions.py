"""Python functions as models, over HTTP, gRPC and in the process."""

import json
import os
import queue
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from conftest import Packaged, Script
from harness import rawhttp
from harness.repository import Repository

TEN_LINES = """
import nereid
import numpy as np


@nereid.model(inputs={"a": (np.float32, [-1]), "b": ("FP32", [-1])}, outputs={"sum": (np.float32, [-1])})
def add(a, b):
    return {"sum": a + b}
"""
SERVE = """
import sys

options = {}
for each in sys.argv[1:]:
    name, _, value = each[2:].partition("=")
    options.setdefault(name.replace("-", "_"), []).append(value)
nereid.serve(*[each for each in list(vars().values()) if isinstance(each, nereid.Function)], **options)
"""
MORE = """
@nereid.batch(inputs={"x": (np.int64, [2])}, outputs={"y": (np.int64, [2]), "rows": (np.int32, [1])}, max_batch_size=8)
def twice(x):
    return {"y": 2 * x, "rows": np.full((len(x), 1), len(x), np.int32)}


@nereid.model(inputs={"n": ("INT32", [1])}, outputs={"i": ("INT32", [1])})
def count(n):
    for i in range(n[0]):
        yield {"i": [i]}
    if n[0] == 3:
        raise nereid.Error("three is too many", nereid.Code.UNAVAILABLE)


@nereid.model(inputs={"text": (str, [-1])}, outputs={"upper": (str, [-1])})
def upper(text):
    return {"upper": [each.decode().upper() for each in text]}


@nereid.model(name="half", inputs={"x": ("BF16", [-1])}, outputs={"y": ("BF16", [-1])})
def halve(x):
    return {"y": x / 2}
"""


BROKEN = """
import threading

gate = threading.Event()
kept = []
WANTED = dict(inputs={"x": (np.int32, [1])}, outputs={"y": (np.float32, [2])})


@nereid.model(**WANTED)
def raises(x):
    raise KeyError("no such thing")


@nereid.model(**WANTED)
def refuses(x):
    raise nereid.Error("not for you", nereid.Code.NOT_FOUND)


@nereid.model(**WANTED)
def gives(x):
    return {
        0: lambda: None, 1: lambda: {}, 2: lambda: {"y": np.zeros(2)}, 3: lambda: {"y": np.zeros((2, 1), np.float32)},
        4: lambda: {"y": object()}, 5: lambda: {"y": np.zeros(2, np.float32), "z": 1}, 6: lambda: sys.exit("gone"),
        7: lambda: {"y": [1, 2]},
    }[int(x[0])]()


class Odd(Exception):
    code = 99

    def __str__(self):
        raise RuntimeError


@nereid.model(**WANTED)
def ends(x):
    raise (
        SystemExit(0), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), Odd(), ValueError("\\ud800 a\\0b"), StopIteration(3),
        nereid.Error("\\ud800 a\\0b", nereid.Code.NOT_FOUND),
    )[int(x[0])]


@nereid.batch(name="ends_batch", **WANTED)
def ends_batch(x):
    sys.exit(3)


@nereid.model(name="ends_stream", **WANTED)
def ends_stream(x):
    yield {"y": [1, 2]}
    sys.exit(3)


@nereid.batch(**WANTED)
def rows(x):
    return {"y": np.zeros((len(x) + 1, 2), np.float32)}


@nereid.model(timeout=0.5, **WANTED)
def hangs(x):
    if x[0]:
        gate.wait()
    return {"y": [x[0], x[0]]}


@nereid.model(**WANTED)
def opens(x):
    gate.set()
    return {"y": [0, 0]}


@nereid.model(**WANTED)
def keeps(x):
    kept.append(x)
    return {"y": [kept[0][0], len(kept)]}


large = []


@nereid.model(inputs={"x": (np.int32, [-1])}, outputs={"y": (np.int64, [2])})
def keeps_large(x):
    large.append(x)
    told = [len(large), sum(int(each.sum()) for each in large)]
    if not x[0]:
        large.clear()
    return {"y": told}


@nereid.model(**WANTED)
def writes(x):
    x[0] = 1
"""


@pytest.fixture(scope="module")
def broken(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packaged]:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "served.py").write_text("import sys\n" + TEN_LINES + BROKEN + SERVE)
    with Packaged(python, folder / "served.py", []) as server:
        yield server


def line_of(words: str) -> int:
    """Of the file of `broken`."""
    return next(at for at, line in enumerate(("import sys\n" + TEN_LINES + BROKEN).splitlines(), 1) if words in line)


def answer(server: Packaged, model: str, value: int, shape: tuple[int, ...] = (1,)) -> tuple[int, str]:
    """Status and error, or the output."""
    body = {"inputs": [{"name": "x", "datatype": "INT32", "shape": shape, "data": [value]}]}
    got = rawhttp.post(server.http, f"/v2/models/{model}/infer", json.dumps(body).encode())
    return got.status, got.json().get("error") or str(got.json()["outputs"][0]["data"])


@pytest.fixture(scope="module")
def served(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packaged]:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "served.py").write_text(TEN_LINES + MORE + SERVE)
    repository = Repository(folder / "models")
    repository.identity("copy")
    with Packaged(python, folder / "served.py", repository.path) as server:
        yield server


def ask_http(server: Packaged, model: str, **arrays: np.ndarray) -> tritonclient.http.InferResult:
    with tritonclient.http.InferenceServerClient(server.http) as client:
        return client.infer(model, [made(tritonclient.http, name, array) for name, array in arrays.items()])


def ask_grpc(server: Packaged, model: str, **arrays: np.ndarray) -> tritonclient.grpc.InferResult:
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        return client.infer(model, [made(tritonclient.grpc, name, array) for name, array in arrays.items()])


def made(client: object, name: str, array: np.ndarray) -> object:
    given = client.InferInput(name, list(array.shape), tritonclient.utils.np_to_triton_dtype(array.dtype))
    given.set_data_from_numpy(array)
    return given


def test_function_over_both_protocols(served: Packaged) -> None:
    a = np.arange(5, dtype=np.float32)
    for ask in (ask_http, ask_grpc):
        assert ask(served, "add", a=a, b=a[::-1].copy()).as_numpy("sum").tolist() == [4.0] * 5
        assert ask(served, "twice", x=np.array([[1, 2], [3, 4]])).as_numpy("y").tolist() == [[2, 4], [6, 8]]
        assert ask(served, "upper", text=np.array(["a", "ß"], object)).as_numpy("upper").tolist() == [b"A", b"SS"]


def test_function_beside_a_repository(served: Packaged) -> None:
    body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1.5, 2]}]}
    answer = rawhttp.post(served.http, "/v2/models/copy/infer", json.dumps(body).encode())
    assert answer.json()["outputs"][0]["data"] == [1.5, 2.0]


def test_decoupled_function_over_a_stream(served: Packaged) -> None:
    def stream(count: int) -> list[object]:
        answers: queue.Queue[tuple[object, object]] = queue.Queue()
        found: list[object] = []
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            client.start_stream(lambda result, error: answers.put((result, error)))
            given = made(tritonclient.grpc, "n", np.array([count], np.int32))
            client.async_stream_infer("count", [given], enable_empty_final_response=True)
            while True:
                result, error = answers.get(timeout=60)
                if error:
                    return [*found, str(error)]
                if (i := result.as_numpy("i")) is not None:
                    found.append(int(i[0]))
                if result.get_response().parameters["triton_final_response"].bool_param:
                    return found

    assert stream(5) == [0, 1, 2, 3, 4]
    assert stream(0) == []
    assert stream(3) == [0, 1, 2, "three is too many"]


def test_requests_share_a_batch(served: Packaged) -> None:
    """Those that came while the server was halted are put together; each has its own rows back."""

    def ask(first: int) -> tuple[list[int], int]:
        got = ask_http(served, "twice", x=np.array([[first, 1]]))
        return got.as_numpy("y").tolist()[0], int(got.as_numpy("rows")[0][0])

    with ThreadPoolExecutor(8) as pool:
        while max(rows for _, rows in pool.map(ask, range(8))) < 2:
            pass
        assert [y for y, _ in pool.map(ask, range(8))] == [[2 * each, 2] for each in range(8)]
    statistics = rawhttp.request(*served.http.split(":"), "GET", "/v2/models/twice/stats").json()["model_stats"][0]
    assert statistics["inference_count"] > statistics["execution_count"]
    assert any(each["batch_size"] > 1 for each in statistics["batch_stats"])


def test_errors_of_functions_name_them(broken: Packaged) -> None:
    assert answer(broken, "raises", 1) == (500, f"function 'raises', line {line_of('raise KeyError')}: KeyError: 'no such thing'")
    assert answer(broken, "refuses", 1) == (404, "not for you")
    told = [answer(broken, "gives", each) for each in range(8)]
    assert [status for status, _ in told] == [500] * 7 + [200]
    assert [text.replace("function 'gives'", "") for _, text in told] == [
        ": TypeError: expected a dict of outputs, found NoneType",
        ": TypeError: expected the outputs ['y'], found []",
        ": TypeError: output 'y': expected FP32 (float32), found float64",
        ": ValueError: output 'y': expected the shape [2], found [2, 1]",
        ": TypeError: float() argument must be a string or a real number, not 'object'",
        ": TypeError: expected the outputs ['y'], found ['y', 'z']",
        f", line {line_of('6: lambda')}: SystemExit: gone",
        "[1.0, 2.0]",
    ]
    assert answer(broken, "rows", 1, (1, 1)) == (500, "function 'rows': ValueError: output 'y': expected the shape [1, 2], found [2, 2]")
    status, text = answer(broken, "writes", 0)
    assert status == 500 and "read-only" in text
    assert answer(broken, "gives", 7)[0] == 200


def test_functions_that_end_the_program(broken: Packaged) -> None:
    """Whatever a function raises is the error of its request: with its class, the code of a nereid.Error alone, a text that can be sent."""
    told = [answer(broken, "ends", each) for each in range(8)]
    assert [status for status, _ in told] == [500] * 7 + [404]
    begin = f"function 'ends', line {line_of('raise (')}: "
    assert [text.replace(begin, "") for _, text in told] == [
        "SystemExit: 0", "SystemExit: 3", "KeyboardInterrupt", "GeneratorExit", "Odd: its text cannot be made, RuntimeError",
        "ValueError: \\ud800 a\\0b", "StopIteration: 3", "\\ud800 a\\0b",
    ]  # fmt: skip
    begin = line_of("def ends_batch") + 1
    assert answer(broken, "ends_batch", 1, (1, 1)) == (500, f"function 'ends_batch', line {begin}: SystemExit: 3")
    with tritonclient.grpc.InferenceServerClient(broken.grpc) as client:
        answers: queue.Queue[tuple[object, object]] = queue.Queue()
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer("ends_stream", [made(tritonclient.grpc, "x", np.array([1], np.int32))])
        assert answers.get(timeout=60)[0].as_numpy("y").tolist() == [1, 2]
        begin = line_of("def ends_stream") + 2
        assert str(answers.get(timeout=60)[1]) == f"function 'ends_stream', line {begin}: SystemExit: 3"
    assert answer(broken, "gives", 7)[0] == 200


def test_kept_input_stays_as_it_is(broken: Packaged) -> None:
    for count in range(1, 50):
        assert answer(broken, "keeps", 7 if count == 1 else 3) == (200, f"[7.0, {count}.0]")


def test_large_input_is_a_view_that_may_be_kept(broken: Packaged) -> None:
    def ask(value: int) -> list[int]:
        return list(ask_http(broken, "keeps_large", x=np.full(1 << 18, value, np.int32)).as_numpy("y"))

    for count in range(1, 20):
        assert ask(3) == [count, (3 * count) << 18]
    assert ask(0) == [20, (3 * 19) << 18]


def test_function_that_hangs(broken: Packaged) -> None:
    """Its requests have an error in time, others go on, and it is called again; too many calls that hang are refused at once."""
    late = (503, "function 'hangs' has not returned within 0.5 s")
    assert answer(broken, "hangs", 1) == late
    broken.process.wait_until(lambda: answer(broken, "hangs", 0) == (200, "[0.0, 0.0]"), 60)  # on a busy machine one may be late that does not hang
    assert answer(broken, "gives", 7)[0] == 200
    for _ in range(7):
        assert answer(broken, "hangs", 1) == late
    assert answer(broken, "hangs", 0) == (503, "function 'hangs' hangs: 8 calls have not returned, no more are made until one does")
    assert answer(broken, "opens", 0)[0] == 200
    broken.process.wait_for(lambda: answer(broken, "hangs", 0)[0], 200)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_ends_at_once(python: Path, tmp_path: Path, number: signal.Signals) -> None:
    """The first waits for a request that does not end, as long as exit_timeout_secs says."""
    endless = """
import os
import threading


@nereid.model(inputs={"x": (np.int32, [1])}, outputs={"y": (np.float32, [2])})
def endless(x):
    os.write(1, b"runs\\n")
    threading.Event().wait()
"""
    file = tmp_path / "served.py"
    file.write_text(TEN_LINES + endless + SERVE)
    server = Packaged(python, file, [], {"log-info": "true", "exit-timeout-secs": "600"}).start()

    def ask() -> None:
        with suppress(ConnectionError, AssertionError, ValueError):
            answer(server, "endless", 1)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask)
        server.process.wait_until(lambda: "runs" in server.process.log(), 60)
        os.kill(server.pid, number)
        server.process.wait_until(lambda: "Waiting for in-flight requests" in server.process.log(), 60)
        os.kill(server.pid, number)
        server.process.ends(-number)


def test_folders_of_a_process_that_was_killed(python: Path, tmp_path: Path) -> None:
    """The next process that serves functions deletes them, and leaves those of processes that run."""
    file, place = tmp_path / "served.py", tmp_path / "tmp"
    file.write_text(TEN_LINES + SERVE)
    place.mkdir()
    first, second = (Packaged(python, file, [], env={"TMPDIR": str(place)}).start() for _ in range(2))
    left = set(place.iterdir())
    assert len(left) == 2
    first.process.kill()
    assert set(place.iterdir()) == left
    third = Packaged(python, file, [], env={"TMPDIR": str(place)}).start()
    assert len(set(place.iterdir()) & left) == 1 and len(set(place.iterdir())) == 2
    for server in (second, third):
        body = {"inputs": [{"name": name, "datatype": "FP32", "shape": [1], "data": [1]} for name in "ab"]}
        assert rawhttp.post(server.http, "/v2/models/add/infer", json.dumps(body).encode()).json()["outputs"][0]["data"] == [2]
    for server in (second, third):
        server.stop()
    assert not list(place.iterdir())


def test_pipe_in_the_place_of_a_lock(python: Path, tmp_path: Path) -> None:
    """What others have laid into the temporary directory is neither waited for nor taken away."""
    file, folder = tmp_path / "served.py", tmp_path / "nereid-functions-theirs"
    file.write_text(TEN_LINES + SERVE)
    folder.mkdir()
    os.mkfifo(folder / ".nereid-lock")
    Packaged(python, file, [], env={"TMPDIR": str(tmp_path)}).start().stop()
    assert os.listdir(folder) == [".nereid-lock"]


def test_stop_while_requests_run(python: Path, tmp_path: Path) -> None:
    """A request that runs when SIGTERM comes is answered; the process ends with status 0."""
    slow = """
import os


@nereid.model(inputs={"x": (np.int32, [1])}, outputs={"y": (np.float32, [2])})
def slow(x):
    os.write(1, b"runs\\n")
    while not os.path.exists(sys.argv[0] + ".go"):
        os.sched_yield()
    return {"y": [1, 2]}
"""
    file = tmp_path / "served.py"
    file.write_text("import sys\n" + TEN_LINES + slow + SERVE)
    server = Packaged(python, file, [], {"log-info": "true"}).start()
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(answer, server, "slow", 1)
        server.process.wait_until(lambda: "runs" in server.process.log(), 60)
        stopped = pool.submit(server.process.stop)
        server.process.wait_until(lambda: "Waiting for in-flight requests" in server.process.log(), 60)
        file.with_name("served.py.go").touch()
        assert asked.result() == (200, "[1.0, 2.0]")
        stopped.result()


def test_kept_model_that_is_loaded_again(script: Script, tmp_path: Path) -> None:
    """It is looked at again where it does not fit any more; no response is dropped without a word."""
    told = script("""
        import asyncio, pathlib
        folder = pathlib.Path(sys.argv[1]) / "m"
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.py").write_text(sys.argv[2])
        def write(datatype, decoupled=False):
            tensors = [f"{kind} {{ name: '{name}' data_type: TYPE_{datatype} dims: [ -1 ] }}" for kind, name in (("input", "x"), ("output", "y"))]
            policy = "model_transaction_policy { decoupled: true }" if decoupled else ""
            (folder / "config.pbtxt").write_text("\\n".join(["backend: 'python'", *tensors, policy]))
        def ask(model, value):
            told.append([])
            for call in (lambda: model.infer(x=[value]), lambda: asyncio.run(model.infer_async(x=[value])), lambda: list(model.stream(x=[value]))):
                try:
                    found = call()
                    told[-1].append([each["y"].tolist() for each in (found if isinstance(found, list) else [found])])
                except nereid.Error as error:
                    told[-1].append(error.code.name)
        told = []
        write("FP32")
        options = dict(model_repository=sys.argv[1], model_control_mode="explicit", load_model="m", http_port=0, grpc_port=0, metrics_port=0)
        with nereid.Server(**options) as server:
            kept = [server.model("m") for _ in range(3)]
            ask(kept[0].asking(request_id="a"), 1.5)
            write("FP64")
            server.load("m")
            ask(kept[0], 1.5)
            write("FP32", decoupled=True)
            server.load("m")
            ask(kept[0], 1.5)
            try:
                asyncio.run(kept[1].asking(timeout=60).infer_async(x=np.ones(1, np.float32)))
            except nereid.Error as error:
                told.append([error.code.name, kept[1].decoupled])
            write("INT32")
            server.load("m")
            ask(kept[0], 3)
    """, tmp_path, RESPONDS)
    assert told == [
        [[[1.5]]] * 3, [[[1.5]]] * 3, ["UNSUPPORTED", "UNSUPPORTED", [[1.5], [2.5], [3.5]]], ["UNSUPPORTED", True], [[[3]]] * 3,
    ]  # fmt: skip


RESPONDS = """
import json
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.decoupled = pb.using_decoupled_model_transaction_policy(json.loads(args["model_config"]))

    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb.get_input_tensor_by_name(request, "x").as_numpy()
            if self.decoupled:
                sender = request.get_response_sender()
                for i in range(3):
                    sender.send(pb.InferenceResponse([pb.Tensor("y", x + x.dtype.type(i))]))
                sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            responses.append(pb.InferenceResponse([pb.Tensor("y", x)]))
        return None if self.decoupled else responses
"""
def test_functions_beside_all_models_of_a_repository(script: Script, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("copy")
    assert script("""
        @nereid.model(inputs={"x": (np.float32, [-1])}, outputs={"y": (np.float32, [-1])})
        def same(x):
            return {"y": x}
        with nereid.Server(same, model_repository=sys.argv[1], model_control_mode="explicit", load_model="*", http_port=0, grpc_port=0, metrics_port=0) as server:
            told = sorted(each["name"] for each in server.models() if each["state"] == "READY")
    """, repository.path) == ["copy", "same"]


def test_functions_beside_a_file_of_options(script: Script, tmp_path: Path) -> None:
    """What the file says of loading and of repositories holds for functions as what the program says."""
    repository = Repository(tmp_path / "models")
    repository.identity("copy")
    (tmp_path / "conf").write_text(f"# of a server\nmodel-control-mode = Explicit\nload-model = copy\nmodel-repository = {repository.path}\n")
    assert script("""
        @nereid.model(inputs={"x": (np.float32, [-1])}, outputs={"y": (np.float32, [-1])})
        def same(x):
            return {"y": x}
        told = []
        with nereid.Server(same, config=sys.argv[1], http_port=0, grpc_port=0, metrics_port=0) as server:
            told.append(server.model("same").infer(x=[1.5])["y"].tolist())
            told.append(server.model("copy").infer(INPUT0=[2.5])["OUTPUT0"].tolist())
    """, tmp_path / "conf") == [[1.5], [2.5]]


LOADS_SLOWLY = """
import os


class TritonPythonModel:
    def initialize(self, args):
        os.write(1, b"begins to load\\n")
        while not os.path.exists(os.environ["LOADS"]):
            os.sched_yield()

    def execute(self, requests):
        return []
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_while_models_load(python: Path, tmp_path: Path, number: signal.Signals) -> None:
    """The first ends the server with status 0 once they are loaded, the second at once."""
    repository = Repository(tmp_path / "models")
    tensors = [f"{kind} {{ name: '{kind}' data_type: TYPE_FP32 dims: [ 1 ] }}" for kind in ("input", "output")]
    folder = repository.model("slow", " ".join(["backend: 'python'", *tensors]))
    (folder / "1" / "model.py").write_text(LOADS_SLOWLY)
    file, go = tmp_path / "served.py", tmp_path / "go"
    file.write_text(TEN_LINES + SERVE)
    for second in (False, True):
        server = Packaged(python, file, repository.path, env={"LOADS": str(go)}, wait_ready=False).start()
        server.process.wait_until(lambda: "begins to load" in server.process.log(), 60)
        os.kill(server.pid, number)
        server.process.wait_until(lambda: no_handler(server.pid, number), 60)
        if second:
            os.kill(server.pid, number)
            server.process.ends(-number)
        else:
            go.touch()
            server.process.ends(0)
            go.unlink()


def no_handler(pid: int, number: int) -> bool:
    """The process ends by the signal."""
    caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    return not int(caught.split()[1], 16) >> (number - 1) & 1


def test_functions_that_cannot_be(script: Script) -> None:
    told = script("""
        told = []
        def note(call):
            try:
                call()
            except Exception as error:
                told.append(f"{type(error).__name__}: {error}")
        some = {"x": (np.float32, [1])}
        def f(x): return {"x": x}
        def g(x): yield {"x": x}
        note(lambda: nereid.model(inputs={"x": ("FP31", [1])}, outputs=some)(f))
        note(lambda: nereid.model(inputs={"x": 3}, outputs=some)(f))
        note(lambda: nereid.model(inputs={"x": (np.float32, [0])}, outputs=some)(f))
        note(lambda: nereid.model(inputs=some, outputs=some, name="../up")(f))
        note(lambda: nereid.model(inputs=some, outputs=some, timeout=1)(g))
        note(lambda: nereid.batch(inputs=some, outputs=some, max_batch_size=0)(f))
        one = nereid.model(inputs=some, outputs=some)(f)
        note(lambda: nereid.Server(one, one))
        async def h(x): return {"x": x}
        async def i(x): yield {"x": x}
        note(lambda: nereid.model(inputs=some, outputs=some)(h))
        note(lambda: nereid.model(inputs=some, outputs=some)(i))
        note(lambda: nereid.batch(inputs={}, outputs=some)(f))
        note(lambda: nereid.batch(inputs=some, outputs=some)(g))
        note(lambda: nereid.Server("models"))
    """)
    assert told == [
        "ValueError: input 'x': expected (datatype, shape) such as (numpy.float32, [-1, 3]), found ('FP31', [1]): datatype: expected one of "
        "BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64, BYTES, BF16, or one of NumPy's, found 'FP31'",
        "ValueError: input 'x': expected (datatype, shape) such as (numpy.float32, [-1, 3]), found 3: cannot unpack non-iterable int object",
        "ValueError: input 'x': sizes are above 0, or -1 for any, found [0]",
        "ValueError: name: expected the name of a model, which is that of a folder, found '../up'",
        "ValueError: timeout: expected seconds up to 86400, and none for a generator, found 1",
        "ValueError: max_batch_size: expected at least 1, found 0",
        "ValueError: two functions have the same name: ['f', 'f']",
        "TypeError: function 'h': expected one without async, which is called on a thread of the server",
        "TypeError: function 'i': expected one without async, which is called on a thread of the server",
        "TypeError: function 'f': a batch is divided by the rows of its inputs; it has some, and is no generator",
        "TypeError: function 'g': a batch is divided by the rows of its inputs; it has some, and is no generator",
        "TypeError: expected functions of @nereid.model or @nereid.batch (a repository is model_repository=...), found 'models'",
    ]


def test_other_repositories_cannot_name_a_function(script: Script, tmp_path: Path) -> None:
    """A model that names the backend, and a link to it, has no key of a function."""
    script("""
        import os, pathlib
        from nereid import _core
        folder = pathlib.Path(sys.argv[1]) / "thief"
        (folder / "1").mkdir(parents=True)
        (folder / "libtriton_function.so").symlink_to(_core.__file__)
        (folder / "config.pbtxt").write_text('backend: "function" parameters { key: "function" value { string_value: "f" } }')
        options = dict(model_repository=sys.argv[1], exit_on_error=False, http_port=0, grpc_port=0, metrics_port=0)
        with nereid.Server(nereid.model(inputs={}, outputs={}, name="f")(lambda: {}), **options) as server:
            told = next(each for each in server.models() if each["name"] == "thief")
        assert told["state"] == "UNAVAILABLE" and "names no function of this process" in told["reason"], told
    """, tmp_path)


def test_responses_that_nobody_takes(script: Script) -> None:
    """At most 256 MiB of them are kept: then the request is cancelled, and who takes them gets those first, in order, then an error."""
    told = script("""
        import threading
        ended = threading.Event()
        @nereid.model(inputs={"n": (np.int32, [1])}, outputs={"x": (np.uint8, [-1])})
        def heaps(n):
            try:
                for i in range(n[0]):
                    yield {"x": np.full(16 << 20, i, np.uint8)}
            finally:
                ended.set()
        told = []
        with nereid.Server(heaps, http_port=0, grpc_port=0, metrics_port=0) as server:
            heap = server.model("heaps")
            answers = heap.stream(n=np.array([40], np.int32))
            assert ended.wait(300)
            try:
                for each in answers:
                    told.append(int(each["x"][-1]))
            except nereid.Error as error:
                told.append(str(error))
            told.append(sum(1 for each in heap.asking(timeout=300).stream(n=np.array([3], np.int32))))
    """)
    assert told == [*range(16), "responses were lost: there was no room for more that nobody took", 3]
