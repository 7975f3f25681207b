"""What a model of the python backend imports: tensors, requests, responses, and what it may ask of the server."""

import json
import os
import struct
import sys
import threading
import types

import nereid_python_stub as _core

_running = False  # between initialize and finalize: other models may be asked
_directory = ""

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2

_STRING_TO_NUMPY = {
    "TYPE_BOOL": "bool", "TYPE_UINT8": "uint8", "TYPE_UINT16": "uint16", "TYPE_UINT32": "uint32", "TYPE_UINT64": "uint64",
    "TYPE_INT8": "int8", "TYPE_INT16": "int16", "TYPE_INT32": "int32", "TYPE_INT64": "int64", "TYPE_FP16": "float16",
    "TYPE_FP32": "float32", "TYPE_FP64": "float64", "TYPE_STRING": "object_",
}  # fmt: skip
_NUMBERS = ("bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "object_")


class TritonModelException(Exception):
    """Something that a model asked for could not be done."""


class _Members(type):
    """A closed set of values, as attributes of the class and by name."""

    def __iter__(cls):
        return iter(cls.__members__.values())


class _Value(metaclass=_Members):
    """One of a closed set. It equals its number but is no int, and is never false, like those of the C++ module."""

    __slots__ = ("name", "value")
    __members__ = {}

    def __init__(self, value):
        self.value = int(value)
        self.name = next((name for name, each in self.__members__.items() if each.value == self.value), "???")

    def __int__(self):
        return self.value

    __index__ = __int__

    def __eq__(self, other):
        return self.value == other

    def __hash__(self):
        return hash(self.value)

    def __str__(self):
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self):
        return f"<{self}: {self.value}>"


def _values(name, **members):
    """A class of such values."""
    made = _Members(name, (_Value,), {"__slots__": (), "__module__": "c_python_backend_utils", "__members__": {}})
    for key, number in members.items():
        value = made(number)
        value.name = key
        made.__members__[key] = value
        setattr(made, key, value)
    return made


class TritonError:
    """An error that a client is told."""

    def __init__(self, message, code=1):
        if not isinstance(message, str):
            raise TypeError(f"message is a str, not {type(message)}")
        self._message = message
        self._code = code if isinstance(code, _ErrorCode) else list(_ErrorCode)[code]

    def code(self):
        return self._code

    def message(self):
        return self._message


_ErrorCode = _values(
    "__ErrorCode", UNKNOWN=0, INTERNAL=1, NOT_FOUND=2, INVALID_ARG=3, UNAVAILABLE=4,
    UNSUPPORTED=5, ALREADY_EXISTS=6, CANCELLED=7,
)  # fmt: skip
for _each in _ErrorCode:
    setattr(TritonError, _each.name, _each)
setattr(TritonError, "__ErrorCode", _ErrorCode)

MemoryType = _values("MemoryType", TRITONSERVER_MEMORY_GPU=0, TRITONSERVER_MEMORY_CPU=1)
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU


class PreferredMemory:
    """Where a nested request wants its outputs. They are in the memory of processors always."""

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


class InferenceTrace:
    """The trace of a request, handed on to nested requests."""

    __slots__ = ("_context", "_handle")

    def __init__(self, handle=0, context=""):
        self._handle = handle
        self._context = context

    def get_context(self):
        return self._context or None


def _parameters(given):
    """A request's or response's parameters as JSON."""
    if given is None:
        return "{}"
    if not isinstance(given, dict):
        raise TritonModelException(f"Expect dict, got {type(given)}")
    for key, value in given.items():
        if not isinstance(key, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(key)}")
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(f"Expect parameters values to have type bool/int/str, found type {type(value)}")
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise TritonModelException(f"Expect parameters values to have 64 bits at most, found {value}")
    return json.dumps({_whole(key): _whole(value) if isinstance(value, str) else value for key, value in given.items()})


def _whole(text):
    """A text of a parameter or a label, lone surrogates escaped; one that would be cut is refused."""
    if "\0" in text:
        raise TritonModelException(f"Expect texts without a zero byte, found {text[:100]!r}")
    return text.encode(errors="backslashreplace").decode()


def _is_cancelled(handle):
    return bool(_core.call(_core.CANCELLED, handle))


Tensor = _core.Tensor
InferenceResponse = _core.InferenceResponse
InferenceResponseSender = _core.InferenceResponseSender


