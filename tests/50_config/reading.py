"""What a server tells of models: metadata, configuration, rows of the index."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from harness import rawhttp
from harness.servers import Server

Answers = dict[str, dict[str, Any]]


def read(server: Server, names: Iterable[str]) -> Answers:
    rows = defaultdict(list)
    for row in rawhttp.post(server.http, "/v2/repository/index", b"").json():
        rows[row["name"]].append(row)
    found: Answers = {}
    for name in names:
        metadata = rawhttp.get(server.http, f"/v2/models/{name}").json()
        config = rawhttp.get(server.http, f"/v2/models/{name}/config").json()
        metadata["versions"] = sorted(metadata.get("versions", []))
        index = sorted(rows[name], key=lambda row: row.get("version", ""))
        found[name] = {"metadata": metadata, "config": config, "index": index}
    return found
