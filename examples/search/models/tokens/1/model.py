"""Cuts sentences into word pieces and gives the number of each. Shorter sentences are padded to the longest of their request."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer

MOST = 128  # pieces of a sentence; the rest is cut off


class TritonPythonModel:
    def initialize(self, args):
        file = Path(args["model_repository"], args["model_version"], "tokenizer.json")
        self.tokenizer = Tokenizer.from_file(str(file))
        self.tokenizer.enable_truncation(MOST)
        self.tokenizer.enable_padding()

    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()) for request in requests]

    def answer(self, texts):
        found = self.tokenizer.encode_batch([text.decode("utf-8", "replace") for text in texts[:, 0]])
        numbers = {
            "input_ids": [each.ids for each in found],
            "attention_mask": [each.attention_mask for each in found],
            "token_type_ids": [each.type_ids for each in found],
        }
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, np.array(rows, np.int64)) for name, rows in numbers.items()])
