"""What a model is told when it starts, and what it sees of a request, as JSON."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.start = {
            "keys": sorted(args),
            "name": args["model_name"],
            "version": args["model_version"],
            "kind": args["model_instance_kind"],
            "device": args["model_instance_device_id"],
            "instance": args["model_instance_name"],
            "repository": args["model_repository"],
            "config": config,
            "input": pb_utils.get_input_config_by_name(config, "ASK"),
            "output": pb_utils.get_output_config_by_name(config, "TOLD"),
            "no input": pb_utils.get_input_config_by_name(config, "NONE"),
            "decoupled": pb_utils.using_decoupled_model_transaction_policy(config),
            "type": pb_utils.triton_string_to_numpy(config["output"][0]["data_type"]).__name__,
            "directory": pb_utils.get_model_dir(),
        }

    def execute(self, requests):
        responses = []
        for request in requests:
            ask = pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0]
            seen = {
                "id": request.request_id(),
                "correlation": request.correlation_id(),
                "flags": request.flags(),
                "timeout": request.timeout(),
                "parameters": json.loads(request.parameters()),
                "outputs": sorted(request.requested_output_names()),
                "inputs": [tensor.name() for tensor in request.inputs()],
                "cpu": [tensor.is_cpu() for tensor in request.inputs()],
                "memory": str(request.preferred_memory) if hasattr(request, "preferred_memory") else None,
                "trace": request.trace().get_context(),
                "none": pb_utils.get_input_tensor_by_name(request, "NONE") is None,
            }
            told = json.dumps(self.start if ask == b"start" else seen, sort_keys=True)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([told], dtype=object))]))
        return responses
