"""Servers, repositories and raw clients for the Python tests and the benchmark."""

import os

# gRPC would stop its threads before each fork, and has been seen to wait for one of them without end. What is forked here only executes
# another program.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
