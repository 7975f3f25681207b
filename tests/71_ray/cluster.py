"""A Ray cluster of two nodes on this machine, two replicas: 1,000 requests, one replica killed under load. Prints what happened as JSON.

    cluster.py REPOSITORY
"""

import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from machines import machines
from nereid.ray import Replica
from ray import serve

REQUESTS, AT_ONCE = 1000, 16


class Told(Replica):
    """Says which process has answered."""

    async def digits(self, image: np.ndarray) -> tuple[int, int]:
        return os.getpid(), int((await self.infer("digits", {"image": image}))["logits"].argmax())


def ask(handle: Any, seed: int) -> tuple[int, int] | str:
    try:
        return handle.digits.remote(np.full((1, 64), seed % 16, np.float32)).result(timeout_s=120)
    except Exception as error:  # every kind is told
        return f"{type(error).__name__}: {error}"[:200]


def spread(handle: Any) -> dict[str, Any]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda seed: ask(handle, seed), range(REQUESTS)))
    good = [each for each in answers if not isinstance(each, str)]
    by_process: dict[int, int] = {}
    for process, _ in good:
        by_process[process] = by_process.get(process, 0) + 1
    return {"by_process": by_process, "failed": [each for each in answers if isinstance(each, str)],
            "same": len({(seed % 16, each[1]) for seed, each in enumerate(answers) if not isinstance(each, str)}) <= 16}  # fmt: skip


def killed(handle: Any, victim: int) -> dict[str, Any]:
    """Kills a replica after a tenth of the requests, and goes on until another has taken its place."""
    under_way = threading.Semaphore(AT_ONCE)
    done = threading.Event()
    most_lost = AT_ONCE

    def end() -> None:
        done.wait()
        os.kill(victim, signal.SIGKILL)

    thread = threading.Thread(target=end)
    thread.start()
    answers: list[tuple[int, int] | str] = []

    def one(seed: int) -> None:
        with under_way:
            answers.append(ask(handle, seed))
        if len(answers) == REQUESTS // 10:
            done.set()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, range(REQUESTS)))
    thread.join()
    failed = [each for each in answers if isinstance(each, str)]
    replaced, until = set(), time.monotonic() + 180
    while len(replaced) < 2 and time.monotonic() < until:
        replaced = {each[0] for each in (ask(handle, 1) for _ in range(32)) if not isinstance(each, str)}
    return {"failed": failed, "most": most_lost, "replaced": victim not in replaced and len(replaced) == 2}


def main() -> None:
    with machines(2, 2):
        deployment = serve.deployment(Told, num_replicas=2, max_ongoing_requests=64, health_check_period_s=1)
        handle = serve.run(deployment.bind(model_repository=sys.argv[1]), route_prefix=None)
        told = {"spread": spread(handle)}
        told["killed"] = killed(handle, next(iter(told["spread"]["by_process"])))
        print(json.dumps(told))


if __name__ == "__main__":
    main()
