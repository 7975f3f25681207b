#!/bin/bash
# setup_ray.sh - make the Python environment build/ray with Ray Serve, for tests/71_ray: 490 MB, so only `make test-long` calls this. Pinned
# by tools/packages/ray.lock; a second call returns at once.
set -euo pipefail
cd "$(dirname "$0")/.."
TOOL=setup_ray
. tools/say.sh

stamp=build/.setup/ray.stamp
print=$(cat tools/setup_ray.sh tools/packages/ray.lock | sha256sum | cut -c1-32)
if [ "$(cat "$stamp" 2>/dev/null)" = "$print" ] && [ -x build/ray/bin/python ]; then exit 0; fi
rm -f "$stamp"
OUT=build/.setup
mkdir -p "$OUT"
rm -rf build/ray
quietly ray-venv /usr/bin/python3 -m venv build/ray
quietly ray-install build/ray/bin/pip install -q --disable-pip-version-check --only-binary :all: --require-hashes -r tools/packages/ray.lock
echo "$print" >"$stamp"
say "Ray is ready in build/ray"
