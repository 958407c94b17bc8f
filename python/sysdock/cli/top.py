"""`sysdock top`."""

from __future__ import annotations

import click

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
@click.option(
    "--view",
    type=click.Choice(["process", "cgroup", "file", "device", "lock"]),
    default="process",
    show_default=True,
    help="View to show first.",
)
@click.option(
    "--interval", metavar="TIME", default="1s", show_default=True, help="Time between two updates: 500ms, 5s."
)
@click.option(
    "--sort", metavar="COLUMN", help="Column to sort by, as named in JSON. Default: the resource used most."
)
@click.option("--filter", "filter_", metavar="TEXT", help="Show only rows whose name contains this.")
@click.option("--calls", is_flag=True, help="Also count the system calls of each process.")
@click.option("--once", is_flag=True, help="Print one interval, and exit.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"]),
    help="With --once: format of the output. Default: text.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="With --once: maximum number of rows. Default: 20; all as JSON.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    view: str,
    interval: str,
    sort: str | None,
    filter_: str | None,
    calls: bool,
    once: bool,
    format_: str | None,
    limit: int | None,
) -> None:
    """Show live activity, updated each second: by process, control group, file, device or lock."""
    from sysdock import cli
    from sysdock.recording.native import become_native

    arguments = [f"--view={view}", f"--interval={interval}"]
    arguments += [f"--sort={sort}"] if sort is not None else []
    arguments += [f"--filter={filter_}"] if filter_ is not None else []
    arguments += ["--calls"] if calls else []
    arguments += ["--once"] if once else []
    arguments += [f"--format={format_}"] if format_ is not None else []
    arguments += [f"--limit={limit}"] if limit is not None else []
    ctx.exit(become_native(["top", *arguments], as_child=not cli.owns_process))
