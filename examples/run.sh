#!/bin/bash
# run.sh NAME [ARGUMENT...] - one of the examples: install what it needs, build the server, serve its models, then its page, or run its client
# with the arguments. Ctrl-C ends everything that it started. HTTP_PORT, GRPC_PORT, METRICS_PORT and PAGE_PORT choose the ports; all of them listen on this machine alone.
#
# examples/NAME/models goes to build/examples/NAME/models, with the files that examples/NAME/files.list takes out of the packages of
# tools/packages/example-NAME.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
TOOL=example
. tools/say.sh
. tools/ports.sh
name=${1:-}
http=${HTTP_PORT:-8000} grpc=${GRPC_PORT:-8001} metrics=${METRICS_PORT:-8002} page=${PAGE_PORT:-8080}
mapfile -t known < <(find examples -mindepth 2 -maxdepth 2 -name README.md | cut -d/ -f2 | sort)
printf '%s\n' "${known[@]}" | grep -qxF -- "$name" ||
    die "EXAMPLE names '$name'; there are: ${known[*]}" "run, for instance: make example EXAMPLE=${known[0]}"
shift

here=examples/$name
ports=("HTTP_PORT=$http" "GRPC_PORT=$grpc" "METRICS_PORT=$metrics")
[ ! -d "$here/page" ] || ports+=("PAGE_PORT=$page")
ports_free "make example EXAMPLE=$name" "${ports[@]}"

addresses=(--http-address=127.0.0.1 --grpc-address=127.0.0.1 --metrics-address=127.0.0.1)
# It is what `make run` serves.
if [ "$name" = digits ]; then exec tools/run.sh "${addresses[@]}"; fi

tools/setup.sh "example-$name"
tools/build.sh release server

out=build/examples/$name
packages=build/deps/example-$name
mkdir -p build/examples
exec {lock}>"$out.lock" # held until all that is started here has ended
flock -n "$lock" || die "the example '$name' runs already" "end it with Ctrl-C where it runs; its folder is $out"
rm -rf "$out"
mkdir -p "$out"
cp -r "$here/models" "$out/models"
for model in "$out"/models/*; do mkdir -p "$model/1"; done
while read -r from to; do cp "$packages/$from" "$out/models/$to"; done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$here/files.list")

export PATH=$PWD/build/venv/bin:$PATH PYTHONPATH=$PWD/$packages PYTHONDONTWRITEBYTECODE=1
started=()
trap '[ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# answers URL LOG - wait until the process that was started last answers there.
answers() {
    until curl -sf --noproxy '*' -o /dev/null "$1"; do
        if ! kill -0 "${started[-1]}" 2>/dev/null; then
            grep -E '^E[0-9]|Error' "$2" >&2 || true
            die "it has ended before it answered at $1" "its whole log: $2"
        fi
        sleep 0.1
    done
}

build/release/bin/nereid --model-repository="$out/models" "${addresses[@]}" \
    --http-port="$http" --grpc-port="$grpc" --metrics-port="$metrics" \
    --http-cors-origin="http://localhost:$page" --http-cors-origin="http://127.0.0.1:$page" >"$out/server.log" 2>&1 &
started+=($!)
answers "http://127.0.0.1:$http/v2/health/ready" "$out/server.log"

if [ -f "$here/client.py" ]; then
    python3 "$here/client.py" --server "127.0.0.1:$grpc" --folder "$out" "$@" &
    started+=($!)
    wait "$!"
    exit
fi

mkdir -p "$out/page/$name"
cp web/live/live.css web/live/body.js web/live/tensor.js examples/page/* "$here"/page/* "$out/page/$name"
title=$(sed -n '1s/^# //p' "$here/README.md")
sed -i -e "s/@NAME@/$name/" -e "s/@TITLE@/$title/" -e "/@MAIN@/{r $here/page/main.html" -e 'd}' "$out/page/$name/index.html"
python3 -m http.server --bind 127.0.0.1 --directory "$out/page" "$page" >"$out/page.log" 2>&1 &
started+=($!)
answers "http://127.0.0.1:$page/$name/" "$out/page.log"
cat <<EOT

Ready. Open this page in a browser on this machine; Ctrl-C here ends it.

    http://localhost:$page/$name/?server=$http

EOT
wait -n "${started[@]}" || true
die "the server or the page has ended" "their logs: $out/server.log $out/page.log"
