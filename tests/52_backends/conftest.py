"""Runtimes under sanitizers."""

import os
from pathlib import Path

from harness import paths

if paths.BUILD != paths.RELEASE:
    os.environ["TBB_ENABLE_SANITIZERS"] = "1"  # oneTBB, in OpenVINO, opens libraries in a way that they refuse
    # Threads of theirs that end last find what the sanitizer keeps of thread-local memory gone already.
    os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "intercept_tls_get_addr=0"]))
    leaks = f"suppressions={Path(__file__).with_name('leaks.supp')}:print_suppressions=0"
    os.environ["LSAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("LSAN_OPTIONS"), leaks]))

# Its tests are run by hand, with TensorRT's headers.
collect_ignore = [] if (paths.BUILD / "backends" / "tensorrt").exists() else ["test_tensorrt_on_gpus.py"]
