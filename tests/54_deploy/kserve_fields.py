"""Reads a ServingRuntime or an InferenceService with the classes of KServe's own client: run with its Python (build/clients/kserve).

    kserve_fields.py FILE     prints each field that KServe does not know; the status is 1 when there is one"""

import re
import sys

import yaml
from kserve import models
from kubernetes.client import models as kubernetes_models


def class_of(name: str) -> type | None:
    return getattr(models, name, None) or getattr(kubernetes_models, name, None)


def unknown(value: object, kind: str, where: str) -> list[str]:
    listed = re.fullmatch(r"list\[(.*)\]", kind)
    if listed:
        if not isinstance(value, list):
            return [f"{where}: a list is expected"]
        return [each for i, item in enumerate(value) for each in unknown(item, listed[1], f"{where}[{i}]")]
    found = class_of(kind)
    if found is None:
        plain = {"str": str, "int": int, "bool": bool}.get(kind)
        return [f"{where}: {kind} is expected"] if plain and not isinstance(value, plain) else []
    if not isinstance(value, dict):
        return [f"{where}: an object is expected"]
    fields = {json: found.openapi_types[name] for name, json in found.attribute_map.items()}
    missed = [f"{where}.{key}: no such field" for key in value if key not in fields]
    return missed + [each for key, item in value.items() if key in fields for each in unknown(item, fields[key], f"{where}.{key}")]


with open(sys.argv[1]) as file:
    told = yaml.safe_load(file)
version = told["apiVersion"].rpartition("/")[2].capitalize()
problems = unknown(told, version + told["kind"], told["kind"])
print(*problems, sep="\n")
sys.exit(1 if problems else 0)
