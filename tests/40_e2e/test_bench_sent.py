"""nereid bench: what it sends, to the byte, of data that it is given or makes up."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.load_tester import Recorder, at, bench, measured, measured_until, recording, split


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with recording() as made:
        yield made


def test_a_file_of_data_is_sent_to_the_byte(recorder: Recorder, tmp_path: Path) -> None:
    steps = [
        {"A": [1, 2], "B": ["x"]},
        {"A": {"content": [[3, 4, 5]], "shape": [3]}, "B": {"b64": "AgAAAHl6"}, "model": "m"},
    ]
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"data": steps}))
    out = measured_until(lambda: len(recorder.bodies) > len(steps), recorder, "-b", "2", "-x", "7", "--input-data", str(data))
    assert "Server:" not in out  # it has no statistics
    assert {path for path, _, _ in recorder.bodies} == {"/v2/models/m/versions/7/infer"}
    first, second = (split(sent) for sent in recorder.bodies[:2])
    assert first[0]["inputs"] == [
        {"name": "A", "datatype": "INT32", "shape": [2, 2], "parameters": {"binary_data_size": 16}},
        {"name": "B", "datatype": "BYTES", "shape": [2, 1], "parameters": {"binary_data_size": 10}},
    ]
    assert first[0]["parameters"] == {"binary_data_output": True}
    assert first[1] == struct.pack("<4i", 1, 2, 1, 2) + 2 * b"\x01\0\0\0x"
    assert second[1] == struct.pack("<6i", 3, 4, 5, 3, 4, 5) + 2 * b"\x02\0\0\0yz"
    assert second[0]["inputs"][0]["shape"] == [2, 3]  # type: ignore[index]
    assert split(recorder.bodies[2]) == first


def test_json_directories_and_strings(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "A").write_bytes(struct.pack("<2i", 8, 9))
    (tmp_path / "B").write_bytes(b"\x01\0\0\0q")
    measured(*at(recorder), "--input-data", str(tmp_path), "--input-tensor-format", "json", "--output-tensor-format", "json")
    told, raw = split(recorder.bodies[0])
    assert raw == b"" and told["inputs"] == [
        {"name": "A", "datatype": "INT32", "shape": [1, 2], "data": [8, 9]}, {"name": "B", "datatype": "BYTES", "shape": [1, 1], "data": ["q"]},
    ]
    recorder.bodies.clear()
    measured(*at(recorder), "--input-data", "zero", "--string-data", "abc", "--shape", "A:1")
    assert split(recorder.bodies[0])[1] == struct.pack("<i", 0) + b"\x03\0\0\0abc"


def test_sequences_are_whole_and_each_has_a_number_of_its_own(recorder: Recorder) -> None:
    """Also at the end of a level, where the last request of each that is under way is sent though nobody counts it."""
    recorder.config = {"max_batch_size": 4, "sequence_batching": {}}
    asked = ["--sequence-length", "4", "--sequence-length-variation", "50", "--start-sequence-id", "70", "--concurrency-range", "3"]
    sequences: dict[int, list[tuple[bool, bool]]] = {}
    lengths: list[int] = []

    def different() -> bool:
        sequences.clear()
        for sent in recorder.bodies:
            told = split(sent)[0]["parameters"]
            assert isinstance(told, dict)
            sequences.setdefault(told["sequence_id"], []).append((told["sequence_start"], told["sequence_end"]))
        lengths[:] = [len(each) for each in sequences.values()][:-3]
        return len(lengths) > 3 and len(set(lengths)) > 1

    measured_until(different, recorder, *asked)
    assert sorted(sequences) == list(range(70, 70 + len(sequences))) and different()
    assert set(lengths) <= {2, 3, 4, 5, 6}
    for number_, each in sequences.items():
        assert [start for start, _ in each] == [True] + [False] * (len(each) - 1), (number_, each)
        assert [end for _, end in each] == [False] * (len(each) - 1) + [True], (number_, each)


def test_each_step_has_a_place_in_shared_memory(recorder: Recorder, tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"data": [{"A": [1, 2], "B": ["x"]}, {"A": [3, 4], "B": ["longer"]}]}))
    measured_until(lambda: len(recorder.bodies) > 3, recorder, "--input-data", str(data), "--shared-memory", "system")
    register, *asked, unregister = recorder.bodies
    told = json.loads(register[2])
    region = register[0].split("/")[4]
    assert register[0].endswith("/register") and told == {"key": f"/{region}", "offset": 0, "byte_size": 256}
    assert unregister[0] == f"/v2/systemsharedmemory/region/{region}/unregister"
    places = []
    for sent in asked[:2]:
        head, raw = split(sent)
        assert raw == b"" and isinstance(head["inputs"], list)
        for each in head["inputs"]:
            assert each["parameters"]["shared_memory_region"] == region
            places.append((each["parameters"]["shared_memory_offset"], each["parameters"]["shared_memory_byte_size"]))
    assert places == [(0, 8), (64, 5), (128, 8), (192, 10)]


def test_data_that_does_not_fit(recorder: Recorder, tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    for text, words in {
        "{": "no JSON",
        "{}": 'expected {"data": [{"INPUT": [...]}, ...]}',
        '{"data": [{"A": [1, 2]}]}': "step 1: the step has no input 'B'",
        '{"data": [{"A": [1], "B": ["x"]}]}': "step 1: input 'A': expected 2 elements of INT32",
        '{"data": [{"A": [1, 2], "B": ["x"]}, {"A": [1, 2], "B": ["x"], "TYPO": [1]}]}': "step 2: the model 'm' has no input 'TYPO'",
        '{"data": [{"A": {"b64": "AA=="}, "B": ["x"]}]}': "step 1: input 'A'",
        '{"data": [{"A": {"content": [1], "shape": ["a"]}, "B": ["x"]}]}': "input 'A': expected \"shape\" as an array of whole numbers",
        '{"data": [{"A": {"content": [1], "shape": 1}, "B": ["x"]}]}': "input 'A': expected \"shape\" as an array of whole numbers",
        '{"data": [[{"A": [1, 2], "B": ["x"]}], {"A": [1, 2], "B": ["x"]}]}': "a list of such steps for each sequence",
        '{"data": [[]]}': "a list of such steps for each sequence",
    }.items():
        data.write_text(text)
        status, out, err = bench(*at(recorder), "--input-data", str(data))
        assert status == 1 and words in err, (text, out, err)
    (tmp_path / "A").write_bytes(b"123")
    status, _, err = bench(*at(recorder), "--input-data", str(tmp_path))
    assert status == 1 and "'A' takes 2 elements of INT32" in err, err


def test_half_floats_are_numbers_in_json(recorder: Recorder, tmp_path: Path) -> None:
    recorder.inputs = [{"name": name, "datatype": name, "shape": [2]} for name in ("FP16", "BF16")]
    recorder.config = {"max_batch_size": 0}
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"data": [{"FP16": [1.5, -2], "BF16": [0.25, 3]}]}))
    measured(*at(recorder), "--input-data", str(data))
    assert split(recorder.bodies[0])[1] == struct.pack("<2e2H", 1.5, -2, 0x3E80, 0x4040)
    recorder.bodies.clear()
    measured(*at(recorder), "--input-data", str(data), "--input-tensor-format", "json")
    told, _ = split(recorder.bodies[0])
    assert [each["data"] for each in told["inputs"]] == [[1.5, -2.0], [0.25, 3.0]]  # type: ignore[attr-defined]


def test_dimensions_that_are_no_numbers(recorder: Recorder) -> None:
    """Whole numbers may be strings, as protobuf's JSON has them; others are not taken for something else."""
    recorder.config = {"max_batch_size": 0}
    recorder.inputs = [{"name": "A", "datatype": "FP32", "shape": ["4"]}]
    measured(*at(recorder))
    assert len(split(recorder.bodies[0])[1]) == 16
    for shape in ([1e3], ["four"], [None], ["4x"]):
        recorder.inputs = [{"name": "A", "datatype": "FP32", "shape": shape}]
        status, out, err = bench(*at(recorder))
        assert status == 1 and "the server's answer about the model's inputs cannot be read" in err, (shape, out, err)


