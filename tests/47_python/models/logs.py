"""Logs at every level, from initialize and from execute."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        pb_utils.Logger.log_info("begins: \u00fc \u4e16")

    def execute(self, requests):
        logger = pb_utils.Logger
        logger.log("plain words")
        logger.log("plain error words", logger.ERROR)
        logger.log_info("info words")
        logger.log_warn("warning words")
        logger.log_error("error words")
        logger.log_verbose("verbose words")
        told = np.array(["logged"], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", told)]) for _ in requests]

    def finalize(self):
        pb_utils.Logger.log_warn("ends")
