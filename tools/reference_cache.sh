#!/bin/bash
# reference_cache.sh - prepare the reference's local cache from the nvidia-pytriton package in build/venv, for the tests.
#
#   build/reference-cache/local/libtritoncache_local.so
#
# The library's NEEDED entry for its own server library, whose name carries a hash, is renamed to libtritonserver.so; the run path
# points at the libraries of the package. The file in the package stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
TOOL="reference cache"
. tools/say.sh
OUT=build/reference-cache

command -v patchelf >/dev/null || die "patchelf is missing; run tools/setup.sh test"
site=$(build/venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
original=$site/pytriton/tritonserver/caches/local/libtritoncache_local.so
[ -f "$original" ] || die "the package nvidia-pytriton is not in build/venv; run tools/setup.sh test"

stamp=$(cat tools/reference_cache.sh "$original" | sha256sum | cut -c1-32)-$ROOT
if [ "$(cat "$OUT/.stamp" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$OUT"
    mkdir -p "$OUT/local"
    library=$OUT/local/libtritoncache_local.so
    cp "$original" "$library"
    needed=$(patchelf --print-needed "$library" | grep '^libtritonserver') || die "$library needs no libtritonserver"
    patchelf --replace-needed "$needed" libtritonserver.so "$library"
    # RPATH, not RUNPATH: the libraries below it need it too.
    patchelf --force-rpath --set-rpath "$site/nvidia_pytriton.libs" "$library"
    echo "$stamp" >"$OUT/.stamp"
fi
