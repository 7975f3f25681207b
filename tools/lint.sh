#!/bin/bash
# lint.sh - the slow checkers: the compiler's static analyser (preset lint), clang-tidy, cppcheck.
set -uo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh lint || exit 1
failed=0

echo "lint: gcc -fanalyzer"
tools/build.sh lint server 2>&1 | tee build/lint.log | grep -E 'warning:|error:|FAILED'
if grep -qE 'warning:|FAILED' build/lint.log; then failed=1; fi

mapfile -t sources < <(find src backends -name '*.c' | sort)
# clang-tidy does not know the analyser's option.
mkdir -p build/lint/tidy
sed 's/ -fanalyzer//' build/lint/compile_commands.json >build/lint/tidy/compile_commands.json
echo "lint: clang-tidy on ${#sources[@]} files"
printf '%s\n' "${sources[@]}" |
    xargs -P "$(nproc)" -n 8 clang-tidy --quiet -p build/lint/tidy --warnings-as-errors='*' 2>/dev/null || failed=1

echo "lint: cppcheck"
cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
    --suppress=missingInclude --suppress=incorrectStringBooleanError --suppress=preprocessorErrorDirective -I src -I include -I backends \
    -I build/lint/generated -i build "${sources[@]}" || failed=1

if [ "$failed" = 0 ]; then echo "lint: clean"; else echo "lint: FAILED" >&2; fi
exit "$failed"
