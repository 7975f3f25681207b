"""Reads the Prometheus text format, strictly enough to find what breaks a scraper."""

import re
from dataclasses import dataclass, field

from . import rawhttp

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_SUFFIXES = ("_bucket", "_sum", "_count")


@dataclass
class Family:
    name: str
    kind: str
    help: str
    samples: list[tuple[str, dict[str, str], float]] = field(default_factory=list)

    def value(self, **labels: str) -> float:
        """The sum of the samples that carry these labels."""
        found = [value for _, have, value in self.samples if labels.items() <= have.items()]
        assert found, f"{self.name} has no sample with {labels}: {self.samples}"
        return sum(found)

    def label_names(self) -> set[str]:
        return {name for _, labels, _ in self.samples for name in labels}


def parse(text: str) -> dict[str, Family]:
    assert text.endswith("\n"), "the text does not end with a line feed"
    families: dict[str, Family] = {}
    helps: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            helps[name] = words
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name not in families, f"family {name} twice"
            assert kind in ("counter", "gauge", "histogram", "summary"), line
            families[name] = Family(name, kind, helps[name])
        elif line:
            match = _SAMPLE.match(line)
            assert match, f"not a sample: {line}"
            name, labels, value = match.groups()
            pairs = _LABEL.findall(labels or "")
            assert not labels or ",".join(f'{k}="{v}"' for k, v in pairs) == labels.rstrip(","), line
            _family(families, name).samples.append((name, dict(pairs), float(value)))
    return families


def _family(families: dict[str, Family], sample: str) -> Family:
    if sample in families:
        return families[sample]
    for suffix in _SUFFIXES:
        family = families.get(sample.removesuffix(suffix))
        if sample.endswith(suffix) and family and family.kind in ("histogram", "summary"):
            return family
    raise AssertionError(f"sample {sample} before its # TYPE line")


def scrape(address: str) -> dict[str, Family]:
    answer = rawhttp.get(address, "/metrics")
    assert answer.status == 200
    assert answer.header("Content-Type") == "text/plain; charset=utf-8"
    return parse(answer.body.decode())
