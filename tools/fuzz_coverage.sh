#!/bin/bash
# fuzz_coverage.sh [CORPUS] - which lines of src/codec and the front doors (src/net, src/http, src/grpc) the fuzzers reach: replays fuzz/corpus, and CORPUS/<name> where
# there is one (build/fuzz/corpus is what the fuzzers have grown), in a tree built for coverage.
set -euo pipefail
cd "$(dirname "$0")/.."
grown=${1:-}
tools/setup.sh cov
tools/build.sh cov
find build/cov -name '*.gcda' -delete
for file in fuzz/fuzz_*.c; do
    name=${file#fuzz/fuzz_}
    name=${name%.c}
    folders=("fuzz/corpus/$name")
    if [ -n "$grown" ] && [ -d "$grown/$name" ]; then folders+=("$grown/$name"); fi
    "build/cov/fuzz/fuzz_$name" "${folders[@]}" >/dev/null
done
gcovr --root . --filter src/codec/ --filter src/net/ --filter src/http/ --filter src/grpc/ --object-directory build/cov --gcov-ignore-parse-errors
