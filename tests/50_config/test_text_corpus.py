"""Our text format reader against protobuf's own: the same texts accepted, with the same meaning."""

import re

import pytest
from config_corpus import OURS_REFUSES, PYTHON_DIFFERS, RAW, TEXTS, mutated_texts, random_texts
from config_tools import ask, canonical, cpp_answers, python_answer


def _compare_with_cpp(texts: list[bytes]) -> int:
    """How many were accepted by both."""
    differences = []
    accepted = 0
    for text, ours, cpp in zip(texts, ask([("t", text) for text in texts]), cpp_answers(texts), strict=True):
        accepted += ours.accepted and cpp.accepted
        if ours.accepted != cpp.accepted:
            differences.append(f"{text!r}: ours {ours}, C++ {cpp}")
        elif ours.accepted and canonical(ours.data) != canonical(cpp.data):
            differences.append(f"{text!r}: ours means {ours.data!r}, C++ {cpp.data!r}")
    assert not differences, "\n".join(differences)
    return accepted


def test_written_texts_read_as_in_cpp() -> None:
    """MC-02, MC-07."""
    accepted = _compare_with_cpp([text.encode() for text in TEXTS] + RAW)
    assert 90 < accepted < len(TEXTS) - 90  # both kinds are there


def test_random_texts_read_as_in_cpp() -> None:
    """MC-02."""
    texts = [text.encode() for text in random_texts(seed=7, count=120)]
    assert _compare_with_cpp(texts) == len(texts)


def test_mutated_texts_read_as_in_cpp() -> None:
    texts = [text.encode() for text in mutated_texts(seed=7, count=400)]
    assert 20 < _compare_with_cpp(texts) < 380


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # of Python's parser, about our texts
def test_texts_read_as_in_python() -> None:
    differences = []
    texts = TEXTS + random_texts(seed=8, count=60)
    for text, ours in zip(texts, ask([("t", text.encode()) for text in texts]), strict=True):
        python = python_answer(text)
        same = ours.accepted == python.accepted and (
            not ours.accepted or canonical(ours.data) == canonical(python.data)
        )
        if same == (text in PYTHON_DIFFERS):
            differences.append(f"{text!r}: ours {ours}, Python {python}")
    assert not differences, "\n".join(differences)


def test_strings_that_only_we_refuse() -> None:
    for text, ours, cpp in zip(OURS_REFUSES, ask([("t", t) for t in OURS_REFUSES]), cpp_answers(OURS_REFUSES), strict=True):
        assert cpp.accepted, text
        assert re.search(r"UTF-8|zero bytes|escape", ours.error), text


def test_errors_tell_where() -> None:
    texts = [text.encode() for text in TEXTS + mutated_texts(seed=9, count=200)] + RAW + OURS_REFUSES
    for text, ours in zip(texts, ask([("t", text) for text in texts]), strict=True):
        if ours.accepted:
            continue
        found = re.match(r"config\.pbtxt:(\d+):(\d+): ", ours.error)
        assert found, (text, ours.error)
        lines = text.split(b"\n")
        line, column = int(found[1]), int(found[2])
        assert 1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1]) + 1, (text, ours.error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("max_batch: 8", "1:1: expected a field of ModelConfig, found 'max_batch'; did you mean 'max_batch_size'?"),
        ("name: 'x'\n  inputs [ ]", "2:3: expected a field of ModelConfig, found 'inputs'; did you mean 'input'?"),
        ("ensemble_scheduling { steps { } }", "1:23: ensemble_scheduling: expected a field of ModelEnsembling, found 'steps'; did you mean 'step'?"),
        ("zzz: 1", "1:1: expected a field of ModelConfig, found 'zzz'"),
        (
            "input [ { name: 'a' },\n        { shape: 4 } ]",
            "2:11: input[1]: expected a field of ModelInput, found 'shape'; did you mean 'reshape'?",
        ),
        (
            "input { data_type: FP32 }",
            "1:20: input[0].data_type: expected a value of the enum DataType, found 'FP32'; did you mean 'TYPE_FP32'?",
        ),
        (
            "max_batch_size: abc",
            "1:17: max_batch_size: expected an integer from -2147483648 to 2147483647, found 'abc'",
        ),
        (
            "max_batch_size: -2147483649",
            "1:17: max_batch_size: expected an integer from -2147483648 to 2147483647, found -2147483649",
        ),
        ("input { dims: [ 1, 2 }", "1:22: input[0].dims[1]: expected ',' or ']', found '}'"),
        ("name: x", "1:7: name: expected a quoted string, found 'x'"),
        ("name 'x'", "1:6: name: expected ':', found the string 'x'"),
        ("name: 'a'\nname: 'b'", "2:1: expected 'name' once, found it again"),
        (
            "dynamic_batching { }\nsequence_batching { }",
            "2:1: expected only one of 'dynamic_batching' and 'sequence_batching', found both",
        ),
        (
            "version_policy { latest { num_version: 1 } }",
            "1:27: version_policy.latest: expected a field of Latest, found 'num_version'; did you mean 'num_versions'?",
        ),
        ("response_cache { enable: yes }", "1:26: response_cache.enable: expected true or false, found 'yes'"),
        ("input {", "1:8: input[0]: expected a field name or the end of the message, found the end of the text"),
        ("}", "1:1: expected a field name, found '}'"),
        ("name: 'open", "1:7: name: expected a quoted string, found a string without its closing quote"),
        (
            "max_batch_size: 8x",
            "1:17: max_batch_size: expected an integer from -2147483648 to 2147483647, "
            "found a number and a name without a space between them",
        ),
        (
            "dynamic_batching { priority_queue_policy { key: 1 value { max_queue_size: -1 } } }",
            "1:75: dynamic_batching.priority_queue_policy[0].value.max_queue_size: "
            "expected an integer from 0 to 4294967295, found '-'",
        ),
    ],
)
def test_error_words(text: str, error: str) -> None:
    """PB-02, PB-173, X-19, X-23, X-27."""
    assert ask([("t", text.encode())])[0].error == f"config.pbtxt:{error}"


def test_limits() -> None:
    largest = 4 << 20
    fits = b"# " + b"x" * (largest - 2)
    over, many = ask([("t", fits + b"x"), ("t", b"input{}" * 599_000)])
    assert over.error == f"config.pbtxt: expected at most {largest} bytes, found {largest + 1}"
    assert "takes more memory than it may" in many.error
    assert ask([("t", fits)])[0].accepted