class InferenceRequest(_core.Request):
    """A request: one that came, or one to another model."""

    __slots__ = ()

    def __init__(
        self, request_id="", correlation_id=0, inputs=None, requested_output_names=None, model_name=None, model_version=-1, flags=0,
        timeout=0, preferred_memory=None, trace=None, parameters=None,
    ):  # fmt: skip
        if inputs is None or requested_output_names is None or model_name is None:
            raise TypeError("InferenceRequest needs inputs, requested_output_names and model_name")
        if isinstance(correlation_id, bool) or not isinstance(correlation_id, (int, str)):
            raise TritonModelException("Correlation ID must be integer or string")
        inputs = list(inputs)
        for each in inputs:
            if each is None:
                raise TritonModelException(
                    f"Input tensor for request with id '{request_id}' and model name '{model_name}' should not be empty."
                )
            if not isinstance(each, Tensor):
                raise TypeError(f"inputs holds tensors, not {type(each)}")
        names = sorted(set(requested_output_names))
        if "" in names:
            raise TritonModelException(
                f"Requested output name for request with id '{request_id}' and model name '{model_name}' should not be empty."
            )
        handle = trace._handle if trace else 0
        self._make(
            request_id, correlation_id, inputs, names, model_name, model_version, flags, timeout, handle,
            trace._context if trace else "", _parameters(parameters),
        )  # fmt: skip

    def trace(self):
        return InferenceTrace(self._handle(), self._context())

    def is_cancelled(self):
        return _is_cancelled(self._handle()) if self._handle() else False

    def exec(self, decoupled=False):
        """Asks another model; returns its response, or what iterates over its responses."""
        if not _running:
            raise TritonModelException("BLS is only supported during the 'execute' function.")
        try:
            number = _core.infer(self, decoupled)
            if decoupled:
                return ResponseIterator(number, self)
            return _core.nested(number)[0]
        except TritonModelException as error:
            return InferenceResponse(error=TritonError(str(error)))

    def async_exec(self, decoupled=False):
        """The same as something to await."""
        import asyncio

        return asyncio.get_running_loop().run_in_executor(None, self.exec, decoupled)


class ResponseIterator:
    """The responses to a nested request of a decoupled model, as they come; once they have come, again and again."""

    def __init__(self, number, request):
        self._number = number
        self._request = request
        self._came = []
        self._next = 0
        self._last = False
        self._lock = threading.Lock()
        self._take()

    def _take(self):
        response, self._last = _core.nested(self._number)
        self._request = None
        self._came.append(InferenceResponse() if response is None else response)

    def __iter__(self):
        if self._last and self._next >= len(self._came):
            self._next = 0
        return self

    def __next__(self):
        with self._lock:
            if self._next == len(self._came) and not self._last:
                self._take()
            if self._next == len(self._came):
                raise StopIteration("Iteration is done for the responses.")
            self._next += 1
            return self._came[self._next - 1]

    def cancel(self):
        if not self._last:
            _core.tell(_core.CANCEL, self._number)

    def __del__(self):
        if not getattr(self, "_last", True):
            _core.forget(self._number)


# -- logs --

_INFO, _WARNING, _ERROR, _VERBOSE = range(4)


def _log(level, message, depth=None):
    file, line = "triton_python_backend_stub.py", 0
    if depth is not None:
        frame = sys._getframe(depth)
        file, line = os.path.basename(frame.f_code.co_filename), frame.f_lineno
    _core.tell(_core.LOG, level, file, line, message)


class Logger:
    """Lines in the server's log, with the file and line of who calls."""

    LogLevel = _values("LogLevel", INFO=_INFO, WARNING=_WARNING, ERROR=_ERROR, VERBOSE=_VERBOSE)
    INFO, WARNING, ERROR, VERBOSE = LogLevel.INFO, LogLevel.WARNING, LogLevel.ERROR, LogLevel.VERBOSE

    @staticmethod
    def log(message, level=_INFO):
        _log(int(level), message, 2)

    @staticmethod
    def log_info(message):
        _log(_INFO, message, 2)

    @staticmethod
    def log_warn(message):
        _log(_WARNING, message, 2)

    @staticmethod
    def log_error(message):
        _log(_ERROR, message, 2)

    @staticmethod
    def log_verbose(message):
        _log(_VERBOSE, message, 2)


# -- metrics --


def _attempt(what, *call):
    try:
        return _core.call(*call)
    except TritonModelException as error:
        raise TritonModelException(what + str(error)) from None


class Metric:
    """A metric of a family."""

    def __init__(self, family, number):
        self._family = family
        self._number = number

    def _do(self, what, *call):
        if self._family._number is None:
            raise TritonModelException(
                f"{what}Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object "
                "should be deleted AFTER its corresponding 'Metric' objects have been deleted."
            )
        return _attempt(what, call[0], self._number, *call[1:])

    def increment(self, value):
        self._do("Failed to increment metric value: ", _core.METRIC_INCREMENT, float(value))

    def set(self, value):
        self._do("Failed to set metric value: ", _core.METRIC_SET, float(value))

    def observe(self, value):
        self._do("Failed to observe metric value: ", _core.METRIC_OBSERVE, float(value))

    def value(self):
        return self._do("Failed to get metric value: ", _core.METRIC_VALUE)

    def __del__(self):
        if hasattr(self, "_number"):
            _quietly(_core.METRIC_DELETE, self._number)


