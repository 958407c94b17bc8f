"""Facts about a guest in addition to its events: tasks, maps, locations of kernel data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sysdock.dump.dump import Dump
from sysdock.itrace.qemu import Guest

_VULNERABILITIES = (
    "gather_data_sampling itlb_multihit l1tf mds meltdown mmio_stale_data reg_file_data_sampling retbleed "
    "spec_rstack_overflow spec_store_bypass spectre_v1 spectre_v2 srbds tsx_async_abort"
)


@dataclass
class Task:
    """A task as the guest's own /proc has it; `maps` is that of its process."""

    pid: int
    tgid: int
    comm: str
    maps: list[str] = field(default_factory=list)


def mitigations(guest: Guest) -> str:
    """The kernel's mitigations of flaws of the processor: `retbleed: Mitigation: ...; ...`."""
    lines = []
    for name in _VULNERABILITIES.split():
        text = (
            guest.do(f"get /sys/devices/system/cpu/vulnerabilities/{name}").decode(errors="replace").strip()
        )
        if text and text != "Not affected":
            lines.append(f"{name}: {text}")
    return "; ".join(lines)


@dataclass
class KernelTasks:
    """Tasks in the memory of the guest."""

    # The address of each: `0xffff...` by number.
    addresses: dict[int, str]
    idle: str
    # Tasks that ran and have ended, as far as their memory has not been reused.
    ended: list[tuple[str, Task]]


def kernel_tasks(guest: Guest, ran: Sequence[str] = ()) -> KernelTasks:
    """Reads it by the kernel's own symbols and types. UserError: it has none (of before Linux 6.0).

    ran: addresses of tasks that have run; what is left of those that ended is read, too.
    """
    with Dump.open(f"qmp:{guest.memory_socket}") as dump:
        tasks = dump.read("task_struct", dump.tasks(), "pid")
        addresses = {task.pid: hex(task.address) for task in tasks if task.pid is not None}
        ended = sorted({int(each, 16) for each in ran} - {int(each, 16) for each in addresses.values()})
        left = dump.read("task_struct", ended, "pid", "tgid", "comm") if ended else []
        named = [
            (hex(task.address), Task(task.pid, task.tgid, task.comm))
            for task in left
            if task.status == "ok" and task.pid and str(task.comm).isprintable()
        ]
        return KernelTasks(addresses, hex(dump.symbol("init_task")), named)


def tasks(guest: Guest) -> list[Task]:
    """All tasks of the guest."""
    return list(_tasks(guest.do("tasks").decode(errors="replace")))


def _tasks(text: str) -> Iterator[Task]:
    task = None
    for line in text.splitlines():
        if head := re.fullmatch(r"== (\d+) (\d+) (.*)", line):
            if task:
                yield task
            task = Task(int(head[1]), int(head[2]), head[3])
        elif task:
            task.maps.append(line)
    if task:
        yield task
