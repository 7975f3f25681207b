#!/usr/bin/env python3
"""Writes the JSON schemas that kubeconform reads: Kubernetes' own, and those of the operator of Prometheus.

    schemas.py WHEEL CRDS FOLDER

WHEEL  the package kubernetes-validate    CRDS  definitions of resources, as JSON    FOLDER  gets VERSION/KIND.json and crd/KIND.json
"""

import json
import sys
import zipfile
from pathlib import Path

VERSIONS = ("v1.30.0", "v1.34.0", "v1.37.0")
WANTED = ("servicemonitors", "prometheusrules")


def closed(schema: object) -> object:
    """The same, refusing fields that it does not name, as a server of Kubernetes warns of them."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made


def main() -> None:
    wheel, crds, folder = (Path(each) for each in sys.argv[1:])
    with zipfile.ZipFile(wheel) as archive:
        for version in VERSIONS:
            prefix = f"kubernetes_validate/kubernetes-json-schema/{version}-local-strict/"
            target = folder / version
            target.mkdir(parents=True)
            for name in archive.namelist():
                if name.startswith(prefix) and name.endswith(".json"):
                    # References lead to files beside it, not to the address that a schema has as its name.
                    schema = json.loads(archive.read(name).decode().replace('"/api/_definitions.json#', '"_definitions.json#'))
                    schema.pop("$id", None)
                    (target / name.removeprefix(prefix)).write_text(json.dumps(schema))
    (folder / "crd").mkdir()
    for name in WANTED:
        crd = json.loads((crds / f"{name}-crd.json").read_text())["spec"]
        schema = closed(crd["versions"][0]["schema"]["openAPIV3Schema"])
        assert isinstance(schema, dict)
        schema["properties"]["metadata"] = {"type": "object"}
        (folder / "crd" / f"{crd['names']['kind'].lower()}.json").write_text(json.dumps(schema))


main()
