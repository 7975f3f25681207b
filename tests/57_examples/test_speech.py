"""The example `speech`: sound goes piece by piece over one stream; what comes back is what the network itself says when it is called directly."""

import csv
import importlib.util
import queue
import re
import struct
import subprocess
import threading
import wave
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import onnxruntime
import pytest
from harness import paths, ports
from harness.examples import PATIENCE, Example

pytestmark = pytest.mark.onnx
PACKAGES = paths.ROOT / "build" / "deps" / "example-speech"
FOLDER = paths.ROOT / "build" / "examples" / "speech"
NETWORK = PACKAGES / "silero_vad" / "data" / "silero_vad.onnx"
RATE, PIECE, BEFORE = 16000, 512, 64
NEAR_S = 0.25  # what is said at the begin and the end of a sentence may be faint


@pytest.fixture(scope="module")
def client() -> Iterator[ModuleType]:
    """The client of the example, for what it lets espeak-ng say."""
    spec = importlib.util.spec_from_file_location("speech_client", paths.ROOT / "examples" / "speech" / "client.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


def sound() -> np.ndarray:
    with wave.open(str(FOLDER / "sound.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def answers() -> np.ndarray:
    with (FOLDER / "answers.csv").open() as file:
        return np.array([float(row["speech"]) for row in csv.DictReader(file)])


def directly(samples: np.ndarray, remembers: bool = True) -> np.ndarray:
    """What ONNX Runtime says in this process, for each piece."""
    session = onnxruntime.InferenceSession(paths.need(NETWORK, "tools/setup.sh test"), providers=["CPUExecutionProvider"])
    state, before, said = np.zeros((2, 1, 128), np.float32), np.zeros(BEFORE, np.float32), []
    for begin in range(0, len(samples) - PIECE + 1, PIECE):
        piece = np.concatenate([before, samples[begin : begin + PIECE]])
        output, after = session.run(["output", "stateN"], {"input": piece[None], "state": state, "sr": np.array(RATE, np.int64)})
        said.append(output.item())
        state, before = after if remembers else state, piece[-BEFORE:]
    return np.array(said)


def spoken(client: ModuleType, folder: Path) -> list[tuple[float, float]]:
    """Where espeak-ng's sentences lie in the sound, in seconds, without the silence around each."""
    found, now = [], 0.0
    for seconds, _noise, words in client.SCRIPT:
        now += seconds
        if words:
            subprocess.run(["espeak-ng", "-v", "en", "-s", "150", "-w", str(folder / "said.wav"), words], check=True)
            with wave.open(str(folder / "said.wav")) as file:
                rate, samples = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2")
            loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > 300)
            found.append((now + loud[0] / rate, now + loud[-1] / rate))
            now += len(samples) / rate
    return found


def told(words: str) -> list[tuple[float, float]]:
    return [(float(begin), float(end)) for begin, end in re.findall(r"^ +([\d.]+) s to +([\d.]+) s$", words.split("Speech:")[1], re.MULTILINE)]


def test_speech_is_found_and_noise_is_not(tmp_path: Path, client: ModuleType) -> None:
    with Example(tmp_path, "speech", "--fast") as example:
        words = example.says("Speech:")
        example.process.ends(0, PATIENCE)
        assert not example.left()
        words = example.process.log()
    said, alone = answers(), directly(sound())
    np.testing.assert_allclose(said, alone, atol=1e-5)
    assert np.abs(said - directly(sound(), remembers=False)).max() > 0.1  # the state does matter
    real = spoken(client, tmp_path)
    assert len(real) == 3
    np.testing.assert_allclose(told(words), real, atol=NEAR_S)
    times = (np.arange(len(said)) + 0.5) * PIECE / RATE
    for begin, end in real:
        inside = (times > begin + NEAR_S) & (times < end - NEAR_S)
        assert (said[inside] >= 0.5).mean() > 0.8
    outside = np.all([(times < begin - NEAR_S) | (times > end + NEAR_S) for begin, end in real], axis=0)
    assert outside.sum() > 60 and (said[outside] < 0.5).all()
    loud = np.abs(sound()[: len(said) * PIECE].reshape(-1, PIECE)).mean(axis=1)
    assert loud[outside].max() > loud[~outside].mean()  # it is not loudness that it finds


def test_it_stops_in_the_middle(tmp_path: Path) -> None:
    with Example(tmp_path, "speech") as example:
        example.says("  0.0 s")
        example.ctrl_c()


def test_sound_of_ones_own(tmp_path: Path) -> None:
    """Stereo, of another rate; what is no sound of that kind is said."""
    silence, bytes8 = tmp_path / "silence.wav", tmp_path / "bytes.wav"
    for path, width in ((silence, 2), (bytes8, 1)):
        with wave.open(str(path), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(width)
            file.setframerate(44100)
            file.writeframes(b"\0" * 2 * width * 44100)
    with Example(tmp_path, "speech", f"--fast --wav {silence}") as example:
        example.process.ends(0, PATIENCE)
        assert told(example.process.log() + "\n") == [] and len(answers()) == 31
    with Example(tmp_path, "speech", f"--fast --wav {bytes8}") as example:
        example.process.ends(2, PATIENCE)
        assert f"{bytes8}: a sample has 8 bits; expected PCM with 16" in example.process.log()


def test_what_is_no_sound_is_said_in_a_line(client: ModuleType, tmp_path: Path) -> None:
    def wav(name: str, form: int, data: bytes, rate: int = 16000) -> Path:
        head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, form, 1, rate, 2 * rate, 2, 16, b"data", len(data))
        (tmp_path / name).write_bytes(head + data)
        return tmp_path / name

    (tmp_path / "empty.wav").write_bytes(b"")
    (tmp_path / "text.wav").write_bytes(b"this is no sound at all")
    refused = {
        tmp_path / "missing.wav": "No such file or directory",
        tmp_path: "Is a directory",
        tmp_path / "empty.wav": "no WAV file with PCM samples: it ends too early; expected PCM with 16 bits",
        tmp_path / "text.wav": "no WAV file with PCM samples: file does not start with RIFF id; expected PCM with 16 bits",
        wav("float.wav", 3, bytes(4096)): "no WAV file with PCM samples: unknown format: 3; expected PCM with 16 bits",
        wav("still.wav", 1, bytes(4096), rate=0): "no WAV file with PCM samples: its rate is 0; expected PCM with 16 bits",
        wav("nothing.wav", 1, b""): "0 samples at 16000 Hz; expected at least 512, 32 ms",
        wav("short.wav", 1, bytes(2 * 511)): "511 samples at 16000 Hz; expected at least 512, 32 ms",
    }
    for path, why in refused.items():
        with pytest.raises(SystemExit) as said:
            client.read_wav(path)
        assert said.value.code == f"{path}: {why}"
    assert len(client.read_wav(wav("piece.wav", 1, bytes(2 * 512)))) == 512
    assert len(client.read_wav(wav("torn.wav", 1, bytes(2 * 512 + 1)))) == 512


def test_a_server_that_is_not_there_is_said(client: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the stream has ended before the first piece is sent."""
    ended = threading.Event()

    class Answers(queue.Queue):  # type: ignore[type-arg]
        def put(self, *what: object) -> None:  # type: ignore[override]
            super().put(*what)
            ended.set()

    made = client.tensor
    monkeypatch.setattr(client, "queue", SimpleNamespace(Queue=Answers))
    monkeypatch.setattr(client, "tensor", lambda *of: made(*of) if ended.wait() else None)
    server = f"127.0.0.1:{ports.free_port()}"
    with pytest.raises(SystemExit) as said:
        next(client.listen(server, np.zeros(PIECE, np.float32), True))
    assert str(said.value.code).startswith(f"the server at {server}: [StatusCode.UNAVAILABLE] ")
    assert "\n" not in str(said.value.code)
