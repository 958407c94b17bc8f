"""`sysdock top`."""

from __future__ import annotations

from typing import Any

import click

from sysdock.cli.native_options import become, native_options

_EPILOG = """Example:

\b
  sysdock top                                  processes; q ends it
  sysdock top --view file                      which files are read and written
  sysdock top --view lock --filter i_rwsem
  sysdock top --once --interval 5s --view device --format json

Keys: p process, c cgroup, f file, d device, l lock, s or < > sort key, / filter,
y system calls by process, space pause, q quit.

The views process, cgroup and device cost other processes nothing. While it is shown, the view file adds 0.1
us to each system call of the machine, and 0.4 us to reads and writes of files; `--calls` adds 0.3 us to each
call; the view lock adds some microseconds to each wait for a kernel lock. These three need CAP_BPF and
CAP_PERFMON (root has them).
"""


@click.command("top", epilog=_EPILOG)
@native_options("top")
def command(given: dict[str, Any]) -> None:
    """Show live activity, updated each second: by process, control group, file, device or lock."""
    become("top", given)
