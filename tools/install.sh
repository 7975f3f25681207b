#!/bin/bash
# install.sh PREFIX - install the build tree build/release under PREFIX, with the backends that BACKENDS names.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/backends.sh
if [ "${1:0:1}" != / ]; then # CMake would take a place of its own
    echo "FAILED: PREFIX: expected a path that begins with /, found '$1'" >&2
    exit 1
fi
umask 022 # what root installs is for every user
asked=$(asked_backends) || exit 1

cmake --install build/release --prefix "$1" --strip
for backend in $asked; do
    cmake --install build/release --prefix "$1" --strip --component "backend_$backend"
done
