"""Only one server library may be mapped: a plug-in that brings another is refused, and nothing else."""

import re
from pathlib import Path

from harness import paths
from harness.repository import Repository
from harness.servers import Nereid


def test_a_plug_in_that_needs_another_server_library_is_refused(tmp_path: Path) -> None:
    """The reference's own python backend, as it was built: it names the reference's library."""
    made = Repository(tmp_path / "models")
    made.model("one", 'backend: "python"\n')
    backends = paths.reference_root() / "backends"
    server = Nereid(made.path, {"backend-directory": str(backends)}, wait_ready=False)
    server.start()
    try:
        server.process.ends(1)
        assert re.search(r"failed to load 'one'.*(second server library|libtritonserver-)", server.process.log())
    finally:
        server.kill()