class _FamilyKept:
    """A family for its metrics: they live as long as they or it are held."""

    __slots__ = ("_number",)


class MetricFamily:
    """Metrics of one name, which differ in their labels."""

    _Kind = _values("MetricKind", COUNTER=0, GAUGE=1, HISTOGRAM=2)
    COUNTER, GAUGE, HISTOGRAM = _Kind.COUNTER, _Kind.GAUGE, _Kind.HISTOGRAM

    def __init__(self, name, description, kind):
        self._kept = _FamilyKept()
        self._kept._number = None
        self._kind = int(kind)
        self._kept._number = _attempt("Error when creating MetricFamily: ", _core.FAMILY_NEW, name, description, self._kind)

    def Metric(self, labels=None, buckets=None):  # noqa: N802 (the name that models know)
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        if buckets is not None and not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if buckets is not None and self._kind != self.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        if buckets is None and self._kind == self.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Missing required buckets.")
        pairs = [each for pair in (labels or {}).items() for each in pair]
        for each in pairs:
            if not isinstance(each, str):
                raise TritonModelException(f"Failed to create metric. Labels must be of type str, found type {type(each)}.")
        pairs = [_whole(each) for each in pairs]
        bounds = [float(each) for each in buckets or []]
        number = _attempt(
            "Error when creating Metric: ", _core.METRIC_NEW, self._kept._number, len(pairs) // 2, *pairs, *bounds
        )
        return Metric(self._kept, number)

    def __del__(self):
        kept = getattr(self, "_kept", None)
        if kept and kept._number is not None:
            number, kept._number = kept._number, None
            _quietly(_core.FAMILY_DELETE, number)


def _quietly(*call):
    """Tells the server, unless the process is at its end."""
    try:
        _core.tell(*call)
    except Exception:
        pass


# -- other models --


def load_model(model_name, config="", files=None):
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{model_name}', files should be a dictionary of file paths and file contents"
        )
    pairs = [each for pair in (files or {}).items() for each in pair]
    _attempt("Failed to load model: ", _core.LOAD, model_name, config, *pairs)


def unload_model(model_name, unload_dependents=False):
    _attempt("Failed to unload model: ", _core.UNLOAD, model_name, int(unload_dependents))


def is_model_ready(model_name, model_version=""):
    return bool(_attempt("Failed to check model readiness: ", _core.READY, model_name, model_version))


def get_model_dir():
    """The directory of the model's file."""
    return _directory


# -- tensors and configurations --


def serialize_byte_tensor(input_tensor):
    """The texts of an array, each with its length before it; an empty tuple of an empty array, None of one that has other things."""
    import numpy

    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype != numpy.object_ and input_tensor.dtype.type != numpy.bytes_:
        return None
    parts = []
    for each in input_tensor.ravel(order="C"):
        text = bytes(each) if input_tensor.dtype != numpy.object_ or type(each) is bytes else str(each).encode()
        parts += (struct.pack("<I", len(text)), text)
    return b"".join(parts)


def deserialize_bytes_tensor(encoded_tensor):
    """The reverse: a flat array of bytes objects."""
    import numpy

    texts = []
    at = 0
    while at < len(encoded_tensor):
        (length,) = struct.unpack_from("<I", encoded_tensor, at)
        at += 4
        (text,) = struct.unpack_from(f"<{length}s", encoded_tensor, at)
        at += length
        texts.append(text)
    return numpy.array(texts, dtype=numpy.object_)


get_input_tensor_by_name = _core.get_input_tensor_by_name


def _named(things, name, name_of):
    return next((each for each in things if name_of(each) == name), None)


def get_output_tensor_by_name(inference_response, name):
    return _named(inference_response.output_tensors(), name, lambda tensor: tensor.name())


def get_input_config_by_name(model_config, name):
    return _named(model_config.get("input", ()), name, lambda entry: entry["name"])


def get_output_config_by_name(model_config, name):
    return _named(model_config.get("output", ()), name, lambda entry: entry["name"])


def using_decoupled_model_transaction_policy(model_config):
    if "model_transaction_policy" in model_config:
        return model_config["model_transaction_policy"]["decoupled"]
    return False


def triton_to_numpy_type(data_type):
    import numpy

    return getattr(numpy, _NUMBERS[data_type - 1]) if 1 <= data_type <= len(_NUMBERS) else None


def numpy_to_triton_type(data_type):
    import numpy

    for i, name in enumerate(_NUMBERS):
        if data_type == getattr(numpy, name):
            return i + 1
    return len(_NUMBERS) if data_type == numpy.bytes_ else None


