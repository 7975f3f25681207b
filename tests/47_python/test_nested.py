"""Models that ask other models (BLS): plain, by threads, async, decoupled, deep, and what goes wrong; as in the reference."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asks import NO_TURN, Asker, words
from conftest import Both, begin, end, kinds_of, make_server, ready_with
from harness.repository import Repository

MODELS = ["add_sub", "bls", "bls_plain", "fails_execute", "repeat", "state", "tell"]

ADD = {"model": "add_sub", "inputs": [["A", "int32", [[1, 2, 3, 4]]], ["B", "int32", [[4, 3, 2, 1]]]], "outputs": ["SUM", "DIFF"]}
REPEAT = {"model": "repeat", "inputs": [["IN", "int32", [7, 8, 9]], ["WHERE", "object", ["thread"]]], "outputs": ["OUT"]}
SUMS = {"SUM": [5, 5, 5, 5], "DIFF": [-3, -1, 1, 3]}


class Nested:
    """Both servers. The backend's async_exec can end its stub, though seldom, whatever the server: what it starts reads a
    variable that may be gone by then (mended by python_backend's commit 4b3337c). Then both are begun again, up to twice in a row."""

    STARTS = 3

    def __init__(self, start: Callable[[], Both]):
        self._start = start
        self.both = start()

    def each(self, ask: Callable[[Asker], Any]) -> dict[str, Any]:
        for _ in range(1, self.STARTS):
            answers = self.both.each(ask)
            if NO_TURN not in str(answers):
                return answers
            warnings.warn(f"a stub died, the servers are begun again: {answers}", stacklevel=3)
            self.both.close()
            for server in self.both.servers.values():
                server.kill()
            self.both = self._start()
        return self.both.each(ask)

    def same(self, ask: Callable[[Asker], Any]) -> Any:
        return self.both.agreed(self.each(ask))

    def held(self, ask: Callable[[Asker], Any], ours: Any, theirs: Any) -> None:
        """A difference that stays (docs/user/python.md, "Where it differs from Triton's")."""
        for kind, answer in self.each(ask).items():
            assert answer == (ours if kind == "nereid" else theirs), kind


@pytest.fixture(scope="module")
def nested(request: pytest.FixtureRequest, python_backends: dict[str, Path], repository: Path) -> Iterator[Nested]:
    options = {"model-control-mode": "explicit", "load-model": MODELS}

    def start() -> Both:
        kinds = kinds_of(request.config)
        return begin({kind: make_server(kind, python_backends, repository, options) for kind in kinds}, MODELS)

    made = Nested(start)
    yield made
    end(made.both)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("how, answer", [("exec", SUMS), ("async", SUMS), ("gather", [SUMS] * 8), ("threads", [SUMS] * 4)])
def test_nested_requests(nested: Nested, how: str, answer: Any, protocol: str) -> None:
    assert nested.same(lambda asker: asker.asked("bls", {**ADD, "how": how}, protocol=protocol)) == answer


@pytest.mark.parametrize("how", ["decoupled", "async decoupled"])
def test_nested_requests_to_decoupled_models(nested: Nested, how: str) -> None:
    told = nested.same(lambda asker: asker.asked("bls", {**REPEAT, "how": how}))
    assert [each.get("OUT") for each in told] == [[7], [8], [9], None]


@pytest.mark.parametrize("how", ["decoupled", "async decoupled"])
def test_the_decoupled_way_to_other_models(nested: Nested, how: str) -> None:
    nested.same(lambda asker: asker.asked("bls", {**ADD, "how": how}))


REFUSED = {  # before they run, and with which code; another case is an error of the model, or INTERNAL
    "unknown model": 2, "unknown version": 2, "not loaded": 2, "missing input": 3, "wrong type": 3, "wrong shape": 3, "unknown output": 3,
    "no inputs": 3, "empty model name": 2,
}  # fmt: skip
WRONG: dict[str, dict[str, Any]] = {
    "unknown model": {**ADD, "model": "nobody"},
    "unknown version": {**ADD, "model_version": 9},
    "not loaded": {**ADD, "model": "fails_import"},
    "decoupled the plain way": REPEAT,
    "missing input": {**ADD, "inputs": ADD["inputs"][:1]},
    "wrong type": {**ADD, "inputs": [["A", "int64", [[1, 2, 3, 4]]], ["B", "int64", [[4, 3, 2, 1]]]]},
    "wrong shape": {**ADD, "inputs": [["A", "int32", [[1]]], ["B", "int32", [[4]]]]},
    "unknown output": {**ADD, "outputs": ["OTHER"]},
    "no outputs": {**ADD, "outputs": []},
    "no inputs": {**ADD, "inputs": []},
    "a model that raises": {"model": "fails_execute", "inputs": [["ASK", "object", ["raise"]]], "outputs": ["TOLD"]},
    "empty model name": {**ADD, "model": ""},
}


@pytest.mark.parametrize("how", ["exec", "async", "decoupled"])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_nested_requests(nested: Nested, case: str, how: str) -> None:
    """The same texts; ours have the code besides (docs/user/python.md, "Where it differs from Triton's")."""
    answers = nested.each(lambda asker: asker.asked("bls", {**WRONG[case], "how": how}))
    for kind, answer in answers.items():
        told = answer[0] if isinstance(answer, list) else answer
        if "code" in told:
            assert told.pop("code") == (REFUSED.get(case, 1) if kind == "nereid" else 1), kind
    nested.both.agreed(answers)


@pytest.mark.parametrize("how", ["exec", "async", "decoupled"])
def test_the_code_of_a_nested_error(nested: Nested, how: str) -> None:
    """Ours keeps it, as Triton's backend does since its commit 7f21b67; that of 2.51 tells INTERNAL whatever it was."""
    call = {"model": "fails_execute", "inputs": [["ASK", "object", ["error NOT_FOUND"]]], "outputs": ["TOLD"], "how": how}

    def told(code: int) -> Any:
        error = {"error": "it says error NOT_FOUND", "code": code}
        return [error] if how == "decoupled" else error

    nested.held(lambda asker: asker.asked("bls", call), told(2), told(1))


def test_what_a_nested_request_carries(nested: Nested) -> None:
    ask = {
        "model": "tell",
        "inputs": [["ASK", "object", ["see"]]],
        "outputs": ["TOLD"],
        "request_id": "inner",
        "correlation_id": 12,
        "flags": 3,
        "timeout": 30_000_000,
        "parameters": '{"a": 1, "b": "two", "c": true}',
    }
    nested.same(lambda asker: asker.asked("bls", {**ask, "parameters": {"a": 1, "b": "two", "c": True}}))
    expect = "TritonModelException: Expect {}, got <class 'str'>"
    nested.held(  # theirs has the name that a C++ compiler gives the type
        lambda asker: asker.asked("bls", ask), {"raised": expect.format("dict")}, {"raised": expect.format("N8pybind114dictE")}
    )


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_requests_nest(nested: Nested, protocol: str) -> None:
    """Each level holds an instance of bls_plain: three there are."""
    told = nested.same(lambda asker: asker.told("bls_plain", "bls_plain/bls_plain/state/end", protocol=protocol))
    assert told.startswith("bls_plain(bls_plain(state(") and told.endswith(")))")


def test_errors_come_up_through_the_levels(nested: Nested) -> None:
    """The text always; the code as test_the_code_of_a_nested_error says."""

    def told(code: str, message: str) -> dict[str, str]:
        return {"status": f"StatusCode.{code}", "message": message}

    unknown = "Model nobody - Error when running inference: Failed for execute the inference request. Model 'nobody' is not ready."
    for ask, code, message in (
        ("fails_execute/error UNAVAILABLE", "UNAVAILABLE", "it says error UNAVAILABLE"), ("nobody/x", "NOT_FOUND", unknown),
    ):  # fmt: skip
        nested.held(lambda asker, ask=ask: asker.told("bls_plain", f"bls_plain/{ask}"), told(code, message), told("INTERNAL", message))
    assert "message" in nested.same(lambda asker: asker.told("bls_plain", "fails_execute/raise"))


ZEROS = """
import numpy as np, triton_python_backend_utils as pb_utils
def tensor(name):
    return pb_utils.Tensor(name, np.ones((1, 4), np.int32))
class TritonPythonModel:
    def execute(self, requests):
        asked, said = {"model_name": "add_sub", "inputs": [tensor("A"), tensor("B")], "requested_output_names": ["SUM"]}, []
        for over in ({}, {"model_name": "add_sub\\0x"}, {"inputs": [tensor("A\\0x"), tensor("B")]}, {"requested_output_names": ["SUM\\0x"]},
                     {"request_id": "a\\0b"}, {"correlation_id": "a\\0b"}):
            try:
                response = pb_utils.InferenceRequest(**{**asked, **over}).exec()
                said.append(response.error().message() if response.has_error() else "answered")
            except ValueError as error:
                said.append(str(error))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array(said, object))])]
"""


def test_texts_with_a_zero_byte_are_refused(python_backends: dict[str, Path], repository: Path, tmp_path: Path) -> None:
    """What follows it would not be seen, and another model or tensor would be asked for."""
    made = Repository(tmp_path / "models")
    (made.path / "add_sub").symlink_to(repository / "add_sub")
    folder = made.model("zeros", "backend: 'python' input { name: 'ASK' data_type: TYPE_STRING dims: [ 1 ] } output { name: 'TOLD' data_type: TYPE_STRING dims: [ -1 ] }")
    (folder / "1" / "model.py").write_text(ZEROS)
    with make_server("nereid", python_backends, made.path, {"model-control-mode": "explicit", "load-model": ["add_sub", "zeros"]}) as server:
        ready_with(server, ["add_sub", "zeros"])
        asker = Asker(server)
        told = asker.infer("zeros", {"ASK": words("")})["TOLD"][2]
        asker.close()
    assert told == [b"answered", *[b"%s holds a zero byte" % text for text in (b"'add_sub\\x00x'", b"'A\\x00x'", b"'SUM\\x00x'", b"'a\\x00b'", b"'a\\x00b'")]]
