"""Asks ours (text_tool.c), protobuf's C++ parser (protoc) and protobuf's Python parser the same."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from google.protobuf import text_format
from harness import paths
from tritonclient.grpc.model_config_pb2 import ModelConfig


class Answer(NamedTuple):
    accepted: bool
    data: bytes  # the message in wire format or as JSON; or the error

    @property
    def error(self) -> str:
        assert not self.accepted, f"accepted, though it should not be: {self.data[:200]!r}"
        return self.data.decode()


def ask(records: list[tuple[str, bytes]]) -> list[Answer]:
    """Every (kind, bytes) answered by one run of text_tool; its head says what the kinds are."""
    tool = paths.need(paths.BUILD / "tests" / "50_config" / "text_tool")
    stdin = b"".join(b"%s%d\n%s" % (kind.encode(), len(data), data) for kind, data in records)
    run = subprocess.run([tool], input=stdin, capture_output=True, check=False)
    assert run.returncode == 0 and not run.stderr, run.stderr.decode(errors="replace")
    answers, at = [], 0
    while at < len(run.stdout):
        end = run.stdout.index(b"\n", at)
        kind, size = run.stdout[at : at + 1], int(run.stdout[at + 1 : end])
        answers.append(Answer(kind != b"e", run.stdout[end + 1 : end + 1 + size]))
        at = end + 1 + size
    assert len(answers) == len(records)
    return answers


def protoc() -> str:
    found = shutil.which("protoc")
    if found is None:
        raise paths.Missing("protoc is missing: tools/setup.sh installs it")
    return found


def _cpp(text: bytes) -> Answer:
    run = subprocess.run(
        [protoc(), f"--proto_path={paths.ROOT}", "--encode=inference.ModelConfig", "proto/model_config.proto"],
        input=text, capture_output=True, check=False, cwd=paths.ROOT,
    )
    return Answer(run.returncode == 0, run.stdout if run.returncode == 0 else run.stderr)


def cpp_answers(texts: list[bytes]) -> list[Answer]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(_cpp, texts))


def python_answer(text: str) -> Answer:
    message = ModelConfig()
    try:
        text_format.Parse(text, message)
    except (text_format.ParseError, ValueError) as error:
        return Answer(False, str(error).encode())
    return Answer(True, message.SerializeToString())


def canonical(wire: bytes) -> bytes:
    """One form for messages that are equal: written by the same writer, maps sorted."""
    return ModelConfig.FromString(wire).SerializeToString(deterministic=True)
