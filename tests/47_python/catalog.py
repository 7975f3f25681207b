"""The models of these tests: which model.py, with which configuration. Both servers get the same repository."""

import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "models"
DATATYPES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "STRING")

Tensor = tuple[str, str, list[int]]
ASK: list[Tensor] = [("ASK", "STRING", [1])]
TOLD: list[Tensor] = [("TOLD", "STRING", [1])]
NUMBER: list[Tensor] = [("N", "INT32", [1])]
RUNS: list[Tensor] = [("RUNS", "INT32", [2])]
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
# They end with their last execution, however long one of them takes.
LONG = "iterative_sequence: true max_sequence_idle_microseconds: 600000000"
ITERATIVE = f"sequence_batching {{ {LONG} }}\n"
OLDEST = f"sequence_batching {{ {LONG} oldest {{ max_candidate_sequences: 3 }} }}\n"


@dataclass(frozen=True)
class Model:
    source: str  # models/<source>.py
    inputs: list[Tensor] | None = None  # None: no configuration file at all
    outputs: list[Tensor] | None = None
    extra: str = ""
    max_batch_size: int = 0
    optional: bool = False
    at_start: bool = True  # loaded when the servers start


def _tensors(kind: str, tensors: list[Tensor], optional: bool) -> str:
    rows = []
    for name, datatype, dims in tensors:
        more = " optional: true" if optional else ""
        rows.append(f'{kind} {{ name: "{name}" data_type: TYPE_{datatype} dims: {dims}{more} }}\n')
    return "".join(rows)


def text_model(source: str, extra: str = "", at_start: bool = True, max_batch_size: int = 0) -> Model:
    """A model that is asked a word and tells one."""
    return Model(source, ASK, TOLD, extra, max_batch_size, at_start=at_start)


MODELS = {
    "identity": Model(
        "identity",
        [(f"IN_{each}", each, [-1, -1]) for each in DATATYPES],
        [(f"OUT_{each}", each, [-1, -1]) for each in DATATYPES],
        optional=True,
    ),
    "identity_numbers": Model("identity", [("IN_FP32", "FP32", [-1])], [("OUT_FP32", "FP32", [-1])], max_batch_size=8),
    "dlpack": Model(
        "dlpack",
        [("IN_FP32", "FP32", [-1, -1]), ("IN_BF16", "BF16", [-1, -1]), ("IN_INT64", "INT64", [-1, -1])],
        [("OUT_FP32", "FP32", [-1, -1]), ("OUT_BF16", "BF16", [-1, -1]), ("OUT_INT64", "INT64", [-1, -1])],
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }\n',
        optional=True,
    ),
    "add_sub": Model(
        "add_sub", [("A", "INT32", [4]), ("B", "INT32", [4])], [("SUM", "INT32", [4]), ("DIFF", "INT32", [4])], max_batch_size=8
    ),
    "batch": Model(
        "batch",
        [("X", "INT32", [1])],
        [("BATCH", "INT32", [2])],
        "dynamic_batching { preferred_batch_size: [ 6 ] max_queue_delay_microseconds: 600000000 }\n",
        max_batch_size=6,
    ),
    "tell": text_model(
        "tell",
        'parameters { key: "own" value { string_value: "a value" } }\n'
        "instance_group [ { count: 1 kind: KIND_CPU } ]\n",
    ),
    "no_inputs": Model("counts", [], [("COUNT", "INT32", [1])]),
    "no_inputs_batching": Model("counts", [], [("COUNT", "INT32", [1])], max_batch_size=4),
    "no_outputs": Model("counts", [("A", "INT32", [1])], []),
    "nothing": Model("counts", [], []),
    "state": text_model("state"),
    "echo": text_model("echo", at_start=False),
    "empty": text_model("empty", at_start=False),
    "fails_execute": text_model("fails_execute"),
    "fails_initialize": text_model("fails_initialize", at_start=False),
    "fails_finalize": text_model("fails_finalize", at_start=False),
    "fails_auto_complete": text_model("fails_auto_complete", at_start=False),
    "fails_import": text_model("fails_import", at_start=False),
    "no_class": text_model("no_class", at_start=False),
    "no_execute": text_model("no_execute", at_start=False),
    "auto_complete": Model("auto_complete"),
    "auto_complete_decoupled": Model("auto_complete_decoupled"),
    "auto_complete_clash": text_model("auto_complete_clash", at_start=False),
    "auto_complete_nothing": text_model("auto_complete_nothing", at_start=False),
    "repeat": Model("repeat", [("IN", "INT32", [-1]), ("WHERE", "STRING", [1])], [("OUT", "INT32", [1])], DECOUPLED),
    "decoupled_faults": text_model("decoupled_faults", DECOUPLED),
    "sender_default": text_model("sender_default"),
    "cancel": text_model("cancel"),
    "cancel_decoupled": text_model("cancel_decoupled", DECOUPLED),
    "logs": text_model("logs"),
    "metrics": text_model("metrics"),
    "loads": text_model("loads"),
    "loaded_by_a_model": text_model("state", at_start=False),
    "dies": text_model("dies"),
    "reschedule": Model("reschedule", NUMBER, RUNS, ITERATIVE, max_batch_size=4),
    "reschedule_oldest": Model("reschedule", NUMBER, RUNS, OLDEST, max_batch_size=4),
    "reschedule_decoupled": Model("reschedule_decoupled", NUMBER, RUNS, ITERATIVE + DECOUPLED, max_batch_size=4),
    "bls": text_model("bls", at_start=False),
    "bls_plain": text_model("bls_plain", "instance_group [ { count: 3 kind: KIND_CPU } ]\n", at_start=False),
    "bls_decoupled": Model("bls_decoupled", [("IN", "INT32", [-1]), ("STOP", "INT32", [1])], [("OUT", "INT32", [1])], DECOUPLED),
    "large": Model("large", [("DATA", "UINT8", [-1]), ("SIZE", "INT64", [1])], [("BACK", "UINT8", [-1])], optional=True),
    "environment": text_model(
        "environment", 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }\n'
    ),
    "environment_folder": text_model(
        "environment", 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env" } }\n'
    ),
    "environment_missing": text_model(
        "environment",
        'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/nowhere.tar.gz" } }\n',
        at_start=False,
    ),
    "beside": text_model("beside", 'default_model_filename: "beside.py"\n'),
    "instances": text_model("instances", "instance_group [ { count: 2 kind: KIND_CPU } ]\n"),
}


def config_of(name: str) -> str | None:
    model = MODELS[name]
    if model.inputs is None:
        return None
    return (
        f'name: "{name}"\nbackend: "python"\nmax_batch_size: {model.max_batch_size}\n'
        + _tensors("input", model.inputs, model.optional)
        + _tensors("output", model.outputs or [], False)
        + model.extra
    )


def write(repository: Path) -> Path:
    for name, model in MODELS.items():
        version = repository / name / "1"
        version.mkdir(parents=True)
        config = config_of(name)
        if config is not None:
            (repository / name / "config.pbtxt").write_text(config)
        file = "beside.py" if "default_model_filename" in model.extra else "model.py"
        shutil.copy(SOURCES / f"{model.source}.py", version / file)
    (repository / "beside" / "1" / "helper.py").write_text(
        textwrap.dedent('''\
            """A module beside the model."""


            def words():
                return "from beside the model"
            ''')
    )
    return repository
