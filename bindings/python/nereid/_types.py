"""Names of types that several files need."""

from collections.abc import Mapping
from typing import Any, Optional, Union

import numpy as np

Array = np.ndarray[Any, Any]
Parameter = Union[str, int, float, bool]
# What a request says besides its inputs: id, sequence, flags, priority, time-out in us, parameters.
Settings = tuple[str, Union[int, str], int, int, int, Optional[Mapping[str, Parameter]]]
# What a function gives the backend for a request: outputs, (code, message), or an iterator of them.
Result = Any
