"""The package: installed, imported, a server in the process, models asked."""

import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from conftest import PACKAGE, Script, run
from harness import models, paths, sanitizer
from harness.repository import Repository
from harness.servers import Nereid

QUIET = "http_port=0, grpc_port=0, metrics_port=0, http_address='127.0.0.1', grpc_address='127.0.0.1'"
LARGEST = 32 * 2**20  # bytes of the wheel


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.identity_repository(Repository(tmp_path_factory.mktemp("identity") / "models"))


def test_wheel_holds_the_server_and_needs_numpy_alone(wheel: Path, tmp_path: Path) -> None:
    assert paths.BUILD.name != "release" or wheel.stat().st_size < LARGEST
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
        archive.extractall(tmp_path)
    assert re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE) == ["numpy>=1.23"]
    for each in ("_core.abi3.so", "py.typed", "bin/nereid", "lib/libtritonserver.so", "backends/python/libtriton_python.so", "share/nereid/live/live.html"):
        assert f"nereid/{each}" in names
    assert "nereid/backends/onnxruntime/libonnxruntime.so.1" in names
    # Whatever a file of it needs lies in it or on every Debian.
    base = re.compile(r"lib(c|m|dl|pthread|rt|resolv|gcc_s|stdc\+\+|asan|ubsan|tsan)\.so\.\d+|ld-linux.*")
    inside = {Path(name).name for name in names}
    for library in [path for path in (tmp_path / "nereid").rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]:
        for needed in re.findall(r"\(NEEDED\).*\[(.+?)\]", run("readelf", "-d", library)):
            assert needed in inside or base.fullmatch(needed), f"{library.name} needs {needed}"


def test_libraries_come_out_of_the_package(script: Script, digits: Path, python: Path) -> None:
    mapped = script(f"""
        with nereid.Server(model_repository=sys.argv[1], model_control_mode="explicit", {QUIET}) as server:
            server.load("digits")
            told = sorted({{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}})
    """, digits)
    site = next(python.parents[1].glob("lib/python*/site-packages")) / "nereid"
    for name in ("libnghttp2.so", "libprotobuf-c.so", "libyyjson.so", "libtritonserver.so", "libonnxruntime.so"):
        found = [path for path in mapped if Path(path).name.startswith(name)]
        assert found and all(path.startswith(str(site)) for path in found), (name, found)


def test_types(python: Path) -> None:
    """Strictly, for the oldest Python that the checker knows and a new one."""
    for version in ("3.10", "3.13"):
        run(paths.ROOT / "build" / "venv" / "bin" / "python", "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml",
            "--python-version", version, "--cache-dir", python.parents[1] / "mypy", PACKAGE / "nereid")  # fmt: skip


@pytest.mark.onnx
def test_digits(script: Script, digits: Path) -> None:
    assert script(f"""
        seven = "0078dgf100774bc000008d100488ff6002bff400000g5000009f1000000d5000"
        image = np.array([[int(each, 17) for each in seven]], np.float32)
        with nereid.Server(model_repository=sys.argv[1], {QUIET}) as server:
            outputs = server.model("digits").infer(image=image)
            told = int(outputs["logits"].argmax())
    """, digits) == 7


def test_many_threads_start_and_stop(script: Script) -> None:
    """One of them starts the server, the others are told; what was made for it is gone when it is stopped."""
    assert script(f"""
        import os, tempfile, threading
        tempfile.tempdir = tempfile.mkdtemp()
        @nereid.model(inputs={{"a": (np.float32, [1])}}, outputs={{"b": (np.float32, [1])}})
        def same(a):
            return {{"b": a}}
        server, told = nereid.Server(same, {QUIET}), []
        def start():
            together.wait()
            try:
                server.start()
            except RuntimeError as error:
                found.append(str(error))
        def stop():
            together.wait()
            server.stop()
        for _ in range(5):
            together, found = threading.Barrier(4), []
            for work in (start, stop):
                threads = [threading.Thread(target=work) for _ in range(4)]
                for each in threads: each.start()
                for each in threads: each.join()
                if work is start:
                    found.append(server.model("same").infer(a=[2])["b"].tolist())
            told.append(found == ["the server runs already"] * 3 + [[2.0]])
        told.append(os.listdir(tempfile.tempdir) == [])
        os.rmdir(tempfile.tempdir)
    """) == [True] * 6


WHERE = """
import sys


class TritonPythonModel:
    def initialize(self, args):
        raise ValueError("runs " + sys.prefix)
"""


