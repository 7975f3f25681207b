#!/bin/bash
# cov.sh - build with coverage, run the C tests, print covered lines per file.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh cov
tools/build.sh cov
ctest --test-dir build/cov -j "$(nproc)" --output-on-failure
gcovr --root . --filter src/ --filter backends/ --object-directory build/cov --gcov-ignore-parse-errors
