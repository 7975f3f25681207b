"""Writes configurations of ensembles."""

from dataclasses import dataclass, field

from .repository import config_type


@dataclass(frozen=True)
class Step:
    """inputs: of the model -> tensor of the ensemble; outputs the same. version None leaves the field out."""

    model: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    version: int | None = -1


def _maps(kind: str, pairs: dict[str, str]) -> str:
    return " ".join(f'{kind}_map {{ key: "{key}" value: "{value}" }}' for key, value in pairs.items())


@dataclass(frozen=True)
class Ensemble:
    name: str
    steps: list[Step]
    inputs: tuple[str, ...] = ("IN",)
    outputs: tuple[str, ...] = ("OUT",)
    datatype: str = "FP32"
    dims: str = "-1"
    max_batch_size: int = 0
    optional: tuple[str, ...] = ()
    extra: str = ""
    types: dict[str, tuple[str, str]] = field(default_factory=dict)  # of single tensors: datatype, dims
    max_inflight: int = 0

    def _io(self, kind: str, name: str) -> str:
        datatype, dims = self.types.get(name, (self.datatype, self.dims))
        optional = "optional: true " if name in self.optional else ""
        return f'{kind} {{ name: "{name}" data_type: {config_type(datatype)} dims: [ {dims} ] {optional}}}'

    def config(self) -> str:
        lines = [f'name: "{self.name}"', 'platform: "ensemble"', f"max_batch_size: {self.max_batch_size}"]
        lines += [self._io("input", name) for name in self.inputs]
        lines += [self._io("output", name) for name in self.outputs]
        lines.append("ensemble_scheduling {")
        for step in self.steps:
            version = "" if step.version is None else f"model_version: {step.version} "
            lines.append(
                f'  step {{ model_name: "{step.model}" {version}'
                f"{_maps('input', step.inputs)} {_maps('output', step.outputs)} }}"
            )
        if self.max_inflight:
            lines.append(f"  max_inflight_requests: {self.max_inflight}")
        lines.append("}")
        return "\n".join(lines) + "\n" + self.extra


def chain(name: str, models: list[str], version: int | None = -1, **more: object) -> Ensemble:
    """IN through identity models (INPUT0 to OUTPUT0), one after the other, to OUT."""
    names = ["IN", *(f"t{i}" for i in range(1, len(models))), "OUT"]
    steps = [
        Step(model, {"INPUT0": names[i]}, {"OUTPUT0": names[i + 1]}, version) for i, model in enumerate(models)
    ]
    return Ensemble(name, steps, **more)  # type: ignore[arg-type]