def test_models_in_python_run_the_python_of_the_program(script: Script, tmp_path: Path) -> None:
    """Not the first python3 of PATH, unless the program or its file of options names it."""
    assert script(f"""
        import pathlib, shutil
        folder = pathlib.Path(sys.argv[1]) / "where"
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text("backend: 'python' output {{ name: 'python' data_type: TYPE_STRING dims: [ 1 ] }}")
        (folder / "1" / "model.py").write_text(sys.argv[2])
        told, other = [], "python,python-executable=" + shutil.which("python3")
        (file := folder / "conf").write_text("backend-config = " + other)
        for more in ({{}}, {{"backend_config": other}}, {{"config": file}}):
            with nereid.Server(model_repository=sys.argv[1], exit_on_error=False, **more, {QUIET}) as server:
                told.append(["runs " + sys.prefix in each["reason"] for each in server.models()])
    """, tmp_path, WHERE) == [[True], [False], [False]]


def test_every_datatype_there_and_back(script: Script, identity: Path) -> None:
    script(f"""
        told = []
        with nereid.Server(model_repository=sys.argv[1], {QUIET}) as server:
            for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"):
                model = server.model("id_" + name.replace("float", "fp"))
                for array in (np.array([0, 1, 1], name), np.zeros(0, name), np.arange(8).astype(name)[::2], np.array([1, 0], name).newbyteorder(">").astype(np.dtype(name).newbyteorder(">"))):
                    got = model.infer(INPUT0=array)["OUTPUT0"]
                    assert got.dtype == np.dtype(name) and got.tolist() == array.tolist(), (name, got, array)
            texts = server.model("id_bytes")
            for given in (["a", b"\\xff\\0", ""], [], np.array(["x", "yy"]), np.array([b"x", b"yy"])):
                wanted = [each if isinstance(each, bytes) else str(each).encode() for each in given]
                assert texts.infer(INPUT0=given)["OUTPUT0"].tolist() == wanted
            half = server.model("id_bf16").infer(INPUT0=np.array([1, -2.5, 3.14159, np.inf, np.nan], np.float32))["OUTPUT0"]
            assert half.dtype == np.float32 and half[:4].tolist() == [1, -2.5, 3.140625, np.inf] and np.isnan(half[4])
            shaped = server.model("id_cube").infer(INPUT0=np.ones((2, 3, 4), np.float32))["OUTPUT0"]
            assert shaped.shape == (2, 3, 4)
    """, identity)


def test_lists_are_of_the_datatype_of_the_model_or_refused(script: Script, identity: Path) -> None:
    told = script(f"""
        told = []
        with nereid.Server(model_repository=sys.argv[1], {QUIET}) as server:
            for name, value in (("int32", [1, 2.0, True]), ("uint8", [255]), ("fp32", [0.1, float("inf"), float("nan")]), ("fp16", []), ("bool", [0, 1]), ("int64", [2**53 + 1, 1.0])):
                told.append(str(server.model("id_" + name).infer(INPUT0=value)["OUTPUT0"].tolist()))
            for name, value in (
                ("int32", [1, 1.5]), ("int32", [2**31]), ("uint8", [256]), ("uint8", [-1]), ("uint64", [2**64]), ("int64", [float("nan")]),
                ("bool", [2]), ("fp32", [1e39]), ("fp16", [70000]), ("bf16", [3.4e38]), ("fp32", [10**39]), ("int32", ["300"]),
            ):
                try:
                    told.append(str(server.model("id_" + name).infer(INPUT0=value)["OUTPUT0"].tolist()))
                except nereid.Error as error:
                    told.append(str(error))
    """, identity)
    assert told[:6] == ["[1, 2, 1]", "[255]", "[0.10000000149011612, inf, nan]", "[]", "[False, True]", "[9007199254740993, 1]"]
    lost = [
        "INT32 does not hold 1.5", "INT32 does not hold", "UINT8 does not hold", "UINT8 does not hold", "UINT64 does not hold", "cannot convert float NaN",
        "BOOL does not hold 2", "FP32 does not hold 1e+39", "FP16 does not hold 70000", "BF16 does not hold 3.4e+38", "FP32 does not hold 1000", "INT32 does not hold 300",
    ]  # fmt: skip
    assert len(told) == 6 + len(lost)
    for line, words in zip(told[6:], lost):
        assert line.startswith("input 'INPUT0' of model 'id_") and words in line, told


