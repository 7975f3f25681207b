#!/bin/bash
# install.sh PREFIX - install the build tree build/release under PREFIX, with the backends that BACKENDS names.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/backends.sh
umask 022 # what root installs is for every user
asked=$(asked_backends) || exit 1

cmake --install build/release --prefix "$1" --strip
for backend in $asked; do
    cmake --install build/release --prefix "$1" --strip --component "backend_$backend"
done