def test_the_name_of_an_input_leads_to_no_other_file(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "secret").write_bytes(b"\x01\0\0\0q")
    for name in ("../secret", ".."):
        recorder.inputs = [{"name": name, "datatype": "BYTES", "shape": [1]}]
        recorder.config = {"max_batch_size": 0}
        status, _, err = bench(*at(recorder), "--input-data", str(tmp_path / "data"))
        assert status == 1 and f"the input '{name}' has no name that a file of a directory can have: use a JSON file" in err, err
        recorder.config = {"max_batch_size": 0, "input": [{"name": name, "optional": True}]}
        measured(*at(recorder), "--input-data", str(tmp_path / "data"))
    assert not any(b"q" in split(sent)[1] for sent in recorder.bodies)


def test_a_file_of_a_directory_is_the_whole_tensor_or_one_of_the_batch(recorder: Recorder, tmp_path: Path) -> None:
    recorder.config = {"max_batch_size": 4, "input": [{"name": "B", "optional": True}]}
    one, all_ = struct.pack("<2i", 8, 9), struct.pack("<4i", 1, 2, 3, 4)
    for given, sent in {one: one + one, all_: all_}.items():
        (tmp_path / "A").write_bytes(given)
        recorder.bodies.clear()
        measured(*at(recorder), "-b", "2", "--input-data", str(tmp_path))
        assert split(recorder.bodies[0])[1] == sent
    for text in (b"\x01\0\0\0q", b"\x01\0\0\0r\0\0\0\0"):
        (tmp_path / "B").write_bytes(text)
        recorder.bodies.clear()
        measured(*at(recorder), "-b", "2", "--input-data", str(tmp_path))
        assert split(recorder.bodies[0])[1] == all_ + (text if b"r" in text else text + text)
    for name, wrong in {"A": b"x", "B": b"\x02\0\0\0q"}.items():
        (tmp_path / name).write_bytes(wrong)
        status, _, err = bench(*at(recorder), "-b", "2", "--input-data", str(tmp_path))
        assert status == 1 and f"'{tmp_path / name}' has {len(wrong)} bytes, the input '{name}' takes" in err, err
        (tmp_path / name).write_bytes(one)