def test_errors_have_their_code(script: Script, identity: Path) -> None:
    told = script(f"""
        told = []
        def note(call):
            try:
                call()
            except Exception as error:
                told.append([type(error).__name__, getattr(getattr(error, "code", None), "name", ""), str(error)])
        server = nereid.Server(model_repository=sys.argv[1], {QUIET})
        note(lambda: server.model("id_fp32"))
        with server:
            note(lambda: server.model("nobody"))
            note(lambda: server.model("id_fp32").infer(INPUT0=np.zeros(3)))
            note(lambda: server.model("id_fp32").infer(WRONG=np.zeros(3, np.float32)))
            note(lambda: server.model("id_fp32").infer(INPUT0=object()))
            note(lambda: server.model("id_fp32").infer(INPUT0=np.zeros(3, "complex64")))
            note(lambda: server.load("id_fp32"))
            note(server.start)
            model = server.model("id_fp32")
        note(lambda: model.infer(INPUT0=np.zeros(3, np.float32)))
        note(lambda: nereid.Server(model_repository="/nowhere", {QUIET}).start())
        note(lambda: nereid.Server(model_repository=sys.argv[1], log_format="loud").start())
        note(lambda: nereid.Server(no_such_option=1))
        note(lambda: nereid.Server().start())
    """, identity)
    assert told == [
        ["RuntimeError", "", "the server does not run: call start(), or use it in a with statement"],
        ["Error", "NOT_FOUND", "Request for unknown model: 'nobody' is not found"],
        ["Error", "INVALID_ARG", "[request id: <id_unknown>] inference input 'INPUT0' data-type is 'FP64', but model 'id_fp32' expects 'FP32'"],
        ["Error", "INVALID_ARG", "unexpected inference input 'WRONG' for model 'id_fp32'"],
        ["Error", "INVALID_ARG", "input 'INPUT0' of model 'id_fp32' is no array: float() argument must be a string or a real number, not 'object'"],
        ["Error", "INVALID_ARG", "input 'INPUT0': an array of kind 'c' with 8 bytes an element is of no datatype of a tensor"],
        ["Error", "UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled"],
        ["RuntimeError", "", "the server runs already"],
        ["RuntimeError", "", "the server does not run: call start(), or use it in a with statement"],
        ["Error", "NOT_FOUND", "failed to read model repository '/nowhere': listing '/nowhere': No such file or directory"],
        ["Error", "INVALID_ARG", "option --log-format: expected default, ISO8601 or json, found 'loud'"],
        ["TypeError", "", "there is no option 'no_such_option': see docs/user/command-line.md, with _ for -"],
        ["Error", "INVALID_ARG", "--model-repository must be specified"],
    ]


def test_outputs_outlive_the_server(script: Script, identity: Path) -> None:
    assert script(f"""
        given = np.arange(1 << 20, dtype=np.float32)
        with nereid.Server(model_repository=sys.argv[1], {QUIET}) as server:
            got = server.model("id_fp32").infer(INPUT0=given)["OUTPUT0"]
        got += 1
        told = bool((got == given + 1).all()) and not got.flags.owndata
    """, identity)


def test_stop_while_a_request_is_made(script: Script, identity: Path) -> None:
    """A text of an input runs Python, and so may any call by letting another thread run."""
    assert script(f"""
        class Stops:
            def __str__(self):
                server.stop()
                return "x"
        server = nereid.Server(model_repository=sys.argv[1], {QUIET}).start()
        model = server.model("id_bytes")
        try:
            model.infer(INPUT0=np.array([Stops()], object))
        except nereid.Error as error:
            told = str(error)
    """, identity) == "Request for unknown model: 'id_bytes' has no available versions"


def test_fork_leaves_the_server_to_its_process(script: Script) -> None:
    """A child ends at once, although no thread of the server is there to stop, and takes no folder of the parent away.

    An address sanitizer that takes no locks of its own around fork leaves them locked in the child where another thread allocated at that
    moment: such a child stands still in its allocator, as in malloc it would not, and another one is made.
    """
    tries = 1 if paths.BUILD.name == "release" else 5
    told = script(f"""
        import os, signal
        @nereid.model(inputs={{"a": (np.float32, [1])}}, outputs={{"b": (np.float32, [1])}})
        def same(a):
            return {{"b": a}}
        def ask():
            try:
                return server.model("same").infer(a=[2])["b"].tolist()
            except nereid.Error as error:
                return str(error)
        with nereid.Server(same, exit_timeout_secs=600, model_control_mode="explicit", {QUIET}) as server:
            for _ in range({tries}):
                reading, writing = os.pipe()
                child = os.fork()
                if not child:
                    signal.alarm({300 // tries})
                    os.write(writing, ask().encode())
                    server.stop()
                    sys.exit(0)
                status = os.waitpid(child, 0)[1]
                if status != signal.SIGALRM:
                    break
            os.close(writing)
            told = [status, os.read(reading, 1000).decode()]
            server.load("same")
            told.append(ask())
    """)
    assert told == [0, "the server runs in the process that this one was forked from: start one of its own here, after the fork", [2.0]]


