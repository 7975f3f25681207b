"""Fails in auto_complete_config."""


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        raise RuntimeError("this auto_complete_config fails")

    def execute(self, requests):
        return None
