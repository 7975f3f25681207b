#!/bin/bash
# build.sh PRESET [TARGET...] - install what building needs, and the runtimes of the backends that BACKENDS names, configure the preset
# if it is not configured yet, build the targets (all by default).
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift

. tools/backends.sh
asked=$(asked_backends python) || exit 1
# shellcheck disable=SC2086
tools/setup.sh run $asked
tree=build/$preset
# What examples bring is not built upon.
stamps=$(find build/.setup -name '*.stamp' ! -name 'example-*' | sort)
# shellcheck disable=SC2086
stamp=$(cat CMakePresets.json $stamps | sha256sum | cut -c1-32)
if [ ! -f "$tree/build.ninja" ] || [ "$(cat "$tree/.configured" 2>/dev/null)" != "$stamp" ]; then
    echo "build: configuring $tree"
    if ! cmake --preset "$preset" >"build/.setup/configure-$preset.log" 2>&1; then
        cat "build/.setup/configure-$preset.log" >&2
        echo "build: FAILED: configuring $tree" >&2
        exit 1
    fi
    echo "$stamp" >"$tree/.configured"
fi
quiet=()
if [ ! -t 1 ]; then quiet=(--quiet); fi
if ! ninja "${quiet[@]}" -C "$tree" "$@"; then
    echo "build: FAILED: $tree; the compiler's messages are above" >&2
    exit 1
fi
