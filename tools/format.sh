#!/bin/bash
# format.sh [--check] - clang-format over all C files, and the C++ of backends: in place, or with --check only list the files that differ.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(find src include backends bindings caches modules repoagents tests fuzz cmake \( -name '*.[ch]' -o -path 'backends/*.cc' \) 2>/dev/null | sort)
if [ "${1:-}" = --check ]; then
    clang-format --dry-run --Werror "${files[@]}"
else
    clang-format -i "${files[@]}"
fi
