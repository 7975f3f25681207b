#!/bin/bash
# run.sh - build, write the sample repository, serve it in the foreground; a line says what to type
# once the server is ready. HTTP_PORT, GRPC_PORT and METRICS_PORT choose the ports; BACKENDS names further
# backends, whose samples are served besides: those of tools/packages/backends.list, or all of that list; `python` serves the models in
# Python with Triton's compiled backend instead of ours. Arguments are further options of the server.
set -euo pipefail
cd "$(dirname "$0")/.."
TOOL=run
. tools/say.sh
. tools/ports.sh
. tools/backends.sh
http=${HTTP_PORT:-8000} grpc=${GRPC_PORT:-8001} metrics=${METRICS_PORT:-8002}

tools/build.sh release server
tools/samples.sh
repositories=(--model-repository=build/models --model-repository=build/models-caffe2 --model-repository=tools/python_models)
options=()
asked=$(asked_backends python)
for backend in $asked; do
    if [ "$backend" != python ]; then
        repositories+=(--model-repository="build/models-$backend")
        continue
    fi
    tools/python_backend.sh build/backends-compiled
    options+=(--backend-directory=build/backends-compiled)
done
PATH=$PWD/build/venv/bin:$PATH # the models' Python

ports_free "make run" "HTTP_PORT=$http" "GRPC_PORT=$grpc" "METRICS_PORT=$metrics" # another server there would be taken for this one

# ready - succeeds if the server answers 200 to the readiness request.
ready() {
    local status
    exec 3<>"/dev/tcp/127.0.0.1/$http" || return 1
    printf 'GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
    read -r -t 5 _ status _ <&3 || status=none
    exec 3>&-
    [ "$status" = 200 ]
}

announce() {
    until (ready) 2>/dev/null; do
        kill -0 $$ 2>/dev/null || return 0
        sleep 0.05
    done
    kill -0 $$ 2>/dev/null || return 0
    cat <<EOT

Ready: HTTP on port $http, gRPC on $grpc, metrics on $metrics; Ctrl-C stops the server.
To classify a handwritten digit, type in another terminal, in this folder:

    curl -s localhost:$http/v2/models/digits/infer -d @build/models-examples/digit.json

Or open http://localhost:$http/ in a browser, choose digits, and draw one.

EOT
    echo "    curl -s localhost:$http/v2/models/digit_words/infer -d @tools/python_models/digit_words/example.json    (a model in Python)"
    echo
}

# Detached: exec makes this process the server, which must not have a child that it did not start.
(announce &)
exec build/release/bin/nereid "${repositories[@]}" "${options[@]}" \
    --http-port="$http" --grpc-port="$grpc" --metrics-port="$metrics" "$@"
