"""auto_complete_config returns what is no configuration."""


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        return "nothing"

    def execute(self, requests):
        return None
