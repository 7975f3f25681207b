"""Caches that break a rule: whoever asks the model gets the right answer all the same, and the log names the cache and the rule."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import cache_asks as asks
import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid, Server

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def odd(compiled: Compile) -> Path:
    return compiled("odd_cache", "libtritoncache", "odd")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = Repository(tmp_path_factory.mktemp("odd") / "models")
    asks.write_models(repository)
    # Waits an hour for more requests.
    queue = "max_queue_delay_microseconds: 3600000000 default_queue_policy { allow_timeout_override: true }"
    repository.identity("lonely", max_batch_size=8, extra=f"dynamic_batching {{ preferred_batch_size: [ 8 ] {queue} }}\n")
    return repository.path


def serve(models: Path, caches: Path, name: str, mode: str, **more: str) -> Server:
    settings = [f"{name},{key}={value}" for key, value in {"mode": mode, **more}.items()]
    return Nereid(models, {"cache-directory": str(caches), "cache-config": settings})


def failure_to_start(models: Path, caches: Path, name: str, mode: str) -> str:
    """The log of a server that ends by itself, without a sanitizer's report."""
    server = serve(models, caches, name, mode)
    server.wait_ready = False
    server.start()
    server.process.ends(1)
    log = server.process.log()
    server.kill()
    return log


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("no_initialize", "cache 'odd': odd cache: not today"),
        ("null", "cache 'odd': Failed to initialize cache implementation"),
        ("newer", "cache 'odd': odd cache: the cache API of the server is too old for it"),
    ],
)
def test_a_cache_that_cannot_be_made_is_named(models: Path, odd: Path, mode: str, words: str) -> None:
    log = failure_to_start(models, odd, "odd", mode)
    assert words in log
    assert ("odd cache: FINALIZED" in log) == (mode != "null")  # what is there with an error is finalised, as in the reference


def test_a_cache_that_lacks_a_function_is_named(models: Path, compiled: Compile) -> None:
    caches = compiled("odd_cache", "libtritoncache", "half", "-DODD_WITHOUT_LOOKUP")
    log = failure_to_start(models, caches, "half", "any")
    assert "cache 'half': unable to find required entrypoint 'TRITONCACHE_CacheLookup' in shared library" in log


def test_a_cache_that_is_no_library_is_named(models: Path, tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text/libtritoncache_text.so").write_text("no library")
    log = failure_to_start(models, tmp_path, "text", "any")
    assert "cache 'text': unable to load shared library" in log


LOOKUPS = {
    "no_lookup": "odd cache: cannot look",
    "silent_lookup": "TRITONCACHE_CacheLookup succeeded without a call of TRITONCACHE_Copy",
    "rubbish": "what the cache returned is not what was put into it",
    "short": "what the cache returned is not what was put into it",
    "device": "expected one buffer of CPU memory, once",
    "many": "expected one buffer of CPU memory, once",
    "twice": "expected one buffer of CPU memory, once",
    "changes_its_mind": "odd cache: it was a mistake",
    "copies_nothing": "out of bounds index 0",
}
INSERTS = {
    "no_insert": "odd cache: no room",
    "silent_insert": "TRITONCACHE_CacheInsert did not call TRITONCACHE_Copy",
    "copies_at_once": "expected the entry as it was given, with CPU memory of its size",
}


@pytest.mark.parametrize("mode", [*LOOKUPS, *INSERTS])
def test_every_answer_is_right(models: Path, odd: Path, mode: str) -> None:
    with serve(models, odd, "odd", mode) as server:
        for value in (1, 1, 2, 1):
            assert asks.infer(server, "cached", asks.tensor([value])) == {"OUTPUT0": ([1], [value])}
        found = asks.counts(server, "cached")
        assert (found["success"], found["fail"], found["cache_hit"]) == (4, 0, 0)
        assert found["cache_miss"] == 4
        log = server.process.log()
    what = "Failed to look up key" if mode in LOOKUPS and mode != "silent_lookup" else ""
    what = "Failed to insert key" if mode in INSERTS else what
    lines = [line for line in log.splitlines() if (LOOKUPS | INSERTS)[mode] in line]
    assert lines
    assert "response cache 'odd'" in lines[0]
    assert what in lines[0]
    assert not what or "for model 'cached'" in lines[0]


def test_a_handle_that_is_over_is_refused(models: Path, odd: Path) -> None:
    """The allocator of one call, used in the next one."""
    with serve(models, odd, "odd", "late") as server:
        for value in (1, 1, 1):
            assert asks.infer(server, "cached", asks.tensor([value])) == {"OUTPUT0": ([1], [value])}
        assert asks.counts(server, "cached")["cache_hit"] == 2


def test_a_cache_that_cannot_be_finalized_is_named(models: Path, odd: Path) -> None:
    server = serve(models, odd, "odd", "no_finalize").start()
    server.process._popen.terminate()
    server.process.ends(0)
    log = server.process.log()
    server.kill()
    assert "finalizing cache 'odd': odd cache: it stays" in log


def test_a_cache_that_waits_holds_up_only_its_models(models: Path, odd: Path, tmp_path: Path) -> None:
    """Look-ups that hang, more of them than threads: other models, health and the statistics do not wait."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with serve(models, odd, "odd", "waits", gate=str(gate)) as server:
        answers: list[object] = []
        waiting = [
            threading.Thread(target=lambda i=i: answers.append(asks.infer(server, "cached", asks.tensor([i]))))
            for i in range(20)
        ]
        for thread in waiting:
            thread.start()
        server.process.wait_for(lambda: asks.page(server)["nereid_requests_in_flight"].value(protocol="http"), len(waiting))
        for index in range(50):
            assert asks.infer(server, "plain", asks.tensor([index])) == {"OUTPUT0": ([1], [index])}
        assert rawhttp.request(*server.http.split(":"), "GET", "/v2/health/ready").status == 200
        assert asks.counts(server, "cached")["success"] == 0
        assert answers == []
        with open(gate, "wb", buffering=0) as opened:  # whoever waits goes on
            for thread in waiting:
                thread.join()
            assert sorted(data for answer in answers for _, data in answer.values()) == [[i] for i in range(20)]
            assert opened.writable()


def test_a_time_out_holds_while_the_cache_is_asked(models: Path, odd: Path, tmp_path: Path) -> None:
    """X-31: time spent on a look-up counts; the request ends when the cache has answered, and is not computed."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with serve(models, odd, "odd", "waits", gate=str(gate)) as server:
        answers: list[rawhttp.Answer] = []

        def ask(model: str, shape: list[int]) -> rawhttp.Answer:
            body = {"inputs": [asks.tensor([1], shape=shape)], "parameters": {"timeout": 200_000}}
            return rawhttp.post(server.http, f"/v2/models/{model}/infer", body)

        thread = threading.Thread(target=lambda: answers.append(ask("cached", [1])))
        thread.start()
        server.process.wait_until((tmp_path / "gate.begun").exists, 120)
        later = ask("lonely", [1, 1])  # its time begins after the other's, and is as long: when it is over, so is that
        assert later.status == 503 and "timeout expired" in later.json()["error"]
        assert answers == []
        with open(gate, "wb", buffering=0):
            thread.join()
        assert answers[0].status == 503
        assert "timeout expired" in answers[0].json()["error"]
        found = asks.counts(server, "cached")
        assert (found["success"], found["fail"], found["execution_count"]) == (0, 1, 0)
