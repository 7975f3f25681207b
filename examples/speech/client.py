#!/usr/bin/env python3
"""Sends sound to the model `speech` piece by piece, as it would come from a microphone, over one stream of gRPC, and draws as it goes how
likely it is that somebody speaks.

    client.py --server HOST:PORT --folder FOLDER [--wav FILE] [--fast] [--colours]

--folder   where the sound and the answers are written: sound.wav, answers.csv
--wav      sound of your own: PCM with 16 bits, of any rate; without it, espeak-ng speaks
--fast     as fast as the server answers, not as fast as one hears
--colours  speech in green, where it is not a terminal, too

A piece has 512 samples at 16 kHz, 32 ms. The model wants the last 64 samples before it, too; what it remembers beyond them the server
keeps, from the first request of the sequence to the last.
"""

import argparse
import csv
import queue
import random
import subprocess
import sys
import time
import wave
from contextlib import suppress
from pathlib import Path

import numpy as np
import tritonclient.grpc as grpcclient
from scipy.signal import resample_poly
from tritonclient.utils import InferenceServerException

RATE, PIECE, BEFORE = 16000, 512, 64
BEGINS, ENDS, PAUSE = 0.5, 0.35, 20  # likely enough to begin, unlikely enough to end, for so many pieces
LINE = 64  # pieces
BARS = "▁▂▃▄▅▆▇█"
# What is heard: seconds without speech, in which a noise may be, then a sentence.
SCRIPT = [(1.2, "", "Good morning, can you hear me?"), (1.5, "tone", "That was a tone, and nobody spoke."), (1.5, "rush", "And that was a loud rush of noise."), (1.2, "", "")]


def read_wav(file: Path) -> np.ndarray:
    """One channel at 16 kHz, from -1 to 1."""
    try:
        with wave.open(str(file)) as sound:
            width, channels, rate, frames = sound.getsampwidth(), sound.getnchannels(), sound.getframerate(), sound.readframes(sound.getnframes())
            if not rate:
                raise wave.Error("its rate is 0")
    except OSError as error:
        sys.exit(f"{file}: {error.strerror}")
    except (wave.Error, EOFError) as error:
        sys.exit(f"{file}: no WAV file with PCM samples: {str(error) or 'it ends too early'}; expected PCM with 16 bits")
    if width != 2:
        sys.exit(f"{file}: a sample has {8 * width} bits; expected PCM with 16")
    samples = np.frombuffer(frames, "<i2", count=len(frames) // (2 * channels) * channels).reshape(-1, channels).mean(axis=1)
    made = resample_poly(samples, RATE, rate).astype(np.float32) / 32768 if len(samples) else samples
    if len(made) < PIECE:
        sys.exit(f"{file}: {len(made)} samples at {RATE} Hz; expected at least {PIECE}, {1000 * PIECE // RATE} ms")
    return made


def write_wav(file: Path, samples: np.ndarray) -> None:
    with wave.open(str(file), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())


def made_sound(folder: Path) -> np.ndarray:
    """The script, spoken; a faint noise lies under all of it."""
    noise = np.random.default_rng(7)
    parts = []
    for seconds, what, words in SCRIPT:
        quiet = np.zeros(int(seconds * RATE), np.float32)
        middle = slice(len(quiet) // 4, 3 * len(quiet) // 4)
        if what == "tone":
            quiet[middle] = 0.5 * np.sin(2 * np.pi * 440 * np.arange(middle.stop - middle.start) / RATE)
        elif what == "rush":
            quiet[middle] = 0.2 * noise.standard_normal(middle.stop - middle.start)
        parts.append(quiet)
        if words:
            subprocess.run(["espeak-ng", "-v", "en", "-s", "150", "-w", str(folder / "spoken.wav"), words], check=True)
            parts.append(read_wav(folder / "spoken.wav"))
    sound = np.concatenate(parts)
    return sound + 0.002 * noise.standard_normal(len(sound)).astype(np.float32)


def tensor(name: str, values: np.ndarray, datatype: str) -> grpcclient.InferInput:
    made = grpcclient.InferInput(name, values.shape, datatype)
    made.set_data_from_numpy(values)
    return made


def listen(server: str, sound: np.ndarray, fast: bool):
    """How likely each piece is speech, as the answers come."""
    count = len(sound) // PIECE
    padded = np.concatenate([np.zeros(BEFORE, np.float32), sound])
    answers: queue.Queue = queue.Queue()
    number = random.randrange(1, 2**63)
    with grpcclient.InferenceServerClient(server) as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        for at in range(count):
            piece = padded[None, at * PIECE : (at + 1) * PIECE + BEFORE]
            inputs = [tensor("input", piece, "FP32"), tensor("sr", np.array([RATE], np.int64), "INT64")]
            with suppress(InferenceServerException):  # the stream has ended: the reason is among the answers
                client.async_stream_infer("speech", inputs, sequence_id=number, sequence_start=at == 0, sequence_end=at == count - 1)
            answer = answers.get()
            if isinstance(answer, Exception):
                sys.exit(f"the server at {server}: {answer}")
            yield float(answer.as_numpy("output").item())
            if not fast:
                time.sleep(PIECE / RATE)


def spans(likely: list[float]) -> list[tuple[float, float]]:
    """From when to when somebody speaks, in seconds."""
    found: list[tuple[int, int]] = []
    begun, last = None, 0
    for at, each in enumerate([*likely, *[0.0] * PAUSE]):
        if begun is None and each >= BEGINS:
            begun = at
        if each >= ENDS:
            last = at
        if begun is not None and at - last >= PAUSE:
            found.append((begun, last + 1))
            begun = None
    return [(a * PIECE / RATE, b * PIECE / RATE) for a, b in found]


def draw(at: int, likely: float, colours: bool) -> None:
    if at % LINE == 0:
        print(f"\n{at * PIECE / RATE:5.1f} s  ", end="")
    bar = BARS[min(len(BARS) - 1, int(likely * len(BARS)))]
    print(f"\033[32m{bar}\033[0m" if colours and likely >= BEGINS else bar, end="", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="127.0.0.1:8001")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--wav", type=Path)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--colours", action="store_true")
    args = parser.parse_args()
    sound = read_wav(args.wav) if args.wav else made_sound(args.folder)
    write_wav(args.folder / "sound.wav", sound)
    print(f"Listening to {args.wav or args.folder / 'sound.wav'}, two seconds in a line.\nThe higher a bar, the more likely somebody speaks.")
    likely = []
    for each in listen(args.server, read_wav(args.folder / "sound.wav"), args.fast):
        draw(len(likely), each, args.colours or sys.stdout.isatty())
        likely.append(each)
    with (args.folder / "answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["seconds", "speech"], *([at * PIECE / RATE, each] for at, each in enumerate(likely))])
    print("\n\nSpeech:")
    for begins, ends in spans(likely):
        print(f"  {begins:5.2f} s to {ends:5.2f} s")


if __name__ == "__main__":
    main()
