"""Server metadata, model metadata, configuration and index, with the real client."""

import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import rawhttp
from harness.servers import Server

EXTENSIONS = [
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
]
# Ours names what it serves; shared memory where it is allowed (test_shared_memory.py).
REFERENCE_ALONE = {"system_shared_memory", "cuda_shared_memory"}


def test_server_metadata(server: Server) -> None:
    """RX-02, RX-03, SX-03."""
    with httpclient.InferenceServerClient(server.http) as client:
        over_http = client.get_server_metadata()
    with grpcclient.InferenceServerClient(server.grpc) as client:
        over_grpc = client.get_server_metadata(as_json=True)
    assert over_http == over_grpc
    assert over_http["name"] and over_http["version"]
    # Listed, in this order.
    others = {"sequence(string_id)"} | (REFERENCE_ALONE if server.kind == "reference" else set())
    assert [each for each in over_http["extensions"] if each not in others] == EXTENSIONS


def test_what_is_not_named_is_not_served(nereid: Server) -> None:
    """Requests of the extensions that are left out are refused as such, and neither protocol names them."""
    assert not REFERENCE_ALONE & set(rawhttp.get(nereid.http, "/v2").json()["extensions"])
    with grpcclient.InferenceServerClient(nereid.grpc) as client:
        assert not REFERENCE_ALONE & set(client.get_server_metadata().extensions)


def test_string_sequence_ids_are_reported(nereid: Server) -> None:
    """SX-04: straight after "sequence"; the reference does not list it."""
    with httpclient.InferenceServerClient(nereid.http) as client:
        extensions = client.get_server_metadata()["extensions"]
    assert extensions[extensions.index("sequence") + 1] == "sequence(string_id)"


def test_model_metadata(server: Server) -> None:
    """MC-24, MC-25, MC-80."""
    with httpclient.InferenceServerClient(server.http) as client:
        flat = client.get_model_metadata("id_fp32")
        batched = client.get_model_metadata("id_batch")
        chosen = client.get_model_metadata("id_specific", "1")
        every = client.get_model_metadata("id_specific")
    assert flat == {
        "name": "id_fp32",
        "versions": ["1"],
        "platform": "identity",
        "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [-1]}],
        "outputs": [{"name": "OUTPUT0", "datatype": "FP32", "shape": [-1]}],
    }
    # The batch dimension comes first.
    assert batched["inputs"][0]["shape"] == [-1, 16]
    assert chosen["versions"] == ["1"]
    assert sorted(every["versions"]) == ["1", "3"]


def test_model_metadata_grpc(server: Server) -> None:
    with grpcclient.InferenceServerClient(server.grpc) as client:
        found = client.get_model_metadata("id_two")
    assert (found.name, list(found.versions), found.platform) == ("id_two", ["1"], "identity")
    assert [(each.name, each.datatype, list(each.shape)) for each in found.inputs] == [
        ("INPUT0", "FP32", [-1, -1]),
        ("INPUT1", "FP32", [-1, -1]),
    ]


def test_versions(server: Server) -> None:
    """MR-25, MR-26, MR-27, MC-77, MC-78, MC-79, MC-80, MC-81, MC-83, PB-52, PB-53, PB-166: 10 is later than 9; other directories are
    ignored."""
    with httpclient.InferenceServerClient(server.http) as client:
        versions = {
            name: sorted(client.get_model_metadata(name)["versions"])
            for name in ("id_newest", "id_specific", "id_all")
        }
    assert versions == {"id_newest": ["3"], "id_specific": ["1", "3"], "id_all": ["1", "10", "2"]}


def test_config(server: Server) -> None:
    with httpclient.InferenceServerClient(server.http) as client:
        over_http = client.get_model_config("id_batch")
    assert (over_http["name"], over_http["backend"], over_http["max_batch_size"]) == (
        "id_batch",
        "identity",
        8,
    )
    assert over_http["input"][0]["dims"] == [16]  # numbers, not strings
    assert over_http["version_policy"] == {"latest": {"num_versions": 1}}
    assert [(group["kind"], group["count"]) for group in over_http["instance_group"]] == [("KIND_CPU", 1)]
    with grpcclient.InferenceServerClient(server.grpc) as client:
        config = client.get_model_config("id_batch").config
    assert (config.name, config.backend, config.max_batch_size) == ("id_batch", "identity", 8)
    assert list(config.input[0].dims) == [16]
    assert config.version_policy.latest.num_versions == 1


def test_index(server: Server) -> None:
    """RX-09, RX-16, RX-17, RX-18, RX-19, RX-60: every model and version."""
    with httpclient.InferenceServerClient(server.http) as client:
        rows = client.get_model_repository_index()
    ready = {(row["name"], row["version"]) for row in rows if row["state"] == "READY"}
    assert {("id_fp32", "1"), ("id_newest", "3"), ("id_all", "10"), ("id_specific", "1")} <= ready
    with grpcclient.InferenceServerClient(server.grpc) as client:
        same = client.get_model_repository_index()
    assert {(row.name, row.version, row.state) for row in same.models} == {
        (row["name"], row["version"], row["state"]) for row in rows
    }
