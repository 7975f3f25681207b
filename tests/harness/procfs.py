"""What a process used, read from the kernel."""

import contextlib
import os
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of the process, the ended ones included, in ns."""
    process_clock = (~pid << 3) | 2
    return time.clock_gettime_ns(process_clock)


def cpu_of_ended_ns(pid: int) -> int:
    """CPU time of the processes that it started and waited for, to the kernel's tick."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def faults(pid: int) -> int:
    """How often the process met a page that it did not have yet, without reading a file for it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[7])


def waits(pid: int) -> dict[str, float]:
    """For how many seconds each thread that the process has now was ready and had no processor."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    return found


def _waits_since(before: dict[str, float], now: dict[str, float]) -> list[float]:
    """What each thread waited between two looks; of those that have ended meanwhile nothing is known."""
    return [max(0.0, seconds - before.get(thread, 0.0)) for thread, seconds in now.items()]


def waited_since(before: dict[str, float], now: dict[str, float]) -> float:
    """What threads waited between two looks, in all."""
    return sum(_waits_since(before, now))


def longest_wait_since(before: dict[str, float], now: dict[str, float]) -> float:
    """The same, of that thread which waited for the longest time."""
    return max(_waits_since(before, now), default=0.0)


def longest_wait_seconds(pid: int) -> float:
    """How long that thread of the process waited, since it began, which waited for the longest time."""
    return max(waits(pid).values(), default=0.0)


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def all_sleep(pid: int) -> bool:
    """No thread of the process and of its children runs or waits for a processor. Looked at twice: a child may wake its parent between two looks."""
    return all(_threads_sleep(pid) and all(map(_sleeps_or_is_gone, children(pid))) for _ in range(2))


def _threads_sleep(pid: int) -> bool:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            if (task / "stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
                return False
    return True


def _sleeps_or_is_gone(pid: int) -> bool:
    try:
        return _threads_sleep(pid)
    except (FileNotFoundError, ProcessLookupError):
        return True


def is_pending(pid: int, signal: int) -> bool:
    """The signal was sent to the process, which has not taken it yet."""
    (told,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("ShdPnd:")]
    return bool(int(told.split()[1], 16) >> (signal - 1) & 1)


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def anonymous_bytes(pid: int, also: tuple[str, ...] = ()) -> int:
    """Of rss_bytes what is no file: heaps, stacks, buffers; and what `also` names, RssShmem for shared memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon", *also)))


def rss_bytes_outside(pid: int, low: int, high: int) -> int:
    """As rss_bytes, without the mappings that lie in [low, high)."""
    return sum(rss for begin, rss in rss_of_mappings(Path(f"/proc/{pid}/smaps").read_text()).items() if not low <= begin < high)


def rss_of_mappings(smaps: str) -> dict[int, int]:
    """Bytes by the address at which a mapping begins. The kernel writes a mapping twice when it grows while it is read."""
    found, begin = {}, 0
    for line in smaps.splitlines():
        first = line.split(None, 1)[0]
        if not first.endswith(":"):
            begin = int(first.split("-")[0], 16)
        elif first == "Rss:":
            found[begin] = int(line.split()[1]) * 1024
    return found


def names_of_threads(pid: int) -> list[str]:
    names = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    return names


def processes() -> Iterator[tuple[int, list[str]]]:
    """The number of each process, and what stands in its stat behind the name: state, parent, group and so on."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            yield int(entry.name), (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue


def has_ended(pid: int) -> bool:
    """Also if nobody has waited for it yet."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    over = bool(poller.poll(0))
    os.close(fd)
    return over


def children(pid: int) -> list[int]:
    """By what they say of their parent: lists of threads and of their children change while they are read."""
    return [child for child, (_, parent, *_) in processes() if int(parent) == pid]


def links(pid: int) -> list[str]:
    """What the descriptors of a process lead to."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:  # it has just been closed
            continue
    return found


def sockets(pid: int) -> int:
    return sum(link.startswith("socket:") for link in links(pid))


_ESTABLISHED, _LISTENING = "01", "0A"


def unread(port: int) -> int:
    """Bytes on their way to a local TCP port that its connections did not read yet, and connections that nobody has accepted."""
    left = 0
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, peer, state, queues = row.split()[:5]
        sent, received = (int(queue, 16) for queue in queues.split(":"))
        if int(local.split(":")[1], 16) == port and state in (_ESTABLISHED, _LISTENING):
            left += received
        elif int(peer.split(":")[1], 16) == port and state == _ESTABLISHED:
            left += sent
    return left


@dataclass(frozen=True)
class Memory:
    rss: int
    pss: int
    peak: int


def memory(pid: int) -> Memory:
    rows = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        key, value = line.split(":")
        rows[key] = int(value.split()[0]) * 1024
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return Memory(rows["Rss"], rows["Pss"], int(peak.split()[1]) * 1024)


@dataclass(frozen=True)
class MachineTime:
    """Seconds since boot, summed over the processors."""

    busy: float
    steal: float

    def __sub__(self, old: "MachineTime") -> "MachineTime":
        return MachineTime(self.busy - old.busy, self.steal - old.steal)


def machine_time() -> MachineTime:
    first = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in first[:8])
    tick = os.sysconf("SC_CLK_TCK")
    return MachineTime((user + nice + system + irq + softirq) / tick, steal / tick)