def test_fork_keeps_no_socket_of_the_server(script: Script) -> None:
    """While a child lives, the server that stops hangs up on its clients and frees the port; so does one whose process ends."""
    told = script(f"""
        import os, signal, socket
        @nereid.model(inputs={{"a": (np.float32, [1])}}, outputs={{"b": (np.float32, [1])}})
        def same(a):
            return {{"b": a}}
        def client(port):
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            connection.sendall(b"GET /v2/health/live HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            return connection, connection.recv(100).split()[1].decode()
        def says(connection):
            try:
                return connection.recv(100).decode()
            except ConnectionResetError:
                return ""
        def refused(port):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=10)
            except OSError as error:
                return type(error).__name__
        def lives_on():
            if not os.fork():
                signal.alarm(100)
                os.close(ends)
                os.read(held, 1)  # until its parent and ours have ended
                os._exit(0)
        held, ends = os.pipe()
        with nereid.Server(same, {QUIET}) as server:
            port = server.http_port
            connection, status = client(port)
            lives_on()
            told = [status, client(port)[1]]
        told += [says(connection), refused(port)]
        with nereid.Server(same, {QUIET.replace('http_port=0', 'http_port=port', 1)}) as server:
            told.append(client(port)[1])
        reading, writing = os.pipe()
        goes, gone = os.pipe()
        if not os.fork():
            server = nereid.Server(same, {QUIET}).start()
            lives_on()
            os.write(writing, str(server.http_port).encode())
            os.read(goes, 1)
            os._exit(0)
        port = int(os.read(reading, 100))
        connection, status = client(port)
        os.write(gone, b"x")
        os.wait()
        told += [status, says(connection), refused(port)]
    """)
    assert told == ["200", "200", "", "ConnectionRefusedError", "200", "200", "", "ConnectionRefusedError"]


def test_numbers_that_cannot_be_sent(script: Script, identity: Path) -> None:
    """They are refused, not taken modulo 2^64."""
    assert script(f"""
        told = []
        with nereid.Server(model_repository=sys.argv[1], {QUIET}) as server:
            for wrong in (dict(priority=-1), dict(priority=1 << 64), dict(queue_timeout=-1), dict(queue_timeout=1e30), dict(queue_timeout=float("nan"))):
                try:
                    server.model("id_fp32").asking(**wrong)
                except ValueError:
                    told.append(list(wrong))
    """, identity) == [["priority"]] * 2 + [["queue_timeout"]] * 3


def test_what_a_request_says_besides(script: Script, identity: Path) -> None:
    """A parameter that cannot be sent is named; one output may be a text."""
    assert script(f"""
        told = []
        with nereid.Server(model_repository=sys.argv[1], {QUIET}) as server:
            model = server.model("id_fp32")
            for wrong in (None, [1], 1 << 63):
                try:
                    model.asking(parameters={{"good": 1, "bad": wrong}})
                except ValueError as error:
                    told.append(str(error))
            asked = model.asking(outputs="OUTPUT0", parameters={{"a": "b", "c": True, "d": 1.5, "e": -(1 << 63)}})
            told.append(asked.infer(INPUT0=[1])["OUTPUT0"].tolist())
    """, identity) == [
        *[f"parameter 'bad': expected a str, bool, float or an int of 64 bits, found {each}" for each in (None, [1], 1 << 63)], [1.0],
    ]  # fmt: skip


def test_texts_with_a_zero_byte_are_refused(script: Script, identity: Path) -> None:
    """What follows it would not be seen, and another tensor would be meant."""
    told = script(f"""
        told, ones = [], np.ones(3, np.float32)
        with nereid.Server(model_repository=sys.argv[1], {QUIET}) as server:
            model = server.model("id_fp32")
            for asking, name in (
                ({{}}, "INPUT0\\0x"), ({{"outputs": ["OUTPUT0\\0x"]}}, "INPUT0"), ({{"sequence": "a\\0b"}}, "INPUT0"), ({{"request_id": "a\\0b"}}, "INPUT0"),
                ({{"parameters": {{"a\\0b": 1}}}}, "INPUT0"), ({{"parameters": {{"a": "a\\0b"}}}}, "INPUT0"),
            ):
                try:
                    told.append(list(model.asking(**asking).infer({{name: ones}})))
                except ValueError as error:
                    told.append(str(error))
    """, identity)
    texts = [f"'{text}' holds a zero byte" for text in (r"INPUT0\x00x", r"OUTPUT0\x00x", *[r"a\x00b"] * 4)]
    assert told == [*texts[:3], "embedded null character", *texts[4:]]


