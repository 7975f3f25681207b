#!/bin/bash
# setup_stores.sh - install the stores that the tests talk to into build/stores, out of tests/51_stores/peers: versitygw (S3) and
# fake-gcs-server (GCS) are Go modules, azurite (Azure) is an npm package. All of it is pinned and checked by hash. A stamp
# remembers what was built.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
SOURCES=$ROOT/tests/51_stores/peers
OUT=$ROOT/build/stores
GO_PROGRAMS=(github.com/versity/versitygw/cmd/versitygw github.com/fsouza/fake-gcs-server)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

say() { printf 'stores: %s\n' "$*"; }

die() {
    printf 'stores: FAILED: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf 'stores:   %s\n' "$line" >&2; done
    exit 1
}

# quietly WHAT COMMAND... - run with its output in a log; show the end of it on failure.
quietly() {
    local what=$1 log=$OUT/$1.log
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        die "$what; the whole log: $log"
    }
}

setup_go() {
    command -v go >/dev/null || die "there is no Go on this machine" "the stores need the version that $SOURCES/go/go.mod names"
    local module=$OUT/module
    rm -rf "$module"
    cp -r "$SOURCES/go" "$module"
    (cd "$module" && quietly go env GOFLAGS=-buildvcs=false go build -mod=readonly -o "$OUT/bin/" "${GO_PROGRAMS[@]}")
}

setup_node() {
    if ! command -v npm >/dev/null; then
        [ "$(id -u)" = 0 ] || die "npm is missing" "run: sudo apt-get install nodejs npm"
        quietly apt-update apt-get update -q
        quietly apt-install apt-get install -q -y --no-install-recommends nodejs npm
    fi
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
