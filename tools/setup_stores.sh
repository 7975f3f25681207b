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
GO_PROGRAMS=(github.com/versity/versitygw/cmd/versitygw github.com/fsouza/fake-gcs-server)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

setup_go() {
    command -v go >/dev/null || die "there is no Go on this machine" "the stores need the version that $SOURCES/go/go.mod names"
    local module=$OUT/module
    rm -rf "$module"
    cp -r "$SOURCES/go" "$module"
    (cd "$module" && quietly go env GOFLAGS=-buildvcs=false go build -mod=readonly -o "$OUT/bin/" "${GO_PROGRAMS[@]}")
}

setup_node() {
    program npm nodejs npm
    mkdir -p "$OUT/node"
    cp "$SOURCES"/node/package*.json "$OUT/node"
    quietly node npm ci --prefix "$OUT/node" --ignore-scripts --no-fund --no-audit
}

mkdir -p "$OUT/bin"
print=$(cat tools/setup_stores.sh $(find "$SOURCES" -type f | sort) | sha256sum | cut -c1-32)
if [ "$(cat "$OUT/.stamp" 2>/dev/null)" = "$print" ]; then exit 0; fi
begun=$SECONDS
setup_go
setup_node
echo "$print" >"$OUT/.stamp"
say "ready after $((SECONDS - begun)) s"
