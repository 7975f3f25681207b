"""What goes wrong, with the status code of the server."""

import enum


class Code(enum.IntEnum):
    """The status codes of the C API (TRITONSERVER_Error_Code)."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class Error(Exception):
    """An error of the server or of a model.

    code  says of what kind. A function that is served raises an Error to answer its client with this code.
    """

    def __init__(self, message: str, code: int = Code.INTERNAL):
        super().__init__(message)
        self.code = Code(code)