def triton_string_to_numpy(triton_type_string):
    import numpy

    name = _STRING_TO_NUMPY[triton_type_string]
    return bool if name == "bool" else getattr(numpy, name)


class ModelConfig:
    """A configuration that auto_complete_config fills in."""

    def __init__(self, model_config):
        self._model_config = json.loads(model_config)

    def as_dict(self):
        return self._model_config

    def set_max_batch_size(self, max_batch_size):
        config = self._model_config
        if config["max_batch_size"] > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {config['max_batch_size']}, but in auto-complete-config function for model "
                f"'{config['name']}' specified max_batch_size {max_batch_size}"
            )
        config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self):
        config = self._model_config
        found = next((each for each in ("sequence_batching", "ensemble_scheduling") if each in config), None)
        if found:
            raise ValueError(
                f"Configuration specified scheduling_choice as '{found}', but auto-complete-config function for model "
                f"'{config['name']}' tries to set scheduling_choice as 'dynamic_batching'"
            )
        config.setdefault("dynamic_batching", {})

    def add_input(self, input):
        self._add("input", input, ("name", "data_type", "dims", "optional"))

    def add_output(self, output):
        self._add("output", output, ("name", "data_type", "dims"))

    def _add(self, kind, tensor, allowed):
        where = f"in auto-complete-config function for model '{self._model_config['name']}'"
        listed = ", ".join(f"'{each}'" for each in allowed[:-1]) + f" and '{allowed[-1]}'"
        for key in tensor:
            if key not in allowed:
                raise ValueError(f"{kind} '{tensor['name']}' {where} contains property other than {listed}.")
        if "name" not in tensor:
            raise ValueError(f"{kind} {where} is missing 'name' property.")
        for key in ("data_type", "dims"):
            if key not in tensor:
                raise ValueError(f"{kind} '{tensor['name']}' {where} is missing '{key}' property.")
        there = _named(self._model_config[kind], tensor["name"], lambda entry: entry["name"])
        if there is None:
            self._model_config[kind].append(tensor)
            return
        self._agree(kind, there, tensor)
        there.update({key: tensor[key] for key in ("data_type", "dims", "optional") if key in tensor})

    def _agree(self, kind, there, tensor):
        """Raises where a configuration's tensor and the model's differ."""
        model = self._model_config["name"]
        if there["data_type"] not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                f"unable to load model '{model}', configuration expects datatype {there['data_type']} for {kind} "
                f"'{tensor['name']}', model provides {tensor['data_type']}"
            )
        if there["dims"] and there["dims"] != tensor["dims"]:
            raise ValueError(
                f"model '{model}', tensor '{tensor['name']}': the model expects dims {tensor['dims']} but the model configuration "
                f"specifies dims {there['dims']}"
            )
        if "optional" in there and "optional" in tensor and there["optional"] != tensor["optional"]:
            raise ValueError(
                f"model '{model}', tensor '{tensor['name']}': the model expects optional {tensor['optional']} but the model "
                f"configuration specifies optional {there['optional']}"
            )

    def set_model_transaction_policy(self, transaction_policy_dict):
        config = self._model_config
        if any(key != "decoupled" for key in transaction_policy_dict):
            raise ValueError(
                f"model transaction property in auto-complete-config function for model '{config['name']}' contains property other "
                "than 'decoupled'."
            )
        policy = config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        if policy.get("decoupled", transaction_policy_dict["decoupled"]) != transaction_policy_dict["decoupled"]:
            raise ValueError(
                f"trying to change decoupled property in auto-complete-config for model '{config['name']}', which is already set to "
                f"'{policy['decoupled']}'."
            )
        policy["decoupled"] = transaction_policy_dict["decoupled"]


def __getattr__(name):
    if name == "TRITON_STRING_TO_NUMPY":
        return {each: triton_string_to_numpy(each) for each in _STRING_TO_NUMPY}
    if name == "np":
        import numpy

        return numpy
    raise AttributeError(f"module 'triton_python_backend_utils' has no attribute '{name}'")


_core.adopt(InferenceRequest, TritonModelException, TritonError)
# The name under which the C++ backend has the same.
_compiled = types.ModuleType("c_python_backend_utils")
for _each in (
    TritonError, PreferredMemory, MemoryType, InferenceTrace, InferenceRequest, Tensor, InferenceResponse, InferenceResponseSender,
    ResponseIterator, Logger, Metric, MetricFamily, load_model, unload_model, is_model_ready, TritonModelException,
):  # fmt: skip
    setattr(_compiled, _each.__name__, _each)
_compiled.MetricKind = MetricFamily._Kind
_compiled.TRITONSERVER_MEMORY_CPU, _compiled.TRITONSERVER_MEMORY_GPU = TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_GPU
sys.modules["c_python_backend_utils"] = _compiled