def test_code_that_is_none(script: Script) -> None:
    """A model may answer with a number that is no status code."""
    assert script(f"""
        @nereid.model(inputs={{"a": (np.float32, [1])}}, outputs={{"b": (np.float32, [1])}})
        def wild(a):
            error = nereid.Error("wild")
            error.code = 77
            raise error
        with nereid.Server(wild, {QUIET}) as server:
            try:
                server.model("wild").infer(a=[2])
            except nereid.Error as error:
                told = [error.code.name, str(error)]
    """) == ["UNKNOWN", "wild"]


def test_error_with_a_name_keeps_no_request(script: Script) -> None:
    """A function that names its error makes a ring of references; the server ends all the same, and at once."""
    assert script(f"""
        import gc
        gc.disable()
        @nereid.model(inputs={{"a": (np.float32, [-1])}}, outputs={{"b": (np.float32, [1])}})
        def fails(a):
            try:
                first = KeyError("first")
                raise first
            except KeyError:
                second = nereid.Error("second")
                raise second
        with nereid.Server(fails, {QUIET}) as server:
            try:
                server.model("fails").infer(a=np.zeros(1 << 20, np.float32))
            except nereid.Error as error:
                told = str(error)
    """) == "second"


def test_python_m_nereid_is_the_server(python: Path, identity: Path) -> None:
    class Module(Nereid):
        def program(self) -> list[str]:
            return [str(python), "-m", "nereid"]

    told = run(python, "-m", "nereid", "--version", env=sanitizer.runtime())
    assert told == run(paths.nereid_binary(), "--version")
    refused = subprocess.run(
        [python, "-m", "nereid", "--no-such-option"], capture_output=True, text=True, check=False, env={**os.environ, **sanitizer.runtime()}
    )
    assert refused.returncode == 1 and "no-such-option" in refused.stderr
    with Module(identity, {"model-control-mode": "explicit", "load-model": "id_fp32"}, env=sanitizer.runtime()) as server:
        assert Path(f"/proc/{server.pid}/exe").resolve().name == "nereid"


def test_shared_memory_that_is_cut_short(script: Script, identity: Path) -> None:
    """SIGBUS is the package's to bear; the client has zeros."""
    assert script(f"""
        import os, urllib.request

        def post(path, body):
            with urllib.request.urlopen(f"http://127.0.0.1:{{server.http_port}}/v2/{{path}}", json.dumps(body).encode()) as answer:
                return json.loads(answer.read() or b"null")

        name, size = f"/nereid-cut-{{os.getpid()}}", 1 << 20
        fd = os.open("/dev/shm" + name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(fd, size)
            with nereid.Server(model_repository=sys.argv[1], allow_client_shm=True, {QUIET}) as server:
                post("systemsharedmemory/region/cut/register", {{"key": name, "offset": 0, "byte_size": size}})
                tensor = {{"name": "INPUT0", "datatype": "FP32", "shape": [size // 4], "parameters": {{
                    "shared_memory_region": "cut", "shared_memory_offset": 0, "shared_memory_byte_size": size}}}}
                os.ftruncate(fd, 0)
                try:
                    told = sum(post("models/id_fp32/infer", {{"inputs": [tensor]}})["outputs"][0]["data"]) == 0
                except urllib.error.HTTPError as error:
                    told = error.code == 400
                assert server.ready()
        finally:
            os.unlink("/dev/shm" + name)
    """, identity)


def test_keys_are_read_again(script: Script, identity: Path, tmp_path: Path) -> None:
    """As the executable does: a key that is added opens the door without a new start."""
    assert script(f"""
        import pathlib, urllib.request
        file = pathlib.Path(sys.argv[2])
        file.write_text("first-key-of-the-test inference,health\\n")
        with nereid.Server(model_repository=sys.argv[1], api_keys=file, {QUIET}) as server:
            def ask(key):
                request = urllib.request.Request(f"http://127.0.0.1:{{server.http_port}}/v2/health/ready", headers={{"x-api-key": key}})
                try:
                    return urllib.request.urlopen(request).status
                except urllib.error.HTTPError as error:
                    return error.code
            assert ask("first-key-of-the-test") == 200 and ask("second-key-of-the-test") != 200
            file.write_text("second-key-of-the-test inference,health\\n")
            while ask("second-key-of-the-test") != 200:
                pass
            told = ask("first-key-of-the-test") != 200
    """, identity, tmp_path / "keys")
