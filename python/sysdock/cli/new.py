"""`sysdock new`."""

from __future__ import annotations

from pathlib import Path

import click

from sysdock.cli.options import into_option

_EPILOG = """Example:

\b
  sysdock new analysis io/largest_files
  sysdock new rule io/slow_sync --into my-pack
"""


@click.command("new", epilog=_EPILOG)
@click.argument("kind", type=click.Choice(["analysis", "rule"]))
@click.argument("name", metavar="NAME")
@into_option
def command(kind: str, name: str, into: Path) -> None:
    """Create a new analysis or rule, NAME.sql and NAME.md: a working template to change."""
    from sysdock.cli.output import say
    from sysdock.library.skeleton import write_skeleton

    sql, page = write_skeleton(kind, name, into)
    print(f"{sql}\n{page}")
    print()
    say(["Next: change both to your question, then"], heads=["Next:"])
    print(f"  sysdock check {sql}             runs the example in the page")
    print(f"  sysdock check --bless {sql}     writes its result into the page")
    if into != Path("knowhow"):
        print(f"  export SYSDOCK_KNOWHOW={into}   makes sysdock use that folder")
