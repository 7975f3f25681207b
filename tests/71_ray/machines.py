"""A Ray cluster whose machines are processes of this one."""

from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray import serve
from ray.cluster_utils import Cluster


@contextmanager
def machines(*processors: int) -> Iterator[None]:
    """One machine for each number of processors; this program speaks to the first."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": processors[0], "include_dashboard": False})
    for each in processors[1:]:
        cluster.add_node(num_cpus=each)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield
    finally:
        serve.shutdown()
        ray.shutdown()
        cluster.shutdown()
