#!/bin/bash
# bench.sh - install what the benchmark needs, build, measure (tests/90_bench/bench.py).
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh bench
tools/build.sh release server bench_floor_http bench_floor_grpc
tools/samples.sh
exec build/venv/bin/python tests/90_bench/bench.py "$@"
