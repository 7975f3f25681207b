"""SageMaker's list of models: loaded from where it put them, called, unloaded; as the reference has it, where that is safe."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from harness import rawhttp
from harness.ensembles import Ensemble, Step
from harness.rawhttp import Answer
from harness.repository import Repository
from harness.servers import KINDS, Nereid, Server
from test_clouds import BODY, ask, start

TARGET = "X-Amzn-SageMaker-Target-Model"


def two_steps(first: str, second: str) -> str:
    """The configuration of an ensemble whose tensors are named as those of its models."""
    steps = [Step(first, {"INPUT0": "INPUT0"}, {"OUTPUT0": "x"}), Step(second, {"INPUT0": "x"}, {"OUTPUT0": "OUTPUT0"})]
    return Ensemble("zebra", steps, ("INPUT0",), ("OUTPUT0",)).config()


class Archives:
    """What SageMaker unpacks: ROOT/HASH/model."""

    def __init__(self, root: Path):
        self.root = root

    def of(self, name: str) -> Repository:
        return Repository(self.root / name / "model")

    def one(self, name: str) -> str:
        """A model; its name in the configuration means nothing."""
        made = self.of(name)
        made.identity("resnet")
        return str(made.path)

    def ensemble(self, name: str, first: str, second: str) -> str:
        made = self.of(name)
        made.identity(first)
        made.identity(second)
        made.model("zebra", two_steps(first, second))
        return str(made.path)


def serve(kind: type[Server], root: Path, options: dict[str, Any] | None = None) -> Server:
    given: dict[str, Any] = {"model-control-mode": "explicit", "allow-vertex-ai": "false"}
    given |= {"sagemaker-models-directory": str(root)} if kind is Nereid else {}
    empty = root.parent / "repository"
    empty.mkdir(exist_ok=True)
    return start(kind, empty, given | (options or {}))


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    return Archives(tmp_path_factory.mktemp("ml") / "models")


@pytest.fixture(scope="module")
def servers(archives: Archives) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serve(kind, archives.root)) for kind in KINDS.values()]


@pytest.fixture
def server(archives: Archives, tmp_path: Path) -> Iterator[Server]:
    with serve(Nereid, archives.root, {"model-namespacing": "true"}) as running:
        yield running


def load(server: Server, name: str, url: str, target: str | None = None) -> Answer:
    headers = {TARGET: target} if target else {}
    return ask(server, "sagemaker", "POST", "/models", json.dumps({"model_name": name, "url": url}).encode(), headers)


def invoke(server: Server, name: str, headers: dict[str, str] | None = None, body: bytes = BODY) -> Answer:
    return ask(server, "sagemaker", "POST", f"/models/{name}/invoke", body, headers)


def unload(server: Server, name: str, target: str | None = None) -> Answer:
    return ask(server, "sagemaker", "DELETE", f"/models/{name}", None, {TARGET: target} if target else {})


def serving(server: Server) -> set[str]:
    index = rawhttp.post(server.http, "/v2/repository/index", {}).json()
    return {each["name"] for each in index if each.get("state") == "READY"}


def at_once(what: Callable[[str], Any], of: Iterable[str]) -> list[Any]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(what, of))


def listed(server: Server) -> list[dict[str, str]]:
    answer = ask(server, "sagemaker", "GET", "/models")
    assert answer.status == 200
    found: list[dict[str, str]] = answer.json()["models"]
    return sorted(found, key=str)


@pytest.mark.parametrize(("name", "status"), [("classroom", 400), ("zoomed", 400), ("cuda-OOM", 507), ("out of memory", 507)])
def test_what_tells_of_memory(server: Server, archives: Archives, name: str, status: int) -> None:
    """A message of loading that does; here it names the archive. A word is not part of another."""
    archives.of(name).model("resnet", 'backend: "nowhere"')
    assert load(server, name, str(archives.root / name / "model")).status == status


@pytest.mark.reference
def test_a_life(servers: list[Server], archives: Archives) -> None:
    url = archives.one("abc")
    told = []
    for each in servers:
        steps: list[Any] = [listed(each), invoke(each, "abc").status, ask(each, "sagemaker", "GET", "/models/abc").status]
        steps.append(load(each, "abc", url).status)
        steps += [listed(each), ask(each, "sagemaker", "GET", "/models/abc").json()]
        answer = invoke(each, "abc")
        steps += [answer.status, answer.json()]
        steps += [load(each, "abc", url).status, invoke(each, "abc", body=b"{}").json()]
        each.rest()
        steps += [unload(each, "abc").status, unload(each, "abc").status, invoke(each, "abc").status, listed(each)]
        steps.append(load(each, "abc", url).status)
        each.rest()
        steps.append(unload(each, "abc").status)
        told.append(steps)
    assert told[0] == told[1]
    assert told[0][:4] == [[], 404, 404, 200]
    assert told[0][4] == [{"modelName": "abc", "modelUrl": url}]


@pytest.mark.reference
def test_a_target_of_its_own(servers: list[Server], archives: Archives) -> None:
    """The name of the model is that of the archive, which SageMaker sends in a header."""
    url = archives.one("hash1")
    for each in servers:
        assert load(each, "hash1", url, "resnet.tar.gz").status == 200
        answer = invoke(each, "hash1", {TARGET: "resnet.tar.gz"})
        assert answer.status == 200
        assert answer.json()["model_name"] == "resnet.tar.gz"
        assert load(each, "hash2", url, "resnet.tar.gz").status == 409
        each.rest()
        assert unload(each, "hash1", "resnet.tar.gz").status == 200


@pytest.mark.reference
def test_an_ensemble(servers: list[Server], archives: Archives) -> None:
    url = archives.ensemble("ens", "first", "second")
    for each in servers:
        assert load(each, "ens", url, "ens.tar.gz").status == 200, each.kind
        answer = invoke(each, "ens", {TARGET: "ens.tar.gz"})
        assert answer.status == 200, answer.body
        assert answer.json()["outputs"][0]["data"] == [1, 2]
        each.rest()
        assert unload(each, "ens", "ens.tar.gz").status == 200


def test_head_as_get(server: Server, archives: Archives) -> None:
    assert load(server, "abc", archives.one("abc")).status == 200
    for path, status in (("/models", 200), ("/models/abc", 200), ("/models/nobody", 404), ("/ping", 200)):
        head = ask(server, "sagemaker", "HEAD", path)
        assert (head.status, head.body) == (status, b"")
        assert head.header("Content-Length") == ask(server, "sagemaker", "GET", path).header("Content-Length")


@pytest.mark.reference
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/models", b""),
        ("POST", "/models", b"{"),
        ("POST", "/models", b"{}"),
        ("POST", "/models", b'{"model_name":1,"url":"/x"}'),
        ("POST", "/models", b'{"model_name":"m","url":2}'),
        ("POST", "/models", b'{"model_name":"m","url":"/nowhere"}'),
        ("POST", "/models", b'{"model_name":"m","url":"/dev/shm"}'),
        ("POST", "/models", b'{"model_name":"m","url":"/proc/self"}'),
        ("PUT", "/models", b"{}"),
        ("PUT", "/models/x", b"{}"),
        ("POST", "/models/x/y", b"{}"),
        ("GET", "/models/x/y/z", None),
    ],
)
def test_what_is_refused(servers: list[Server], method: str, path: str, body: bytes | None) -> None:
    ours = ask(servers[0], "sagemaker", method, path, body)
    assert ours.status == 400
    assert ours.json()["error"]
    if body not in (b"", b"{") and b":1" not in (body or b"") and b":2" not in (body or b""):  # the reference answers twice, or not at all
        assert ask(servers[1], "sagemaker", method, path, body).status == 400


@pytest.mark.parametrize("url", ["../../../etc", "{root}", "{root}/", "{root}/../outside", "{root}/way-out", "{root}x/model", "{root}/nothing", "", "/", "models"])
def test_models_lie_where_models_do(server: Server, archives: Archives, url: str) -> None:
    """Links are followed first. The reference loads code from anywhere."""
    archives.one("inside")
    outside = Repository(archives.root.parent / "outside")
    outside.identity("m")
    Repository(Path(f"{archives.root}x") / "model").identity("m")
    link = archives.root / "way-out"
    link.unlink(missing_ok=True)
    link.symlink_to(outside.path)
    answer = load(server, "m", url.replace("{root}", str(archives.root)))
    assert answer.status == 400, answer.body
    assert listed(server) == []


def test_a_link_in_an_archive_leads_nowhere_else(server: Server, archives: Archives) -> None:
    outside = Repository(archives.root.parent / "elsewhere")
    outside.identity("m")
    holder = archives.of("linked").path
    (holder / "m").unlink(missing_ok=True)
    (holder / "m").symlink_to(outside.path / "m")
    assert load(server, "linked", str(holder)).status == 400


@pytest.mark.parametrize("name", ["../x", "a/b", "..", " ", "", "n" * 600, "zero\0byte"])
def test_names_that_are_none(server: Server, archives: Archives, name: str) -> None:
    assert load(server, name, archives.one("names")).status == 400
    assert listed(server) == []


def test_no_model_takes_the_place_of_another(archives: Archives, tmp_path: Path) -> None:
    """Neither of one in the repository, nor of a step of another ensemble."""
    with serve(Nereid, archives.root) as running:
        Repository(archives.root.parent / "repository").identity("mine")
        assert load(running, "h", archives.one("h"), "mine").status == 200
    with serve(Nereid, archives.root, {"load-model": "mine"}) as running:
        assert load(running, "h", archives.one("h"), "mine").status == 409
        assert load(running, "e1", archives.ensemble("e1", "pre", "post")).status == 200
        taken = load(running, "e2", archives.ensemble("e2", "pre", "other"))
        assert taken.status == 400
        assert "another model of this server has the name" in taken.json()["error"]
        assert invoke(running, "e1").status == 200
        assert serving(running) == {"e1", "mine", "pre", "post"}  # what came with the other went with it
        assert [each["modelName"] for each in listed(running)] == ["e1"]
    shutil.rmtree(archives.root.parent / "repository" / "mine")


def test_which_model_an_archive_means(server: Server, archives: Archives) -> None:
    two = archives.of("two")
    two.identity("a")
    two.identity("b")
    assert "expected one model, or one ensemble" in load(server, "two", str(two.path)).json()["error"]
    assert load(server, "none", str(archives.of("none").path)).status == 400
    flat = archives.of("flat")
    flat.identity("inner")
    assert load(server, "flat", str(flat.path / "inner")).status == 200
    assert invoke(server, "flat").status == 200
    unfit = archives.of("unfit")
    unfit.identity("left", datatype="INT32")
    unfit.identity("right")
    unfit.model("zebra", two_steps("left", "right"))
    assert load(server, "unfit", str(unfit.path)).status == 400
    assert serving(server) == {"flat"}
    broken = archives.of("broken")
    broken.model("m", "max_batch_size: {")
    assert load(server, "broken", str(broken.path)).status == 400
    shutil.rmtree(broken.path / "m")
    broken.identity("m")
    assert load(server, "broken", str(broken.path)).status == 200


def test_only_what_was_loaded_there_is_called(server: Server, archives: Archives) -> None:
    """The name in the header does not choose among all models of the server."""
    assert load(server, "one", archives.one("one"), "one.tar.gz").status == 200
    assert load(server, "two", archives.one("two-of"), "two.tar.gz").status == 200
    assert invoke(server, "one", {TARGET: "two.tar.gz"}).json()["model_name"] == "one.tar.gz"
    assert invoke(server, "one.tar.gz").status == 404


def test_who_may_load(archives: Archives) -> None:
    limits = {"http-restricted-api": ["model-repository:x-admin=yes", "inference:x-key=one"]}
    url = archives.one("guarded")
    with serve(Nereid, archives.root, limits) as running:
        assert load(running, "guarded", url).status == 403
        for method, path in [("GET", "/models"), ("GET", "/models/guarded"), ("DELETE", "/models/guarded")]:
            assert ask(running, "sagemaker", method, path).status == 403
        body = json.dumps({"model_name": "guarded", "url": url}).encode()
        assert ask(running, "sagemaker", "POST", "/models", body, {"x-admin": "yes"}).status == 200
        assert invoke(running, "guarded").status == 403
        assert invoke(running, "guarded", {"x-key": "one"}).status == 200


def test_no_loads_in_other_modes(archives: Archives) -> None:
    with serve(Nereid, archives.root, {"model-control-mode": "none"}) as running:
        answer = load(running, "m", archives.one("m"))
    assert (answer.status, answer.json()["error"]) == (400, "repository registration is not allowed if model control mode is not EXPLICIT")


def test_many_at_once(server: Server, archives: Archives) -> None:
    """Of several loads of one name one is served; loads and unloads of several do not disturb each other."""
    urls = {f"m{i}": archives.one(f"m{i}") for i in range(8)}

    def life(name: str) -> list[int]:
        return [load(server, name, urls[name]).status, invoke(server, name).status, unload(server, name).status]

    assert at_once(life, urls) == [[200, 200, 200]] * 8
    same = at_once(lambda _: load(server, "m0", urls["m0"]).status, "123456")
    assert sorted(same) == [200] + [409] * 5
    gone = at_once(lambda _: unload(server, "m0").status, "123456")
    assert sorted(gone) == [200] + [404] * 5
    assert listed(server) == []
