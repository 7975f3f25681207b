#!/bin/bash
# setup_stores.sh - install the stores that the tests talk to into build/stores, out of tests/51_stores/peers: versitygw (S3) and
# fake-gcs-server (GCS) are Go modules, azurite (Azure) is an npm package. All of it is pinned and checked by hash. A stamp
# remembers what was built.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
TOOL=stores
. tools/say.sh
SOURCES=$ROOT/tests/51_stores/peers
OUT=$ROOT/build/stores
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

setup_go() { go_programs "$SOURCES/go" github.com/versity/versitygw/cmd/versitygw github.com/fsouza/fake-gcs-server; }

setup_node() {
    program npm nodejs npm
    mkdir -p "$OUT/node"
    cp "$SOURCES"/node/package*.json "$OUT/node"
    quietly node npm ci --prefix "$OUT/node" --ignore-scripts --no-fund --no-audit
}

build_once tools/setup_stores.sh "$SOURCES" setup_go setup_node
