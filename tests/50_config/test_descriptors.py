"""proto/*.proto against the public descriptors inside the tritonclient package: every message, field, oneof, enum and method."""

import subprocess
from pathlib import Path

import pytest
from config_tools import protoc
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet
from harness import paths
from tritonclient.grpc import model_config_pb2, service_pb2


def _compiled(name: str, folder: Path) -> FileDescriptorProto:
    out = folder / f"{name}.bin"
    subprocess.run(
        [protoc(), f"--proto_path={paths.ROOT}", f"--descriptor_set_out={out}", f"proto/{name}.proto"],
        check=True, cwd=paths.ROOT,
    )
    return FileDescriptorSet.FromString(out.read_bytes()).file[0]


def _enum_facts(enum: EnumDescriptorProto, scope: str) -> dict[str, object]:
    return {f"{scope}{enum.name}": {value.name: value.number for value in enum.value}}


def _message_facts(message: DescriptorProto, scope: str) -> dict[str, object]:
    """Full name of each message, field, oneof and enum -> what defines it."""
    here = f"{scope}{message.name}."
    facts: dict[str, object] = {here: (message.options.map_entry, [oneof.name for oneof in message.oneof_decl])}
    for field in message.field:
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        facts[here + field.name] = (
            field.number, field.type, field.label, field.type_name, oneof, field.proto3_optional, field.json_name or None,
        )
    for nested in message.nested_type:
        facts |= _message_facts(nested, here)
    for enum in message.enum_type:
        facts |= _enum_facts(enum, here)
    return facts


def _facts(file: FileDescriptorProto) -> dict[str, object]:
    facts: dict[str, object] = {"package": file.package, "syntax": file.syntax}
    for message in file.message_type:
        facts |= _message_facts(message, "")
    for enum in file.enum_type:
        facts |= _enum_facts(enum, "")
    for service in file.service:
        for method in service.method:
            facts[f"{service.name}/{method.name}"] = (
                method.input_type, method.output_type, method.client_streaming, method.server_streaming,
            )
    return facts


def _without_json_names(facts: dict[str, object]) -> dict[str, object]:
    return {k: v[:-1] if isinstance(v, tuple) and len(v) == 7 else v for k, v in facts.items()}


@pytest.mark.parametrize(("name", "module"), [("model_config", model_config_pb2), ("grpc_service", service_pb2)])
def test_same_as_the_public_descriptors(name: str, module: object, tmp_path: Path) -> None:
    """RX-58, RX-77, SX-30, SX-31, PB-01, X-10, X-26, X-27, X-33: numbers and types, whatever the server does with them."""
    theirs = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(theirs)  # type: ignore[attr-defined]
    expected = _without_json_names(_facts(theirs))
    assert len(expected) > 100
    assert _without_json_names(_facts(_compiled(name, tmp_path))) == expected


def test_health(tmp_path: Path) -> None:
    facts = _facts(_compiled("health", tmp_path))
    assert facts["package"] == "grpc.health.v1"
    assert facts["HealthCheckResponse.ServingStatus"] == {
        "UNKNOWN": 0, "SERVING": 1, "NOT_SERVING": 2, "SERVICE_UNKNOWN": 3,
    }
    request, response = ".grpc.health.v1.HealthCheckRequest", ".grpc.health.v1.HealthCheckResponse"
    assert facts["Health/Check"] == (request, response, False, False)
    assert facts["Health/Watch"] == (request, response, False, True)
    assert facts["HealthCheckRequest.service"][:2] == (1, 9)  # type: ignore[index]
    assert facts["HealthCheckResponse.status"][:2] == (1, 14)  # type: ignore[index]
