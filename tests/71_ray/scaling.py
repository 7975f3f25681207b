"""Autoscaling by the queues of the servers: a Ray cluster whose only replica is held up while requests wait, until Ray has made three of it;
then all are answered, those that waited in batches, and Ray takes two away. Prints what happened as JSON.

    scaling.py FIFO     the gate: who opens it for reading waits until somebody has it open for writing
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import nereid
import numpy as np
from machines import machines
from nereid.ray import Replica
from ray import serve

MOST, WAITING, MOST_ROWS = 3, 40, 8
SECONDS = 300  # until Ray has done what it should; it does so within a few


class Held(Replica):
    """Answers when the gate is open: each request with its number and the size of its batch."""

    def __init__(self, gate: str, **options: Any):
        @nereid.batch(inputs={"x": (np.int32, [1])}, outputs={"y": (np.int32, [2])}, max_batch_size=MOST_ROWS)
        def held(x: np.ndarray) -> dict[str, np.ndarray]:
            os.close(os.open(gate, os.O_RDONLY))
            return {"y": np.concatenate([x, np.full_like(x, len(x))], axis=1)}

        super().__init__(held, **options)

    async def ask(self, number: int) -> list[int]:
        return (await self.infer("held", {"x": np.array([[number]], np.int32)}))["y"][0].tolist()


def running() -> int:
    """As Ray says."""
    deployments = serve.status().applications["default"].deployments
    return dict(deployments["Held"].replica_states).get("RUNNING", 0)


def until(count: int) -> list[int]:
    """The numbers of replicas that were seen on the way to this one."""
    seen, end = [running()], time.monotonic() + SECONDS
    while seen[-1] != count and time.monotonic() < end:
        now = running()
        seen += [now] if now != seen[-1] else []
    return seen


def main() -> None:
    with machines(4):
        deployment = serve.deployment(
            Held,
            max_ongoing_requests=4 * WAITING,
            autoscaling_config={
                "min_replicas": 1, "max_replicas": MOST, "initial_replicas": 1, "upscale_delay_s": 0, "downscale_delay_s": 0,
                "look_back_period_s": 1,
                "policy": {"policy_function": "nereid.ray:by_queue"},
            },
        )  # fmt: skip
        handle: Any = serve.run(deployment.bind(sys.argv[1], queued=4), route_prefix=None)
        told: dict[str, Any] = {"first": running()}
        with ThreadPoolExecutor(WAITING) as pool:
            asked = [pool.submit(lambda i: handle.ask.remote(i).result(timeout_s=SECONDS), i) for i in range(WAITING)]
            told["grows"] = until(MOST)
            gate = os.open(sys.argv[1], os.O_RDWR)
            answers = [each.result() for each in asked]
        told["right"] = [number for number, _ in answers] == list(range(WAITING))
        told["batches"] = sorted({rows for _, rows in answers})
        told["shrinks"] = until(1)
        told["last"] = handle.ask.remote(7).result(timeout_s=SECONDS)[0]
        os.close(gate)
        print(json.dumps(told))


if __name__ == "__main__":
    main()
