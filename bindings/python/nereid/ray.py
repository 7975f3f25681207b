"""Replicas of Ray Serve: many machines, each with a server of its own that forms batches.

    from ray import serve
    digits = serve.deployment(nereid.ray.Replica, num_replicas=2).bind(model_repository="models")
    handle = serve.run(digits)
    outputs = handle.infer.remote("digits", {"image": image}).result()

Nothing of Ray is imported here: Ray makes the replicas, spreads requests over them, and replaces one that dies or is not healthy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._functions import Function
from ._model import Model
from ._server import Server
from ._types import Array

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

PENDING = re.compile(r"^nv_inference_pending_request_count\{[^}]*\} (\d+)", re.MULTILINE)


class Replica:
    """A server asked through Ray. It has no ports, but for that of its metrics on this machine, which the system chooses.

    functions, options  as those of Server
    queued              requests that should wait in the queues of a replica, for autoscaling by by_queue
    """

    def __init__(self, *functions: Function, queued: float = 16, **options: Unpack[Options]):
        closed: dict[str, Any] = {"allow_http": False, "allow_grpc": False, "metrics_address": "127.0.0.1", "metrics_port": 0}
        self._queued = queued
        self._models: dict[str, Model] = {}
        self._server = Server(*functions, **{**closed, **options}).start()

    async def infer(self, model: str, inputs: Mapping[str, Any], **asking: Any) -> dict[str, Array]:
        """A request; requests that wait together become a batch, as the model's configuration says. `asking` is that of Model.asking."""
        found = self._models.get(model)
        if found is None:
            found = self._models[model] = self._server.model(model)
        return await (found.asking(**asking) if asking else found).infer_async(inputs)

    def check_health(self) -> None:
        """Ray asks again and again, and replaces a replica that raises."""
        if not self._server.ready():
            raise RuntimeError("the server of this replica is not ready")

    def record_autoscaling_stats(self) -> dict[str, float]:
        """How many times as many requests wait in the queues as should."""
        return {"queue": sum(map(int, PENDING.findall(self._server.metrics()))) / self._queued}

    def __del__(self) -> None:
        if server := getattr(self, "_server", None):
            server.stop()


def by_queue(context: Any) -> tuple[int, dict[str, Any]]:
    """An autoscaling policy of Ray: as many replicas as what waits in all queues is times what should wait in one; one less when
    next to nothing waits.

    autoscaling_config={"min_replicas": 1, "max_replicas": 8, "policy": {"policy_function": "nereid.ray:by_queue"}}
    """
    waiting = sum((context.aggregated_metrics or {}).get("queue", {}).values())
    now = context.current_num_replicas
    wanted = max(now, math.ceil(waiting)) if waiting >= 1 else now - (waiting < 0.25)
    return max(context.capacity_adjusted_min_replicas, min(context.capacity_adjusted_max_replicas, wanted)), {}
