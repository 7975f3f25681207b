"""What the package has for Ray Serve, without Ray; with it: tests/71_ray."""

from pathlib import Path

import pytest
from conftest import Script


@pytest.mark.onnx
def test_replica_and_policy(script: Script, digits: Path) -> None:
    told = script("""
        import asyncio, threading, types
        from nereid import ray

        gate, begun = threading.Event(), threading.Event()

        @nereid.model(inputs={"x": (np.float32, [1])}, outputs={"y": (np.float32, [1])})
        def slow(x):
            begun.set()
            gate.wait()
            return {"y": x}

        async def work():
            replica = ray.Replica(slow, queued=2, model_repository=sys.argv[1])
            replica.check_health()
            logits = (await replica.infer("digits", {"image": np.zeros((1, 64), np.float32)}))["logits"]
            asked = [asyncio.create_task(replica.infer("slow", {"x": [each]}, timeout=60)) for each in range(5)]
            while not begun.is_set() or replica.record_autoscaling_stats()["queue"] < 2:
                await replica.infer("digits", {"image": np.zeros((1, 64), np.float32)})
            stats = replica.record_autoscaling_stats()
            gate.set()
            await asyncio.gather(*asked)
            return logits.shape, stats["queue"], replica.record_autoscaling_stats()["queue"]

        def wanted(now, *queues):
            return ray.by_queue(types.SimpleNamespace(
                aggregated_metrics={"queue": dict(enumerate(queues))}, current_num_replicas=now,
                capacity_adjusted_min_replicas=1, capacity_adjusted_max_replicas=6))[0]

        told = [*asyncio.run(work()), [wanted(1, 0), wanted(3, 0, 0.1, 0), wanted(2, 0.5, 0.2), wanted(2, 1.5, 1.6), wanted(2, 9, 9), wanted(2, 1, 0.5)]]
    """, digits)
    assert told == [[1, 10], 2.0, 0.0, [1, 2, 2, 4, 6, 2]]
