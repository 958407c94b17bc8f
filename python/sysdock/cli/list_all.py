"""`sysdock list`."""

from __future__ import annotations

import sys

import click

from sysdock.cli.options import format_option

KINDS = ("analyses", "rules", "charts", "experiments", "plans", "products", "tables")
_EPILOG = """Example:

\b
  sysdock list analyses
"""


@click.command("list", epilog=_EPILOG)
@click.argument("kind", required=False, type=click.Choice(KINDS))
@format_option
def command(kind: str | None, format_: str) -> None:
    """List what sysdock knows: analyses, rules, charts, experiments, plans of loads, products, tables.

    Default: all.
    """
    print_list(kind, format_)


def print_list(kind: str | None, format_: str) -> None:
    """Prints id and title of everything of one kind, or of all."""
    from sysdock.cli.output import print_rows, terminal_width
    from sysdock.library import Column, Library

    library = Library()
    entries = {
        "analyses": lambda: [(analysis.id, analysis.title) for analysis in library.analyses()],
        "rules": lambda: [(rule.id, rule.title) for rule in library.rules()],
        "charts": lambda: [(chart.name, chart.title) for chart in library.charts()],
        "experiments": lambda: [(experiment.id, experiment.title) for experiment in library.experiments()],
        "plans": lambda: [(plan.name, plan.title) for plan in library.load_plans()],
        "products": lambda: [(product.id, product.name) for product in library.products()],
        "tables": lambda: [(table.name, table.text) for table in library.tables()],
    }
    names = (
        Column("kind", "VARCHAR", None, ""),
        Column("id", "VARCHAR", None, ""),
        Column("title", "VARCHAR", None, ""),
    )
    rows = [(each, id_, title) for each in ([kind] if kind else KINDS) for id_, title in entries[each]()]
    if format_ == "table" and kind:
        print_rows(names[1:], [row[1:] for row in rows], format_, terminal_width())
    else:
        print_rows(names, rows, format_, terminal_width() if sys.stdout.isatty() else None)
