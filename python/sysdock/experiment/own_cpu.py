"""CPU time that is used for a run, though not by its processes: by the kernel's threads and by servers.

Kernel threads write back what a run wrote, run the journal and the loop device. Without them, a program that
writes with `data=journal` would be seen as disturbed by others, which used 15 % of two CPUs meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_NS_OF_A_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# PF_KTHREAD of <linux/sched.h>.
_IS_KERNEL = 0x00200000
# Places in /proc/PID/stat after the name, which may hold anything: proc(5).
_PARENT, _FLAGS, _OWN, _WAITED_FOR, _START = 1, 6, slice(11, 13), slice(13, 15), 19


@dataclass(frozen=True)
class _Used:
    parent: int
    is_kernel: bool
    own_ticks: int
    waited_for_ticks: int
    start: int


@dataclass(frozen=True)
class OwnCpu:
    """CPU time so far, in ticks: of each kernel thread (by number and start), and of servers together."""

    kernel: dict[tuple[int, int], int]
    servers: int

    def since(self, before: OwnCpu) -> int:
        """CPU time used since then [ns]; that of kernel threads that ended meanwhile is unknown."""
        kernel = sum(ticks - before.kernel.get(thread, 0) for thread, ticks in self.kernel.items())
        return (kernel + max(0, self.servers - before.servers)) * _NS_OF_A_TICK


def own_cpu(servers: Iterable[int]) -> OwnCpu:
    """Reads it of all kernel threads, and of processes (by number) with all below them.

    Of a process that ended it counts if its parent waited for it.
    """
    used = {int(name): found for name in os.listdir("/proc") if name.isdigit() and (found := _used(name))}
    below: dict[int, list[int]] = {}
    for pid, each in used.items():
        below.setdefault(each.parent, []).append(pid)
    kernel = {(pid, each.start): each.own_ticks for pid, each in used.items() if each.is_kernel}
    ticks = 0
    left = [pid for pid in servers if pid in used]
    while left:
        pid = left.pop()
        ticks += used[pid].own_ticks + used[pid].waited_for_ticks
        left += below.get(pid, [])
    return OwnCpu(kernel, ticks)


def _used(name: str) -> _Used | None:
    """None: it has ended since."""
    try:
        words = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    is_kernel = bool(int(words[_FLAGS]) & _IS_KERNEL)
    own, waited_for = sum(map(int, words[_OWN])), sum(map(int, words[_WAITED_FOR]))
    return _Used(int(words[_PARENT]), is_kernel, own, waited_for, int(words[_START]))
