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

The views process, cgroup and device cost other processes nothing. While it is shown, the view file lengthens
each system call of the machine by 0.1 us, and reads and writes of files by 0.4 us; `--calls` lengthens each
by 0.3 us; the view lock lengthens each wait for a lock of the kernel by some microseconds. These three need
CAP_BPF and CAP_PERFMON (root has them).
"""


@click.command("top", epilog=_EPILOG)
@click.option(
    "--view",
    type=click.Choice(["process", "cgroup", "file", "device", "lock"]),
    default="process",
    show_default=True,
    help="What to show first.",
)
@click.option(
    "--interval", metavar="TIME", default="1s", show_default=True, help="Between two readings: 500ms, 5s."
)
@click.option("--sort", metavar="COLUMN", help="Sort by it, as JSON names it. Default: what was used most.")
@click.option("--filter", "filter_", metavar="TEXT", help="Only rows with this in a name.")
@click.option("--calls", is_flag=True, help="Count system calls of each process, too.")
@click.option("--once", is_flag=True, help="Write one interval to standard output, and end.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), help="With --once. Default: text.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="With --once: rows at most. Default: 20; all as JSON.",
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

    words = [f"--view={view}", f"--interval={interval}"]
    words += [f"--sort={sort}"] if sort is not None else []
    words += [f"--filter={filter_}"] if filter_ is not None else []
    words += ["--calls"] if calls else []
    words += ["--once"] if once else []
    words += [f"--format={format_}"] if format_ is not None else []
    words += [f"--limit={limit}"] if limit is not None else []
    ctx.exit(become_native(["top", *words], as_child=not cli.owns_process))
