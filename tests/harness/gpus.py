"""GPUs for servers under test: the stand-ins of CUDA's driver and of NVML (tests/cuda), or with NEREID_REAL_CUDA the driver of the machine."""

import json
import os
from pathlib import Path
from typing import Any

from . import paths

REAL = bool(os.environ.get("NEREID_REAL_CUDA"))


class Gpus:
    """What a server needs in its environment to find these devices, and what it left of them.

    devices  "MAJOR.MINOR[:MIB]", parted by commas; "" = a driver that finds none
    fail     calls of the driver that fail: "cuMemAlloc_v2:3=2" is the third, with result 2; "3+=" that and all later ones
    nvml     calls of NVML that fail
    """

    def __init__(self, folder: Path, devices: str = "8.0:256", fail: str = "", nvml: str = ""):
        self._report = folder / "cuda-report"
        self._nvml_report = folder / "nvml-report"
        self.env: dict[str, str] = {}
        if not REAL:
            self.env = {
                "LD_LIBRARY_PATH": str(paths.need(paths.BUILD / "tests" / "cuda" / "libcuda.so.1").parent),
                "NEREID_CUDA_DEVICES": devices,
                "NEREID_CUDA_FAIL": fail,
                "NEREID_CUDA_REPORT": str(self._report),
                "NEREID_NVML_FAIL": nvml,
                "NEREID_NVML_REPORT": str(self._nvml_report),
            }

    def gate(self, call: str, number: int = 1) -> Path:
        """Makes that call of the driver, or of NVML, wait until the pipe was opened for writing and closed. Before the server starts."""
        pipe = self._report.parent / "cuda-gate"
        os.mkfifo(pipe)
        self.env["NEREID_NVML_GATE" if call.startswith("nvml") else "NEREID_CUDA_GATE"] = f"{call}:{number}={pipe}"
        return pipe

    def reports(self) -> list[dict[str, Any]]:
        """One for each process that had the driver open and has ended."""
        return read_lines(self._report)

    def nvml_reports(self) -> list[dict[str, Any]]:
        """One for each process that began with NVML and has ended."""
        return read_lines(self._nvml_report)

    def calls(self, symbol: str) -> int:
        return sum(report["calls"][symbol] for report in self.reports())

    def left_nothing(self, processes: int = 1) -> None:
        """Each process gave back what it took, and did nothing that CUDA forbids."""
        if REAL:
            return
        found = self.reports()
        assert len(found) == processes, found
        for report in found:
            assert not any(report["live"].values()), report["live"]
            assert not report["wrong"], report["wrong"]
        for report in self.nvml_reports():
            assert not report["open"] and not report["wrong"], report


def read_lines(report: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []


def is_open(pid: int) -> bool:
    """Whether a process has a library of the driver's name open."""
    return "/libcuda.so" in Path(f"/proc/{pid}/maps").read_text()
