"""Runtimes under sanitizers."""

import os

from harness import paths

if paths.BUILD != paths.RELEASE:
    os.environ["TBB_ENABLE_SANITIZERS"] = "1"  # oneTBB, in OpenVINO, opens libraries in a way that they refuse
