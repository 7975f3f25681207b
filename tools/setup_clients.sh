#!/bin/bash
# setup_clients.sh [NAME...] - install what is missing for the gRPC clients of other languages (cpp, go, java, node) and for
# Prometheus' reader of metrics (promlint), and KServe's client (kserve; all by default), and build them from tests/46_clients and proto/ into build/clients. Everything that is downloaded is pinned, and
# checked by hash, or comes signed from the distribution's archive. A stamp remembers what was built.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
TOOL=clients
. tools/say.sh
SOURCES=$ROOT/tests/46_clients
OUT=$ROOT/build/clients
PROTOS=(grpc_service model_config health)
PROTOC_GEN_GO=v1.36.12
PROTOC_GEN_GO_GRPC=v1.6.2
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

setup_cpp() {
    packages g++ libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc pkg-config
    local generated=$OUT/cpp/generated sources=() proto
    mkdir -p "$generated"
    for proto in "${PROTOS[@]}"; do
        quietly cpp-protoc protoc -I "$ROOT" --cpp_out="$generated" --grpc_out="$generated" \
            --plugin=protoc-gen-grpc="$(command -v grpc_cpp_plugin)" "proto/$proto.proto"
        sources+=("$generated/proto/$proto.pb.cc" "$generated/proto/$proto.grpc.pb.cc")
    done
    # shellcheck disable=SC2046
    quietly cpp-build g++ -std=c++17 -O0 -I "$generated" -o "$OUT/cpp/client" "$SOURCES/cpp/client.cc" "${sources[@]}" \
        $(pkg-config --cflags --libs grpc++ protobuf)
}

setup_go() {
    program protoc protobuf-compiler
    command -v go >/dev/null || die "there is no Go on this machine" "the client needs the version that $SOURCES/go/go.mod names"
    local module=$OUT/go/module options=() files=() proto
    rm -rf "$module"
    mkdir -p "$module"
    cp "$SOURCES"/go/* "$module"
    for proto in "${PROTOS[@]}"; do
        local package=inference
        if [ "$proto" = health ]; then package=health; fi
        files+=("proto/$proto.proto")
        options+=("--go_opt=Mproto/$proto.proto=nereid/tests/clients/go/$package"
            "--go-grpc_opt=Mproto/$proto.proto=nereid/tests/clients/go/$package")
    done
    export GOBIN=$OUT/go/bin
    quietly go-generators go install "google.golang.org/protobuf/cmd/protoc-gen-go@$PROTOC_GEN_GO"
    quietly go-generators go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$PROTOC_GEN_GO_GRPC"
    quietly go-protoc env PATH="$GOBIN:$PATH" protoc -I "$ROOT" "${options[@]}" \
        --go_out="$module" --go_opt=module=nereid/tests/clients/go \
        --go-grpc_out="$module" --go-grpc_opt=module=nereid/tests/clients/go "${files[@]}"
    (cd "$module" && quietly go-build go build -mod=readonly -o "$OUT/go/client" .)
}

setup_promlint() {
    command -v go >/dev/null || die "there is no Go on this machine" "promlint needs the version that $SOURCES/promlint/go.mod names"
    (cd "$SOURCES/promlint" && quietly promlint-build go build -mod=readonly -o "$OUT/promlint/client" .)
}

setup_java() {
    program java default-jdk-headless
    program javac default-jdk-headless
    program mvn maven
    local java=$OUT/java proto protos=()
    mkdir -p "$java/generated" "$java/classes"
    quietly java-download mvn -B -q -f "$SOURCES/java/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$java/lib"
    (cd "$java/lib" && quietly java-hashes sha256sum --check --strict "$SOURCES/java/dependencies.sha256")
    chmod +x "$java"/lib/*.exe
    for proto in "${PROTOS[@]}"; do protos+=("proto/$proto.proto"); done
    quietly java-protoc "$java"/lib/protoc-[0-9]*.exe -I "$ROOT" --java_out="$java/generated" --grpc_out="$java/generated" \
        --plugin=protoc-gen-grpc="$(echo "$java"/lib/protoc-gen-grpc-java-*.exe)" "${protos[@]}"
    mapfile -t files < <(find "$java/generated" -name '*.java')
    # The generated stubs name an annotation that left the JDK, and that only readers of the source need.
    sed -i '/^@javax.annotation.Generated(/,/)$/d' "${files[@]}"
    quietly java-build javac -nowarn -d "$java/classes" -cp "$java/lib/*" "$SOURCES/java/src/Client.java" "${files[@]}"
    printf '#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp "%s/classes:%s/lib/*" Client "$@"\n' "$java" "$java" >"$java/client"
    chmod +x "$java/client"
}

setup_node() {
    program node nodejs
    program npm npm
    local node=$OUT/node
    mkdir -p "$node"
    cp "$SOURCES"/node/package.json "$SOURCES"/node/package-lock.json "$node"
    quietly node-install npm ci --prefix "$node" --ignore-scripts --no-fund --no-audit
    printf '#!/bin/sh\nNODE_PATH="%s/node_modules" exec node "%s/node/client.js" "$@"\n' "$node" "$SOURCES" >"$node/client"
    chmod +x "$node/client"
}

setup_kserve() {
    quietly kserve-venv /usr/bin/python3 -m venv "$OUT/kserve/venv"
    quietly kserve-install "$OUT/kserve/venv/bin/pip" install -q --disable-pip-version-check --require-hashes -r tools/packages/kserve.lock
    printf '#!/bin/sh\nexec "%s/kserve/venv/bin/python" "%s/kserve/client.py" "$@"\n' "$OUT" "$SOURCES" >"$OUT/kserve/client"
    chmod +x "$OUT/kserve/client"
}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then names=(cpp go java node promlint kserve); fi
mkdir -p "$OUT"
for name in "${names[@]}"; do
    [ -d "$SOURCES/$name" ] || die "'$name' is no client" "known: cpp go java node promlint kserve"
    print=$(cat tools/setup_clients.sh tools/packages/kserve.lock proto/*.proto $(find "$SOURCES/$name" -type f | sort) | sha256sum | cut -c1-32)
    if [ -x "$OUT/$name/client" ] && [ "$(cat "$OUT/$name/.stamp" 2>/dev/null)" = "$print" ]; then continue; fi
    begun=$SECONDS
    rm -rf "${OUT:?}/$name"
    mkdir -p "$OUT/$name"
    "setup_$name"
    echo "$print" >"$OUT/$name/.stamp"
    say "$name is ready after $((SECONDS - begun)) s"
done
