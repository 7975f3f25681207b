#!/bin/bash
# fuzz.sh [NAME...] - run the fuzzers (all, or those named) for FUZZ_SECONDS each. New inputs go to
# build/fuzz/corpus/<name>; an input that breaks something is kept under build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
tools/setup.sh fuzz
tools/build.sh fuzz

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for file in fuzz/fuzz_*.c; do
        [ -f "$file" ] || continue
        name=${file#fuzz/fuzz_}
        names+=("${name%.c}")
    done
fi
[ ${#names[@]} -gt 0 ] || { echo "fuzz: no fuzzer found under fuzz/" >&2; exit 1; }

failed=0
mkdir -p build/fuzz/found
for name in "${names[@]}"; do
    echo "fuzz: $name for $seconds s"
    mkdir -p "build/fuzz/corpus/$name"
    seeds=()
    if [ -d "fuzz/corpus/$name" ]; then seeds=("fuzz/corpus/$name"); fi
    "build/fuzz/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 \
        -print_final_stats=1 -artifact_prefix="build/fuzz/found/$name-" \
        "build/fuzz/corpus/$name" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1 || {
        failed=$((failed + 1))
        tail -n 40 "build/fuzz/$name.log"
        echo "fuzz: $name FAILED; the input lies under build/fuzz/found"
    }
done
echo "fuzz: ${#names[@]} fuzzers, $failed failed"
[ "$failed" = 0 ]
