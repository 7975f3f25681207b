"""Has nothing to do, and imports nothing."""


class TritonPythonModel:
    def initialize(self, args):
        pass

    def execute(self, requests):
        return []
