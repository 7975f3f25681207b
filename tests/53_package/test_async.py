"""Event loops, threads, cancelled requests, memory that is not copied."""

from pathlib import Path

import pytest
from conftest import Script
from harness import models
from harness.repository import Repository

QUIET = "http_port=0, grpc_port=0, metrics_port=0, http_address='127.0.0.1', grpc_address='127.0.0.1'"
FUNCTIONS = """
import asyncio, gc, threading
gate = threading.Event()

@nereid.model(inputs={"n": (np.int32, [1])}, outputs={"i": (np.int32, [1])})
def count(n):
    for i in range(n[0]):
        yield {"i": [i]}
    if n[0] == 3:
        raise nereid.Error("three is too many", nereid.Code.UNAVAILABLE)

@nereid.model(inputs={"x": (np.float32, [-1])}, outputs={"y": (np.float32, [-1])}, instances=2)
def waits(x):
    if x[0] > 0:
        gate.wait()
    return {"y": x}
"""


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.identity_repository(Repository(tmp_path_factory.mktemp("identity") / "models"))


def test_event_loops(script: Script, identity: Path) -> None:
    """Many requests at once, from two loops in two threads; what a task is waiting for is cancelled with it."""
    told = script(f"""
        {FUNCTIONS.replace(chr(10), chr(10) + " " * 8)}
        told = {{}}

        async def many(model, at, to):
            found = await asyncio.gather(*[model.infer_async(INPUT0=np.full(4, each, np.float32)) for each in range(at, to)])
            return [int(each["OUTPUT0"][3]) for each in found]

        async def responses(server, n):
            found = []
            try:
                async for each in server.model("count").stream_async(n=[n]):
                    found.append(int(each["i"][0]))
            except nereid.Error as error:
                found.append(f"{{error.code.name}} {{error}}")
            return found

        async def cancelled(server):
            model = server.model("waits")
            task = asyncio.create_task(model.infer_async(x=[1.0]))
            while server.model("waits").statistics()["model_stats"][0]["inference_stats"]["queue"]["count"] == 0 and not task.done():
                await model.infer_async(x=[0.0])
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                pass
            try:
                await model.asking(timeout=0.05).infer_async(x=[1.0])
            except TimeoutError as error:
                told["late"] = str(error)
            gate.set()
            return float((await model.infer_async(x=[1.0]))["y"][0])

        with nereid.Server(count, waits, model_repository=sys.argv[1], {QUIET}) as server:
            model = server.model("id_fp32")
            other = []
            thread = threading.Thread(target=lambda: other.append(asyncio.run(many(model, 500, 1000))))
            thread.start()
            assert asyncio.run(many(model, 0, 500)) == list(range(500))
            thread.join()
            assert other == [list(range(500, 1000))]
            told["responses"] = [asyncio.run(responses(server, n)) for n in (4, 0, 3)]
            told["after"] = asyncio.run(cancelled(server))
            told["refused"] = []
            for call in (lambda: server.model("count").infer(n=[1]), lambda: asyncio.run(server.model("count").infer_async(n=[1]))):
                try:
                    call()
                except nereid.Error as error:
                    told["refused"].append(error.code.name)
    """, identity)
    assert told == {
        "responses": [[0, 1, 2, 3], [], [0, 1, 2, "UNAVAILABLE three is too many"]],
        "late": "no response has come in time", "after": 1.0, "refused": ["UNSUPPORTED", "UNSUPPORTED"],
    }  # fmt: skip


def test_iteration_that_is_left(script: Script) -> None:
    """The request is cancelled, and the server ends at once."""
    assert script(f"""
        {FUNCTIONS.replace(chr(10), chr(10) + " " * 8)}
        with nereid.Server(count, {QUIET}) as server:
            for each in server.model("count").stream(n=[100000]):
                if each["i"][0] == 10:
                    break
            told = [int(each["i"][0]) for each in server.model("count").stream(n=[2])]
    """) == [0, 1]


