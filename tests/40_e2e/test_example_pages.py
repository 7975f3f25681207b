"""What the pages of examples/ share asks a model and reads its answer, in a real browser and without any of the examples' models."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from harness import paths
from harness.browser import Browser
from harness.repository import Repository
from harness.servers import HOST, Nereid
from harness.site import site

pytestmark = pytest.mark.once

SENT: dict[str, tuple[str, list[Any]]] = {
    "FP32": ("encode([0.5, -1, 3], 'FP32')", [0.5, -1, 3]),
    "INT64": ("encode([7, 8], 'INT64')", ["7", "8"]),
    "BOOL": ("encode([1, 0], 'BOOL')", [True, False]),
    "FP16": ("encode([0.25], 'FP16')", [0.25]),
    "BYTES": ("lengthAndBytes(new TextEncoder().encode('a word'))", ["a word"]),
}


def test_a_page_gets_all_values_of_an_answer(browser: Browser, tmp_path: Path) -> None:
    """The scripts lie side by side, as examples/run.sh lays them."""
    repository = Repository(tmp_path / "models")
    for datatype in SENT:
        repository.identity(datatype.lower(), datatype)
    folder = tmp_path / "page"
    folder.mkdir()
    for script in ("web/live/body.js", "web/live/tensor.js", "examples/page/example.js"):
        shutil.copy(paths.ROOT / script, folder)
    (folder / "index.html").write_text("<!doctype html><link rel=icon href=data:>")
    with site(HOST, folder) as port, Nereid(repository.path, {"http-cors-origin": f"http://{HOST}:{port}"}) as server:
        with browser.page(f"http://{HOST}:{port}/?server={server.http_port}") as page:
            for datatype, (made, values) in SENT.items():
                sent = f"{{ name: 'INPUT0', datatype: '{datatype}', shape: [{len(values)}], bytes: {made} }}"
                asked = f"infer('{datatype.lower()}', [{sent}], [{{ name: 'OUTPUT0', datatype: '{datatype}' }}])"
                written = "JSON.stringify(OUTPUT0, (key, value) => typeof value === 'bigint' ? String(value) : value)"
                modules = "Promise.all([import('./example.js'), import('./tensor.js')])"
                got = page.value(f"{modules}.then(([{{ infer }}, {{ encode, lengthAndBytes }}]) => {asked}).then(({{ OUTPUT0 }}) => {written})")
                assert json.loads(got) == {"name": "OUTPUT0", "datatype": datatype, "shape": [len(values)], "values": values}
