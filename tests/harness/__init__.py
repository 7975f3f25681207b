"""Servers, repositories and raw clients for the Python tests and the benchmark."""
