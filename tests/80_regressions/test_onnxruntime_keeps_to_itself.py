"""ONNX Runtime wrote a database with an identity of the machine into the user's home, to send it to its maker."""

from pathlib import Path

import pytest
from harness import rawhttp
from harness.repository import Repository
from harness.servers import Nereid
from models import onnx_models

pytestmark = pytest.mark.onnx


def test_nothing_is_written_to_the_home(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    onnx_models.save(onnx_models.add_sub(), repository.model("sum", 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n'))
    home = tmp_path / "home"
    home.mkdir()
    with Nereid(repository.path, env={"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}) as server:
        assert rawhttp.get(server.http, "/v2/models/sum/ready").status == 200
        maps = Path(f"/proc/{server.pid}/maps").read_text()
        assert "libonnxruntime" in maps
    assert list(home.rglob("*")) == []
