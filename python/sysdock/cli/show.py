"""`sysdock show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import (
    complete_analysis,
    filter_options,
    format_option,
    lang_option,
    open_session,
    parse_params,
    raw_option,
    recording_argument,
)

_EPILOG = """Example:

\b
  sysdock show rec io/summary
  sysdock show rec io/files --file '/usr/share/*' --format csv
  sysdock show rec io/calls_over_time -p interval_s=0.5 --plot calls.png
"""


@click.command("show", epilog=_EPILOG)
@recording_argument
@click.argument("analysis", required=False, shell_complete=complete_analysis)
@click.option(
    "-p", "--param", "pairs", metavar="NAME=VALUE", multiple=True, help="A parameter of the analysis."
)
@click.option(
    "--limit", type=click.IntRange(min=0), help="Rows to print; 0: all. Default: 50 of a table, else all."
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="OUT.png|svg|html",
    help="Draw its charts (a file of that name is replaced).",
)
@format_option
@raw_option
@filter_options
@lang_option
def command(
    recording: Path,
    analysis: str | None,
    pairs: tuple[str, ...],
    limit: int | None,
    plot: Path | None,
    format_: str,
    raw: bool,
    lang: str,
    **options: Any,
) -> None:
    """Answer one question about a recording: run ANALYSIS and print or draw the result.

    Without ANALYSIS the analyses are listed.
    """
    if analysis is None:
        from sysdock.cli.list_all import print_list

        print_list("analyses", format_)
        return
    from sysdock.cli.output import print_result, remark, remark_on

    params = parse_params(pairs)
    with open_session(recording, options) as session:
        found = session.library.analysis(analysis)
        if plot:
            from sysdock import chart

            chart.write(session, found, params, plot, lang)
            remark(f"{plot} written")
        else:
            print_result(session.run(found, params), format_, limit, raw=raw)
        remark_on(session, session.library.sources((*found.needs, *found.uses)))
