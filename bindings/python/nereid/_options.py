"""The options of the command line, made by tools/pages.py: not written by hand."""

import os
from collections.abc import Sequence
from typing import Literal, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]


class Options(TypedDict, total=False):
    """Those of docs/user/command-line.md, with _ for -. Several values are a list or a tuple."""

    config: Path
    id: str
    exit_timeout_secs: int
    exit_on_error: bool
    strict_readiness: bool
    loop_threads: int
    memory_budget: int
    inline_execution: bool
    api_keys: Path
    model_repository: Union[Path, Sequence[Path]]
    model_store: Union[Path, Sequence[Path]]
    model_load_thread_count: int
    disable_auto_complete_config: bool
    model_control_mode: Literal["none", "poll", "explicit"]
    repository_poll_secs: int
    load_model: Union[str, Sequence[str]]
    model_config_name: str
    model_load_retry_count: int
    model_namespacing: bool
    allow_library_upload: bool
    backend_directory: str
    backend_config: Union[str, Sequence[str]]
    repoagent_directory: Path
    cache_directory: Path
    cache_config: Union[str, Sequence[str]]
    cache_config_json: Union[str, Sequence[str]]
    rate_limit: Literal["off", "execution_count"]
    rate_limit_resource: Union[str, Sequence[str]]
    allow_http: bool
    http_address: str
    http_port: int
    reuse_http_port: bool
    web: bool
    http_max_input_size: int
    http_header_timeout_secs: int
    http_stall_timeout_secs: int
    http_idle_timeout_secs: int
    http_header_forward_pattern: str
    http_restricted_api: Union[str, Sequence[str]]
    http_cors_origin: Union[str, Sequence[str]]
    http_use_ssl: bool
    http_use_ssl_mutual: bool
    http_server_cert: Path
    http_server_key: Path
    http_root_cert: Path
    allow_openai: bool
    openai_address: str
    openai_port: int
    allow_grpc: bool
    grpc_address: str
    grpc_port: int
    reuse_grpc_port: bool
    grpc_header_forward_pattern: str
    grpc_restricted_protocol: Union[str, Sequence[str]]
    grpc_infer_response_compression_level: Literal["none", "low", "medium", "high"]
    grpc_use_ssl: bool
    grpc_use_ssl_mutual: bool
    grpc_server_cert: Path
    grpc_server_key: Path
    grpc_root_cert: Path
    grpc_keepalive_time: int
    grpc_keepalive_timeout: int
    grpc_keepalive_permit_without_calls: bool
    grpc_http2_max_pings_without_data: int
    grpc_http2_min_recv_ping_interval_without_data: int
    grpc_http2_max_ping_strikes: int
    grpc_max_connection_age: int
    grpc_max_connection_age_grace: int
    allow_metrics: bool
    metrics_address: str
    metrics_port: int
    allow_cpu_metrics: bool
    allow_gpu_metrics: bool
    metrics_interval_ms: int
    metrics_use_ssl: bool
    metrics_use_ssl_mutual: bool
    metrics_server_cert: Path
    metrics_server_key: Path
    metrics_root_cert: Path
    metrics_config: Union[str, Sequence[str]]
    log_info: bool
    log_warning: bool
    log_error: bool
    log_verbose: Union[int, bool]
    log_component: Union[str, Sequence[str]]
    log_format: Literal["default", "ISO8601", "json"]
    log_file: Path
    access_log: Path
    trace_config: Union[str, Sequence[str]]
    allow_client_shm: bool
    client_shm_byte_size: int
    pinned_memory_pool_byte_size: int
    cuda_memory_pool_byte_size: Union[str, Sequence[str]]
    min_supported_compute_capability: Union[str, Sequence[str]]
    host_policy: Union[str, Sequence[str]]
    model_load_gpu_limit: Union[str, Sequence[str]]
    allow_sagemaker: bool
    sagemaker_port: int
    sagemaker_safe_port_range: Union[str, Sequence[str]]
    sagemaker_models_directory: Path
    allow_vertex_ai: bool
    vertex_ai_port: int
    vertex_ai_default_model: str
    strict_model_config: bool
    response_cache_byte_size: int
    trace_file: Path
    trace_level: Union[str, Sequence[str]]
    trace_rate: int
    trace_count: int
    trace_log_frequency: int


# Their names on the command line; those that have no value there.
NAMES = frozenset(name.replace("_", "-") for name in Options.__annotations__)
FLAGS = frozenset((
    "disable-auto-complete-config",
))
