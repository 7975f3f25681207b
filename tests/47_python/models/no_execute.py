"""A model without execute."""


class TritonPythonModel:
    def initialize(self, args):
        self.args = args
