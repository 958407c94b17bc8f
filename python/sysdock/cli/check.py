"""`sysdock check`."""

from __future__ import annotations

from pathlib import Path

import click

_EPILOG = """Example:

\b
  sysdock check
  sysdock check knowhow/analyses/io/summary.sql
"""


@click.command("check", epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--bless", is_flag=True, help="Write the actual results into the pages instead of reporting differences."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only failures and the last line.")
@click.pass_context
def command(ctx: click.Context, /, paths: tuple[Path, ...], bless: bool, quiet: bool) -> None:
    """Check analyses, rules, experiments, load plans and products: run examples in pages, compare headers.

    PATH: an .sql, .md or .toml file, or a folder. Without PATH everything in the library is checked.
    """
    from sysdock.analysis.check import check
    from sysdock.cli.output import say
    from sysdock.experiment import problems
    from sysdock.recording import engine_instances

    engine_instances.reuse()
    summary = check(
        paths,
        bless=bless,
        report=lambda text, failed: _print(text, failed, quiet),
        experiment_problems=problems,
    )
    say([f"{summary.passed} passed, {summary.failed} failed, {summary.skipped} skipped"])
    if summary.failed:
        ctx.exit(1)


# Colours of the first words of a line.
_STATUSES = {"ok": "ok", "FAILED": "finding", "SKIPPED": "note", "blessed": "unknown"}


def _print(text: str, important: bool, quiet: bool) -> None:
    from sysdock.cli.output import say
    from sysdock.text import printable

    if important or not quiet:
        # A pack may come from a stranger.
        say(map(printable, text.split("\n")), statuses=_STATUSES)