@pytest.mark.parametrize("length", [None, 5])
def test_each_sequence_sends_its_list(recorder: Recorder, tmp_path: Path, length: int | None) -> None:
    recorder.inputs = [{"name": "A", "datatype": "INT32", "shape": [1]}]
    recorder.config = {"max_batch_size": 0, "sequence_batching": {}}
    lists = [[11, 12, 13], [21, 22]]
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"data": [[{"A": [each]} for each in steps] for steps in lists]}))
    asked = ["--input-data", str(data), "--input-tensor-format", "json", "--concurrency-range", "3"]
    asked += ["--sequence-length", str(length), "--sequence-length-variation", "0"] if length else []
    sequences: dict[int, list[int]] = {}

    def enough() -> bool:
        sequences.clear()
        for sent in recorder.bodies:
            told: dict[str, Any] = split(sent)[0]
            sequences.setdefault(told["parameters"]["sequence_id"], []).extend(told["inputs"][0]["data"])
        return len(sequences) > 6

    measured_until(enough, recorder, *asked)
    under_way = 0  # one of each of the three clients, which need not be the last three by number
    for number_, sent in sequences.items():
        steps = lists[(number_ - 1) % 2]
        whole = [steps[i % len(steps)] for i in range(length or len(steps))]
        assert sent == whole[: len(sent)], (number_, sequences)
        under_way += len(sent) < len(whole)
    assert under_way <= 3, sequences


def test_a_name_that_no_path_can_hold(recorder: Recorder) -> None:
    measured(*at(recorder), "-m", "sp ace/?#\u00e9%:@", "-x", "1 2")
    assert {path for path, _, _ in recorder.bodies} == {"/v2/models/sp%20ace%2F%3F%23%C3%A9%:@/versions/1%202/infer"}


def test_a_shape_of_as_many_dimensions_as_there_may_be(recorder: Recorder) -> None:
    given = [1] * 31 + [2]
    measured(*at(recorder), "-b", "3", "--shape", f"A:{','.join(map(str, given))}")
    assert split(recorder.bodies[-1])[0]["inputs"][0]["shape"] == [3, *given]  # type: ignore[index]


def test_a_shape_of_no_input(recorder: Recorder) -> None:
    status, _, err = bench(*at(recorder), "--shape", "TYPO:32")
    assert status == 1 and "option --shape: the model 'm' has no input 'TYPO'" in err, err
