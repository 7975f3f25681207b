#!/bin/bash
# samples.sh - write the sample repository build/models, build/models-<backend> for each backend that is there when asked for, and the
# examples build/models-examples, unless they are there and were written by the same program with the same packages.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=$(cat tools/sample_*.py tools/packages/run.lock | sha256sum | cut -c1-32)
if [ -d build/models ] && [ "$(cat build/models-examples/.stamp 2>/dev/null)" = "$stamp" ]; then exit 0; fi
echo "samples: training a small network on handwritten digits, writing build/models"
build/venv/bin/python tools/sample_repository.py build/models build/models-examples
echo "$stamp" >build/models-examples/.stamp
