#!/bin/bash
# test.sh - set up, then every test by tools/run_tests.py. The last line is always the count.
cd "$(dirname "$0")/.." || exit 1
echo "[set-up] what the tests need"
if ! tools/setup.sh test; then
    echo "0 passed, 1 failed"
    exit 1
fi
exec /usr/bin/python3 tools/run_tests.py "$@"