def test_threads_and_timeouts(script: Script) -> None:
    assert script(f"""
        {FUNCTIONS.replace(chr(10), chr(10) + " " * 8)}
        told = []
        with nereid.Server(waits, {QUIET}) as server:
            model = server.model("waits")
            try:
                model.asking(timeout=0.05).infer(x=[1.0])
            except TimeoutError:
                told.append("late")
            found = []
            threads = [threading.Thread(target=lambda: found.append(model.infer(x=[1.0])["y"][0])) for _ in range(8)]
            for each in threads: each.start()
            gate.set()
            for each in threads: each.join()
            told.append(sum(map(float, found)))
    """) == ["late", 8.0]


def test_timeouts_end(script: Script) -> None:
    """Of any length, where a function holds the instance: for ever would be until the alarm. Below 0 they are over; NaN is none."""
    assert script(f"""
        {FUNCTIONS.replace(chr(10), chr(10) + " " * 8)}
        import math, signal, time
        told = []
        def asks(model):
            async def responses():
                async for each in model.stream_async(x=[1.0]):
                    pass
            return [lambda: model.infer(x=[1.0]), lambda: list(model.stream(x=[1.0])),
                    lambda: asyncio.run(model.infer_async(x=[1.0])), lambda: asyncio.run(responses())]
        def late(ask, seconds):
            begun = time.monotonic()
            try:
                ask()
            except TimeoutError as error:
                if time.monotonic() - begun >= seconds:
                    told.append(str(error))
        with nereid.Server(waits, {QUIET}) as server:
            signal.alarm(60)
            model = server.model("waits")
            each = [(ask, seconds) for seconds in (0.5, 1, 3, 0, -1, -math.inf) for ask in asks(model.asking(timeout=seconds))]
            threads = [threading.Thread(target=late, args=args) for args in each]
            for each in threads: each.start()
            for each in threads: each.join()
            try:
                model.asking(timeout=math.nan)
            except ValueError as error:
                told.append(str(error))
            gate.set()
            for seconds in (1e30, math.inf, None):
                for ask in asks(model.asking(timeout=seconds)):
                    ask()
    """) == ["no response has come in time"] * 24 + ["timeout: expected seconds, found nan"]


def test_memory_is_not_copied(script: Script, identity: Path) -> None:
    """Inputs by DLPack and as arrays, outputs: the process needs memory for one output of 256 MiB, and no more."""
    assert script(f"""
        import ctypes, resource

        class Tensor:
            def __init__(self, array): self.array = array
            def __dlpack__(self, **options): return self.array.__dlpack__(**options)
            def __dlpack_device__(self): return self.array.__dlpack_device__()

        size = 64 << 20
        given = np.ones(size, np.float32)
        with nereid.Server(model_repository=sys.argv[1], memory_budget=1 << 30, {QUIET}) as server:
            model = server.model("id_fp32")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for each in (given, Tensor(given)):
                got = model.infer(INPUT0=each)["OUTPUT0"]
                assert got[-1] == 1 and len(got) == size
                kept = got[::2][1:]
                del got
                assert kept[-1] == 1
                del kept
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
            told = grown < 1.25 * given.nbytes or "asan" in open("/proc/self/maps").read()
    """, identity)


def test_calls_leave_nothing(script: Script, identity: Path) -> None:
    assert script(f"""
        {FUNCTIONS.replace(chr(10), chr(10) + " " * 8)}
        import os
        def rss(): return int(open("/proc/self/statm").read().split()[1]) * 4096
        with nereid.Server(count, model_repository=sys.argv[1], {QUIET}) as server:
            model, stream = server.model("id_fp32"), server.model("count")
            array = np.ones(1 << 14, np.float32)

            async def some():
                await asyncio.gather(*[model.infer_async(INPUT0=array) for _ in range(50)])

            def work(times):
                for _ in range(times):
                    for _ in range(100):
                        model.infer(INPUT0=array)
                    list(stream.stream(n=[10]))
                    next(stream.stream(n=[1000]))
                    asyncio.run(some())
                    try:
                        model.infer(INPUT0=array.astype("f8"))
                    except nereid.Error:
                        pass
                gc.collect()
                return rss(), len(os.listdir("/proc/self/fd"))

            first = work(10)
            last = work(40)
            # What is kept of each call would be 384 MiB.
            told = last[1] <= first[1] and (last[0] < first[0] + (64 << 20) or "asan" in open("/proc/self/maps").read()) or [first, last]
    """, identity) is True
