"""Answers of a stream that waited for their turn stayed for ever when the client went away before it came.

What stays is memory: the leak checker of the instrumented build sees it when the server ends.
"""

import struct
from pathlib import Path

from harness import h2frames, metrics, rawgrpc
from harness.repository import Repository
from harness.servers import Nereid

SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "300" } }'


def test_answers_that_wait_behind_a_slow_one(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("slow", extra=SLOW)
    values = struct.pack("<2f", 1, 2)
    slow, unknown = (
        h2frames.message(
            rawgrpc.infer_request(model, [("INPUT0", "FP32", [2], values)]).SerializeToString()
        )
        for model in ("slow", "nobody")
    )
    block = h2frames.header_block(h2frames.call_headers(f"/{rawgrpc.SERVICE}/ModelStreamInfer"))
    with Nereid(repository.path, {"inline-execution": "false"}) as server:
        with h2frames.Connection(server.grpc) as connection:
            connection.send(  # at once: the ping is answered before the slow one
                h2frames.frame(h2frames.HEADERS, h2frames.END_HEADERS, 1, block)
                + h2frames.frame(h2frames.DATA, 0, 1, slow + unknown)
                + h2frames.frame(h2frames.PING, 0, 0, bytes(8))
            )
            while not (seen := connection.read()).kind == h2frames.PING or not seen.flags & h2frames.ACK:
                pass  # the messages came before the ping
            assert not connection.calls or not connection.calls[1].data, "the second answer waits"

        def answered() -> bool:
            found = metrics.scrape(server.metrics)
            kinds = ("nv_inference_request_success", "nv_inference_request_failure")
            return sum(found[kind].value(model="slow") for kind in kinds) > 0

        server.process.wait_until(answered, 60)
