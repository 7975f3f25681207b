#!/bin/bash
# python_backend.sh - prepare the reference's python backend from the nvidia-pytriton package in build/venv.
#
#   build/python-backend/served     for this server: the library's NEEDED entry for its own server library, whose name carries a
#                                   hash, is renamed to libtritonserver.so
#   build/python-backend/reference  the same files for the reference server, that entry as it was
#
# Each holds python/ with the backend, its Python module and the stub of the Python that made build/venv. The run paths point at the
# libraries of the package. With an argument, that becomes a directory of backends: the first, and links to what build/release has besides.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
TOOL="python backend"
. tools/say.sh
OUT=build/python-backend

command -v patchelf >/dev/null || die "patchelf is missing; run tools/setup.sh python"
site=$(build/venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
version=$(build/venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
package=$site/pytriton/tritonserver
stub=$package/python_backend_stubs/$version/triton_python_backend_stub
[ -d "$package/backends/python" ] || die "the package nvidia-pytriton is not in build/venv; run tools/setup.sh python"
[ -f "$stub" ] || die "nvidia-pytriton has no stub for Python $version: $stub"

# prepare PLACE - the backend's files in PLACE/python, able to find the package's libraries from there.
prepare() {
    local folder=$1/python file
    mkdir -p "$folder"
    cp "$package/backends/python/libtriton_python.so" "$package/backends/python/triton_python_backend_utils.py" "$stub" "$folder"
    chmod +x "$folder/triton_python_backend_stub"
    for file in libtriton_python.so triton_python_backend_stub; do
        # RPATH, not RUNPATH: the libraries below need it too.
        patchelf --force-rpath --set-rpath "$site/nvidia_pytriton.libs" "$folder/$file"
    done
}

stamp=$(cat tools/python_backend.sh "$stub" "$package/backends/python/libtriton_python.so" | sha256sum | cut -c1-32)-$ROOT
if [ "$(cat "$OUT/.stamp" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$OUT"
    prepare "$OUT/served"
    prepare "$OUT/reference"
    library=$OUT/served/python/libtriton_python.so
    needed=$(patchelf --print-needed "$library" | grep '^libtritonserver') || die "$library needs no libtritonserver"
    patchelf --replace-needed "$needed" libtritonserver.so "$library"
    echo "$stamp" >"$OUT/.stamp"
fi
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    [ ! "$1" -ef build/release/backends ] || die "$1 has our own python backend" "name another directory, which becomes one of backends"
    for backend in "$ROOT"/build/release/backends/*/; do ln -sfn "${backend%/}" "$1/$(basename "$backend")"; done
    ln -sfn "$ROOT/$OUT/served/python" "$1/python"
fi
