"""Memory of processes that are measured."""

from pathlib import Path


def peak_bytes(pid: int) -> int:
    """The most memory that a process has ever had."""
    return _memory(pid, "VmHWM")


def resident_bytes(pid: int) -> int:
    """The memory that a process has now."""
    return _memory(pid, "VmRSS")


def _memory(pid: int, what: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.partition(f"{what}:")[2].split()[0])
